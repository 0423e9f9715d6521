/* SPDX-License-Identifier: MIT */
/* Cached tokens of every kind of data: codes, scales and bf16 tails in logical form. An
 * element takes the same draws whatever its neighbours hold. */
#include "ref/format/minifloat.h"
#include "verify/data/runs.h"
#include "verify/operation/mla_sparse_decode/mla_sparse_decode.h"

#include <assert.h>
#include <string.h>

enum {
    NEEDLE_DIMS = 8,
    SPECIAL_TOKENS = 64,
    MAX_SCALES = 32,
    E2M1_SHIFT = 107,
    RUNS_OF_CODES = 1 << 12
};

/* Exponents of the scales, so that values of the kind use most codes: @count from
 * @lowest up, for e4m3 codes and for e2m1 codes. */
static const struct {
    int lowest, count, e2m1_lowest, e2m1_count;
} exponents[ASSAY_DATA_KIND_COUNT] = {
    [ASSAY_DATA_NORMAL] = { -7, 6, -2, 3 },
    [ASSAY_DATA_UNIFORM] = { -8, 7, -3, 3 },
    [ASSAY_DATA_WIDE] = { -14, 10, -6, 8 },
    [ASSAY_DATA_OUTLIER] = { -4, 2, -1, 3 },
    [ASSAY_DATA_CANCEL] = { -7, 6, -2, 3 },
    [ASSAY_DATA_SUBNORMAL] = { -130, 13, -9, 3 },
    [ASSAY_DATA_SPECIAL] = { -7, 6, -2, 3 },
    [ASSAY_DATA_TIES] = { -7, 6, -2, 3 },
    [ASSAY_DATA_POSITIVE] = { -8, 7, -3, 3 },
    [ASSAY_DATA_EXACT] = { 0, 3, 0, 3 },
    [ASSAY_DATA_ZERO] = { 0, 1, 0, 1 },
    [ASSAY_DATA_NEEDLE] = { -7, 6, -2, 3 },
};

struct draw { /* what an element is made of */
    double normal;
    uint32_t word;
};

static struct draw next_draw(struct assay_stream *stream)
{
    const double normal = assay_stream_normal(stream);
    return (struct draw){ normal, assay_stream_next(stream) };
}

struct maker {
    const struct assay_mla_token_source *source;
    const struct assay_mla_token_layout *layout;
    const struct assay_minifloat *code, *bf16;
    struct assay_stream stream, shared; /* shared: of all tokens of the request */
    bool is_needle;
    int exponent[MAX_SCALES];
};

static bool has_e2m1(const struct maker *maker)
{
    return maker->layout->code == ASSAY_E2M1;
}

static uint32_t scale_code(const struct maker *maker, int exponent, uint32_t mantissa)
{
    switch (maker->layout->scale) {
    case ASSAY_UE8M0: return (uint32_t)(exponent < -127 ? 0 : exponent + 127);
    case ASSAY_E4M3: /* bias 7; below 2^-6 subnormal */
        if (exponent < -6) return 1u << (exponent + 9);
        return (uint32_t)(exponent + 7) << 3 | mantissa >> 29;
    default: /* f32 */
        if (exponent < -126) return 1u << (exponent + 149);
        return (uint32_t)(exponent + 127) << 23 | mantissa >> 9;
    }
}

/* Scales of e2m1 codes have mantissas unless values must be exact; those of v32 where the
 * case asks for them. */
static bool has_mantissas(const struct maker *maker)
{
    const enum assay_data_kind kind = maker->source->kind;
    if (kind == ASSAY_DATA_ZERO) return false;
    if (maker->layout->scale == ASSAY_F32) return maker->source->has_any_scales;
    return kind != ASSAY_DATA_EXACT && kind != ASSAY_DATA_NEEDLE;
}

/* The needle's decisive elements are 24, or even numbers from 18 to 30. */
static int needle_exponent(const struct maker *maker)
{
    return has_e2m1(maker) ? 2 : 0;
}

static bool is_decisive(const struct maker *maker, int element)
{
    return maker->source->kind == ASSAY_DATA_NEEDLE && maker->is_needle &&
           element >= maker->layout->d_qk - NEEDLE_DIMS;
}

static void make_run_scales(struct maker *maker, struct assay_mla_token *made)
{
    const bool is_e2m1 = has_e2m1(maker);
    const struct assay_scale_range range =
        is_e2m1 ? (struct assay_scale_range){ -6, 1, -2, 3 }
                : (struct assay_scale_range){ -14, -5, -7, 3 };
    struct assay_runs runs;
    assay_runs_begin(&runs, &maker->stream);
    for (int i = 0; i < maker->layout->scales; i++) {
        const struct assay_run_scale scale = assay_runs_next_scale(&runs, &range);
        made->scale[i] = scale_code(maker, scale.exponent,
                                    has_mantissas(maker) ? scale.mantissa << 9 : 0);
    }
}

static void make_scales(struct maker *maker, struct assay_mla_token *made)
{
    const struct assay_mla_token_layout *const layout = maker->layout;
    const enum assay_data_kind kind = maker->source->kind;
    assert(exponents[kind].count > 0);
    struct assay_stream *const stream =
        kind == ASSAY_DATA_TIES ? &maker->shared : &maker->stream;
    const int lowest =
        has_e2m1(maker) ? exponents[kind].e2m1_lowest : exponents[kind].lowest;
    const int count =
        has_e2m1(maker) ? exponents[kind].e2m1_count : exponents[kind].count;
    for (int i = 0; i < MAX_SCALES; i++) {
        const uint32_t word = assay_stream_next(stream);
        const uint32_t mantissa = assay_stream_next(stream);
        if (i >= layout->scales) continue;
        maker->exponent[i] = lowest + (int)(word % (uint32_t)count);
        if (layout->scale == ASSAY_UE8M0 && maker->exponent[i] < -127)
            maker->exponent[i] = -127;
        if (is_decisive(maker, (i + 1) * layout->scale_dims - 1))
            maker->exponent[i] = needle_exponent(maker);
        made->scale[i] =
            scale_code(maker, maker->exponent[i], has_mantissas(maker) ? mantissa : 0);
    }
}

static double log_uniform(const struct draw *draw, int largest, int count)
{
    const double significand = 1 + (draw->word >> 8) * 0x1p-24;
    const double value =
        significand * assay_power_of_two(largest - (int)(draw->word % (uint32_t)count));
    return draw->normal < 0 ? -value : value;
}

/* What an element is to be, before it is rounded to a code; the sizes of
 * assay_mla_fill_vector's keys. */
static double value_of(enum assay_data_kind kind, const struct draw *draw)
{
    const double unit = draw->word * 0x1p-32;
    switch (kind) {
    case ASSAY_DATA_ZERO: return 0;
    case ASSAY_DATA_UNIFORM: return 2 * unit - 1;
    case ASSAY_DATA_POSITIVE: return unit;
    case ASSAY_DATA_WIDE: return log_uniform(draw, 3, 24);
    case ASSAY_DATA_SUBNORMAL: return log_uniform(draw, -115, 19);
    case ASSAY_DATA_OUTLIER: return (draw->word % 64 == 0 ? 8 : 0.25) * draw->normal;
    case ASSAY_DATA_EXACT: return (int)(draw->word % 31) - 15;
    default: return draw->normal;
    }
}

/* One of two neighbours: the request says which, the token which of them. */
static uint32_t tie_code(struct maker *maker, uint32_t lowest, uint32_t count,
                         uint32_t sign, const struct draw *draw)
{
    const uint32_t word = assay_stream_next(&maker->shared);
    const uint32_t code = lowest + (word >> 8) % count + (draw->word >> 31);
    return word & 1 ? code | sign : code;
}

static uint32_t make_code(struct maker *maker, int element, const struct draw *draw)
{
    const enum assay_data_kind kind = maker->source->kind;
    const bool is_e2m1 = has_e2m1(maker);
    if (kind == ASSAY_DATA_TIES)
        return is_e2m1 ? tie_code(maker, 2, 4, 8, draw)
                       : tie_code(maker, 32, 56, 0x80, draw);
    double value = value_of(kind, draw);
    if (kind == ASSAY_DATA_SUBNORMAL && is_e2m1) value *= assay_power_of_two(E2M1_SHIFT);
    if (is_decisive(maker, element)) value = is_e2m1 ? 24 : 18 + 2 * (draw->word % 7);
    const int exponent = maker->exponent[element / maker->layout->scale_dims];
    const uint32_t code = assay_minifloat_encode(
        maker->code, value * assay_power_of_two(-exponent), ASSAY_OVERFLOW_SATURATES);
    const bool is_zero = (code & (is_e2m1 ? 7 : 0x7F)) == 0;
    return kind == ASSAY_DATA_NEEDLE && is_zero ? code | 1 : code;
}

static uint32_t make_rope(struct maker *maker, int element, const struct draw *draw)
{
    const enum assay_data_kind kind = maker->source->kind;
    if (kind == ASSAY_DATA_TIES) /* 2^-3 to 2^4 */
        return tie_code(maker, 124 << 7, 7 << 7, 0x8000, draw);
    double value = value_of(kind, draw);
    if (kind == ASSAY_DATA_NEEDLE && value == 0) value = 1;
    if (is_decisive(maker, element)) value = 18 + 2 * (draw->word % 7);
    return assay_minifloat_encode(maker->bf16, value, ASSAY_OVERFLOW_SATURATES);
}

/* Kind cancel: elements 2j and 2j + 1 are the same. */
static void make_elements(struct maker *maker, struct assay_mla_token *made)
{
    const bool is_cancel = maker->source->kind == ASSAY_DATA_CANCEL;
    const int coded = maker->layout->coded_dims;
    for (int i = 0; i < coded; i++) {
        const struct draw draw = next_draw(&maker->stream);
        made->code[i] =
            is_cancel && i % 2 ? made->code[i - 1] : (uint8_t)make_code(maker, i, &draw);
    }
    for (int i = 0; i < maker->layout->rope_dims; i++) {
        const struct draw draw = next_draw(&maker->stream);
        made->rope[i] = is_cancel && i % 2 ? made->rope[i - 1]
                                           : (uint16_t)make_rope(maker, coded + i, &draw);
    }
}

/* Codes and tail are one walk, with a stream that no number of scales moves. */
static void make_runs(struct maker *maker, struct assay_mla_token *made)
{
    const bool is_e2m1 = has_e2m1(maker);
    const struct assay_run_range codes =
        assay_run_range(maker->layout->code, 0, is_e2m1 ? 1.5 : 112);
    const struct assay_run_range tail = assay_run_range(ASSAY_BF16, 8, 1);
    struct assay_runs runs;
    make_run_scales(maker, made);
    assay_stream_jump(&maker->stream, RUNS_OF_CODES);
    assay_runs_begin(&runs, &maker->stream);
    for (int i = 0; i < maker->layout->coded_dims; i++)
        made->code[i] = (uint8_t)assay_runs_next(&runs, &codes);
    for (int i = 0; i < maker->layout->rope_dims; i++)
        made->rope[i] = (uint16_t)assay_runs_next(&runs, &tail);
}

static uint32_t special_scale(const struct maker *maker, uint32_t word)
{
    static const uint32_t f32[] = { 0x7F800000, 0xBE000000, 0, 1 };
    static const uint32_t e4m3[] = { 0, 1, 0x7E, 0x78 };
    static const uint32_t ue8m0[] = { 0, 1, 254, 250 };
    switch (maker->layout->scale) {
    case ASSAY_UE8M0: return ue8m0[word % 4];
    case ASSAY_E4M3: return e4m3[word % 4];
    default: return f32[word % 4];
    }
}

/* A NaN code, an odd scale, or something odd in the bf16 tail. */
static void make_special(struct maker *maker, struct assay_mla_token *made)
{
    static const uint16_t rope[] = { 0x7F80, 0xFF80, 0x7F7F, 0x7FFF };
    const uint32_t word = assay_stream_next(&maker->stream);
    const uint32_t place = assay_stream_next(&maker->stream) >> 8;
    const uint32_t which = word >> 8;
    const bool may_be_nan = !has_e2m1(maker);
    if (word % 3 == 0 && may_be_nan)
        made->code[place % (uint32_t)maker->layout->coded_dims] = which & 1 ? 0xFF : 0x7F;
    else if (word % 3 == 1 && maker->layout->rope_dims)
        made->rope[place % (uint32_t)maker->layout->rope_dims] = rope[which % 4];
    else
        made->scale[place % (uint32_t)maker->layout->scales] =
            special_scale(maker, which);
}

bool assay_mla_is_special_token(uint64_t seed, int64_t request, int64_t token)
{
    struct assay_stream stream;
    assay_stream_open(&stream, seed, "special token", "special", request);
    return token == 1 + assay_stream_next(&stream) % (SPECIAL_TOKENS - 1);
}

void assay_mla_make_token(const struct assay_mla_token_source *source, int64_t request,
                          int64_t token, bool is_needle, struct assay_mla_token *made)
{
    const char *const kind = assay_data_kinds[source->kind].name;
    struct maker maker = { .source = source,
                           .layout = &assay_mla_token_layouts[source->kv],
                           .bf16 = assay_minifloat(ASSAY_BF16),
                           .is_needle = is_needle };
    maker.code = assay_minifloat(maker.layout->code);
    assay_stream_open(&maker.stream, source->seed, source->tensor, kind,
                      assay_mla_row_key(request, token));
    assay_stream_open(&maker.shared, source->seed, source->tensor, "ties of a request",
                      request);
    if (source->kind == ASSAY_DATA_RUNS) {
        make_runs(&maker, made);
        return;
    }
    make_scales(&maker, made);
    make_elements(&maker, made);
    if (source->kind == ASSAY_DATA_SPECIAL &&
        assay_mla_is_special_token(source->seed, request, token))
        make_special(&maker, made);
}
