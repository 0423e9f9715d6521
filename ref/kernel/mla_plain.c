/* SPDX-License-Identifier: MIT */
/* The schedules without blocks: one key after the other, and all scores first. */
#include "ref/instruction_sets.h"
#include "ref/kernel/mla_arithmetic.h"
#include "ref/kernel/mla_tile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = ASSAY_MLA_BLOCK, COLUMNS = ASSAY_MLA_RIGHT };

/* --- one key after the other ------------------------------------------------------ */

void assay_mla_plain_weights(struct assay_mla_tile *tile)
{
    struct assay_mla_side *const side = &tile->side[0];
    const bool flush = tile->numerics->flush;
    for (int row = 0; row < tile->query->rows; row++)
        for (int key = 0; key < KEYS; key++) {
            if (!(side->block.attended[row] >> key & 1)) continue;
            const float before = tile->maximum[row], score = side->score[row][key];
            float *const lane = &tile->lane[0][row][0];
            tile->maximum[row] =
                assay_f32_maximum(before, assay_mla_multiply(flush, score, tile->scale));
            const float maximum = tile->maximum[row];
            const float factor = assay_mla_factor(tile, before, maximum);
            const float p = assay_mla_weight(tile, score, assay_mla_shift(maximum));
            side->p[row][key] = p;
            tile->key_factor[row][key] = factor;
            *lane = assay_mla_fma(flush, *lane, factor, p);
        }
}

/* to = from * factor + p * value, as assay_mla_multiply and assay_mla_fma, but that NaN
 * is left as it comes and no argument is subnormal where they are flushed. False where a
 * step ends just at the smallest normal: whether it is flushed there the rounded result
 * does not say. */
ASSAY_EACH_INSTRUCTION_SET
static bool rescale_and_add(bool flush, float factor, const float *restrict from, float p,
                            const float *restrict value, float *restrict to)
{
    const float smallest = flush ? 0x1p-126f : 0;
    int undecided = 0;
    for (int i = 0; i < COLUMNS; i++) {
        const float product = from[i] * factor, its_size = fabsf(product);
        const float scaled = its_size < smallest ? copysignf(0.0f, product) : product;
        const float sum = fmaf(p, value[i], scaled), size = fabsf(sum);
        undecided |= flush & ((its_size == smallest) | (size == smallest));
        to[i] = size < smallest ? copysignf(0.0f, sum) : sum;
    }
    return !undecided;
}

static void add_key(struct assay_mla_tile *tile, int row, int key, int first_column,
                    const float *value)
{
    const bool flush = tile->numerics->flush;
    const int p_rounding = tile->numerics->p_rounding;
    const float factor = tile->key_factor[row][key];
    float *const output = &tile->output[row][first_column], sum[COLUMNS];
    float p = tile->side[0].p[row][key];
    if (p_rounding != ASSAY_MLA_P_KEPT) {
        uint16_t code;
        assay_mla_encode(tile->query->format, p_rounding, &p, 1, &code);
        assay_mla_decode(tile->query->format, &code, 1, &p);
    }
    const bool is_decided =
        rescale_and_add(flush, flush ? assay_f32_flush(factor) : factor, output,
                        flush ? assay_f32_flush(p) : p, value, sum);
    for (int i = 0; i < COLUMNS; i++)
        output[i] = is_decided
                        ? assay_f32_canonical(sum[i])
                        : assay_mla_fma(flush, p, value[i],
                                        assay_mla_multiply(flush, output[i], factor));
}

void assay_mla_plain_values(struct assay_mla_tile *tile, int first_column)
{
    const struct assay_mla_block *const block = &tile->side[0].block;
    float value[COLUMNS];
    uint64_t attended = 0;
    for (int row = 0; row < tile->query->rows; row++)
        attended |= block->attended[row];
    for (int key = 0; key < KEYS; key++) {
        if (!(attended >> key & 1)) continue;
        assay_mla_decode(tile->query->format, &block->key[key][first_column], COLUMNS,
                         value);
        for (int i = 0; tile->numerics->flush && i < COLUMNS; i++)
            value[i] = assay_f32_flush(value[i]);
        for (int row = 0; row < tile->query->rows; row++)
            if (block->attended[row] >> key & 1)
                add_key(tile, row, key, first_column, value);
    }
}

/* --- all scores first ------------------------------------------------------------- */

void assay_mla_materialised_weights(struct assay_mla_tile *tile)
{
    struct assay_mla_side *const side = &tile->side[0];
    for (int row = 0; row < tile->query->rows; row++) {
        const float shift = assay_mla_shift(tile->maximum[row]);
        float *const lane = tile->lane[0][row];
        for (int key = 0; key < KEYS; key++)
            side->p[row][key] = assay_mla_weight(tile, side->score[row][key], shift);
        if (tile->numerics->row_sum == ASSAY_MLA_SUM_ONE_LANE)
            lane[0] = assay_mla_chain_sum(tile->numerics->flush, side->p[row], lane[0]);
        else
            assay_mla_add_sums(tile, side->p[row], 1.0f, lane);
    }
}

/* Pass 1 finds the maximum of all scores, pass 2 needs the keys once more for their
 * values. */
bool assay_mla_attend_materialised(struct assay_mla_tile *tile, int64_t begin_block,
                                   int64_t end_block)
{
    const struct assay_mla_stages *const stage = &tile->numerics->stage;
    struct assay_mla_side *const side = &tile->side[0];
    const size_t blocks = end_block > begin_block ? (size_t)(end_block - begin_block) : 0;
    if (blocks == 0) return true;
    float(*const kept)[ASSAY_MLA_ROWS][ASSAY_MLA_BLOCK] = calloc(blocks, sizeof(*kept));
    if (!kept) return false;
    for (size_t i = 0; i < blocks; i++) {
        assay_mla_load(tile, 0, begin_block + (int64_t)i);
        stage->scores(tile, 0);
        memcpy(kept[i], side->score, sizeof(*kept));
        for (int row = 0; row < tile->query->rows; row++)
            tile->maximum[row] = assay_f32_maximum(tile->maximum[row],
                                                   assay_mla_block_maximum(tile, 0, row));
    }
    for (size_t i = 0; i < blocks; i++) {
        assay_mla_load(tile, 0, begin_block + (int64_t)i);
        memcpy(side->score, kept[i], sizeof(*kept));
        stage->weights(tile, 0);
        stage->values(tile, 0, 0);
        stage->values(tile, 0, ASSAY_MLA_RIGHT);
    }
    free(kept);
    return true;
}
