/* SPDX-License-Identifier: MIT */
/* One run of a backend, whatever comes of it. */
#ifndef ASSAY_VERIFY_CHECK_CANDIDATE_H
#define ASSAY_VERIFY_CHECK_CANDIDATE_H

#include "verify/check/trial.h"

/* Runs the backend and looks at the guards of @buffers, which hold the outputs at least.
 * ASSAY_CRASHED also when it wrote outside its tensors. */
enum assay_status assay_run_guarded(const struct assay_backend *backend, void *state,
                                    const struct assay_run_call *call,
                                    const struct assay_buffers *buffers,
                                    struct assay_message *message);

/* What the candidate has to say about its last run; nothing where it never has. */
void assay_candidate_notes(const struct assay_trial_plan *plan,
                           struct assay_backend_notes *notes);

/* Puts notes into the result, in the place of those that are there. */
void assay_result_take_notes(struct assay_result *result,
                             const struct assay_backend_notes *notes);

/* Whether inputs that the candidate changed may be given to a kernel: ASSAY_FAILED with a
 * sentence if not. */
enum assay_status assay_check_returned_plan(const struct assay_case *the_case,
                                            const void *problem,
                                            const struct assay_tensors *tensors,
                                            struct assay_message *message);

#endif
