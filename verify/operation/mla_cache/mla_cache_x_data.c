/* SPDX-License-Identifier: MIT */
/* Keys to be quantised: one stream a token, and the same number of draws for every
 * element, so that a case with fewer tokens keeps the values it shares. */
#include "ref/format/minifloat.h"
#include "verify/data/runs.h"
#include "verify/operation/mla_cache/mla_cache.h"
#include "verify/operation/parts.h"

#include <assert.h>

struct row { /* one token of x under construction */
    const struct assay_mla_token_layout *layout;
    struct assay_stream *stream;
    uint16_t *x;
    int64_t token;
};

static void put(const struct row *row, int i, double value)
{
    row->x[i] = (uint16_t)assay_minifloat_encode(assay_minifloat(ASSAY_BF16), value,
                                                 ASSAY_OVERFLOW_SPECIAL);
}

static void fill_normal(const struct row *row)
{
    for (int i = 0; i < row->layout->d_qk; i++)
        put(row, i, assay_stream_normal(row->stream));
}

static void fill_uniform(const struct row *row)
{
    for (int i = 0; i < row->layout->d_qk; i++)
        put(row, i, 2 * assay_stream_unit(row->stream) - 1);
}

static void fill_positive(const struct row *row)
{
    for (int i = 0; i < row->layout->d_qk; i++)
        put(row, i, assay_stream_unit(row->stream));
}

/* Exponents over a wide range from tile to tile, over 16 binades inside one: some scales
 * are at either end of what they may be. */
static void fill_wide(const struct row *row)
{
    int of_tile = 0;
    for (int i = 0; i < row->layout->d_qk; i++) {
        const uint32_t draw = assay_stream_next(row->stream);
        if (i % row->layout->scale_dims == 0)
            of_tile = (int)(assay_stream_next(row->stream) % 60) - 40;
        const double significand = 1 + (draw >> 8) * 0x1p-24;
        const double power = assay_power_of_two(of_tile + (int)(draw & 15));
        put(row, i, (draw & 16 ? -1 : 1) * significand * power);
    }
}

static void fill_outlier(const struct row *row)
{
    for (int i = 0; i < row->layout->d_qk; i++) {
        const bool is_huge = assay_stream_next(row->stream) < UINT32_MAX / 64;
        put(row, i, (is_huge ? 1000 : 1) * assay_stream_normal(row->stream));
    }
}

/* A normal value a tile, the others become subnormal codes or zero, and one in 16 is
 * subnormal itself. */
static void fill_subnormal(const struct row *row)
{
    const double factor = row->layout->code == ASSAY_E2M1 ? 0x1p-3 : 0x1p-16;
    for (int i = 0; i < row->layout->d_qk; i++) {
        const uint32_t draw = assay_stream_next(row->stream);
        const double value = assay_stream_normal(row->stream);
        const bool is_first = i % row->layout->scale_dims == 0;
        put(row, i, is_first ? value : value * factor);
        if (!is_first && draw >> 28 == 0)
            row->x[i] = (uint16_t)((draw & 1) << 15 | (draw >> 4 & 0x7F));
    }
}

/* Normal data; every second token but the first has one odd value. */
static void fill_special(const struct row *row)
{
    static const uint16_t specials[8] = { 0x7FC0, 0x7F80, 0xFF80, 0xFFC1,
                                          0x8000, 0x7F7F, 0x0001, 0xFF7F };
    const uint32_t chance = assay_stream_next(row->stream);
    const uint32_t place = assay_stream_next(row->stream);
    fill_normal(row);
    if (row->token == 0 || chance >= UINT32_MAX / 2) return;
    row->x[place % (uint32_t)row->layout->d_qk] = specials[place >> 29];
}

/* Magnitudes in units of the scale: codes, or the middles of two. */
static double magnitude_of(enum assay_format code, uint32_t draw, bool is_middle)
{
    static const double e2m1[8] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };
    const uint32_t step = draw >> 29;
    if (code == ASSAY_E2M1)
        return is_middle ? (e2m1[step % 7] + e2m1[step % 7 + 1]) / 2 : e2m1[step];
    const double significand = is_middle ? 1 + (2 * step + 1) / 16.0 : 1 + step / 8.0;
    return significand * assay_power_of_two(7 - (int)(draw % 8));
}

/* Every tile begins with plus or minus the largest code times a power of two, which is
 * then its scale whatever divides. */
static void fill_codes(const struct row *row, bool is_middle)
{
    const bool is_fp4 = row->layout->code == ASSAY_E2M1;
    double unit = 0;
    for (int i = 0; i < row->layout->d_qk; i++) {
        const uint32_t draw = assay_stream_next(row->stream);
        const uint32_t of_tile = assay_stream_next(row->stream) % 16;
        const bool is_first = i % row->layout->scale_dims == 0;
        if (is_first) unit = assay_power_of_two((int)of_tile - (is_fp4 ? 8 : 12));
        const double largest = is_fp4 ? 6 : 448;
        const double magnitude =
            is_first ? largest : magnitude_of(row->layout->code, draw, is_middle);
        put(row, i, (draw & 8 ? -1 : 1) * magnitude * unit);
    }
}

static void fill_ties(const struct row *row)
{
    fill_codes(row, true);
}

static void fill_exact(const struct row *row)
{
    fill_codes(row, false);
}

static void fill_runs(const struct row *row)
{
    const struct assay_run_range range = assay_run_range(ASSAY_BF16, 0, 1);
    struct assay_runs runs;
    assay_runs_begin(&runs, row->stream);
    for (int i = 0; i < row->layout->d_qk; i++)
        row->x[i] = (uint16_t)assay_runs_next(&runs, &range);
}

static void fill_zeros(const struct row *row)
{
    for (int i = 0; i < row->layout->d_qk; i++)
        row->x[i] = 0;
}

static void (*const fill_row[ASSAY_DATA_KIND_COUNT])(const struct row *) = {
    [ASSAY_DATA_NORMAL] = fill_normal,       [ASSAY_DATA_UNIFORM] = fill_uniform,
    [ASSAY_DATA_WIDE] = fill_wide,           [ASSAY_DATA_OUTLIER] = fill_outlier,
    [ASSAY_DATA_SUBNORMAL] = fill_subnormal, [ASSAY_DATA_SPECIAL] = fill_special,
    [ASSAY_DATA_TIES] = fill_ties,           [ASSAY_DATA_POSITIVE] = fill_positive,
    [ASSAY_DATA_EXACT] = fill_exact,         [ASSAY_DATA_RUNS] = fill_runs,
    [ASSAY_DATA_ZERO] = fill_zeros,
};

struct filling {
    const struct assay_mla_token_layout *layout;
    const struct assay_tensor *x;
    enum assay_data_kind kind;
    uint64_t seed;
};

static void fill_token(const void *context, int64_t token)
{
    const struct filling *const filling = context;
    const struct assay_tensor *const x = filling->x;
    struct assay_stream stream;
    assay_stream_open(&stream, filling->seed, x->name,
                      assay_data_kinds[filling->kind].name, token);
    fill_row[filling->kind](&(struct row){
        filling->layout, &stream, (uint16_t *)x->data + token * x->stride[0], token });
}

void assay_mla_cache_fill_x(const void *bound, enum assay_data_kind kind, uint64_t seed,
                            const struct assay_tensors *tensors)
{
    const struct assay_mla_cache_problem *const problem = bound;
    const struct filling filling = { &assay_mla_token_layouts[problem->kv],
                                     &tensors->item[ASSAY_MLA_CACHE_INPUT], kind, seed };
    assert(kind < ASSAY_DATA_KIND_COUNT && fill_row[kind]);
    assay_for_each_row(problem->tokens, filling.layout->d_qk, fill_token, &filling);
}
