/* SPDX-License-Identifier: MIT */
#include "verify/run/tally.h"

void assay_summary_add_brief(struct assay_summary *summary,
                             const struct assay_brief *brief)
{
    summary->cases++;
    if (brief->status == ASSAY_UNSUPPORTED) summary->unsupported++;
    if (brief->status != ASSAY_RAN) {
        summary->broken +=
            brief->status != ASSAY_UNSUPPORTED && brief->status != ASSAY_REFUSED;
        return;
    }
    const bool is_wrong = brief->verdict >= ASSAY_OUTSIDE;
    summary->verdicts[brief->verdict]++;
    if (brief->verdict == ASSAY_CONTRADICTION)
        summary->contradictions++;
    else if (!brief->is_decisive && !is_wrong)
        summary->indecisive++;
    if (brief->has_passed)
        summary->passed++;
    else if (brief->is_decisive || is_wrong)
        summary->failed++;
    summary->elements_compared += brief->compared;
    summary->elements_equal += brief->equal;
    if (brief->max_error_over_bound > summary->max_error_over_bound)
        summary->max_error_over_bound = brief->max_error_over_bound;
}

void assay_summary_add(struct assay_summary *summary, const struct assay_result *result)
{
    const struct assay_brief brief = assay_brief_of(result);
    assay_summary_add_brief(summary, &brief);
}
