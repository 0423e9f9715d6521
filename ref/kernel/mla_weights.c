/* SPDX-License-Identifier: MIT */
/* Online softmax of a block: the running maximum, the factors that rescale what came
 * before, p and its sums. */
#include "ref/kernel/mla_arithmetic.h"
#include "ref/kernel/mla_tile.h"

enum { A, B, KEYS = ASSAY_MLA_BLOCK, LANES = ASSAY_MLA_LANES };

/* --- what all schedules share ----------------------------------------------------- */

float assay_mla_block_maximum(const struct assay_mla_tile *tile, int side, int row)
{
    const float *const score = tile->side[side].score[row];
    float largest = assay_mla_masked_score(tile->numerics);
    for (int key = 0; key < KEYS; key++)
        largest = assay_f32_maximum(largest, score[key]);
    return assay_mla_multiply(tile->numerics->flush, largest, tile->scale);
}

float assay_mla_weight(const struct assay_mla_tile *tile, float score, float shift)
{
    const struct assay_mla_numerics *const numerics = tile->numerics;
    const bool flush = numerics->flush;
    const float argument =
        numerics->argument == ASSAY_MLA_ARGUMENT_FUSED
            ? assay_mla_fma(flush, score, tile->scale, -shift)
            : assay_mla_add(flush, assay_mla_multiply(flush, score, tile->scale), -shift);
    return assay_mla_ex2(numerics->functions, flush, argument);
}

float assay_mla_factor(const struct assay_mla_tile *tile, float before, float after)
{
    const bool flush = tile->numerics->flush;
    const float difference = assay_mla_add(flush, before, -assay_mla_shift(after));
    return assay_mla_ex2(tile->numerics->functions, flush, difference);
}

/* --- sums of a row ---------------------------------------------------------------- */

/* What lane t adds of columns 8j + 2t, 8j + 2t + 1, j ascending. */
static float lane_sum(int row_sum, bool flush, const float *p, int lane)
{
    float sum = 0.0f;
    for (int key = 2 * lane; key < KEYS; key += 2 * LANES)
        if (row_sum == ASSAY_MLA_SUM_PAIRS) {
            sum = assay_mla_add(flush, sum, assay_mla_add(flush, p[key], p[key + 1]));
        } else {
            sum = assay_mla_add(flush, sum, p[key]);
            sum = assay_mla_add(flush, sum, p[key + 1]);
        }
    return sum;
}

float assay_mla_chain_sum(bool flush, const float *p, float start)
{
    float sum = start;
    for (int key = 0; key < KEYS; key++)
        sum = assay_mla_add(flush, sum, p[key]);
    return sum;
}

void assay_mla_add_sums(const struct assay_mla_tile *tile, const float *p, float factor,
                        float *lane)
{
    const bool flush = tile->numerics->flush;
    const int row_sum = tile->numerics->row_sum;
    for (int t = 0; t < LANES; t++) {
        float sum = 0.0f;
        if (row_sum != ASSAY_MLA_SUM_ONE_LANE)
            sum = lane_sum(row_sum, flush, p, t);
        else if (t == 0)
            sum = assay_mla_chain_sum(flush, p, 0.0f);
        lane[t] = assay_mla_fma(flush, factor, lane[t], sum);
    }
}

/* --- blocks ----------------------------------------------------------------------- */

static float right_factor(const struct assay_mla_tile *tile, int row)
{
    const struct assay_mla_numerics *const numerics = tile->numerics;
    if (numerics->right_factor == ASSAY_MLA_RIGHT_EXPONENTIAL)
        return assay_mla_factor(tile, tile->maximum_before[row], tile->maximum[row]);
    return assay_mla_multiply(numerics->flush, tile->side[B].factor[row],
                              tile->side[A].factor[row]);
}

/* A missing B block adds no sum, whatever its masked scores make of p, and leaves the
 * lanes of the A blocks alone. */
static void block_weights(struct assay_mla_tile *tile, int side_index, int row)
{
    struct assay_mla_side *const side = &tile->side[side_index];
    const float before = tile->maximum[row];
    const float maximum =
        assay_f32_maximum(before, assay_mla_block_maximum(tile, side_index, row));
    const float shift = assay_mla_shift(maximum);
    for (int key = 0; key < KEYS; key++)
        side->p[row][key] = side->is_present
                                ? assay_mla_weight(tile, side->score[row][key], shift)
                                : 0.0f;
    tile->maximum[row] = maximum;
    side->factor[row] = assay_mla_factor(tile, before, maximum);

    if (side_index == A) {
        tile->maximum_before[row] = before;
        assay_mla_add_sums(tile, side->p[row], side->factor[row], tile->lane[A][row]);
        return;
    }
    tile->right_factor[row] = right_factor(tile, row);
    assay_mla_add_sums(tile, side->p[row], tile->right_factor[row], tile->lane[B][row]);
    for (int t = 0; side->is_present && t < LANES; t++)
        tile->lane[A][row][t] = assay_mla_multiply(
            tile->numerics->flush, tile->lane[A][row][t], side->factor[row]);
}

void assay_mla_weights(struct assay_mla_tile *tile, int side)
{
    switch (tile->numerics->schedule) {
    case ASSAY_MLA_PLAIN: assay_mla_plain_weights(tile); break;
    case ASSAY_MLA_MATERIALISED: assay_mla_materialised_weights(tile); break;
    default:
        for (int row = 0; row < tile->query->rows; row++)
            block_weights(tile, side, row);
    }
}
