/* SPDX-License-Identifier: MIT */
/* Rows converted and scaled without branches against the codec and the scalar unit, and
 * quotients and functions against double. */
#include "ref/kernel/mla_arithmetic.h"

#include "ref/format/minifloat.h"
#include "ref/unit/special_function.h"
#include "tests/kernel/key_list.h"

static const enum assay_format formats[] = { ASSAY_BF16, ASSAY_F16 };

START_TEST(codes_are_the_codecs_nearest_for_floats_of_every_exponent)
{
    for (int i = 0; i < 2; i++) {
        const struct assay_minifloat *const codec = assay_minifloat(formats[i]);
        uint32_t bits = 0;
        do { /* all that matters of the low bits: zeros, ones, about half */
            static const uint32_t low[] = { 0, 1, 0x7F, 0x80, 0x81, 0xFF };
            for (int j = 0; j < 6; j++) {
                const float value = assay_f32_from_bits(bits | low[j]);
                uint16_t code;
                assay_mla_encode(formats[i], ASSAY_MLA_P_NEAREST_EVEN, &value, 1, &code);
                const uint32_t expected =
                    assay_minifloat_encode_f32(codec, value, ASSAY_OVERFLOW_SPECIAL);
                if (code != expected)
                    ck_abort_msg("%08x: %04x", bits | low[j], (unsigned)code);
            }
            bits += 0x1F00;
        } while (bits >= 0x1F00);
    }
}
END_TEST

START_TEST(codes_toward_zero_are_the_largest_below)
{
    for (int i = 0; i < 2; i++) {
        const struct assay_minifloat *const codec = assay_minifloat(formats[i]);
        for (uint32_t bits = 0; bits < 0x7F800000; bits += 0x1F01) {
            const float values[] = { assay_f32_from_bits(bits),
                                     -assay_f32_from_bits(bits) };
            uint16_t code[2];
            assay_mla_encode(formats[i], ASSAY_MLA_P_TOWARD_ZERO, values, 2, code);
            const double value = assay_minifloat_decode(codec, code[0]);
            const double next = assay_minifloat_decode(codec, code[0] + 1u);
            if (!(value <= (double)values[0]) || !(next > (double)values[0]) ||
                code[1] != (code[0] | 0x8000))
                ck_abort_msg("%08x: %04x, %04x", bits, (unsigned)code[0],
                             (unsigned)code[1]);
        }
    }
}
END_TEST

START_TEST(nan_and_infinities_keep_their_codes)
{
    static const float values[] = { INFINITY, -INFINITY, NAN, -NAN };
    static const uint16_t expected[][4] = { { 0x7F80, 0xFF80, 0x7FFF, 0x7FFF },
                                            { 0x7C00, 0xFC00, 0x7FFF, 0x7FFF } };
    for (int i = 0; i < 2; i++)
        for (int rounding = 0; rounding < 2; rounding++) {
            uint16_t code[4];
            assay_mla_encode(formats[i], rounding, values, 4, code);
            ck_assert(same_bits(code, expected[i], sizeof(code)));
        }
}
END_TEST

START_TEST(every_code_decodes_to_the_codecs_value)
{
    for (int i = 0; i < 2; i++)
        for (uint32_t code = 0; code <= 0xFFFF; code++) {
            const uint16_t stored = (uint16_t)code;
            const double expected =
                assay_minifloat_decode(assay_minifloat(formats[i]), code);
            float value;
            assay_mla_decode(formats[i], &stored, 1, &value);
            if (isnan(expected)
                    ? !isnan(value)
                    : (double)value != expected || !signbit(value) != !signbit(expected))
                ck_abort_msg("%04x", code);
        }
}
END_TEST

/* A float whose exponent is near @exponent, sometimes zero or not finite. */
static float near(int exponent)
{
    const uint32_t kind = draw() % 16;
    if (kind == 0) return draw() % 2 ? 0.0f : -0.0f;
    if (kind == 1 && draw() % 8 == 0) return draw() % 2 ? INFINITY : NAN;
    const float significand = 1.0f + (float)(draw() >> 8) * 0x1p-24f;
    const float value =
        ldexpf(kind < 6 ? 2.0f - 0x1p-23f * (float)(kind % 3) : significand,
               exponent + (int)(draw() % 5) - 2);
    return draw() % 2 ? value : -value;
}

START_TEST(rows_are_scaled_as_one_product_after_the_other)
{
    random_state = 126;
    for (int repeat = 0; repeat < 20000; repeat++) {
        enum { COUNT = 16 };
        const bool flush = repeat % 2, is_rare = repeat % 3 == 0;
        const float factor = near(!is_rare ? 0 : draw() % 2 ? 3 : -3);
        float from[COUNT];
        uint32_t to[COUNT];
        for (int i = 0; i < COUNT; i++)
            from[i] = near(is_rare ? -126 : 5);
        assay_mla_scale_row(flush, factor, from, COUNT, to);
        for (int i = 0; i < COUNT; i++) {
            const float expected = flush ? assay_f32_multiply_ftz(from[i], factor)
                                         : assay_f32_multiply(from[i], factor);
            if (to[i] != bits_of(expected))
                ck_abort_msg("%a * %a: %08x", (double)from[i], (double)factor, to[i]);
        }
    }
}
END_TEST

/* A quotient of two floats has no double within 2^-50 of the middle of two floats but
 * itself, so that rounding it twice, without a limit of exponents, is rounding once. */
static float flushed_quotient(float a, float b)
{
    const double quotient = (double)a / (double)b;
    if (!isfinite(quotient) || fabs(quotient) > 0x1p-100) return (float)quotient;
    const float unbounded = (float)(quotient * 0x1p64);
    return fabsf(unbounded) < 0x1p-62f ? copysignf(0.0f, unbounded) : (float)quotient;
}

START_TEST(quotients_are_rounded_once_and_flushed_below_the_smallest_normal)
{
    random_state = 7;
    for (int i = 0; i < 400000; i++) {
        const float a = near(i % 2 ? -100 : 3), b = near(i % 2 ? 26 : 2);
        const float expected = flushed_quotient(assay_f32_flush(a), assay_f32_flush(b));
        if (bits_of(assay_mla_divide(true, a, b)) !=
            bits_of(assay_f32_canonical(expected)))
            ck_abort_msg("%a / %a", (double)a, (double)b);
        if (bits_of(assay_mla_divide(false, a, b)) != bits_of(assay_f32_canonical(a / b)))
            ck_abort_msg("%a / %a unflushed", (double)a, (double)b);
    }
    const float just_below = assay_mla_divide(true, 0x1.fffffep-120f, 0x1p7f);
    ck_assert_uint_eq(bits_of(just_below), 0);
    ck_assert_uint_eq(bits_of(assay_mla_divide(false, 0x1.fffffep-120f, 0x1p7f)),
                      0x00800000);
}
END_TEST

START_TEST(functions_are_the_hardwares_or_rounded_to_nearest)
{
    static const float arguments[] = { 0.5f, -1.0f / 3.0f, 3.0f, 0.7f, -0.0f, 1e-40f };
    static const uint32_t rounded[][3] = {
        { 0x3FB504F3, 0xBF800000, 0x40000000 }, { 0x3F4B2FF5, 0x7FFFFFFF, 0xC0400000 },
        { 0x41000000, 0x3FCAE00D, 0x3EAAAAAB }, { 0x3FCFEFC6, 0xBF03BB12, 0x3FB6DB6E },
        { 0x3F800000, 0xFF800000, 0xFF800000 }, { 0x3F800000, 0xFF800000, 0x7F800000 },
    };
    const int nearest = ASSAY_MLA_FUNCTIONS_ROUNDED, unit = ASSAY_MLA_FUNCTIONS_HARDWARE;
    for (int i = 0; i < 6; i++) {
        const float x = arguments[i];
        ck_assert_uint_eq(bits_of(assay_mla_ex2(nearest, true, x)), rounded[i][0]);
        ck_assert_uint_eq(bits_of(assay_mla_lg2(nearest, true, x)), rounded[i][1]);
        ck_assert_uint_eq(bits_of(assay_mla_rcp(nearest, true, x)), rounded[i][2]);
        ck_assert_uint_eq(bits_of(assay_mla_ex2(unit, false, x)),
                          assay_ex2_approx_ftz(bits_of(x)));
        ck_assert_uint_eq(bits_of(assay_mla_lg2(unit, false, x)),
                          assay_lg2_approx_ftz(bits_of(x)));
        ck_assert_uint_eq(bits_of(assay_mla_rcp(unit, false, x)),
                          assay_rcp_approx_ftz(bits_of(x)));
    }
    ck_assert_uint_eq(bits_of(assay_mla_ex2(nearest, true, -127.0f)), 0);
    ck_assert_uint_eq(bits_of(assay_mla_ex2(nearest, false, -127.0f)), 0x00400000);
    ck_assert_uint_eq(bits_of(assay_mla_ex2(nearest, false, NAN)), 0x7FFFFFFF);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        codes_are_the_codecs_nearest_for_floats_of_every_exponent,
        codes_toward_zero_are_the_largest_below,
        nan_and_infinities_keep_their_codes,
        every_code_decodes_to_the_codecs_value,
        rows_are_scaled_as_one_product_after_the_other,
        quotients_are_rounded_once_and_flushed_below_the_smallest_normal,
        functions_are_the_hardwares_or_rounded_to_nearest,
        NULL,
    };
    return run_tests("mla_arithmetic", tests);
}
