#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Makes a recorded file of the operations sfu and convert from samples of one-operand
functions recorded on an H200 (corpus/units/unary_samples.csv.zst).

  tools/import_unary_samples.py SOURCE.csv.zst --out FILE.safetensors.zst

SOURCE has lines `function,input bits,result bits`, in hexadecimal, the function by its
PTX name; those that no operation computes are named and left out.
"""
import argparse
import os
import struct
import sys

sys.dont_write_bytecode = True
import safetensors_file  # noqa: E402
from safetensors_file import FileError  # noqa: E402

# Case up to its count, dtype and struct letter of the result by PTX name.
FUNCTIONS = {
    'ex2.approx.ftz.f32': ('sfu function=ex2', 'F32', 'I'),
    'lg2.approx.ftz.f32': ('sfu function=lg2', 'F32', 'I'),
    'rcp.approx.ftz.f32': ('sfu function=rcp', 'F32', 'I'),
    'rsqrt.approx.ftz.f32': ('sfu function=rsqrt', 'F32', 'I'),
    'cvt.rn.satfinite.e4m3.f32': ('convert to=e4m3', 'F8_E4M3', 'B'),
    'cvt.rn.satfinite.e5m2.f32': ('convert to=e5m2', 'F8_E5M2', 'B'),
    'cvt.rn.bf16.f32': ('convert to=bf16', 'BF16', 'H'),
    'cvt.rn.f16.f32': ('convert to=f16', 'F16', 'H'),
}
DEVICE = {'gpu': 'NVIDIA H200', 'driver': '580', 'cuda': '13.0'}


def read_samples(path):
    """Pairs of input and result bits by function, in the order of the file."""
    try:
        with open(path, 'rb') as stream:
            content = safetensors_file.zstd(['-dc'], stream.read(), path)
    except OSError as error:
        raise FileError(f'{path}: {error.strerror}') from None
    samples = {}
    for number, line in enumerate(content.decode('ascii', 'replace').splitlines(), 1):
        if line.startswith('#'):
            continue
        try:
            function, *words = line.split(',')
            argument, result = (int(word, 16) for word in words)
        except ValueError:
            raise FileError(f'{path}: line {number} must be FUNCTION,HEX,HEX') from None
        samples.setdefault(function, []).append((argument, result))
    return samples


def packed(dtype, letter, values):
    try:
        data = struct.pack(f'<{len(values)}{letter}', *values)
    except struct.error:
        raise FileError(f'a result has more bits than {dtype}') from None
    return safetensors_file.tensor(dtype, (len(values),), data)


def run(source, out):
    samples = read_samples(source)
    lines, tensors = [], {}
    for function, pairs in samples.items():
        if function not in FUNCTIONS:
            print(f'{source}: no operation computes {function}: left out',
                  file=sys.stderr)
            continue
        case, dtype, letter = FUNCTIONS[function]
        arguments, results = zip(*pairs)
        x = packed('F32', 'I', arguments)
        shared = tensors.setdefault('x', x)  # of the first function
        if x != shared:
            tensors[f'{len(lines)}/x'] = x
        tensors[f'{len(lines)}/y'] = packed(dtype, letter, results)
        lines.append(f'{case} count={len(pairs)} data=recorded seed=0')
    if not lines:
        raise FileError(f'{source}: no samples inside')
    metadata = {'cases': '\n'.join(lines), 'kernel': 'one PTX instruction',
                'source': os.path.basename(source), **DEVICE}
    safetensors_file.write(out, metadata, tensors)
    print(f'{out}: {len(lines)} cases, {os.path.getsize(out)} bytes')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('source', metavar='SOURCE.csv.zst')
    parser.add_argument('--out', required=True, metavar='FILE.safetensors.zst')
    arguments = parser.parse_args()
    try:
        run(arguments.source, arguments.out)
    except FileError as error:
        print(f'import_unary_samples.py: {error}', file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main())
