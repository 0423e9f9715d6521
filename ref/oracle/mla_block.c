/* SPDX-License-Identifier: MIT */
/* Vectors are read in lines of eight keys, so that they can be transposed in registers;
 * loops over elements keep eight sums for the same reason. */
#include "ref/oracle/mla_block.h"

#include "ref/instruction_sets.h"
#include "ref/oracle/tile_gemm.h"

#include <math.h>
#include <string.h>

enum { KEYS = ASSAY_MLA_ORACLE_KEYS };
enum { Q_STRIDE = ASSAY_MLA_MAX_D_QK, LANES = 8 };

_Static_assert((int)KEYS == (int)ASSAY_TILE_GEMM_COLUMNS, "a row of a square is a line");

/* --- vectors ---------------------------------------------------------------------- */

static double smallest_normal(enum assay_format format)
{
    return format == ASSAY_F16 ? 0x1p-14 : 0x1p-126;
}

/* Of finite doubles that are zero or normal. */
static int exponent_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return (int)(bits >> 52 & 2047) - 1023;
}

static int lsb_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    const uint64_t significand = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    return exponent_of(x) - 52 + __builtin_ctzll(significand);
}

/* Of elements [first, first + count). */
static int lsb_of_all(const double *element, int first, int count)
{
    int lsb = ASSAY_MLA_NO_LSB;
    for (int i = first; i < first + count; i++) {
        if (element[i] == 0) continue;
        const int found = lsb_of(element[i]);
        lsb = found < lsb ? found : lsb;
    }
    return lsb;
}

ASSAY_EACH_INSTRUCTION_SET
static void pad(const double *restrict element, int64_t count, double smallest,
                double *restrict magnitude)
{
    for (int64_t i = 0; i < count; i++) {
        const double x = fabs(element[i]), raised = x < smallest ? smallest : x;
        magnitude[i] = x == 0 ? 0 : raised;
    }
}

/* @count is a multiple of LANES. */
ASSAY_EACH_INSTRUCTION_SET
static double sum_of_squares(const double *element, int count)
{
    double sum[LANES] = { 0 }, total = 0;
    for (int i = 0; i < count; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            sum[lane] += element[i + lane] * element[i + lane];
    for (int lane = 0; lane < LANES; lane++)
        total += sum[lane];
    return total;
}

ASSAY_EACH_INSTRUCTION_SET
static double largest_of(const double *magnitude, int count)
{
    double largest[LANES] = { 0 };
    for (int i = 0; i < count; i += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const double x = magnitude[i + lane];
            largest[lane] = x > largest[lane] ? x : largest[lane];
        }
    for (int lane = 1; lane < LANES; lane++)
        largest[0] = fmax(largest[0], largest[lane]);
    return largest[0];
}

static struct assay_mla_vector_facts facts_of(const double *element,
                                              const double *magnitude, int count)
{
    const double largest = largest_of(magnitude, count);
    return (struct assay_mla_vector_facts){
        .exponent = largest > 0 ? exponent_of(largest) : ASSAY_MLA_NO_EXPONENT,
        .lsb = lsb_of_all(element, 0, count),
        .norm = sqrt(sum_of_squares(magnitude, count)),
    };
}

static int64_t q_offset(const struct assay_mla_part *part, int64_t row)
{
    return part->q_offset + row / part->heads * part->token_stride +
           row % part->heads * part->head_stride;
}

void assay_mla_read_query(const struct assay_mla_oracle *oracle, int64_t i,
                          double *element)
{
    const struct assay_mla_part *const part = oracle->part;
    const uint16_t *const code =
        (const uint16_t *)part->q->data + q_offset(part, oracle->first_row + i);
    for (int d = 0; d < part->keys.d_qk; d++)
        element[d] = assay_mla_element_value(part->q->format, code[d]);
}

/* Too large to be multiplied by log2 e. */
static bool is_odd_sink(float sink)
{
    return isnan(sink) || (isfinite(sink) && fabsf(sink) > 0x1p126f);
}

void assay_mla_load_query(struct assay_mla_oracle *oracle, int64_t i)
{
    const struct assay_mla_part *const part = oracle->part;
    const int d_qk = part->keys.d_qk;
    const int64_t row = oracle->first_row + i;
    double *const q = oracle->q + i * Q_STRIDE;
    const bool is_undefined = part->keys.is_undefined ||
                              (part->sink && is_odd_sink(part->sink[row % part->heads]));
    assay_mla_read_query(oracle, i, q);
    const enum assay_mla_holding holding = assay_mla_holding_of(q, d_qk);
    if (holding != ASSAY_MLA_HOLDS_NUMBERS) memset(q, 0, (size_t)d_qk * sizeof(q[0]));
    pad(q, d_qk, smallest_normal(part->q->format), oracle->q_magnitude + i * Q_STRIDE);
    const int64_t hidden = part->is_causal ? part->tokens - 1 - row / part->heads : 0;
    oracle->row[i] = (struct assay_mla_oracle_row){
        .has_nan = holding == ASSAY_MLA_HOLDS_NAN,
        .has_infinity = holding == ASSAY_MLA_HOLDS_INFINITY,
        .is_undefined = is_undefined,
        .limit = part->keys.positions - hidden,
        .q = facts_of(q, oracle->q_magnitude + i * Q_STRIDE, d_qk),
        .maximum = -(double)INFINITY,
        .second = -(double)INFINITY,
        .argmax = -1,
    };
}

static void note_key(struct assay_mla_oracle *oracle, int64_t j,
                     const struct assay_mla_key *key)
{
    double magnitude[ASSAY_MLA_MAX_D_QK];
    const struct assay_mla_key_list *const keys = &oracle->part->keys;
    struct assay_mla_vector_facts *const facts = &oracle->key_facts[j];
    pad(key->element, keys->d_qk, smallest_normal(keys->format), magnitude);
    *facts = facts_of(key->element, magnitude, keys->d_qk);
    const int lsb = keys->d_qk == ASSAY_MLA_D_V
                        ? facts->lsb
                        : lsb_of_all(key->element, 0, ASSAY_MLA_D_V);
    if (lsb < oracle->value_lsb) oracle->value_lsb = lsb;
    oracle->largest_value =
        fmax(oracle->largest_value, largest_of(magnitude, ASSAY_MLA_D_V));
}

/* Key @j of the block; zeros where there is none, or no numbers. */
static void load_key(struct assay_mla_oracle *oracle, int64_t j,
                     struct assay_mla_key *key)
{
    const struct assay_mla_vector_facts nothing = { .exponent = ASSAY_MLA_NO_EXPONENT,
                                                    .lsb = ASSAY_MLA_NO_LSB };
    key->is_attended = false;
    if (j < oracle->key_count)
        assay_mla_read_key(&oracle->part->keys, oracle->first_key + j, key);
    oracle->holding[j] = ASSAY_MLA_HOLDS_NUMBERS;
    oracle->key_facts[j] = nothing;
    if (key->is_attended) {
        oracle->attended |= UINT64_C(1) << j;
        oracle->was_rounded |= key->is_rounded;
        oracle->holding[j] = key->holding;
    }
    if (!key->is_attended || key->holding != ASSAY_MLA_HOLDS_NUMBERS)
        memset(key->element, 0, sizeof(key->element));
    else
        note_key(oracle, j, key);
}

/* Takes the block that begins at @first in memory. */
void assay_mla_load_block(struct assay_mla_oracle *oracle, int64_t first)
{
    struct assay_mla_key key[LANES]; /* a line of memory, transposed */
    const int d_qk = oracle->part->keys.d_qk;
    const int64_t rest = oracle->part->keys.positions - first;
    oracle->first_key = first;
    oracle->key_count = rest < KEYS ? rest : KEYS;
    oracle->attended = 0;
    for (int64_t j = 0; j < KEYS; j += LANES) {
        for (int lane = 0; lane < LANES; lane++)
            load_key(oracle, j + lane, &key[lane]);
        for (int d = 0; d < d_qk; d++)
            for (int lane = 0; lane < LANES; lane++)
                oracle->key[(int64_t)d * KEYS + j + lane] = key[lane].element[d];
        for (int slice = 0; slice < ASSAY_MLA_ORACLE_SLICES; slice++)
            for (int lane = 0; lane < LANES && j + lane < oracle->key_count; lane++)
                memcpy(oracle->value[slice] + (j + lane) * 64,
                       key[lane].element + (int64_t)slice * 64, 64 * sizeof(double));
    }
}

static void multiply(const struct assay_mla_oracle *oracle,
                     const struct assay_tile_gemm *gemm, double *product)
{
    if (oracle->is_portable)
        assay_tile_gemm_portable(gemm, product);
    else
        assay_tile_gemm_fast(gemm, product);
}

void assay_mla_find_scores(struct assay_mla_oracle *oracle)
{
    const struct assay_tile_gemm gemm = { .rows = oracle->row_count,
                                          .count = oracle->part->keys.d_qk,
                                          .a = oracle->q,
                                          .a_stride = Q_STRIDE,
                                          .b = oracle->key };
    multiply(oracle, &gemm, oracle->score);
}

void assay_mla_find_magnitudes(struct assay_mla_oracle *oracle)
{
    const int d_qk = oracle->part->keys.d_qk;
    const struct assay_tile_gemm gemm = { .rows = oracle->row_count,
                                          .count = d_qk,
                                          .a = oracle->q_magnitude,
                                          .a_stride = Q_STRIDE,
                                          .b = oracle->key_magnitude };
    pad(oracle->key, (int64_t)d_qk * KEYS, smallest_normal(oracle->part->keys.format),
        oracle->key_magnitude);
    multiply(oracle, &gemm, oracle->magnitude);
}

/* @sum += @weight times the slices of @value. */
void assay_mla_add_values(const struct assay_mla_oracle *oracle, const double *weight,
                          const double *value, double *sum)
{
    for (int slice = 0; slice < ASSAY_MLA_ORACLE_SLICES; slice++) {
        const int64_t first = (int64_t)slice * ASSAY_MLA_ORACLE_SQUARE;
        const struct assay_tile_gemm gemm = { .rows = oracle->row_count,
                                              .count = oracle->key_count,
                                              .a = weight,
                                              .a_stride = KEYS,
                                              .b = value + first,
                                              .is_added = true };
        multiply(oracle, &gemm, sum + first);
    }
}

void assay_mla_find_value_magnitudes(struct assay_mla_oracle *oracle)
{
    for (int slice = 0; slice < ASSAY_MLA_ORACLE_SLICES; slice++)
        pad(oracle->value[slice], oracle->key_count * 64,
            smallest_normal(oracle->part->keys.format), oracle->value_magnitude[slice]);
}

double assay_mla_oracle_magnitude(const struct assay_mla_oracle *oracle, int64_t i,
                                  int64_t position, struct assay_mla_vector_facts *facts)
{
    struct assay_mla_key key;
    double magnitude[ASSAY_MLA_MAX_D_QK], sum = 0;
    const struct assay_mla_key_list *const keys = &oracle->part->keys;
    assay_mla_read_key(keys, position, &key);
    pad(key.element, keys->d_qk, smallest_normal(keys->format), magnitude);
    *facts = facts_of(key.element, magnitude, keys->d_qk);
    for (int d = 0; d < keys->d_qk; d++)
        sum += oracle->q_magnitude[i * Q_STRIDE + d] * magnitude[d];
    return sum;
}
