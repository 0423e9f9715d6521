/* SPDX-License-Identifier: MIT */
/* Check "batch": what other rows or requests hold has no say in those that stay. */
#include "verify/check/relation.h"

extern const struct assay_check assay_check_batch;

static bool applies(const struct assay_trial *trial)
{
    return assay_relations_apply(trial, ASSAY_PROPERTY_BATCH);
}

static enum assay_status judge(struct assay_trial *trial, struct assay_result *result)
{
    const bool is_promised =
        trial->claim->is_batch_invariant || trial->claim->has_numerics;
    return assay_relations_judge(trial, ASSAY_PROPERTY_BATCH, assay_check_batch.name,
                                 is_promised, result);
}

const struct assay_check assay_check_batch = {
    .name = "batch",
    .proves = "a row or request is computed as well, and by a promise to the same bits, "
              "in other company",
    .runs_candidate = true,
    .applies = applies,
    .judge = judge,
};
