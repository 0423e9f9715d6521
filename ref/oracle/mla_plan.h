/* SPDX-License-Identifier: MIT */
/* The tile scheduler as a purse: every part gets the payload in coins and buys blocks one
 * by one. It shares nothing with the model. Exact. */
#ifndef ASSAY_REF_ORACLE_MLA_PLAN_H
#define ASSAY_REF_ORACLE_MLA_PLAN_H

#include "ref/mla_plan_problem.h"

struct assay_mla_plan_rules {
    int64_t block_keys; /* keys a block: 64 */
    int64_t overhead;   /* blocks a request costs beside its own */
};

/* Fills @metadata with tile_scheduler_metadata and @num_splits, row-major; undefined
 * fields are NaN. At most ASSAY_MLA_MAX_REQUESTS requests and ASSAY_MLA_MAX_PARTS parts
 * (asserted); takes time in proportion to the number of blocks. */
void assay_mla_plan_oracle(const struct assay_mla_plan_problem *problem,
                           const struct assay_mla_plan_rules *rules,
                           const struct assay_tensors *tensors, double *metadata,
                           double *num_splits);

#endif
