#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A program without NumPy, PyTorch or a GPU in place of somebody's kernel: fp8_gemm_nt
with recipe=tensor, in double precision and pure Python, for small shapes. With --mode it
goes wrong in one of the ways programs do, in the cases that have as many rows as --rows
says.

    assay verify 'fp8_gemm_nt m=8 n=8 k=128 recipe=tensor' \\
        --candidate 'exec:python3 tools/adapters/stand_in.py --mode hang' --timeout 1
"""
import argparse
import math
import os
import signal
import struct
import sys
import time
from operator import mul

import assay_exchange

TILE = 64


# --- arithmetic -------------------------------------------------------------------------

def decoded(code, exponent_bits, mantissa_bits):
    """The value of a byte of FP8: e5m2 as IEEE formats have it, e4m3 without infinity."""
    bias = (1 << (exponent_bits - 1)) - 1
    exponent, mantissa = divmod(code & 0x7F, 1 << mantissa_bits)
    sign = -1.0 if code & 0x80 else 1.0
    if exponent == (1 << exponent_bits) - 1:
        if mantissa_bits == 2:
            return sign * math.inf if mantissa == 0 else math.nan
        if mantissa == (1 << mantissa_bits) - 1:
            return math.nan
    if exponent:
        mantissa += 1 << mantissa_bits
    return sign * math.ldexp(mantissa, max(exponent, 1) - bias - mantissa_bits)


VALUES = {'F8_E4M3': [decoded(code, 4, 3) for code in range(256)],
          'F8_E5M2': [decoded(code, 5, 2) for code in range(256)]}


def rows_of(tensor):
    """The values of a matrix of FP8, row padding left out."""
    table, (rows, columns), stride = VALUES[tensor.dtype], tensor.shape, tensor.stride[0]
    return [[table[code] for code in tensor.data[row * stride:row * stride + columns]]
            for row in range(rows)]


def f32_bits(value):
    try:
        return struct.unpack('<I', struct.pack('<f', value))[0]
    except OverflowError:
        return 0xFF800000 if value < 0 else 0x7F800000


def bf16_bits(value):
    bits = f32_bits(value)
    if math.isnan(value):
        return 0x7FFF
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def product(case):
    """d as a list of rows."""
    a, b = rows_of(case.inputs['a']), rows_of(case.inputs['b'])
    scale = math.prod(struct.unpack('<f', case.inputs[name].data)[0]
                      for name in ('sfa', 'sfb'))
    return [[scale * sum(map(mul, row, column)) for column in b] for row in a]


def packed(d, dtype):
    encode, code = (bf16_bits, 'H') if dtype == 'BF16' else (f32_bits, 'I')
    elements = [encode(value) for row in d for value in row]
    return struct.pack(f'<{len(elements)}{code}', *elements)


# --- ways to go wrong -------------------------------------------------------------------

def crash(_):
    print('about to crash', flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)


def leave(_):
    os._exit(0)  # pylint: disable=protected-access


def hang(_):
    print(f'hanging as {os.getpid()}', flush=True)
    time.sleep(3600)


def chatter(_):
    while True:
        print('and on and on')


def grow(_):
    rows = []
    while True:
        rows.append(bytearray(os.urandom(1 << 20) * 16))
        print('growing', flush=True)


def noise(_):
    print('launching 1 x 1 blocks')
    print('assay: failed to be quiet')
    print('a warning', file=sys.stderr)


def fail(_):
    raise RuntimeError('the launch gave error 700\nand more')


def refuse(_):
    raise NotImplementedError('not today')


def run_out_of_memory(_):
    raise MemoryError


BEFORE = {'crash': crash, 'exit': leave, 'hang': hang, 'endless-noise': chatter,
          'grow': grow, 'noise': noise, 'fail': fail, 'unsupported': refuse,
          'out-of-memory': run_out_of_memory}
RESULTS = ('missing-output', 'wrong-shape', 'wrong-dtype', 'extra-tensor', 'wrong-tile',
           'one-in-ten')
OTHERS = ('slow-start', 'no-file')


def write(case, d, mode, count):
    shape = tuple(case.outputs['d'].shape)
    dtype = case.outputs['d'].dtype
    if mode == 'wrong-tile':
        for row in d[-(len(d) % TILE or TILE):]:
            row[:TILE] = [1.0 + 2.0 * value for value in row[:TILE]]
    if mode == 'one-in-ten' and count % 10 == 0:
        d[0][0] = 1.0 + 2.0 * d[0][0]
    if mode == 'wrong-dtype':
        dtype = 'F32' if dtype == 'BF16' else 'BF16'
    if mode == 'wrong-shape':
        shape = shape[::-1] + (1,)
    if mode == 'extra-tensor':
        case.write('workspace', b'\0', (1,), 'U8')
    if mode != 'missing-output':
        case.write('d', packed(d, dtype), shape, dtype)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--mode', choices=(*BEFORE, *RESULTS, *OTHERS))
    parser.add_argument('--rows', type=int, help='the m of cases that go wrong (all)')
    parser.add_argument('--log', metavar='FILE', help='gets a line at every start')
    parser.add_argument('--seconds', type=float, default=1.5, help='of a slow start')
    options = parser.parse_args()
    if options.log:
        with open(options.log, 'a', encoding='utf-8') as log:
            log.write(f'{os.getpid()}\n')
    if options.mode == 'slow-start':
        time.sleep(options.seconds)
    count = 0

    def compute(case):
        nonlocal count
        count += 1
        if case.operation != 'fp8_gemm_nt' or case.parameters['recipe'] != 'tensor':
            raise NotImplementedError('the stand-in takes fp8_gemm_nt with recipe=tensor')
        is_wrong = options.rows in (None, case.parameters['m'])
        mode = options.mode if is_wrong else None
        BEFORE.get(mode, lambda _: None)(case)
        start = time.perf_counter()
        for _ in range(case.launches):
            d = product(case)
        seconds = time.perf_counter() - start
        write(case, d, mode, count)
        if mode == 'no-file':
            case.finish = lambda: None
        return seconds

    assay_exchange.serve(compute)


if __name__ == '__main__':
    main()
