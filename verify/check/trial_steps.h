/* SPDX-License-Identifier: MIT */
/* What a trial owns, and the steps that trial.c takes with it one after the other. Each
 * leaves its sentence in result->message when its status is not ASSAY_RAN. */
#ifndef ASSAY_VERIFY_CHECK_TRIAL_STEPS_H
#define ASSAY_VERIFY_CHECK_TRIAL_STEPS_H

#include "verify/check/trial.h"

/* Released in one place, when the case is through. */
struct assay_trial_memory {
    union assay_problem_storage problem;
    union assay_numerics_storage numerics;
    struct assay_tensors candidate, reference;
    struct assay_buffers candidate_buffers, reference_buffers;
    struct assay_backend_claim claim;
    struct assay_trial trial; /* points at the members above */
    uint8_t *map[ASSAY_MAX_TENSORS];
};

/* Asks for the claim and runs the candidate on the inputs, which it may change. */
enum assay_status assay_trial_run_candidate(struct assay_trial_memory *memory,
                                            struct assay_result *result);

/* The numerics of reference and bound, and whether the candidate is the model itself. */
enum assay_status assay_trial_choose_numerics(struct assay_trial_memory *memory,
                                              struct assay_result *result);

/* Computes what the plan wants to compare bits with, if anything. */
enum assay_status assay_trial_run_reference(struct assay_trial_memory *memory,
                                            struct assay_result *result);

/* Looks for other named numerics that the candidate equals, where it differs from the
 * model. */
enum assay_status assay_trial_explain(struct assay_trial_memory *memory,
                                      struct assay_result *result);

/* Makes the maps and the result's rows of outputs. */
enum assay_status assay_trial_describe(struct assay_trial_memory *memory,
                                       struct assay_result *result);

/* When all checks have judged: evidence, verdict, and whether that passes. */
void assay_trial_conclude(const struct assay_trial_memory *memory,
                          struct assay_result *result);

#endif
