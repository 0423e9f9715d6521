/* SPDX-License-Identifier: MIT */
/* Chains of fma over many columns at once: the same bits as one step after the other,
 * around the smallest normal too, where a rounded step does not say whether the hardware
 * flushes it. */
#include "ref/kernel/mla_product.h"

#include "ref/kernel/mla_arithmetic.h"
#include "tests/harness.h"

#include <string.h>

enum { ROWS = ASSAY_MLA_ROWS, COLUMNS = ASSAY_MLA_BLOCK, K = 32, TRIES = 300 };

static struct assay_mla_numerics numerics;
static struct assay_mla_query query;
static struct assay_mla_tile tile;
static uint16_t a[ROWS][K], b[COLUMNS][K];
static float kept[ROWS][K];
static uint32_t sum[ROWS][COLUMNS];

static void open_tile(bool flush)
{
    numerics = (struct assay_mla_numerics){ .unit = ASSAY_MLA_FMA,
                                            .flush = flush,
                                            .p_rounding = ASSAY_MLA_P_KEPT };
    query = (struct assay_mla_query){ .format = ASSAY_BF16, .rows = ROWS };
    memset(&tile, 0, sizeof(tile));
    tile.query = &query;
    tile.numerics = &numerics;
}

static uint32_t draw(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

/* A bf16 code of 2^@exponent, times 1 to 2, of either sign; every 64th is odd. */
static uint16_t code_near(int exponent)
{
    static const uint16_t odd[] = { 0x7F80, 0xFF80, 0x7FC1, 0x0001 };
    const uint32_t drawn = draw();
    if (drawn % 64 == 0) return odd[drawn >> 30];
    return (uint16_t)((drawn >> 31 << 15) | (uint32_t)(exponent + 127) << 7 |
                      (drawn >> 8 & 0x7F));
}

/* Products from 2^-152 to 2^-125: sums end at the smallest normal again and again. */
static void fill(void)
{
    for (int k = 0; k < K; k++) {
        for (int row = 0; row < ROWS; row++) {
            a[row][k] = code_near(-63 - (int)(draw() % 13));
            kept[row][k] =
                assay_f32_from_bits((uint32_t)a[row][k] << 16 | (draw() >> 20));
        }
        for (int column = 0; column < COLUMNS; column++)
            b[column][k] = code_near(-63 - (int)(draw() % 13));
    }
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++)
            sum[row][column] = (draw() & 0x80000000) | (0x007FFFFE + draw() % 4);
}

static float value(uint16_t code)
{
    return assay_f32_from_bits((uint32_t)code << 16);
}

static uint32_t step_by_step(bool flush, bool is_kept, int row, int column)
{
    float result = assay_f32_from_bits(sum[row][column]);
    for (int k = 0; k < K; k++)
        result = assay_mla_fma(flush, is_kept ? kept[row][k] : value(a[row][k]),
                               value(b[column][k]), result);
    return assay_f32_bits(result);
}

static void check_product(bool flush, bool is_kept)
{
    static uint32_t expected[ROWS][COLUMNS];
    const struct assay_mla_product product = {
        .k = K,
        .a = a[0],
        .kept = is_kept ? kept[0] : NULL,
        .a_stride = K,
        .b = b[0],
        .b_stride = K,
        .accumulator = sum,
    };
    fill();
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++)
            expected[row][column] = step_by_step(flush, is_kept, row, column);
    assay_mla_add_product(&tile, &product);
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++)
            ck_assert_msg(sum[row][column] == expected[row][column],
                          "flush %d, row %d, column %d: %08x, not %08x", flush, row,
                          column, sum[row][column], expected[row][column]);
}

START_TEST(products_have_the_bits_of_one_fma_after_the_other)
{
    for (int flush = 0; flush < 2; flush++) {
        open_tile(flush);
        for (int i = 0; i < TRIES; i++)
            check_product(flush, i % 2);
    }
}
END_TEST

/* 2^-126 - 17 * 2^-155 is 2^-126 in f32 and just below it in 24 bits, so it is flushed;
 * 2^-126 - 2^-160 is 2^-126 in both. */
START_TEST(what_rounds_to_the_smallest_normal_is_flushed_if_24_bits_are_below)
{
    static const struct {
        uint16_t second;
        uint32_t flushed;
    } rows[] = { { 0x9A08, 0 }, { 0x9780, 0x00800000 } };
    for (int flush = 0; flush < 2; flush++)
        for (int i = 0; i < 2; i++) {
            const struct assay_mla_product product = { .k = 16,
                                                       .a = a[0],
                                                       .a_stride = K,
                                                       .b = b[0],
                                                       .b_stride = K,
                                                       .accumulator = sum };
            open_tile(flush);
            memset(a, 0, sizeof(a));
            memset(b, 0, sizeof(b));
            memset(sum, 0, sizeof(sum));
            a[0][0] = b[0][0] = 0x2000;    /* 2^-63 */
            a[0][1] = rows[i].second;      /* -17 * 2^-79, -2^-80 */
            b[0][1] = i ? 0x1780 : 0x1980; /* 2^-80, 2^-76 */
            assay_mla_add_product(&tile, &product);
            ck_assert_uint_eq(sum[0][0], flush ? rows[i].flushed : 0x00800000);
        }
}
END_TEST

/* One key, and one column that is near the smallest normal: any other would have the
 * whole row done step by step. */
static void check_value(bool flush, int column)
{
    static const float factors[] = { 1, 0x1.fffffep-1f, 0x1.000002p0f, 0.5f };
    const float factor = factors[draw() % 4];
    const float p = value(code_near(-62 - (int)(draw() % 4)));
    const uint16_t code = code_near(-62 - (int)(draw() % 32));
    const float before = assay_f32_from_bits(0x00800000 + draw() % 3 * (draw() % 3));
    const float expected =
        assay_mla_fma(flush, p, value(code), assay_mla_multiply(flush, before, factor));
    for (int i = 0; i < ASSAY_MLA_RIGHT; i++)
        tile.output[0][i] = 1;
    tile.output[0][column] = before;
    tile.key_factor[0][0] = factor;
    tile.side[0].p[0][0] = p;
    tile.side[0].block.key[0][column] = code;
    assay_mla_plain_values(&tile, 0);
    tile.side[0].block.key[0][column] = 0;
    const uint32_t found = assay_f32_bits(tile.output[0][column]);
    ck_assert_msg(found == assay_f32_bits(expected), "flush %d: %a * %a + %a * %a: %08x",
                  flush, (double)before, (double)factor, (double)p, (double)value(code),
                  found);
}

START_TEST(values_have_the_bits_of_one_step_after_the_other)
{
    for (int flush = 0; flush < 2; flush++) {
        open_tile(flush);
        query.rows = 1;
        tile.side[0].block.attended[0] = 1;
        for (int i = 0; i < 200000; i++)
            check_value(flush, i % ASSAY_MLA_RIGHT);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        products_have_the_bits_of_one_fma_after_the_other,
        what_rounds_to_the_smallest_normal_is_flushed_if_24_bits_are_below,
        values_have_the_bits_of_one_step_after_the_other,
        NULL,
    };
    return run_tests("mla_product", tests);
}
