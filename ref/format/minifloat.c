/* SPDX-License-Identifier: MIT */
/* The codec of the narrow formats: integer arithmetic on the bits of a double. */
#include "ref/format/minifloat.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { DOUBLE_FRACTION_BITS = 52, DOUBLE_BIAS = 1023 };

static const uint64_t double_sign = UINT64_C(1) << 63;
static const uint64_t double_infinity = UINT64_C(0x7FF) << DOUBLE_FRACTION_BITS;
static const uint64_t double_implicit_bit = UINT64_C(1) << DOUBLE_FRACTION_BITS;

/* NaN codes: written by H200's cvt for e4m3, e5m2, bf16, f16 and by its arithmetic for
 * f32; cuda_fp4.hpp for e2m1; cuda_fp8.hpp for ue8m0. */
static const struct assay_minifloat formats[ASSAY_FORMAT_COUNT] = {
    [ASSAY_E4M3] = { "e4m3", ASSAY_E4M3, 4, 3, 7, ASSAY_SPECIALS_FN, 0x7E, 0x7F },
    [ASSAY_E5M2] = { "e5m2", ASSAY_E5M2, 5, 2, 15, ASSAY_SPECIALS_IEEE, 0x7B, 0x7F },
    [ASSAY_E2M1] = { "e2m1", ASSAY_E2M1, 2, 1, 1, ASSAY_SPECIALS_NONE, 0x7, 0x7 },
    [ASSAY_UE8M0] = { "ue8m0", ASSAY_UE8M0, 8, 0, 127, ASSAY_SPECIALS_SCALE, 0xFE, 0xFF },
    [ASSAY_BF16] = { "bf16", ASSAY_BF16, 8, 7, 127, ASSAY_SPECIALS_IEEE, 0x7F7F, 0x7FFF },
    [ASSAY_F16] = { "f16", ASSAY_F16, 5, 10, 15, ASSAY_SPECIALS_IEEE, 0x7BFF, 0x7FFF },
    [ASSAY_TF32] = { "tf32", ASSAY_TF32, 8, 10, 127, ASSAY_SPECIALS_IEEE, 0x3FBFF,
                     0x3FFFF },
    [ASSAY_F32] = { "f32", ASSAY_F32, 8, 23, 127, ASSAY_SPECIALS_IEEE, 0x7F7FFFFF,
                    0x7FFFFFFF },
};

const struct assay_minifloat *assay_minifloat(enum assay_format format)
{
    const bool is_known = (unsigned)format < ASSAY_FORMAT_COUNT && formats[format].name;
    return is_known ? &formats[format] : NULL;
}

static uint32_t sign_bit(const struct assay_minifloat *format)
{
    if (format->specials == ASSAY_SPECIALS_SCALE) return 0;
    return UINT32_C(1) << (format->exponent_bits + format->mantissa_bits);
}

static uint32_t overflow_code(const struct assay_minifloat *format,
                              enum assay_overflow overflow)
{
    const bool has_special = format->specials != ASSAY_SPECIALS_NONE;
    const bool is_special = has_special && overflow == ASSAY_OVERFLOW_SPECIAL;
    return format->largest_finite + is_special;
}

struct assay_unpacked assay_minifloat_unpack(const struct assay_minifloat *format,
                                             uint32_t code)
{
    const uint32_t sign = sign_bit(format);
    const uint32_t magnitude = code & ~sign;
    const uint32_t implicit_bit = UINT32_C(1) << format->mantissa_bits;
    const uint32_t mantissa = magnitude & (implicit_bit - 1);
    const int field = (int)(magnitude >> format->mantissa_bits);
    struct assay_unpacked result = { ASSAY_FINITE, (code & sign) != 0, 0, 0 };
    assert(field < 1 << format->exponent_bits);

    if (magnitude > format->largest_finite) {
        const bool is_infinite = format->specials == ASSAY_SPECIALS_IEEE && mantissa == 0;
        result.kind = is_infinite ? ASSAY_INFINITE : ASSAY_NAN;
    } else if (format->specials == ASSAY_SPECIALS_SCALE) {
        result.significand = 1;
        result.exponent = field - format->bias;
    } else if (magnitude == 0) {
        result.kind = ASSAY_ZERO;
    } else {
        result.significand = field ? mantissa | implicit_bit : mantissa;
        result.exponent = (field ? field : 1) - format->bias - format->mantissa_bits;
    }
    return result;
}

double assay_minifloat_decode(const struct assay_minifloat *format, uint32_t code)
{
    const struct assay_unpacked fields = assay_minifloat_unpack(format, code);
    double magnitude = 0.0;
    switch (fields.kind) {
    case ASSAY_ZERO: break;
    case ASSAY_FINITE: magnitude = ldexp(fields.significand, fields.exponent); break;
    case ASSAY_INFINITE: magnitude = (double)INFINITY; break;
    case ASSAY_NAN: return (double)NAN;
    }
    return fields.is_negative ? -magnitude : magnitude;
}

/* Magnitude code of a value below the smallest normal, which the significand is shifted
 * to. */
static uint64_t round_subnormal(const struct assay_minifloat *format, uint64_t magnitude)
{
    const int exponent = (int)(magnitude >> DOUBLE_FRACTION_BITS) - DOUBLE_BIAS;
    const int below = 1 - format->bias - exponent;
    const int shift = DOUBLE_FRACTION_BITS - format->mantissa_bits + below;
    /* Below half the smallest subnormal; a double's own subnormals are among these. */
    if (shift > DOUBLE_FRACTION_BITS + 1) return 0;

    const uint64_t significand =
        (magnitude & (double_implicit_bit - 1)) | double_implicit_bit;
    const uint64_t below_half = (UINT64_C(1) << (shift - 1)) - 1;
    const uint64_t is_odd = (significand >> shift) & 1;
    return (significand + below_half + is_odd) >> shift;
}

/* Magnitude code, rounded as if exponents had no upper end. A mantissa that rounds up to
 * the next power of two carries into the exponent field, which is the right code. */
static inline uint64_t round_magnitude(const struct assay_minifloat *format,
                                       uint64_t magnitude)
{
    const uint64_t field_below = (uint64_t)(DOUBLE_BIAS - format->bias);
    if (magnitude >> DOUBLE_FRACTION_BITS <= field_below)
        return round_subnormal(format, magnitude);

    const int dropped = DOUBLE_FRACTION_BITS - format->mantissa_bits;
    const uint64_t below_half = (UINT64_C(1) << (dropped - 1)) - 1;
    const uint64_t is_odd = (magnitude >> dropped) & 1;
    const uint64_t rounded = (magnitude + below_half + is_odd) >> dropped;
    return rounded - (field_below << format->mantissa_bits);
}

/* The code of 2^k is k + bias; a nonzero fraction takes the next one. */
static uint64_t round_scale_up(const struct assay_minifloat *format, uint64_t magnitude)
{
    const uint64_t fraction = magnitude & (double_implicit_bit - 1);
    const int exponent = (int)(magnitude >> DOUBLE_FRACTION_BITS) - DOUBLE_BIAS;
    const int code = exponent + format->bias + (fraction != 0);
    return code < 0 ? 0 : (uint64_t)code;
}

uint32_t assay_minifloat_encode(const struct assay_minifloat *format, double value,
                                enum assay_overflow overflow)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    const uint64_t magnitude = bits & ~double_sign;
    if (magnitude > double_infinity) return format->canonical_nan;

    const uint64_t rounded = format->specials == ASSAY_SPECIALS_SCALE
                                 ? round_scale_up(format, magnitude)
                                 : round_magnitude(format, magnitude);
    const uint32_t code = rounded > format->largest_finite
                              ? overflow_code(format, overflow)
                              : (uint32_t)rounded;
    return code | (sign_bit(format) & -(uint32_t)(bits >> 63));
}

uint32_t assay_minifloat_encode_f32(const struct assay_minifloat *format, float value,
                                    enum assay_overflow overflow)
{
    return assay_minifloat_encode(format, (double)value, overflow);
}

uint32_t assay_ue8m0_encode(float value)
{
    return assay_minifloat_encode(&formats[ASSAY_UE8M0], (double)value,
                                  ASSAY_OVERFLOW_SATURATES);
}
