/* SPDX-License-Identifier: MIT */
/* Check "exact": data whose results are exact whatever the order of sums leave one right
 * answer, the oracle's value rounded once. The model is held to it as well: if it
 * differs, that is a contradiction in this project. */
#include "verify/backend/backend.h"
#include "verify/check/difference.h"
#include "verify/operation/expectation.h"
#include "verify/operation/parts.h"

#include <stdlib.h>
#include <string.h>

extern const struct assay_check assay_check_exact;

struct tally { /* of one output in one part */
    int64_t inexact, model_inexact, worst_index;
    uint64_t worst_ulps;
    uint32_t worst_reference;
};

struct exact_run {
    const struct assay_trial *trial;
    int output_count;
    struct tally *tally; /* [part][output] */
};

static bool is_exact(const struct assay_trial *trial, int output)
{
    return trial->candidate->item[output].is_output &&
           trial->operation->is_exact(trial->problem, trial->the_case->data, output);
}

static bool is_worse(uint64_t ulps, int64_t index, const struct tally *tally)
{
    return tally->worst_index < 0 || ulps > tally->worst_ulps ||
           (ulps == tally->worst_ulps && index < tally->worst_index);
}

static void tally_output(const struct exact_run *run, int output,
                         const struct assay_part_expectation *expectation,
                         struct tally *tally)
{
    const struct assay_trial *const trial = run->trial;
    const struct assay_tensor *const candidate = &trial->candidate->item[output];
    *tally = (struct tally){ .worst_index = -1 };
    for (struct assay_region_walk at =
             assay_region_begin(candidate, &expectation->region[output]);
         at.index < at.count; assay_region_next(&at)) {
        if (assay_definedness_at(trial->map[output], at.element) != ASSAY_DEFINED)
            continue;
        const uint32_t right = assay_oracle_bits(
            candidate->format, expectation->expected[output].value[at.index]);
        const uint32_t bits = assay_tensor_bits(candidate, at.element);
        if (trial->reference && trial->reference_is_model)
            tally->model_inexact +=
                assay_tensor_bits(&trial->reference->item[output], at.element) != right;
        if (bits == right) continue;
        const uint64_t ulps = assay_ulps_between(candidate->format, bits, right);
        tally->inexact++;
        if (!is_worse(ulps, at.element, tally)) continue;
        tally->worst_index = at.element;
        tally->worst_ulps = ulps;
        tally->worst_reference = right;
    }
}

static enum assay_status judge_part(void *context, int64_t part)
{
    const struct exact_run *const run = context;
    const struct assay_trial *const trial = run->trial;
    struct assay_part_expectation expectation;
    const enum assay_status status =
        assay_expect_part(trial->operation, trial->problem, trial->numerics,
                          trial->candidate, part, &expectation);
    struct tally *tally = &run->tally[part * run->output_count];
    for (int i = 0; status == ASSAY_RAN && i < trial->candidate->count; i++) {
        if (!trial->candidate->item[i].is_output) continue;
        if (is_exact(trial, i)) tally_output(run, i, &expectation, tally);
        tally++;
    }
    assay_part_expectation_close(&expectation);
    return status;
}

static void merge(const struct tally *tally, struct tally *into)
{
    into->inexact += tally->inexact;
    into->model_inexact += tally->model_inexact;
    if (tally->worst_index < 0 || !is_worse(tally->worst_ulps, tally->worst_index, into))
        return;
    into->worst_index = tally->worst_index;
    into->worst_ulps = tally->worst_ulps;
    into->worst_reference = tally->worst_reference;
}

static void conclude(const struct exact_run *run, int64_t parts, int output, int place,
                     struct assay_result *result)
{
    struct assay_output_result *const into = &result->output[place];
    struct tally total = { .worst_index = -1 };
    for (int64_t part = 0; part < parts; part++)
        merge(&run->tally[part * run->output_count + place], &total);
    into->has_exact = true;
    into->inexact = total.inexact;
    result->model_inexact += total.model_inexact;
    if (total.worst_index >= 0)
        into->inexact_worst = assay_difference_at(run->trial, output, total.worst_index,
                                                  total.worst_reference);
}

static enum assay_status judge(struct assay_trial *trial, struct assay_result *result)
{
    const int64_t parts = trial->operation->parts(trial->problem);
    struct exact_run run = { trial, result->output_count, NULL };
    run.tally = calloc((size_t)parts * (size_t)run.output_count + 1, sizeof(*run.tally));
    if (!run.tally) return ASSAY_OUT_OF_MEMORY;

    const enum assay_status status =
        assay_for_each_part_of(trial->operation, trial->problem, judge_part, &run);
    int place = 0;
    for (int i = 0; status == ASSAY_RAN && i < trial->candidate->count; i++) {
        if (!trial->candidate->item[i].is_output) continue;
        if (is_exact(trial, i)) conclude(&run, parts, i, place, result);
        place++;
    }
    free(run.tally);
    return status;
}

/* Knobs may take away the bits that exact results need. */
static bool has_named_numerics(const struct assay_trial *trial)
{
    const struct assay_operation *const operation = trial->operation;
    for (const struct assay_named_numerics *row = operation->numerics; row->name; row++)
        if (memcmp(row->numerics, trial->numerics, operation->numerics_bytes) == 0)
            return true;
    return false;
}

/* Only data as they were generated are known to be exact. */
static bool applies(const struct assay_trial *trial)
{
    if (!trial->plan->uses_oracle || !trial->operation->is_exact) return false;
    if (trial->has_foreign_inputs || !has_named_numerics(trial)) return false;
    for (int i = 0; i < trial->candidate->count; i++)
        if (is_exact(trial, i)) return true;
    return false;
}

const struct assay_check assay_check_exact = {
    .name = "exact",
    .proves = "outputs whose data leave no rounding equal the oracle, rounded once, to "
              "the bit",
    .applies = applies,
    .judge = judge,
};
