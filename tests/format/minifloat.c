/* SPDX-License-Identifier: MIT */
/* The codec of the narrow formats: every code, and every rounding boundary. */
#include "ref/format/minifloat.h"

#include "tests/harness.h"

#include <math.h>
#include <string.h>

static const double infinity = (double)INFINITY;

/* What each format's specification says, written again without looking at the codec. */
struct specification {
    enum assay_format format;
    int exponent_bits, mantissa_bits, bias;
    uint32_t largest_finite; /* code; infinity, where there is one, is the next */
    bool has_infinity, has_sign;
    uint32_t nan;
    double largest, smallest_normal, smallest;
};

static const struct specification specifications[] = {
    { ASSAY_E4M3, 4, 3, 7, 0x7E, false, true, 0x7F, 448.0, 0x1p-6, 0x1p-9 },
    { ASSAY_E5M2, 5, 2, 15, 0x7B, true, true, 0x7F, 57344.0, 0x1p-14, 0x1p-16 },
    { ASSAY_E2M1, 2, 1, 1, 0x7, false, true, 0x7, 6.0, 1.0, 0.5 },
    { ASSAY_BF16, 8, 7, 127, 0x7F7F, true, true, 0x7FFF, 0x1.FEp127, 0x1p-126, 0x1p-133 },
    { ASSAY_F16, 5, 10, 15, 0x7BFF, true, true, 0x7FFF, 65504.0, 0x1p-14, 0x1p-24 },
    { ASSAY_TF32, 8, 10, 127, 0x3FBFF, true, true, 0x3FFFF, 0x1.FFCp127, 0x1p-126,
      0x1p-136 },
    { ASSAY_F32, 8, 23, 127, 0x7F7FFFFF, true, true, 0x7FFFFFFF, 0x1.FFFFFEp127, 0x1p-126,
      0x1p-149 },
    { ASSAY_UE8M0, 8, 0, 127, 0xFE, false, false, 0xFF, 0x1p127, 0x1p-127, 0x1p-127 },
};

enum {
    SPECIFICATIONS = sizeof(specifications) / sizeof(specifications[0]),
    EXHAUSTIVE = 6, /* the rows before f32, whose codes a test can all visit */
};

static uint32_t sign_of(const struct specification *s)
{
    return s->has_sign ? UINT32_C(1) << (s->exponent_bits + s->mantissa_bits) : 0;
}

/* Value of the finite code @magnitude of a format with a sign. */
static double expected_value(const struct specification *s, uint32_t magnitude)
{
    const uint32_t ones = UINT32_C(1) << s->mantissa_bits;
    const double fraction = (double)(magnitude % ones) / ones;
    const int field = (int)(magnitude / ones);
    return field ? ldexp(1.0 + fraction, field - s->bias) : ldexp(fraction, 1 - s->bias);
}

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

START_TEST(decode_of_every_code_follows_the_specification)
{
    for (int row = 0; row < EXHAUSTIVE; row++) {
        const struct specification *const s = &specifications[row];
        const struct assay_minifloat *const format = assay_minifloat(s->format);
        const uint32_t sign = sign_of(s);
        for (uint32_t code = 0; code < 2 * sign; code++) {
            const uint32_t magnitude = code & (sign - 1);
            const double value = assay_minifloat_decode(format, code);
            const double factor = code & sign ? -1.0 : 1.0;
            const bool is_finite = magnitude <= s->largest_finite;
            const bool is_infinite =
                s->has_infinity && magnitude == s->largest_finite + 1;
            const double expected =
                factor * (is_finite ? expected_value(s, magnitude) : infinity);
            const bool is_right =
                is_finite || is_infinite ? same_bits(value, expected) : isnan(value) != 0;
            if (!is_right) ck_abort_msg("%s %x: %a", format->name, code, value);
        }
    }
}
END_TEST

START_TEST(extreme_codes_have_the_published_values)
{
    for (int row = 0; row < SPECIFICATIONS; row++) {
        const struct specification *const s = &specifications[row];
        const struct assay_minifloat *const format = assay_minifloat(s->format);
        const uint32_t smallest_normal = UINT32_C(1) << s->mantissa_bits;
        ck_assert_double_eq(assay_minifloat_decode(format, s->largest_finite),
                            s->largest);
        if (s->has_sign) {
            ck_assert_double_eq(assay_minifloat_decode(format, smallest_normal),
                                s->smallest_normal);
            ck_assert_double_eq(assay_minifloat_decode(format, 1), s->smallest);
        } else {
            ck_assert_double_eq(assay_minifloat_decode(format, 0), s->smallest);
        }
        ck_assert_uint_eq(format->canonical_nan, s->nan);
    }
}
END_TEST

START_TEST(e2m1_and_ue8m0_codes_match_their_tables)
{
    static const double e2m1[8] = { 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0 };
    const struct assay_minifloat *const scale = assay_minifloat(ASSAY_UE8M0);
    for (uint32_t code = 0; code < 16; code++) {
        const double value = assay_minifloat_decode(assay_minifloat(ASSAY_E2M1), code);
        ck_assert(same_bits(value, code & 8 ? -e2m1[code & 7] : e2m1[code]));
    }
    double power = 0x1p-127;
    for (uint32_t code = 0; code < 255; code++, power *= 2.0) {
        ck_assert_double_eq(assay_minifloat_decode(scale, code), power);
        ck_assert_uint_eq(assay_ue8m0_encode((float)power), code);
    }
    ck_assert_double_nan(assay_minifloat_decode(scale, 255));
}
END_TEST

START_TEST(unpacked_fields_give_the_value_and_the_alignment_exponent)
{
    for (int row = 0; row < EXHAUSTIVE; row++) {
        const struct specification *const s = &specifications[row];
        const struct assay_minifloat *const format = assay_minifloat(s->format);
        const uint32_t sign = sign_of(s), implicit_bit = UINT32_C(1) << s->mantissa_bits;
        for (uint32_t code = 0; code <= s->largest_finite; code++) {
            const struct assay_unpacked f = assay_minifloat_unpack(format, code | sign);
            const bool is_normal = code >= implicit_bit;
            const int field = (int)(code >> s->mantissa_bits);
            const int alignment = code ? (is_normal ? field : 1) - s->bias : 0;
            const bool is_right =
                f.is_negative && !assay_minifloat_unpack(format, code).is_negative &&
                f.kind == (code ? ASSAY_FINITE : ASSAY_ZERO) &&
                same_bits(ldexp(f.significand, f.exponent), expected_value(s, code)) &&
                (f.significand >= implicit_bit) == is_normal &&
                f.exponent + (code ? s->mantissa_bits : 0) == alignment;
            if (!is_right)
                ck_abort_msg("%s %x: kind %d, %u * 2^%d", format->name, code, (int)f.kind,
                             f.significand, f.exponent);
        }
        if (s->has_infinity) {
            const uint32_t code = s->largest_finite + 1;
            ck_assert_int_eq(assay_minifloat_unpack(format, code).kind, ASSAY_INFINITE);
            ck_assert_int_eq(assay_minifloat_unpack(format, code + 1).kind, ASSAY_NAN);
        }
    }
    const struct assay_minifloat *const scale = assay_minifloat(ASSAY_UE8M0);
    const struct assay_unpacked two = assay_minifloat_unpack(scale, 128);
    ck_assert(two.kind == ASSAY_FINITE && !two.is_negative);
    ck_assert(two.significand == 1 && two.exponent == 1);
    ck_assert_int_eq(assay_minifloat_unpack(scale, 255).kind, ASSAY_NAN);
    ck_assert_int_eq(assay_minifloat_unpack(assay_minifloat(ASSAY_E4M3), 0xFF).kind,
                     ASSAY_NAN);
}
END_TEST

/* Asserts the code of @value and, with the sign, of -@value. */
static void expect_codes(const struct specification *s, double value,
                         enum assay_overflow overflow, uint32_t expected)
{
    const struct assay_minifloat *const format = assay_minifloat(s->format);
    const uint32_t code = assay_minifloat_encode(format, value, overflow);
    const uint32_t negative = assay_minifloat_encode(format, -value, overflow);
    if (code != expected || negative != (expected | sign_of(s)))
        ck_abort_msg("%s of %a: %x, of the negative: %x, should be %x and %x",
                     format->name, value, code, negative, expected,
                     expected | sign_of(s));
}

START_TEST(encode_rounds_to_nearest_even_at_every_boundary)
{
    for (int row = 0; row < EXHAUSTIVE; row++) {
        const struct specification *const s = &specifications[row];
        for (uint32_t code = 0; code < s->largest_finite; code++) {
            const double low = expected_value(s, code);
            const double high = expected_value(s, code + 1);
            const double tie = low + (high - low) / 2;
            const uint32_t even = code % 2 ? code + 1 : code;
            const enum assay_overflow overflow = (enum assay_overflow)(code % 2);
            expect_codes(s, low, overflow, code);
            expect_codes(s, nextafter(tie, 0.0), overflow, code);
            expect_codes(s, tie, overflow, even);
            expect_codes(s, nextafter(tie, infinity), overflow, code + 1);
        }
    }
}
END_TEST

START_TEST(overflow_saturates_or_becomes_special_beyond_half_a_unit)
{
    for (int row = 0; row < SPECIFICATIONS - 1; row++) {
        const struct specification *const s = &specifications[row];
        const uint32_t largest = s->largest_finite;
        const uint32_t special = s->format == ASSAY_E2M1 ? largest : largest + 1;
        const double beyond = expected_value(s, largest + 1);
        const double tie = s->largest + (beyond - s->largest) / 2;
        const double values[] = { nextafter(tie, infinity), beyond, 0x1p1023, infinity };
        expect_codes(s, s->largest, ASSAY_OVERFLOW_SPECIAL, largest);
        expect_codes(s, nextafter(tie, 0.0), ASSAY_OVERFLOW_SPECIAL, largest);
        expect_codes(s, tie, ASSAY_OVERFLOW_SPECIAL, largest % 2 ? special : largest);
        expect_codes(s, tie, ASSAY_OVERFLOW_SATURATES, largest);
        for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
            expect_codes(s, values[i], ASSAY_OVERFLOW_SPECIAL, special);
            expect_codes(s, values[i], ASSAY_OVERFLOW_SATURATES, largest);
        }
    }
}
END_TEST

/* Outputs of cuda_fp8.hpp's and cuda_fp4.hpp's rules, and the fractions beside them. */
START_TEST(encode_gives_the_codes_of_cudas_conversions)
{
    static const struct {
        enum assay_format format;
        enum assay_overflow overflow;
        double value;
        uint32_t code;
    } rows[] = {
        { ASSAY_E4M3, ASSAY_OVERFLOW_SPECIAL, 464.0, 0x7E },
        { ASSAY_E4M3, ASSAY_OVERFLOW_SPECIAL, 465.0, 0x7F },
        { ASSAY_E4M3, ASSAY_OVERFLOW_SPECIAL, -465.0, 0xFF },
        { ASSAY_E4M3, ASSAY_OVERFLOW_SPECIAL, -(double)INFINITY, 0xFF },
        { ASSAY_E4M3, ASSAY_OVERFLOW_SATURATES, -(double)INFINITY, 0xFE },
        { ASSAY_E4M3, ASSAY_OVERFLOW_SATURATES, 0x1p-10, 0x00 },
        { ASSAY_E4M3, ASSAY_OVERFLOW_SATURATES, -0x1p-10, 0x80 },
        { ASSAY_E5M2, ASSAY_OVERFLOW_SPECIAL, 61440.0, 0x7C },
        { ASSAY_E5M2, ASSAY_OVERFLOW_SPECIAL, 61439.0, 0x7B },
        { ASSAY_E5M2, ASSAY_OVERFLOW_SATURATES, (double)INFINITY, 0x7B },
        { ASSAY_E2M1, ASSAY_OVERFLOW_SPECIAL, -100.0, 0xF },
        { ASSAY_E2M1, ASSAY_OVERFLOW_SATURATES, 5.0, 0x6 },
        { ASSAY_E2M1, ASSAY_OVERFLOW_SATURATES, 0.25, 0x0 },
        { ASSAY_BF16, ASSAY_OVERFLOW_SPECIAL, (double)0x1.FFFFFEp127f, 0x7F80 },
        { ASSAY_F16, ASSAY_OVERFLOW_SPECIAL, 65520.0, 0x7C00 },
        { ASSAY_F32, ASSAY_OVERFLOW_SPECIAL, 0x1p-150, 0x00000000 },
        { ASSAY_F32, ASSAY_OVERFLOW_SPECIAL, -0x1.8p-149, 0x80000002 },
        { ASSAY_F32, ASSAY_OVERFLOW_SPECIAL, 0x1p-1074, 0x00000000 },
        { ASSAY_TF32, ASSAY_OVERFLOW_SPECIAL, 1.0, 0x1FC00 },
        { ASSAY_UE8M0, ASSAY_OVERFLOW_SPECIAL, 0x1.0000001p127, 0xFF },
        { ASSAY_UE8M0, ASSAY_OVERFLOW_SATURATES, 0x1.0000001p127, 0xFE },
        { ASSAY_UE8M0, ASSAY_OVERFLOW_SATURATES, 0x1p-1074, 0x00 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct assay_minifloat *const format = assay_minifloat(rows[i].format);
        ck_assert_uint_eq(assay_minifloat_encode(format, rows[i].value, rows[i].overflow),
                          rows[i].code);
    }
}
END_TEST

START_TEST(nans_of_either_sign_give_the_canonical_code)
{
    for (int row = 0; row < SPECIFICATIONS; row++) {
        const struct specification *const s = &specifications[row];
        const struct assay_minifloat *const format = assay_minifloat(s->format);
        for (int overflow = 0; overflow < 2; overflow++) {
            const enum assay_overflow rule = (enum assay_overflow)overflow;
            const double nan = (double)NAN;
            ck_assert_uint_eq(assay_minifloat_encode(format, nan, rule), s->nan);
            ck_assert_uint_eq(assay_minifloat_encode(format, -nan, rule), s->nan);
            ck_assert_uint_eq(assay_minifloat_encode_f32(format, -(float)NAN, rule),
                              s->nan);
        }
    }
}
END_TEST

/* The compiler's own conversion, correctly rounded, is the second implementation. */
START_TEST(f32_codes_are_the_compilers_conversions)
{
    const struct assay_minifloat *const format = assay_minifloat(ASSAY_F32);
    uint64_t state = 1;
    for (int i = 0; i < 5000000; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const uint64_t field = UINT64_C(0x380) - 24 + (state >> 32) % (256 + 28);
        const uint64_t ties = i % 4 ? 0 : (UINT64_C(1) << 28) - 1;
        const uint64_t bits = (state & ~(UINT64_C(0x7FF) << 52) & ~ties) | field << 52;
        double value;
        memcpy(&value, &bits, sizeof(value));
        const float expected = (float)value;
        uint32_t expected_bits;
        memcpy(&expected_bits, &expected, sizeof(expected_bits));
        const uint32_t code =
            assay_minifloat_encode(format, value, ASSAY_OVERFLOW_SPECIAL);
        const uint32_t again =
            assay_minifloat_encode_f32(format, expected, ASSAY_OVERFLOW_SPECIAL);
        const double decoded = assay_minifloat_decode(format, expected_bits);
        if (code != expected_bits || again != code ||
            !same_bits(decoded, (double)expected))
            ck_abort_msg("f32 of %a: %x, then %x, decoded %a, should be %x", value, code,
                         again, decoded, expected_bits);
    }
}
END_TEST

START_TEST(every_16_bit_code_survives_a_round_trip)
{
    static const enum assay_format wide[] = { ASSAY_BF16, ASSAY_F16 };
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++) {
        const struct assay_minifloat *const format = assay_minifloat(wide[i]);
        for (uint32_t code = 0; code < 65536; code++) {
            const double value = assay_minifloat_decode(format, code);
            const uint32_t back =
                assay_minifloat_encode(format, value, ASSAY_OVERFLOW_SPECIAL);
            if (back != (isnan(value) ? 0x7FFF : code))
                ck_abort_msg("%s %x came back as %x", format->name, code, back);
        }
    }
}
END_TEST

/* The definition, by search: the code of the smallest power of two not below |value|. */
static uint32_t scale_by_search(float value)
{
    uint32_t code = 0;
    while (code < 254 && ldexp(1.0, (int)code - 127) < fabs((double)value))
        code++;
    return code;
}

START_TEST(values_around_every_power_of_two_are_coded_on_the_right_side)
{
    const struct assay_minifloat *const e4m3 = assay_minifloat(ASSAY_E4M3);
    for (int k = -149; k <= 127; k++) {
        for (int units = -4; units <= 4; units++) {
            const float power = ldexpf(1.0f, k);
            uint32_t bits;
            memcpy(&bits, &power, sizeof(bits));
            if (units < 0 && bits < (uint32_t)-units) continue;
            bits += (uint32_t)units;
            float value;
            memcpy(&value, &bits, sizeof(value));
            ck_assert_uint_eq(assay_ue8m0_encode(value), scale_by_search(value));
            ck_assert_uint_eq(assay_ue8m0_encode(-value), scale_by_search(value));

            const double halves = nearbyint(ldexp((double)value, k < -6 ? 9 : 3 - k));
            const uint32_t power_code = k < -6 ? 0 : (uint32_t)(k + 7) << 3;
            const uint32_t code =
                k < -6 ? (uint32_t)halves : power_code + (uint32_t)halves - 8;
            ck_assert_uint_eq(
                assay_minifloat_encode_f32(e4m3, value, ASSAY_OVERFLOW_SATURATES),
                k > 8 ? 0x7E : code);
        }
    }
    ck_assert_uint_eq(assay_ue8m0_encode(0.0f), 0);
    ck_assert_uint_eq(assay_ue8m0_encode((float)INFINITY), 254);
    ck_assert_uint_eq(assay_ue8m0_encode((float)NAN), 255);
}
END_TEST

START_TEST(each_narrow_format_has_a_row_named_as_in_tensors)
{
    for (int format = 0; format < ASSAY_FORMAT_COUNT; format++) {
        const struct assay_minifloat *const row =
            assay_minifloat((enum assay_format)format);
        const bool is_float =
            format != ASSAY_FORMAT_NONE && format != ASSAY_U8 && format != ASSAY_I32;
        ck_assert_int_eq(row != NULL, is_float);
        if (!row) continue;
        ck_assert_int_eq(row->format, format);
        ck_assert_str_eq(row->name, assay_format_name((enum assay_format)format));
    }
    ck_assert_ptr_null(assay_minifloat((enum assay_format)ASSAY_FORMAT_COUNT));
}
END_TEST

int main(void)
{
    return run_tests("minifloat",
                     (const TTest *const[]){
                         decode_of_every_code_follows_the_specification,
                         extreme_codes_have_the_published_values,
                         e2m1_and_ue8m0_codes_match_their_tables,
                         unpacked_fields_give_the_value_and_the_alignment_exponent,
                         encode_rounds_to_nearest_even_at_every_boundary,
                         overflow_saturates_or_becomes_special_beyond_half_a_unit,
                         encode_gives_the_codes_of_cudas_conversions,
                         nans_of_either_sign_give_the_canonical_code,
                         f32_codes_are_the_compilers_conversions,
                         every_16_bit_code_survives_a_round_trip,
                         values_around_every_power_of_two_are_coded_on_the_right_side,
                         each_narrow_format_has_a_row_named_as_in_tensors,
                         NULL,
                     });
}
