/* SPDX-License-Identifier: MIT */
/* Two passes over the keys, 64 of them in memory: the first finds the largest score of
 * each row, the second adds weights relative to it. */
#include "ref/oracle/mla_attention.h"

#include "ref/instruction_sets.h"
#include "ref/oracle/mla_block.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = ASSAY_MLA_ORACLE_ROWS, KEYS = ASSAY_MLA_ORACLE_KEYS };

#define LOG2_E 0x1.71547652b82fep+0

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

uint64_t assay_mla_oracle_seen(const struct assay_mla_oracle *oracle, int64_t i)
{
    const int64_t below = oracle->row[i].limit - oracle->first_key;
    if (below <= 0) return 0;
    return below >= 64 ? oracle->attended
                       : oracle->attended & ((UINT64_C(1) << below) - 1);
}

/* --- first pass ------------------------------------------------------------------- */

/* Products of a key and a query one of which holds infinities: whether their sum is NaN,
 * as it then is in any order. */
static bool is_score_nan(const struct assay_mla_oracle *oracle, int64_t i, int64_t j)
{
    double q[ASSAY_MLA_MAX_D_QK], sum = 0;
    struct assay_mla_key key;
    assay_mla_read_query(oracle, i, q);
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
        assay_mla_load_query(oracle, i);
    for (int64_t first = 0; first < oracle->part->keys.positions; first += KEYS) {
        assay_mla_load_block(oracle, first);
        assay_mla_find_scores(oracle);
        note_block(oracle);
    }
    finish_states(oracle);
}

static void clear_rows(const struct assay_mla_oracle *oracle,
                       double (*slices)[ASSAY_MLA_ORACLE_SQUARE])
{
    for (int slice = 0; slice < ASSAY_MLA_ORACLE_SLICES; slice++)
        memset(slices[slice], 0, (size_t)oracle->row_count * 64 * sizeof(slices[0][0]));
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
    clear_rows(oracle, oracle->output);
    clear_rows(oracle, oracle->output_cost);
    if (observer) observer->start(observer->context, oracle);
    for (int64_t first = 0; first < part->keys.positions; first += KEYS) {
        if (part->keys.positions > KEYS) {
            assay_mla_load_block(oracle, first);
            assay_mla_find_scores(oracle);
        }
        weigh(oracle);
        assay_mla_add_values(oracle, oracle->weight, oracle->value[0], oracle->output[0]);
        if (!observer) continue;
        assay_mla_find_magnitudes(oracle);
        observer->block(observer->context, oracle);
        assay_mla_find_value_magnitudes(oracle);
        assay_mla_add_values(oracle, oracle->cost, oracle->value_magnitude[0],
                             oracle->output_cost[0]);
    }
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
