/* SPDX-License-Identifier: MIT */
/* Check "plan": the same work, split otherwise, gives results as good. */
#include "verify/check/relation.h"

extern const struct assay_check assay_check_plan;

static bool applies(const struct assay_trial *trial)
{
    return assay_relations_apply(trial, ASSAY_PROPERTY_PLAN);
}

static enum assay_status judge(struct assay_trial *trial, struct assay_result *result)
{
    return assay_relations_judge(trial, ASSAY_PROPERTY_PLAN, assay_check_plan.name, true,
                                 result);
}

const struct assay_check assay_check_plan = {
    .name = "plan",
    .proves = "another plan for the same work keeps the results within the bound",
    .runs_candidate = true,
    .applies = applies,
    .judge = judge,
};
