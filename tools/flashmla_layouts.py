# SPDX-License-Identifier: MIT
"""Recorded FlashMLA calls as cases: each attention case, and for the decodes the case of
operation mla_plan that made its schedule, which share those tensors."""
import struct
from math import prod

import safetensors_file
from npz_file import Case, Recording, bf16, f32, integers, stored
from safetensors_file import FileError

COMMIT = '9241ae3'
D_V = 512
SMS = 132  # of an H200
PLAN_FIELDS = 8
RECORDED_SCALE = 1 / 24  # where the file does not say
KERNELS = {'dense': {'kernel': 'FlashMLA dense decode', 'commit': COMMIT},
           'sparse': {'kernel': 'FlashMLA sparse decode', 'commit': COMMIT},
           'prefill': {'kernel': 'FlashMLA sparse prefill', 'commit': COMMIT}}
# d_qk and bytes a token of the caches, by the last dimension of their arrays.
SPARSE_CACHES = {656: ('v32', 576), 584: ('model1', 512)}


# --- words of case lines ----------------------------------------------------------------

def line(operation, keys, defaults):
    """The canonical line: @keys in the operation's order, those with their default value
    left out."""
    words = [operation]
    for key, value in keys.items():
        if isinstance(value, (list, tuple)):
            value = ','.join(map(str, value))
        if value not in ('', None, defaults.get(key, '')):
            words.append(f'{key}={value}')
    return ' '.join([*words, 'data=recorded', 'seed=0'])


def narrowed(value):
    return struct.unpack('<f', struct.pack('<f', value))[0]


def softmax_scale(p, d_qk):
    """The shortest decimal that gives the f32 that ran; nothing for d_qk^-0.5."""
    scale = RECORDED_SCALE
    if 'scale' in p:
        if p['scale'].descr != '<f8' or p['scale'].shape != ():
            raise FileError('scale is no single f8')
        scale = struct.unpack('<d', p['scale'].data)[0]
    if narrowed(scale) == narrowed(d_qk ** -0.5):
        return ''
    for decimals in range(1, 13):
        text = f'{scale:.{decimals}f}'
        if narrowed(float(text)) == narrowed(scale):
            return text.rstrip('0').rstrip('.')
    raise FileError(f'the scale {scale} takes more than 12 decimals')


def number(array):
    return struct.unpack({'<i4': '<i', '<i8': '<q'}[array.descr], array.data)[0]


# --- tensors ----------------------------------------------------------------------------

def plan_tensors(p, parts, b):
    return {'tile_scheduler_metadata': integers(p['meta'], parts, PLAN_FIELDS)[0],
            'num_splits': integers(p['num_splits'], b + 1)[0]}


def pages_of(array, page_size, token_bytes):
    """A cache as one row of bytes a page."""
    pages = array.shape[0]
    if prod(array.shape) != pages * page_size * token_bytes:
        raise FileError(f'a cache of shape {array.shape} is not packed')
    return safetensors_file.tensor('U8', (pages, page_size * token_bytes), array.data)


def outputs(p, b, s_q, h_q):
    return {'out': bf16(p['out'], b, s_q, h_q, D_V), 'lse': f32(p['lse'], b, h_q, s_q)}


# --- dense decode -----------------------------------------------------------------------

def dense_cases(p):
    (b, s_q, h_q, d_qk), pages = p['q'].shape, p['kv'].shape[0]
    h_k = p['kv'].shape[2] if len(p['kv'].shape) == 4 else 1
    table = p['bt' if 'bt' in p else 'block_table']
    causal = number(p['causal']) if 'causal' in p else int(s_q > 1)
    cache_seqlens, lengths = integers(p['seqlens'], b)
    parts = max(1, SMS // h_k // -(-s_q * h_q // h_k // 64))
    shared = {'cache_seqlens': cache_seqlens, **plan_tensors(p, parts, b)}
    k_cache = stored(p['kv'], p['kv'].shape, ['<u2'], 'BF16')
    attention = {'b': b, 'h_q': h_q, 'h_k': h_k, 's_q': s_q, 's_k': lengths,
                 'causal': causal, 'pages': pages, 'table_columns': table.shape[1],
                 'softmax_scale': softmax_scale(p, d_qk)}
    plan = {'b': b, 's_q': s_q, 'h_q': h_q, 'h_k': h_k, 's_k': lengths}
    defaults = {'h_q': 128, 'h_k': 1, 's_q': 1, 'causal': 0}
    return [Case(line('mla_dense_decode', attention, defaults), {
                'q': bf16(p['q'], b, s_q, h_q, d_qk),
                'k_cache': k_cache._replace(shape=(pages, 64, h_k, d_qk)),
                'block_table': integers(table, b, table.shape[1])[0],
                **shared, **outputs(p, b, s_q, h_q)}),
            Case(line('mla_plan', plan, defaults), shared)]


# --- sparse decode ----------------------------------------------------------------------

def extra_cache(p, rows, token_bytes):
    """Keys and tensors of the extra cache."""
    if 'ekv' not in p:
        return {}, {}, {}
    (pages, page_size), topk = p['ekv'].shape[:2], p['eidx'].shape[-1]
    length, lengths = integers(p['etl'], rows[0])
    keys = {'extra_topk': topk, 'extra_page_size': page_size, 'extra_pages': pages,
            'extra_topk_length': lengths}
    return keys, {'extra_k_cache': pages_of(p['ekv'], page_size, token_bytes),
                  'extra_indices_in_kvcache': integers(p['eidx'], *rows, topk)[0]}, {
                      'extra_topk_length': length}


def sparse_cases(p, has_sink):
    (b, s_q, h_q, d_qk), (pages, page_size) = p['q'].shape, p['kv'].shape[:2]
    indices = p['idx' if 'idx' in p else 'indices']
    topk, token_bytes = indices.shape[-1], p['kv'].shape[-1]
    if token_bytes not in SPARSE_CACHES or SPARSE_CACHES[token_bytes][1] != d_qk:
        raise FileError(f'a cache of {token_bytes} bytes a token under d_qk {d_qk}')
    if 'kv_stride0' in p and number(p['kv_stride0']) < page_size * token_bytes:
        raise FileError('pages that overlapped when the kernel ran')
    extra, extra_tensors, lengths = extra_cache(p, (b, s_q), token_bytes)
    topk_length = ''
    if 'topk_length' in p:
        lengths['topk_length'], topk_length = integers(p['topk_length'], b)
    shared = {**lengths, **plan_tensors(p, max(1, SMS // s_q // (h_q // 64)), b)}
    attention = {'kv': SPARSE_CACHES[token_bytes][0], 'b': b, 'h_q': h_q, 's_q': s_q,
                 'topk': topk, 'page_size': page_size, 'pages': pages,
                 'topk_length': topk_length, **extra, 'sink': int(has_sink),
                 'softmax_scale': softmax_scale(p, d_qk)}
    plan = {'attention': 'sparse', 'b': b, 's_q': s_q, 'h_q': h_q, 'topk': topk,
            'topk_length': topk_length, 'extra_topk': extra.get('extra_topk', 0),
            'extra_topk_length': extra.get('extra_topk_length', '')}
    defaults = {'h_q': 128, 's_q': 1, 'page_size': 64, 'sink': 0, 'extra_topk': 0}
    tensors = {'q': bf16(p['q'], b, s_q, h_q, d_qk),
               'k_cache': pages_of(p['kv'], page_size, token_bytes),
               'indices': integers(indices, b, s_q, topk)[0],
               **extra_tensors, **shared, **outputs(p, b, s_q, h_q)}
    if has_sink:
        tensors['attn_sink'] = f32(p['sink' if 'sink' in p else 'attn_sink'], h_q)
    return [Case(line('mla_sparse_decode', attention, defaults), tensors),
            Case(line('mla_plan', plan, defaults), shared)]


# --- prefill ----------------------------------------------------------------------------

def prefill_case(p, has_sink, has_length):
    (s_q, h_q, d_qk), s_kv = p['q'].shape, p['kv'].shape[0]
    indices = p['idx' if 'idx' in p else 'indices']
    topk, topk_length = indices.shape[-1], ''
    tensors = {'q': bf16(p['q'], s_q, h_q, d_qk),
               'kv': bf16(p['kv'], s_kv, d_qk)._replace(shape=(s_kv, 1, d_qk)),
               'indices': integers(indices, s_q, 1, topk)[0],
               'out': bf16(p['out'], s_q, h_q, D_V),
               'max_logits': f32(p['max_logits'], s_q, h_q),
               'lse': f32(p['lse'], s_q, h_q)}
    if has_length:
        tensors['topk_length'], topk_length = integers(p['topk_length'], s_q)
    if has_sink:
        tensors['attn_sink'] = f32(p['sink' if 'sink' in p else 'attn_sink'], h_q)
    keys = {'s_q': s_q, 'h_q': h_q, 's_kv': s_kv, 'd_qk': d_qk, 'topk': topk,
            'topk_length': topk_length, 'sink': int(has_sink),
            'softmax_scale': softmax_scale(p, d_qk)}
    return Case(line('mla_sparse_prefill', keys,
                     {'h_q': 128, 'd_qk': 576, 'sink': 0}), tensors)


# --- files ------------------------------------------------------------------------------
# A recording is one .npz where its groups share the cache, otherwise a group of it.

def import_dense(stem, groups):
    yield Recording(stem, KERNELS['dense'],
                    [case for p in groups.values() for case in dense_cases(p)])


def import_dense_many(stem, groups):
    for prefix, p in groups.items():
        yield Recording(f'{stem}_{prefix}', KERNELS['dense'], dense_cases(p))


def import_sparse(stem, groups):
    yield Recording(stem, KERNELS['sparse'],
                    [case for prefix, p in groups.items()
                     for case in sparse_cases(p, prefix.endswith('sink'))])


def import_sparse_many(stem, groups):
    for prefix, p in groups.items():
        yield Recording(f'{stem}_{prefix}', KERNELS['sparse'], sparse_cases(p, True))


def import_prefill(stem, groups):
    yield Recording(stem, KERNELS['prefill'],
                    [prefill_case(p, 'sink' in prefix, 'len' in prefix)
                     for prefix, p in groups.items()])


def import_prefill_many(stem, groups):
    for prefix, p in groups.items():
        yield Recording(f'{stem}_{prefix}', KERNELS['prefill'],
                        [prefill_case(p, True, True)])
