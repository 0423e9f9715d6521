/* SPDX-License-Identifier: MIT */
#include "verify/check/candidate.h"

#include "verify/check/inputs.h"
#include "verify/check/trial_steps.h"
#include "verify/data/clock.h"

#include <string.h>

enum assay_status assay_run_guarded(const struct assay_backend *backend, void *state,
                                    const struct assay_run_call *call,
                                    const struct assay_buffers *buffers,
                                    struct assay_message *message)
{
    const enum assay_status status = backend->run(state, call, message);
    if (status == ASSAY_RAN && !assay_buffers_are_intact(buffers, call->tensors))
        return assay_fail(message, ASSAY_CRASHED, "backend %s wrote outside its tensors",
                          backend->scheme);
    return status;
}

void assay_candidate_notes(const struct assay_trial_plan *plan,
                           struct assay_backend_notes *notes)
{
    *notes = (struct assay_backend_notes){ .warning = "" };
    if (plan->candidate->notes) plan->candidate->notes(plan->candidate_state, notes);
}

void assay_result_take_notes(struct assay_result *result,
                             const struct assay_backend_notes *notes)
{
    memcpy(result->warning, notes->warning, sizeof(result->warning));
    memcpy(result->printed, notes->output, sizeof(result->printed));
    result->printed_bytes = notes->output_bytes;
}

enum assay_status assay_check_returned_plan(const struct assay_case *the_case,
                                            const void *problem,
                                            const struct assay_tensors *tensors,
                                            struct assay_message *message)
{
    if (assay_inputs_check(the_case, problem, tensors, message) == ASSAY_RAN)
        return ASSAY_RAN;
    return assay_fail(message, ASSAY_FAILED,
                      "the candidate returned a plan that no kernel may be given: %s",
                      message->text);
}

enum assay_status assay_trial_run_candidate(struct assay_trial_memory *memory,
                                            struct assay_result *result)
{
    struct assay_trial *const trial = &memory->trial;
    const struct assay_trial_plan *const plan = trial->plan;
    const struct assay_run_call call = { .the_case = trial->the_case,
                                         .problem = trial->problem,
                                         .tensors = &memory->candidate };
    struct assay_backend_notes notes;
    enum assay_status status = plan->candidate->claim(plan->candidate_state, &call,
                                                      &memory->claim, &result->message);
    if (status == ASSAY_RAN) {
        assay_buffers_poison(&memory->candidate);
        const double start = assay_clock_seconds();
        status = assay_run_guarded(plan->candidate, plan->candidate_state, &call,
                                   &memory->candidate_buffers, &result->message);
        result->seconds = assay_clock_seconds() - start;
        result->candidate_runs++;
    }
    assay_candidate_notes(plan, &notes);
    assay_result_take_notes(result, &notes);
    trial->is_repeatable = memory->claim.has_numerics || memory->claim.is_deterministic;
    if (status != ASSAY_RAN || !notes.has_changed_inputs) return status;
    trial->has_foreign_inputs = true;
    result->input_hash = assay_inputs_hash(&memory->candidate);
    return assay_check_returned_plan(trial->the_case, trial->problem, &memory->candidate,
                                     &result->message);
}
