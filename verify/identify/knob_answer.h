/* SPDX-License-Identifier: MIT */
/* What a search came to, in words. */
#ifndef ASSAY_VERIFY_IDENTIFY_KNOB_ANSWER_H
#define ASSAY_VERIFY_IDENTIFY_KNOB_ANSWER_H

#include "verify/identify/knob_search.h"
#include "verify/identify/knob_separation.h"

#include <stdio.h>

struct assay_knob_answer {
    const struct assay_knob_search *search;
    int count;          /* of the settings that are left, 0: unexplained */
    const int *setting; /* their places in the space; fewest knobs turned first */
    int nearest_count;
    const int
        *nearest; /* settings that differ, the largest share of equal elements first */
    const struct assay_separation *separation; /* NULL: no further cases */
};

/* "flashmla-sparse-decode with p_rounding=kept": named numerics and the knobs turned away
 * from them; the named ones equal to them are added: "deepgemm-1d2d (also
 * cublaslt-block)". */
void assay_knob_setting_write(const struct assay_knob_space *space, int setting,
                              FILE *file);

/* The answer in a sentence, without full stop or newline: what it equals and what can't
 * be told apart from that, or "unexplained" and the nearest. A second says how many
 * further cases that took, a third whether time was up. */
void assay_knob_answer_write(const struct assay_knob_answer *answer, FILE *file);

#endif
