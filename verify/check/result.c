/* SPDX-License-Identifier: MIT */
/* The verdicts' names, and the end of a result. */
#include "verify/check/result.h"

#include <stdlib.h>
#include <string.h>

const struct assay_verdict_row assay_verdicts[ASSAY_VERDICT_COUNT] = {
    [ASSAY_NOT_JUDGED] = { "not-judged", "nothing was compared" },
    [ASSAY_EQUAL] = { "equal", "all bits of all defined elements are the reference's, "
                               "NaN and the sign of zero included" },
    [ASSAY_EXPLAINED] = { "explained", "all bits are those of another named numerics" },
    [ASSAY_BOUNDED] = { "bounded", "every element is within its proven bound, NaN and "
                                   "infinities in the same places" },
    [ASSAY_OUTSIDE] = { "outside",
                        "an element is beyond its proven bound, or not exact where "
                        "exact data leave one answer, or another run of the candidate "
                        "failed a check" },
    [ASSAY_CONTRADICTION] = { "contradiction",
                              "the model itself is beyond the oracle's "
                              "bound, or not exact, or failed a check: a "
                              "defect of assay" },
};

enum assay_opinion assay_result_opinion(const struct assay_result *result,
                                        const char *criterion)
{
    enum assay_opinion opinion = ASSAY_NO_OPINION;
    for (int i = 0; i < result->output_count; i++)
        for (int at = 0; at < result->output[i].criterion_count; at++) {
            const struct assay_criterion_result *const row =
                &result->output[i].criterion[at];
            if (strcmp(row->criterion->name, criterion) != 0) continue;
            if (!row->passes) return ASSAY_WOULD_FAIL;
            opinion = ASSAY_WOULD_PASS;
        }
    return opinion;
}

const char *assay_opinion_name(enum assay_opinion opinion)
{
    static const char *const names[] = { "has no rule", "would pass", "would fail" };
    return names[opinion];
}

void assay_result_close(struct assay_result *result)
{
    free(result->output);
    result->output = NULL;
    result->output_count = 0;
    free(result->texts);
    result->texts = NULL;
}
