/* SPDX-License-Identifier: MIT */
/* The tile scheduler as FlashMLA's sm_90 kernel computes it, and a reader of plans,
 * whoever made them. Exact: integers; equal to recorded schedules of an H200. */
#ifndef ASSAY_REF_KERNEL_MLA_PLAN_H
#define ASSAY_REF_KERNEL_MLA_PLAN_H

#include "ref/mla_plan_problem.h"

struct assay_mla_plan_numerics { /* knobs; upstream's are the defaults */
    int block_keys;              /* 64 */
    int overhead;                /* 5; blocks; negative: the problem's */
};

/* Fills tile_scheduler_metadata and num_splits from the lengths. Undefined fields (the
 * pad, begin_block of an idle part and what follows it) are written as 0. At most
 * ASSAY_MLA_MAX_REQUESTS requests (asserted). */
void assay_mla_plan_model(const struct assay_mla_plan_problem *problem,
                          const struct assay_mla_plan_numerics *numerics,
                          const struct assay_tensors *tensors);

/* Blocks of request @request; at least 1. */
int64_t assay_mla_plan_blocks(const struct assay_mla_plan_problem *problem,
                              const struct assay_tensors *tensors, int64_t request);

/* One split of a request, as a kernel reads it from the plan. */
struct assay_mla_split {
    int64_t begin_block, end_block; /* begin <= end; may be empty */
    int64_t split;                  /* place among the request's splits */
    bool is_whole;                  /* written to out and lse, not to the partial ones */
};

/* The splits of @request, ascending in part; @capacity entries of @splits at most
 * (ASSAY_MLA_MAX_PARTS is enough for as many parts); returns their number. @blocks are
 * those of the request. A part's first request begins at begin_block, its last ends at
 * end_block, others are whole; records outside [0, b) are idle. Any contents are safe:
 * blocks are cut to [0, blocks], splits to [0, num_splits of the request), or 0. */
int64_t assay_mla_plan_splits(const struct assay_tensor *tile_scheduler_metadata,
                              const struct assay_tensor *num_splits, int64_t request,
                              int64_t blocks, struct assay_mla_split *splits,
                              int64_t capacity);

/* What is wrong with a plan of at most ASSAY_MLA_MAX_PARTS parts (asserted): NULL if
 * every block of every request is in exactly one split (which may come in any order, and
 * be empty); splits are numbered 0, 1 ... in the order of parts; num_splits counts them;
 * and the only split of a request, and no other, is flagged as whole. Otherwise a clause
 * ("leaves blocks of the request to nobody"), with the request in @request. The clause is
 * constant text. A request of length 0 may have no block, but still has a split. */
const char *assay_mla_plan_fault(const struct assay_mla_plan_problem *problem,
                                 const struct assay_tensors *tensors, int64_t *request);

#endif
