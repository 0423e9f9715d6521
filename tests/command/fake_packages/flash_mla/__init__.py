# SPDX-License-Identifier: MIT
"""FlashMLA's interface, answering with what a recorded file holds: outputs and the plan
behind them, ASSAY_RECORDED its path. Checks what the adapter hands over."""
import os

import safetensors_file
import torch

DTYPES = {'BF16': torch.bfloat16, 'F32': torch.float32, 'I32': torch.int32}


class Plan:
    tile_scheduler_metadata = num_splits = None


def get_mla_metadata():
    return Plan(), None


def recorded(name):
    stored = safetensors_file.read(os.environ['ASSAY_RECORDED'])[1][name]
    tensor = torch.empty(stored.shape, DTYPES[stored.dtype])
    tensor.memory[:] = stored.data
    return tensor


def check(tensor, kind, *shape):
    if tensor.dtype is not kind or tensor.shape != shape:
        raise TypeError(f'{tensor.dtype} {tensor.shape} is not {kind} {shape}')


def flash_mla_with_kvcache(q, k_cache, block_table, cache_seqlens, head_dim_v, plan, *,
                           softmax_scale, causal):
    b, s_q, h_q, d = q.shape
    check(q, torch.bfloat16, b, s_q, h_q, 576)
    check(k_cache, torch.bfloat16, k_cache.shape[0], 64, 1, d)
    check(block_table, torch.int32, b, block_table.shape[1])
    check(cache_seqlens, torch.int32, b)
    if (head_dim_v, softmax_scale, causal) != (512, 576 ** -0.5, False):
        raise TypeError(f'{head_dim_v}, {softmax_scale}, {causal}')
    plan.tile_scheduler_metadata = recorded('tile_scheduler_metadata')
    plan.num_splits = recorded('num_splits')
    return recorded('out'), recorded('lse')
