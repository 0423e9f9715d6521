/* SPDX-License-Identifier: MIT */
/* Caches to be dequantised: logical tokens, packed. One stream a token. Slots without a
 * token and padding keep the NaN they come with. */
#include "ref/format/minifloat.h"
#include "verify/data/runs.h"
#include "verify/operation/mla_cache/mla_cache.h"
#include "verify/operation/parts.h"

#include <assert.h>
#include <string.h>

enum { ROPE_NAN = 0x7FC1, ROPE_INFINITY = 0xFF80, RUNS_OF_CODES = 1 << 12 };

struct row { /* one token under construction */
    const struct assay_mla_cache_problem *problem;
    const struct assay_mla_token_layout *layout;
    struct assay_stream *stream;
    struct assay_mla_token *token;
    int64_t number;
};

static uint32_t next(const struct row *row)
{
    return assay_stream_next(row->stream);
}

static bool is_fp4(const struct row *row)
{
    return row->layout->code == ASSAY_E2M1;
}

/* --- scales ----------------------------------------------------------------------- */

static void put_scale(const struct row *row, int i, double value)
{
    row->token->scale[i] = assay_minifloat_encode(assay_minifloat(row->layout->scale),
                                                  value, ASSAY_OVERFLOW_SATURATES);
}

/* In [2^first, 2^(first + count)), or its powers of two. */
static void fill_scales(const struct row *row, int first, int count, bool is_power)
{
    const bool has_fraction =
        row->layout->scale == ASSAY_E4M3 ||
        (row->layout->scale == ASSAY_F32 && !row->problem->has_power_of_two_scale);
    for (int i = 0; i < row->layout->scales; i++) {
        const int exponent = first + (int)(next(row) % (uint32_t)count);
        const double fraction = assay_stream_unit(row->stream);
        /* Of an e4m3 the three bits that it keeps. */
        const double kept =
            row->layout->scale == ASSAY_E4M3 ? (double)(int)(fraction * 8) / 8 : fraction;
        put_scale(row, i,
                  (has_fraction && !is_power ? 1 + kept : 1) *
                      assay_power_of_two(exponent));
    }
}

static void fill_usual_scales(const struct row *row)
{
    fill_scales(row, is_fp4(row) ? -5 : -13, 8, false);
}

/* --- codes ------------------------------------------------------------------------ */

static void put_code(const struct row *row, int i, double value)
{
    row->token->code[i] = (uint8_t)assay_minifloat_encode(
        assay_minifloat(row->layout->code), value, ASSAY_OVERFLOW_SATURATES);
}

/* Any finite code. */
static uint8_t code_of(const struct row *row, uint32_t draw)
{
    if (is_fp4(row)) return (uint8_t)(draw >> 28);
    return (uint8_t)(draw >> 31 << 7 | (draw & 0xFFFF) % 0x7F);
}

static void fill_any_codes(const struct row *row)
{
    for (int i = 0; i < row->layout->coded_dims; i++)
        row->token->code[i] = code_of(row, next(row));
}

static void fill_rope(const struct row *row)
{
    for (int i = 0; i < row->layout->rope_dims; i++)
        row->token->rope[i] = (uint16_t)assay_minifloat_encode(
            assay_minifloat(ASSAY_BF16), assay_stream_normal(row->stream),
            ASSAY_OVERFLOW_SPECIAL);
}

/* --- kinds ------------------------------------------------------------------------ */

static void fill_normal(const struct row *row)
{
    fill_usual_scales(row);
    for (int i = 0; i < row->layout->coded_dims; i++)
        put_code(row, i, (is_fp4(row) ? 2 : 120) * assay_stream_normal(row->stream));
}

static void fill_uniform(const struct row *row)
{
    fill_usual_scales(row);
    fill_any_codes(row);
}

/* Scales over all their range: products overflow, and vanish. */
static void fill_wide(const struct row *row)
{
    if (is_fp4(row))
        fill_scales(row, -9, 18, false);
    else
        fill_scales(row, -127, 255, false);
    fill_any_codes(row);
}

static void fill_outlier(const struct row *row)
{
    fill_usual_scales(row);
    for (int i = 0; i < row->layout->coded_dims; i++) {
        const bool is_huge = next(row) < UINT32_MAX / 64;
        put_code(row, i, (is_huge ? 500 : 1) * assay_stream_normal(row->stream));
    }
}

/* Subnormal codes, and products among bf16's subnormal values where scales can be that
 * small. */
static void fill_subnormal(const struct row *row)
{
    if (is_fp4(row))
        fill_scales(row, -9, 3, false);
    else
        fill_scales(row, -127, 8, false);
    for (int i = 0; i < row->layout->coded_dims; i++) {
        const uint32_t draw = next(row), sign = draw & 1;
        if (is_fp4(row))
            row->token->code[i] = (uint8_t)(sign << 3 | (draw >> 1 & 1));
        else
            row->token->code[i] = (uint8_t)(sign << 7 | (draw >> 1 & 15));
    }
}

/* A scale no quantiser gives. */
static uint32_t odd_scale(const struct row *row, uint32_t draw)
{
    static const uint32_t f32[8] = { 0x00000001, 0x80000000, 0x7F7FFFFF, 0x7F800000,
                                     0xBF8CCCCD, 0x00000000, 0x7FC00000, 0xFFFFFFFF };
    static const uint32_t ue8m0[4] = { 0, 1, 254, 255 };
    static const uint32_t e4m3[8] = { 0x00, 0x80, 0x01, 0xB9, 0x7E, 0xFE, 0x7F, 0xFF };
    const bool is_unsafe = row->problem->is_unsafe; /* the last ones are NaN */
    if (row->layout->scale == ASSAY_UE8M0) return ue8m0[draw % (is_unsafe ? 4 : 3)];
    return (row->layout->scale == ASSAY_F32 ? f32 : e4m3)[draw % (is_unsafe ? 8 : 6)];
}

/* Normal data; every second token but the first has an odd scale, code or element. */
static void fill_special(const struct row *row)
{
    const uint32_t chance = next(row), place = next(row), draw = next(row);
    fill_normal(row);
    if (row->number == 0 || chance & 1) return;
    if (chance & 2)
        row->token->scale[place % (uint32_t)row->layout->scales] = odd_scale(row, draw);
    else
        row->token->code[place % (uint32_t)row->layout->coded_dims] =
            is_fp4(row) ? 8 : (uint8_t)(draw & 0x80 ? 0xFF : 0x7F);
}

static void fill_special_rope(const struct row *row)
{
    const uint32_t chance = next(row), place = next(row);
    if (row->number && row->layout->rope_dims && chance & 1)
        row->token->rope[place % (uint32_t)row->layout->rope_dims] =
            chance & 2 ? ROPE_NAN : ROPE_INFINITY;
}

/* Products half way between two bf16 values: of a power of two and an f32 with a ninth
 * significant bit, or, where scales are powers of two, in half units of the smallest
 * subnormal, which is 2^-133: (8 + odd) * 2^(field - 10) * 2^(-124 - field). */
static void fill_ties(const struct row *row)
{
    const bool is_f32 =
        row->layout->scale == ASSAY_F32 && !row->problem->has_power_of_two_scale;
    for (int i = 0; i < row->layout->scales; i++) {
        const uint32_t draw = next(row);
        const int field = 1 + (int)(draw % 3);
        const double significand = (256 + (draw >> 24 | 1)) * 0x1p-8;
        put_scale(row, i,
                  is_f32 ? significand * 0x1p-9 : assay_power_of_two(-124 - field));
        for (int j = i * row->layout->scale_dims; j < (i + 1) * row->layout->scale_dims;
             j++) {
            const uint32_t code = next(row);
            const uint32_t magnitude =
                is_f32 ? 8 * (1 + code % 15) : (uint32_t)field << 3 | (code >> 8 & 7) | 1;
            row->token->code[j] = (uint8_t)(code >> 31 << 7 | magnitude);
        }
    }
}

static void fill_positive(const struct row *row)
{
    fill_usual_scales(row);
    fill_any_codes(row);
    for (int i = 0; i < row->layout->coded_dims; i++)
        row->token->code[i] &= is_fp4(row) ? 7 : 0x7F;
}

static void fill_exact(const struct row *row)
{
    fill_scales(row, is_fp4(row) ? -5 : -13, 8, true);
    fill_any_codes(row);
}

/* The ends are those of kind wide, as far as products with all codes are finite. */
static void fill_run_scales(const struct row *row, struct assay_runs *runs)
{
    static const struct assay_scale_range e4m3_range = { -9, 8, -5, 8 };
    static const struct assay_scale_range wide_range = { -127, 118, -13, 8 };
    const int kept_bits = assay_minifloat(row->layout->scale)->mantissa_bits;
    const bool is_power =
        row->layout->scale == ASSAY_F32 && row->problem->has_power_of_two_scale;
    for (int i = 0; i < row->layout->scales; i++) {
        const struct assay_run_scale scale = assay_runs_next_scale(
            runs, row->layout->scale == ASSAY_E4M3 ? &e4m3_range : &wide_range);
        const double mantissa = is_power ? 0 : scale.mantissa >> (23 - kept_bits);
        put_scale(row, i,
                  (1 + mantissa * assay_power_of_two(-kept_bits)) *
                      assay_power_of_two(scale.exponent));
    }
}

/* Scales, then codes and the bf16 tail in one walk. */
static void fill_runs(const struct row *row)
{
    const struct assay_run_range codes =
        assay_run_range(row->layout->code, 0, is_fp4(row) ? 2 : 120);
    const struct assay_run_range tail = assay_run_range(ASSAY_BF16, 0, 1);
    struct assay_runs runs;
    assay_runs_begin(&runs, row->stream);
    fill_run_scales(row, &runs);
    assay_stream_jump(row->stream, RUNS_OF_CODES);
    assay_runs_begin(&runs, row->stream);
    for (int i = 0; i < row->layout->coded_dims; i++)
        row->token->code[i] = (uint8_t)assay_runs_next(&runs, &codes);
    for (int i = 0; i < row->layout->rope_dims; i++)
        row->token->rope[i] = (uint16_t)assay_runs_next(&runs, &tail);
}

static void fill_zeros(const struct row *row)
{
    for (int i = 0; i < row->layout->scales; i++)
        put_scale(row, i, 1);
    memset(row->token->code, 0, sizeof(row->token->code));
    memset(row->token->rope, 0, sizeof(row->token->rope));
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
    const struct assay_mla_cache_problem *problem;
    const struct assay_tensor *k_cache;
    enum assay_data_kind kind;
    uint64_t seed;
};

static void fill_token(const void *context, int64_t number)
{
    const struct filling *const filling = context;
    const struct assay_tensor *const k_cache = filling->k_cache;
    const enum assay_data_kind kind = filling->kind;
    const bool has_own_rope = kind == ASSAY_DATA_RUNS || kind == ASSAY_DATA_ZERO;
    const int64_t page_size = filling->problem->page_size;
    const struct assay_mla_token_layout *const layout =
        &assay_mla_token_layouts[filling->problem->kv];
    struct assay_stream stream;
    struct assay_mla_token token;
    const struct row row = { filling->problem, layout, &stream, &token, number };
    assay_stream_open(&stream, filling->seed, k_cache->name, assay_data_kinds[kind].name,
                      number);
    fill_row[kind](&row);
    if (!has_own_rope) fill_rope(&row);
    if (kind == ASSAY_DATA_SPECIAL) fill_special_rope(&row);
    assay_mla_token_pack(layout, page_size, number % page_size, &token,
                         (uint8_t *)k_cache->data +
                             number / page_size * k_cache->stride[0]);
}

void assay_mla_cache_fill(const void *bound, enum assay_data_kind kind, uint64_t seed,
                          const struct assay_tensors *tensors)
{
    const struct assay_mla_cache_problem *const problem = bound;
    const struct filling filling = { problem, &tensors->item[ASSAY_MLA_CACHE_INPUT], kind,
                                     seed };
    assert(kind < ASSAY_DATA_KIND_COUNT && fill_row[kind]);
    assay_for_each_row(problem->tokens, assay_mla_token_layouts[problem->kv].d_qk,
                       fill_token, &filling);
}
