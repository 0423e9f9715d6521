/* SPDX-License-Identifier: MIT */
/* What the finished cases of a campaign come to: a function of their set alone. */
#ifndef ASSAY_FUZZ_CAMPAIGN_TALLY_H
#define ASSAY_FUZZ_CAMPAIGN_TALLY_H

#include "fuzz/campaign/campaign.h"
#include "fuzz/campaign/coverage.h"
#include "fuzz/campaign/finding.h"
#include "verify/report/brief.h"

struct assay_campaign_tally {
    const struct assay_campaign *campaign;
    struct assay_summary summary; /* of all cases but its exit code */
    int64_t negatives, accepted;  /* cases that had to be refused; that were not */
    int64_t refused;              /* others that were refused */
    struct assay_coverage coverage[ASSAY_CAMPAIGN_MAX_OPERATIONS];
    struct assay_campaign_findings findings;
};

/* @campaign is borrowed. To be closed whatever the status. */
enum assay_status assay_campaign_tally_open(struct assay_campaign_tally *tally,
                                            const struct assay_campaign *campaign,
                                            struct assay_message *message);

/* Both are to be called in the order of the numbers. ASSAY_REFUSED for a result that is
 * none of that case. */
enum assay_status assay_campaign_take_brief(struct assay_campaign_tally *tally,
                                            int64_t number,
                                            const struct assay_brief *brief,
                                            struct assay_message *message);

/* Any result. *@is_new: it is a failure, the first of its signature. */
enum assay_status assay_campaign_take(struct assay_campaign_tally *tally, int64_t number,
                                      const struct assay_result *result, bool *is_new,
                                      struct assay_message *message);

void assay_campaign_tally_close(struct assay_campaign_tally *tally);

#endif
