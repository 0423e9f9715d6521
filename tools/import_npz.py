#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Makes recorded files (.safetensors.zst) from .npz files of kernel inputs and outputs
recorded on an H200. The arrays in a file tell its layout; the layouts are the rows of
LAYOUTS.

  tools/import_npz.py SOURCE.npz... --out DIR
"""
import argparse
import ast
import os
import struct
import sys
import zipfile
from collections import Counter
from math import prod
from typing import NamedTuple

sys.dont_write_bytecode = True
import safetensors_file  # noqa: E402
from safetensors_file import FileError  # noqa: E402

ELEMENT_BYTES = {'|u1': 1, '|i1': 1, '|b1': 1, '<u2': 2, '<i2': 2, '<f2': 2, '<u4': 4,
                 '<i4': 4, '<f4': 4, '<u8': 8, '<i8': 8, '<f8': 8}
DEVICE = {'gpu': 'NVIDIA H200', 'driver': '580', 'cuda': '13.0'}
DEEPGEMM = {'kernel': 'DeepGEMM fp8_gemm_nt', 'commit': '54e2261'}
CUBLASLT = {'kernel': 'cuBLASLt FP8 matmul'}
SCALE_BLOCK = 128


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


def narrowed_bf16(array, *shape):
    """bf16 values that were stored widened to f32."""
    words = struct.unpack(f'<{prod(shape)}I', f32(array, *shape).data)
    if any(word & 0xFFFF for word in words):
        raise FileError('an f32 value that should be a widened bf16 is not one')
    halves = struct.pack(f'<{len(words)}H', *(word >> 16 for word in words))
    return safetensors_file.tensor('BF16', shape, halves)


def one():
    return safetensors_file.tensor('F32', (1, 1), struct.pack('<f', 1.0))


def repeated_rows(scales, rows):
    """Scales of blocks of 128 rows, repeated for each of @rows rows."""
    row_bytes = scales.shape[1] * 4
    blocks = [scales.data[i * row_bytes:(i + 1) * row_bytes]
              for i in range(scales.shape[0])]
    data = b''.join(blocks[row // SCALE_BLOCK] for row in range(rows))
    return safetensors_file.tensor('F32', (rows, scales.shape[1]), data)


def blocks(elements):
    return (elements + SCALE_BLOCK - 1) // SCALE_BLOCK


def sizes(a, b):
    return a.shape[0], b.shape[0], a.shape[1]


def fp8_gemm_line(m, n, k, recipe='', out='', c='', numerics=''):
    words = ['fp8_gemm_nt', f'm={m}', f'n={n}', f'k={k}', recipe and f'recipe={recipe}',
             out and f'out={out}', c and f'c={c}', 'data=recorded', 'seed=0',
             numerics and f'as={numerics}']
    return ' '.join(filter(None, words))


# --- layouts --------------------------------------------------------------------------

def deepgemm_1d2d(p, m, n, k, d):
    return Case(fp8_gemm_line(m, n, k), {
        'a': e4m3(p['a'], m, k), 'sfa': f32(p['sfa'], m, blocks(k)),
        'b': e4m3(p['b'], n, k), 'sfb': f32(p['sfb'], blocks(n), blocks(k)),
        'd': bf16(p[d], m, n)})


def deepgemm_1d1d(p, m, n, k, d, **more):
    """Operands b1 and sfb1; @more replaces tensors of the case."""
    tensors = {'a': e4m3(p['a'], m, k), 'sfa': f32(p['sfa'], m, blocks(k)),
               'b': e4m3(p['b1'], n, k), 'sfb': f32(p['sfb1'], n, blocks(k)),
               'd': f32(p[d], m, n), **more}
    return Case(fp8_gemm_line(m, n, k, '1d1d', 'f32', c='c' in more and '1'), tensors)


def import_deepgemm_dense(stem, groups):
    for prefix, p in groups.items():
        m, n, k = sizes(p['a'], p['b'])
        block_scales = f32(p['sfb'], blocks(n), blocks(k))
        yield Recording(f'{stem}_{prefix}', DEEPGEMM, [
            deepgemm_1d2d(p, m, n, k, 'd_bf16'),
            deepgemm_1d1d(p, m, n, k, 'd_f32', b=e4m3(p['b'], n, k),
                          sfb=repeated_rows(block_scales, n)),
            deepgemm_1d1d(p, m, n, k, 'd1_f32')])


def integers(array, *shape):
    """An i32 tensor and its values."""
    tensor = stored(array, shape, ['<i4'], 'I32')
    return tensor, struct.unpack(f'<{prod(shape)}i', tensor.data)


def contiguous_case(p):
    (m, k), (groups, n, _) = p['a'].shape, p['b'].shape
    m_indices, labels = integers(p['m_indices'], m)
    sizes_text = ','.join(str(labels.count(group)) for group in range(groups))
    return Case(f'm_grouped_fp8_gemm_nt_contiguous group_m={sizes_text} n={n} k={k} '
                'data=recorded seed=0', {
                    'a': e4m3(p['a'], m, k), 'sfa': f32(p['sfa'], m, blocks(k)),
                    'b': e4m3(p['b'], groups, n, k),
                    'sfb': f32(p['sfb'], groups, blocks(n), blocks(k)),
                    'm_indices': m_indices, 'd': bf16(p['d'], m, n)})


def import_deepgemm_masked(stem, groups_by_prefix):
    for prefix, p in groups_by_prefix.items():
        (groups, m_max, k), n = p['a'].shape, p['b'].shape[1]
        masked_m, mask = integers(p['masked_m'], groups)
        line = (f'm_grouped_fp8_gemm_nt_masked groups={groups} m_max={m_max} n={n} k={k} '
                f'masked_m={",".join(map(str, mask))} data=recorded seed=0')
        yield Recording(f'{stem}_{prefix}', DEEPGEMM, [Case(line, {
            'a': e4m3(p['a'], groups, m_max, k),
            'sfa': f32(p['sfa'], groups, m_max, blocks(k)),
            'b': e4m3(p['b'], groups, n, k),
            'sfb': f32(p['sfb'], groups, blocks(n), blocks(k)),
            'masked_m': masked_m, 'd': bf16(p['d'], groups, m_max, n)})])


def import_deepgemm_many(stem, groups):
    for prefix, p in groups.items():
        if 'm_indices' in p:
            yield Recording(f'{stem}_{prefix}', DEEPGEMM, [contiguous_case(p)])
            continue
        m, n, k = sizes(p['a'], p['b'])
        cases = [deepgemm_1d2d(p, m, n, k, 'd')]
        if 'd1' in p:
            cases.append(deepgemm_1d1d(p, m, n, k, 'd1', c=f32(p['c'], m, n)))
        yield Recording(f'{stem}_{prefix}', DEEPGEMM, cases)


def cublaslt_case(p, output, recipe, numerics, scales, convert):
    m, n, k = sizes(p['a'], p['b'])
    out = 'f32' if convert is f32 else ''
    sfa, sfb = scales
    return Case(fp8_gemm_line(m, n, k, recipe, out, numerics=numerics), {
        'a': e4m3(p['a'], m, k), 'sfa': sfa, 'b': e4m3(p['b'], n, k), 'sfb': sfb,
        'd': convert(p[output], m, n)})


def import_cublaslt_fp8(stem, groups):
    for prefix, p in groups.items():
        units = (one(), one())
        cases = [
            cublaslt_case(p, 'fast1_f32', 'tensor', 'cublaslt-fast', units, f32),
            cublaslt_case(p, 'fast1_bf16', 'tensor', 'cublaslt-fast', units, bf16),
            cublaslt_case(p, 'fast0_f32', 'tensor', '', units, f32),
            cublaslt_case(p, 'fast0_bf16', 'tensor', '', units, bf16)]
        if 'sa' in p:
            m, n, k = sizes(p['a'], p['b'])
            scales = (f32(p['sa'], m, blocks(k)), f32(p['sb'], blocks(n), blocks(k)))
            cases += [
                cublaslt_case(p, 'block_float32', '', 'cublaslt-block', scales, f32),
                cublaslt_case(p, 'block_bfloat16', '', 'cublaslt-block', scales,
                              narrowed_bf16)]
        yield Recording(f'{stem}_{prefix}', CUBLASLT, cases)


class Layout(NamedTuple):
    what: str
    fields: set      # a group is a prefix P with an array P_FIELD for each of these
    convert: object  # None: an operation that arrives later


# The first row of which the file has a group wins.
LAYOUTS = [
    Layout('m_grouped_fp8_gemm_nt_masked', {'a', 'sfa', 'b', 'sfb', 'masked_m', 'd'},
           import_deepgemm_masked),
    Layout('fp8_gemm_nt', {'a', 'sfa', 'b', 'sfb', 'd_bf16', 'd_f32', 'b1', 'sfb1',
                           'd1_f32'}, import_deepgemm_dense),
    Layout('fp8_gemm_nt', {'a', 'sfa', 'b', 'sfb', 'd'}, import_deepgemm_many),
    Layout('fp8_gemm_nt', {'a', 'b', 'fast1_f32', 'fast1_bf16', 'fast0_f32',
                           'fast0_bf16'}, import_cublaslt_fp8),
    Layout('mla_sparse_prefill', {'out', 'max_logits', 'lse'}, None),
    Layout('mla_sparse_decode or mla_dense_decode', {'out', 'lse', 'num_splits'}, None),
]


def find_groups(arrays, fields):
    """Arrays by group, then by field, of the groups that have all of @fields."""
    suffix = '_' + min(fields)
    prefixes = [name.removesuffix(suffix) for name in arrays if name.endswith(suffix)]
    return {prefix: {name.removeprefix(prefix + '_'): array
                     for name, array in arrays.items() if name.startswith(prefix + '_')}
            for prefix in prefixes
            if all(f'{prefix}_{field}' in arrays for field in fields)}


def find_layout(path, arrays):
    for layout in LAYOUTS:
        groups = find_groups(arrays, layout.fields)
        if groups:
            return layout, groups
    known = ', '.join(sorted({layout.what for layout in LAYOUTS}))
    raise FileError(f'{path}: its arrays are those of no known layout ({known})')


# --- writing --------------------------------------------------------------------------

def merged(cases):
    """Tensors by stored name: what most cases share is plain, the rest is N/name."""
    tensors = {}
    for name in sorted({name for case in cases for name in case.tensors}):
        values = [case.tensors.get(name) for case in cases]
        shared, uses = Counter(values).most_common(1)[0]
        is_plain = None not in values and (uses > 1 or len(cases) == 1)
        if is_plain:
            tensors[name] = shared
        for i, value in enumerate(values):
            if value is not None and not (is_plain and value == shared):
                tensors[f'{i}/{name}'] = value
    return tensors


def import_file(path, folder):
    arrays = read_npz(path)
    layout, groups = find_layout(path, arrays)
    if layout.convert is None:
        print(f'{path}: {layout.what} is an operation that arrives later: skipped',
              file=sys.stderr)
        return
    used = {f'{prefix}_{field}' for prefix, p in groups.items() for field in p}
    if set(arrays) - used:
        raise FileError(f'{path}: array {min(set(arrays) - used)} belongs to no case')
    stem = os.path.basename(path).removesuffix('.npz')
    try:
        recordings = list(layout.convert(stem, groups))
    except KeyError as error:
        raise FileError(f'{path}: array {error} of its layout is missing') from None
    except FileError as error:
        raise FileError(f'{path}: {error}') from None
    for name, kernel, cases in recordings:
        metadata = {'cases': '\n'.join(case.line for case in cases), **DEVICE, **kernel,
                    'source': os.path.basename(path)}
        target = os.path.join(folder, f'{name}.safetensors.zst')
        safetensors_file.write(target, metadata, merged(cases))
        print(f'{target}: {len(cases)} cases, {os.path.getsize(target)} bytes')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('sources', metavar='SOURCE.npz', nargs='+')
    parser.add_argument('--out', metavar='DIR', required=True)
    arguments = parser.parse_args()
    try:
        os.makedirs(arguments.out, exist_ok=True)
        for path in arguments.sources:
            import_file(path, arguments.out)
    except OSError as error:
        print(f'import_npz.py: {arguments.out}: {error.strerror}', file=sys.stderr)
        return 2
    except FileError as error:
        print(f'import_npz.py: {error}', file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main())
