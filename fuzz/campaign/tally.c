/* SPDX-License-Identifier: MIT */
#include "fuzz/campaign/tally.h"

#include "verify/run/tally.h"

#include <inttypes.h>

enum assay_status assay_campaign_tally_open(struct assay_campaign_tally *tally,
                                            const struct assay_campaign *campaign,
                                            struct assay_message *message)
{
    *tally = (struct assay_campaign_tally){ .campaign = campaign };
    for (int i = 0; i < campaign->operations; i++)
        if (assay_coverage_open(&tally->coverage[i], campaign->operation[i]) != ASSAY_RAN)
            return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a campaign");
    return ASSAY_RAN;
}

static enum assay_status refuse(int64_t number, struct assay_message *message)
{
    return assay_fail(message, ASSAY_REFUSED,
                      "the result of case %" PRId64 " is none of this campaign; repair "
                      "the journal, or begin anew",
                      number);
}

static enum assay_status count(struct assay_campaign_tally *tally, int64_t number,
                               const struct assay_brief *brief, bool is_negative,
                               struct assay_message *message)
{
    const bool did_run = brief->status != ASSAY_REFUSED &&
                         brief->status != ASSAY_UNSUPPORTED && !is_negative;
    struct assay_coverage *const coverage =
        &tally->coverage[assay_campaign_operation(tally->campaign, number)];
    assay_summary_add_brief(&tally->summary, brief);
    tally->negatives += is_negative;
    tally->accepted += is_negative && brief->status == ASSAY_RAN;
    tally->refused += brief->status == ASSAY_REFUSED && !is_negative;
    return did_run && !assay_coverage_add(coverage, brief->note) ? refuse(number, message)
                                                                 : ASSAY_RAN;
}

enum assay_status assay_campaign_take_brief(struct assay_campaign_tally *tally,
                                            int64_t number,
                                            const struct assay_brief *brief,
                                            struct assay_message *message)
{
    const bool is_negative = assay_campaign_negative(tally->campaign, number) != NULL;
    if ((brief->status == ASSAY_REFUSED) != is_negative) return refuse(number, message);
    return count(tally, number, brief, is_negative, message);
}

enum assay_status assay_campaign_take(struct assay_campaign_tally *tally, int64_t number,
                                      const struct assay_result *result, bool *is_new,
                                      struct assay_message *message)
{
    const struct assay_negative *const negative =
        assay_campaign_negative(tally->campaign, number);
    const struct assay_brief brief = assay_brief_of(result);
    const enum assay_status status =
        count(tally, number, &brief, negative != NULL, message);
    *is_new = false;
    if (status != ASSAY_RAN || assay_brief_is_enough(result)) return status;
    return assay_campaign_findings_add(&tally->findings, number, negative, result, is_new,
                                       message);
}

void assay_campaign_tally_close(struct assay_campaign_tally *tally)
{
    for (int i = 0; i < ASSAY_CAMPAIGN_MAX_OPERATIONS; i++)
        assay_coverage_close(&tally->coverage[i]);
    assay_campaign_findings_close(&tally->findings);
}
