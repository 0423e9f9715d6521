/* SPDX-License-Identifier: MIT */
/* One case from its line to its verdict: inputs, candidate, references, checks. */
#ifndef ASSAY_VERIFY_CHECK_TRIAL_H
#define ASSAY_VERIFY_CHECK_TRIAL_H

#include "verify/backend/backend.h"
#include "verify/check/result.h"
#include "verify/data/buffers.h"
#include "verify/data/recording.h"
#include "verify/operation/definedness.h"

enum { ASSAY_DEFAULT_REPEATS = 10 };

struct assay_trial_plan { /* the same for all cases of a run */
    const struct assay_backend *candidate;
    void *candidate_state;
    bool uses_model, uses_oracle; /* the references */
    const char *model_numerics;   /* of the reference; NULL: the case's or claim's */
    /* Another backend whose bits are the reference instead of the model's; NULL: none */
    const struct assay_backend *reference;
    void *reference_state;
    const char *reference_text;              /* as it was asked for */
    const struct assay_check *const *checks; /* NULL-terminated */
    bool runs_trusted_again; /* also checks with runs_candidate; others are left out where
                                the candidate is trusted */
    int repeats;             /* of check repeat; 0: ASSAY_DEFAULT_REPEATS */
    struct assay_criteria criteria; /* shown beside the verdict */
    enum assay_verdict require; /* ASSAY_NOT_JUDGED: by the candidate's claim, and equal
                                   with a backend as reference */
};

/* What the checks look at. */
struct assay_trial {
    const struct assay_trial_plan *plan;
    const struct assay_backend_claim *claim;
    const struct assay_case *the_case;
    const struct assay_operation *operation;
    const void *problem, *numerics; /* numerics of the reference and of the bound */
    const struct assay_tensors *candidate;
    const struct assay_tensors *reference; /* NULL: nothing to compare bits with */
    bool candidate_is_model;               /* the candidate is the reference itself */
    bool reference_is_model;               /* held to the oracle's bound as well */
    bool is_repeatable;      /* claimed, or seen by check repeat: the same bits again */
    uint8_t poison;          /* what the candidate's outputs held before it ran */
    bool has_foreign_inputs; /* recorded ones, or explicit elements among them: not known
                                to be what the case's kind of data promises */
    const uint8_t *map[ASSAY_MAX_TENSORS]; /* of outputs: see definedness.h */
};

struct assay_check { /* tables are closed by NULL */
    const char *name, *proves;
    bool runs_candidate; /* again: not asked of trusted candidates unless named */
    bool (*applies)(const struct assay_trial *);
    /* Another status than ASSAY_RAN ends the case; result->message then says why, or
     * there was no memory. */
    enum assay_status (*judge)(struct assay_trial *, struct assay_result *);
};
extern const struct assay_check *const assay_checks[];

/* Runs the case and fills @result (to be closed). @recording holds the inputs if not
 * NULL; the case is then its case number @index. A failure of the case is a status in the
 * result, not of the run. */
void assay_trial_run(const struct assay_trial_plan *plan,
                     const struct assay_case *the_case, struct assay_recording *recording,
                     int index, struct assay_result *result);

/* The same on a copy of @inputs, which have the shapes and strides of the case's tensors:
 * for inputs that are too many for the key bits=. */
void assay_trial_run_on(const struct assay_trial_plan *plan,
                        const struct assay_case *the_case,
                        const struct assay_tensors *inputs, struct assay_result *result);

/* The numerics of reference and bound, as text: those asked for, else the case's, else
 * the claim's. */
const char *assay_trial_numerics_text(const struct assay_trial_plan *plan,
                                      const struct assay_case *the_case,
                                      const struct assay_backend_claim *claim);

/* Whether an element's bits are to be judged: it is defined, or it had to keep what it
 * held and the candidate began with our poison. */
bool assay_element_is_judged(const struct assay_trial *trial, int output,
                             int64_t element);

#endif
