#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Makes recorded files (.safetensors.zst) from .npz files of kernel inputs and outputs
recorded on an H200. The arrays in a file tell its layout; the layouts are the rows of
LAYOUTS. With --only just the recordings of those names are made.

  tools/import_npz.py SOURCE.npz... --out DIR [--only NAME]...
"""
import argparse
import os
import struct
import sys
from collections import Counter
from math import prod
from typing import NamedTuple

sys.dont_write_bytecode = True
import flashmla_layouts  # noqa: E402
import safetensors_file  # noqa: E402
from npz_file import (Case, Recording, bf16, e4m3, f32, integers,  # noqa: E402
                      read_npz)
from safetensors_file import FileError  # noqa: E402

DEVICE = {'gpu': 'NVIDIA H200', 'driver': '580', 'cuda': '13.0'}
DEEPGEMM = {'kernel': 'DeepGEMM fp8_gemm_nt', 'commit': '54e2261'}
CUBLASLT = {'kernel': 'cuBLASLt FP8 matmul'}
SCALE_BLOCK = 128


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
    fields: set  # a group is a prefix P with an array P_FIELD for each of these
    convert: object
    shared: set = frozenset()  # arrays without prefix, which belong to every group
    unused: set = frozenset()  # arrays that follow from others


DECODE = {'q', 'out', 'lse', 'meta', 'num_splits'}
PREFILL = {'out', 'max_logits', 'lse'}

# The first row of which the file has a group, and its shared arrays, wins.
LAYOUTS = [
    Layout('m_grouped_fp8_gemm_nt_masked', {'a', 'sfa', 'b', 'sfb', 'masked_m', 'd'},
           import_deepgemm_masked),
    Layout('fp8_gemm_nt', {'a', 'sfa', 'b', 'sfb', 'd_bf16', 'd_f32', 'b1', 'sfb1',
                           'd1_f32'}, import_deepgemm_dense),
    Layout('fp8_gemm_nt', {'a', 'sfa', 'b', 'sfb', 'd'}, import_deepgemm_many),
    Layout('fp8_gemm_nt', {'a', 'b', 'fast1_f32', 'fast1_bf16', 'fast0_f32',
                           'fast0_bf16'}, import_cublaslt_fp8),
    Layout('mla_dense_decode', DECODE | {'kv', 'bt', 'seqlens', 'causal'},
           flashmla_layouts.import_dense_many),
    Layout('mla_dense_decode', DECODE, flashmla_layouts.import_dense,
           {'kv', 'block_table', 'seqlens'}),
    Layout('mla_sparse_decode', DECODE | {'kv', 'kv_stride0', 'idx', 'sink', 'scale'},
           flashmla_layouts.import_sparse_many),
    Layout('mla_sparse_decode', DECODE, flashmla_layouts.import_sparse,
           {'kv', 'indices', 'attn_sink'}, {'kv_dequant'}),
    Layout('mla_sparse_prefill', PREFILL | {'q', 'kv', 'idx', 'sink', 'topk_length',
                                            'scale'},
           flashmla_layouts.import_prefill_many),
    Layout('mla_sparse_prefill', PREFILL, flashmla_layouts.import_prefill,
           {'q', 'kv', 'indices', 'attn_sink', 'topk_length'}),
]


def find_groups(arrays, layout):
    """Arrays by group, then by field, of the groups that have all fields."""
    suffix = '_' + min(layout.fields)
    prefixes = [name.removesuffix(suffix) for name in arrays if name.endswith(suffix)]
    if not layout.shared <= set(arrays):
        return {}
    shared = {name: arrays[name] for name in layout.shared}
    return {prefix: {**shared, **{name.removeprefix(prefix + '_'): array
                                  for name, array in arrays.items()
                                  if name.startswith(prefix + '_')}}
            for prefix in prefixes
            if all(f'{prefix}_{field}' in arrays for field in layout.fields)}


def find_layout(path, arrays):
    """The layout, its groups, and arrays that belong to none of them."""
    for layout in LAYOUTS:
        groups = find_groups(arrays, layout)
        if groups:
            used = {f'{prefix}_{field}' for prefix, p in groups.items() for field in p}
            rest = set(arrays) - used - layout.shared - layout.unused
            if rest:
                raise FileError(f'{path}: array {min(rest)} belongs to no case')
            return layout, groups
    known = ', '.join(sorted({layout.what for layout in LAYOUTS}))
    raise FileError(f'{path}: its arrays are those of no known layout ({known})')


# --- writing --------------------------------------------------------------------------

def merged(cases):
    """Tensors by stored name: what most of the cases that have it share is plain, the
    rest is N/name."""
    tensors = {}
    for name in sorted({name for case in cases for name in case.tensors}):
        values = {i: case.tensors[name] for i, case in enumerate(cases)
                  if name in case.tensors}
        shared, uses = Counter(values.values()).most_common(1)[0]
        is_plain = uses > 1 or len(cases) == 1
        if is_plain:
            tensors[name] = shared
        for i, value in values.items():
            if not (is_plain and value == shared):
                tensors[f'{i}/{name}'] = value
    return tensors


def import_file(path, folder, only):
    """Writes the recordings of a file, and returns their names."""
    layout, groups = find_layout(path, read_npz(path))
    stem = os.path.basename(path).removesuffix('.npz')
    try:
        recordings = list(layout.convert(stem, groups))
    except KeyError as error:
        raise FileError(f'{path}: array {error} of its layout is missing') from None
    except FileError as error:
        raise FileError(f'{path}: {error}') from None
    for name, kernel, cases in recordings:
        if only and name not in only:
            continue
        metadata = {'cases': '\n'.join(case.line for case in cases), **DEVICE, **kernel,
                    'source': os.path.basename(path)}
        target = os.path.join(folder, f'{name}.safetensors.zst')
        safetensors_file.write(target, metadata, merged(cases))
        print(f'{target}: {len(cases)} cases, {os.path.getsize(target)} bytes')
    return {name for name, _, _ in recordings}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('sources', metavar='SOURCE.npz', nargs='+')
    parser.add_argument('--out', metavar='DIR', required=True)
    parser.add_argument('--only', metavar='NAME', action='append', default=[],
                        help='make this recording alone, or these')
    arguments = parser.parse_args()
    try:
        os.makedirs(arguments.out, exist_ok=True)
        names = set()
        for path in arguments.sources:
            names |= import_file(path, arguments.out, arguments.only)
        unknown = set(arguments.only) - names
        if unknown:
            raise FileError(f'--only {min(unknown)} is no recording of these files; '
                            f'they have {", ".join(sorted(names))}')
    except OSError as error:
        print(f'import_npz.py: {arguments.out}: {error.strerror}', file=sys.stderr)
        return 2
    except FileError as error:
        print(f'import_npz.py: {error}', file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main())
