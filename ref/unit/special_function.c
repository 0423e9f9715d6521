/* SPDX-License-Identifier: MIT */
/* Hopper's special-function unit in integers. The tables, segment widths and rounding
 * constants were fitted to outputs of an H200 (corpus/units/README.md); the form, a table
 * lookup and a quadratic with a truncated squarer, is that of the G80. */
#include "ref/unit/special_function.h"

#include "ref/unit/scalar.h"
#include "ref/unit/special_function_table.h"

#include <stdbool.h>

enum { FRACTION_BITS = 23, BIAS = 127, LARGEST_FIELD = 254 };

static const uint32_t sign_mask = 0x80000000;
static const uint32_t fraction_mask = 0x007FFFFF;
static const uint32_t infinity_bits = 0x7F800000;
static const uint32_t nan_bits = 0x7FFFFFFF;
static const uint32_t one_bits = 0x3F800000;

static bool is_nan(uint32_t bits)
{
    return (bits & ~sign_mask) > infinity_bits;
}

static int exponent_field(uint32_t bits)
{
    return (int)(bits >> FRACTION_BITS & 0xFF);
}

/* @significand has its leading one at bit 23, or is 2^24 after a carry. */
static uint32_t pack(uint32_t sign, int field, int64_t significand)
{
    if (significand >> (FRACTION_BITS + 1)) {
        significand >>= 1;
        field++;
    }
    if (field < 1) return sign;
    if (field > LARGEST_FIELD) return sign | infinity_bits;
    return sign | (uint32_t)field << FRACTION_BITS |
           ((uint32_t)significand & fraction_mask);
}

/* Truncated squarer of a 17-bit number, about x^2 / 2^19. The unit drops the columns of
 * x * x below 2^18: (sum over set bits i + j >= 18 of 2^(i + j - 18)) / 2. With
 * x = 2^9 * high + low all of high * high counts and nothing of low * low; of the two
 * equal cross products, bit i of high (9 + i of x) meets bits 9 - i and up of low. */
static int64_t square(uint32_t x)
{
    const uint32_t high = x >> 9, low = x & 0x1FF;
    uint32_t cross = 0;
    for (int i = 1; i < 8; i++)
        cross += (0u - (high >> i & 1)) & low >> (9 - i);
    return (high * high + 2 * cross) >> 1;
}

uint32_t assay_ex2_approx_ftz(uint32_t bits)
{
    const bool is_negative = bits >> 31;
    const int exponent = exponent_field(bits) - BIAS;
    if (is_nan(bits)) return nan_bits;
    if (exponent >= 8) return is_negative ? 0 : infinity_bits;
    if (exponent < -FRACTION_BITS) return one_bits;

    /* |x| with 23 fraction bits; a negative x is floor(x) plus a fraction, except that
     * the fraction's last carry is dropped (~r for -r). */
    const uint32_t significand = (bits & fraction_mask) | 1u << FRACTION_BITS;
    const uint32_t fixed =
        exponent < 0 ? significand >> -exponent : significand << exponent;
    int integer = (int)(fixed >> FRACTION_BITS);
    uint32_t fraction = fixed & fraction_mask;
    if (is_negative) {
        integer = fraction ? -integer - 1 : -integer;
        fraction = fraction ? ~fraction & fraction_mask : 0;
    }

    const struct segment *const s = &ex2_table[fraction >> 17];
    const uint32_t u = fraction & 0x1FFFF;
    const int64_t v =
        ((int64_t)s->c0 << 13) + (int64_t)s->c1 * u + s->c2 * square(u) + 0x77E2;
    return pack(0, integer + BIAS, v >> 15);
}

uint32_t assay_rcp_approx_ftz(uint32_t bits)
{
    const uint32_t sign = bits & sign_mask;
    const int field = exponent_field(bits);
    if (is_nan(bits)) return nan_bits;
    if (field > LARGEST_FIELD) return sign;
    if (field == 0) return sign | infinity_bits;

    const struct segment *const s = &rcp_table[(bits & fraction_mask) >> 16];
    const uint32_t u = bits & 0xFFFF;
    const int64_t v =
        ((int64_t)s->c0 << 13) + (int64_t)s->c1 * u + s->c2 * square(u << 1) + 0x47E7;
    return pack(sign, 253 - field, v >> 15);
}

/* f32 of @magnitude * 2^-36, truncated. */
static uint32_t pack_logarithm(uint32_t sign, uint64_t magnitude)
{
    if (magnitude == 0) return 0;
    const int leading = 63 - __builtin_clzll(magnitude);
    const uint64_t significand = leading > FRACTION_BITS
                                     ? magnitude >> (leading - FRACTION_BITS)
                                     : magnitude << (FRACTION_BITS - leading);
    return pack(sign, leading - 36 + BIAS, (int64_t)significand);
}

uint32_t assay_lg2_approx_ftz(uint32_t bits)
{
    const int field = exponent_field(bits);
    if (is_nan(bits)) return nan_bits;
    if (field == 0) return sign_mask | infinity_bits;
    if (bits & sign_mask) return nan_bits;
    if (field > LARGEST_FIELD) return infinity_bits;

    const struct segment *const s = &lg2_table[(bits & fraction_mask) >> 17];
    const uint32_t u = bits & 0x1FFFF;
    const int64_t interpolated =
        (((int64_t)s->c0 << 12) + (int64_t)s->c1 * u + 2 * s->c2 * square(u) + 0x3345) >>
        2;
    const int64_t fraction = bits == one_bits ? 0 : interpolated;
    const int64_t sum = fraction + (int64_t)(field - BIAS) * (INT64_C(1) << 36);
    return sum < 0 ? pack_logarithm(sign_mask, (uint64_t)~sum)
                   : pack_logarithm(0, (uint64_t)sum);
}

uint32_t assay_rsqrt_approx_ftz(uint32_t bits)
{
    const int field = exponent_field(bits);
    if (is_nan(bits)) return nan_bits;
    if (field == 0) return (bits & sign_mask) | infinity_bits;
    if (bits & sign_mask) return nan_bits;
    if (field > LARGEST_FIELD) return 0;

    const bool is_even = ((field - BIAS) & 1) == 0;
    const int half_exponent = (field - BIAS - !is_even) / 2;
    const uint32_t fraction = bits & fraction_mask;
    if (is_even && fraction == 0)
        return pack(0, BIAS - half_exponent, 1 << FRACTION_BITS);

    const struct segment *const table = is_even ? rsqrt_even_table : rsqrt_odd_table;
    const struct segment *const s = &table[fraction >> 17];
    const uint32_t u = fraction & 0x1FFFF;
    const int64_t v =
        ((int64_t)s->c0 << 14) + (int64_t)s->c1 * u + 4 * s->c2 * square(u) + 0x7FFF;
    return pack(0, BIAS - 1 - half_exponent, v >> 16);
}

uint32_t assay_div_approx_ftz(uint32_t a, uint32_t b)
{
    const float reciprocal = assay_f32_from_bits(assay_rcp_approx_ftz(b));
    return assay_f32_bits(assay_f32_multiply_ftz(assay_f32_from_bits(a), reciprocal));
}
