/* SPDX-License-Identifier: MIT */
/* The bound of attention. u = 2^-24, logarithms base 2, c = softmax_scale * log2(e).
 *
 * Row. Key j has score s_j, t_j = c * s_j, T = max t_j at key m, x_j = t_j - T, weight
 * p_j = 2^x_j, L = sum of p_j, w = 2^(sink * log2(e) - T), and out = sum of p_j * v_j /
 * (L + w). A kernel has p_j * (1 + d_j) instead, in sums of p * v and in L with different
 * d_j, |d_j| <= exp(eta_j) - 1 = D_j:
 *     |error| <= (sum of p_j D_j |v_j| + |out| * (sum of p_j D'_j + errors of adding)) /
 *                ((L + w) * (1 - sum of p_j D'_j / (L + w)))
 * if the last quotient is at most 1/2; otherwise nothing is claimed.
 *
 * What eta_j counts, in the order of a kernel:
 *   score     ln 2 * c * (error of the chain, mla_precision.c)
 *   scale     c is rounded, and so may its log2(e) be: 1.25 u * |x_j| * ln 2. The same
 *             change of all t_j, |T| * 1.25 u, matters to lse and sinks alone.
 *   argument  The running maximum M, however it was rounded, is the number that all later
 *             differences meet: its rounding cancels. t_j - M and the differences of
 *             maxima are rounded once each and add up to x_j: u * |x_j| * ln 2. Not
 *             fused, c * s_j is rounded too: u * |t_j| * ln 2.
 *   weight    the error of ex2
 *   rescaling Each rise of the maximum after key j costs an ex2 and two products. There
 *             are fewer of them than keys, and than blocks, whatever the order of both;
 *             blocks are counted as if they had 16 positions (1 on the plain schedule).
 *   p         rounded once, after its last rescaling or before: p_relative. f16 also has
 *             subnormals: p_absolute at most, of p_j relative to a smaller maximum.
 *   values    A chain of n products with magnitudes p_j |v_j| loses at most
 *             n * 2^-align_bits + steps * (2^-align_bits + 2^-result_bits) of the sum of
 *             those, n * u by fma: added to each eta_j. Rescaling makes losses smaller.
 *   sum of L  n - 1 roundings of partial sums, each half a unit in the last place of L
 *   flush     A weight that may be below 2^-120 of the sum may be lost: D_j >= 1.
 *
 * Common errors. Key m can stand for all: what changes its weight changes nothing if it
 * changes the others too. Relative to it eta_j becomes eta_j + eta_m, and 0 for m. That
 * is used where m has half of L or more. Key m's p is 2^(rounding of M) where no other
 * score comes near; if that is much nearer to 1 than half a unit, p becomes 1.
 *
 * Splits (at most 160, and none of a single block; the plan is not looked at): lse of a
 * split is a rounded logarithm; its weight in combine is ex2 of a rounded difference to
 * G, which is rounded as well. Each counts in both sums: ln 2 * (logarithm + u * |lse|),
 * ex2 + ln 2 * u * (|x_j| + log2 n). Partial results are normalised and rounded, and
 * added by fma; so are weights.
 *
 * Then: the reciprocal and the product, absolute terms of 2^-126 for flushed sums, and
 * rounding to the output format, from both ends of the interval: nothing is lost where it
 * has one value. Rows whose q is zero have p = 1: only V's sums (exact while they are
 * integers of 24 bits in some unit), splits and the quotient count.
 *
 * lse: L's error without common terms taken out, |T| * 1.25 u * ln 2, the logarithm and
 * the roundings of M * ln 2, of the sum, and of ln 2 itself (2^-28). max_logits: the
 * largest t_j + error of any key above T, the error of m below it, and roundings.
 *
 * Cached keys. Where a kernel multiplies bf16(code * scale) that is not code * scale, the
 * bound is that of the rounded keys, which are known, plus the distance between the
 * function of those and of the stored ones: a kernel that rounds less lies between.
 *
 * Nothing is claimed of rows with infinities or keys from outside the cache, of scores
 * beyond 2^96 (the running maximum starts at -1e30), where sums of values may overflow,
 * of a finite mask with a c that can't tell it from -1e30, of lse in rows of NaN if those
 * count as empty. The oracle's errors, below 2^-26 of what is counted, are in the factor
 * 1 + 2^-18, as are second-order terms. */
#include "verify/operation/mla/mla_bound.h"

#include "verify/operation/mla/mla_row_bound.h"

#include <math.h>
#include <stdlib.h>

#define U          ASSAY_MLA_HALF_ULP
#define LOG2_E     0x1.71547652b82fep+0
#define LN_2       0x1.62e42fefa39efp-1
#define SCALE_U    ASSAY_MLA_SCALE_ERROR
#define SLACK      (1 + 0x1p-18)
#define LN_2_ERROR 0x1p-28 /* relative, of f32 ln 2 */

/* --- results ---------------------------------------------------------------------- */

struct totals {           /* of a finished row */
    double divisor;       /* L + w */
    double sum_error;     /* relative, of the divisor */
    double own_sum_error; /* relative, of L, common terms included */
    double quotient;      /* relative, of what comes after both sums */
    double lost;          /* absolute, of the sum of values */
};

/* Relative error of the sink's weight. */
static double sink_error(const struct assay_mla_bound *bound,
                         const struct assay_mla_row_bound *row,
                         const struct assay_mla_oracle_row *facts)
{
    const struct assay_mla_precision *const precision = bound->precision;
    const double difference = log2(facts->sink_weight), sink = difference + row->top;
    return LN_2 * (SCALE_U * fabs(sink) + 2 * U * (fabs(difference) + 24) +
                   SCALE_U * fabs(row->top)) +
           precision->attention.ex2 + precision->combine.ex2 +
           (row->is_relative ? row->own : 0);
}

static struct totals totals_of(const struct assay_mla_bound *bound,
                               const struct assay_mla_row_bound *row,
                               const struct assay_mla_oracle *oracle, int64_t i)
{
    const struct assay_mla_precision *const precision = bound->precision;
    const struct assay_mla_oracle_row *const facts = &oracle->row[i];
    const double total = facts->total, sink = facts->sink_weight;
    const double keys = (double)facts->keys;
    const double reached = total + fmax(row->sum_error, row->own_sum_error);
    const double half = ldexp(1, assay_mla_exponent(reached * SLACK) - 24);
    const double adding = row->is_level && keys <= 0x1p24 ? 0 : (keys - 1) * half;
    struct totals totals = {
        .divisor = total + sink,
        .own_sum_error = (row->is_level ? row->sum_error : row->own_sum_error) + adding,
        .quotient = precision->quotient * SLACK,
    };
    double error = row->sum_error + adding;
    if (sink > 0 && sink < 0x1p200) {
        error += sink * sink_error(bound, row, facts);
        totals.quotient += U;
        if (assay_mla_splits(bound) > 1)
            totals.quotient +=
                LN_2 * (assay_mla_lg2_error(&precision->combine,
                                            log2(totals.divisor / total)) +
                        U * (fabs(row->top) + fabs(log2(totals.divisor)))) +
                U;
    }
    totals.sum_error = error / totals.divisor;
    totals.own_sum_error /= total;
    const double align = precision->is_value_by_fma ? 23 : precision->align_bits;
    /* Sums that are flushed, products of subnormal p, values that are flushed. */
    totals.lost =
        (row->raises + 2) * ASSAY_MLA_SMALLEST_NORMAL +
        keys * (ldexp(oracle->largest_value, precision->p_exponent - (int)align) +
                (precision->is_value_by_fma ? ASSAY_MLA_SMALLEST_NORMAL : 0x1p-149));
    return totals;
}

/* Error of @value before it is rounded to the output's format. */
static double value_error(const struct assay_mla_bound *bound,
                          const struct assay_mla_row_bound *row,
                          const struct totals *totals,
                          const struct assay_mla_oracle *oracle, double cost,
                          double value)
{
    const int bits =
        bound->precision->is_value_by_fma ? 23 : bound->precision->result_bits;
    double charged = cost;
    if (cost == 0) return 0;
    if (row->is_level) {
        const bool is_exact = bound->precision->align_bits >= bits &&
                              cost <= ldexp(1, oracle->value_lsb + bits + 1);
        charged *= row->value_split + (is_exact ? 0 : row->products);
    }
    const double absolute = (assay_mla_splits(bound) + 2) * ASSAY_MLA_SMALLEST_NORMAL +
                            totals->lost / totals->divisor;
    const double before = (charged / totals->divisor + fabs(value) * totals->sum_error) /
                          (1 - totals->sum_error);
    return ((before + absolute) * (1 + totals->quotient) +
            fabs(value) * totals->quotient) *
           SLACK;
}

static double lse_bound(const struct assay_mla_bound *bound,
                        const struct assay_mla_row_bound *row,
                        const struct totals *totals, double total, double keys)
{
    const struct assay_mla_precision *const precision = bound->precision;
    const double top = fabs(row->top), lse = fabs(row->top + log2(total));
    const double one =
        assay_mla_lg2_error(&precision->attention, log2(keys)) + U * (top + lse);
    const double splits = assay_mla_splits(bound);
    const double split =
        assay_mla_lg2_error(&precision->combine, log2(splits)) + 2 * U * lse;
    const double error = LN_2 * (SCALE_U * top + (splits > 1 ? fmax(one, split) : one) +
                                 LN_2_ERROR * (top + lse)) -
                         log1p(-totals->own_sum_error);
    return error * SLACK + 2 * ASSAY_MLA_SMALLEST_NORMAL;
}

static double max_logit_bound(const struct assay_mla_row_bound *row)
{
    if (row->is_level) return 0;
    const double top = fabs(row->top);
    return LN_2 *
               (fmax(row->highest, row->error_of_top) +
                (SCALE_U + 2 * U + LN_2_ERROR) * top) *
               SLACK +
           2 * ASSAY_MLA_SMALLEST_NORMAL;
}

/* --- what is expected ------------------------------------------------------------- */

struct expected_outputs {
    const struct assay_expected *out, *lse, *max_logits; /* the last may be NULL */
    enum assay_format format;                            /* of out */
};

static void expect_element(const struct assay_expected *expected, int64_t at,
                           double value, double bound)
{
    expected->value[at] = isinf(bound) ? 0 : value;
    expected->bound[at] = bound;
}

/* A row without numbers, or without a claim. */
static void expect_special(const struct assay_mla_bound *bound,
                           const struct assay_mla_oracle *oracle, int64_t i,
                           const struct expected_outputs *expected)
{
    const struct assay_mla_part *const part = oracle->part;
    const int64_t row = oracle->first_row + i;
    const int64_t at = row % part->heads * part->tokens + row / part->heads;
    const enum assay_mla_row_state state = oracle->row[i].state;
    const bool is_empty = state == ASSAY_MLA_ROW_EMPTY;
    const bool is_nan = state == ASSAY_MLA_ROW_NAN;
    const bool is_nan_empty = bound->precision->is_nan_empty;
    const bool is_nan_skipped =
        bound->precision->is_zero_weight_skipped && part->may_be_split && is_nan_empty;
    const double none = (double)INFINITY;
    for (int column = 0; column < ASSAY_MLA_D_V; column++)
        expect_element(expected->out, row * ASSAY_MLA_D_V + column,
                       is_empty ? 0 : (double)NAN,
                       is_empty || (is_nan && !is_nan_skipped) ? 0 : none);
    expect_element(expected->lse, at, is_empty ? (double)INFINITY : (double)NAN,
                   is_empty || (is_nan && !is_nan_empty) ? 0 : none);
    if (expected->max_logits)
        expect_element(expected->max_logits, at,
                       is_empty ? -(double)INFINITY : (double)NAN, is_empty ? 0 : none);
}

static void expect_row(const struct assay_mla_bound *bound,
                       const struct assay_mla_oracle *oracle, int64_t i,
                       const struct expected_outputs *expected)
{
    const struct assay_mla_part *const part = oracle->part;
    const struct assay_mla_row_bound *const row = &bound->row[i];
    const int64_t index = oracle->first_row + i;
    const int64_t at = index % part->heads * part->tokens + index / part->heads;
    const double unit = part->is_base_two ? LOG2_E : 1, none = (double)INFINITY;
    const struct totals totals = totals_of(bound, row, oracle, i);
    for (int column = 0; column < ASSAY_MLA_D_V; column++) {
        const int64_t in_slice = i * 64 + column % 64;
        double value = assay_mla_oracle_out(oracle, i, column);
        const double error =
            totals.sum_error < 0.5
                ? value_error(bound, row, &totals, oracle,
                              oracle->output_cost[column / 64][in_slice], value)
                : none;
        const double allowed = assay_mla_output_bound(expected->format, error, &value);
        expect_element(expected->out, index * ASSAY_MLA_D_V + column, value, allowed);
    }
    const double keys = (double)oracle->row[i].keys;
    expect_element(expected->lse, at, assay_mla_oracle_lse(oracle, i),
                   totals.own_sum_error < 0.5
                       ? unit * lse_bound(bound, row, &totals, oracle->row[i].total, keys)
                       : none);
    if (expected->max_logits)
        expect_element(expected->max_logits, at, assay_mla_oracle_max_logit(oracle, i),
                       unit * max_logit_bound(row));
}

static void expect_rows(const struct assay_mla_bound *bound,
                        const struct assay_mla_oracle *oracle,
                        const struct expected_outputs *expected)
{
    for (int64_t i = 0; i < oracle->row_count; i++)
        if (bound->row[i].is_claimed)
            expect_row(bound, oracle, i, expected);
        else
            expect_special(bound, oracle, i, expected);
}

/* --- hooks ------------------------------------------------------------------------ */

/* Moves the claims about rounded keys to the function of the stored ones. */
static void move_element(const struct assay_expected *expected, int64_t at, double stored)
{
    const double rounded = expected->value[at];
    if (rounded == stored || (isnan(rounded) && isnan(stored))) return;
    const double distance = fabs(rounded - stored);
    expect_element(expected, at, stored,
                   isfinite(distance) ? expected->bound[at] + distance * SLACK
                                      : (double)INFINITY);
}

static void move_rows(const struct assay_mla_oracle *oracle,
                      const struct expected_outputs *expected)
{
    const struct assay_mla_part *const part = oracle->part;
    for (int64_t i = 0; i < oracle->row_count; i++) {
        const int64_t row = oracle->first_row + i;
        const int64_t at = row % part->heads * part->tokens + row / part->heads;
        for (int column = 0; column < ASSAY_MLA_D_V; column++)
            move_element(expected->out, row * ASSAY_MLA_D_V + column,
                         assay_mla_oracle_out(oracle, i, column));
        move_element(expected->lse, at, assay_mla_oracle_lse(oracle, i));
        if (expected->max_logits)
            move_element(expected->max_logits, at, assay_mla_oracle_max_logit(oracle, i));
    }
}

static enum assay_status expect_part(const struct assay_mla_numerics *numerics,
                                     struct assay_mla_part *part,
                                     const struct expected_outputs *expected)
{
    enum assay_status status = ASSAY_OUT_OF_MEMORY;
    const struct assay_mla_precision precision =
        assay_mla_precision_of(numerics, expected->format);
    struct assay_mla_oracle *const oracle = assay_mla_oracle_open(part);
    struct assay_mla_bound *const bound = malloc(sizeof(*bound));
    if (!oracle || !bound) goto done;

    bound->precision = &precision;
    bound->part = part;
    bound->c = part->softmax_scale * LOG2_E;
    const struct assay_mla_observer observer = { bound, assay_mla_start_rows,
                                                 assay_mla_charge_block };
    for (int64_t row = 0; row < part->tokens * part->heads; row += oracle->row_count) {
        part->keys.reading = numerics->dequantisation == ASSAY_MLA_SCALE_TO_BF16
                                 ? ASSAY_MLA_BF16_OF_BF16S
                                 : ASSAY_MLA_BF16_OF_SINGLE;
        assay_mla_oracle_rows(oracle, row, &observer);
        expect_rows(bound, oracle, expected);
        if (!oracle->was_rounded) continue;
        part->keys.reading = ASSAY_MLA_AS_STORED;
        assay_mla_oracle_rows(oracle, row, NULL);
        move_rows(oracle, expected);
    }
    status = ASSAY_RAN;
done:
    assay_mla_oracle_close(oracle);
    free(bound);
    return status;
}

static const struct assay_expected *expected_of(const struct assay_tensors *tensors,
                                                const struct assay_expected *expected,
                                                const char *name)
{
    return &expected[assay_tensors_find(tensors, name) - tensors->item];
}

enum assay_status assay_mla_dense_decode_expect(const void *problem, const void *numerics,
                                                const struct assay_tensors *tensors,
                                                int64_t part,
                                                const struct assay_expected *expected)
{
    const struct assay_mla_dense_decode_problem *const dense = problem;
    const struct expected_outputs outputs = {
        .out = expected_of(tensors, expected, "out"),
        .lse = expected_of(tensors, expected, "lse"),
        .format = dense->format,
    };
    struct assay_mla_part of;
    assay_mla_dense_decode_part(dense, tensors, part, &of);
    return expect_part(numerics, &of, &outputs);
}

enum assay_status assay_mla_sparse_decode_expect(const void *problem,
                                                 const void *numerics,
                                                 const struct assay_tensors *tensors,
                                                 int64_t part,
                                                 const struct assay_expected *expected)
{
    const struct expected_outputs outputs = {
        .out = expected_of(tensors, expected, "out"),
        .lse = expected_of(tensors, expected, "lse"),
        .format = ASSAY_BF16,
    };
    struct assay_mla_part of;
    assay_mla_sparse_decode_part(problem, tensors, part, &of);
    return expect_part(numerics, &of, &outputs);
}

enum assay_status assay_mla_sparse_prefill_expect(const void *problem,
                                                  const void *numerics,
                                                  const struct assay_tensors *tensors,
                                                  int64_t part,
                                                  const struct assay_expected *expected)
{
    const struct expected_outputs outputs = {
        .out = expected_of(tensors, expected, "out"),
        .lse = expected_of(tensors, expected, "lse"),
        .max_logits = expected_of(tensors, expected, "max_logits"),
        .format = ASSAY_BF16,
    };
    struct assay_mla_part of;
    assay_mla_sparse_prefill_part(problem, tensors, part, &of);
    return expect_part(numerics, &of, &outputs);
}
