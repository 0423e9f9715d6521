/* SPDX-License-Identifier: MIT */
/* --save: findings of a campaign as cases of a suite. */
#ifndef ASSAY_VERIFY_COMMAND_FUZZ_SAVE_H
#define ASSAY_VERIFY_COMMAND_FUZZ_SAVE_H

#include "fuzz/campaign/finding.h"
#include "verify/check/trial.h"

struct assay_fuzz_save {
    const char *path;
    const struct assay_trial_plan *plan; /* with its candidate, to shrink cases */
};

/* Saves findings whose signatures the suite does not have, in a smaller case if one fails
 * in the same way; not those of illegal cases, which a suite can't hold. */
enum assay_status assay_fuzz_save_all(const struct assay_fuzz_save *saving,
                                      const struct assay_campaign_findings *findings,
                                      struct assay_message *message);

#endif
