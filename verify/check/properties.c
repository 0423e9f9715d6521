/* SPDX-License-Identifier: MIT */
/* Check "properties": relations that follow from the mathematics. */
#include "verify/check/relation.h"

extern const struct assay_check assay_check_properties;

static bool applies(const struct assay_trial *trial)
{
    return assay_relations_apply(trial, ASSAY_PROPERTY_MATHEMATICS);
}

static enum assay_status judge(struct assay_trial *trial, struct assay_result *result)
{
    return assay_relations_judge(trial, ASSAY_PROPERTY_MATHEMATICS,
                                 assay_check_properties.name, true, result);
}

const struct assay_check assay_check_properties = {
    .name = "properties",
    .proves = "what follows from the mathematics for other inputs comes out for them",
    .runs_candidate = true,
    .applies = applies,
    .judge = judge,
};
