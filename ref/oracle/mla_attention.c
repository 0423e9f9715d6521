/* SPDX-License-Identifier: MIT */
/* Two passes over the keys, 64 of them in memory: the first finds the largest score of
 * each row, the second adds weights relative to it. */
#include "ref/oracle/mla_attention.h"

#include "ref/oracle/instruction_sets.h"
#include "ref/oracle/tile_gemm.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = ASSAY_MLA_ORACLE_ROWS, KEYS = ASSAY_MLA_ORACLE_KEYS };
enum { Q_STRIDE = ASSAY_MLA_MAX_D_QK, LANES = 8 };

#define LOG2_E 0x1.71547652b82fep+0

_Static_assert((int)KEYS == (int)ASSAY_TILE_GEMM_COLUMNS, "a row of a square is a line");

/* --- parts ------------------------------------------------------------------------ */

void assay_mla_dense_decode_part(const struct assay_mla_dense_decode_problem *problem,
                                 const struct assay_tensors *tensors, int64_t index,
                                 struct assay_mla_part *part)
{
    const int64_t request = index / problem->h_k, head = index % problem->h_k;
    const int64_t heads = problem->h_q / problem->h_k;
    const struct assay_tensor *const q = assay_tensors_find(tensors, "q");
    *part = (struct assay_mla_part){
        .q = q,
        .tokens = problem->s_q,
        .heads = heads,
        .q_offset = request * q->stride[0] + head * heads * q->stride[2],
        .token_stride = q->stride[1],
        .head_stride = q->stride[2],
        .is_causal = problem->is_causal,
        .softmax_scale = (double)problem->softmax_scale,
        .is_base_two = problem->is_base_two,
    };
    assay_mla_dense_decode_keys(problem, tensors, request, head, &part->keys);
    part->may_be_split = part->keys.blocks > 1;
}

static const float *sinks(const struct assay_tensors *tensors, bool has_sink,
                          int64_t first_head)
{
    if (!has_sink) return NULL;
    return (const float *)assay_tensors_find(tensors, "attn_sink")->data + first_head;
}

void assay_mla_sparse_decode_part(const struct assay_mla_sparse_decode_problem *problem,
                                  const struct assay_tensors *tensors, int64_t index,
                                  struct assay_mla_part *part)
{
    const int64_t tiles = problem->h_q / ROWS, row = index / tiles;
    const int64_t request = row / problem->s_q, token = row % problem->s_q;
    const int64_t first_head = index % tiles * ROWS;
    const struct assay_tensor *const q = assay_tensors_find(tensors, "q");
    *part = (struct assay_mla_part){
        .q = q,
        .tokens = 1,
        .heads = ROWS,
        .q_offset =
            request * q->stride[0] + token * q->stride[1] + first_head * q->stride[2],
        .head_stride = q->stride[2],
        .softmax_scale = (double)problem->softmax_scale,
        .sink = sinks(tensors, problem->has_sink, first_head),
        .is_base_two = problem->is_base_two,
    };
    assay_mla_sparse_decode_keys(problem, tensors, request, token, &part->keys);
    part->may_be_split = part->keys.blocks > 1;
}

void assay_mla_sparse_prefill_part(const struct assay_mla_sparse_prefill_problem *problem,
                                   const struct assay_tensors *tensors, int64_t index,
                                   struct assay_mla_part *part)
{
    const int64_t tiles = problem->h_q / ROWS, token = index / tiles;
    const int64_t first_head = index % tiles * ROWS;
    const struct assay_tensor *const q = assay_tensors_find(tensors, "q");
    *part = (struct assay_mla_part){
        .q = q,
        .tokens = 1,
        .heads = ROWS,
        .q_offset = token * q->stride[0] + first_head * q->stride[1],
        .head_stride = q->stride[1],
        .softmax_scale = (double)problem->softmax_scale,
        .sink = sinks(tensors, problem->has_sink, first_head),
        .is_base_two = problem->is_base_two,
    };
    assay_mla_sparse_prefill_keys(problem, tensors, token, &part->keys);
}

struct assay_mla_oracle *assay_mla_oracle_open(const struct assay_mla_part *part)
{
    struct assay_mla_oracle *const oracle =
        aligned_alloc(_Alignof(struct assay_mla_oracle), sizeof(*oracle));
    if (!oracle) return NULL;
    oracle->part = part;
    oracle->is_portable = !assay_has_avx512();
    oracle->was_rounded = false;
    return oracle;
}

void assay_mla_oracle_close(struct assay_mla_oracle *oracle)
{
    free(oracle);
}

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

static void read_query(const struct assay_mla_oracle *oracle, int64_t i, double *element)
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

static void load_query(struct assay_mla_oracle *oracle, int64_t i)
{
    const struct assay_mla_part *const part = oracle->part;
    const int d_qk = part->keys.d_qk;
    const int64_t row = oracle->first_row + i;
    double *const q = oracle->q + i * Q_STRIDE;
    const bool is_undefined = part->keys.is_undefined ||
                              (part->sink && is_odd_sink(part->sink[row % part->heads]));
    read_query(oracle, i, q);
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
static void load_block(struct assay_mla_oracle *oracle, int64_t first)
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
            for (int lane = 0; lane < LANES; lane++)
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

static void find_scores(struct assay_mla_oracle *oracle)
{
    const struct assay_tile_gemm gemm = { .rows = oracle->row_count,
                                          .count = oracle->part->keys.d_qk,
                                          .a = oracle->q,
                                          .a_stride = Q_STRIDE,
                                          .b = oracle->key };
    multiply(oracle, &gemm, oracle->score);
}

static void find_magnitudes(struct assay_mla_oracle *oracle)
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
static void add_values(const struct assay_mla_oracle *oracle, const double *weight,
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

/* --- first pass ------------------------------------------------------------------- */

uint64_t assay_mla_oracle_seen(const struct assay_mla_oracle *oracle, int64_t i)
{
    const int64_t below = oracle->row[i].limit - oracle->first_key;
    if (below <= 0) return 0;
    return below >= 64 ? oracle->attended
                       : oracle->attended & ((UINT64_C(1) << below) - 1);
}

/* Products of a key and a query one of which holds infinities: whether their sum is NaN,
 * as it then is in any order. */
static bool is_score_nan(const struct assay_mla_oracle *oracle, int64_t i, int64_t j)
{
    double q[ASSAY_MLA_MAX_D_QK], sum = 0;
    struct assay_mla_key key;
    read_query(oracle, i, q);
    assay_mla_read_key(&oracle->part->keys, oracle->first_key + j, &key);
    for (int d = 0; d < oracle->part->keys.d_qk; d++)
        sum += q[d] * key.element[d];
    return isnan(sum);
}

/* Keys that a row does not see: a kernel may multiply them by the weight 0. */
static void note_hidden(struct assay_mla_oracle *oracle, int64_t i)
{
    const uint64_t hidden = oracle->attended & ~assay_mla_oracle_seen(oracle, i);
    for (int64_t j = 0; j < oracle->key_count; j++)
        if (hidden >> j & 1 && oracle->holding[j] != ASSAY_MLA_HOLDS_NUMBERS)
            oracle->row[i].is_undefined = true;
}

static void note_seen(struct assay_mla_oracle *oracle, int64_t i, int64_t j)
{
    struct assay_mla_oracle_row *const row = &oracle->row[i];
    const double score = oracle->score[i * KEYS + j];
    const enum assay_mla_holding holding = oracle->holding[j];
    row->keys++;
    row->largest_norm = fmax(row->largest_norm, oracle->key_facts[j].norm);
    row->has_nan |= holding == ASSAY_MLA_HOLDS_NAN;
    row->is_undefined |= holding == ASSAY_MLA_HOLDS_UNKNOWN;
    if (holding == ASSAY_MLA_HOLDS_INFINITY || row->has_infinity)
        row->has_nan = row->has_nan || is_score_nan(oracle, i, j);
    row->has_infinity |= holding == ASSAY_MLA_HOLDS_INFINITY;
    if (holding != ASSAY_MLA_HOLDS_NUMBERS) return;
    const double scale = oracle->part->softmax_scale * LOG2_E;
    if (score > row->maximum) {
        row->near_total = row->near_total * exp2((row->maximum - score) * scale) + 1;
        row->second = row->maximum;
        row->maximum = score;
        row->argmax = oracle->first_key + j;
        return;
    }
    row->near_total += exp2((score - row->maximum) * scale);
    row->second = fmax(row->second, score);
}

static void note_block(struct assay_mla_oracle *oracle)
{
    for (int64_t i = 0; i < oracle->row_count; i++) {
        const uint64_t seen = assay_mla_oracle_seen(oracle, i);
        for (int64_t j = 0; j < oracle->key_count; j++)
            if (seen >> j & 1) note_seen(oracle, i, j);
        if (seen != oracle->attended) note_hidden(oracle, i);
    }
}

/* --- second pass ------------------------------------------------------------------ */

static double sink_weight(const struct assay_mla_oracle *oracle, int64_t i)
{
    const struct assay_mla_part *const part = oracle->part;
    if (!part->sink || oracle->row[i].maximum == -(double)INFINITY) return 0;
    const double sink = (double)part->sink[(oracle->first_row + i) % part->heads];
    return exp(sink - part->softmax_scale * oracle->row[i].maximum);
}

static void weigh(struct assay_mla_oracle *oracle)
{
    const double scale = oracle->part->softmax_scale * LOG2_E;
    for (int64_t i = 0; i < oracle->row_count; i++) {
        struct assay_mla_oracle_row *const row = &oracle->row[i];
        const bool is_finite = row->state == ASSAY_MLA_ROW_FINITE;
        const uint64_t seen = is_finite ? assay_mla_oracle_seen(oracle, i) : 0;
        double sum = 0;
        for (int64_t j = 0; j < KEYS; j++) {
            double *const weight = &oracle->weight[i * KEYS + j];
            *weight = seen >> j & 1
                          ? exp2((oracle->score[i * KEYS + j] - row->maximum) * scale)
                          : 0;
            sum += *weight;
        }
        row->total += sum;
    }
}

static enum assay_mla_row_state state_of(const struct assay_mla_oracle_row *row)
{
    if (row->is_undefined) return ASSAY_MLA_ROW_UNKNOWN;
    if (row->keys == 0) return ASSAY_MLA_ROW_EMPTY;
    if (row->has_nan) return ASSAY_MLA_ROW_NAN;
    return row->has_infinity ? ASSAY_MLA_ROW_UNKNOWN : ASSAY_MLA_ROW_FINITE;
}

static void finish_states(struct assay_mla_oracle *oracle)
{
    for (int64_t i = 0; i < oracle->row_count; i++) {
        oracle->row[i].state = state_of(&oracle->row[i]);
        oracle->row[i].sink_weight = sink_weight(oracle, i);
    }
}

static void first_pass(struct assay_mla_oracle *oracle)
{
    oracle->value_lsb = ASSAY_MLA_NO_LSB;
    oracle->largest_value = 0;
    for (int64_t i = 0; i < oracle->row_count; i++)
        load_query(oracle, i);
    for (int64_t first = 0; first < oracle->part->keys.positions; first += KEYS) {
        load_block(oracle, first);
        find_scores(oracle);
        note_block(oracle);
    }
    finish_states(oracle);
}

void assay_mla_oracle_rows(struct assay_mla_oracle *oracle, int64_t first_row,
                           const struct assay_mla_observer *observer)
{
    const struct assay_mla_part *const part = oracle->part;
    const int64_t rest = part->tokens * part->heads - first_row;
    assert(rest > 0);
    oracle->first_row = first_row;
    oracle->row_count = rest < ROWS ? rest : ROWS;
    first_pass(oracle);
    memset(oracle->output, 0, sizeof(oracle->output));
    memset(oracle->output_cost, 0, sizeof(oracle->output_cost));
    if (observer) observer->start(observer->context, oracle);
    for (int64_t first = 0; first < part->keys.positions; first += KEYS) {
        if (part->keys.positions > KEYS) {
            load_block(oracle, first);
            find_scores(oracle);
        }
        weigh(oracle);
        add_values(oracle, oracle->weight, oracle->value[0], oracle->output[0]);
        if (!observer) continue;
        find_magnitudes(oracle);
        observer->block(observer->context, oracle);
        pad(oracle->value[0], (int64_t)ASSAY_MLA_ORACLE_SLICES * ASSAY_MLA_ORACLE_SQUARE,
            smallest_normal(part->keys.format), oracle->value_magnitude[0]);
        add_values(oracle, oracle->cost, oracle->value_magnitude[0],
                   oracle->output_cost[0]);
    }
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

/* --- results ---------------------------------------------------------------------- */

double assay_mla_oracle_out(const struct assay_mla_oracle *oracle, int64_t i, int column)
{
    const struct assay_mla_oracle_row *const row = &oracle->row[i];
    if (row->state == ASSAY_MLA_ROW_EMPTY) return 0;
    if (row->state != ASSAY_MLA_ROW_FINITE) return (double)NAN;
    return oracle->output[column / 64][i * 64 + column % 64] /
           (row->total + row->sink_weight);
}

double assay_mla_oracle_lse(const struct assay_mla_oracle *oracle, int64_t i)
{
    const struct assay_mla_oracle_row *const row = &oracle->row[i];
    const double scale = oracle->part->softmax_scale;
    if (row->state == ASSAY_MLA_ROW_EMPTY) return (double)INFINITY;
    if (row->state != ASSAY_MLA_ROW_FINITE) return (double)NAN;
    return oracle->part->is_base_two ? scale * row->maximum * LOG2_E + log2(row->total)
                                     : scale * row->maximum + log(row->total);
}

double assay_mla_oracle_max_logit(const struct assay_mla_oracle *oracle, int64_t i)
{
    const struct assay_mla_oracle_row *const row = &oracle->row[i];
    const double scale = oracle->part->softmax_scale;
    if (row->state == ASSAY_MLA_ROW_EMPTY) return -(double)INFINITY;
    if (row->state != ASSAY_MLA_ROW_FINITE) return (double)NAN;
    return scale * row->maximum * (oracle->part->is_base_two ? LOG2_E : 1);
}
