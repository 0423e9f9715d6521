/* SPDX-License-Identifier: MIT */
/* One case from its line to its verdict: inputs, candidate, references, checks. */
#ifndef ASSAY_VERIFY_CHECK_TRIAL_H
#define ASSAY_VERIFY_CHECK_TRIAL_H

#include "verify/backend/backend.h"
#include "verify/check/result.h"
#include "verify/data/buffers.h"
#include "verify/data/recording.h"
#include "verify/operation/definedness.h"

struct assay_trial_plan { /* the same for all cases of a run */
    const struct assay_backend *candidate;
    void *candidate_state;
    bool uses_model, uses_oracle; /* the references */
    const char *model_numerics;   /* of the reference; NULL: the case's or claim's */
    const struct assay_check *const *checks; /* NULL-terminated */
    struct assay_criteria criteria;          /* shown beside the verdict */
    enum assay_verdict require; /* ASSAY_NOT_JUDGED: by the candidate's claim */
};

/* What the checks look at. */
struct assay_trial {
    const struct assay_trial_plan *plan;
    const struct assay_case *the_case;
    const struct assay_operation *operation;
    const void *problem, *numerics; /* numerics of the reference and of the bound */
    const struct assay_tensors *candidate;
    const struct assay_tensors *model; /* NULL: nothing to compare bits with */
    bool candidate_is_model;           /* the candidate is the reference itself */
    bool has_foreign_inputs; /* recorded ones, or explicit elements among them: not known
                                to be what the case's kind of data promises */
    const uint8_t *map[ASSAY_MAX_TENSORS]; /* of outputs: see definedness.h */
};

struct assay_check { /* tables are closed by NULL */
    const char *name, *proves;
    bool (*applies)(const struct assay_trial *);
    enum assay_status (*judge)(const struct assay_trial *, struct assay_result *);
};
extern const struct assay_check *const assay_checks[];

/* Runs the case and fills @result (to be closed). @recording holds the inputs if not
 * NULL; the case is then its case number @index. A failure of the case is a status in the
 * result, not of the run. */
void assay_trial_run(const struct assay_trial_plan *plan,
                     const struct assay_case *the_case, struct assay_recording *recording,
                     int index, struct assay_result *result);

/* Whether an element's bits are to be judged: it is defined, or it had to keep what it
 * held and the candidate began with our poison. */
bool assay_element_is_judged(const struct assay_trial *trial, int output,
                             int64_t element);

#endif
