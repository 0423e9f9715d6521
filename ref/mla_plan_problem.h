/* SPDX-License-Identifier: MIT */
/* Which split of which request goes to which part of the machine: the tile scheduler's
 * question. Request i has blocks(i) = floor(max(n - 1, 0) / 64) + 1 blocks of keys, n its
 * length as the kernel counts it:
 *
 *   dense   cache_seqlens[i]
 *   sparse  topk_length[i], or topk without lengths; 0 counts as 1; with an extra cache
 *           64 * ceil(n / 64) + extra_topk_length[i] (or extra_topk)
 *
 * payload = ceil(sum of (blocks + overhead) / num_sm_parts) + overhead. Parts take blocks
 * in order, each as many as its payload pays for, overhead paid a request: with r the
 * rest of a part's payload and left the blocks still open of the request in hand,
 * r >= left + overhead closes the request (r -= left + overhead); otherwise the part
 * takes r - overhead blocks, if that is positive, as one split, and is full.
 *
 * Tensors: cache_seqlens [b], or topk_length [b] and extra_topk_length [b] where present
 * (i32); tile_scheduler_metadata [num_sm_parts, 8], num_splits [b + 1] (i32).
 *
 * Source: FlashMLA 9241ae3; its records hold the fields below. */
#ifndef ASSAY_REF_MLA_PLAN_PROBLEM_H
#define ASSAY_REF_MLA_PLAN_PROBLEM_H

#include "ref/tensor.h"

/* Of a part's record. */
enum assay_mla_plan_field {
    ASSAY_PLAN_BEGIN_REQ, /* b: the part is idle, and the rest but end_req undefined */
    ASSAY_PLAN_END_REQ,   /* inclusive */
    ASSAY_PLAN_BEGIN_BLOCK,
    ASSAY_PLAN_END_BLOCK,   /* exclusive, of end_req; 0 if its length is 0 */
    ASSAY_PLAN_BEGIN_SPLIT, /* which split of begin_req this part makes */
    ASSAY_PLAN_FIRST_SPLIT, /* begin_req is one of several splits */
    ASSAY_PLAN_LAST_SPLIT,  /* so is end_req; both are set if begin_req is end_req */
    ASSAY_PLAN_PAD,         /* undefined */
    ASSAY_PLAN_FIELDS
};

struct assay_mla_plan_problem {
    int64_t b, num_sm_parts;
    int64_t overhead; /* blocks a request costs beside its own: upstream's is 5 */
    bool is_sparse;
    int64_t topk, extra_topk; /* sparse; extra_topk 0: no extra cache */
    bool has_topk_length, has_extra_topk_length;
};

/* Parts a machine of @sms multiprocessors has, as upstream counts them; at least 1. */
static inline int64_t assay_mla_dense_parts(int64_t sms, int64_t s_q, int64_t h_q,
                                            int64_t h_k)
{
    const int64_t tiles = (s_q * h_q / h_k + 63) / 64, parts = sms / h_k / tiles;
    return parts > 1 ? parts : 1;
}

static inline int64_t assay_mla_sparse_parts(int64_t sms, int64_t s_q, int64_t h_q)
{
    const int64_t parts = sms / s_q / (h_q / 64);
    return parts > 1 ? parts : 1;
}

#endif
