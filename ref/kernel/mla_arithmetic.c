/* SPDX-License-Identifier: MIT */
/* Rows are converted and scaled in loops without branches, which compilers vectorise. */
#include "ref/kernel/mla_arithmetic.h"

#include "ref/unit/special_function.h"

static const uint32_t magnitude_mask = 0x7FFFFFFF;
static const uint32_t infinity_bits = 0x7F800000;
static const uint32_t smallest_normal_bits = 0x00800000;

static uint32_t magnitude(float value)
{
    return assay_f32_bits(value) & magnitude_mask;
}

static float flushed(bool flush, float value)
{
    return flush ? assay_f32_flush(value) : value;
}

/* A quotient that rounds to 2^-126 is flushed if it rounds below with 24 bits and an
 * unbounded exponent: below (1 - 2^-25) * 2^-126. A divisor times that has more than 24
 * bits, so that quotients stay 2^-50 of it away, more than a double's error. */
float assay_mla_divide(bool flush, float a, float b)
{
    const float x = flushed(flush, a), y = flushed(flush, b);
    const float result = assay_f32_canonical(x / y);
    if (!flush || magnitude(result) != smallest_normal_bits)
        return flushed(flush, result);
    const bool is_tiny = fabs((double)x / (double)y) < 0x1p-126 - 0x1p-151;
    return is_tiny ? copysignf(0.0f, result) : result;
}

/* --- functions -------------------------------------------------------------------- */

/* Rounded twice, at 53 and 24 bits: nearest unless a result lies within an ulp of double
 * of the middle of two floats. */
static float rounded(bool flush, double value)
{
    return flushed(flush, assay_f32_canonical((float)value));
}

float assay_mla_ex2(int functions, bool flush, float x)
{
    if (functions == ASSAY_MLA_FUNCTIONS_HARDWARE)
        return assay_f32_from_bits(assay_ex2_approx_ftz(assay_f32_bits(x)));
    return rounded(flush, exp2((double)flushed(flush, x)));
}

float assay_mla_lg2(int functions, bool flush, float x)
{
    if (functions == ASSAY_MLA_FUNCTIONS_HARDWARE)
        return assay_f32_from_bits(assay_lg2_approx_ftz(assay_f32_bits(x)));
    return rounded(flush, log2((double)flushed(flush, x)));
}

float assay_mla_rcp(int functions, bool flush, float x)
{
    if (functions == ASSAY_MLA_FUNCTIONS_HARDWARE)
        return assay_f32_from_bits(assay_rcp_approx_ftz(assay_f32_bits(x)));
    return assay_mla_divide(flush, 1.0f, x);
}

/* --- rows ------------------------------------------------------------------------- */

/* The processor's product differs from the unit's only if a factor or the product is
 * subnormal or rounds to 2^-126, or the product is a NaN. */
void assay_mla_scale_row(bool flush, float factor, const float *from, int count,
                         uint32_t *to)
{
    const float plain_factor = flushed(flush, factor);
    uint32_t is_rare = 0;
    for (int i = 0; i < count; i++) {
        const float product = from[i] * plain_factor;
        const int32_t input = (int32_t)magnitude(from[i]);
        const int32_t result = (int32_t)magnitude(product);
        to[i] = assay_f32_bits(product);
        is_rare |= (uint32_t)((result > 0) & (result <= (int32_t)smallest_normal_bits));
        is_rare |= (uint32_t)((input > 0) & (input < (int32_t)smallest_normal_bits));
        is_rare |= (uint32_t)(result > (int32_t)infinity_bits);
    }
    if (!is_rare) return;
    for (int i = 0; i < count; i++)
        to[i] = assay_f32_bits(assay_mla_multiply(flush, from[i], factor));
}

static uint16_t bf16_nearest(float value)
{
    const uint32_t bits = assay_f32_bits(value);
    const uint32_t code = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(magnitude(value) > infinity_bits ? 0x7FFF : code);
}

static uint16_t bf16_toward_zero(float value)
{
    return (uint16_t)(magnitude(value) > infinity_bits ? 0x7FFF
                                                       : assay_f32_bits(value) >> 16);
}

enum {
    F16_EXPONENT_SHIFT = 112 << 23,  /* f32's bias less f16's, in f32's place */
    F16_SMALLEST_NORMAL = 113 << 23, /* 2^-14 as f32 */
    F16_OVERFLOW = (127 + 16) << 23, /* 2^16 */
};

/* Half has the last bit of a subnormal f16, 2^-24, as its own. */
static uint16_t f16_nearest(float value)
{
    const uint32_t sign = assay_f32_bits(value) >> 16 & 0x8000, bits = magnitude(value);
    uint32_t code = (bits - F16_EXPONENT_SHIFT + 0xFFF + (bits >> 13 & 1)) >> 13;
    if (bits < F16_SMALLEST_NORMAL)
        code = assay_f32_bits(assay_f32_from_bits(bits) + 0.5f) - assay_f32_bits(0.5f);
    if (bits >= F16_OVERFLOW) code = 0x7C00; /* what rounds up to it is so already */
    return (uint16_t)(bits > infinity_bits ? 0x7FFF : sign | code);
}

static uint16_t f16_toward_zero(float value)
{
    const uint32_t sign = assay_f32_bits(value) >> 16 & 0x8000, bits = magnitude(value);
    uint32_t code = (bits - F16_EXPONENT_SHIFT) >> 13;
    if (bits < F16_SMALLEST_NORMAL)
        code = (uint32_t)(assay_f32_from_bits(bits) * 0x1p24f);
    if (bits >= F16_OVERFLOW) code = bits == infinity_bits ? 0x7C00 : 0x7BFF;
    return (uint16_t)(bits > infinity_bits ? 0x7FFF : sign | code);
}

void assay_mla_encode(enum assay_format format, int p_rounding, const float *from,
                      int64_t count, uint16_t *to)
{
    const bool is_nearest = p_rounding == ASSAY_MLA_P_NEAREST_EVEN;
    if (format == ASSAY_BF16 && is_nearest)
        for (int64_t i = 0; i < count; i++)
            to[i] = bf16_nearest(from[i]);
    else if (format == ASSAY_BF16)
        for (int64_t i = 0; i < count; i++)
            to[i] = bf16_toward_zero(from[i]);
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = is_nearest ? f16_nearest(from[i]) : f16_toward_zero(from[i]);
}

static float f16_value(uint16_t code)
{
    const uint32_t sign = (uint32_t)(code & 0x8000) << 16, bits = code & 0x7FFF;
    const float finite = assay_f32_from_bits(bits << 13) * 0x1p112f;
    const float special = assay_f32_from_bits(infinity_bits | bits << 13);
    const float value = bits >= 0x7C00 ? special : finite;
    return assay_f32_from_bits(assay_f32_bits(value) | sign);
}

void assay_mla_decode(enum assay_format format, const uint16_t *from, int64_t count,
                      float *to)
{
    if (format == ASSAY_BF16)
        for (int64_t i = 0; i < count; i++)
            to[i] = assay_f32_from_bits((uint32_t)from[i] << 16);
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = f16_value(from[i]);
}
