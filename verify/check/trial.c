/* SPDX-License-Identifier: MIT */
#include "verify/check/trial.h"

#include "verify/check/inputs.h"
#include "verify/operation/numerics.h"
#include "verify/operation/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern const struct assay_check assay_check_bitwise, assay_check_bound, assay_check_exact;
const struct assay_check *const assay_checks[] = { &assay_check_bitwise,
                                                   &assay_check_bound, &assay_check_exact,
                                                   NULL };

typedef union {
    max_align_t alignment;
    char bytes[ASSAY_MAX_NUMERICS_BYTES];
} numerics_storage;

/* Everything one case owns while it runs; released in one place. */
struct bench {
    union {
        max_align_t alignment;
        char bytes[ASSAY_MAX_PROBLEM_BYTES];
    } problem;
    numerics_storage numerics;
    struct assay_tensors candidate, model;
    struct assay_buffers candidate_buffers, model_buffers;
    struct assay_backend_claim claim;
    struct assay_trial trial;
    uint8_t *map[ASSAY_MAX_TENSORS];
};

static double now_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void take_notes(const struct assay_trial_plan *plan, struct assay_result *result)
{
    struct assay_backend_notes notes;
    if (!plan->candidate->notes) return;
    plan->candidate->notes(plan->candidate_state, &notes);
    memcpy(result->warning, notes.warning, sizeof(result->warning));
    memcpy(result->printed, notes.output, sizeof(result->printed));
    result->printed_bytes = notes.output_bytes;
}

static enum assay_status run_candidate(const struct assay_trial_plan *plan,
                                       struct bench *bench,
                                       const struct assay_case *the_case,
                                       struct assay_result *result)
{
    const struct assay_run_call call = { the_case, &bench->problem, &bench->candidate };
    enum assay_status status = plan->candidate->claim(plan->candidate_state, &call,
                                                      &bench->claim, &result->message);
    if (status == ASSAY_RAN) {
        assay_buffers_poison(&bench->candidate);
        const double start = now_seconds();
        status = plan->candidate->run(plan->candidate_state, &call, &result->message);
        result->seconds = now_seconds() - start;
    }
    take_notes(plan, result);
    if (status == ASSAY_RAN &&
        !assay_buffers_are_intact(&bench->candidate_buffers, &bench->candidate))
        return assay_fail(&result->message, ASSAY_CRASHED,
                          "backend %s wrote outside its tensors",
                          plan->candidate->scheme);
    return status;
}

/* The reference's numerics: those asked for, else the case's, else the claim's. */
static enum assay_status choose_numerics(const struct assay_trial_plan *plan,
                                         struct bench *bench,
                                         const struct assay_case *the_case,
                                         struct assay_result *result)
{
    const struct assay_operation *const operation = the_case->operation;
    const char *text = the_case->numerics;
    if (plan->model_numerics)
        text = plan->model_numerics;
    else if (!*text && bench->claim.has_numerics && !plan->candidate->is_model)
        text = bench->claim.numerics;
    enum assay_status status = assay_numerics_parse(operation, &bench->problem, text,
                                                    &bench->numerics, &result->message);
    if (status != ASSAY_RAN) return status;
    if (*text)
        snprintf(result->numerics, sizeof(result->numerics), "%s", text);
    else
        assay_numerics_format(operation, &bench->numerics, result->numerics,
                              sizeof(result->numerics));
    result->is_unverified_profile = !operation->is_measured(&bench->numerics);
    if (operation->remark)
        result->remark = operation->remark(&bench->problem, &bench->numerics);
    return ASSAY_RAN;
}

/* A model compared with itself proves nothing: its outputs then stand for both. */
static bool candidate_is_the_model(const struct assay_trial_plan *plan,
                                   const struct bench *bench,
                                   const struct assay_operation *operation)
{
    if (!plan->candidate->is_model) return false;
    struct assay_message ignored;
    numerics_storage claimed;
    char claimed_text[ASSAY_MAX_NUMERICS_TEXT], reference_text[ASSAY_MAX_NUMERICS_TEXT];
    if (assay_numerics_parse(operation, &bench->problem, bench->claim.numerics, &claimed,
                             &ignored) != ASSAY_RAN)
        return false;
    assay_numerics_format(operation, &claimed, claimed_text, sizeof(claimed_text));
    assay_numerics_format(operation, &bench->numerics, reference_text,
                          sizeof(reference_text));
    return strcmp(claimed_text, reference_text) == 0;
}

/* Runs the model with @numerics into buffers of its own. */
static enum assay_status open_model(const struct assay_operation *operation,
                                    const struct bench *bench, const void *numerics,
                                    struct assay_tensors *model,
                                    struct assay_buffers *buffers,
                                    struct assay_message *message)
{
    *model = bench->candidate;
    for (int i = 0; i < model->count; i++)
        if (model->item[i].is_output) model->item[i].data = NULL;
    enum assay_status status = assay_buffers_open(buffers, model, message);
    if (status != ASSAY_RAN) return status;
    assay_buffers_poison(model);
    status = assay_run_model(operation, &bench->problem, numerics, model);
    return status == ASSAY_RAN
               ? status
               : assay_fail(message, status, "no memory for a part of the model");
}

static enum assay_status judge(struct bench *bench, struct assay_result *result)
{
    for (const struct assay_check *const *check = bench->trial.plan->checks; *check;
         check++) {
        if (!(*check)->applies(&bench->trial)) continue;
        const enum assay_status status = (*check)->judge(&bench->trial, result);
        if (status != ASSAY_RAN)
            return assay_fail(&result->message, status, "no memory for check %s",
                              (*check)->name);
    }
    return ASSAY_RAN;
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

/* Which other named numerics the candidate equals, if it is not the reference. */
static enum assay_status explain(struct bench *bench, struct assay_result *result)
{
    const struct assay_operation *const operation = bench->trial.operation;
    for (const struct assay_named_numerics *row = operation->numerics; row->name; row++) {
        struct assay_message ignored;
        struct assay_tensors model;
        struct assay_buffers buffers = { 0 };
        if (operation->check_numerics(&bench->problem, row->numerics, &ignored) !=
            ASSAY_RAN)
            continue;
        const enum assay_status status = open_model(operation, bench, row->numerics,
                                                    &model, &buffers, &result->message);
        const bool is_equal =
            status == ASSAY_RAN && outputs_are_equal(&bench->trial, &model);
        assay_buffers_close(&buffers);
        if (status != ASSAY_RAN) return status;
        if (!is_equal) continue;
        strcpy(result->explanation, row->name);
        break;
    }
    return ASSAY_RAN;
}

static bool has_difference(const struct assay_result *result)
{
    for (int i = 0; i < result->output_count; i++)
        if (result->output[i].differ > 0) return true;
    return false;
}

static bool has_inexact(const struct assay_result *result)
{
    for (int i = 0; i < result->output_count; i++)
        if (result->output[i].inexact > 0) return true;
    return false;
}

static bool all_outputs(const struct assay_result *result, bool has_bits)
{
    for (int i = 0; i < result->output_count; i++) {
        const struct assay_output_result *const output = &result->output[i];
        if (!(has_bits ? output->has_bits : output->has_bound)) return false;
    }
    return result->output_count > 0;
}

static bool has_exact_throughout(const struct assay_result *result)
{
    for (int i = 0; i < result->output_count; i++)
        if (!result->output[i].has_exact) return false;
    return result->output_count > 0;
}

static bool is_inside_bound(const struct assay_result *result)
{
    for (int i = 0; i < result->output_count; i++)
        if (result->output[i].outside > 0) return false;
    return all_outputs(result, false);
}

static enum assay_verdict verdict_of(const struct assay_trial *trial,
                                     const struct assay_result *result)
{
    const bool has_bounds = all_outputs(result, false);
    const bool is_inside = is_inside_bound(result);
    const bool is_wrong_model =
        result->model_max_error_over_bound > 1 || result->model_inexact > 0;
    const bool is_wrong = (has_bounds && !is_inside) || has_inexact(result);
    if (is_wrong_model || (trial->candidate_is_model && is_wrong))
        return ASSAY_CONTRADICTION;
    if (has_inexact(result)) return ASSAY_OUTSIDE;
    if (all_outputs(result, true) && !has_difference(result)) return ASSAY_EQUAL;
    if (*result->explanation) return ASSAY_EXPLAINED;
    if (has_bounds) return is_inside ? ASSAY_BOUNDED : ASSAY_OUTSIDE;
    if (all_outputs(result, true)) return ASSAY_OUTSIDE;
    return has_exact_throughout(result) ? ASSAY_BOUNDED : ASSAY_NOT_JUDGED;
}

static void describe_outputs(const struct bench *bench, struct assay_result *result)
{
    for (int i = 0; i < bench->candidate.count; i++) {
        const struct assay_tensor *const tensor = &bench->candidate.item[i];
        if (!tensor->is_output) continue;
        struct assay_output_result *const output =
            &result->output[result->output_count++];
        output->name = tensor->name;
        output->tensor = *tensor;
        output->elements = output->defined = assay_tensor_elements(tensor);
        for (int64_t at = 0; bench->map[i] && at < output->elements; at++)
            output->defined -= bench->map[i][at] != ASSAY_DEFINED;
        output->bound_worst_index = -1;
        output->candidate_hash = assay_tensor_hash(tensor);
    }
}

static bool is_constant(const struct assay_tensor *tensor, const uint8_t *map)
{
    const int64_t elements = assay_tensor_elements(tensor);
    int64_t first = 0;
    while (first < elements && assay_definedness_at(map, first) != ASSAY_DEFINED)
        first++;
    for (int64_t at = first + 1; at < elements; at++)
        if (assay_definedness_at(map, at) == ASSAY_DEFINED &&
            assay_tensor_bits(tensor, at) != assay_tensor_bits(tensor, first))
            return false;
    return true;
}

/* Evidence: a constant could not have got the expected outputs right, or the candidate
 * got them wrong. */
static void weigh_evidence(const struct bench *bench, struct assay_result *result)
{
    const struct assay_tensors *const expected =
        bench->trial.model ? bench->trial.model : &bench->candidate;
    const bool is_by_design =
        bench->trial.operation->is_constant_by_design(&bench->problem);
    int place = 0;
    for (int i = 0; i < expected->count; i++) {
        const struct assay_tensor *const tensor = &expected->item[i];
        if (!tensor->is_output) continue;
        struct assay_output_result *const output = &result->output[place++];
        output->is_constant = output->defined > 1 && is_constant(tensor, bench->map[i]);
        result->is_decisive |=
            output->defined > 0 &&
            (!output->is_constant || output->differ > 0 || output->outside > 0 ||
             output->inexact > 0 || is_by_design);
    }
}

static enum assay_status map_outputs(const struct assay_operation *operation,
                                     struct bench *bench)
{
    enum assay_status status = ASSAY_RAN;
    for (int i = 0; i < bench->candidate.count && status == ASSAY_RAN; i++) {
        if (!bench->candidate.item[i].is_output) continue;
        status = assay_definedness_map(operation, &bench->problem, &bench->candidate, i,
                                       &bench->map[i]);
        bench->trial.map[i] = bench->map[i];
    }
    return status;
}

static enum assay_verdict required(const struct assay_trial *trial,
                                   const struct assay_backend_claim *claim)
{
    if (trial->plan->require != ASSAY_NOT_JUDGED) return trial->plan->require;
    return claim->has_numerics && trial->model && !trial->candidate_is_model
               ? ASSAY_EQUAL
               : ASSAY_BOUNDED;
}

/* Explained never passes unasked: whoever asks for the bound alone is held to it. */
static bool satisfies(const struct assay_result *result, enum assay_verdict required)
{
    if (result->verdict == ASSAY_EXPLAINED && required == ASSAY_BOUNDED)
        return is_inside_bound(result);
    return result->verdict != ASSAY_NOT_JUDGED && result->verdict <= required;
}

static enum assay_status run_case(const struct assay_trial_plan *plan,
                                  struct bench *bench, const struct assay_case *the_case,
                                  struct assay_recording *recording, int index,
                                  struct assay_result *result)
{
    const struct assay_operation *const operation = the_case->operation;
    enum assay_status status =
        assay_inputs_open(the_case, recording, index, &bench->problem, &bench->candidate,
                          &bench->candidate_buffers, &result->message);
    if (status != ASSAY_RAN) return status;
    result->input_hash = assay_inputs_hash(&bench->candidate);
    status = run_candidate(plan, bench, the_case, result);
    if (status == ASSAY_RAN) status = choose_numerics(plan, bench, the_case, result);
    if (status != ASSAY_RAN) return status;

    bench->trial = (struct assay_trial){
        .plan = plan,
        .the_case = the_case,
        .operation = operation,
        .problem = &bench->problem,
        .numerics = &bench->numerics,
        .candidate = &bench->candidate,
        .candidate_is_model = candidate_is_the_model(plan, bench, operation),
        .has_foreign_inputs = recording || the_case->explicit_bits_count > 0,
    };
    if (plan->uses_model && !bench->trial.candidate_is_model) {
        status = open_model(operation, bench, &bench->numerics, &bench->model,
                            &bench->model_buffers, &result->message);
        if (status != ASSAY_RAN) return status;
        bench->trial.model = &bench->model;
    }
    status = map_outputs(operation, bench);
    if (status != ASSAY_RAN)
        return assay_fail(&result->message, status, "no memory for a map of the outputs");
    describe_outputs(bench, result);
    status = judge(bench, result);
    if (status != ASSAY_RAN) return status;
    status = assay_criteria_judge(&bench->trial, result);
    if (status != ASSAY_RAN)
        return assay_fail(&result->message, status, "no memory for the criteria");
    if (has_difference(result)) status = explain(bench, result);
    if (status != ASSAY_RAN) return status;
    weigh_evidence(bench, result);
    result->verdict = verdict_of(&bench->trial, result);
    result->has_passed =
        result->is_decisive && satisfies(result, required(&bench->trial, &bench->claim));
    return ASSAY_RAN;
}

void assay_trial_run(const struct assay_trial_plan *plan,
                     const struct assay_case *the_case, struct assay_recording *recording,
                     int index, struct assay_result *result)
{
    *result = (struct assay_result){
        .operation = the_case->operation,
        .model_max_error_over_bound = -1,
    };
    assay_case_format(the_case, result->case_line, sizeof(result->case_line));
    if (recording)
        snprintf(result->source, sizeof(result->source), "%s", recording->path);
    struct bench *const bench = calloc(1, sizeof(*bench));
    result->output = calloc(ASSAY_MAX_TENSORS, sizeof(*result->output));
    result->status =
        bench && result->output
            ? run_case(plan, bench, the_case, recording, index, result)
            : assay_fail(&result->message, ASSAY_OUT_OF_MEMORY, "no memory for a case");
    if (bench) {
        for (int i = 0; i < ASSAY_MAX_TENSORS; i++)
            free(bench->map[i]);
        assay_buffers_close(&bench->model_buffers);
        assay_buffers_close(&bench->candidate_buffers);
    }
    free(bench);
}

bool assay_element_is_judged(const struct assay_trial *trial, int output, int64_t element)
{
    switch (assay_definedness_at(trial->map[output], element)) {
    case ASSAY_DEFINED: return true;
    case ASSAY_UNTOUCHED: return !trial->plan->candidate->is_recording;
    default: return false;
    }
}
