#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Copies a .safetensors[.zst] file with one bit of one element flipped: the smallest
error a kernel can make, for examples and tests.

  tools/flip_bit.py FILE d 20,100 0x10 --out FLIPPED
  tools/flip_bit.py FILE 0/d 20,100 0x10 --case 0 --out FLIPPED   (keeps case 0 only)
"""
import argparse
import sys

sys.dont_write_bytecode = True
import safetensors_file  # noqa: E402
from safetensors_file import FileError  # noqa: E402


def flip(tensor, name, index, mask):
    """@tensor with bit @mask of element @index flipped."""
    dtype, shape, data = tensor
    if len(index) != len(shape) or not all(0 <= i < n for i, n in zip(index, shape)):
        raise FileError(f'index {list(index)} is not inside {name} {list(shape)}')
    element_bytes = safetensors_file.ELEMENT_BYTES[dtype]
    if mask <= 0 or mask & (mask - 1) or mask >> (8 * element_bytes):
        raise FileError(f'mask {mask:#x} must have exactly one of the '
                        f'{8 * element_bytes} bits of {dtype}')
    element = 0
    for i, n in zip(index, shape):
        element = element * n + i
    first, last = element * element_bytes, (element + 1) * element_bytes
    bits = int.from_bytes(data[first:last], 'little') ^ mask
    flipped = data[:first] + bits.to_bytes(element_bytes, 'little') + data[last:]
    return safetensors_file.tensor(dtype, shape, flipped)


def keep_case(metadata, tensors, case):
    """The recording reduced to one case, whose own tensors lose their number."""
    lines = metadata.get('cases', '').splitlines()
    if not 0 <= case < len(lines):
        raise FileError(f'there is no case {case}: the file has {len(lines)}')
    kept = {name: value for name, value in tensors.items() if '/' not in name}
    prefix = f'{case}/'
    kept.update((name[len(prefix):], value) for name, value in tensors.items()
                if name.startswith(prefix))
    return {**metadata, 'cases': lines[case]}, kept


def index(text):
    return tuple(int(word) for word in text.split(','))


def mask(text):
    return int(text, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('file', metavar='FILE')
    parser.add_argument('tensor', metavar='TENSOR', help='name as in FILE ("d", "0/d")')
    parser.add_argument('index', metavar='INDEX', type=index, help='as in 20,100')
    parser.add_argument('bit', metavar='BIT', type=mask,
                        help='mask of the bit to flip, as in 0x10')
    parser.add_argument('--case', metavar='N', type=int, help='keep only case N')
    parser.add_argument('--out', metavar='FILE', required=True)
    arguments = parser.parse_args()
    try:
        metadata, tensors = safetensors_file.read(arguments.file)
        name = arguments.tensor
        if name not in tensors:
            raise FileError(f'{arguments.file} has no tensor {name}; '
                            f'it has {", ".join(sorted(tensors))}')
        tensors[name] = flip(tensors[name], name, arguments.index, arguments.bit)
        place = ','.join(map(str, arguments.index))
        if arguments.case is not None:
            metadata, tensors = keep_case(metadata, tensors, arguments.case)
            name = name.removeprefix(f'{arguments.case}/')
        metadata['edited'] = f'bit {arguments.bit:#x} of {name}[{place}] flipped'
        safetensors_file.write(arguments.out, metadata, tensors)
    except FileError as error:
        print(f'flip_bit.py: {error}', file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main())
