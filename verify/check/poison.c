/* SPDX-License-Identifier: MIT */
/* Check "poison": all defined elements are written, and neither what outputs held before
 * nor what unused memory of the inputs holds has a say in them. */
#include "verify/check/inputs.h"
#include "verify/check/rerun.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct assay_check assay_check_poison;

/* Large finite numbers and huge indices: what a kernel that passes
 * NaN by stumbles over. */
enum { UNUSED_BYTE = 0x7E };

static void look_for_unwritten(const struct assay_trial *trial,
                               const struct assay_rerun *rerun,
                               const struct assay_run_outputs *later,
                               struct assay_result *result)
{
    const struct assay_run_outputs first = { trial->candidate, trial->poison };
    struct assay_finding unwritten = { .check = assay_check_poison.name,
                                       .is_failure = true };
    for (int i = 0; i < rerun->tensors.count; i++) {
        const struct assay_tensor *const tensor = &rerun->tensors.item[i];
        const int64_t elements = tensor->is_output ? assay_tensor_elements(tensor) : 0;
        for (int64_t at = 0; at < elements; at++) {
            if (assay_definedness_at(rerun->map[i], at) != ASSAY_DEFINED ||
                !assay_run_left(&first, i, at) || !assay_run_left(later, i, at))
                continue;
            if (unwritten.elements++ == 0)
                assay_rerun_show(rerun, &rerun->tensors, i, at,
                                 assay_tensor_bits(tensor, at), &unwritten);
        }
    }
    if (!unwritten.elements) return;
    snprintf(unwritten.sentence, sizeof(unwritten.sentence), "%lld defined element%s",
             (long long)unwritten.elements,
             unwritten.elements == 1 ? " was never written" : "s were never written");
    *assay_result_add_finding(result, assay_check_poison.name, true) = unwritten;
}

/* The run's bits beside the first one's; where bits do not repeat, beside the bound. */
static enum assay_status compare(const struct assay_trial *trial,
                                 struct assay_rerun *rerun, uint8_t poison,
                                 const char *what, struct assay_result *result)
{
    const struct assay_run_outputs first = { trial->candidate, trial->poison };
    const struct assay_run_outputs later = { &rerun->tensors, poison };
    struct assay_finding changed = { .check = assay_check_poison.name,
                                     .is_failure = true };
    enum assay_status status = ASSAY_RAN;
    if (trial->is_repeatable)
        assay_rerun_compare(rerun, &first, &later, &changed);
    else if (trial->plan->uses_oracle)
        status = assay_rerun_judge(trial, rerun, poison, &changed);
    if (status != ASSAY_RAN || !changed.elements) return status;
    snprintf(changed.sentence, sizeof(changed.sentence), "what %s %s %lld element%s%s",
             what, trial->is_repeatable ? "changes" : "brings",
             (long long)changed.elements, changed.elements == 1 ? "" : "s",
             trial->is_repeatable ? "" : " beyond the bound");
    *assay_result_add_finding(result, assay_check_poison.name, true) = changed;
    return ASSAY_RAN;
}

/* Fills the tensor with the byte and puts back what may be looked at: all elements when
 * @is_used is NULL, so that only the padding between rows changes. */
static void fill_unused(const struct assay_tensor *from, const struct assay_tensor *to,
                        const uint8_t *is_used)
{
    const int64_t elements = assay_tensor_elements(from);
    const int64_t columns = from->rank ? from->shape[from->rank - 1] : 1;
    const size_t bytes = assay_format_bytes(from->format);
    memset(to->data, UNUSED_BYTE, (size_t)assay_tensor_bytes(to));
    for (int64_t row = 0; row < elements; row += columns) {
        const size_t offset = (size_t)assay_tensor_offset(from, row) * bytes;
        if (!is_used)
            memcpy((char *)to->data + offset, (const char *)from->data + offset,
                   (size_t)columns * bytes);
        for (int64_t at = row; is_used && at < row + columns; at++)
            if (is_used[at]) assay_tensor_set_bits(to, at, assay_tensor_bits(from, at));
    }
}

/* Whether there was anything to change. */
static enum assay_status change_unused(const struct assay_trial *trial,
                                       struct assay_rerun *rerun, bool *has_changed)
{
    const struct assay_operation *const operation = trial->operation;
    const bool may_ask =
        operation->used &&
        assay_inputs_are_legal(operation, trial->problem, trial->candidate);
    for (int i = 0; i < rerun->tensors.count; i++) {
        const struct assay_tensor *const from = &trial->candidate->item[i];
        const struct assay_tensor *const to = &rerun->tensors.item[i];
        if (from->is_output) continue;
        uint8_t *is_used = NULL;
        if (may_ask) {
            is_used = malloc((size_t)assay_tensor_elements(from) + 1);
            if (!is_used) return ASSAY_OUT_OF_MEMORY;
            operation->used(trial->problem, trial->candidate, i, is_used);
        }
        fill_unused(from, to, is_used);
        free(is_used);
        *has_changed |= memcmp(from->data, to->data, (size_t)assay_tensor_bytes(to)) != 0;
    }
    return ASSAY_RAN;
}

static enum assay_status run_over_other_outputs(const struct assay_trial *trial,
                                                struct assay_rerun *rerun,
                                                struct assay_result *result)
{
    const struct assay_run_outputs later = { &rerun->tensors, ASSAY_RERUN_POISON };
    const enum assay_status status =
        assay_rerun_run(trial, rerun, ASSAY_RERUN_POISON, 1,
                        "run over other contents of the outputs", result);
    if (status != ASSAY_RAN) return status;
    look_for_unwritten(trial, rerun, &later, result);
    return trial->is_repeatable ? compare(trial, rerun, ASSAY_RERUN_POISON,
                                          "the outputs held before", result)
                                : ASSAY_RAN;
}

static enum assay_status run_with_other_unused(const struct assay_trial *trial,
                                               struct assay_rerun *rerun,
                                               struct assay_result *result)
{
    struct assay_message ignored;
    bool has_changed = false;
    enum assay_status status = change_unused(trial, rerun, &has_changed);
    if (status != ASSAY_RAN || !has_changed) return status;
    status =
        assay_inputs_check(trial->the_case, trial->problem, &rerun->tensors, &ignored);
    assert(status == ASSAY_RAN); /* nobody may look at what has changed */
    status = assay_rerun_run(trial, rerun, ASSAY_BUFFER_POISON, 1,
                             "run with other contents of unused memory", result);
    if (status != ASSAY_RAN) return status;
    return compare(trial, rerun, ASSAY_BUFFER_POISON, "unused memory holds", result);
}

static enum assay_status judge(struct assay_trial *trial, struct assay_result *result)
{
    struct assay_message ignored;
    struct assay_rerun *const rerun = calloc(1, sizeof(*rerun));
    if (!rerun) return ASSAY_OUT_OF_MEMORY;
    enum assay_status status = assay_rerun_open_same(rerun, trial, &ignored);
    if (status == ASSAY_RAN) status = run_over_other_outputs(trial, rerun, result);
    if (status == ASSAY_RAN) status = run_with_other_unused(trial, rerun, result);
    assay_rerun_close(rerun);
    free(rerun);
    return status;
}

static bool applies(const struct assay_trial *trial)
{
    return !trial->plan->candidate->is_recording;
}

const struct assay_check assay_check_poison = {
    .name = "poison",
    .proves = "all defined outputs are written, whatever they and the unused memory of "
              "the inputs held before",
    .runs_candidate = true,
    .applies = applies,
    .judge = judge,
};
