/* SPDX-License-Identifier: MIT */
/* Values to convert for every kind of data, by the range of the format they go to. */
#include "ref/format/minifloat.h"
#include "verify/operation/unit/unit.h"

#include <assert.h>
#include <math.h>

struct source {
    enum assay_data_kind kind;
    const struct assay_minifloat *to;
};

static uint32_t bits_of(double value)
{
    return assay_minifloat_encode(assay_minifloat(ASSAY_F32), value,
                                  ASSAY_OVERFLOW_SPECIAL);
}

/* A finite code, without the sign, below the largest. */
static uint32_t code_below_largest(const struct source *source, uint32_t draw)
{
    return (draw >> 4) % source->to->largest_finite;
}

/* Exponents from below half the smallest subnormal to above the largest. */
static double wide_value(const struct source *source, uint32_t draw, double significand)
{
    const struct assay_minifloat *const to = source->to;
    const int lowest = 1 - to->bias - to->mantissa_bits - 2;
    const int exponents = (1 << to->exponent_bits) + to->mantissa_bits + 4;
    const int exponent = lowest + (int)(draw % (uint32_t)exponents);
    return significand * assay_power_of_two(exponent < -149  ? -149
                                            : exponent > 127 ? 127
                                                             : exponent);
}

static uint32_t special_bits(uint32_t draw, uint32_t normal)
{
    static const uint32_t specials[] = {
        0x00000000, 0x80000000, /* zeros */
        0x7F800000, 0xFF800000, /* infinities */
        0x7FC00000, 0xFF800001, /* NaN */
        0x7F7FFFFF, 0xFF7FFFFF, /* the largest f32 */
        0x00000001, 0x807FFFFF, /* subnormals */
        0x43E80000, 0xC3E80001, /* where e4m3 overflows: 464 */
        0x47700000, 0xC7700001, /* e5m2: 61440 */
        0x477FEFFF, 0xC77FF000, /* f16: 65520 */
        0x7F7F7FFF, 0xFF7F8000, /* bf16 */
    };
    const uint32_t count = sizeof(specials) / sizeof(specials[0]);
    return draw < UINT32_MAX / 4 ? specials[draw % count] : normal;
}

static double value_of(const struct source *source, uint32_t draw, double significand,
                       double normal)
{
    const double largest = assay_minifloat_decode(source->to, source->to->largest_finite);
    const double smallest = assay_power_of_two(1 - source->to->bias);
    const uint32_t code = code_below_largest(source, draw);
    const double low = assay_minifloat_decode(source->to, code);
    switch (source->kind) {
    case ASSAY_DATA_ZERO: return 0;
    case ASSAY_DATA_UNIFORM: return 1.25 * largest * (significand - 1);
    case ASSAY_DATA_WIDE: return wide_value(source, draw, significand);
    case ASSAY_DATA_OUTLIER: return (draw < UINT32_MAX / 64 ? 1000 : 1) * normal;
    case ASSAY_DATA_SUBNORMAL: return 1.25 * smallest * (significand - 1);
    case ASSAY_DATA_TIES: return (low + assay_minifloat_decode(source->to, code + 1)) / 2;
    case ASSAY_DATA_EXACT: return low;
    default: return 4 * normal;
    }
}

static uint32_t draw_value(struct assay_stream *stream, const void *context)
{
    const struct source *const source = context;
    const uint32_t draw = assay_stream_next(stream);
    const double significand = 1 + assay_stream_unit(stream);
    const double normal = assay_stream_normal(stream);
    const uint32_t bits = bits_of(value_of(source, draw, significand, normal));
    const bool is_unsigned =
        source->kind == ASSAY_DATA_POSITIVE || source->kind == ASSAY_DATA_ZERO;
    const uint32_t sign = is_unsigned ? 0 : draw & 1;
    const uint32_t result = (bits & 0x7FFFFFFF) | sign << 31;
    return source->kind == ASSAY_DATA_SPECIAL ? special_bits(draw, result) : result;
}

bool assay_convert_has_data(enum assay_data_kind kind)
{
    return kind != ASSAY_DATA_CANCEL;
}

void assay_convert_fill(const void *bound, enum assay_data_kind kind, uint64_t seed,
                        const struct assay_tensors *tensors)
{
    const struct assay_unary_problem *const problem = bound;
    const struct source source = { kind, assay_minifloat(problem->to) };
    assert(assay_convert_has_data(kind) && kind != ASSAY_DATA_RECORDED);
    const struct assay_tensor *const x = &tensors->item[ASSAY_UNARY_X];
    const double largest = assay_minifloat_decode(source.to, source.to->largest_finite);
    const struct assay_run_range range = assay_run_range(ASSAY_F32, largest, 4);
    if (kind == ASSAY_DATA_RUNS)
        assay_unary_fill_runs(x, seed, &range);
    else
        assay_unary_fill(x, kind, seed, &source, draw_value);
}
