/* SPDX-License-Identifier: MIT */
/* The bound of combine. u = 2^-24, logarithms base 2; of n splits with a key lse l_i, w_i
 * = 2^(l_i - m), m the largest l_i, L = sum of w_i, G = m + log2 L, and with a sink of
 * weight w = 2^(s - m), G' = m + log2(L + w), otherwise G' = G.
 *
 * G of a kernel has the errors, in units of ln 2, of
 *   weights    ex2, and its argument: u * |l_i - m|; nothing for the largest, as ex2(0)
 *   = 1 L          n - 1 roundings, each half a unit in the last place of L logarithm
 *   of L in [1, n] sum        u * |G|; nothing where log2 L is 0
 * and with a sink those of ex2, of the argument, u * (1.25 |s| + 2 |s - G|), weighted
 * by w / (L + w), of 1 + z, of its logarithm and of the sum, u * |G'|. Weights 2^(l_i -
 * G) have ex2 and u * |l_i - G'|; sums of products by fma, or by products and
 * additions, n + 1 roundings of magnitudes:
 *     |error| <= sum of w_i D_i |o_i| / (L + w) + |out| * (error of 2^G')
 * D_i >= 1 where a weight below 2^-125 may be flushed. A single split without a sink is
 * itself. Then absolute terms of 2^-126, and rounding to the output format from both ends
 * of the interval.
 *
 * lse: the errors of G, and roundings of m * ln 2 or of the result, and of ln 2 itself.
 *
 * The oracle's error, below 2^-40 of what is counted, is in the factor 1 + 2^-18. */
#include "ref/oracle/mla_combine.h"
#include "verify/operation/mla/mla_bound.h"
#include "verify/operation/mla/mla_precision.h"

#include <math.h>

#define U          ASSAY_MLA_HALF_ULP
#define LN_2       0x1.62e42fefa39efp-1
#define SLACK      (1 + 0x1p-18)
#define LN_2_ERROR 0x1p-28 /* relative, of f32 ln 2 */
#define LARGEST    0x1p127 /* sums of partial results do not overflow below */

struct combine_bound {                 /* of a row; relative errors */
    double total, top;                 /* of 2^G, of 2^G' */
    double largest;                    /* G' */
    double value[ASSAY_MLA_MAX_PARTS]; /* D of each split */
};

static double sum_error(const struct assay_mla_accuracy *accuracy,
                        const struct assay_mla_combined *row)
{
    if (row->counting == 1) return 0;
    const double total = row->total, log2_total = log2(total);
    double error = (double)(row->counting - 1) *
                   ldexp(1, assay_mla_exponent(total * (1 + 0x1p-10)) - 24);
    for (int64_t i = 0; i < row->splits; i++)
        if (row->weight[i] > 0 && row->weight[i] < 1)
            error += row->weight[i] *
                     (accuracy->ex2 + LN_2 * U * (row->maximum - row->lse[i]));
    return error / total +
           LN_2 * (assay_mla_lg2_error(accuracy, log2_total) +
                   (log2_total > 0 ? U * fabs(row->maximum + log2_total) : 0));
}

static double sink_error(const struct assay_mla_accuracy *accuracy,
                         const struct assay_mla_combined *row, double total)
{
    const double divisor = row->total + row->sink_weight;
    const double relative =
        accuracy->ex2 + LN_2 * U *
                            (1.25 * fabs(row->sink) +
                             2 * fabs(row->sink - row->maximum - log2(row->total)));
    return total * row->total / divisor + relative * row->sink_weight / divisor + U +
           LN_2 * (assay_mla_lg2_error(accuracy, log2(divisor / row->total)) +
                   U * fabs(row->maximum + log2(divisor)));
}

static void bound_row(const struct assay_mla_combine_numerics *numerics,
                      const struct assay_mla_combined *row, struct combine_bound *bound)
{
    const struct assay_mla_accuracy accuracy = assay_mla_accuracy_of(numerics->functions);
    const bool has_sink = row->sink_weight > 0 && row->sink_weight < 0x1p200;
    const bool is_single = row->counting == 1 && row->sink_weight == 0;
    const double rounding = ((double)row->counting + 1) * U;
    bound->total = sum_error(&accuracy, row);
    bound->top = has_sink ? sink_error(&accuracy, row, bound->total) : bound->total;
    bound->largest = row->maximum + log2(row->total + row->sink_weight);
    for (int64_t i = 0; i < row->splits; i++) {
        const double below = bound->largest - row->lse[i];
        bound->value[i] = accuracy.ex2 + LN_2 * U * fabs(below) + rounding;
        if (is_single) bound->value[i] = 0;
        if (below > 125) bound->value[i] = 1;
    }
}

static double value_error(const struct combine_bound *bound,
                          const struct assay_mla_combined *row, int column)
{
    const double divisor = row->total + row->sink_weight;
    double charged = 0, magnitude = 0;
    for (int64_t i = 0; i < row->splits; i++) {
        const double partial = fabs((double)row->partial[i][column]);
        charged += row->weight[i] * bound->value[i] * partial;
        magnitude += partial;
    }
    if (magnitude == 0) return 0;
    if (magnitude > LARGEST) return (double)INFINITY;
    return (charged / divisor + fabs(row->out[column]) * bound->top) *
               (1 + 2 * bound->top) * SLACK +
           ((double)row->splits + 2) * ASSAY_MLA_SMALLEST_NORMAL;
}

static double lse_bound(const struct combine_bound *bound,
                        const struct assay_mla_combined *row)
{
    const double lse = fabs(row->maximum + log2(row->total));
    return (bound->total + LN_2 * (U + LN_2_ERROR) * (fabs(row->maximum) + lse)) * SLACK +
           2 * ASSAY_MLA_SMALLEST_NORMAL;
}

static void set(const struct assay_expected *expected, int64_t at, double value,
                double bound)
{
    expected->value[at] = isinf(bound) ? 0 : value;
    expected->bound[at] = bound;
}

static void expect_element(const struct combine_bound *bound,
                           const struct assay_mla_combined *row, int column,
                           enum assay_format format, bool may_skip,
                           const struct assay_expected *expected, int64_t at)
{
    double value = row->out[column], allowed = 0;
    switch (row->out_state[column]) {
    case ASSAY_MLA_COMBINED_EMPTY: break;
    case ASSAY_MLA_COMBINED_FINITE:
        allowed =
            bound->top < 0.25
                ? assay_mla_output_bound(format, value_error(bound, row, column), &value)
                : (double)INFINITY;
        break;
    case ASSAY_MLA_COMBINED_NAN:
        /* A weight that may be 0 may take the NaN's split out. */
        if (may_skip) allowed = (double)INFINITY;
        break;
    case ASSAY_MLA_COMBINED_UNKNOWN: allowed = (double)INFINITY; break;
    }
    set(expected, at, value, allowed);
}

static void expect_lse(const struct combine_bound *bound,
                       const struct assay_mla_combined *row,
                       const struct assay_expected *expected, int64_t at)
{
    const bool is_known = row->state != ASSAY_MLA_COMBINED_UNKNOWN;
    const bool is_finite = row->state == ASSAY_MLA_COMBINED_FINITE;
    set(expected, at, assay_mla_combined_lse(row),
        is_finite  ? lse_bound(bound, row)
        : is_known ? 0
                   : (double)INFINITY);
}

enum assay_status assay_mla_combine_expect(const void *problem, const void *numerics,
                                           const struct assay_tensors *tensors,
                                           int64_t part,
                                           const struct assay_expected *expected)
{
    const struct assay_mla_combine_problem *const combine = problem;
    const struct assay_mla_combine_numerics *const given = numerics;
    const int64_t out = assay_tensors_find(tensors, "out") - tensors->item;
    const int64_t lse = assay_tensors_find(tensors, "lse") - tensors->item;
    const bool may_skip = given->zero_weight == ASSAY_MLA_ZERO_WEIGHT_SKIPPED;
    struct assay_mla_combined row;
    struct combine_bound bound = { 0 };
    for (int64_t head = 0; head < combine->h_q; head++) {
        assay_mla_combine_oracle(combine, tensors, part / combine->s_q,
                                 part % combine->s_q, head, &row);
        if (row.state == ASSAY_MLA_COMBINED_FINITE) bound_row(given, &row, &bound);
        for (int column = 0; column < ASSAY_MLA_D_V; column++)
            expect_element(&bound, &row, column, combine->format, may_skip,
                           &expected[out], head * ASSAY_MLA_D_V + column);
        expect_lse(&bound, &row, &expected[lse], head);
    }
    return ASSAY_RAN;
}
