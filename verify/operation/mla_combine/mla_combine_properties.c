/* SPDX-License-Identifier: MIT */
/* Relations between two runs of mla_combine. */
#include "ref/kernel/mla_combine.h"
#include "ref/unit/scalar.h"
#include "verify/operation/mla/mla_properties.h"
#include "verify/operation/mla_combine/mla_combine.h"

#include <math.h>
#include <string.h>

static const struct assay_mla_combine_problem *
problem_of(const struct assay_property_run *run)
{
    return run->problem;
}

static int64_t splits_of(const struct assay_property_run *run, int64_t request,
                         int64_t *first)
{
    return assay_mla_combine_splits(
        problem_of(run), &run->tensors->item[ASSAY_COMBINE_NUM_SPLITS], request, first);
}

/* The partial outputs or the logarithms of split @split, and how many they are. */
static float *partials(const struct assay_property_run *run, int place, int64_t split,
                       int64_t *count)
{
    const struct assay_tensor *const tensor = &run->tensors->item[place];
    *count = tensor->stride[0];
    return (float *)tensor->data + split * tensor->stride[0];
}

static void copy_split(const struct assay_property_run *first, int64_t from,
                       const struct assay_property_run *second, int64_t to)
{
    for (int place = ASSAY_COMBINE_OACCUM; place <= ASSAY_COMBINE_LSEACCUM; place++) {
        int64_t count;
        float *const target = partials(second, place, to, &count);
        memcpy(target, partials(first, place, from, &count),
               (size_t)count * sizeof(*target));
    }
}

/* --- splits ------------------------------------------------------------------------ */

static bool reverse(const struct assay_property_run *first,
                    const struct assay_property_run *second)
{
    if (!assay_mla_copy_inputs(first, second)) return false;
    for (int64_t request = 0; request < problem_of(first)->b; request++) {
        int64_t begin;
        const int64_t splits = splits_of(first, request, &begin);
        for (int64_t i = 0; i < splits; i++)
            copy_split(first, begin + splits - 1 - i, second, begin + i);
    }
    return true;
}

/* A sink is no part of what is shifted: the oracle knows. */
static bool shift(const struct assay_property_run *first,
                  const struct assay_property_run *second)
{
    const struct assay_tensor *const lseaccum =
        &first->tensors->item[ASSAY_COMBINE_LSEACCUM];
    if (!assay_mla_copy_inputs(first, second)) return false;
    for (int64_t i = 0; i < assay_tensor_elements(lseaccum); i++) {
        const float lse = assay_f32_from_bits(assay_tensor_bits(lseaccum, i));
        assay_tensor_set_bits(&second->tensors->item[ASSAY_COMBINE_LSEACCUM], i,
                              assay_f32_bits(lse + 1));
    }
    return true;
}

static bool scale(const struct assay_property_run *first,
                  const struct assay_property_run *second)
{
    const struct assay_tensor *const oaccum = &first->tensors->item[ASSAY_COMBINE_OACCUM];
    if (!assay_mla_copy_inputs(first, second)) return false;
    for (int64_t i = 0; i < assay_tensor_elements(oaccum); i++) {
        const float value = assay_f32_from_bits(assay_tensor_bits(oaccum, i));
        assay_tensor_set_bits(&second->tensors->item[ASSAY_COMBINE_OACCUM], i,
                              assay_f32_bits(2 * value));
    }
    return true;
}

/* Whether all that adds up to an element of out is zero or far from the ends of f32:
 * values from 2^-60 to 2^60, by weights of 2^-46 and more of the largest. */
static bool is_in_range(const struct assay_property_run *run, int64_t element)
{
    const int64_t rows = problem_of(run)->s_q * problem_of(run)->h_q;
    const int64_t row = element / ASSAY_MLA_D_V;
    float lowest = INFINITY, highest = -INFINITY;
    int64_t begin, count;
    const int64_t splits = splits_of(run, row / rows, &begin);
    for (int64_t i = begin; i < begin + splits; i++) {
        const float lse = partials(run, ASSAY_COMBINE_LSEACCUM, i, &count)[row % rows];
        const float value = partials(run, ASSAY_COMBINE_OACCUM, i,
                                     &count)[element % (rows * ASSAY_MLA_D_V)];
        if (!(fabsf(value) <= 0x1p60f)) return false;
        if (lse == -INFINITY || value == 0) continue;
        if (fabsf(value) < 0x1p-60f) return false;
        lowest = fminf(lowest, lse);
        highest = fmaxf(highest, lse);
    }
    for (int64_t i = begin; i < begin + splits; i++)
        highest =
            fmaxf(highest, partials(run, ASSAY_COMBINE_LSEACCUM, i, &count)[row % rows]);
    return lowest == INFINITY || highest - lowest < 46;
}

/* A sink makes weights smaller: not more than by 2^-8. */
static bool has_small_sink(const struct assay_property_run *run, int64_t element)
{
    const struct assay_mla_combine_problem *const problem = problem_of(run);
    const int64_t row = element / ASSAY_MLA_D_V;
    const int64_t head = row % problem->h_q, token = row / problem->h_q % problem->s_q;
    const int64_t request = row / problem->h_q / problem->s_q;
    if (!problem->has_sink) return true;
    const float sink = assay_f32_from_bits(
        assay_tensor_bits(&run->tensors->item[ASSAY_COMBINE_SINK], head));
    const float lse = assay_f32_from_bits(
        assay_tensor_bits(&run->tensors->item[ASSAY_COMBINE_LSE],
                          (request * problem->h_q + head) * problem->s_q + token));
    return sink - lse < 5;
}

static bool expect_doubled(const struct assay_property_run *first,
                           const struct assay_property_run *second, int output,
                           int64_t element, uint32_t *bits)
{
    assay_mla_expect_same(first, second, output, element, bits);
    if (output != ASSAY_COMBINE_OUT) return true;
    return is_in_range(first, element) && has_small_sink(first, element) &&
           assay_mla_scaled_output(problem_of(first)->format, 1, bits);
}

/* --- neighbours -------------------------------------------------------------------- */

static bool has_neighbours(const struct assay_property_run *first,
                           struct assay_case *second)
{
    (void)second;
    return problem_of(first)->b > 1;
}

/* Other partial outputs and logarithms in odd requests. */
static bool change_requests(const struct assay_property_run *first,
                            const struct assay_property_run *second)
{
    if (!assay_mla_copy_inputs(first, second)) return false;
    for (int64_t request = 1; request < problem_of(first)->b; request += 2) {
        int64_t begin, count;
        const int64_t splits = splits_of(first, request, &begin);
        for (int64_t split = begin; split < begin + splits; split++) {
            float *const out = partials(second, ASSAY_COMBINE_OACCUM, split, &count);
            for (int64_t i = 0; i < count; i++)
                out[i] = -out[i];
            float *const lse = partials(second, ASSAY_COMBINE_LSEACCUM, split, &count);
            for (int64_t i = 0; i < count; i++)
                lse[i] = lse[i] / 2 + (float)(split - begin);
        }
    }
    return true;
}

static bool change_rows(const struct assay_property_run *first,
                        const struct assay_property_run *second)
{
    if (!assay_mla_copy_inputs(first, second)) return false;
    assay_mla_negate_odd_rows(first, second, "oaccum");
    return true;
}

static bool derive_rotated(const struct assay_property_run *first,
                           struct assay_case *second)
{
    return has_neighbours(first, second) && assay_mla_rotate_list(second, "splits") &&
           assay_mla_is_derived(second);
}

static bool rotate(const struct assay_property_run *first,
                   const struct assay_property_run *second)
{
    const int64_t b = problem_of(first)->b;
    int64_t end = 0;
    if (!assay_mla_copy_inputs(first, second)) return false;
    for (int64_t request = 0; request < b; request++) {
        int64_t begin;
        const int64_t splits = splits_of(first, (request + 1) % b, &begin);
        for (int64_t i = 0; i < splits; i++)
            copy_split(first, begin + i, second, end + i);
        end += splits;
        assay_mla_set_integer(second, "num_splits", request + 1, (int32_t)end);
    }
    return true;
}

const struct assay_property assay_mla_combine_properties[] = {
    { "reversed_splits", "the last split of a request comes first",
      ASSAY_PROPERTY_MATHEMATICS, NULL, reverse, NULL },
    { "shifted_logarithms", "all logarithms are larger by 1", ASSAY_PROPERTY_MATHEMATICS,
      NULL, shift, NULL },
    { "doubled_partials", "partial outputs twice: out twice, lse the same, to the bit",
      ASSAY_PROPERTY_MATHEMATICS, NULL, scale, expect_doubled },
    { "unused_memory", "requests of one split hold something else: the same bits",
      ASSAY_PROPERTY_MATHEMATICS, NULL, assay_mla_change_unused, assay_mla_expect_same },
    { "other_requests", "odd requests hold other data: the same bits in even ones",
      ASSAY_PROPERTY_BATCH, has_neighbours, change_requests,
      assay_mla_expect_even_entries },
    { "other_rows", "half of the rows are others: the same bits in the rest",
      ASSAY_PROPERTY_BATCH, NULL, change_rows, assay_mla_expect_even_rows },
    { "rotated_requests", "requests change places: the same bits", ASSAY_PROPERTY_BATCH,
      derive_rotated, rotate, assay_mla_expect_rotated },
    { .name = NULL },
};
