/* SPDX-License-Identifier: MIT */
/* Relations of quantise, all to the bit.
 *
 * Twice x means twice the scale and the same codes: amax, the division by 448, the
 * rounding up to a power of two, 1 / sf and the quotient commute with powers of two where
 * nothing leaves the normal range. A scale of 2^-21 or more was not raised to 1e-4 / 448
 * (rounded up: 2^-22), and one below 2^100 leaves room above. An x that is subnormal
 * becomes a zero either way. */
#include "verify/operation/quantise/quantise_properties.h"

#include "ref/format/minifloat.h"
#include "verify/operation/quantise/quantise.h"

#include <math.h>

#define LEAST_SCALE 0x1p-21
#define MOST_SCALE  0x1p100

static const struct assay_quantise_problem *
problem_of(const struct assay_property_run *run)
{
    return &((const struct assay_quantise_case *)run->problem)->problem;
}

static bool is_by_token(const struct assay_property_run *run)
{
    return problem_of(run)->gran_m == 1;
}

static double value_at(const struct assay_tensor *tensor, int64_t element)
{
    return assay_minifloat_decode(assay_minifloat(tensor->format),
                                  assay_tensor_bits(tensor, element));
}

/* An exponent more; what has none to spare stays. */
static uint32_t doubled(enum assay_format format, uint32_t bits)
{
    const struct assay_minifloat *const codec = assay_minifloat(format);
    const double value = assay_minifloat_decode(codec, bits);
    const double twice = 2 * value;
    const double largest = assay_minifloat_decode(codec, codec->largest_finite);
    return !(fabs(twice) <= largest)
               ? bits
               : assay_minifloat_encode(codec, twice, ASSAY_OVERFLOW_SPECIAL);
}

static uint32_t negated(enum assay_format format, uint32_t bits)
{
    const struct assay_minifloat *const codec = assay_minifloat(format);
    return isnan(assay_minifloat_decode(codec, bits))
               ? bits
               : bits ^ UINT32_C(1) << (codec->exponent_bits + codec->mantissa_bits);
}

static void change_x(const struct assay_property_run *first,
                     const struct assay_property_run *second,
                     uint32_t (*change)(enum assay_format format, uint32_t bits))
{
    const struct assay_tensor *const from = &first->tensors->item[ASSAY_QUANTISE_X];
    const struct assay_tensor *const to = &second->tensors->item[ASSAY_QUANTISE_X];
    for (int64_t i = 0; i < assay_tensor_elements(from); i++)
        assay_tensor_set_bits(to, i, change(from->format, assay_tensor_bits(from, i)));
}

static bool double_x(const struct assay_property_run *first,
                     const struct assay_property_run *second)
{
    change_x(first, second, doubled);
    return true;
}

/* The first run's scale of the block with element @element of q. */
static double scale_of(const struct assay_property_run *run, int64_t element)
{
    const struct assay_quantise_problem *const problem = problem_of(run);
    const struct assay_tensor *const sf = &run->tensors->item[ASSAY_QUANTISE_SF];
    const int64_t row = element / problem->k / problem->gran_m;
    const int64_t block = element % problem->k / problem->gran_k;
    return value_at(sf, row * sf->shape[1] + block);
}

static bool expect_double(const struct assay_property_run *first,
                          const struct assay_property_run *second, int output,
                          int64_t element, uint32_t *bits)
{
    (void)second;
    const struct assay_tensor *const tensor = &first->tensors->item[output];
    const bool is_scale = output == ASSAY_QUANTISE_SF;
    const double scale = is_scale ? value_at(tensor, element) : scale_of(first, element);
    if (!(scale >= LEAST_SCALE && scale <= MOST_SCALE)) return false;
    if (isnan(value_at(tensor, element))) return false;
    *bits = assay_tensor_bits(tensor, element);
    if (is_scale) *bits = doubled(ASSAY_F32, *bits);
    return true;
}

static bool negate(const struct assay_property_run *first,
                   const struct assay_property_run *second)
{
    change_x(first, second, negated);
    return true;
}

/* A kernel may lose the sign of a zero. */
static bool expect_negated(const struct assay_property_run *first,
                           const struct assay_property_run *second, int output,
                           int64_t element, uint32_t *bits)
{
    (void)second;
    const struct assay_tensor *const tensor = &first->tensors->item[output];
    const double value = value_at(tensor, element);
    if (isnan(value)) return false;
    *bits = assay_tensor_bits(tensor, element);
    if (output == ASSAY_QUANTISE_SF) return true;
    *bits = negated(tensor->format, *bits);
    return value != 0;
}

/* Where an index of @extent lies after a reversal inside blocks of @granularity. */
static int64_t mirrored(int64_t index, int64_t granularity, int64_t extent)
{
    const int64_t first = index / granularity * granularity;
    const int64_t rest = extent - first;
    return first + (rest < granularity ? rest : granularity) - 1 - (index - first);
}

static int64_t mirrored_element(const struct assay_quantise_problem *problem,
                                int64_t element)
{
    const int64_t row = mirrored(element / problem->k, problem->gran_m, problem->m);
    return row * problem->k + mirrored(element % problem->k, problem->gran_k, problem->k);
}

/* What a NaN does to a maximum may depend on its place. */
static bool mirror(const struct assay_property_run *first,
                   const struct assay_property_run *second)
{
    const struct assay_tensor *const from = &first->tensors->item[ASSAY_QUANTISE_X];
    const struct assay_tensor *const to = &second->tensors->item[ASSAY_QUANTISE_X];
    bool has_nan = false;
    for (int64_t i = 0; i < assay_tensor_elements(from); i++) {
        has_nan |= isnan(value_at(from, i)) != 0;
        assay_tensor_set_bits(to, mirrored_element(problem_of(first), i),
                              assay_tensor_bits(from, i));
    }
    return !has_nan;
}

static bool expect_mirrored(const struct assay_property_run *first,
                            const struct assay_property_run *second, int output,
                            int64_t element, uint32_t *bits)
{
    (void)second;
    if (output == ASSAY_QUANTISE_Q)
        element = mirrored_element(problem_of(first), element);
    *bits = assay_tensor_bits(&first->tensors->item[output], element);
    return true;
}

static void copy_row(const struct assay_tensor *from, int64_t row,
                     const struct assay_tensor *to, int64_t to_row)
{
    for (int64_t i = 0; i < from->shape[1]; i++)
        assay_tensor_set_bits(to, to_row * to->shape[1] + i,
                              assay_tensor_bits(from, row * from->shape[1] + i));
}

static bool reverse_rows(const struct assay_property_run *first,
                         const struct assay_property_run *second)
{
    const struct assay_tensor *const x = &first->tensors->item[ASSAY_QUANTISE_X];
    const int64_t rows = x->shape[0];
    if (!is_by_token(first) || rows < 2) return false;
    for (int64_t row = 0; row < rows; row++)
        copy_row(x, row, &second->tensors->item[ASSAY_QUANTISE_X], rows - 1 - row);
    return true;
}

static bool expect_reversed(const struct assay_property_run *first,
                            const struct assay_property_run *second, int output,
                            int64_t element, uint32_t *bits)
{
    (void)second;
    const struct assay_tensor *const tensor = &first->tensors->item[output];
    const int64_t columns = tensor->shape[1];
    const int64_t row = tensor->shape[0] - 1 - element / columns;
    *bits = assay_tensor_bits(tensor, row * columns + element % columns);
    return true;
}

static bool halve_rows(const struct assay_property_run *first, struct assay_case *second)
{
    assay_case_set(second, "m", problem_of(first)->m / 2);
    return is_by_token(first) && problem_of(first)->m > 1;
}

static int64_t rows_left_out(const struct assay_property_run *first,
                             const struct assay_property_run *second)
{
    return problem_of(first)->m - problem_of(second)->m;
}

static bool take_rows(const struct assay_property_run *first,
                      const struct assay_property_run *second)
{
    const struct assay_tensor *const to = &second->tensors->item[ASSAY_QUANTISE_X];
    for (int64_t row = 0; row < to->shape[0]; row++)
        copy_row(&first->tensors->item[ASSAY_QUANTISE_X],
                 row + rows_left_out(first, second), to, row);
    return true;
}

static bool expect_taken(const struct assay_property_run *first,
                         const struct assay_property_run *second, int output,
                         int64_t element, uint32_t *bits)
{
    const struct assay_tensor *const tensor = &first->tensors->item[output];
    *bits = assay_tensor_bits(tensor,
                              element + rows_left_out(first, second) * tensor->shape[1]);
    return true;
}

const struct assay_property assay_quantise_properties[] = {
    { "doubling", "x times two: twice the scales and the same codes",
      ASSAY_PROPERTY_MATHEMATICS, NULL, double_x, expect_double },
    { "negation", "x negated: the same scales and the codes' signs flipped",
      ASSAY_PROPERTY_MATHEMATICS, NULL, negate, expect_negated },
    { "order", "blocks of x reversed: the same scales and the codes reversed",
      ASSAY_PROPERTY_MATHEMATICS, NULL, mirror, expect_mirrored },
    { "rows", "rows of x reversed: rows of codes and scales reversed",
      ASSAY_PROPERTY_BATCH, NULL, reverse_rows, expect_reversed },
    { "fewer-rows", "the last half of the rows alone: the same bits",
      ASSAY_PROPERTY_BATCH, halve_rows, take_rows, expect_taken },
    { NULL, NULL, ASSAY_PROPERTY_MATHEMATICS, NULL, NULL, NULL },
};
