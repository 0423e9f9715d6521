#!/usr/bin/python3
# SPDX-License-Identifier: MIT
r"""DeepGEMM's kernels as a candidate of assay:

    assay verify --suite FILE \
        --candidate 'exec:python3 tools/adapters/deep_gemm_adapter.py'
"""
import sys

import assay_torch

try:
    import deep_gemm
except ImportError as missing:
    print(f'deep_gemm cannot be imported ({missing}); install it from '
          'github.com/deepseek-ai/DeepGEMM', file=sys.stderr)
    sys.exit(2)

RECIPES = {'1d2d': (1, 128, 128), '1d1d': (1, 1, 128)}


def operands(case):
    tensors = case.tensors
    return (tensors['a'], tensors['sfa']), (tensors['b'], tensors['sfb'])


def dense(case):
    recipe = case.parameters['recipe']
    if recipe not in RECIPES:
        raise NotImplementedError(f'deep_gemm on sm_90 has no recipe={recipe}; it has '
                                  'recipe=1d2d and recipe=1d1d')
    a, b = operands(case)
    d, c = case.outputs['d'], case.tensors.get('c')
    if recipe == '1d1d' and c is None:
        c = d.new_zeros(d.shape)  # upstream always adds here, and may not be given none
    case.launch(lambda: deep_gemm.fp8_gemm_nt(a, b, d, c=c, recipe=RECIPES[recipe]))


def contiguous(case):
    a, b = operands(case)
    d, rows = case.outputs['d'], case.tensors['m_indices']
    case.launch(lambda: deep_gemm.m_grouped_fp8_gemm_nt_contiguous(a, b, d, rows))


def masked(case):
    a, b = operands(case)
    d, rows = case.outputs['d'], case.tensors['masked_m']
    expected = max(1, sum(rows.tolist()) // len(rows))
    case.launch(lambda: deep_gemm.m_grouped_fp8_gemm_nt_masked(a, b, d, rows, expected))


def k_grouped(case):
    """Upstream sees both matrices as flat and their scales with mn first."""
    (a, sfa), (b, sfb) = operands(case)
    d, c = case.outputs['d'], case.tensors['c']
    sizes = case.parameters['ks']
    layout = c.new_tensor(sizes).int()
    case.launch(lambda: deep_gemm.k_grouped_fp8_gemm_nt_contiguous(
        (a.flatten(), sfa.T), (b.flatten(), sfb.T), d, sizes, layout, c))


if __name__ == '__main__':
    assay_torch.serve({'fp8_gemm_nt': dense,
                       'm_grouped_fp8_gemm_nt_contiguous': contiguous,
                       'm_grouped_fp8_gemm_nt_masked': masked,
                       'k_grouped_fp8_gemm_nt_contiguous': k_grouped})
