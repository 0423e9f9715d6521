/* SPDX-License-Identifier: MIT */
/* Check "bound": every element within the proven bound of the oracle's value, NaN and
 * infinities in the same places. The model is held to the same bound: if it leaves it,
 * that is a contradiction in this project, not a fault of the candidate. */
#include "ref/format/minifloat.h"
#include "verify/check/trial.h"
#include "verify/operation/expectation.h"
#include "verify/operation/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const struct assay_check assay_check_bound;

struct tally { /* of one output in one part */
    int64_t outside, unclaimed, worst_index;
    double worst_ratio, worst_value, worst_bound;
    double model_ratio;
};

struct bound_run {
    const struct assay_trial *trial;
    int output_count;
    struct tally *tally; /* [part][output] */
};

/* |candidate - value| / bound: 0 for the same value, above 1 outside. */
static double error_over_bound(double candidate, double value, double bound)
{
    if (isinf(bound)) return 0;
    if (isnan(candidate) || isnan(value))
        return isnan(candidate) && isnan(value) ? 0 : (double)INFINITY;
    if (candidate == value) return 0;
    if (isinf(candidate) || isinf(value)) return (double)INFINITY;
    return bound > 0 ? fabs(candidate - value) / bound : (double)INFINITY;
}

/* Integers, which have no codec, count as unsigned. */
static double value_of(const struct assay_minifloat *format, uint32_t bits)
{
    return format ? assay_minifloat_decode(format, bits) : bits;
}

/* What an element that nobody may touch began with, and has to hold. */
static uint32_t poison_of(const struct assay_trial *trial, enum assay_format format)
{
    uint32_t bits = 0;
    memset(&bits, trial->poison, assay_format_bytes(format));
    return bits;
}

static void tally_untouched(const struct assay_trial *trial,
                            const struct assay_tensor *candidate, int64_t element,
                            struct tally *tally)
{
    const uint32_t held = poison_of(trial, candidate->format);
    if (assay_tensor_bits(candidate, element) == held) return;
    tally->outside++;
    if (isinf(tally->worst_ratio)) return;
    tally->worst_ratio = (double)INFINITY;
    tally->worst_index = element;
    tally->worst_value = value_of(assay_minifloat(candidate->format), held);
    tally->worst_bound = 0;
}

static void tally_output(const struct bound_run *run, int output,
                         const struct assay_part_expectation *expectation,
                         struct tally *tally)
{
    const struct assay_trial *const trial = run->trial;
    const struct assay_tensor *const candidate = &trial->candidate->item[output];
    const struct assay_minifloat *const format = assay_minifloat(candidate->format);
    *tally = (struct tally){ .worst_index = -1, .worst_ratio = -1, .model_ratio = -1 };
    for (struct assay_region_walk at =
             assay_region_begin(candidate, &expectation->region[output]);
         at.index < at.count; assay_region_next(&at)) {
        if (!assay_element_is_judged(trial, output, at.element)) continue;
        if (assay_definedness_at(trial->map[output], at.element) == ASSAY_UNTOUCHED) {
            tally_untouched(trial, candidate, at.element, tally);
            continue;
        }
        const double value = expectation->expected[output].value[at.index];
        const double bound = expectation->expected[output].bound[at.index];
        const uint32_t bits = assay_tensor_bits(candidate, at.element);
        const double ratio = error_over_bound(value_of(format, bits), value, bound);
        tally->unclaimed += isinf(bound) != 0;
        tally->outside += ratio > 1;
        if (ratio > tally->worst_ratio) {
            tally->worst_ratio = ratio;
            tally->worst_index = at.element;
            tally->worst_value = value;
            tally->worst_bound = bound;
        }
        if (!trial->reference || !trial->reference_is_model) continue;
        const uint32_t model =
            assay_tensor_bits(&trial->reference->item[output], at.element);
        tally->model_ratio =
            fmax(tally->model_ratio,
                 model == bits ? ratio
                               : error_over_bound(value_of(format, model), value, bound));
    }
}

static enum assay_status judge_part(void *context, int64_t part)
{
    const struct bound_run *const run = context;
    const struct assay_trial *const trial = run->trial;
    struct assay_part_expectation expectation;
    const enum assay_status status =
        assay_expect_part(trial->operation, trial->problem, trial->numerics,
                          trial->candidate, part, &expectation);
    struct tally *tally = &run->tally[part * run->output_count];
    if (status == ASSAY_RAN)
        for (int i = 0; i < trial->candidate->count; i++)
            if (trial->candidate->item[i].is_output)
                tally_output(run, i, &expectation, tally++);
    assay_part_expectation_close(&expectation);
    return status;
}

static void merge(const struct assay_trial *trial, int output, const struct tally *tally,
                  struct assay_output_result *into, double *model_ratio)
{
    into->outside += tally->outside;
    into->unclaimed += tally->unclaimed;
    *model_ratio = fmax(*model_ratio, tally->model_ratio);
    if (tally->worst_index < 0) return;
    const bool is_worse = tally->worst_ratio > into->max_error_over_bound;
    const bool is_earlier = tally->worst_ratio == into->max_error_over_bound &&
                            tally->worst_index < into->bound_worst_index;
    if (into->bound_worst_index >= 0 && !is_worse && !is_earlier) return;
    into->max_error_over_bound = tally->worst_ratio;
    into->bound_worst_index = tally->worst_index;
    into->bound_worst_value = tally->worst_value;
    into->bound_worst_bound = tally->worst_bound;
    into->bound_worst_bits =
        assay_tensor_bits(&trial->candidate->item[output], tally->worst_index);
    trial->operation->place(trial->problem, output, tally->worst_index,
                            &into->bound_worst_place);
}

static enum assay_status judge(struct assay_trial *trial, struct assay_result *result)
{
    const int64_t parts = trial->operation->parts(trial->problem);
    struct bound_run run = { trial, result->output_count, NULL };
    run.tally = calloc((size_t)parts * (size_t)run.output_count + 1, sizeof(*run.tally));
    if (!run.tally) return ASSAY_OUT_OF_MEMORY;

    const enum assay_status status = assay_for_each_part(parts, judge_part, &run);
    for (int64_t part = 0; status == ASSAY_RAN && part < parts; part++) {
        int output = 0;
        for (int i = 0; i < trial->candidate->count; i++)
            if (trial->candidate->item[i].is_output) {
                merge(trial, i, &run.tally[part * run.output_count + output],
                      &result->output[output], &result->model_max_error_over_bound);
                output++;
            }
    }
    for (int i = 0; i < result->output_count; i++)
        result->output[i].has_bound = status == ASSAY_RAN;
    free(run.tally);
    return status;
}

static bool applies(const struct assay_trial *trial)
{
    return trial->plan->uses_oracle;
}

const struct assay_check assay_check_bound = {
    .name = "bound",
    .proves = "every output is within a proven bound of the mathematical function",
    .applies = applies,
    .judge = judge,
};
