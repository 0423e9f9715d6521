/* SPDX-License-Identifier: MIT */
#include "verify/check/trial.h"

#include "verify/check/inputs.h"
#include "verify/check/trial_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct assay_check assay_check_bitwise, assay_check_bound, assay_check_exact,
    assay_check_repeat, assay_check_poison, assay_check_batch, assay_check_properties,
    assay_check_plan;
const struct assay_check *const assay_checks[] = {
    &assay_check_bitwise,    &assay_check_bound,  &assay_check_exact,
    &assay_check_repeat,     &assay_check_poison, &assay_check_batch,
    &assay_check_properties, &assay_check_plan,   NULL,
};

static uint32_t bit_of(const struct assay_check *check)
{
    int row = 0;
    while (assay_checks[row] && assay_checks[row] != check)
        row++;
    return assay_checks[row] ? UINT32_C(1) << row : 0;
}

static bool is_asked(const struct assay_trial *trial, const struct assay_check *check)
{
    const struct assay_trial_plan *const plan = trial->plan;
    return check->applies(trial) && (!check->runs_candidate || plan->runs_trusted_again ||
                                     !plan->candidate->is_trusted);
}

static enum assay_status judge(struct assay_trial *trial, struct assay_result *result)
{
    for (const struct assay_check *const *check = trial->plan->checks; *check; check++) {
        if (!is_asked(trial, *check)) continue;
        const enum assay_status status = (*check)->judge(trial, result);
        result->checks |= bit_of(*check);
        if (status == ASSAY_RAN) continue;
        if (status == ASSAY_UNSUPPORTED) /* after the first run, which it did do */
            return assay_fail(&result->message, ASSAY_FAILED,
                              "the candidate does not do the case a second time (check "
                              "%s): %s",
                              (*check)->name, result->message.text);
        return *result->message.text
                   ? status
                   : assay_fail(&result->message, status, "no memory for check %s",
                                (*check)->name);
    }
    return ASSAY_RAN;
}

struct source { /* of the inputs; neither: they are generated */
    struct assay_recording *recording;
    int index;
    const struct assay_tensors *given;
};

static enum assay_status take_given(struct assay_trial_memory *memory,
                                    const struct assay_tensors *given,
                                    struct assay_message *message)
{
    struct assay_tensors *const tensors = &memory->candidate;
    for (int i = 0; i < tensors->count; i++)
        if (!tensors->item[i].is_output)
            memcpy(tensors->item[i].data, given->item[i].data,
                   (size_t)assay_tensor_bytes(&tensors->item[i]));
    return assay_inputs_check(memory->trial.the_case, &memory->problem, tensors, message);
}

static enum assay_status open_inputs(struct assay_trial_memory *memory,
                                     const struct source *source,
                                     struct assay_message *message)
{
    const enum assay_status status = assay_inputs_open(
        memory->trial.the_case, source->recording, source->index, &memory->problem,
        &memory->candidate, &memory->candidate_buffers, message);
    return status == ASSAY_RAN && source->given
               ? take_given(memory, source->given, message)
               : status;
}

static enum assay_status run_case(struct assay_trial_memory *memory,
                                  const struct source *source,
                                  struct assay_result *result)
{
    struct assay_trial *const trial = &memory->trial;
    enum assay_status status = open_inputs(memory, source, &result->message);
    if (status != ASSAY_RAN) return status;
    result->input_hash = assay_inputs_hash(&memory->candidate);
    status = assay_trial_run_candidate(memory, result);
    if (status == ASSAY_RAN) status = assay_trial_choose_numerics(memory, result);
    if (status == ASSAY_RAN) status = assay_trial_run_reference(memory, result);
    if (status == ASSAY_RAN) status = assay_trial_describe(memory, result);
    if (status == ASSAY_RAN) status = judge(trial, result);
    if (status != ASSAY_RAN) return status;
    status = assay_criteria_judge(trial, result);
    if (status != ASSAY_RAN)
        return assay_fail(&result->message, status, "no memory for the criteria");
    status = assay_trial_explain(memory, result);
    if (status == ASSAY_RAN) assay_trial_conclude(memory, result);
    return status;
}

static void begin(struct assay_trial_memory *memory, const struct assay_trial_plan *plan,
                  const struct assay_case *the_case, const struct source *source)
{
    memory->trial = (struct assay_trial){
        .plan = plan,
        .claim = &memory->claim,
        .the_case = the_case,
        .operation = the_case->operation,
        .problem = &memory->problem,
        .numerics = &memory->numerics,
        .candidate = &memory->candidate,
        .poison = ASSAY_BUFFER_POISON,
        .has_foreign_inputs =
            source->recording || source->given || the_case->explicit_bits_count > 0,
    };
}

static void release(struct assay_trial_memory *memory)
{
    for (int i = 0; i < ASSAY_MAX_TENSORS; i++)
        free(memory->map[i]);
    assay_buffers_close(&memory->reference_buffers);
    assay_buffers_close(&memory->candidate_buffers);
    free(memory);
}

static void run_from(const struct assay_trial_plan *plan,
                     const struct assay_case *the_case, const struct source *source,
                     struct assay_result *result)
{
    *result = (struct assay_result){
        .operation = the_case->operation,
        .model_max_error_over_bound = -1,
    };
    assay_case_format(the_case, result->case_line, sizeof(result->case_line));
    if (source->recording)
        snprintf(result->source, sizeof(result->source), "%s", source->recording->path);
    struct assay_trial_memory *const memory = calloc(1, sizeof(*memory));
    /* Cleared one by one when they are described: most are never used, and large. */
    result->output = malloc(ASSAY_MAX_TENSORS * sizeof(*result->output));
    if (memory) begin(memory, plan, the_case, source);
    result->status =
        memory && result->output
            ? run_case(memory, source, result)
            : assay_fail(&result->message, ASSAY_OUT_OF_MEMORY, "no memory for a case");
    if (memory) release(memory);
}

void assay_trial_run(const struct assay_trial_plan *plan,
                     const struct assay_case *the_case, struct assay_recording *recording,
                     int index, struct assay_result *result)
{
    const struct source source = { .recording = recording, .index = index };
    run_from(plan, the_case, &source, result);
}

void assay_trial_run_on(const struct assay_trial_plan *plan,
                        const struct assay_case *the_case,
                        const struct assay_tensors *inputs, struct assay_result *result)
{
    const struct source source = { .given = inputs };
    run_from(plan, the_case, &source, result);
}

bool assay_element_is_judged(const struct assay_trial *trial, int output, int64_t element)
{
    switch (assay_definedness_at(trial->map[output], element)) {
    case ASSAY_DEFINED: return true;
    case ASSAY_UNTOUCHED: return !trial->plan->candidate->is_recording;
    default: return false;
    }
}
