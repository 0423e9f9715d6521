/* SPDX-License-Identifier: MIT */
#include "verify/command/fuzz_save.h"

#include "fuzz/campaign/save.h"
#include "fuzz/shrink/shrink.h"

#include <stdlib.h>
#include <string.h>

/* So many new findings are shrunk, for at most so long each; there may be thousands. */
enum { MAX_SHRUNK = 32 };
#define SHRINK_SECONDS 20.0

/* The line of the smallest case that fails like the finding's; the line itself where
 * that fails no more. */
static enum assay_status shrink(const struct assay_fuzz_save *saving, const char *line,
                                char smallest[ASSAY_MAX_CASE_LINE],
                                struct assay_message *message)
{
    const struct assay_shrink shrink = { .plan = saving->plan,
                                         .seconds = SHRINK_SECONDS };
    struct assay_shrink_outcome *const outcome = calloc(1, sizeof(*outcome));
    struct assay_case the_case;
    enum assay_status status = assay_case_parse(line, &the_case, message);
    if (!outcome) status = ASSAY_OUT_OF_MEMORY;
    if (status == ASSAY_RAN) status = assay_shrink(&shrink, &the_case, outcome, message);
    if (status == ASSAY_RAN && outcome->end != ASSAY_SHRINK_PASSES)
        assay_case_format(&outcome->smallest, smallest, ASSAY_MAX_CASE_LINE);
    else
        strcpy(smallest, line);
    if (outcome) assay_shrink_outcome_close(outcome);
    free(outcome);
    return status == ASSAY_REFUSED ? ASSAY_RAN : status;
}

enum assay_status assay_fuzz_save_all(const struct assay_fuzz_save *saving,
                                      const struct assay_campaign_findings *findings,
                                      struct assay_message *message)
{
    enum assay_status status = ASSAY_RAN;
    int shrunk = 0;
    for (int64_t i = 0; i < findings->count && status == ASSAY_RAN; i++) {
        const struct assay_campaign_finding *const finding = &findings->item[i];
        const char *const signature = finding->signature.text;
        char line[ASSAY_MAX_CASE_LINE];
        bool has;
        if (finding->is_negative) continue;
        status = assay_save_has(saving->path, signature, &has, message);
        if (status != ASSAY_RAN || has) continue;
        strcpy(line, finding->line);
        if (shrunk++ < MAX_SHRUNK) status = shrink(saving, finding->line, line, message);
        if (status == ASSAY_RAN)
            status = assay_save_case(saving->path, signature, line, message);
    }
    return status;
}
