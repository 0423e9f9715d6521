/* SPDX-License-Identifier: MIT */
#include "verify/check/rerun.h"

#include "verify/check/candidate.h"
#include "verify/check/difference.h"
#include "verify/operation/numerics.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

extern const struct assay_check assay_check_bound;

enum assay_status assay_rerun_open(struct assay_rerun *rerun,
                                   const struct assay_case *the_case,
                                   struct assay_message *message)
{
    *rerun = (struct assay_rerun){ .the_case = *the_case };
    const struct assay_operation *const operation = the_case->operation;
    const enum assay_status status =
        operation->bind(&rerun->the_case, &rerun->problem, message);
    if (status != ASSAY_RAN) return status;
    operation->shape(&rerun->problem, &rerun->tensors);
    return assay_buffers_open(&rerun->buffers, &rerun->tensors, message);
}

enum assay_status assay_rerun_open_same(struct assay_rerun *rerun,
                                        const struct assay_trial *trial,
                                        struct assay_message *message)
{
    const enum assay_status status = assay_rerun_open(rerun, trial->the_case, message);
    if (status != ASSAY_RAN) return status;
    for (int i = 0; i < rerun->tensors.count; i++) {
        const struct assay_tensor *const tensor = &rerun->tensors.item[i];
        if (!tensor->is_output)
            memcpy(tensor->data, trial->candidate->item[i].data,
                   (size_t)assay_tensor_bytes(tensor));
    }
    return ASSAY_RAN;
}

enum assay_status assay_rerun_claim(struct assay_rerun *rerun,
                                    const struct assay_trial *trial,
                                    struct assay_result *result)
{
    const struct assay_trial_plan *const plan = trial->plan;
    const struct assay_run_call call = { .the_case = &rerun->the_case,
                                         .problem = &rerun->problem,
                                         .tensors = &rerun->tensors };
    const enum assay_status status = plan->candidate->claim(
        plan->candidate_state, &call, &rerun->claim, &result->message);
    if (status != ASSAY_RAN) {
        struct assay_backend_notes notes;
        assay_candidate_notes(plan, &notes);
        if (status != ASSAY_UNSUPPORTED) assay_result_take_notes(result, &notes);
        return status;
    }
    rerun->has_numerics = true;
    return assay_numerics_parse(
               trial->operation, &rerun->problem,
               assay_trial_numerics_text(plan, &rerun->the_case, &rerun->claim),
               &rerun->numerics, &result->message) == ASSAY_RAN
               ? ASSAY_RAN
               : ASSAY_UNSUPPORTED;
}

static enum assay_status make_map(struct assay_rerun *rerun,
                                  struct assay_message *message)
{
    for (int i = 0; i < rerun->tensors.count; i++) {
        if (!rerun->tensors.item[i].is_output) continue;
        free(rerun->map[i]);
        rerun->map[i] = NULL;
        const enum assay_status status =
            assay_definedness_map(rerun->the_case.operation, &rerun->problem,
                                  &rerun->tensors, i, &rerun->map[i]);
        if (status != ASSAY_RAN)
            return assay_fail(message, status, "no memory for a map of the outputs");
    }
    rerun->has_map = true;
    return ASSAY_RAN;
}

static void poison_outputs(const struct assay_tensors *tensors, uint8_t poison)
{
    for (int i = 0; i < tensors->count; i++)
        if (tensors->item[i].is_output)
            memset(tensors->item[i].data, poison,
                   (size_t)assay_tensor_bytes(&tensors->item[i]));
}

enum assay_status assay_rerun_run(const struct assay_trial *trial,
                                  struct assay_rerun *rerun, uint8_t poison, int launches,
                                  const char *doing, struct assay_result *result)
{
    const struct assay_trial_plan *const plan = trial->plan;
    const struct assay_run_call call = { .the_case = &rerun->the_case,
                                         .problem = &rerun->problem,
                                         .tensors = &rerun->tensors,
                                         .launches = launches };
    struct assay_backend_notes notes;
    poison_outputs(&rerun->tensors, poison);
    enum assay_status status = assay_run_guarded(
        plan->candidate, plan->candidate_state, &call, &rerun->buffers, &result->message);
    result->candidate_runs++;
    assay_candidate_notes(plan, &notes);
    if (status == ASSAY_RAN && notes.has_changed_inputs) {
        rerun->has_map = false;
        status = assay_check_returned_plan(&rerun->the_case, &rerun->problem,
                                           &rerun->tensors, &result->message);
    }
    if (status == ASSAY_RAN)
        return rerun->has_map ? ASSAY_RAN : make_map(rerun, &result->message);
    if (status == ASSAY_UNSUPPORTED) return status;
    assay_result_take_notes(result, &notes);
    return assay_fail(&result->message, status, "%s: %s", doing,
                      *result->message.text ? result->message.text
                                            : assay_status_name(status));
}

void assay_rerun_show(const struct assay_rerun *rerun,
                      const struct assay_tensors *tensors, int output, int64_t element,
                      uint32_t reference, struct assay_finding *finding)
{
    const struct assay_trial shown = { .operation = rerun->the_case.operation,
                                       .problem = &rerun->problem,
                                       .candidate = tensors };
    finding->output = tensors->item[output].name;
    finding->tensor = tensors->item[output];
    finding->tensor.data = NULL;
    finding->worst = assay_difference_at(&shown, output, element, reference);
}

/* The same trial about another run: what check bound looks at. */
static struct assay_trial trial_of(const struct assay_trial *trial,
                                   const struct assay_rerun *rerun, uint8_t poison)
{
    struct assay_trial other = {
        .plan = trial->plan,
        .claim = trial->claim,
        .the_case = &rerun->the_case,
        .operation = trial->operation,
        .problem = &rerun->problem,
        .numerics = rerun->has_numerics ? &rerun->numerics : trial->numerics,
        .candidate = &rerun->tensors,
        .poison = poison,
    };
    for (int i = 0; i < rerun->tensors.count; i++)
        other.map[i] = rerun->map[i];
    return other;
}

static void take_worst(const struct assay_rerun *rerun, const struct assay_result *judged,
                       struct assay_finding *worst)
{
    const struct assay_output_result *farthest = NULL;
    int place = 0, output = 0;
    for (int i = 0; i < rerun->tensors.count; i++) {
        if (!rerun->tensors.item[i].is_output) continue;
        const struct assay_output_result *const row = &judged->output[place++];
        worst->elements += row->outside;
        if (row->outside == 0) continue;
        if (farthest && row->max_error_over_bound <= farthest->max_error_over_bound)
            continue;
        farthest = row;
        output = i;
    }
    if (farthest)
        assay_rerun_show(rerun, &rerun->tensors, output, farthest->bound_worst_index,
                         assay_oracle_bits(rerun->tensors.item[output].format,
                                           farthest->bound_worst_value),
                         worst);
}

enum assay_status assay_rerun_judge(const struct assay_trial *trial,
                                    struct assay_rerun *rerun, uint8_t poison,
                                    struct assay_finding *worst)
{
    assert(trial->plan->uses_oracle && rerun->has_map);
    struct assay_trial other = trial_of(trial, rerun, poison);
    struct assay_result judged = { .operation = trial->operation,
                                   .model_max_error_over_bound = -1 };
    worst->elements = 0;
    judged.output = calloc(ASSAY_MAX_TENSORS, sizeof(*judged.output));
    if (!judged.output) return ASSAY_OUT_OF_MEMORY;
    for (int i = 0; i < rerun->tensors.count; i++)
        if (rerun->tensors.item[i].is_output)
            judged.output[judged.output_count++].bound_worst_index = -1;
    const enum assay_status status = assay_check_bound.judge(&other, &judged);
    if (status == ASSAY_RAN) take_worst(rerun, &judged, worst);
    assay_result_close(&judged);
    return status;
}

static bool holds_poison(uint32_t bits, enum assay_format format, uint8_t poison)
{
    uint32_t held = 0;
    memset(&held, poison, assay_format_bytes(format));
    return bits == held;
}

bool assay_run_left(const struct assay_run_outputs *run, int output, int64_t element)
{
    const struct assay_tensor *const tensor = &run->tensors->item[output];
    return holds_poison(assay_tensor_bits(tensor, element), tensor->format, run->poison);
}

static bool is_same(const struct assay_run_outputs *earlier,
                    const struct assay_run_outputs *later, int output, int64_t element)
{
    return assay_tensor_bits(&earlier->tensors->item[output], element) ==
               assay_tensor_bits(&later->tensors->item[output], element) ||
           (assay_run_left(earlier, output, element) &&
            assay_run_left(later, output, element));
}

/* Rows of equal bytes are passed over whole. */
static void compare_output(const struct assay_rerun *rerun,
                           const struct assay_run_outputs *earlier,
                           const struct assay_run_outputs *later, int output,
                           struct assay_finding *first)
{
    const struct assay_tensor *const before = &earlier->tensors->item[output];
    const struct assay_tensor *const after = &later->tensors->item[output];
    const int64_t elements = assay_tensor_elements(after);
    const int64_t columns = after->rank ? after->shape[after->rank - 1] : 1;
    const size_t bytes = assay_format_bytes(after->format);
    for (int64_t row = 0; row < elements; row += columns) {
        const size_t offset = (size_t)assay_tensor_offset(after, row) * bytes;
        if (memcmp((const char *)before->data + offset,
                   (const char *)after->data + offset, (size_t)columns * bytes) == 0)
            continue;
        for (int64_t at = row; at < row + columns; at++) {
            if (assay_definedness_at(rerun->map[output], at) == ASSAY_UNDEFINED ||
                is_same(earlier, later, output, at))
                continue;
            if (first->elements++ == 0)
                assay_rerun_show(rerun, later->tensors, output, at,
                                 assay_tensor_bits(before, at), first);
        }
    }
}

void assay_rerun_compare(const struct assay_rerun *rerun,
                         const struct assay_run_outputs *earlier,
                         const struct assay_run_outputs *later,
                         struct assay_finding *first)
{
    first->elements = 0;
    for (int i = 0; i < later->tensors->count; i++)
        if (later->tensors->item[i].is_output)
            compare_output(rerun, earlier, later, i, first);
}

struct assay_finding *assay_result_add_finding(struct assay_result *result,
                                               const char *check, bool is_failure)
{
    const bool has_room = result->finding_count < ASSAY_MAX_FINDINGS;
    if (has_room) result->finding_count++;
    struct assay_finding *const finding = &result->finding[result->finding_count - 1];
    *finding = (struct assay_finding){
        .check = check,
        .is_failure = is_failure || (!has_room && finding->is_failure),
    };
    return finding;
}

void assay_rerun_close(struct assay_rerun *rerun)
{
    for (int i = 0; i < ASSAY_MAX_TENSORS; i++)
        free(rerun->map[i]);
    assay_buffers_close(&rerun->buffers);
    *rerun = (struct assay_rerun){ .has_map = false };
}
