# SPDX-License-Identifier: MIT
"""Reads and writes .safetensors and .safetensors.zst with the standard library and the
zstd program. The same content always gives the same bytes."""
import json
import os
import struct
import subprocess
from math import prod
from typing import NamedTuple

ELEMENT_BYTES = {'F8_E4M3': 1, 'F8_E5M2': 1, 'F8_E8M0': 1, 'U8': 1,
                 'BF16': 2, 'F16': 2, 'F32': 4, 'I32': 4}


class FileError(Exception):
    """A sentence for the user."""


class Tensor(NamedTuple):
    dtype: str
    shape: tuple
    data: bytes


def tensor(dtype, shape, data):
    """A Tensor whose size has been checked."""
    expected = prod(shape) * ELEMENT_BYTES[dtype]
    if len(data) != expected:
        raise FileError(f'{dtype} {list(shape)} takes {expected} bytes, not {len(data)}')
    return Tensor(dtype, tuple(shape), bytes(data))


def zstd(arguments, data, path):
    """The output of the zstd program."""
    try:
        done = subprocess.run(['zstd', '-q', *arguments], input=data, check=False,
                              capture_output=True)
    except FileNotFoundError:
        raise FileError('the zstd program is not installed') from None
    if done.returncode:
        reason = done.stderr.decode(errors='replace').strip()
        raise FileError(f'{path}: zstd says {reason}')
    return done.stdout


def read(path):
    """Metadata and tensors, both as dictionaries by name."""
    try:
        with open(path, 'rb') as stream:
            content = stream.read()
    except OSError as error:
        raise FileError(f'{path}: {error.strerror}') from None
    if str(path).endswith('.zst'):
        content = zstd(['-dc'], content, path)
    try:
        start = 8 + struct.unpack('<Q', content[:8])[0]
        header = json.loads(content[8:start])
        metadata = header.pop('__metadata__', {})
        tensors = {}
        for name, entry in header.items():
            begin, end = entry['data_offsets']
            tensors[name] = tensor(entry['dtype'], entry['shape'],
                                   content[start + begin:start + end])
    except (struct.error, ValueError, KeyError, AttributeError, TypeError):
        raise FileError(f'{path}: not a safetensors file of the known dtypes '
                        f'({", ".join(ELEMENT_BYTES)})') from None
    return metadata, tensors


def content_of(metadata, tensors):
    """The bytes of an uncompressed file: tensors by falling element size, then name."""
    order = sorted(tensors, key=lambda name: (-ELEMENT_BYTES[tensors[name].dtype], name))
    header = {'__metadata__': dict(sorted(metadata.items()))} if metadata else {}
    position = 0
    for name in order:
        dtype, shape, data = tensors[name]
        header[name] = {'dtype': dtype, 'shape': list(shape),
                        'data_offsets': [position, position + len(data)]}
        position += len(data)
    text = json.dumps(header, separators=(',', ':'), ensure_ascii=False).encode()
    text += b' ' * (-len(text) % 8)
    return b''.join([struct.pack('<Q', len(text)), text,
                     *(tensors[name].data for name in order)])


def write(path, metadata, tensors):
    """Writes beside the final name, then renames: a file is there whole or not at all."""
    content = content_of(metadata, tensors)
    if str(path).endswith('.zst'):
        content = zstd(['-19', '-T1', f'--stream-size={len(content)}'], content, path)
    temporary = f'{path}.{os.getpid()}.tmp'
    try:
        with open(temporary, 'wb') as stream:
            stream.write(content)
        os.replace(temporary, path)
    except OSError as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise FileError(f'{path}: {error.strerror}') from None
