/* SPDX-License-Identifier: MIT */
/* From observed outputs to an answer: the search, further cases for a live candidate, and
 * what came nearest. */
#ifndef ASSAY_VERIFY_IDENTIFY_KNOB_IDENTIFY_H
#define ASSAY_VERIFY_IDENTIFY_KNOB_IDENTIFY_H

#include "verify/backend/backend.h"
#include "verify/identify/knob_answer.h"

struct assay_knob_question {
    const struct assay_observation *observation;
    const struct assay_case *the_case;   /* that was observed */
    const struct assay_backend *backend; /* the candidate; NULL: it can't be run again */
    void *state;
    struct assay_knob_search_plan plan;
};

/* An answer with all that it points at. */
struct assay_knob_identity {
    struct assay_knob_search search;
    struct assay_separation separation;
    int *fitting, *nearest;
    struct assay_knob_answer answer;
};

/* To be closed whatever the status; the observation must outlive the identity. Fails as
 * the candidate does on further cases. */
enum assay_status assay_knobs_identify(const struct assay_knob_question *question,
                                       struct assay_knob_identity *identity,
                                       struct assay_message *message);
void assay_knob_identity_close(struct assay_knob_identity *identity);

#endif
