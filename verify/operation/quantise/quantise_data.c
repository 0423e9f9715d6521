/* SPDX-License-Identifier: MIT */
/* Inputs of quantise: one stream a logical row, and the same number of draws for every
 * element, so that a smaller case keeps the values it shares. */
#include "ref/format/minifloat.h"
#include "verify/data/runs.h"
#include "verify/operation/quantise/quantise.h"

#include <assert.h>

enum { SMALLEST_BLOCK = 32, BLOCK = 128, LARGEST = 448 };

struct row { /* one row of x under construction */
    const struct assay_tensor *x;
    struct assay_stream *stream, *blocks; /* its own, and that of its 128 rows */
    int64_t row, columns;
};

static uint32_t encoded(const struct row *row, double value)
{
    return assay_minifloat_encode(assay_minifloat(row->x->format), value,
                                  ASSAY_OVERFLOW_SPECIAL);
}

static void put_bits(const struct row *row, int64_t column, uint32_t bits)
{
    assay_tensor_set_bits(row->x, row->row * row->columns + column, bits);
}

static void put(const struct row *row, int64_t column, double value)
{
    put_bits(row, column, encoded(row, value));
}

static void fill_normal(const struct row *row)
{
    for (int64_t k = 0; k < row->columns; k++)
        put(row, k, assay_stream_normal(row->stream));
}

static void fill_uniform(const struct row *row)
{
    for (int64_t k = 0; k < row->columns; k++)
        put(row, k, 2 * assay_stream_unit(row->stream) - 1);
}

static void fill_positive(const struct row *row)
{
    for (int64_t k = 0; k < row->columns; k++)
        put(row, k, assay_stream_unit(row->stream));
}

/* Exponents over a wide range from row to row, over 16 binades inside one: amax is
 * sometimes below 1e-4. */
static void fill_wide(const struct row *row)
{
    const int of_row = (int)(assay_stream_next(row->stream) % 150) - 40;
    for (int64_t k = 0; k < row->columns; k++) {
        const uint32_t draw = assay_stream_next(row->stream);
        const double significand = 1 + (draw >> 8) * 0x1p-24;
        const double power = assay_power_of_two(of_row + (int)(draw & 15));
        put(row, k, (draw & 16 ? -1 : 1) * significand * power);
    }
}

static void fill_outlier(const struct row *row)
{
    for (int64_t k = 0; k < row->columns; k++) {
        const bool is_huge = assay_stream_next(row->stream) < UINT32_MAX / 64;
        put(row, k, (is_huge ? 1000 : 1) * assay_stream_normal(row->stream));
    }
}

/* One value in 32 is normal, the others become subnormal codes or zero, and one in 16 is
 * subnormal itself. */
static void fill_subnormal(const struct row *row)
{
    const uint32_t mantissas = row->x->format == ASSAY_F32 ? 1u << 23 : 1u << 7;
    const uint32_t sign = row->x->format == ASSAY_F32 ? 1u << 31 : 1u << 15;
    for (int64_t k = 0; k < row->columns; k++) {
        const uint32_t draw = assay_stream_next(row->stream);
        const double value = assay_stream_normal(row->stream);
        put(row, k, k % SMALLEST_BLOCK == 0 ? value : value * 0x1p-16);
        if (k % SMALLEST_BLOCK && draw >> 28 == 0)
            put_bits(row, k, (draw & 1 ? sign : 0) | (draw >> 4 & (mantissas - 1)));
    }
}

/* Normal data; one row in eight, never the first, has one odd value in its first 64
 * columns. */
static void fill_special(const struct row *row)
{
    static const uint16_t specials[] = {
        0x7FC0, 0x7F80, 0xFF80, 0xFFC1, 0x8000, 0x7F7F, 0x0001, 0xFF7F
    }; /* high halves of f32 */
    const uint32_t chance = assay_stream_next(row->stream);
    const uint32_t place = assay_stream_next(row->stream);
    fill_normal(row);
    if (row->row == 0 || chance >= UINT32_MAX / 8 || place % 64 >= row->columns) return;
    const uint32_t bits = specials[place >> 29];
    put_bits(row, place % 64, row->x->format == ASSAY_F32 ? bits << 16 : bits);
}

/* Multiples of 2^-bits in [1, 2), times 2^0 to 2^-7 and 2^j, with j the same in 128 x 128
 * elements, where one in 32 is +-448 * 2^j: the scale is 2^j whatever divides. */
static void fill_codes(const struct row *row, int bits, uint32_t odd)
{
    double unit = 0;
    for (int64_t k = 0; k < row->columns; k++) {
        if (k % BLOCK == 0)
            unit = assay_power_of_two((int)(assay_stream_next(row->blocks) % 16) - 12);
        const uint32_t draw = assay_stream_next(row->stream);
        const uint32_t significand = (1u << bits) + (draw >> (32 - bits) | odd);
        const double value = significand * assay_power_of_two(-bits) *
                             assay_power_of_two(7 - (int)(draw % 8));
        const double sign = draw & 8 ? -1 : 1;
        put(row, k, sign * (k % SMALLEST_BLOCK ? value : LARGEST) * unit);
    }
}

/* Half way between two codes of four significant bits. */
static void fill_ties(const struct row *row)
{
    fill_codes(row, 4, 1);
}

static void fill_exact(const struct row *row)
{
    fill_codes(row, 3, 0);
}

static void fill_runs(const struct row *row)
{
    const struct assay_run_range range = assay_run_range(row->x->format, 0, 1);
    struct assay_runs runs;
    assay_runs_begin(&runs, row->stream);
    for (int64_t k = 0; k < row->columns; k++)
        put_bits(row, k, assay_runs_next(&runs, &range));
}

static void fill_zeros(const struct row *row)
{
    for (int64_t k = 0; k < row->columns; k++)
        put_bits(row, k, 0);
}

static void (*const fill_row[ASSAY_DATA_KIND_COUNT])(const struct row *) = {
    [ASSAY_DATA_NORMAL] = fill_normal,       [ASSAY_DATA_UNIFORM] = fill_uniform,
    [ASSAY_DATA_WIDE] = fill_wide,           [ASSAY_DATA_OUTLIER] = fill_outlier,
    [ASSAY_DATA_SUBNORMAL] = fill_subnormal, [ASSAY_DATA_SPECIAL] = fill_special,
    [ASSAY_DATA_TIES] = fill_ties,           [ASSAY_DATA_POSITIVE] = fill_positive,
    [ASSAY_DATA_EXACT] = fill_exact,         [ASSAY_DATA_RUNS] = fill_runs,
    [ASSAY_DATA_ZERO] = fill_zeros,
};

bool assay_quantise_has_data(enum assay_data_kind kind)
{
    return kind == ASSAY_DATA_RECORDED || fill_row[kind];
}

void assay_quantise_fill(const void *problem, enum assay_data_kind kind, uint64_t seed,
                         const struct assay_tensors *tensors)
{
    (void)problem;
    const struct assay_tensor *const x = &tensors->item[ASSAY_QUANTISE_X];
    assert(kind < ASSAY_DATA_KIND_COUNT && fill_row[kind]);
    for (int64_t i = 0; i < x->shape[0]; i++) {
        struct assay_stream stream, blocks;
        assay_stream_open(&stream, seed, x->name, assay_data_kinds[kind].name, i);
        assay_stream_open(&blocks, seed, "x blocks", assay_data_kinds[kind].name,
                          i / BLOCK);
        fill_row[kind](&(struct row){ x, &stream, &blocks, i, x->shape[1] });
    }
}
