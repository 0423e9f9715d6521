/* SPDX-License-Identifier: MIT */
/* Arguments of sfu for every kind of data. Where negative ones have no result (lg2,
 * rsqrt), all but the special ones are positive. */
#include "ref/format/minifloat.h"
#include "verify/operation/unit/unit.h"

#include <assert.h>
#include <math.h>

enum { SIGN = 31, MANTISSA_BITS = 23, BIAS = 127 };

struct source {
    enum assay_data_kind kind;
    enum assay_sfu_function function;
};

static uint32_t bits_of(double value)
{
    return assay_minifloat_encode(assay_minifloat(ASSAY_F32), value,
                                  ASSAY_OVERFLOW_SPECIAL);
}

/* 2^exponent * (1 + mantissa / 2^23) with a random sign. */
static uint32_t scaled_bits(uint32_t draw, int exponent, uint32_t mantissa)
{
    return (draw & 1u << SIGN) | (uint32_t)(exponent + BIAS) << MANTISSA_BITS |
           (mantissa & 0x7FFFFF);
}

/* ex2 has results up to |x| = 127; the others take any exponent. */
static uint32_t wide_bits(const struct source *source, uint32_t draw, uint32_t mantissa)
{
    const bool is_ex2 = source->function == ASSAY_SFU_EX2;
    const int lowest = is_ex2 ? -26 : -126, exponents = is_ex2 ? 33 : 254;
    return scaled_bits(draw, lowest + (int)(draw % (uint32_t)exponents), mantissa);
}

/* Subnormal arguments, some with results around the smallest normal f32, and others. */
static uint32_t subnormal_bits(const struct source *source, uint32_t draw,
                               uint32_t mantissa)
{
    const double fraction = (mantissa >> 9) * 0x1p-23;
    switch (draw & 3) {
    case 0:
    case 1: return (draw & 1u << SIGN) | mantissa >> 9;
    case 2:
        if (source->function == ASSAY_SFU_EX2) return bits_of(-125 - 3 * fraction);
        return scaled_bits(draw, 125 + (int)(draw >> 2 & 1), mantissa);
    default: return bits_of(fraction - 2);
    }
}

/* Arguments with results that f32 has, and the unit finds. */
static uint32_t exact_bits(const struct source *source, uint32_t draw)
{
    switch (source->function) {
    case ASSAY_SFU_EX2: return bits_of((int)(draw >> 8 & 0xFF) % 254 - 126);
    case ASSAY_SFU_LG2: return scaled_bits(0, (int)(draw >> 8 & 0x7F), 0);
    case ASSAY_SFU_RCP: return scaled_bits(draw, (int)(draw >> 8 & 0xFF) % 253 - 126, 0);
    default: return scaled_bits(0, (int)(draw >> 8 & 0x7F) % 126 * 2 - 126, 0);
    }
}

static uint32_t special_bits(uint32_t draw, uint32_t normal)
{
    static const uint32_t specials[] = {
        0x00000000, 0x80000000, /* zeros */
        0x7F800000, 0xFF800000, /* infinities */
        0x7FC00000, 0xFF800001, /* NaN */
        0x7F7FFFFF, 0xFF7FFFFF, /* the largest */
        0x00800000, 0x80800000, /* the smallest normal */
        0x007FFFFF, 0x80000001, /* subnormal */
        0x3F800000, 0xBF800000, /* one */
        0x43000000, 0xC2FC0000, /* ends of the range of ex2: 128, -126 */
    };
    const uint32_t count = sizeof(specials) / sizeof(specials[0]);
    return draw < UINT32_MAX / 4 ? specials[draw % count] : normal;
}

static uint32_t value_bits(const struct source *source, uint32_t draw, uint32_t mantissa,
                           double normal)
{
    const double uniform = draw * 0x1p-31 - 1; /* in [-1, 1) */
    switch (source->kind) {
    case ASSAY_DATA_ZERO: return 0;
    case ASSAY_DATA_UNIFORM: return bits_of(100 * uniform);
    case ASSAY_DATA_WIDE: return wide_bits(source, draw, mantissa);
    case ASSAY_DATA_OUTLIER:
        return bits_of((draw < UINT32_MAX / 64 ? 30 : 0.25) * normal);
    case ASSAY_DATA_SUBNORMAL: return subnormal_bits(source, draw, mantissa);
    case ASSAY_DATA_POSITIVE: return bits_of(0.5 + fabs(uniform));
    case ASSAY_DATA_EXACT: return exact_bits(source, draw);
    default: return bits_of(4 * normal);
    }
}

static bool has_sign(const struct source *source)
{
    return source->function == ASSAY_SFU_EX2 || source->function == ASSAY_SFU_RCP;
}

static uint32_t draw_argument(struct assay_stream *stream, const void *context)
{
    const struct source *const source = context;
    const uint32_t draw = assay_stream_next(stream), mantissa = assay_stream_next(stream);
    const double normal = assay_stream_normal(stream);
    const uint32_t bits = value_bits(source, draw, mantissa, normal);
    const uint32_t legal = has_sign(source) ? bits : bits & ~(1u << SIGN);
    return source->kind == ASSAY_DATA_SPECIAL ? special_bits(draw, legal) : legal;
}

/* ex2 has results up to |x| = 127. */
static void fill_runs(const struct source *source, uint64_t seed,
                      const struct assay_tensor *x)
{
    const bool is_ex2 = source->function == ASSAY_SFU_EX2;
    const struct assay_run_range range = assay_run_range(ASSAY_F32, is_ex2 ? 127 : 0, 4);
    assay_unary_fill_runs(x, seed, &range);
    for (int64_t i = 0; i < x->shape[0] && !has_sign(source); i++)
        assay_tensor_set_bits(x, i, assay_tensor_bits(x, i) & ~(1u << SIGN));
}

bool assay_sfu_has_data(enum assay_data_kind kind)
{
    return kind != ASSAY_DATA_CANCEL && kind != ASSAY_DATA_TIES;
}

void assay_sfu_fill(const void *bound, enum assay_data_kind kind, uint64_t seed,
                    const struct assay_tensors *tensors)
{
    const struct assay_unary_problem *const problem = bound;
    const struct source source = { kind, problem->function };
    assert(assay_sfu_has_data(kind) && kind != ASSAY_DATA_RECORDED);
    const struct assay_tensor *const x = &tensors->item[ASSAY_UNARY_X];
    if (kind == ASSAY_DATA_RUNS)
        fill_runs(&source, seed, x);
    else
        assay_unary_fill(x, kind, seed, &source, draw_argument);
}
