/* SPDX-License-Identifier: MIT */
/* eta and D of every key, as mla_bound.c derives them. */
#include "verify/operation/mla/mla_row_bound.h"

#include <math.h>
#include <string.h>

enum { KEYS = ASSAY_MLA_ORACLE_KEYS };

#define U           ASSAY_MLA_HALF_ULP
#define LOG2_E      0x1.71547652b82fep+0
#define LN_2        0x1.62e42fefa39efp-1
#define SCALE_U     ASSAY_MLA_SCALE_ERROR
#define LARGEST     0x1p96 /* scores in units of log 2; below it M can't be its start */
#define OVERFLOW_AT 0x1p125

/* --- of a row --------------------------------------------------------------------- */

double assay_mla_splits(const struct assay_mla_bound *bound)
{
    if (!bound->part->may_be_split) return 1;
    return fmin((double)bound->part->keys.blocks, ASSAY_MLA_MAX_PARTS);
}

static void set_splits(const struct assay_mla_bound *bound, double keys,
                       struct assay_mla_row_bound *row)
{
    const struct assay_mla_precision *const precision = bound->precision;
    const double log2_keys = log2(keys), splits = assay_mla_splits(bound);
    if (splits <= 1) return;
    const double lse = LN_2 * (assay_mla_lg2_error(&precision->attention, log2_keys) +
                               U * (fabs(row->top) + log2_keys));
    const double weight = precision->combine.ex2 + LN_2 * U * log2_keys + splits * U;
    row->value_split = lse + weight + precision->quotient;
    row->sum_split = lse + weight +
                     LN_2 * (assay_mla_lg2_error(&precision->combine, log2(splits)) +
                             U * (fabs(row->top) + log2_keys));
    row->split_slope = 2 * LN_2 * U;
}

/* Relative error of a sum of @keys products, to the sum of magnitudes. */
static double products_error(const struct assay_mla_bound *bound, double keys)
{
    const struct assay_mla_precision *const precision = bound->precision;
    if (precision->is_value_by_fma) return keys * U * (1 + 0x1p-7);
    const double most_steps = ceil((double)bound->part->keys.positions / 16) + 4;
    const double steps = precision->align_bits >= precision->result_bits
                             ? fmin(keys, most_steps)
                             : most_steps + assay_mla_splits(bound) * 4;
    const double aligned = ldexp(1, -precision->align_bits);
    return (keys * aligned + steps * (aligned + ldexp(1, -precision->result_bits))) *
           (1 + 0x1p-7);
}

static struct assay_mla_chain chain_of(const struct assay_mla_bound *bound,
                                       const struct assay_mla_vector_facts *q,
                                       const struct assay_mla_vector_facts *key,
                                       double score, double magnitude)
{
    return (struct assay_mla_chain){
        .products = bound->part->keys.d_qk,
        .sum = score,
        .magnitude = magnitude,
        .exponent = q->exponent + key->exponent,
        .lsb = q->lsb + key->lsb,
        .factor = q->exponent > key->exponent ? q->exponent : key->exponent,
    };
}

/* In units of log 2, without a look at the products. */
static double rough_error(const struct assay_mla_bound *bound,
                          struct assay_mla_chain *chain)
{
    chain->residue = assay_mla_chain_residue(bound->precision, chain);
    return bound->c * assay_mla_chain_error(bound->precision, chain);
}

/* How far another score may come above key m's, by errors. */
static double competition(const struct assay_mla_bound *bound,
                          const struct assay_mla_oracle_row *facts)
{
    const double most = facts->q.norm * facts->largest_norm * (1 + 0x1p-30);
    const struct assay_mla_vector_facts any = {
        .exponent = assay_mla_exponent(facts->largest_norm * (1 + 0x1p-30)), .lsb = -2000
    };
    struct assay_mla_chain chain = chain_of(bound, &facts->q, &any, most, most);
    if (facts->second == -(double)INFINITY) return 0;
    const double error =
        2 * rough_error(bound, &chain) + 2 * U * bound->c * fabs(facts->maximum);
    return fmax(0, error - bound->c * (facts->maximum - facts->second));
}

/* Key m's p is near 1: by how much it can change when it is rounded. */
static double p_of_top(const struct assay_mla_bound *bound,
                       const struct assay_mla_row_bound *row, double above)
{
    const double ordinary = bound->precision->p_relative;
    const double from_one = LN_2 * (2 * U * fabs(row->top) + above) * (1 + 0x1p-7) +
                            bound->precision->attention.ex2;
    if (!bound->precision->is_p_nearest) return ordinary;
    return from_one < 0.9 * ordinary ? from_one : ordinary;
}

static void start_top(const struct assay_mla_bound *bound,
                      const struct assay_mla_oracle *oracle, int64_t i,
                      struct assay_mla_row_bound *row)
{
    const struct assay_mla_precision *const precision = bound->precision;
    const struct assay_mla_oracle_row *const facts = &oracle->row[i];
    struct assay_mla_vector_facts key;
    const double magnitude = assay_mla_oracle_magnitude(oracle, i, facts->argmax, &key);
    struct assay_mla_chain chain =
        chain_of(bound, &facts->q, &key, facts->maximum, magnitude);
    row->own = LN_2 * rough_error(bound, &chain) + precision->attention.ex2;
    if (!precision->is_argument_fused) row->own += LN_2 * U * fabs(row->top);
    const double above = competition(bound, facts);
    row->p_of_top = p_of_top(bound, row, above);
    row->rescaling_of_top = above > 0 ? row->rescaling : 0;
}

/* Rises of the maximum, at most. Blocks may begin afresh with the extra cache. */
static double raises_of(const struct assay_mla_bound *bound, double keys)
{
    const int64_t each = bound->precision->keys_per_raise;
    const int64_t blocks = (bound->part->keys.positions + 15) / 16 + 1;
    if (each == 0) return 0;
    return fmin(keys, each == 1 ? keys : (double)blocks) - 1;
}

static bool is_claimed(const struct assay_mla_bound *bound,
                       const struct assay_mla_oracle *oracle, int64_t i)
{
    const struct assay_mla_oracle_row *const facts = &oracle->row[i];
    const double c = bound->c;
    if (facts->state != ASSAY_MLA_ROW_FINITE) return false;
    if (!(c > 0x1p-100 && c < 0x1p100)) return false;
    if (bound->precision->is_mask_finite && c < 1.01e-3) return false;
    return (double)facts->keys * oracle->largest_value < OVERFLOW_AT;
}

void assay_mla_start_rows(void *context, struct assay_mla_oracle *oracle)
{
    struct assay_mla_bound *const bound = context;
    const struct assay_mla_precision *const precision = bound->precision;
    for (int64_t i = 0; i < oracle->row_count; i++) {
        struct assay_mla_row_bound *const row = &bound->row[i];
        const struct assay_mla_oracle_row *const facts = &oracle->row[i];
        *row = (struct assay_mla_row_bound){ .is_claimed = is_claimed(bound, oracle, i) };
        if (!row->is_claimed) continue;
        const double keys = (double)facts->keys;
        row->top = bound->c * facts->maximum;
        row->is_level = facts->q.norm == 0 || facts->largest_norm == 0;
        row->is_relative = facts->near_total <= 2;
        row->lost_below = log2(keys + facts->sink_weight) - 120;
        row->products = products_error(bound, keys);
        set_splits(bound, keys, row);
        if (row->is_level) continue;
        row->raises = raises_of(bound, keys);
        row->rescaling = row->raises * (precision->attention.ex2 + 2 * U);
        start_top(bound, oracle, i, row);
    }
}

/* --- of a key --------------------------------------------------------------------- */

/* weight * (e^eta - 1), from above. */
static double excess(double weight, double x, double eta)
{
    if (eta <= 0.5) return weight * eta * (1 + eta * (0.5 + eta * 0.25));
    return fmin(exp2(x + eta * LOG2_E), 0x1p500);
}

struct key { /* of a row */
    double weight, x, error;
    bool is_top;
};

static double charge(const struct assay_mla_bound *bound, struct assay_mla_row_bound *row,
                     const struct key *key)
{
    const struct assay_mla_precision *const precision = bound->precision;
    const double distance = fabs(key->x), weight = key->weight;
    double own = LN_2 * (key->error + (SCALE_U + U) * distance) +
                 precision->attention.ex2 + row->split_slope * distance;
    if (!precision->is_argument_fused) own += LN_2 * U * (fabs(row->top) + distance);
    double common = own + row->rescaling;
    double p_relative = precision->p_relative;
    row->highest = fmax(row->highest, key->x + key->error);
    row->own_sum_error += excess(weight, key->x, common + row->sum_split);
    if (row->is_relative) common += row->own;
    if (key->is_top) {
        p_relative = row->p_of_top;
        if (row->is_relative) common = row->rescaling_of_top;
    }
    const bool may_be_lost = key->x < row->lost_below;
    const double sum = excess(weight, key->x, common + row->sum_split);
    const double value =
        excess(weight, key->x, common + row->value_split + p_relative + row->products) +
        fmin(weight, precision->p_absolute) * (1 + 0x1p-7);
    row->sum_error += may_be_lost ? fmax(sum, weight) : sum;
    return may_be_lost ? fmax(value, weight) : value;
}

static struct assay_mla_chain chain_at(const struct assay_mla_bound *bound,
                                       const struct assay_mla_oracle *oracle, int64_t i,
                                       int64_t j)
{
    const int64_t at = i * KEYS + j;
    return chain_of(bound, &oracle->row[i].q, &oracle->key_facts[j], oracle->score[at],
                    oracle->magnitude[at]);
}

static void charge_row(struct assay_mla_bound *bound, struct assay_mla_oracle *oracle,
                       int64_t i)
{
    struct assay_mla_row_bound *const row = &bound->row[i];
    const struct assay_mla_oracle_row *const facts = &oracle->row[i];
    const uint64_t seen = assay_mla_oracle_seen(oracle, i);
    for (int64_t j = 0; j < KEYS; j++) {
        const int64_t at = i * KEYS + j;
        const double magnitude = oracle->magnitude[at];
        struct assay_mla_chain chain = chain_at(bound, oracle, i, j);
        if (!(seen >> j & 1)) continue;
        if (!(fmax(magnitude, bound->c * magnitude) < LARGEST)) row->is_claimed = false;
        chain.residue = bound->residue[at];
        const struct key key = {
            .weight = oracle->weight[at],
            .x = bound->c * (oracle->score[at] - facts->maximum),
            .error = bound->c * assay_mla_chain_error(bound->precision, &chain),
            .is_top = oracle->first_key + j == facts->argmax,
        };
        if (key.is_top) row->error_of_top = key.error;
        oracle->cost[at] = charge(bound, row, &key);
    }
}

static void charge_level_row(struct assay_mla_bound *bound,
                             struct assay_mla_oracle *oracle, int64_t i)
{
    struct assay_mla_row_bound *const row = &bound->row[i];
    for (int64_t j = 0; j < KEYS; j++) {
        const double weight = oracle->weight[i * KEYS + j];
        oracle->cost[i * KEYS + j] = weight;
        row->sum_error += excess(weight, 0, row->sum_split);
    }
}

/* What truncation takes from the products of the rows that need it. */
static void find_residues(struct assay_mla_bound *bound, struct assay_mla_oracle *oracle)
{
    bool is_needed = false;
    for (int64_t i = 0; i < oracle->row_count; i++) {
        const struct assay_mla_row_bound *const row = &bound->row[i];
        const uint64_t seen =
            row->is_claimed && !row->is_level ? assay_mla_oracle_seen(oracle, i) : 0;
        for (int64_t j = 0; j < KEYS; j++) {
            const int64_t at = i * KEYS + j;
            bound->quantum[at] = 0;
            bound->residue[at] = 0;
            if (!(seen >> j & 1)) continue;
            const struct assay_mla_chain chain = chain_at(bound, oracle, i, j);
            bound->quantum[at] = assay_mla_chain_quantum(bound->precision, &chain);
            is_needed |= assay_mla_chain_residue(bound->precision, &chain) > 0;
        }
    }
    if (is_needed && !bound->precision->is_score_by_fma)
        assay_mla_oracle_residues(oracle, bound->quantum, bound->residue);
}

void assay_mla_charge_block(void *context, struct assay_mla_oracle *oracle)
{
    struct assay_mla_bound *const bound = context;
    find_residues(bound, oracle);
    memset(oracle->cost, 0, sizeof(oracle->cost));
    for (int64_t i = 0; i < oracle->row_count; i++)
        if (bound->row[i].is_claimed && bound->row[i].is_level)
            charge_level_row(bound, oracle, i);
        else if (bound->row[i].is_claimed)
            charge_row(bound, oracle, i);
}
