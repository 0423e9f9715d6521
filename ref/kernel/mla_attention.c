/* SPDX-License-Identifier: MIT */
/* A tile's life: opened for a query, walked over blocks in the order of its schedule,
 * finished. */
#include "ref/kernel/mla_attention.h"

#include "ref/kernel/mla_arithmetic.h"
#include "ref/kernel/mla_tile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { A, B, LEFT = 0, RIGHT = ASSAY_MLA_RIGHT };

static struct assay_dot_add unit_of(const struct assay_mla_query *query)
{
    const struct assay_mla_numerics *const numerics = query->numerics;
    const bool is_f16 = query->format == ASSAY_F16;
    struct assay_dot_add unit =
        *assay_dot_add_find(is_f16 ? "hopper-f16" : "hopper-bf16");
    if (numerics->align_bits) unit.align_bits = numerics->align_bits;
    if (numerics->result_bits) unit.result_bits = numerics->result_bits;
    return unit;
}

/* softmax_scale * log2(e), on the host: no flush. */
static float scale_of(const struct assay_mla_query *query)
{
    const float single = 1.44269504f, scale = query->softmax_scale;
    switch (query->numerics->scale_constant) {
    case ASSAY_MLA_SCALE_DOUBLE: return (float)((double)scale * M_LOG2E);
    case ASSAY_MLA_SCALE_SINGLE: return scale * single;
    default: return (float)((double)scale * (double)single);
    }
}

struct assay_mla_tile *assay_mla_tile_open(const struct assay_mla_query *query)
{
    assert(query->format == ASSAY_BF16 || query->format == ASSAY_F16);
    assert(query->rows >= 1 && query->rows <= ASSAY_MLA_ROWS);
    assert(query->d_qk >= ASSAY_MLA_D_V && query->d_qk <= ASSAY_MLA_MAX_D_QK);
    struct assay_mla_tile *const tile = calloc(1, sizeof(*tile));
    if (!tile) return NULL;
    tile->query = query;
    tile->numerics = query->numerics;
    tile->unit = unit_of(query);
    tile->scale = scale_of(query);
    for (int row = 0; row < query->rows; row++)
        memcpy(tile->q[row], query->q[row], (size_t)query->d_qk * sizeof(tile->q[0][0]));
    return tile;
}

void assay_mla_tile_close(struct assay_mla_tile *tile)
{
    free(tile);
}

/* --- schedules -------------------------------------------------------------------- */

void assay_mla_load(struct assay_mla_tile *tile, int side, int64_t block)
{
    const struct assay_mla_keys *const keys = &tile->query->keys;
    keys->load(keys->source, block, &tile->side[side].block);
    tile->side[side].is_present = true;
}

/* A B block that does not exist: masked keys of zeros, or nothing but masked scores. */
static void load_missing(struct assay_mla_tile *tile)
{
    struct assay_mla_side *const side = &tile->side[B];
    const float masked = assay_mla_masked_score(tile->numerics);
    memset(&side->block, 0, sizeof(side->block));
    side->is_present = tile->numerics->odd_tail == ASSAY_MLA_TAIL_MASKED;
    for (int row = 0; row < ASSAY_MLA_ROWS; row++)
        for (int key = 0; key < ASSAY_MLA_BLOCK; key++)
            side->score[row][key] = masked;
}

static void attend_pair(struct assay_mla_tile *tile, int64_t block, bool has_b)
{
    const struct assay_mla_stages *const stage = &tile->numerics->stage;
    const bool is_as_left = tile->numerics->right_p == ASSAY_MLA_RIGHT_P_AS_LEFT;
    assay_mla_load(tile, A, block);
    if (has_b)
        assay_mla_load(tile, B, block + 1);
    else
        load_missing(tile);
    const bool runs_b = tile->side[B].is_present;

    stage->scores(tile, A);
    stage->weights(tile, A);
    stage->values(tile, A, LEFT);
    if (is_as_left) stage->values(tile, A, RIGHT);
    if (runs_b) stage->scores(tile, B);
    stage->weights(tile, B);
    if (runs_b || !is_as_left) stage->values(tile, B, RIGHT);
    if (!is_as_left) stage->values(tile, A, RIGHT);
    if (runs_b) stage->values(tile, B, LEFT);
}

static void attend_block(struct assay_mla_tile *tile, int64_t block)
{
    const struct assay_mla_stages *const stage = &tile->numerics->stage;
    assay_mla_load(tile, A, block);
    stage->scores(tile, A);
    stage->weights(tile, A);
    stage->values(tile, A, LEFT);
    stage->values(tile, A, RIGHT);
}

static void start(struct assay_mla_tile *tile)
{
    const bool is_finite = tile->numerics->start == ASSAY_MLA_START_FINITE;
    for (int row = 0; row < ASSAY_MLA_ROWS; row++)
        tile->maximum[row] = is_finite ? -1e30f : -INFINITY;
    memset(tile->lane, 0, sizeof(tile->lane));
    memset(tile->output, 0, sizeof(tile->output));
}

bool assay_mla_tile_attend(struct assay_mla_tile *tile, int64_t begin_block,
                           int64_t end_block)
{
    start(tile);
    switch (tile->numerics->schedule) {
    case ASSAY_MLA_SEESAW:
        for (int64_t block = begin_block; block < end_block; block += 2)
            attend_pair(tile, block, block + 1 < end_block);
        return true;
    case ASSAY_MLA_MATERIALISED:
        return assay_mla_attend_materialised(tile, begin_block, end_block);
    default:
        for (int64_t block = begin_block; block < end_block; block++)
            attend_block(tile, block);
        return true;
    }
}

/* --- results ---------------------------------------------------------------------- */

void assay_mla_tile_finish(struct assay_mla_tile *tile, uint16_t *const *out,
                           float *const *lse, float *const *max_logits)
{
    tile->is_split = false;
    tile->numerics->stage.finish(tile);
    for (int row = 0; row < tile->query->rows; row++) {
        assay_mla_encode(tile->query->format, ASSAY_MLA_P_NEAREST_EVEN, tile->output[row],
                         ASSAY_MLA_D_V, out[row]);
        *lse[row] = tile->lse[row];
        if (max_logits) *max_logits[row] = tile->max_logits[row];
    }
}

void assay_mla_tile_finish_split(struct assay_mla_tile *tile,
                                 float (*oaccum)[ASSAY_MLA_D_V], float *lseaccum)
{
    const size_t rows = (size_t)tile->query->rows;
    tile->is_split = true;
    tile->numerics->stage.finish(tile);
    memcpy(oaccum, tile->output, rows * sizeof(oaccum[0]));
    memcpy(lseaccum, tile->lse, rows * sizeof(lseaccum[0]));
}
