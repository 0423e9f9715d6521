/* SPDX-License-Identifier: MIT */
/* The GPU's scalar f32 operations on the host's IEEE arithmetic. */
#include "ref/unit/scalar.h"

static const uint32_t sign_mask = 0x80000000;
static const uint32_t infinity_bits = 0x7F800000;
static const float smallest_normal = 0x1p-126f;

static bool is_nan(uint32_t bits)
{
    return (bits & ~sign_mask) > infinity_bits;
}

float assay_f32_maximum(float a, float b)
{
    const uint32_t a_bits = assay_f32_bits(a), b_bits = assay_f32_bits(b);
    if (is_nan(b_bits)) return a;
    if (is_nan(a_bits)) return b;
    if (((a_bits | b_bits) & ~sign_mask) == 0)
        return assay_f32_from_bits(a_bits & b_bits);
    return a > b ? a : b;
}

float assay_f32_flush(float value)
{
    const uint32_t bits = assay_f32_bits(value);
    const bool is_normal = (bits & infinity_bits) != 0;
    return is_normal ? value : assay_f32_from_bits(bits & sign_mask);
}

/* Below 2^-126 after rounding to 24 bits is below 1 - 2^-25 of it before: the tie is even
 * upwards. A product of two floats is exact in double. */
float assay_f32_multiply_ftz(float a, float b)
{
    const float x = assay_f32_flush(a), y = assay_f32_flush(b);
    const float result = assay_f32_multiply(x, y);
    if (fabsf(result) != smallest_normal) return assay_f32_flush(result);

    const double largest_tiny = 0x1p-126 - 0x1p-151;
    const bool is_tiny = fabs((double)x * (double)y) < largest_tiny;
    return is_tiny ? copysignf(0.0f, result) : result;
}

/* A sum of floats that is near 2^-126 is a multiple of 2^-149, so it is exact. */
float assay_f32_add_ftz(float a, float b)
{
    return assay_f32_flush(assay_f32_add(assay_f32_flush(a), assay_f32_flush(b)));
}

/* Near 2^-126 the operation is repeated 2^24 times larger, where 24 bits fit. Scaling the
 * smaller factor cannot overflow: a sum that small needs a product below 2^-79. */
float assay_f32_fma_ftz(float a, float b, float c)
{
    const float x = assay_f32_flush(a), y = assay_f32_flush(b), z = assay_f32_flush(c);
    const float result = assay_f32_fma(x, y, z);
    if (fabsf(result) != smallest_normal) return assay_f32_flush(result);

    const float smaller = fabsf(x) < fabsf(y) ? x : y;
    const float larger = fabsf(x) < fabsf(y) ? y : x;
    const float scaled = fmaf(smaller * 0x1p24f, larger, z * 0x1p24f);
    const bool is_tiny = fabsf(scaled) < smallest_normal * 0x1p24f;
    return is_tiny ? copysignf(0.0f, result) : result;
}

bool assay_float_mode_is_sound(void)
{
    const volatile float one_and_some = 1.0f + 0x1p-12f;
    const volatile float minus_rounded_square = -(1.0f + 0x1p-11f);
    const volatile float normal = 0x1p-126f, subnormal = 0x1p-127f;
    const volatile float half = 0.5f, two = 2.0f;
    const volatile float odd = 1.0f + 0x1p-23f, half_unit = 0x1p-24f;

    /* The square is a tie: fused it leaves 2^-24, rounded up 2^-23, rounded down -0. */
    const volatile float not_contracted =
        one_and_some * one_and_some + minus_rounded_square;
    const volatile float result_not_flushed = normal * half;
    const volatile float input_not_flushed = subnormal * two;
    const volatile float nearest_even = odd + half_unit;

    return assay_f32_bits(not_contracted) == 0 &&
           assay_f32_bits(result_not_flushed) == 0x00400000 &&
           assay_f32_bits(input_not_flushed) == 0x00800000 &&
           assay_f32_bits(nearest_even) == 0x3F800002;
}
