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

/* Integers, which have no codec, count as unsigned. bf16 is the upper half of an f32. */
static double value_of(enum assay_format format, uint32_t bits)
{
    float value;
    if (format == ASSAY_BF16) bits <<= 16;
    memcpy(&value, &bits, sizeof(value));
    if (format == ASSAY_F32 || format == ASSAY_BF16) return (double)value;
    const struct assay_minifloat *const codec = assay_minifloat(format);
    return codec ? assay_minifloat_decode(codec, bits) : bits;
}

/* Elements of a run, one after the other in memory. */
struct run {
    const unsigned char *first;
    size_t bytes, step; /* of an element, from element to element */
};

static struct run run_at(const struct assay_tensor *tensor, int64_t element)
{
    const size_t bytes = assay_format_bytes(tensor->format);
    const int64_t stride = tensor->rank ? tensor->stride[tensor->rank - 1] : 1;
    return (struct run){
        .first = (const unsigned char *)tensor->data +
                 (size_t)assay_tensor_offset(tensor, element) * bytes,
        .bytes = bytes,
        .step = (size_t)stride * bytes,
    };
}

static inline uint32_t bits_at(const struct run *run, int64_t place)
{
    const unsigned char *const from = run->first + (size_t)place * run->step;
    uint16_t narrow;
    uint32_t wide;
    switch (run->bytes) {
    case 1: return *from;
    case 2: memcpy(&narrow, from, sizeof(narrow)); return narrow;
    default: memcpy(&wide, from, sizeof(wide)); return wide;
    }
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
    tally->worst_value = value_of(candidate->format, held);
    tally->worst_bound = 0;
}

struct element {
    int64_t index;
    uint32_t bits;
    double value, bound; /* the oracle's */
};

static inline double tally_element(enum assay_format format,
                                   const struct element *element, struct tally *tally)
{
    const double ratio =
        error_over_bound(value_of(format, element->bits), element->value, element->bound);
    tally->unclaimed += isinf(element->bound) != 0;
    tally->outside += ratio > 1;
    if (ratio > tally->worst_ratio) {
        tally->worst_ratio = ratio;
        tally->worst_index = element->index;
        tally->worst_value = element->value;
        tally->worst_bound = element->bound;
    }
    return ratio;
}

/* The run that the walk has come to. */
static void tally_run(const struct bound_run *run, int output,
                      const struct assay_region_walk *walk,
                      const struct assay_expected *expected, struct tally *tally)
{
    const struct assay_trial *const trial = run->trial;
    const struct assay_tensor *const candidate = walk->tensor;
    const bool has_model = trial->reference && trial->reference_is_model;
    const uint8_t *const map = trial->map[output];
    const struct run of_candidate = run_at(candidate, walk->element);
    const struct run of_model =
        has_model ? run_at(&trial->reference->item[output], walk->element) : of_candidate;
    for (int64_t i = 0; i < walk->left; i++) {
        const struct element element = { walk->element + i, bits_at(&of_candidate, i),
                                         expected->value[walk->index + i],
                                         expected->bound[walk->index + i] };
        if (map && !assay_element_is_judged(trial, output, element.index)) continue;
        if (assay_definedness_at(map, element.index) == ASSAY_UNTOUCHED) {
            tally_untouched(trial, candidate, element.index, tally);
            continue;
        }
        const double ratio = tally_element(candidate->format, &element, tally);
        if (!has_model) continue;
        const uint32_t model = bits_at(&of_model, i);
        tally->model_ratio = fmax(
            tally->model_ratio, model == element.bits
                                    ? ratio
                                    : error_over_bound(value_of(candidate->format, model),
                                                       element.value, element.bound));
    }
}

static void tally_output(const struct bound_run *run, int output,
                         const struct assay_part_expectation *expectation,
                         struct tally *tally)
{
    *tally = (struct tally){ .worst_index = -1, .worst_ratio = -1, .model_ratio = -1 };
    for (struct assay_region_walk at = assay_region_begin(
             &run->trial->candidate->item[output], &expectation->region[output]);
         at.index < at.count; assay_region_next_run(&at))
        tally_run(run, output, &at, &expectation->expected[output], tally);
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

    const enum assay_status status =
        assay_for_each_part_of(trial->operation, trial->problem, judge_part, &run);
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
