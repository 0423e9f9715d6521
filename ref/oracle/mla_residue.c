/* SPDX-License-Identifier: MIT */
/* What truncated products lose, in single precision: factors are scaled to magnitudes
 * below 2, and their products, of at most 22 bits, are exact unless they are tiny.
 *
 * With C = 1.5 * 2^23 quanta, (p + C) - C is p rounded to a multiple of the quantum if
 * p is below 2^22 quanta; from there on p is one. Products below 2^-126 may lose up to
 * 2^-149 each, sums of 2^10 of them 2^-14 of themselves. */
#include "ref/instruction_sets.h"
#include "ref/oracle/mla_attention.h"

#include <math.h>
#include <string.h>

enum { KEYS = ASSAY_MLA_ORACLE_KEYS, Q_STRIDE = ASSAY_MLA_MAX_D_QK };
enum { SMALLEST_QUANTUM = -90, LARGEST_QUANTUM = 60 };

/* As many sums as registers hold beside what belongs to them. */
enum { LANES = 8, VECTORS = 2, GROUP = LANES * VECTORS };
typedef float floats __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t masks __attribute__((vector_size(LANES * sizeof(int32_t))));

#define ABOVE      (1 + 0x1p-13)
#define UNDERFLOWN 0x1p-138 /* at most 2^10 times 2^-149, a power of two more */

_Static_assert(ASSAY_MLA_MAX_D_QK <= 1 << 10, "as derived above");

static double power_of(int exponent)
{
    return exponent == ASSAY_MLA_NO_EXPONENT ? 0 : ldexp(1, -exponent);
}

static void scale_sides(struct assay_mla_oracle *oracle)
{
    const int d_qk = oracle->part->keys.d_qk;
    double power[KEYS];
    for (int j = 0; j < KEYS; j++)
        power[j] =
            oracle->attended >> j & 1 ? power_of(oracle->key_facts[j].exponent) : 0;
    for (int64_t d = 0; d < d_qk; d++)
        for (int j = 0; j < KEYS; j++)
            oracle->key_single[d * KEYS + j] =
                (float)(fabs(oracle->key[d * KEYS + j]) * power[j]);
    for (int64_t i = 0; i < oracle->row_count; i++) {
        const double of_row = power_of(oracle->row[i].q.exponent);
        for (int64_t at = i * Q_STRIDE; at < i * Q_STRIDE + d_qk; at++)
            oracle->q_single[at] = (float)(fabs(oracle->q[at]) * of_row);
    }
}

/* One row with GROUP keys. Masks, as the compiler takes no vectors for conditions. */
ASSAY_EACH_INSTRUCTION_SET
static void add_residues(const float *restrict q, const float *restrict key, int d_qk,
                         const float *restrict quantum, float *restrict residue)
{
    floats unit[VECTORS], shift[VECTORS], limit[VECTORS], sum[VECTORS] = { 0 };
    memcpy(unit, quantum, sizeof unit);
    for (int v = 0; v < VECTORS; v++) {
        shift[v] = unit[v] * 0x1.8p23f;
        limit[v] = unit[v] * 0x1p22f;
    }
    for (int d = 0; d < d_qk; d++, key += KEYS)
        for (int v = 0; v < VECTORS; v++) {
            floats factor;
            memcpy(&factor, key + v * LANES, sizeof factor);
            const floats product = q[d] * factor;
            const floats rest = product - ((product + shift[v]) - shift[v]);
            const floats loss = rest + (floats)((rest < 0) & (masks)unit[v]);
            sum[v] += (floats)((product < limit[v]) & (masks)loss);
        }
    memcpy(residue, sum, sizeof sum);
}

/* One row with all keys that there are. */
static void find_residues(const struct assay_mla_oracle *oracle, int64_t i,
                          const float *quantum, float *residue)
{
    for (int64_t j = 0; j < KEYS; j += GROUP) {
        const bool has_key = (oracle->attended >> j & ((UINT64_C(1) << GROUP) - 1)) != 0;
        if (has_key)
            add_residues(oracle->q_single + i * Q_STRIDE, oracle->key_single + j,
                         oracle->part->keys.d_qk, quantum + j, residue + j);
        else
            memset(residue + j, 0, GROUP * sizeof residue[0]);
    }
}

void assay_mla_oracle_residues(struct assay_mla_oracle *oracle, const int *exponent,
                               double *residue)
{
    const int d_qk = oracle->part->keys.d_qk;
    scale_sides(oracle);
    for (int64_t i = 0; i < oracle->row_count; i++) {
        float quantum[KEYS], found[KEYS];
        int shift[KEYS];
        for (int j = 0; j < KEYS; j++) {
            shift[j] = oracle->row[i].q.exponent + oracle->key_facts[j].exponent;
            const int scaled = exponent[i * KEYS + j] - shift[j];
            quantum[j] = ldexpf(1, scaled < SMALLEST_QUANTUM  ? SMALLEST_QUANTUM
                                   : scaled > LARGEST_QUANTUM ? LARGEST_QUANTUM
                                                              : scaled);
        }
        find_residues(oracle, i, quantum, found);
        for (int j = 0; j < KEYS; j++) {
            const int scaled = exponent[i * KEYS + j] - shift[j];
            residue[i * KEYS + j] =
                scaled < SMALLEST_QUANTUM
                    ? ldexp(d_qk, exponent[i * KEYS + j])
                    : ldexp((double)found[j] * ABOVE + UNDERFLOWN, shift[j]);
        }
    }
}
