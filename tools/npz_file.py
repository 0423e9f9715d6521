# SPDX-License-Identifier: MIT
"""Reads .npz files with the standard library, and makes tensors of their arrays."""
import ast
import struct
import zipfile
from math import prod
from typing import NamedTuple

import safetensors_file
from safetensors_file import FileError

ELEMENT_BYTES = {'|u1': 1, '|i1': 1, '|b1': 1, '<u2': 2, '<i2': 2, '<f2': 2, '<u4': 4,
                 '<i4': 4, '<f4': 4, '<u8': 8, '<i8': 8, '<f8': 8}


class Array(NamedTuple):
    descr: str
    shape: tuple
    data: bytes


class Case(NamedTuple):
    line: str
    tensors: dict


class Recording(NamedTuple):
    name: str
    kernel: dict
    cases: list


# --- reading .npz ---------------------------------------------------------------------

def c_order(data, shape, size):
    """@data, in Fortran order, as C order."""
    strides = [prod(shape[:i]) for i in range(len(shape))]
    positions = [0]
    for n, stride in zip(shape, strides):
        positions = [p + i * stride for p in positions for i in range(n)]
    return b''.join(data[p * size:(p + 1) * size] for p in positions)


def parse_npy(content, place):
    if content[:6] != b'\x93NUMPY' or len(content) < 12:
        raise FileError(f'{place}: not a .npy array')
    wide = content[6] >= 2
    start = 12 if wide else 10
    end = start + struct.unpack_from('<I' if wide else '<H', content, 8)[0]
    try:
        header = ast.literal_eval(content[start:end].decode())
        descr, shape = header['descr'], tuple(header['shape'])
        size = ELEMENT_BYTES[descr]
    except (ValueError, SyntaxError, KeyError, TypeError):
        raise FileError(f'{place}: the .npy header must name one of the types '
                        f'{" ".join(ELEMENT_BYTES)}') from None
    data = content[end:]
    if len(data) != prod(shape) * size:
        raise FileError(f'{place}: {descr} {shape} takes {prod(shape) * size} bytes, '
                        f'not {len(data)}')
    if header['fortran_order'] and len(shape) > 1:
        data = c_order(data, shape, size)
    return Array(descr, shape, data)


def read_npz(path):
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix('.npy'): parse_npy(archive.read(name),
                                                         f'{path}: {name}')
                    for name in archive.namelist()}
    except OSError as error:
        raise FileError(f'{path}: {error.strerror}') from None
    except zipfile.BadZipFile:
        raise FileError(f'{path}: not an .npz archive') from None


# --- arrays to tensors ----------------------------------------------------------------

def stored(array, shape, descrs, dtype):
    if array.descr not in descrs or array.shape != tuple(shape):
        raise FileError(f'{array.descr} {array.shape} where {" or ".join(descrs)} '
                        f'{tuple(shape)} belongs')
    return safetensors_file.tensor(dtype, shape, array.data)


def e4m3(array, *shape):
    return stored(array, shape, ['|u1'], 'F8_E4M3')


def f32(array, *shape):
    return stored(array, shape, ['<f4'], 'F32')


def bf16(array, *shape):
    return stored(array, shape, ['<u2', '<i2'], 'BF16')


def integers(array, *shape):
    """An i32 tensor and its values."""
    tensor = stored(array, shape, ['<i4'], 'I32')
    return tensor, struct.unpack(f'<{prod(shape)}i', tensor.data)
