#!/usr/bin/python3
# SPDX-License-Identifier: MIT
r"""FlashMLA's kernels as a candidate of assay:

    assay verify --suite FILE \
        --candidate 'exec:python3 tools/adapters/flash_mla_adapter.py'

Returns the tile scheduler's plan that was used, so that outputs of a card with another
number of multiprocessors are compared with the right splits."""
import sys

import assay_torch

try:
    import flash_mla
except ImportError as missing:
    print(f'flash_mla cannot be imported ({missing}); install it from '
          'github.com/deepseek-ai/FlashMLA', file=sys.stderr)
    sys.exit(2)

V_DIMENSIONS = 512
TOKEN_BYTES = {'v32': 656, 'model1': 584}


def natural(case):
    if case.parameters['lse'] != 'natural':
        raise NotImplementedError('flash_mla returns natural logarithms; use lse=natural')


def decode(case, **arguments):
    """One call a launch, each with a new plan; the last one's is returned."""
    natural(case)
    tensors = case.tensors
    plans = []

    def call():
        plans.append(flash_mla.get_mla_metadata()[0])
        return flash_mla.flash_mla_with_kvcache(
            tensors['q'], arguments['k_cache'], tensors.get('block_table'),
            tensors.get('cache_seqlens'), V_DIMENSIONS, plans[-1],
            softmax_scale=softmax_scale(case),
            **{name: value for name, value in arguments.items() if name != 'k_cache'})

    out, lse = case.launch(call)
    return {'out': out, 'lse': lse,
            'tile_scheduler_metadata': plans[-1].tile_scheduler_metadata,
            'num_splits': plans[-1].num_splits}


def softmax_scale(case):
    """0 in a case stands for upstream's default."""
    scale = case.parameters['softmax_scale']
    return scale if scale else case.tensors['q'].shape[-1] ** -0.5


def dense_decode(case):
    return decode(case, k_cache=case.tensors['k_cache'],
                  causal=bool(case.parameters['causal']))


def pages_of(case, name, page_size):
    """A cache of bytes as upstream has it: pages, tokens, one head, bytes of a token."""
    kind = case.parameters['kv']
    if kind not in TOKEN_BYTES:
        raise NotImplementedError(f'flash_mla has no sm_90 kernel for kv={kind}')
    cache, token = case.tensors[name], TOKEN_BYTES[kind]
    return cache.as_strided((cache.shape[0], page_size, 1, token),
                            (cache.stride(0), token, token, 1))


def sparse_decode(case):
    tensors, keys = case.tensors, case.parameters
    arguments = {name: tensors.get(name)
                 for name in ('indices', 'attn_sink', 'topk_length',
                              'extra_indices_in_kvcache', 'extra_topk_length')}
    if 'extra_k_cache' in tensors:
        arguments['extra_k_cache'] = pages_of(case, 'extra_k_cache',
                                              keys['extra_page_size'])
    return decode(case, k_cache=pages_of(case, 'k_cache', keys['page_size']),
                  is_fp8_kvcache=True, **arguments)


def sparse_prefill(case):
    natural(case)
    tensors = case.tensors
    out, max_logits, lse = case.launch(
        lambda: flash_mla.flash_mla_sparse_fwd(
            tensors['q'], tensors['kv'], tensors['indices'], softmax_scale(case),
            V_DIMENSIONS, tensors.get('attn_sink'), tensors.get('topk_length')))
    return {'out': out, 'max_logits': max_logits, 'lse': lse}


if __name__ == '__main__':
    assay_torch.serve({'mla_dense_decode': dense_decode,
                       'mla_sparse_decode': sparse_decode,
                       'mla_sparse_prefill': sparse_prefill})
