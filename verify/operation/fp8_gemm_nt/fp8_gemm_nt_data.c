/* SPDX-License-Identifier: MIT */
/* Inputs of fp8_gemm_nt for every kind of data: one stream a logical row, and the same
 * number of draws for every element: a smaller case keeps the values it shares. */
#include "ref/format/minifloat.h"
#include "ref/fp8_gemm_mx_problem.h"
#include "ref/layout/scale_layout.h"
#include "verify/data/runs.h"
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt.h"
#include "verify/operation/parts.h"

#include <assert.h>
#include <string.h>

enum { BLOCK = 128, UE8M0_BIAS = 127, F32_ONE = 0x3F800000, LARGEST_C = 1 << 20 };

/* Sizes of values that spread over a format's codes. */
struct span {
    double largest, typical, small;
};
static const struct span fp8_span = { 448, 112, 1 }, e2m1_span = { 6, 1.5, 0.4 };

/* The ends are those of kind wide. */
static const struct assay_scale_range scale_range = { -40, 20, -12, 4 };

struct filling { /* an input under construction, row by row */
    const struct assay_tensor *tensor;
    enum assay_data_kind kind;
    uint64_t seed;
    int64_t first_key; /* of row 0 */
};

static void open_row(struct assay_stream *stream, const struct filling *filling,
                     int64_t row)
{
    assay_stream_open(stream, filling->seed, filling->tensor->name,
                      assay_data_kinds[filling->kind].name, filling->first_key + row);
}

struct row { /* one row of an operand under construction */
    struct assay_stream *stream;
    const struct assay_minifloat *format;
    const struct span *span;
    bool is_b;
    int64_t row, columns;
    uint8_t *codes;
    int64_t stride; /* from column to column */
};

static int sign_place(const struct assay_minifloat *format)
{
    return format->exponent_bits + format->mantissa_bits;
}

static uint8_t encoded(const struct row *row, double value)
{
    return (uint8_t)assay_minifloat_encode(row->format, value, ASSAY_OVERFLOW_SATURATES);
}

static void fill_normal(const struct row *row)
{
    for (int64_t k = 0; k < row->columns; k++)
        row->codes[k * row->stride] =
            encoded(row, row->span->typical * assay_stream_normal(row->stream));
}

static void fill_uniform(const struct row *row)
{
    for (int64_t k = 0; k < row->columns; k++)
        row->codes[k * row->stride] =
            encoded(row, row->span->largest * (2 * assay_stream_unit(row->stream) - 1));
}

static void fill_positive(const struct row *row)
{
    for (int64_t k = 0; k < row->columns; k++)
        row->codes[k * row->stride] =
            encoded(row, row->span->largest * assay_stream_unit(row->stream));
}

/* Every finite code alike: NaN and infinity codes lose the lowest bit of the exponent. */
static void fill_wide(const struct row *row)
{
    for (int64_t k = 0; k < row->columns; k++) {
        const uint8_t mask = (uint8_t)((2u << sign_place(row->format)) - 1);
        const uint8_t code = (uint8_t)(assay_stream_next(row->stream) >> 24) & mask;
        const struct assay_unpacked value = assay_minifloat_unpack(row->format, code);
        const bool is_finite = value.kind == ASSAY_ZERO || value.kind == ASSAY_FINITE;
        row->codes[k * row->stride] =
            is_finite ? code : (uint8_t)(code & ~(1u << row->format->mantissa_bits));
    }
}

static void fill_outlier(const struct row *row)
{
    for (int64_t k = 0; k < row->columns; k++) {
        const bool is_huge = assay_stream_next(row->stream) < UINT32_MAX / 64;
        const double value = assay_stream_normal(row->stream);
        row->codes[k * row->stride] =
            encoded(row, (is_huge ? row->span->typical : row->span->small) * value);
    }
}

/* Columns 2j and 2j + 1: a holds v and -v (in the first pair and one of eight others v
 * twice), b holds w twice, so that seven pairs of products in eight cancel to nothing. */
static void fill_cancel(const struct row *row)
{
    for (int64_t k = 0; k < row->columns; k += 2) {
        const bool is_kept = assay_stream_next(row->stream) < UINT32_MAX / 8 || k == 0;
        const double value = row->span->typical * assay_stream_normal(row->stream);
        row->codes[k * row->stride] = encoded(row, value);
        if (k + 1 < row->columns)
            row->codes[(k + 1) * row->stride] =
                encoded(row, row->is_b || is_kept ? value : -value);
    }
}

static void fill_subnormal(const struct row *row)
{
    const uint32_t mantissas = 1u << row->format->mantissa_bits;
    for (int64_t k = 0; k < row->columns; k++) {
        const uint32_t draw = assay_stream_next(row->stream);
        row->codes[k * row->stride] = (uint8_t)((draw >> 31) << sign_place(row->format) |
                                                ((draw >> 8) & (mantissas - 1)));
    }
}

/* Normal data; one row in eight, never the first, carries one NaN or infinity code among
 * its first 64 columns; e2m1 has none. */
static void fill_special(const struct row *row)
{
    static const uint8_t specials[] = { 0x7F, 0xFF, 0x7C, 0xFC }; /* e5m2: the last two
                                                                     are infinities */
    const uint32_t chance = assay_stream_next(row->stream);
    const uint32_t place = assay_stream_next(row->stream);
    fill_normal(row);
    if (row->format->specials == ASSAY_SPECIALS_NONE) return;
    if (row->row == 0 || chance >= UINT32_MAX / 8 || place % 64 >= row->columns) return;
    row->codes[place % 64 * row->stride] = specials[place >> 30];
}

/* Columns 0 and 1 give an odd or even integer in [144, 255] plus one half, a tie for the
 * 8 bits of bf16; the other columns cancel in pairs. Every sum is exact on the way. */
static void fill_ties(const struct row *row)
{
    for (int64_t k = 0; k < row->columns; k += 2) {
        const uint32_t draw = assay_stream_next(row->stream);
        const double sign = draw >> 31 ? -1 : 1, small = draw >> 30 & 1 ? 1 : 2;
        double first = sign * small, second = row->is_b ? first : -first;
        if (k == 0) {
            first = draw >> 29 & 1 ? 12 : 14;
            second = row->is_b ? 0.5 : draw >> 28 & 1 ? 1 : 3;
        }
        row->codes[k * row->stride] = encoded(row, first);
        if (k + 1 < row->columns)
            row->codes[(k + 1) * row->stride] = encoded(row, second);
    }
}

/* The same of e2m1's values, for any mix of formats: columns 0 to 7 give 0.5 or 1.5 and
 * six times 24 or 36, an even or odd integer in [144, 217] plus one half. */
static void fill_narrow_ties(const struct row *row)
{
    for (int64_t k = 0; k < row->columns; k += 2) {
        const uint32_t draw = assay_stream_next(row->stream);
        const double sign = draw >> 31 ? -1 : 1, small = draw >> 30 & 1 ? 1 : 2;
        double first = sign * small, second = row->is_b ? first : -first;
        if (k < 8) {
            first = row->is_b || draw >> 29 & 1 ? 6 : 4;
            second = row->is_b || draw >> 28 & 1 ? 6 : 4;
        }
        if (k == 0) first = row->is_b ? 0.5 : draw >> 29 & 1 ? 1 : 3;
        if (k == 6) second = row->is_b ? 1 : 0;
        row->codes[k * row->stride] = encoded(row, first);
        if (k + 1 < row->columns)
            row->codes[(k + 1) * row->stride] = encoded(row, second);
    }
}

/* a: two entries of +-1 a block of 128, one in each half (the first of all among columns
 * 0 to 15, so that no product is empty); b: all +-1. A sum over K has at most 2 K / 128
 * terms of size 1: it fits 8 bits up to K = 16384. */
static void fill_exact(const struct row *row)
{
    int64_t place[2] = { 0 };
    double sign[2] = { 0 };
    for (int64_t k = 0; k < row->columns; k++) {
        if (row->is_b) {
            row->codes[k * row->stride] =
                encoded(row, assay_stream_next(row->stream) >> 31 ? -1 : 1);
            continue;
        }
        if (k % BLOCK == 0)
            for (int half = 0; half < 2; half++) {
                const uint32_t draw = assay_stream_next(row->stream);
                const uint32_t choices = k + half == 0 ? 16 : BLOCK / 2;
                place[half] = k + half * BLOCK / 2 + draw % choices;
                sign[half] = draw >> 31 ? -1 : 1;
            }
        const int half = k % BLOCK >= BLOCK / 2;
        row->codes[k * row->stride] = encoded(row, k == place[half] ? sign[half] : 0);
    }
}

static void fill_runs(const struct row *row)
{
    const struct assay_run_range range =
        assay_run_range(row->format->format, 0, row->span->typical);
    struct assay_runs runs;
    assay_runs_begin(&runs, row->stream);
    for (int64_t k = 0; k < row->columns; k++)
        row->codes[k * row->stride] = (uint8_t)assay_runs_next(&runs, &range);
}

static void fill_zeros(const struct row *row)
{
    for (int64_t k = 0; k < row->columns; k++)
        row->codes[k * row->stride] = 0;
}

static void (*const fill_operand_row[ASSAY_DATA_KIND_COUNT])(const struct row *) = {
    [ASSAY_DATA_NORMAL] = fill_normal,     [ASSAY_DATA_UNIFORM] = fill_uniform,
    [ASSAY_DATA_WIDE] = fill_wide,         [ASSAY_DATA_OUTLIER] = fill_outlier,
    [ASSAY_DATA_CANCEL] = fill_cancel,     [ASSAY_DATA_SUBNORMAL] = fill_subnormal,
    [ASSAY_DATA_SPECIAL] = fill_special,   [ASSAY_DATA_TIES] = fill_ties,
    [ASSAY_DATA_POSITIVE] = fill_positive, [ASSAY_DATA_EXACT] = fill_exact,
    [ASSAY_DATA_RUNS] = fill_runs,         [ASSAY_DATA_ZERO] = fill_zeros,
};

struct operand_filling {
    struct filling filling;
    void (*fill_row)(const struct row *);
};

static void fill_operand_at(const void *context, int64_t i)
{
    const struct operand_filling *const operand = context;
    const struct assay_tensor *const tensor = operand->filling.tensor;
    struct assay_stream stream;
    open_row(&stream, &operand->filling, i);
    operand->fill_row(&(struct row){
        .stream = &stream,
        .format = assay_minifloat(tensor->format),
        .span = tensor->format == ASSAY_E2M1 ? &e2m1_span : &fp8_span,
        .is_b = strcmp(tensor->name, "b") == 0,
        .row = i,
        .columns = tensor->shape[1],
        .codes = (uint8_t *)tensor->data + i * tensor->stride[0],
        .stride = tensor->stride[1],
    });
}

static void fill_operand(const struct filling *filling,
                         void (*fill_row)(const struct row *))
{
    const struct operand_filling operand = { *filling, fill_row };
    const int64_t *const shape = filling->tensor->shape;
    assert(filling->kind < ASSAY_DATA_KIND_COUNT && fill_row);
    assay_for_each_row(shape[0], shape[1], fill_operand_at, &operand);
}

void assay_fp8_gemm_fill_operand(const struct assay_tensor *tensor,
                                 enum assay_data_kind kind, uint64_t seed,
                                 int64_t first_key)
{
    fill_operand(&(struct filling){ tensor, kind, seed, first_key },
                 fill_operand_row[kind]);
}

/* f32 bits of 2^exponent * (1 + mantissa / 2^23). */
static uint32_t scale_bits(int exponent, uint32_t mantissa)
{
    return (uint32_t)(exponent + 127) << 23 | mantissa;
}

static uint32_t draw_scale(struct assay_stream *stream, enum assay_data_kind kind)
{
    const uint32_t draw = assay_stream_next(stream);
    const uint32_t mantissa = assay_stream_next(stream) >> 9;
    switch (kind) {
    case ASSAY_DATA_ZERO: return F32_ONE;
    case ASSAY_DATA_WIDE: return scale_bits(-40 + (int)(draw % 61), mantissa);
    case ASSAY_DATA_SUBNORMAL: return scale_bits(-60 + (int)(draw % 5), mantissa);
    default: return scale_bits(-12 + (int)(draw % 4), mantissa);
    }
}

/* What a scale may be that no quantiser writes: the right product is still defined. */
static uint32_t special_scale(uint32_t draw)
{
    static const uint32_t specials[] = {
        0x00000000, /* 0 */
        0x80000000, /* -0 */
        0x7FC00000, /* NaN */
        0x7F800000, /* infinity */
        0x00012345, /* subnormal */
        0x7F7FFFFF, /* the largest */
        0xBE99999A, /* -0.3 */
        0x00800000, /* the smallest normal */
    };
    return specials[draw % (sizeof(specials) / sizeof(specials[0]))];
}

/* Powers of two, one a row, where sums must stay exact; otherwise any f32 mantissa. */
static void fill_scale_row(const void *context, int64_t i)
{
    const struct filling *const filling = context;
    const struct assay_tensor *const tensor = filling->tensor;
    const enum assay_data_kind kind = filling->kind;
    struct assay_stream stream;
    open_row(&stream, filling, i);
    const bool is_exact = kind == ASSAY_DATA_EXACT || kind == ASSAY_DATA_TIES;
    const uint32_t chance = assay_stream_next(&stream);
    const uint32_t choice = assay_stream_next(&stream);
    const bool is_odd = kind == ASSAY_DATA_SPECIAL && i > 0 && chance < UINT32_MAX / 8;
    uint32_t *const row = (uint32_t *)tensor->data + i * tensor->stride[0];
    struct assay_runs runs;
    assay_runs_begin(&runs, &stream);
    for (int64_t block = 0; block < tensor->shape[1]; block++) {
        const uint32_t drawn =
            kind == ASSAY_DATA_RUNS
                ? assay_run_scale_bits(assay_runs_next_scale(&runs, &scale_range))
                : draw_scale(&stream, kind);
        uint32_t *const scale = &row[block * tensor->stride[1]];
        *scale = is_exact ? scale_bits(-4 + (int)(choice % 5), 0) : drawn;
        if (is_odd && block == choice >> 30) *scale = special_scale(choice);
    }
}

void assay_fp8_gemm_fill_scale(const struct assay_tensor *tensor,
                               enum assay_data_kind kind, uint64_t seed,
                               int64_t first_key)
{
    const struct filling filling = { tensor, kind, seed, first_key };
    assay_for_each_row(tensor->shape[0], tensor->shape[1], fill_scale_row, &filling);
}

/* With subnormal codes of @format on both sides results are subnormal, but not zero. */
static uint32_t draw_mx_scale(struct assay_stream *stream, enum assay_data_kind kind,
                              enum assay_format format)
{
    const int smallest = format == ASSAY_E5M2 ? -62 : format == ASSAY_E2M1 ? -77 : -70;
    const int draw = (int)(assay_stream_next(stream) >> 8);
    switch (kind) {
    case ASSAY_DATA_ZERO: return (uint32_t)UE8M0_BIAS;
    case ASSAY_DATA_WIDE: return (uint32_t)(UE8M0_BIAS - 40 + draw % 61);
    case ASSAY_DATA_SUBNORMAL: return (uint32_t)(UE8M0_BIAS + smallest + draw % 8);
    default: return (uint32_t)(UE8M0_BIAS - 12 + draw % 4);
    }
}

struct mx_scale_filling {
    struct filling filling;
    int64_t groups;
    enum assay_format format; /* of the operand */
};

/* A row of packed scales: one code where sums must stay exact; in special data the ends
 * of the range or NaN in one of the first groups of some rows, never the first. */
static void fill_mx_scale_row(const void *context, int64_t row)
{
    static const uint8_t specials[] = { 0x00, 0xFF, 0xFE, 0x01 };
    const struct mx_scale_filling *const scales = context;
    const struct assay_tensor *const tensor = scales->filling.tensor;
    const enum assay_data_kind kind = scales->filling.kind;
    struct assay_stream stream;
    open_row(&stream, &scales->filling, row);
    const bool is_exact = kind == ASSAY_DATA_EXACT || kind == ASSAY_DATA_TIES;
    const uint32_t chance = assay_stream_next(&stream);
    const uint32_t choice = assay_stream_next(&stream);
    const bool is_odd = kind == ASSAY_DATA_SPECIAL && row > 0 && chance < UINT32_MAX / 8;
    struct assay_runs runs;
    assay_runs_begin(&runs, &stream);
    for (int64_t group = 0; group < tensor->shape[0] * ASSAY_SCALES_IN_WORD; group++) {
        const uint32_t drawn =
            kind == ASSAY_DATA_RUNS
                ? (uint32_t)(assay_runs_next_scale(&runs, &scale_range).exponent +
                             UE8M0_BIAS)
                : draw_mx_scale(&stream, kind, scales->format);
        uint32_t code = is_exact ? (uint32_t)UE8M0_BIAS - 4 + choice % 5 : drawn;
        if (is_odd && group == choice >> 30) code = specials[choice % 4];
        if (group >= scales->groups) code = 0;
        assay_scale_store(ASSAY_SCALE_PACKED_UE8M0, tensor, 0, row, group, code);
    }
}

static void fill_mx(const struct assay_fp8_gemm_nt_problem *problem,
                    const struct filling *filling)
{
    const struct assay_tensor *const tensor = filling->tensor;
    const enum assay_data_kind kind = filling->kind;
    if (tensor->format != ASSAY_I32) {
        fill_operand(filling,
                     kind == ASSAY_DATA_TIES ? fill_narrow_ties : fill_operand_row[kind]);
        return;
    }
    const bool is_a = strcmp(tensor->name, "sfa") == 0;
    const struct mx_scale_filling scales = {
        .filling = *filling,
        .groups = assay_fp8_gemm_mx_groups(&problem->gemm),
        .format = is_a ? problem->a_format : problem->b_format,
    };
    assay_for_each_row(tensor->shape[1], tensor->shape[0] * ASSAY_SCALES_IN_WORD,
                       fill_mx_scale_row, &scales);
}

/* f32 bits of a small integer. */
static uint32_t integer_bits(int value)
{
    return assay_minifloat_encode(assay_minifloat(ASSAY_F32), value,
                                  ASSAY_OVERFLOW_SPECIAL);
}

static uint32_t draw_c(struct assay_stream *stream, enum assay_data_kind kind)
{
    const uint32_t draw = assay_stream_next(stream);
    const double normal = assay_stream_normal(stream);
    switch (kind) {
    case ASSAY_DATA_ZERO: return 0;
    case ASSAY_DATA_EXACT:
    case ASSAY_DATA_TIES: return integer_bits((int)(draw >> 24) - 128);
    case ASSAY_DATA_SUBNORMAL: return draw & 0x807FFFFF;
    case ASSAY_DATA_WIDE:
        return (draw & 0x80000000) | scale_bits((int)(draw % 80) - 60, draw & 0x7FFFFF);
    case ASSAY_DATA_SPECIAL:
        if (draw < UINT32_MAX / 64) return draw & 1 ? 0x7FC00000 : 0xFF800000;
        break;
    case ASSAY_DATA_POSITIVE: return draw >> 9 | 0x3F800000;
    default: break;
    }
    return assay_minifloat_encode(assay_minifloat(ASSAY_F32), normal,
                                  ASSAY_OVERFLOW_SPECIAL);
}

static void fill_c_row(const void *context, int64_t i)
{
    const struct filling *const filling = context;
    const struct assay_tensor *const tensor = filling->tensor;
    const struct assay_run_range range = assay_run_range(ASSAY_F32, LARGEST_C, 1);
    struct assay_stream stream;
    struct assay_runs runs;
    open_row(&stream, filling, i);
    assay_runs_begin(&runs, &stream);
    uint32_t *const row = (uint32_t *)tensor->data + i * tensor->stride[0];
    for (int64_t j = 0; j < tensor->shape[1]; j++)
        row[j] = filling->kind == ASSAY_DATA_RUNS ? assay_runs_next(&runs, &range)
                                                  : draw_c(&stream, filling->kind);
}

void assay_fp8_gemm_fill_c(const struct assay_tensor *tensor, enum assay_data_kind kind,
                           uint64_t seed, int64_t first_key)
{
    const struct filling filling = { tensor, kind, seed, first_key };
    assay_for_each_row(tensor->shape[0], tensor->shape[1], fill_c_row, &filling);
}

void assay_fp8_gemm_nt_fill(const void *problem, enum assay_data_kind kind, uint64_t seed,
                            const struct assay_tensors *tensors)
{
    const struct assay_fp8_gemm_nt_problem *const gemm = problem;
    for (int i = 0; i < tensors->count; i++) {
        const struct assay_tensor *const tensor = &tensors->item[i];
        if (tensor->is_output) continue;
        if (gemm->recipe == ASSAY_RECIPE_MX)
            fill_mx(gemm, &(struct filling){ tensor, kind, seed, 0 });
        else if (tensor->format != ASSAY_F32)
            assay_fp8_gemm_fill_operand(tensor, kind, seed, 0);
        else if (strcmp(tensor->name, "c") == 0)
            assay_fp8_gemm_fill_c(tensor, kind, seed, 0);
        else
            assay_fp8_gemm_fill_scale(tensor, kind, seed, 0);
    }
}
