/* SPDX-License-Identifier: MIT */
/* Three ways to one product: tiles of dot-adds where the unit is served, one dot-add
 * after the other where its constants are others, f32 fma. */
#include "ref/kernel/mla_product.h"

#include "ref/instruction_sets.h"
#include "ref/kernel/mla_arithmetic.h"
#include "ref/unit/dot_tile.h"

#include <math.h>
#include <string.h>

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

/* A row of a with all columns of b, step by step as assay_mla_fma, but that NaN is left
 * as it comes and subnormals of a and b are flushed already. False where a step ends just
 * at the smallest normal: whether it is flushed there the rounded result does not say. */
ASSAY_EACH_INSTRUCTION_SET
static bool add_row(bool flush, const float *restrict a, const float *restrict b, int k,
                    float *restrict sum)
{
    const float smallest = flush ? 0x1p-126f : 0;
    int undecided = 0;
    for (int i = 0; i < k; i++)
        for (int column = 0; column < COLUMNS; column++) {
            const float exact = fmaf(a[i], b[i * COLUMNS + column], sum[column]);
            const float size = fabsf(exact);
            undecided |= flush & (size == smallest);
            sum[column] = size < smallest ? copysignf(0.0f, exact) : exact;
        }
    return !undecided;
}

static float add_one_by_one(bool flush, const float *a, const float *b, int k, float sum)
{
    for (int i = 0; i < k; i++)
        sum = assay_mla_fma(flush, a[i], b[i * COLUMNS], sum);
    return sum;
}

/* @b holds a column's elements COLUMNS apart; @a and @b are flushed. */
static void add_chains(bool flush, const float *a, const float *b, int k,
                       uint32_t *accumulator)
{
    float before[COLUMNS], sum[COLUMNS];
    for (int column = 0; column < COLUMNS; column++) {
        const float value = assay_f32_from_bits(accumulator[column]);
        before[column] = flush ? assay_f32_flush(value) : value;
    }
    memcpy(sum, before, sizeof(sum));
    const bool is_decided = add_row(flush, a, b, k, sum);
    for (int column = 0; column < COLUMNS; column++) {
        if (!is_decided)
            sum[column] = add_one_by_one(flush, a, b + column, k, before[column]);
        accumulator[column] = assay_f32_bits(assay_f32_canonical(sum[column]));
    }
}

static void flush_all(bool flush, float *values, int count)
{
    for (int i = 0; flush && i < count; i++)
        values[i] = assay_f32_flush(values[i]);
}

static void add_by_fma(const struct assay_mla_tile *tile,
                       const struct assay_mla_product *product)
{
    const enum assay_format format = tile->query->format;
    const bool flush = tile->numerics->flush;
    float a[CHUNK], of_column[CHUNK], b[CHUNK * COLUMNS];
    for (int k = 0; k < product->k; k += CHUNK) {
        const int count = product->k - k < CHUNK ? product->k - k : CHUNK;
        for (int column = 0; column < COLUMNS; column++) {
            assay_mla_decode(format, product->b + column * product->b_stride + k, count,
                             of_column);
            flush_all(flush, of_column, count);
            for (int i = 0; i < count; i++)
                b[i * COLUMNS + column] = of_column[i];
        }
        for (int row = 0; row < tile->query->rows; row++) {
            const int64_t first = row * product->a_stride + k;
            if (product->kept)
                memcpy(a, product->kept + first, (size_t)count * sizeof(*a));
            else
                assay_mla_decode(format, product->a + first, count, a);
            flush_all(flush, a, count);
            add_chains(flush, a, b, count, product->accumulator[row]);
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
