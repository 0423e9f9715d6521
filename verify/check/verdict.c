/* SPDX-License-Identifier: MIT */
/* From what the checks found to the verdict, and whether the case was able to tell right
 * from wrong. */
#include "verify/check/trial_steps.h"

#include <string.h>

enum assay_status assay_trial_describe(struct assay_trial_memory *memory,
                                       struct assay_result *result)
{
    struct assay_trial *const trial = &memory->trial;
    for (int i = 0; i < memory->candidate.count; i++) {
        const struct assay_tensor *const tensor = &memory->candidate.item[i];
        if (!tensor->is_output) continue;
        const enum assay_status status = assay_definedness_map(
            trial->operation, trial->problem, &memory->candidate, i, &memory->map[i]);
        if (status != ASSAY_RAN)
            return assay_fail(&result->message, status,
                              "no memory for a map of the outputs");
        const uint8_t *const map = trial->map[i] = memory->map[i];
        struct assay_output_result *const output =
            &result->output[result->output_count++];
        memset(output, 0, sizeof(*output));
        output->name = tensor->name;
        output->tensor = *tensor;
        output->elements = output->defined = assay_tensor_elements(tensor);
        for (int64_t at = 0; map && at < output->elements; at++)
            output->defined -= map[at] != ASSAY_DEFINED;
        output->bound_worst_index = -1;
        output->candidate_hash = assay_tensor_hash(tensor);
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

static bool has_failed_finding(const struct assay_result *result)
{
    for (int i = 0; i < result->finding_count; i++)
        if (result->finding[i].is_failure) return true;
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

/* Bits that equal somebody else's are none the better for it outside the bound; those
 * that equal the model's are then a contradiction. */
static enum assay_verdict verdict_of(const struct assay_trial *trial,
                                     const struct assay_result *result)
{
    const bool has_bounds = all_outputs(result, false);
    const bool is_outside = has_bounds && !is_inside_bound(result);
    const bool has_failed = has_inexact(result) || has_failed_finding(result);
    const bool is_wrong_model =
        result->model_max_error_over_bound > 1 || result->model_inexact > 0;
    if (is_wrong_model || (trial->candidate_is_model && (is_outside || has_failed)))
        return ASSAY_CONTRADICTION;
    if (has_failed || (is_outside && trial->plan->reference)) return ASSAY_OUTSIDE;
    if (all_outputs(result, true) && !has_difference(result)) return ASSAY_EQUAL;
    if (*result->explanation) return ASSAY_EXPLAINED;
    if (has_bounds) return is_outside ? ASSAY_OUTSIDE : ASSAY_BOUNDED;
    if (all_outputs(result, true)) return ASSAY_OUTSIDE;
    return has_exact_throughout(result) ? ASSAY_BOUNDED : ASSAY_NOT_JUDGED;
}

static bool is_constant(const struct assay_tensor *tensor, const uint8_t *map)
{
    const int64_t elements = assay_tensor_elements(tensor);
    int64_t first = 0;
    while (first < elements && assay_definedness_at(map, first) != ASSAY_DEFINED)
        first++;
    if (first == elements) return true;
    const uint32_t bits = assay_tensor_bits(tensor, first);
    for (int64_t at = first + 1; at < elements; at++)
        if (assay_definedness_at(map, at) == ASSAY_DEFINED &&
            assay_tensor_bits(tensor, at) != bits)
            return false;
    return true;
}

/* Evidence: a constant could not have got the expected outputs right, or the candidate
 * got something wrong. */
static void weigh_evidence(const struct assay_trial *trial, struct assay_result *result)
{
    const struct assay_tensors *const expected =
        trial->reference ? trial->reference : trial->candidate;
    const bool is_by_design = trial->operation->is_constant_by_design(trial->problem);
    int place = 0;
    for (int i = 0; i < expected->count; i++) {
        const struct assay_tensor *const tensor = &expected->item[i];
        if (!tensor->is_output) continue;
        struct assay_output_result *const output = &result->output[place++];
        output->is_constant = output->defined > 1 && is_constant(tensor, trial->map[i]);
        result->is_decisive |=
            output->defined > 0 &&
            (!output->is_constant || output->differ > 0 || output->outside > 0 ||
             output->inexact > 0 || is_by_design);
    }
    result->is_decisive |= has_failed_finding(result);
}

/* Whoever names a backend to compare with asks for its bits. */
static enum assay_verdict required(const struct assay_trial *trial)
{
    if (trial->plan->require != ASSAY_NOT_JUDGED) return trial->plan->require;
    if (trial->plan->reference) return ASSAY_EQUAL;
    return trial->claim->has_numerics && trial->reference_is_model ? ASSAY_EQUAL
                                                                   : ASSAY_BOUNDED;
}

/* Explained never passes unasked: whoever asks for the bound alone is held to it. */
static bool satisfies(const struct assay_result *result, enum assay_verdict required)
{
    if (result->verdict == ASSAY_EXPLAINED && required == ASSAY_BOUNDED)
        return is_inside_bound(result);
    return result->verdict != ASSAY_NOT_JUDGED && result->verdict <= required;
}

void assay_trial_conclude(const struct assay_trial_memory *memory,
                          struct assay_result *result)
{
    weigh_evidence(&memory->trial, result);
    result->verdict = verdict_of(&memory->trial, result);
    result->has_passed =
        result->is_decisive && satisfies(result, required(&memory->trial));
}
