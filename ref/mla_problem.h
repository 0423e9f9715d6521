/* SPDX-License-Identifier: MIT */
/* What the attention operations are asked to compute, without a word on how: the input
 * that model and oracle have in common. A query row attends to keys; with
 * s[j] = softmax_scale * dot(q, k[j]) over the keys it may see, and v[j] the first 512
 * elements of k[j],
 *
 *   out = sum of exp(s[j]) * v[j] / (sum of exp(s[j]) + exp(attn_sink))
 *   lse = ln(sum of exp(s[j])), without the sink;    max_logits = max of s[j]
 *
 * A row without a key gives out 0, lse +infinity, max_logits -infinity; attn_sink is per
 * head, +infinity gives out 0, -infinity and no sink are the same. With is_base_two lse
 * and max_logits are in units of log 2, that is divided by ln 2.
 *
 * Source: FlashMLA 9241ae3 (sm_90); tensors have its names. */
#ifndef ASSAY_REF_MLA_PROBLEM_H
#define ASSAY_REF_MLA_PROBLEM_H

#include "ref/tensor.h"

enum {
    ASSAY_MLA_ROWS = 64,  /* query rows a tile */
    ASSAY_MLA_BLOCK = 64, /* keys a block, and of a dense page */
    ASSAY_MLA_D_V = 512,  /* leading elements of a key that are its value */
    ASSAY_MLA_MAX_D_QK = 576,
    ASSAY_MLA_MAX_REQUESTS = 512,
    ASSAY_MLA_MAX_PARTS = 160, /* upstream's combine takes no more splits */
};

/* Decode of @b requests with all keys below their length, in pages of 64.
 *
 * Tensors: q [b, s_q, h_q, 576], k_cache [pages, 64, h_k, 576] (both of @format),
 * block_table [b, table_columns], cache_seqlens [b], tile_scheduler_metadata
 * [num_sm_parts, 8], num_splits [b + 1] (i32); out [b, s_q, h_q, 512] (of @format),
 * lse [b, h_q, s_q] (f32).
 *
 * Head i reads KV head i / (h_q / h_k). With is_causal query token t of a request of
 * length n sees keys below n - (s_q - 1 - t). */
struct assay_mla_dense_decode_problem {
    int64_t b, s_q, h_q, h_k; /* h_k divides h_q */
    int64_t pages, table_columns;
    int64_t num_sm_parts;
    enum assay_format format; /* bf16, f16 */
    bool is_causal, is_base_two;
    float softmax_scale;
    bool is_unsafe;
};

/* A part is one request and KV head: all its s_q * h_q / h_k rows. */
static inline int64_t
assay_mla_dense_decode_parts(const struct assay_mla_dense_decode_problem *problem)
{
    return problem->b * problem->h_k;
}

/* How a token of an FP8 or FP4 cache is laid out; ref/layout/mla_cache.h says it in
 * bytes. */
enum assay_mla_kv {
    ASSAY_MLA_V32,     /* 656 bytes: 512 e4m3, 4 f32 scales, 64 bf16; d_qk 576 */
    ASSAY_MLA_MODEL1,  /* 584: 448 e4m3, 64 bf16; a page's 7 + 1 ue8m0 behind; d_qk 512 */
    ASSAY_MLA_V41_FP8, /* 528: 512 e4m3, 16 ue8m0; d_qk 512 */
    ASSAY_MLA_V41_FP4, /* 288: 512 e2m1, two a byte, 32 e4m3; d_qk 512; extra only */
};

/* A cache whose tokens are named by indices: slot = page * page_size + place in page. */
struct assay_mla_cache {
    enum assay_mla_kv kv;
    int64_t pages, page_size; /* tokens a page */
    int64_t page_stride;      /* bytes from page to page, at least the page's own */
    int64_t topk;             /* indices a query token; 0: there is no such cache */
    bool has_topk_length;
};

/* Decode in which each query token names its keys.
 *
 * Tensors: q [b, s_q, h_q, d_qk] (bf16), k_cache [pages, page bytes] (u8, row stride
 * page_stride), indices [b, s_q, topk] (i32), if present topk_length [b] (i32),
 * attn_sink [h_q] (f32), extra_k_cache, extra_indices_in_kvcache and extra_topk_length
 * like the first three; tile_scheduler_metadata, num_splits, and with has_ignored_tables
 * block_table [b, 1] and cache_seqlens [b], which nobody may look at; out
 * [b, s_q, h_q, 512] (bf16), lse [b, h_q, s_q] (f32).
 *
 * An index is attended unless it is -1 or its position is at or beyond the length, as
 * often as it is repeated. v32 knows no lengths and no extra cache. */
struct assay_mla_sparse_decode_problem {
    int64_t b, s_q, h_q; /* h_q is 64 or 128 */
    struct assay_mla_cache cache, extra;
    int64_t num_sm_parts;
    bool has_sink, has_ignored_tables, is_base_two;
    float softmax_scale;
    bool is_unsafe;
};

static inline int64_t assay_mla_d_qk(enum assay_mla_kv kv)
{
    return kv == ASSAY_MLA_V32 ? 576 : 512;
}

/* Tiles that @heads query heads of one token take; the last may have fewer than 64. */
static inline int64_t assay_mla_head_tiles(int64_t heads)
{
    return (heads + ASSAY_MLA_ROWS - 1) / ASSAY_MLA_ROWS;
}
static inline int64_t assay_mla_tile_heads(int64_t heads, int64_t first_head)
{
    return heads - first_head < ASSAY_MLA_ROWS ? heads - first_head : ASSAY_MLA_ROWS;
}

/* A part is 64 heads of one query token: part = (request * s_q + token) * (h_q / 64) +
 * heads / 64. */
static inline int64_t
assay_mla_sparse_decode_parts(const struct assay_mla_sparse_decode_problem *problem)
{
    return problem->b * problem->s_q * assay_mla_head_tiles(problem->h_q);
}

/* Prefill in which each query token names its keys.
 *
 * Tensors: q [s_q, h_q, d_qk], kv [s_kv, 1, d_qk] (bf16), indices [s_q, 1, topk] (i32),
 * if present topk_length [s_q] (i32) and attn_sink [h_q] (f32); out [s_q, h_q, 512]
 * (bf16), max_logits [s_q, h_q], lse [s_q, h_q] (f32).
 *
 * An index is attended if 0 <= index < s_kv and its position is below the length. */
struct assay_mla_sparse_prefill_problem {
    int64_t s_q, h_q, s_kv, d_qk, topk; /* h_q is 64 or 128, d_qk 512 or 576 */
    int64_t kv_stride;                  /* elements from token to token */
    bool has_topk_length, has_sink, is_base_two;
    float softmax_scale;
    bool is_unsafe;
};

/* A part is 64 heads of one query token: part = token * (h_q / 64) + heads / 64. */
static inline int64_t
assay_mla_sparse_prefill_parts(const struct assay_mla_sparse_prefill_problem *problem)
{
    return problem->s_q * assay_mla_head_tiles(problem->h_q);
}

/* The splits of a request put together.
 *
 * Tensors: oaccum [splits, s_q, h_q, 512] (normalised partial outputs), lseaccum
 * [splits, s_q, h_q] (base 2, -infinity where a split has no key) (f32), num_splits
 * [b + 1] (i32: request i owns splits [num_splits[i], num_splits[i + 1])), if present
 * attn_sink [h_q] (f32); out [b, s_q, h_q, 512] (of @format), lse [b, h_q, s_q] (f32).
 *
 *   out = sum of 2^lseaccum[i] * oaccum[i] / (sum of 2^lseaccum[i] + exp(attn_sink))
 *   lse = ln(sum of 2^lseaccum[i])
 *
 * Requests of one split are left as they are: who made it wrote its outputs. */
struct assay_mla_combine_problem {
    int64_t b, s_q, h_q, splits;
    enum assay_format format; /* bf16, f16 */
    bool has_sink;
};

/* A part is one request and query token. */
static inline int64_t
assay_mla_combine_parts(const struct assay_mla_combine_problem *problem)
{
    return problem->b * problem->s_q;
}

#endif
