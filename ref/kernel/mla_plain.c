/* SPDX-License-Identifier: MIT */
/* The schedules without blocks: one key after the other, and all scores first. */
#include "ref/kernel/mla_arithmetic.h"
#include "ref/kernel/mla_tile.h"

#include <stdlib.h>
#include <string.h>

enum { KEYS = ASSAY_MLA_BLOCK };

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

static void add_key(struct assay_mla_tile *tile, int row, int key, int first_column,
                    const float *value)
{
    const bool flush = tile->numerics->flush;
    const int p_rounding = tile->numerics->p_rounding;
    const float factor = tile->key_factor[row][key];
    float *const output = &tile->output[row][first_column];
    float p = tile->side[0].p[row][key];
    if (p_rounding != ASSAY_MLA_P_KEPT) {
        uint16_t code;
        assay_mla_encode(tile->query->format, p_rounding, &p, 1, &code);
        assay_mla_decode(tile->query->format, &code, 1, &p);
    }
    for (int i = 0; i < ASSAY_MLA_RIGHT; i++)
        output[i] = assay_mla_fma(flush, p, value[i],
                                  assay_mla_multiply(flush, output[i], factor));
}

void assay_mla_plain_values(struct assay_mla_tile *tile, int first_column)
{
    const struct assay_mla_block *const block = &tile->side[0].block;
    float value[ASSAY_MLA_RIGHT];
    for (int key = 0; key < KEYS; key++) {
        assay_mla_decode(tile->query->format, &block->key[key][first_column],
                         ASSAY_MLA_RIGHT, value);
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
