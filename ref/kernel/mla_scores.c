/* SPDX-License-Identifier: MIT */
/* Scores of a block: products of queries and keys in the block's order of tiles,
 * masked. */
#include "ref/kernel/mla_product.h"

#include <math.h>
#include <string.h>

enum { ROWS = ASSAY_MLA_ROWS, KEYS = ASSAY_MLA_BLOCK };

float assay_mla_masked_score(const struct assay_mla_numerics *numerics)
{
    return numerics->mask == ASSAY_MLA_MASK_FINITE ? -1e33f : -INFINITY;
}

static void add_dims(const struct assay_mla_tile *tile, const struct assay_mla_side *side,
                     int first, int end, uint32_t (*sum)[KEYS])
{
    const struct assay_mla_product product = {
        .k = end - first,
        .a = &tile->q[0][first],
        .a_stride = ASSAY_MLA_MAX_D_QK,
        .b = &side->block.key[0][first],
        .b_stride = ASSAY_MLA_MAX_D_QK,
        .accumulator = sum,
    };
    assay_mla_add_product(tile, &product);
}

void assay_mla_scores(struct assay_mla_tile *tile, int side_index)
{
    struct assay_mla_side *const side = &tile->side[side_index];
    const int order = tile->numerics->tile_order[side_index];
    const float masked = assay_mla_masked_score(tile->numerics);
    const int d_qk = tile->query->d_qk;
    const int first = order == ASSAY_MLA_TILES_FROM_FOURTH ? ASSAY_MLA_RIGHT : 0;
    uint32_t sum[ROWS][KEYS] = { 0 };

    add_dims(tile, side, first, d_qk, sum);
    if (first > 0) add_dims(tile, side, 0, first, sum);
    for (int row = 0; row < tile->query->rows; row++) {
        const uint64_t attended = side->block.attended[row];
        memcpy(side->score[row], sum[row], sizeof(sum[row]));
        for (int key = 0; key < KEYS; key++)
            if (!(attended >> key & 1)) side->score[row][key] = masked;
    }
}
