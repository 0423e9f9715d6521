/* SPDX-License-Identifier: MIT */
/* What a candidate's bits are compared with: the model, or a backend that was named. */
#include "verify/check/candidate.h"
#include "verify/check/trial_steps.h"
#include "verify/operation/numerics.h"
#include "verify/operation/parts.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const char *assay_trial_numerics_text(const struct assay_trial_plan *plan,
                                      const struct assay_case *the_case,
                                      const struct assay_backend_claim *claim)
{
    if (plan->model_numerics) return plan->model_numerics;
    const bool is_claimed =
        !*the_case->numerics && claim->has_numerics && !plan->candidate->is_model;
    return is_claimed ? claim->numerics : the_case->numerics;
}

/* A model compared with itself proves nothing: its outputs then stand for both. */
static bool candidate_is_the_model(const struct assay_trial_memory *memory)
{
    const struct assay_trial *const trial = &memory->trial;
    if (!trial->plan->candidate->is_model) return false;
    struct assay_message ignored;
    union assay_numerics_storage claimed;
    char claimed_text[ASSAY_MAX_NUMERICS_TEXT], reference_text[ASSAY_MAX_NUMERICS_TEXT];
    if (assay_numerics_parse(trial->operation, trial->problem, memory->claim.numerics,
                             &claimed, &ignored) != ASSAY_RAN)
        return false;
    assay_numerics_format(trial->operation, &claimed, claimed_text, sizeof(claimed_text));
    assay_numerics_format(trial->operation, &memory->numerics, reference_text,
                          sizeof(reference_text));
    return strcmp(claimed_text, reference_text) == 0;
}

enum assay_status assay_trial_choose_numerics(struct assay_trial_memory *memory,
                                              struct assay_result *result)
{
    struct assay_trial *const trial = &memory->trial;
    const struct assay_operation *const operation = trial->operation;
    const char *const text =
        assay_trial_numerics_text(trial->plan, trial->the_case, &memory->claim);
    const enum assay_status status = assay_numerics_parse(
        operation, trial->problem, text, &memory->numerics, &result->message);
    if (status != ASSAY_RAN) return status;
    if (*text)
        snprintf(result->numerics, sizeof(result->numerics), "%s", text);
    else
        assay_numerics_format(operation, &memory->numerics, result->numerics,
                              sizeof(result->numerics));
    result->is_unverified_profile = !operation->is_measured(&memory->numerics);
    if (operation->remark)
        result->remark = operation->remark(trial->problem, &memory->numerics);
    trial->candidate_is_model = candidate_is_the_model(memory);
    return ASSAY_RAN;
}

/* The candidate's inputs, and outputs in buffers of their own. */
static enum assay_status open_outputs(const struct assay_trial_memory *memory,
                                      struct assay_tensors *tensors,
                                      struct assay_buffers *buffers,
                                      struct assay_message *message)
{
    *tensors = memory->candidate;
    for (int i = 0; i < tensors->count; i++)
        if (tensors->item[i].is_output) tensors->item[i].data = NULL;
    return assay_buffers_open(buffers, tensors, message);
}

static enum assay_status open_model(const struct assay_trial_memory *memory,
                                    const void *numerics, struct assay_tensors *model,
                                    struct assay_buffers *buffers,
                                    struct assay_message *message)
{
    enum assay_status status = open_outputs(memory, model, buffers, message);
    if (status != ASSAY_RAN) return status;
    status =
        assay_run_model(memory->trial.operation, memory->trial.problem, numerics, model);
    return status == ASSAY_RAN
               ? status
               : assay_fail(message, status, "no memory for a part of the model");
}

/* Other inputs than the candidate's leave nothing to compare. */
static enum assay_status check_inputs_of_reference(struct assay_trial_memory *memory,
                                                   struct assay_result *result)
{
    const struct assay_trial_plan *const plan = memory->trial.plan;
    struct assay_backend_notes notes = { .has_changed_inputs = false };
    if (!assay_buffers_are_intact(&memory->candidate_buffers, &memory->candidate))
        return assay_fail(&result->message, ASSAY_CRASHED,
                          "backend %s wrote outside its tensors",
                          plan->reference->scheme);
    if (plan->reference->notes) plan->reference->notes(plan->reference_state, &notes);
    if (notes.has_changed_inputs &&
        assay_inputs_hash(&memory->candidate) != result->input_hash)
        return assay_fail(&result->message, ASSAY_FAILED,
                          "it returned another plan than the candidate used, so that "
                          "bits cannot be compared");
    return ASSAY_RAN;
}

static enum assay_status run_backend(struct assay_trial_memory *memory,
                                     struct assay_result *result)
{
    const struct assay_trial *const trial = &memory->trial;
    const struct assay_trial_plan *const plan = trial->plan;
    struct assay_message *const message = &result->message;
    struct assay_backend_claim claim;
    const struct assay_run_call call = { .the_case = trial->the_case,
                                         .problem = trial->problem,
                                         .tensors = &memory->reference };
    enum assay_status status =
        open_outputs(memory, &memory->reference, &memory->reference_buffers, message);
    if (status != ASSAY_RAN) return status;
    status = plan->reference->claim(plan->reference_state, &call, &claim, message);
    if (status == ASSAY_RAN)
        status = assay_run_guarded(plan->reference, plan->reference_state, &call,
                                   &memory->reference_buffers, message);
    if (status == ASSAY_RAN) status = check_inputs_of_reference(memory, result);
    if (status == ASSAY_RAN) return status;
    return assay_fail(message, status, "reference %s%s: %s", plan->reference_text,
                      status == ASSAY_UNSUPPORTED ? " does not do this case" : "",
                      *message->text ? message->text : assay_status_name(status));
}

enum assay_status assay_trial_run_reference(struct assay_trial_memory *memory,
                                            struct assay_result *result)
{
    struct assay_trial *const trial = &memory->trial;
    enum assay_status status = ASSAY_RAN;
    if (trial->plan->reference) {
        assert(trial->plan->reference_text);
        snprintf(result->reference, sizeof(result->reference), "%s",
                 trial->plan->reference_text);
        status = run_backend(memory, result);
    } else if (trial->plan->uses_model && !trial->candidate_is_model) {
        trial->reference_is_model = true;
        status = open_model(memory, &memory->numerics, &memory->reference,
                            &memory->reference_buffers, &result->message);
    } else {
        return ASSAY_RAN;
    }
    trial->reference = &memory->reference;
    return status;
}

static bool outputs_are_equal(const struct assay_trial *trial,
                              const struct assay_tensors *reference)
{
    for (int i = 0; i < reference->count; i++) {
        const struct assay_tensor *const tensor = &trial->candidate->item[i];
        if (!tensor->is_output) continue;
        const int64_t elements = assay_tensor_elements(tensor);
        for (int64_t at = 0; at < elements; at++)
            if (assay_tensor_bits(tensor, at) !=
                    assay_tensor_bits(&reference->item[i], at) &&
                assay_element_is_judged(trial, i, at))
                return false;
    }
    return true;
}

static bool differs_from_model(const struct assay_trial *trial,
                               const struct assay_result *result)
{
    if (!trial->reference_is_model) return false;
    for (int i = 0; i < result->output_count; i++)
        if (result->output[i].differ > 0) return true;
    return false;
}

enum assay_status assay_trial_explain(struct assay_trial_memory *memory,
                                      struct assay_result *result)
{
    const struct assay_trial *const trial = &memory->trial;
    const struct assay_operation *const operation = trial->operation;
    if (!differs_from_model(trial, result)) return ASSAY_RAN;
    for (const struct assay_named_numerics *row = operation->numerics; row->name; row++) {
        struct assay_message ignored;
        struct assay_tensors model;
        struct assay_buffers buffers = { 0 };
        if (operation->check_numerics(trial->problem, row->numerics, &ignored) !=
            ASSAY_RAN)
            continue;
        const enum assay_status status =
            open_model(memory, row->numerics, &model, &buffers, &result->message);
        const bool is_equal = status == ASSAY_RAN && outputs_are_equal(trial, &model);
        assay_buffers_close(&buffers);
        if (status != ASSAY_RAN) return status;
        if (!is_equal) continue;
        strcpy(result->explanation, row->name);
        break;
    }
    return ASSAY_RAN;
}
