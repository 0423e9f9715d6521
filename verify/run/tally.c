/* SPDX-License-Identifier: MIT */
#include "verify/run/tally.h"

static void add_output(struct assay_summary *summary,
                       const struct assay_output_result *output)
{
    if (output->has_bits) {
        summary->elements_compared += output->defined;
        summary->elements_equal += output->defined - output->differ;
    }
    if (output->has_bound && output->max_error_over_bound > summary->max_error_over_bound)
        summary->max_error_over_bound = output->max_error_over_bound;
}

void assay_summary_add(struct assay_summary *summary, const struct assay_result *result)
{
    summary->cases++;
    if (result->status == ASSAY_UNSUPPORTED) summary->unsupported++;
    if (result->status != ASSAY_RAN) {
        summary->broken +=
            result->status != ASSAY_UNSUPPORTED && result->status != ASSAY_REFUSED;
        return;
    }
    const bool is_wrong = result->verdict >= ASSAY_OUTSIDE;
    summary->verdicts[result->verdict]++;
    if (result->verdict == ASSAY_CONTRADICTION)
        summary->contradictions++;
    else if (!result->is_decisive && !is_wrong)
        summary->indecisive++;
    if (result->has_passed)
        summary->passed++;
    else if (result->is_decisive || is_wrong)
        summary->failed++;
    for (int i = 0; i < result->output_count; i++)
        add_output(summary, &result->output[i]);
}
