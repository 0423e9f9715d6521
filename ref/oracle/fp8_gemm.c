/* SPDX-License-Identifier: MIT */
/* Exact block sums through DGEMM, then pairs of doubles.
 *
 * Why DGEMM is exact here, whatever the order, blocking or fusing inside it: in a product
 * of two parts (fp8_code.h) every term is an integer below 2^36 in a common unit (e4m3 by
 * e4m3: 18 + 18 bits of 2^-18; mixed: 18 + 17; e5m2 by e5m2: 17 + 17), so every partial
 * sum of fewer than 2^17 of them is an integer below 2^53. A slice has 256.
 *
 * Why adding slices and parts as pairs is exact: everything is a multiple of 2^-32, and
 * up to k = 2^40 below 2^72. Low parts are at most half a unit in the last place of a
 * high part, below 2^19, so the sum of three is a multiple of 2^-32 below 2^21: a
 * double. */
#include "ref/oracle/fp8_gemm.h"

#include <assert.h>
#include <cblas.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 64 };

_Static_assert(ASSAY_FP8_GEMM_SLICE_K <= 1 << 8, "slice_residue adds 8 bits");
_Static_assert(ASSAY_FP8_GEMM_SLICE_K < 1 << 17, "block sums stay below 2^53");
_Static_assert(ASSAY_FP8_GEMM_SLICE_K % WORD == 0, "masks are whole words");
_Static_assert((int)ASSAY_FP8_GEMM_TILE_M == (int)ASSAY_FP8_GEMM_TILE_N,
               "one side fits a and b");

#define LARGEST_K (INT64_C(1) << 40)
/* Magnitudes are exact up to here when they are sums of 36-bit integers. */
#define LARGEST_EXACT_K (INT64_C(1) << 17)

static float f32_at(const struct assay_tensor *tensor, int64_t i, int64_t j)
{
    float value;
    const char *const from = tensor->data;
    const int64_t element = i * tensor->stride[0] + j * tensor->stride[1];
    memcpy(&value, from + (size_t)element * sizeof value, sizeof value);
    return value;
}

static int64_t words_of(int64_t count)
{
    return (count + WORD - 1) / WORD;
}

static unsigned code_at(const struct assay_fp8_gemm_side *side, int64_t i, int64_t k)
{
    const struct assay_tensor *const codes = side->codes;
    const unsigned char *const from = codes->data;
    return from[(side->first + i) * codes->stride[0] + k * codes->stride[1]];
}

static void open_side(struct assay_fp8_gemm_side *side, const struct assay_tensor *codes,
                      const struct assay_tensor *scales, int64_t first, int64_t count,
                      int64_t granularity)
{
    assert(codes && scales);
    side->codes = codes;
    side->scales = scales;
    side->first = first;
    side->count = count;
    side->granularity = granularity;
    side->parts = assay_fp8_codes(codes->format, side->table);
}

static void start_side(struct assay_fp8_gemm_side *side, int64_t k_block)
{
    for (int64_t i = 0; i < side->count; i++) {
        const int64_t row = (side->first + i) / side->granularity;
        side->scale[i] = f32_at(side->scales, row, k_block);
        side->lsb[i] = ASSAY_FP8_NO_LSB;
        side->exponent[i] = ASSAY_FP8_NO_EXPONENT;
    }
}

struct assay_fp8_gemm_oracle *
assay_fp8_gemm_oracle_open(const struct assay_fp8_gemm_problem *problem,
                           const struct assay_tensors *tensors, int64_t part)
{
    assert(problem->k <= LARGEST_K);
    struct assay_fp8_gemm_oracle *const oracle = malloc(sizeof *oracle);
    if (!oracle) return NULL;

    const struct assay_fp8_gemm_tile_range range =
        assay_fp8_gemm_part_range(problem, part);
    oracle->problem = problem;
    open_side(&oracle->side[0], assay_tensors_find(tensors, "a"),
              assay_tensors_find(tensors, "sfa"), range.m0, range.rows, problem->gran_m);
    open_side(&oracle->side[1], assay_tensors_find(tensors, "b"),
              assay_tensors_find(tensors, "sfb"), range.n0, range.columns,
              problem->gran_n);
    oracle->c = problem->has_c ? assay_tensors_find(tensors, "c") : NULL;
    assert(!problem->has_c || oracle->c);
    oracle->outputs = range.rows * range.columns;
    start_side(&oracle->side[0], 0);
    start_side(&oracle->side[1], 0);
    memset(oracle->total, 0, sizeof oracle->total);
    memset(oracle->total_special, 0, sizeof oracle->total_special);
    return oracle;
}

void assay_fp8_gemm_oracle_close(struct assay_fp8_gemm_oracle *oracle)
{
    free(oracle);
}

static void load_row(struct assay_fp8_gemm_side *side, int64_t i, int64_t k0,
                     int64_t count)
{
    double *const first = side->part[0] + i * ASSAY_FP8_GEMM_SLICE_K;
    double *const second = side->part[1] + i * ASSAY_FP8_GEMM_SLICE_K;
    double *const padded = side->padded + i * ASSAY_FP8_GEMM_SLICE_K;
    uint32_t *const units = side->units + i * ASSAY_FP8_GEMM_SLICE_K;
    int lsb = side->lsb[i], exponent = side->exponent[i];
    memset(side->nonzero[i], 0, sizeof side->nonzero[i]);
    for (int64_t k = 0; k < count; k++) {
        const struct assay_fp8_code *const code = &side->table[code_at(side, i, k0 + k)];
        first[k] = code->part[0];
        second[k] = code->part[1];
        padded[k] = code->padded;
        units[k] = code->units;
        side->nonzero[i][k / WORD] |= (uint64_t)(code->kind == ASSAY_FP8_FINITE)
                                      << k % WORD;
        side->has_special |= code->kind > ASSAY_FP8_FINITE;
        lsb = code->lsb < lsb ? code->lsb : lsb;
        exponent = code->exponent > exponent ? code->exponent : exponent;
    }
    for (int64_t k = count; k % WORD; k++)
        units[k] = 0;
    side->lsb[i] = lsb;
    side->exponent[i] = exponent;
}

/* The slice that begins @done elements into the range; returns its length. */
static int64_t load_slices(struct assay_fp8_gemm_oracle *oracle, int64_t done)
{
    const int64_t rest = oracle->k_count - done;
    const int64_t count = rest < ASSAY_FP8_GEMM_SLICE_K ? rest : ASSAY_FP8_GEMM_SLICE_K;
    for (int which = 0; which < 2; which++) {
        struct assay_fp8_gemm_side *const side = &oracle->side[which];
        side->has_special = false;
        for (int64_t i = 0; i < side->count; i++)
            load_row(side, i, oracle->k0 + done, count);
    }
    return count;
}

static void multiply(struct assay_fp8_gemm_oracle *oracle, const double *a,
                     const double *b, int64_t count, bool accumulates, double *product)
{
    const int rows = (int)oracle->side[0].count, columns = (int)oracle->side[1].count;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, columns, (int)count, 1, a,
                ASSAY_FP8_GEMM_SLICE_K, b, ASSAY_FP8_GEMM_SLICE_K, accumulates ? 1 : 0,
                product, columns);
}

static void add_sums(struct assay_fp8_gemm_oracle *oracle, int64_t count)
{
    for (int i = 0; i < oracle->side[0].parts; i++)
        for (int j = 0; j < oracle->side[1].parts; j++) {
            multiply(oracle, oracle->side[0].part[i], oracle->side[1].part[j], count,
                     false, oracle->scratch);
            for (int64_t at = 0; at < oracle->outputs; at++)
                oracle->sum[at] = assay_pair_add(
                    oracle->sum[at], (struct assay_pair){ oracle->scratch[at], 0 });
        }
}

static void add_nonzero(struct assay_fp8_gemm_oracle *oracle, int64_t count)
{
    const int64_t words = words_of(count);
    int64_t *nonzero = oracle->nonzero;
    for (int64_t i = 0; i < oracle->side[0].count; i++)
        for (int64_t j = 0; j < oracle->side[1].count; j++, nonzero++)
            for (int64_t word = 0; word < words; word++)
                *nonzero += __builtin_popcountll(oracle->side[0].nonzero[i][word] &
                                                 oracle->side[1].nonzero[j][word]);
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
    if (!side->has_special) return;
    oracle->has_special = true;
    for (int64_t i = 0; i < side->count; i++)
        for (int64_t k = k0; k < k0 + count; k++) {
            const unsigned code = code_at(side, i, k);
            const enum assay_fp8_kind kind = side->table[code].kind;
            if (kind <= ASSAY_FP8_FINITE) continue;
            for (int64_t j = 0; j < other->count; j++) {
                const unsigned other_code = code_at(other, j, k);
                const int64_t at = of ? j * side->count + i : i * other->count + j;
                oracle->special[at] |= special_product(
                    kind, other->table[other_code].kind, (code ^ other_code) & 0x80);
            }
        }
}

static void inflate_magnitudes(struct assay_fp8_gemm_oracle *oracle, int64_t k_count)
{
    const bool is_e4m3 = oracle->side[0].parts == 1 && oracle->side[1].parts == 1;
    if (is_e4m3 && k_count < LARGEST_EXACT_K) return;
    for (int64_t at = 0; at < oracle->outputs; at++)
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

/* @scale is exact: it has 48 bits, and its exponent is that of no subnormal double. */
static void add_term(struct assay_fp8_gemm_oracle *oracle, int64_t at, double scale)
{
    const unsigned special = oracle->special[at];
    const struct assay_pair sum = oracle->sum[at];
    const double rounded = special ? scale * special_value(special) : scale * sum.high;
    if (!isfinite(rounded)) {
        oracle->total_special[at] |= special_of(rounded);
        return;
    }
    struct assay_pair *const total = &oracle->total[at];
    *total = assay_pair_add(*total, assay_pair_product(scale, sum.high));
    if (sum.low != 0) *total = assay_pair_add(*total, assay_pair_product(scale, sum.low));
}

static void add_terms(struct assay_fp8_gemm_oracle *oracle)
{
    const struct assay_fp8_gemm_side *const a = &oracle->side[0], *const b = a + 1;
    int64_t at = 0;
    for (int64_t i = 0; i < a->count; i++)
        for (int64_t j = 0; j < b->count; j++, at++)
            add_term(oracle, at, (double)a->scale[i] * (double)b->scale[j]);
}

void assay_fp8_gemm_oracle_range(struct assay_fp8_gemm_oracle *oracle, int64_t k0,
                                 int64_t k_count)
{
    const int64_t k_block = k0 / oracle->problem->gran_k;
    assert(k_count > 0 && k0 + k_count <= oracle->problem->k);
    assert((k0 + k_count - 1) / oracle->problem->gran_k == k_block);

    oracle->k0 = k0;
    oracle->k_count = k_count;
    start_side(&oracle->side[0], k_block);
    start_side(&oracle->side[1], k_block);
    memset(oracle->sum, 0, sizeof oracle->sum);
    memset(oracle->nonzero, 0, sizeof oracle->nonzero);
    memset(oracle->special, 0, sizeof oracle->special);
    oracle->has_special = false;
    for (int64_t done = 0; done < k_count; done += ASSAY_FP8_GEMM_SLICE_K) {
        const int64_t count = load_slices(oracle, done);
        add_sums(oracle, count);
        multiply(oracle, oracle->side[0].padded, oracle->side[1].padded, count, done > 0,
                 oracle->magnitude);
        add_nonzero(oracle, count);
        add_special(oracle, 0, k0 + done, count);
        add_special(oracle, 1, k0 + done, count);
    }
    inflate_magnitudes(oracle, k_count);
    add_terms(oracle);
}

/* Sum of a[k] * b[k] modulo 2^@bits over one slice. Products are below 2^64; only where
 * their sum might not be, it is kept in halves. */
static double slice_residue(const uint32_t *a, const uint32_t *b, int64_t words, int bits)
{
    const uint64_t mask = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
    uint64_t sum = 0, high = 0;
    if (bits <= 64 - 8) {
        for (int64_t word = 0; word < words; word++, a += WORD, b += WORD)
            for (int k = 0; k < WORD; k++)
                sum += (uint64_t)a[k] * b[k] & mask;
        return (double)sum;
    }
    for (int64_t k = 0; k < words * WORD; k++) {
        const uint64_t product = (uint64_t)a[k] * b[k] & mask;
        sum += product & UINT32_MAX;
        high += product >> 32;
    }
    return (double)high * 0x1p32 + (double)sum;
}

static int unit_exponent(const struct assay_fp8_gemm_side *side)
{
    return side->codes->format == ASSAY_E4M3 ? -9 : -16;
}

void assay_fp8_gemm_oracle_residues(struct assay_fp8_gemm_oracle *oracle,
                                    const int *exponent, double *residue)
{
    const struct assay_fp8_gemm_side *const a = &oracle->side[0], *const b = a + 1;
    const int unit = unit_exponent(a) + unit_exponent(b);
    memset(residue, 0, (size_t)oracle->outputs * sizeof *residue);
    for (int64_t done = 0; done < oracle->k_count; done += ASSAY_FP8_GEMM_SLICE_K) {
        int64_t count = oracle->k_count;
        if (count > ASSAY_FP8_GEMM_SLICE_K) count = load_slices(oracle, done);
        for (int64_t at = 0; at < oracle->outputs; at++) {
            const int64_t i = at / b->count, j = at % b->count;
            if (exponent[at] <= a->lsb[i] + b->lsb[j]) continue;
            residue[at] += slice_residue(a->units + i * ASSAY_FP8_GEMM_SLICE_K,
                                         b->units + j * ASSAY_FP8_GEMM_SLICE_K,
                                         words_of(count), exponent[at] - unit);
        }
    }
    for (int64_t at = 0; at < oracle->outputs; at++)
        residue[at] = ldexp(residue[at], unit);
}

double assay_fp8_gemm_oracle_c(const struct assay_fp8_gemm_oracle *oracle, int64_t output)
{
    if (!oracle->c) return 0;
    const struct assay_fp8_gemm_side *const a = &oracle->side[0], *const b = a + 1;
    return (double)f32_at(oracle->c, a->first + output / b->count,
                          b->first + output % b->count);
}

struct assay_pair assay_fp8_gemm_oracle_sum(const struct assay_fp8_gemm_oracle *oracle,
                                            int64_t output)
{
    const double c = assay_fp8_gemm_oracle_c(oracle, output);
    return assay_pair_add(oracle->total[output], (struct assay_pair){ c, 0 });
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
    for (int64_t at = 0; at < oracle->outputs; at++) {
        const double c = assay_fp8_gemm_oracle_c(oracle, at);
        const unsigned special = oracle->total_special[at] | special_of(c);
        value[at] =
            special ? special_value(special) : assay_fp8_gemm_oracle_sum(oracle, at).high;
    }
    assay_fp8_gemm_oracle_close(oracle);
    return true;
}
