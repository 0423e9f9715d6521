# SPDX-License-Identifier: MIT
"""The program's side of `assay verify --candidate exec:COMMAND`, with the standard
library alone: reads the folder of a case, writes the outputs, answers. Copy it beside a
script of your own."""
import json
import os
import struct
import sys
import traceback
from math import prod
from typing import NamedTuple

ELEMENT_BYTES = {'F8_E4M3': 1, 'F8_E5M2': 1, 'F8_E8M0': 1, 'U8': 1,
                 'BF16': 2, 'F16': 2, 'F32': 4, 'I32': 4}
LONGEST_SENTENCE = 400


class Tensor(NamedTuple):
    """What is known of a tensor. Element [i, j, ...] lies at the sum of index * stride in
    the stored elements; rows may be padded."""
    dtype: str     # as safetensors has it: 'F8_E4M3'
    format: str    # as a case line has it: 'e4m3'; 'e2m1' is stored as U8
    shape: tuple
    stride: tuple  # elements
    data: memoryview = None  # of an input: bytes, row padding included

    @property
    def stored_elements(self):
        return self.shape[0] * self.stride[0] if self.shape else 1


class Case:
    """One case: `line`, `operation`, `parameters` (every key with its value), `launches`
    (how often to compute the outputs), `inputs` and `outputs` (Tensors by name)."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, 'inputs.safetensors'), 'rb') as stream:
            content = bytearray(os.fstat(stream.fileno()).st_size)
            stream.readinto(content)
        start = 8 + struct.unpack('<Q', content[:8])[0]
        header = json.loads(content[8:start])
        metadata = header.pop('__metadata__')
        self.line, self.operation = metadata['case'], metadata['operation']
        self.parameters = json.loads(metadata['parameters'])
        self.launches = int(metadata['launches'])
        self.outputs = described(metadata['outputs'])
        self.inputs = {}
        for name, tensor in described(metadata['inputs']).items():
            begin, end = header[name]['data_offsets']
            data = memoryview(content)[start + begin:start + end]
            self.inputs[name] = tensor._replace(data=data)
        self.written = {}

    def write(self, name, data, shape=None, dtype=None):
        """Keeps the bytes of an output, or of a plan that was used: contiguous in its
        shape, or with row padding as an input would have it and then without `shape`."""
        tensor = self.outputs.get(name) or self.inputs.get(name)
        if shape is None and tensor:
            shape = stored_shape(tensor)
        self.written[name] = dtype or tensor.dtype, tuple(shape), bytes(data)

    def finish(self):
        """Writes the file. It is there under its name whole or not at all."""
        path = os.path.join(self.folder, 'outputs.safetensors')
        with open(path + '.part', 'wb') as stream:
            for piece in content_of(self.written):
                stream.write(piece)
        os.replace(path + '.part', path)


def described(text):
    return {name: Tensor(row['dtype'], row['format'], tuple(row['shape']),
                         tuple(row['stride']))
            for name, row in json.loads(text).items()}


def stored_shape(tensor):
    """The shape with row padding."""
    stride = tensor.stride
    return tensor.shape[:1] + tuple(
        stride[i - 1] // stride[i] if stride[i] else tensor.shape[i]
        for i in range(1, len(stride)))


def content_of(tensors):
    """The pieces of a safetensors file: tensors by falling element size."""
    order = sorted(tensors, key=lambda name: (-ELEMENT_BYTES[tensors[name][0]], name))
    header, position = {}, 0
    for name in order:
        dtype, shape, data = tensors[name]
        if len(data) != prod(shape) * ELEMENT_BYTES[dtype]:
            raise ValueError(f'{name} has {len(data)} bytes, which is not {dtype} '
                             f'{list(shape)}')
        header[name] = {'dtype': dtype, 'shape': shape,
                        'data_offsets': (position, position + len(data))}
        position += len(data)
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    return [struct.pack('<Q', len(text)), text, *(tensors[name][2] for name in order)]


def sentence(error):
    """An exception on one line."""
    lines = str(error).split('\n')
    reason = next((line.strip() for line in lines if line.strip()), 'no reason given')
    return f'{type(error).__name__}: {reason}'[:LONGEST_SENTENCE]


def answer(folder, compute):
    """Computes the case in the folder; what is to be answered."""
    try:
        case = Case(folder)
        seconds = compute(case)
        case.finish()
    except NotImplementedError as error:
        return f'unsupported {" ".join(str(error).split()) or "not implemented"}'
    except MemoryError:
        traceback.print_exc()
        return 'out of memory'
    except Exception as error:  # pylint: disable=broad-except
        traceback.print_exc()
        return f'failed {sentence(error)}'
    return 'ok' if seconds is None else f'ok seconds={seconds!r}'


def serve(compute):
    """Answers case after case until stdin ends. compute(case) calls case.write for every
    output and returns None, or the seconds that all launches took. NotImplementedError
    says that it does not do the case, MemoryError that there was no room for it, any
    other exception that it failed. Whatever prints to stdout meanwhile prints to stderr,
    so that nothing but answers is taken for one."""
    sys.stdout.flush()
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    for line in sys.stdin:
        text = answer(line.rstrip('\n'), compute)
        sys.stdout.flush()
        answers.write(f'assay: {text}\n')
        answers.flush()
