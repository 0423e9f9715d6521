/* SPDX-License-Identifier: MIT */
/* Exact block sums through products of tiles of doubles, then pairs of doubles.
 *
 * Why those are exact, whatever the order, blocking or fusing: values of a side are
 * integers below 2^width in one unit, so every partial sum of 2^n products is an integer
 * below 2^(widths + n): a double if that exponent is at most 53. The width of e4m3 is 18.
 * Where those of e5m2 are too large, its two parts (fp8_gemm_side.h) have 17 bits each,
 * and a product of parts has 36 bits at most: a slice of 2^8 of them is exact.
 *
 * Why adding slices and parts as pairs is exact: everything is a multiple of 2^-32, and
 * up to k = 2^40 below 2^72. Low parts are at most half a unit in the last place of a
 * high part, below 2^19, so the sum of three is a multiple of 2^-32 below 2^21: a
 * double. */
#include "ref/oracle/fp8_gemm.h"

#include "ref/instruction_sets.h"
#include "ref/oracle/tile_gemm.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = ASSAY_FP8_GEMM_COLUMNS, WORD = 64, DOUBLE_BITS = 53 };

_Static_assert(ASSAY_FP8_GEMM_SLICE_K <= 1 << 8, "as derived above");
_Static_assert((int)ASSAY_FP8_GEMM_TILE_M == (int)ASSAY_FP8_GEMM_SIDE &&
                   (int)ASSAY_FP8_GEMM_TILE_N == (int)ASSAY_FP8_GEMM_SIDE,
               "one side fits a and b");
_Static_assert((int)ASSAY_TILE_GEMM_COLUMNS == (int)LINE, "rows have one length");

#define LARGEST_K (INT64_C(1) << 40)
/* Magnitudes are exact up to here when they are sums of 36-bit integers. */
#define LARGEST_EXACT_K (INT64_C(1) << 17)

static double c_at(const struct assay_tensor *tensor, int64_t i, int64_t j)
{
    float value;
    const char *const from = tensor->data;
    const int64_t element = i * tensor->stride[0] + j * tensor->stride[1];
    memcpy(&value, from + (size_t)element * sizeof value, sizeof value);
    return (double)value;
}

struct assay_fp8_gemm_oracle *
assay_fp8_gemm_oracle_open(const struct assay_fp8_gemm_problem *problem,
                           const struct assay_tensors *tensors, int64_t part)
{
    assert(problem->k <= LARGEST_K);
    struct assay_fp8_gemm_oracle *const oracle =
        aligned_alloc(_Alignof(struct assay_fp8_gemm_oracle), sizeof *oracle);
    if (!oracle) return NULL;

    const struct assay_fp8_gemm_tile_range range =
        assay_fp8_gemm_part_range(problem, part);
    oracle->problem = problem;
    oracle->is_portable = !assay_has_avx512();
    assay_fp8_gemm_side_open(&oracle->side[0], assay_tensors_find(tensors, "a"),
                             assay_tensors_find(tensors, "sfa"), range.m0, range.rows,
                             problem->gran_m, false);
    assay_fp8_gemm_side_open(&oracle->side[1], assay_tensors_find(tensors, "b"),
                             assay_tensors_find(tensors, "sfb"), range.n0, range.columns,
                             problem->gran_n, true);
    oracle->c = problem->has_c ? assay_tensors_find(tensors, "c") : NULL;
    assert(!problem->has_c || oracle->c);
    assay_fp8_gemm_side_start(&oracle->side[0], 0);
    assay_fp8_gemm_side_start(&oracle->side[1], 0);
    memset(oracle->total, 0, sizeof oracle->total);
    memset(oracle->total_low, 0, sizeof oracle->total_low);
    memset(oracle->total_special, 0, sizeof oracle->total_special);
    return oracle;
}

void assay_fp8_gemm_oracle_close(struct assay_fp8_gemm_oracle *oracle)
{
    free(oracle);
}

int64_t assay_fp8_gemm_oracle_slice(struct assay_fp8_gemm_oracle *oracle, int64_t done)
{
    const int64_t rest = oracle->k_count - done;
    const int64_t count = rest < ASSAY_FP8_GEMM_SLICE_K ? rest : ASSAY_FP8_GEMM_SLICE_K;
    assay_fp8_gemm_side_load(&oracle->side[0], oracle->k0 + done, count);
    assay_fp8_gemm_side_load(&oracle->side[1], oracle->k0 + done, count);
    return count;
}

void assay_fp8_gemm_oracle_multiply(struct assay_fp8_gemm_oracle *oracle, int64_t count,
                                    enum assay_fp8_reading a, enum assay_fp8_reading b,
                                    bool is_added, double *product)
{
    struct assay_fp8_gemm_side *const side = oracle->side;
    assay_fp8_gemm_side_read(&side[0], count, a);
    assay_fp8_gemm_side_read(&side[1], count, b);
    const struct assay_tile_gemm gemm = { side[0].count,  count,
                                          side[0].factor, ASSAY_FP8_GEMM_SLICE_K,
                                          side[1].factor, is_added };
    if (oracle->is_portable)
        assay_tile_gemm_portable(&gemm, product);
    else
        assay_tile_gemm_fast(&gemm, product);
}

/* --- loops over the outputs, a line at a time -------------------------------------- */

ASSAY_EACH_INSTRUCTION_SET
static void add_lines(double *restrict to, const double *restrict from, int64_t lines)
{
    for (; lines > 0; lines--, to += LINE, from += LINE)
        for (int j = 0; j < LINE; j++)
            to[j] += from[j];
}

ASSAY_EACH_INSTRUCTION_SET
static void add_pairs(double *restrict high, double *restrict low,
                      const double *restrict from, int64_t lines)
{
    for (; lines > 0; lines--, high += LINE, low += LINE, from += LINE)
        for (int j = 0; j < LINE; j++) {
            const struct assay_pair sum =
                assay_pair_add((struct assay_pair){ high[j], low[j] },
                               (struct assay_pair){ from[j], 0 });
            high[j] = sum.high;
            low[j] = sum.low;
        }
}

ASSAY_EACH_INSTRUCTION_SET
static void count_pairs(double *nonzero, const struct assay_fp8_gemm_side *a,
                        const struct assay_fp8_gemm_side *b, int64_t words)
{
    for (int64_t i = 0; i < a->count; i++, nonzero += LINE)
        for (int64_t j = 0; j < b->count; j++) {
            int count = 0;
            for (int64_t word = 0; word < words; word++)
                count += __builtin_popcountll(a->nonzero[i][word] & b->nonzero[j][word]);
            nonzero[j] += count;
        }
}

/* Terms scale * sum; each scale has 48 bits, and its exponent is that of no subnormal
 * double: exact. */
ASSAY_EACH_INSTRUCTION_SET
static void add_term_lines(double *restrict total, double *restrict total_low,
                           const double *restrict sum, int64_t lines,
                           const float *restrict a, const float *restrict b)
{
    for (int64_t i = 0; i < lines; i++, total += LINE, total_low += LINE, sum += LINE) {
        const double row_scale = (double)a[i];
        for (int j = 0; j < LINE; j++) {
            const struct assay_pair term =
                assay_pair_product(row_scale * (double)b[j], sum[j]);
            const struct assay_pair added =
                assay_pair_add((struct assay_pair){ total[j], total_low[j] }, term);
            total[j] = added.high;
            total_low[j] = added.low;
        }
    }
}

/* --- one slice --------------------------------------------------------------------- */

static int bits_of_count(int64_t count)
{
    int bits = 0;
    while (INT64_C(1) << bits < count)
        bits++;
    return bits;
}

static void add_sums(struct assay_fp8_gemm_oracle *oracle, int64_t count, bool is_narrow)
{
    const int64_t rows = oracle->side[0].count;
    if (is_narrow) {
        assay_fp8_gemm_oracle_multiply(oracle, count, ASSAY_FP8_VALUE, ASSAY_FP8_VALUE,
                                       false, oracle->scratch);
        add_pairs(oracle->sum, oracle->sum_low, oracle->scratch, rows);
        return;
    }
    static const enum assay_fp8_reading parts[] = { ASSAY_FP8_LARGE_PART,
                                                    ASSAY_FP8_SMALL_PART };
    const struct assay_fp8_gemm_side *const a = &oracle->side[0], *const b = a + 1;
    for (int i = 0; i < assay_fp8_gemm_side_parts(a); i++)
        for (int j = 0; j < assay_fp8_gemm_side_parts(b); j++) {
            assay_fp8_gemm_oracle_multiply(oracle, count, parts[i], parts[j], false,
                                           oracle->scratch);
            add_pairs(oracle->sum, oracle->sum_low, oracle->scratch, rows);
        }
}

static void add_magnitudes(struct assay_fp8_gemm_oracle *oracle, int64_t count,
                           bool is_narrow)
{
    const int64_t rows = oracle->side[0].count;
    const bool is_padded = assay_fp8_gemm_side_may_have_subnormal(&oracle->side[0]) ||
                           assay_fp8_gemm_side_may_have_subnormal(&oracle->side[1]);
    if (is_narrow) {
        assay_fp8_gemm_oracle_multiply(oracle, count, ASSAY_FP8_MAGNITUDE,
                                       ASSAY_FP8_MAGNITUDE, false, oracle->scratch);
        add_lines(oracle->absolute, oracle->scratch, rows);
    }
    if (!is_narrow || is_padded)
        assay_fp8_gemm_oracle_multiply(oracle, count, ASSAY_FP8_PADDED, ASSAY_FP8_PADDED,
                                       false, oracle->scratch);
    add_lines(oracle->magnitude, oracle->scratch, rows);
}

static bool has_zero_or_special(const struct assay_fp8_gemm_side *side)
{
    return assay_fp8_gemm_side_has_zero(side) || assay_fp8_gemm_side_has_special(side);
}

static void add_nonzero(struct assay_fp8_gemm_oracle *oracle, int64_t count)
{
    const struct assay_fp8_gemm_side *const a = &oracle->side[0], *const b = a + 1;
    if (has_zero_or_special(a) || has_zero_or_special(b)) {
        count_pairs(oracle->nonzero, a, b, (count + WORD - 1) / WORD);
        return;
    }
    for (int64_t i = 0; i < a->count; i++)
        for (int64_t j = 0; j < b->count; j++)
            oracle->nonzero[i * LINE + j] += (double)count;
}

static uint8_t special_product(enum assay_fp8_kind a, enum assay_fp8_kind b,
                               bool is_negative)
{
    if (a == ASSAY_FP8_NAN || b == ASSAY_FP8_NAN) return ASSAY_ORACLE_NAN;
    if (a == ASSAY_FP8_ZERO || b == ASSAY_FP8_ZERO) return ASSAY_ORACLE_NAN;
    return is_negative ? ASSAY_ORACLE_MINUS_INFINITY : ASSAY_ORACLE_PLUS_INFINITY;
}

/* Products of the special codes of side @of with everything on the other side. */
static void add_special(struct assay_fp8_gemm_oracle *oracle, int of, int64_t k0,
                        int64_t count)
{
    const struct assay_fp8_gemm_side *const side = &oracle->side[of];
    const struct assay_fp8_gemm_side *const other = &oracle->side[!of];
    if (!assay_fp8_gemm_side_has_special(side)) return;
    oracle->has_special = true;
    for (int64_t i = 0; i < side->count; i++)
        for (int64_t k = k0; k < k0 + count; k++) {
            const unsigned code = assay_fp8_gemm_side_code(side, i, k);
            const enum assay_fp8_kind kind = side->table[code].kind;
            if (kind <= ASSAY_FP8_FINITE) continue;
            for (int64_t j = 0; j < other->count; j++) {
                const unsigned other_code = assay_fp8_gemm_side_code(other, j, k);
                const int64_t at = of ? j * LINE + i : i * LINE + j;
                oracle->special[at] |= special_product(
                    kind, other->table[other_code].kind, (code ^ other_code) & 0x80);
            }
        }
}

/* --- one range --------------------------------------------------------------------- */

static void inflate_magnitudes(struct assay_fp8_gemm_oracle *oracle)
{
    const bool is_e4m3 = oracle->side[0].codes->format == ASSAY_E4M3 &&
                         oracle->side[1].codes->format == ASSAY_E4M3;
    if (is_e4m3 && oracle->k_count < LARGEST_EXACT_K) return;
    for (int at = 0; at < ASSAY_FP8_GEMM_TILE; at++)
        oracle->magnitude[at] *= 1 + 0x1p-24;
}

/* Of a finite term, nothing. */
static uint8_t special_of(double term)
{
    if (isnan(term)) return ASSAY_ORACLE_NAN;
    if (!isinf(term)) return 0;
    return term > 0 ? ASSAY_ORACLE_PLUS_INFINITY : ASSAY_ORACLE_MINUS_INFINITY;
}

static double special_value(unsigned special)
{
    const unsigned both = ASSAY_ORACLE_PLUS_INFINITY | ASSAY_ORACLE_MINUS_INFINITY;
    if (special & ASSAY_ORACLE_NAN || (special & both) == both) return (double)NAN;
    return special == ASSAY_ORACLE_PLUS_INFINITY ? (double)INFINITY : -(double)INFINITY;
}

static void add_pair(struct assay_fp8_gemm_oracle *oracle, int64_t at,
                     struct assay_pair term)
{
    const struct assay_pair total = { oracle->total[at], oracle->total_low[at] };
    const struct assay_pair sum = assay_pair_add(total, term);
    oracle->total[at] = sum.high;
    oracle->total_low[at] = sum.low;
}

static void add_term(struct assay_fp8_gemm_oracle *oracle, int64_t at, double scale)
{
    const unsigned special = oracle->special[at];
    const double sum = oracle->sum[at], low = oracle->sum_low[at];
    const double rounded = special ? scale * special_value(special) : scale * sum;
    if (!isfinite(rounded)) {
        oracle->total_special[at] |= special_of(rounded);
        return;
    }
    add_pair(oracle, at, assay_pair_product(scale, sum));
    if (low != 0) add_pair(oracle, at, assay_pair_product(scale, low));
}

static void add_terms(struct assay_fp8_gemm_oracle *oracle)
{
    const struct assay_fp8_gemm_side *const a = &oracle->side[0], *const b = a + 1;
    if (oracle->has_special || !a->are_scales_finite || !b->are_scales_finite) {
        for (int64_t i = 0; i < a->count; i++)
            for (int64_t j = 0; j < b->count; j++)
                add_term(oracle, i * LINE + j, (double)a->scale[i] * (double)b->scale[j]);
        return;
    }
    add_term_lines(oracle->total, oracle->total_low, oracle->sum, a->count, a->scale,
                   b->scale);
    if (oracle->is_narrow) return;
    add_term_lines(oracle->total, oracle->total_low, oracle->sum_low, a->count, a->scale,
                   b->scale);
}

static void start_range(struct assay_fp8_gemm_oracle *oracle, int64_t k0, int64_t k_count)
{
    const int64_t k_block = k0 / oracle->problem->gran_k;
    assert(k_count > 0 && k0 + k_count <= oracle->problem->k);
    assert((k0 + k_count - 1) / oracle->problem->gran_k == k_block);

    oracle->k0 = k0;
    oracle->k_count = k_count;
    assay_fp8_gemm_side_start(&oracle->side[0], k_block);
    assay_fp8_gemm_side_start(&oracle->side[1], k_block);
    memset(oracle->sum, 0, sizeof oracle->sum);
    memset(oracle->sum_low, 0, sizeof oracle->sum_low);
    memset(oracle->absolute, 0, sizeof oracle->absolute);
    memset(oracle->magnitude, 0, sizeof oracle->magnitude);
    memset(oracle->nonzero, 0, sizeof oracle->nonzero);
    memset(oracle->special, 0, sizeof oracle->special);
    oracle->has_special = false;
}

void assay_fp8_gemm_oracle_range(struct assay_fp8_gemm_oracle *oracle, int64_t k0,
                                 int64_t k_count)
{
    struct assay_fp8_gemm_side *const a = &oracle->side[0], *const b = a + 1;
    start_range(oracle, k0, k_count);
    for (int64_t done = 0; done < k_count; done += ASSAY_FP8_GEMM_SLICE_K) {
        const int64_t count = assay_fp8_gemm_oracle_slice(oracle, done);
        const int width = assay_fp8_gemm_side_width(a) + assay_fp8_gemm_side_width(b);
        const bool is_narrow = width + bits_of_count(count) <= DOUBLE_BITS;
        add_sums(oracle, count, is_narrow);
        add_magnitudes(oracle, count, is_narrow);
        add_nonzero(oracle, count);
        add_special(oracle, 0, k0 + done, count);
        add_special(oracle, 1, k0 + done, count);
    }
    assay_fp8_gemm_side_finish(a);
    assay_fp8_gemm_side_finish(b);
    oracle->is_narrow = a->width + b->width + bits_of_count(k_count) < DOUBLE_BITS;
    inflate_magnitudes(oracle);
    add_terms(oracle);
}

/* --- results ----------------------------------------------------------------------- */

double assay_fp8_gemm_oracle_c(const struct assay_fp8_gemm_oracle *oracle, int64_t i,
                               int64_t j)
{
    if (!oracle->c) return 0;
    return c_at(oracle->c, oracle->side[0].first + i, oracle->side[1].first + j);
}

struct assay_pair assay_fp8_gemm_oracle_total(const struct assay_fp8_gemm_oracle *oracle,
                                              int64_t i, int64_t j)
{
    const int64_t at = i * LINE + j;
    return (struct assay_pair){ oracle->total[at], oracle->total_low[at] };
}

struct assay_pair assay_fp8_gemm_oracle_sum(const struct assay_fp8_gemm_oracle *oracle,
                                            int64_t i, int64_t j)
{
    const double c = assay_fp8_gemm_oracle_c(oracle, i, j);
    return assay_pair_add(assay_fp8_gemm_oracle_total(oracle, i, j),
                          (struct assay_pair){ c, 0 });
}

static double value_at(const struct assay_fp8_gemm_oracle *oracle, int64_t i, int64_t j)
{
    const unsigned special = oracle->total_special[i * LINE + j] |
                             special_of(assay_fp8_gemm_oracle_c(oracle, i, j));
    return special ? special_value(special)
                   : assay_fp8_gemm_oracle_sum(oracle, i, j).high;
}

bool assay_fp8_gemm_oracle_part(const struct assay_fp8_gemm_problem *problem,
                                const struct assay_tensors *tensors, int64_t part,
                                double *value)
{
    struct assay_fp8_gemm_oracle *const oracle =
        assay_fp8_gemm_oracle_open(problem, tensors, part);
    if (!oracle) return false;
    for (int64_t k0 = 0; k0 < problem->k; k0 += problem->gran_k) {
        const int64_t rest = problem->k - k0;
        assay_fp8_gemm_oracle_range(oracle, k0,
                                    rest < problem->gran_k ? rest : problem->gran_k);
    }
    for (int64_t i = 0; i < oracle->side[0].count; i++)
        for (int64_t j = 0; j < oracle->side[1].count; j++)
            *value++ = value_at(oracle, i, j);
    assay_fp8_gemm_oracle_close(oracle);
    return true;
}
