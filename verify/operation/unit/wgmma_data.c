/* SPDX-License-Identifier: MIT */
/* Inputs of wgmma for every kind of data: one stream a row of a step, and the same number
 * of draws for every element, so that a smaller case keeps the values it shares. */
#include "ref/format/minifloat.h"
#include "verify/data/runs.h"
#include "verify/operation/unit/unit.h"

#include <assert.h>
#include <math.h>

enum { EXACT_C = 128, TF32_IGNORED_BITS = 13, LARGEST_C = 1 << 20 };

struct row { /* 32 bytes of K of one row of a or b under construction */
    const struct assay_tensor *tensor;
    const struct assay_minifloat *format;
    struct assay_stream *stream;
    bool is_b;
    int64_t step, row, first; /* first: logical index of its first element */
    int64_t elements;
};

/* What the format's products are about: FP8 uses most of its range, the others stay near
 * one. */
static double typical(const struct assay_minifloat *format)
{
    return format->mantissa_bits < 7 ? 16 : 1;
}

static void put_code(const struct row *row, int64_t k, uint32_t code)
{
    const bool is_tf32 = row->tensor->format == ASSAY_TF32;
    const uint32_t ignored =
        is_tf32 ? assay_stream_next(row->stream) >> (32 - TF32_IGNORED_BITS) : 0;
    assay_tensor_set_bits(row->tensor, row->first + k,
                          is_tf32 ? code << TF32_IGNORED_BITS | ignored : code);
}

static void put(const struct row *row, int64_t k, double value)
{
    put_code(row, k,
             assay_minifloat_encode(row->format, value, ASSAY_OVERFLOW_SATURATES));
}

static void fill_normal(const struct row *row)
{
    for (int64_t k = 0; k < row->elements; k++)
        put(row, k, typical(row->format) * assay_stream_normal(row->stream));
}

static void fill_uniform(const struct row *row)
{
    for (int64_t k = 0; k < row->elements; k++)
        put(row, k, 2 * typical(row->format) * (2 * assay_stream_unit(row->stream) - 1));
}

static void fill_positive(const struct row *row)
{
    for (int64_t k = 0; k < row->elements; k++)
        put(row, k, 8 * typical(row->format) * assay_stream_unit(row->stream));
}

/* Exponents over all of FP8 and f16, over 60 binades of the others: any random code, its
 * exponent folded into the range. */
static void fill_wide(const struct row *row)
{
    const int exponents = 1 << row->format->exponent_bits;
    const int range = exponents > 60 ? 60 : exponents - 1;
    const int lowest = exponents > 60 ? row->format->bias - range / 2 : 0;
    for (int64_t k = 0; k < row->elements; k++) {
        const uint32_t draw = assay_stream_next(row->stream);
        const uint32_t field = (uint32_t)(lowest + (int)(draw >> 16) % range);
        const uint32_t mantissa = draw & ((1u << row->format->mantissa_bits) - 1);
        const uint32_t sign = draw >> 15 & 1;
        put_code(row, k,
                 (sign << row->format->exponent_bits | field)
                         << row->format->mantissa_bits |
                     mantissa);
    }
}

static void fill_outlier(const struct row *row)
{
    for (int64_t k = 0; k < row->elements; k++) {
        const bool is_huge = assay_stream_next(row->stream) < UINT32_MAX / 64;
        put(row, k,
            (is_huge ? 16 : 0.25) * typical(row->format) *
                assay_stream_normal(row->stream));
    }
}

/* Elements 2j and 2j + 1: a holds v and -v (in the first pair and one of eight others v
 * twice), b holds w twice, so that most pairs of products cancel to nothing. */
static void fill_cancel(const struct row *row)
{
    for (int64_t k = 0; k < row->elements; k += 2) {
        const bool is_kept = assay_stream_next(row->stream) < UINT32_MAX / 8 || k == 0;
        const double value = typical(row->format) * assay_stream_normal(row->stream);
        put(row, k, value);
        put(row, k + 1, row->is_b || is_kept ? value : -value);
    }
}

/* Subnormal codes. Those of b are a little below one where the format has f32's range, so
 * that products are subnormals of f32 and not all zero. A quarter of a's rows is zero:
 * the accumulator alone goes through the unit. */
static void fill_subnormal(const struct row *row)
{
    const struct assay_minifloat *const format = row->format;
    const uint32_t mantissas = 1u << format->mantissa_bits;
    const int sign_bit = format->exponent_bits + format->mantissa_bits;
    const bool is_normal = row->is_b && format->exponent_bits == 8;
    const bool is_zero = assay_stream_next(row->stream) >> 30 == 0 && !row->is_b;
    for (int64_t k = 0; k < row->elements; k++) {
        const uint32_t draw = assay_stream_next(row->stream);
        const uint32_t field = is_normal ? (uint32_t)format->bias - (draw >> 29 & 3) : 0;
        const uint32_t magnitude = field * mantissas + (draw >> 4 & (mantissas - 1));
        put_code(row, k, draw >> 31 << sign_bit | (is_zero ? 0 : magnitude));
    }
}

/* Normal data; one row in eight, never the first, has one NaN or infinity. */
static void fill_special(const struct row *row)
{
    const uint32_t chance = assay_stream_next(row->stream);
    const uint32_t choice = assay_stream_next(row->stream);
    fill_normal(row);
    if (row->row == 0 || chance >= UINT32_MAX / 8) return;
    const double special = choice & 1 ? (double)NAN : (double)INFINITY;
    const uint32_t code =
        assay_minifloat_encode(row->format, special, ASSAY_OVERFLOW_SPECIAL);
    const int sign_bit = row->format->exponent_bits + row->format->mantissa_bits;
    put_code(row, choice >> 8 & (uint32_t)(row->elements - 1),
             code ^ (choice >> 1 & 1) << sign_bit);
}

/* Four products of a quarter of 2^(result_bits + 1), and an odd one: the first step's sum
 * lies half way between two results. The others are zero. */
static void fill_ties(const struct row *row)
{
    const double quarter = row->format->mantissa_bits < 7 ? 0x1p6 : 0x1p11;
    const double sign = assay_stream_next(row->stream) >> 31 && !row->is_b ? -1 : 1;
    for (int64_t k = 0; k < row->elements; k++) {
        const double odd = 1 + 2 * (assay_stream_next(row->stream) >> 30);
        const double value = k < 4 ? quarter : k == 4 ? odd : 0;
        put(row, k, row->step == 0 ? sign * value : 0);
    }
}

/* a: two entries of +-1 a step; b: all +-1. */
static void fill_exact(const struct row *row)
{
    const uint32_t draw = assay_stream_next(row->stream);
    const int64_t half = row->elements / 2;
    const int64_t place[2] = { draw % half, half + (draw >> 8) % half };
    for (int64_t k = 0; k < row->elements; k++) {
        const double sign = assay_stream_next(row->stream) >> 31 ? -1 : 1;
        const bool is_used = row->is_b || k == place[0] || k == place[1];
        put(row, k, is_used ? sign : 0);
    }
}

/* All of an 8-bit format; of the others values whose sums stay finite. */
static void fill_runs(const struct row *row)
{
    const bool is_narrow = row->format->mantissa_bits < 7;
    const struct assay_run_range range = assay_run_range(
        row->format->format, is_narrow ? 0 : 0x1p15, typical(row->format));
    struct assay_runs runs;
    assay_runs_begin(&runs, row->stream);
    for (int64_t k = 0; k < row->elements; k++)
        put_code(row, k, assay_runs_next(&runs, &range));
}

static void fill_zeros(const struct row *row)
{
    for (int64_t k = 0; k < row->elements; k++)
        assay_tensor_set_bits(row->tensor, row->first + k, 0);
}

static void (*const fill_row[ASSAY_DATA_KIND_COUNT])(const struct row *) = {
    [ASSAY_DATA_NORMAL] = fill_normal,     [ASSAY_DATA_UNIFORM] = fill_uniform,
    [ASSAY_DATA_WIDE] = fill_wide,         [ASSAY_DATA_OUTLIER] = fill_outlier,
    [ASSAY_DATA_CANCEL] = fill_cancel,     [ASSAY_DATA_SUBNORMAL] = fill_subnormal,
    [ASSAY_DATA_SPECIAL] = fill_special,   [ASSAY_DATA_TIES] = fill_ties,
    [ASSAY_DATA_POSITIVE] = fill_positive, [ASSAY_DATA_EXACT] = fill_exact,
    [ASSAY_DATA_RUNS] = fill_runs,         [ASSAY_DATA_ZERO] = fill_zeros,
};

/* Its own for each row of each step of each block. */
static int64_t row_key(int64_t block, int64_t step, int64_t row)
{
    return (block << 20 | step) << 20 | row;
}

static void fill_operand(const struct assay_tensor *tensor, enum assay_data_kind kind,
                         uint64_t seed, bool is_b)
{
    const int64_t blocks = tensor->shape[0], steps = tensor->shape[1];
    const int64_t rows = tensor->shape[2], elements = tensor->shape[3];
    for (int64_t i = 0; i < blocks * steps * rows; i++) {
        const int64_t block = i / rows / steps, step = i / rows % steps, row = i % rows;
        struct assay_stream stream;
        assay_stream_open(&stream, seed, tensor->name, assay_data_kinds[kind].name,
                          row_key(block, step, row));
        fill_row[kind](&(struct row){ tensor, assay_minifloat(tensor->format), &stream,
                                      is_b, step, row, i * elements, elements });
    }
}

/* f32 bits with an exponent in [lowest, lowest + count). */
static uint32_t random_float(uint32_t draw, int lowest, int count)
{
    const int exponent = lowest + (int)(draw >> 8 & 0x7FFF) % count;
    return (draw & 0x80000000) | (uint32_t)(exponent + 127) << 23 |
           (draw * 2654435761u & 0x7FFFFF);
}

/* c is of the size of a few products, with all bits of an f32. */
static uint32_t draw_c(struct assay_stream *stream, enum assay_data_kind kind,
                       double product)
{
    const uint32_t draw = assay_stream_next(stream);
    double value = 4 * product * assay_stream_normal(stream);
    switch (kind) {
    case ASSAY_DATA_EXACT: value = (int)(draw >> 24) - EXACT_C; break;
    case ASSAY_DATA_ZERO: return 0;
    case ASSAY_DATA_TIES: value = 0; break;
    case ASSAY_DATA_POSITIVE: value = fabs(value); break;
    case ASSAY_DATA_SUBNORMAL: return draw & 0x807FFFFF;
    case ASSAY_DATA_WIDE: return random_float(draw, -60, 80);
    case ASSAY_DATA_SPECIAL:
        if (draw < UINT32_MAX / 64) return draw & 1 ? 0x7FC00000 : 0xFF800000;
        break;
    default: break;
    }
    return assay_minifloat_encode(assay_minifloat(ASSAY_F32), value,
                                  ASSAY_OVERFLOW_SPECIAL);
}

static void fill_c(const struct assay_tensor *c, enum assay_data_kind kind, uint64_t seed,
                   double product)
{
    const struct assay_run_range range =
        assay_run_range(ASSAY_F32, LARGEST_C, 4 * product);
    const int64_t rows = c->shape[1], columns = c->shape[2];
    for (int64_t i = 0; i < c->shape[0] * rows; i++) {
        struct assay_stream stream;
        struct assay_runs runs;
        assay_stream_open(&stream, seed, c->name, assay_data_kinds[kind].name,
                          row_key(i / rows, 0, i % rows));
        assay_runs_begin(&runs, &stream);
        for (int64_t j = 0; j < columns; j++)
            assay_tensor_set_bits(c, i * columns + j,
                                  kind == ASSAY_DATA_RUNS
                                      ? assay_runs_next(&runs, &range)
                                      : draw_c(&stream, kind, product));
    }
}

void assay_wgmma_fill(const void *problem, enum assay_data_kind kind, uint64_t seed,
                      const struct assay_tensors *tensors)
{
    (void)problem;
    const struct assay_tensor *const a = &tensors->item[ASSAY_WGMMA_A];
    const double size = typical(assay_minifloat(a->format));
    assert(kind < ASSAY_DATA_KIND_COUNT && fill_row[kind]);
    fill_operand(a, kind, seed, false);
    fill_operand(&tensors->item[ASSAY_WGMMA_B], kind, seed, true);
    fill_c(&tensors->item[ASSAY_WGMMA_C], kind, seed, size * size);
}
