#!/usr/bin/python3
# SPDX-License-Identifier: MIT
r"""FlashInfer's kernels as a candidate of assay: bmm_fp8 for FP8 GEMMs with one scale an
operand, BatchMLAPagedAttentionWrapper for dense decode.

    assay verify --suite FILE \
        --candidate 'exec:python3 tools/adapters/flashinfer_adapter.py'
"""
import sys

import assay_torch

try:
    import flashinfer
except ImportError as missing:
    print(f'flashinfer cannot be imported ({missing}); install flashinfer-python',
          file=sys.stderr)
    sys.exit(2)

torch = assay_torch.torch
V_DIMENSIONS, ROPE_DIMENSIONS, PAGE = 512, 64, 64
WORKSPACE_BYTES = 128 << 20


def gemm(case):
    keys, tensors, d = case.parameters, case.tensors, case.outputs['d']
    if keys['recipe'] != 'tensor' or keys['out'] != 'bf16':
        raise NotImplementedError('bmm_fp8 has one scale an operand and 16-bit outputs; '
                                  'use recipe=tensor out=bf16')
    a, b = tensors['a'][None], tensors['b'].T[None]
    scales = tensors['sfa'].flatten(), tensors['sfb'].flatten()
    result = case.launch(lambda: flashinfer.bmm_fp8(a, b, *scales, d.dtype))
    return {'d': result[0]}


def page_lists(case):
    """Pages of all requests behind one another, and where each request's begin."""
    lengths = case.tensors['cache_seqlens']
    counts = (lengths + PAGE - 1) // PAGE
    ends = torch.cumsum(counts, 0).int()
    table = case.tensors['block_table']
    columns = torch.arange(table.shape[1], device=table.device)
    return torch.cat([ends.new_zeros(1), ends]), table[columns < counts[:, None]], lengths


def dense_decode(case):
    keys, tensors = case.parameters, case.tensors
    has_empty = 0 in tensors['cache_seqlens'].tolist()
    if keys['lse'] != 'base2' or keys['h_k'] != 1 or has_empty:
        raise NotImplementedError('flashinfer gives lse in units of log 2, for one KV '
                                  'head and requests that have keys; use lse=base2 h_k=1')
    q, cache = tensors['q'], tensors['k_cache'][:, :, 0]
    b, s_q, heads, dimensions = q.shape
    first = torch.arange(b + 1, device=q.device, dtype=torch.int32) * s_q
    begins, pages, lengths = page_lists(case)
    wrapper = flashinfer.mla.BatchMLAPagedAttentionWrapper(
        torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device=q.device))
    scale = keys['softmax_scale'] or dimensions ** -0.5
    wrapper.plan(first, begins, pages, lengths, heads, V_DIMENSIONS, ROPE_DIMENSIONS,
                 PAGE, bool(keys['causal']), scale, q.dtype, cache.dtype)
    rows = q.reshape(b * s_q, heads, dimensions)
    out, lse = case.launch(lambda: wrapper.run(
        rows[..., :V_DIMENSIONS].contiguous(), rows[..., V_DIMENSIONS:].contiguous(),
        cache[..., :V_DIMENSIONS], cache[..., V_DIMENSIONS:], return_lse=True))
    return {'out': out.reshape(b, s_q, heads, V_DIMENSIONS),
            'lse': lse.reshape(b, s_q, heads).transpose(1, 2)}


if __name__ == '__main__':
    assay_torch.serve({'fp8_gemm_nt': gemm, 'mla_dense_decode': dense_decode})
