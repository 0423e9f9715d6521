/* SPDX-License-Identifier: MIT */
/* Output of a block: half of the columns rescaled, p rounded, times the values. */
#include "ref/kernel/mla_arithmetic.h"
#include "ref/kernel/mla_product.h"

#include <string.h>

enum { A, B, ROWS = ASSAY_MLA_ROWS, KEYS = ASSAY_MLA_BLOCK, COLUMNS = 64 };

/* Whether the right half goes its own way: the B block first, p rescaled before it is
 * rounded. */
static bool is_crossed(const struct assay_mla_tile *tile, int first_column)
{
    return tile->numerics->schedule == ASSAY_MLA_SEESAW &&
           tile->numerics->right_p == ASSAY_MLA_RIGHT_P_RESCALED && first_column > 0;
}

/* Each row's factor before the block is added; NULL for none. */
static const float *factors(const struct assay_mla_tile *tile, int side, int first_column)
{
    if (tile->numerics->schedule == ASSAY_MLA_MATERIALISED) return NULL;
    if (!is_crossed(tile, first_column)) return tile->side[side].factor;
    return side == A ? NULL : tile->right_factor;
}

static void load_sums(const struct assay_mla_tile *tile, const float *factor, int column,
                      uint32_t (*sum)[COLUMNS])
{
    for (int row = 0; row < tile->query->rows; row++) {
        const float *const output = &tile->output[row][column];
        if (factor)
            assay_mla_scale_row(tile->numerics->flush, factor[row], output, COLUMNS,
                                sum[row]);
        else
            memcpy(sum[row], output, sizeof(sum[row]));
    }
}

static void store_sums(struct assay_mla_tile *tile, int column, uint32_t (*sum)[COLUMNS])
{
    for (int row = 0; row < tile->query->rows; row++)
        memcpy(&tile->output[row][column], sum[row], sizeof(sum[row]));
}

/* Values of a column side by side. */
static void transpose(const struct assay_mla_block *block, int column,
                      uint16_t (*value)[KEYS])
{
    for (int key = 0; key < KEYS; key++)
        for (int i = 0; i < COLUMNS; i++)
            value[i][key] = block->key[key][column + i];
}

/* p as it is multiplied. */
struct weights {
    float kept[ROWS][KEYS];
    uint16_t code[ROWS][KEYS];
};

static void round_weights(const struct assay_mla_tile *tile, int side, int first_column,
                          struct weights *weights)
{
    const struct assay_mla_numerics *const numerics = tile->numerics;
    const bool is_rescaled = side == A && is_crossed(tile, first_column);
    for (int row = 0; row < tile->query->rows; row++) {
        float *const p = weights->kept[row];
        memcpy(p, tile->side[side].p[row], sizeof(weights->kept[row]));
        for (int key = 0; is_rescaled && key < KEYS; key++)
            p[key] =
                assay_mla_multiply(numerics->flush, p[key], tile->side[B].factor[row]);
        if (numerics->p_rounding != ASSAY_MLA_P_KEPT)
            assay_mla_encode(tile->query->format, numerics->p_rounding, p, KEYS,
                             weights->code[row]);
    }
}

static void add_products(const struct assay_mla_tile *tile, int side,
                         const struct weights *weights, int column,
                         uint32_t (*sum)[COLUMNS])
{
    const bool is_kept = tile->numerics->p_rounding == ASSAY_MLA_P_KEPT;
    uint16_t value[COLUMNS][KEYS];
    transpose(&tile->side[side].block, column, value);
    const struct assay_mla_product product = {
        .k = KEYS,
        .a = weights->code[0],
        .kept = is_kept ? weights->kept[0] : NULL,
        .a_stride = KEYS,
        .b = value[0],
        .b_stride = KEYS,
        .accumulator = sum,
    };
    assay_mla_add_product(tile, &product);
}

/* A missing B block only rescales. */
void assay_mla_values(struct assay_mla_tile *tile, int side, int first_column)
{
    if (tile->numerics->schedule == ASSAY_MLA_PLAIN) {
        assay_mla_plain_values(tile, first_column);
        return;
    }
    const float *const factor = factors(tile, side, first_column);
    const bool is_present = tile->side[side].is_present;
    struct weights weights;
    if (is_present) round_weights(tile, side, first_column, &weights);
    for (int column = first_column; column < first_column + ASSAY_MLA_RIGHT;
         column += COLUMNS) {
        uint32_t sum[ROWS][COLUMNS];
        load_sums(tile, factor, column, sum);
        if (is_present) add_products(tile, side, &weights, column, sum);
        store_sums(tile, column, sum);
    }
}
