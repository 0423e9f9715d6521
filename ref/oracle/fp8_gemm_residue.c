/* SPDX-License-Identifier: MIT */
/* What truncating each product loses, in two ways that share nothing.
 *
 * Toward zero: an accumulator starts at 2^52 * q. As long as it stays below 2^53 * q, its
 * unit in the last place is q, and adding a product rounded toward zero adds the product
 * truncated to a multiple of q. What all of them lost is the exact sum minus the
 * accumulated one. Products are multiples of u, and in a narrow range their sum is less
 * than 2^52 * u; a q below u loses nothing and is replaced by u. In a range that is not
 * narrow this holds for the products of parts in one slice: below 2^(36 + 8) units.
 *
 * Integers: products modulo a power of two, one by one. */
#include "ref/instruction_sets.h"
#include "ref/oracle/fp8_gemm.h"
#include "ref/oracle/tile_gemm.h"

#include <math.h>
#include <string.h>

enum { LINE = ASSAY_FP8_GEMM_COLUMNS, WORD = 64 };
/* No product reaches 2^LARGEST_EXPONENT: the same is lost from there on. */
enum { LARGEST_EXPONENT = 100, DOUBLE_BIAS = 1023, DOUBLE_MANTISSA_BITS = 52 };

_Static_assert(ASSAY_FP8_GEMM_SLICE_K <= 1 << 8, "slice sums add 8 bits");

/* Fills @start with 2^52 * q. */
ASSAY_EACH_INSTRUCTION_SET
static void start_lines(double *restrict start, const int *restrict exponent,
                        int64_t lines, const int *restrict a_unit,
                        const int *restrict b_unit)
{
    for (int64_t i = 0; i < lines; i++, start += LINE, exponent += LINE)
        for (int j = 0; j < LINE; j++) {
            const int unit = a_unit[i] + b_unit[j];
            const int wanted = exponent[j] > unit ? exponent[j] : unit;
            const int quantum = wanted < LARGEST_EXPONENT ? wanted : LARGEST_EXPONENT;
            const uint64_t bits = (uint64_t)(quantum + DOUBLE_BIAS + DOUBLE_MANTISSA_BITS)
                                  << DOUBLE_MANTISSA_BITS;
            memcpy(&start[j], &bits, sizeof bits);
        }
}

/* @residue held the starts. */
ASSAY_EACH_INSTRUCTION_SET
static void subtract_lines(double *restrict residue, const double *restrict absolute,
                           const double *restrict reached, int64_t lines)
{
    for (; lines > 0; lines--, residue += LINE, absolute += LINE, reached += LINE)
        for (int j = 0; j < LINE; j++)
            residue[j] = absolute[j] - (reached[j] - residue[j]);
}

static void multiply_toward_zero(struct assay_fp8_gemm_oracle *oracle, int64_t count,
                                 enum assay_fp8_reading a, enum assay_fp8_reading b,
                                 double *product)
{
    struct assay_fp8_gemm_side *const side = oracle->side;
    assay_fp8_gemm_side_read(&side[0], count, a);
    assay_fp8_gemm_side_read(&side[1], count, b);
    const struct assay_tile_gemm gemm = { side[0].count,  count,
                                          side[0].factor, ASSAY_FP8_GEMM_SLICE_K,
                                          side[1].factor, true };
    assay_tile_gemm_toward_zero(&gemm, product);
}

static int64_t slice_at(struct assay_fp8_gemm_oracle *oracle, int64_t done)
{
    return oracle->k_count > ASSAY_FP8_GEMM_SLICE_K
               ? assay_fp8_gemm_oracle_slice(oracle, done)
               : oracle->k_count;
}

static void residues_of_narrow(struct assay_fp8_gemm_oracle *oracle, const int *exponent,
                               double *residue)
{
    const struct assay_fp8_gemm_side *const a = &oracle->side[0], *const b = a + 1;
    double *const reached = oracle->scratch;
    start_lines(residue, exponent, a->count, a->lsb, b->lsb);
    memcpy(reached, residue, (size_t)(a->count * LINE) * sizeof *reached);
    for (int64_t done = 0; done < oracle->k_count; done += ASSAY_FP8_GEMM_SLICE_K)
        multiply_toward_zero(oracle, slice_at(oracle, done), ASSAY_FP8_MAGNITUDE,
                             ASSAY_FP8_MAGNITUDE, reached);
    subtract_lines(residue, oracle->absolute, reached, a->count);
}

/* Products of part @i of a and part @j of b, of the slice in memory. */
static void add_residues_of_parts(struct assay_fp8_gemm_oracle *oracle, int64_t count,
                                  int i, int j, const int *exponent, double *residue)
{
    const struct assay_fp8_gemm_side *const a = &oracle->side[0], *const b = a + 1;
    static const enum assay_fp8_reading parts[] = { ASSAY_FP8_LARGE_MAGNITUDE,
                                                    ASSAY_FP8_SMALL_MAGNITUDE };
    double *const lost = oracle->start, *const reached = oracle->scratch;
    int a_unit[ASSAY_FP8_GEMM_SIDE], b_unit[ASSAY_FP8_GEMM_SIDE];
    for (int row = 0; row < ASSAY_FP8_GEMM_SIDE; row++) {
        a_unit[row] = assay_fp8_gemm_side_part_unit(a, i);
        b_unit[row] = assay_fp8_gemm_side_part_unit(b, j);
    }
    start_lines(lost, exponent, a->count, a_unit, b_unit);
    memcpy(reached, lost, (size_t)(a->count * LINE) * sizeof *reached);
    multiply_toward_zero(oracle, count, parts[i], parts[j], reached);
    assay_fp8_gemm_oracle_multiply(oracle, count, parts[i], parts[j], false,
                                   oracle->absolute);
    subtract_lines(lost, oracle->absolute, reached, a->count);
    for (int64_t at = 0; at < a->count * LINE; at++)
        residue[at] += lost[at];
}

static void residues_of_parts(struct assay_fp8_gemm_oracle *oracle, const int *exponent,
                              double *residue)
{
    const int a_parts = assay_fp8_gemm_side_parts(&oracle->side[0]);
    const int b_parts = assay_fp8_gemm_side_parts(&oracle->side[1]);
    memset(residue, 0, ASSAY_FP8_GEMM_TILE * sizeof *residue);
    for (int64_t done = 0; done < oracle->k_count; done += ASSAY_FP8_GEMM_SLICE_K) {
        const int64_t count = slice_at(oracle, done);
        for (int i = 0; i < a_parts; i++)
            for (int j = 0; j < b_parts; j++)
                add_residues_of_parts(oracle, count, i, j, exponent, residue);
    }
}

/* Sum of a[k] * b[k] modulo 2^@bits over one slice. Products are below 2^64; only where
 * their sum might not be, it is kept in halves. */
static inline double slice_residue(const uint32_t *restrict a, const uint32_t *restrict b,
                                   int64_t words, int bits)
{
    uint64_t sum = 0, high = 0;
    if (bits <= 32 - 8) {
        const uint32_t mask = (UINT32_C(1) << bits) - 1;
        uint32_t low = 0;
        for (int64_t word = 0; word < words; word++, a += WORD, b += WORD)
            for (int k = 0; k < WORD; k++)
                low += a[k] * b[k] & mask;
        return low;
    }
    const uint64_t mask = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
    if (bits <= 64 - 8) {
        for (int64_t word = 0; word < words; word++, a += WORD, b += WORD)
            for (int k = 0; k < WORD; k++)
                sum += (uint64_t)a[k] * b[k] & mask;
        return (double)sum;
    }
    for (int64_t word = 0; word < words; word++, a += WORD, b += WORD)
        for (int k = 0; k < WORD; k++) {
            const uint64_t product = (uint64_t)a[k] * b[k] & mask;
            sum += product & UINT32_MAX;
            high += product >> 32;
        }
    return (double)high * 0x1p32 + (double)sum;
}

ASSAY_EACH_INSTRUCTION_SET
static void add_residues(const struct assay_fp8_gemm_side *a,
                         const struct assay_fp8_gemm_side *b, int64_t words, int unit,
                         const int *exponent, double *residue)
{
    for (int64_t i = 0; i < a->count; i++)
        for (int64_t j = 0; j < b->count; j++) {
            const int64_t at = i * LINE + j;
            if (exponent[at] <= a->lsb[i] + b->lsb[j]) continue;
            residue[at] += slice_residue(a->units + i * ASSAY_FP8_GEMM_SLICE_K,
                                         b->units + j * ASSAY_FP8_GEMM_SLICE_K, words,
                                         exponent[at] - unit);
        }
}

static void residues_of_integers(struct assay_fp8_gemm_oracle *oracle,
                                 const int *exponent, double *residue)
{
    struct assay_fp8_gemm_side *const a = &oracle->side[0], *const b = a + 1;
    const int unit = assay_fp8_unit_exponent(a->codes->format) +
                     assay_fp8_unit_exponent(b->codes->format);
    const double factor = ldexp(1, unit);
    memset(residue, 0, ASSAY_FP8_GEMM_TILE * sizeof *residue);
    for (int64_t done = 0; done < oracle->k_count; done += ASSAY_FP8_GEMM_SLICE_K) {
        const int64_t rest = oracle->k_count - done;
        const int64_t count =
            rest < ASSAY_FP8_GEMM_SLICE_K ? rest : ASSAY_FP8_GEMM_SLICE_K;
        assay_fp8_gemm_side_load_units(a, oracle->k0 + done, count);
        assay_fp8_gemm_side_load_units(b, oracle->k0 + done, count);
        add_residues(a, b, (count + WORD - 1) / WORD, unit, exponent, residue);
    }
    for (int at = 0; at < ASSAY_FP8_GEMM_TILE; at++)
        residue[at] *= factor;
}

void assay_fp8_gemm_oracle_residues(struct assay_fp8_gemm_oracle *oracle,
                                    const int *exponent, double *residue)
{
    if (oracle->is_portable)
        residues_of_integers(oracle, exponent, residue);
    else if (oracle->is_narrow)
        residues_of_narrow(oracle, exponent, residue);
    else
        residues_of_parts(oracle, exponent, residue);
}
