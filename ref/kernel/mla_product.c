/* SPDX-License-Identifier: MIT */
/* Three ways to one product: tiles of dot-adds where the unit is served, one dot-add
 * after the other where its constants are others, f32 fma. */
#include "ref/kernel/mla_product.h"

#include "ref/kernel/mla_arithmetic.h"
#include "ref/unit/dot_tile.h"

enum { ROWS = ASSAY_MLA_ROWS, COLUMNS = ASSAY_MLA_BLOCK, CHUNK = 64 };

static void add_by_tiles(const struct assay_mla_tile *tile,
                         const struct assay_mla_product *product)
{
    const struct assay_dot_tile job = {
        .profile = &tile->unit,
        .format_a = tile->query->format,
        .format_b = tile->query->format,
        .rows = tile->query->rows,
        .columns = COLUMNS,
        .k = product->k,
        .a = product->a,
        .b = product->b,
        .a_stride = { product->a_stride, 1 },
        .b_stride = { product->b_stride, 1 },
        .accumulator = product->accumulator[0],
        .accumulator_stride = COLUMNS,
    };
    assay_dot_tile(&job);
}

static void decode_step(const struct assay_mla_tile *tile, const uint16_t *codes,
                        int64_t stride, int rows, struct assay_operand *operands)
{
    const int terms = tile->unit.terms;
    for (int row = 0; row < rows; row++)
        for (int term = 0; term < terms; term++)
            operands[row * terms + term] = assay_operand_decode(
                &tile->unit, tile->query->format, codes[row * stride + term]);
}

static void add_by_dot_adds(const struct assay_mla_tile *tile,
                            const struct assay_mla_product *product)
{
    const int terms = tile->unit.terms, rows = tile->query->rows;
    struct assay_operand a[ROWS * ASSAY_DOT_ADD_MAX_TERMS];
    struct assay_operand b[COLUMNS * ASSAY_DOT_ADD_MAX_TERMS];
    for (int k = 0; k < product->k; k += terms) {
        decode_step(tile, product->a + k, product->a_stride, rows, a);
        decode_step(tile, product->b + k, product->b_stride, COLUMNS, b);
        for (int row = 0; row < rows; row++)
            for (int column = 0; column < COLUMNS; column++) {
                uint32_t *const sum = &product->accumulator[row][column];
                *sum =
                    assay_dot_add(&tile->unit, *sum, a + row * terms, b + column * terms);
            }
    }
}

static uint32_t fma_chain(bool flush, const float *a, const float *b, int k, uint32_t sum)
{
    float value = assay_f32_from_bits(sum);
    for (int i = 0; i < k; i++)
        value = assay_mla_fma(flush, a[i], b[i], value);
    return assay_f32_bits(value);
}

static void add_by_fma(const struct assay_mla_tile *tile,
                       const struct assay_mla_product *product)
{
    const enum assay_format format = tile->query->format;
    const bool flush = tile->numerics->flush;
    float decoded[CHUNK], b[COLUMNS][CHUNK];
    for (int k = 0; k < product->k; k += CHUNK) {
        const int count = product->k - k < CHUNK ? product->k - k : CHUNK;
        for (int column = 0; column < COLUMNS; column++)
            assay_mla_decode(format, product->b + column * product->b_stride + k, count,
                             b[column]);
        for (int row = 0; row < tile->query->rows; row++) {
            const int64_t first = row * product->a_stride + k;
            if (!product->kept)
                assay_mla_decode(format, product->a + first, count, decoded);
            const float *const a = product->kept ? product->kept + first : decoded;
            for (int column = 0; column < COLUMNS; column++) {
                uint32_t *const sum = &product->accumulator[row][column];
                *sum = fma_chain(flush, a, b[column], count, *sum);
            }
        }
    }
}

void assay_mla_add_product(const struct assay_mla_tile *tile,
                           const struct assay_mla_product *product)
{
    const enum assay_format format = tile->query->format;
    if (product->kept || tile->numerics->unit == ASSAY_MLA_FMA)
        add_by_fma(tile, product);
    else if (assay_dot_tile_serves(&tile->unit, format, format))
        add_by_tiles(tile, product);
    else
        add_by_dot_adds(tile, product);
}
