/* SPDX-License-Identifier: MIT */
/* GPU scalar arithmetic: against the processor's own flush-to-zero mode, and against
 * double arithmetic rounded to odd. */
#include "ref/unit/scalar.h"

#include "tests/harness.h"

#include <fenv.h>
#include <immintrin.h>
#include <math.h>
#include <string.h>

enum { BATCH = 4096, BATCHES = 2442, MXCSR_FTZ_AND_DAZ = 0x8040 };

/* A linear congruential generator (Knuth's MMIX constants), upper half. */
static uint32_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 32);
}

static uint32_t canonical(uint32_t bits)
{
    return (bits & 0x7FFFFFFF) > 0x7F800000 ? 0x7FFFFFFF : bits;
}

struct triple {
    float a, b, c;
};

struct results {
    volatile float product[BATCH], sum[BATCH], fused[BATCH];
};

__attribute__((target("fma"), noinline)) static void
compute_with_hardware_flush(const volatile struct triple *in, struct results *out)
{
    const unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | MXCSR_FTZ_AND_DAZ);
    for (int i = 0; i < BATCH; i++) {
        const float a = in[i].a, b = in[i].b, c = in[i].c;
        out->product[i] = a * b;
        out->sum[i] = a + c;
        out->fused[i] =
            _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
    }
    _mm_setcsr(mode);
}

static float moved_by_units(float value, int units)
{
    return assay_f32_from_bits(assay_f32_bits(value) + (uint32_t)units);
}

static float draw_near_smallest_normal(uint64_t *state)
{
    const uint32_t bits = 0x00800000 + draw(state) % 0x01000000 - 0x00800000;
    return assay_f32_from_bits(bits | (draw(state) & 0x80000000));
}

/* Products and sums at 2^-126 give or take a few units, or cancelling to there. */
static struct triple draw_triple(uint64_t *state)
{
    const uint32_t a_bits = 0x20000000 + draw(state) % 0x40000000;
    const float a = assay_f32_from_bits(a_bits | (draw(state) & 0x80000000));
    struct triple t = { a, (float)(0x1p-126 / (double)a), 0.0f };
    t.b = moved_by_units(t.b, (int)(draw(state) % 7) - 3);
    switch (draw(state) % 6) {
    case 0: break;
    case 1: t.c = draw_near_smallest_normal(state); break;
    case 2: t.c = copysignf(0x1p-126f, draw(state) & 1 ? 1.0f : -1.0f); break;
    case 3:
        t.b = ldexpf(t.b, (int)(draw(state) % 40));
        t.c = moved_by_units(-(t.a * t.b), (int)(draw(state) % 5) - 2);
        break;
    case 4: /* a tiny product that decides a tie */
        t.a = assay_f32_from_bits(0x1F800000 - draw(state) % 0x0C000000);
        t.b = assay_f32_from_bits(0x1F800000 - draw(state) % 0x0C000000);
        t.c = moved_by_units(0x1p-126f, (int)(draw(state) % 3));
        t.a = draw(state) & 1 ? -t.a : t.a;
        break;
    default:
        t = (struct triple){ draw_near_smallest_normal(state), 1.0f, 0.0f };
        t.b = assay_f32_from_bits(0x3F700000 + draw(state) % 0x00200000);
        t.c = draw_near_smallest_normal(state);
    }
    return t;
}

static bool is_subnormal(float value)
{
    const uint32_t magnitude = assay_f32_bits(value) & 0x7FFFFFFF;
    return magnitude > 0 && magnitude < 0x00800000;
}

/* Results that the mode decides: kept at 2^-126 or flushed though they round up to it. */
struct decided {
    int kept, flushed_from_smallest_normal, flushed_subnormal;
};

static void compare(const struct triple *t, const char *operation, float computed,
                    float unflushed, float hardware, struct decided *decided)
{
    const uint32_t expected = canonical(assay_f32_bits(hardware));
    if (assay_f32_bits(computed) != expected)
        ck_abort_msg("%s of %a, %a, %a: computed %08x, processor %08x", operation,
                     (double)t->a, (double)t->b, (double)t->c, assay_f32_bits(computed),
                     expected);
    const bool is_zero = (expected & 0x7FFFFFFF) == 0;
    if (fabsf(unflushed) == 0x1p-126f && is_zero) decided->flushed_from_smallest_normal++;
    if (fabsf(unflushed) == 0x1p-126f && !is_zero) decided->kept++;
    if (is_subnormal(unflushed) && is_zero) decided->flushed_subnormal++;
}

START_TEST(flushed_operations_equal_the_processors_own_flush_mode)
{
    static struct triple in[BATCH];
    static struct results out;
    struct decided product = { 0 }, sum = { 0 }, fused = { 0 };
    uint64_t state = 1;
    ck_assert_msg(__builtin_cpu_supports("fma"), "this test needs a processor with FMA");

    for (int batch = 0; batch < BATCHES; batch++) {
        for (int i = 0; i < BATCH; i++)
            in[i] = draw_triple(&state);
        compute_with_hardware_flush(in, &out);
        for (int i = 0; i < BATCH; i++) {
            const struct triple t = in[i];
            compare(&t, "product", assay_f32_multiply_ftz(t.a, t.b), t.a * t.b,
                    out.product[i], &product);
            compare(&t, "sum", assay_f32_add_ftz(t.a, t.c), t.a + t.c, out.sum[i], &sum);
            compare(&t, "fused", assay_f32_fma_ftz(t.a, t.b, t.c), fmaf(t.a, t.b, t.c),
                    out.fused[i], &fused);
        }
    }
    ck_assert_int_gt(product.flushed_from_smallest_normal, 1000);
    ck_assert_int_gt(product.kept, 1000);
    ck_assert_int_gt(product.flushed_subnormal, 1000);
    ck_assert_int_gt(sum.flushed_subnormal, 1000);
    ck_assert_int_gt(fused.flushed_from_smallest_normal, 1000);
    ck_assert_int_gt(fused.kept, 1000);
    ck_assert_int_gt(fused.flushed_subnormal, 1000);
}
END_TEST

START_TEST(results_at_the_edge_of_the_normal_range_are_flushed_after_rounding)
{
    const float below = 1.0f - 0x1p-12f, above = 1.0f + 0x1p-12f,
                nearer = 1.0f + 0x1p-13f;
    const float smallest = 0x1p-126f;
    /* (1 - 2^-24) * 2^-126 rounds up to 2^-126 only as a subnormal: flushed. */
    ck_assert_uint_eq(assay_f32_bits(below * (above * smallest)), 0x00800000);
    ck_assert_uint_eq(assay_f32_bits(assay_f32_multiply_ftz(below, above * smallest)), 0);
    ck_assert_uint_eq(assay_f32_bits(assay_f32_multiply_ftz(-below, above * smallest)),
                      0x80000000);
    ck_assert_uint_eq(assay_f32_bits(assay_f32_fma_ftz(below, above * smallest, 0.0f)),
                      0);
    /* (1 - 2^-26) * 2^-126 rounds to 2^-126 in any case: kept. */
    ck_assert_uint_eq(
        assay_f32_bits(assay_f32_multiply_ftz(1.0f - 0x1p-13f, nearer * smallest)),
        0x00800000);
    ck_assert_uint_eq(
        assay_f32_bits(assay_f32_fma_ftz(1.0f - 0x1p-13f, nearer * smallest, 0.0f)),
        0x00800000);
}
END_TEST

START_TEST(flush_keeps_signs_of_subnormals_and_all_else)
{
    static const uint32_t rows[][2] = {
        { 0x00000001, 0x00000000 }, { 0x807FFFFF, 0x80000000 },
        { 0x00800000, 0x00800000 }, { 0x80000000, 0x80000000 },
        { 0xFF800000, 0xFF800000 }, { 0x7FC00001, 0x7FC00001 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const float flushed = assay_f32_flush(assay_f32_from_bits(rows[i][0]));
        ck_assert_uint_eq(assay_f32_bits(flushed), rows[i][1]);
    }
}
END_TEST

/* a * b + c rounded to odd in double, then to nearest in float: correct, because double
 * has more than two bits to spare (Boldo and Melquiond). */
static float fma_by_rounding_to_odd(float a, float b, float c)
{
    const double product = (double)a * (double)b, addend = (double)c;
    const double sum = product + addend;
    const double back = sum - product;
    const double error = (product - (sum - back)) + (addend - back);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof(bits));
    if (isfinite(sum) && error != 0.0 && !(bits & 1))
        return (float)nextafter(sum, error > 0.0 ? (double)INFINITY : -(double)INFINITY);
    return (float)sum;
}

START_TEST(operations_are_correctly_rounded_and_nans_canonical)
{
    uint64_t state = 2;
    for (int i = 0; i < 3000000; i++) {
        const uint32_t mask = i % 2 ? 0xFFFFFFFF : 0xA1FFFFFF;
        const float a = assay_f32_from_bits(draw(&state) & mask);
        const float b = assay_f32_from_bits(draw(&state) & mask);
        const float c = assay_f32_from_bits(draw(&state) & mask);
        const float product = (float)((double)a * (double)b);
        const float sum = (float)((double)a + (double)b);
        const float fused = fma_by_rounding_to_odd(a, b, c);
        const bool is_right =
            assay_f32_bits(assay_f32_multiply(a, b)) ==
                canonical(assay_f32_bits(product)) &&
            assay_f32_bits(assay_f32_add(a, b)) == canonical(assay_f32_bits(sum)) &&
            assay_f32_bits(assay_f32_fma(a, b, c)) == canonical(assay_f32_bits(fused));
        if (!is_right)
            ck_abort_msg("product, sum or fused operation of %a, %a, %a is wrong",
                         (double)a, (double)b, (double)c);
    }
}
END_TEST

START_TEST(every_invalid_operation_gives_the_canonical_nan)
{
    const float infinity = (float)INFINITY, nan = assay_f32_from_bits(0xFFC00001);
    const float results[] = {
        assay_f32_multiply(infinity, -0.0f),
        assay_f32_multiply_ftz(infinity, 0x1p-127f),
        assay_f32_multiply(nan, 1.0f),
        assay_f32_multiply_ftz(1.0f, nan),
        assay_f32_add(infinity, -infinity),
        assay_f32_add_ftz(-infinity, infinity),
        assay_f32_add(1.0f, nan),
        assay_f32_fma(infinity, 0.0f, nan),
        assay_f32_fma(infinity, 1.0f, -infinity),
        assay_f32_fma_ftz(0x1p-127f, infinity, 1.0f),
        assay_f32_canonical(nan),
    };
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
        ck_assert_uint_eq(assay_f32_bits(results[i]), 0x7FFFFFFF);
}
END_TEST

START_TEST(maximum_prefers_numbers_to_nans_and_plus_zero_to_minus_zero)
{
    static const struct {
        uint32_t a, b, maximum;
    } rows[] = {
        { 0x80000000, 0x00000000, 0x00000000 }, { 0x00000000, 0x80000000, 0x00000000 },
        { 0x80000000, 0x80000000, 0x80000000 }, { 0x3F800000, 0xFFC00001, 0x3F800000 },
        { 0x7F800001, 0xFF800000, 0xFF800000 }, { 0xFFC00001, 0x7FC00002, 0xFFC00001 },
        { 0x7F800001, 0xFFFFFFFF, 0x7F800001 }, { 0x3F800000, 0x40000000, 0x40000000 },
        { 0xBF800000, 0xC0000000, 0xBF800000 }, { 0x7F800000, 0x7F7FFFFF, 0x7F800000 },
        { 0x80000001, 0x80000000, 0x80000000 }, { 0x00000001, 0x80000000, 0x00000001 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const float maximum = assay_f32_maximum(assay_f32_from_bits(rows[i].a),
                                                assay_f32_from_bits(rows[i].b));
        ck_assert_uint_eq(assay_f32_bits(maximum), rows[i].maximum);
    }
}
END_TEST

START_TEST(unsound_floating_point_modes_are_noticed)
{
    static const int roundings[] = { FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    const unsigned mode = _mm_getcsr();
    ck_assert(assay_float_mode_is_sound());
    for (size_t i = 0; i < sizeof(roundings) / sizeof(roundings[0]); i++) {
        fesetround(roundings[i]);
        const bool is_sound = assay_float_mode_is_sound();
        fesetround(FE_TONEAREST);
        ck_assert_msg(!is_sound, "rounding mode %d went unnoticed", roundings[i]);
    }
    static const unsigned flushes[] = { 0x8000, 0x0040 }; /* FTZ, DAZ */
    for (size_t i = 0; i < sizeof(flushes) / sizeof(flushes[0]); i++) {
        _mm_setcsr(mode | flushes[i]);
        const bool is_sound = assay_float_mode_is_sound();
        _mm_setcsr(mode);
        ck_assert_msg(!is_sound, "mode %04x went unnoticed", flushes[i]);
    }
    ck_assert(assay_float_mode_is_sound());
}
END_TEST

int main(void)
{
    return run_tests(
        "scalar", (const TTest *const[]){
                      flushed_operations_equal_the_processors_own_flush_mode,
                      results_at_the_edge_of_the_normal_range_are_flushed_after_rounding,
                      flush_keeps_signs_of_subnormals_and_all_else,
                      operations_are_correctly_rounded_and_nans_canonical,
                      every_invalid_operation_gives_the_canonical_nan,
                      maximum_prefers_numbers_to_nans_and_plus_zero_to_minus_zero,
                      unsound_floating_point_modes_are_noticed,
                      NULL,
                  });
}
