/* SPDX-License-Identifier: MIT */
/* The quantiser model against arithmetic written anew, published right answers, and every
 * significand. */
#include "ref/kernel/quantise.h"

#include "ref/format/minifloat.h"
#include "tests/harness.h"

#include <math.h>
#include <string.h>

enum { LARGEST_M = 300, LARGEST_K = 1300, GUARD = 0xA5 };

static const struct assay_quantise_numerics deepgemm = {
    .stage = { assay_quantise_amax, assay_quantise_scale, assay_quantise_payload },
};

static struct fixture {
    struct assay_quantise_problem problem;
    struct assay_tensors tensors;
    float x[LARGEST_M * LARGEST_K];
    uint16_t half[LARGEST_M * LARGEST_K]; /* x as bf16 */
    uint8_t q[LARGEST_M * LARGEST_K];
    float sf[LARGEST_M * LARGEST_K / 32 + LARGEST_M];
} fixture;

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint64_t state;

static uint32_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 32);
}

static void add_tensor(const char *name, enum assay_format format, int64_t rows,
                       int64_t columns, int64_t stride, void *data)
{
    fixture.tensors.item[fixture.tensors.count++] = (struct assay_tensor){
        .name = name,
        .format = format,
        .rank = 2,
        .shape = { rows, columns },
        .stride = { stride, 1 },
        .data = data,
    };
}

/* Rows of x and q lie @x_stride and @q_stride apart, with NaN and guards between. */
static void shape(const struct assay_quantise_problem *problem, enum assay_format format,
                  int64_t x_stride, int64_t q_stride)
{
    const int64_t m = problem->m, k = problem->k;
    const int64_t rows = (m + problem->gran_m - 1) / problem->gran_m;
    const int64_t columns = (k + problem->gran_k - 1) / problem->gran_k;
    fixture.problem = *problem;
    fixture.tensors.count = 0;
    add_tensor("x", format, m, k, x_stride,
               format == ASSAY_F32 ? (void *)fixture.x : (void *)fixture.half);
    add_tensor("q", ASSAY_E4M3, m, k, q_stride, fixture.q);
    add_tensor("sf", ASSAY_F32, rows, columns, columns, fixture.sf);
    memset(fixture.x, 0xFF, sizeof(fixture.x));
    memset(fixture.half, 0xFF, sizeof(fixture.half));
    memset(fixture.q, GUARD, sizeof(fixture.q));
}

static void set_x(int64_t row, int64_t column, float value)
{
    const struct assay_tensor *const x = &fixture.tensors.item[0];
    const int64_t element = row * x->stride[0] + column;
    if (x->format == ASSAY_F32) fixture.x[element] = value;
    fixture.half[element] = (uint16_t)(bits_of(value) >> 16);
}

static float x_at(int64_t row, int64_t column)
{
    const struct assay_tensor *const x = &fixture.tensors.item[0];
    const int64_t element = row * x->stride[0] + column;
    return x->format == ASSAY_F32 ? fixture.x[element]
                                  : float_of((uint32_t)fixture.half[element] << 16);
}

static void run(const struct assay_quantise_numerics *numerics)
{
    for (int64_t part = 0; part < assay_quantise_parts(&fixture.problem); part++)
        assay_quantise_model(&fixture.problem, numerics, &fixture.tensors, part);
}

/* One group of @count values. */
static void run_group(const struct assay_quantise_numerics *numerics,
                      bool has_power_of_two_scale, const float *values, int64_t count)
{
    const struct assay_quantise_problem problem = { 1, count, 1, 128,
                                                    has_power_of_two_scale };
    shape(&problem, ASSAY_F32, count, count);
    for (int64_t i = 0; i < count; i++)
        set_x(0, i, values[i]);
    run(numerics);
}

/* Code of a float by search: nearest, ties to the even code, saturating. */
static uint8_t nearest_code(float value)
{
    static double values[127];
    if (values[1] == 0)
        for (int i = 0; i < 127; i++)
            values[i] = i < 8 ? i * 0x1p-9 : ldexp(8 + i % 8, i / 8 - 10);
    if (isnan(value)) return 0x7F;
    const double magnitude = fabs((double)value);
    int low = 0, high = 126;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (values[middle] <= magnitude)
            low = middle;
        else
            high = middle;
    }
    const double below = magnitude - values[low], above = values[high] - magnitude;
    const int code = below < above || (below == above && low % 2 == 0) ? low : high;
    return (uint8_t)(code | (signbit(value) ? 0x80 : 0));
}

/* Exponent of the smallest power of two not below the float. */
static int ceiling(float value)
{
    int exponent = -149;
    while (ldexp(1, exponent) < (double)value)
        exponent++;
    return exponent;
}

static int clamped(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

/* Float log2 and ceil is wrong next to powers (sglang PR 31210), frexp at powers
 * (onnxruntime PR 32122). */
START_TEST(both_ceilings_are_right_within_4_units_of_every_power_of_two)
{
    for (int exponent = -149; exponent <= 127; exponent++)
        for (int unit = -4; unit <= 4; unit++) {
            const int32_t bits = (int32_t)bits_of(ldexpf(1, exponent)) + unit;
            if (bits < 0) continue;
            const float value = float_of((uint32_t)bits);
            const bool is_infinite = isinf(value);
            const int right = is_infinite ? 128 : ceiling(value);
            for (int sign = 0; sign < 2; sign++) {
                const float signed_value = sign ? -value : value;
                ck_assert_uint_eq(assay_deepgemm_ceil(signed_value),
                                  (uint32_t)(clamped(right, -126, 127) + 127));
                ck_assert_uint_eq(assay_ue8m0_encode(signed_value),
                                  (uint32_t)(clamped(right, -127, 127) + 127));
            }
        }
    ck_assert_uint_eq(assay_deepgemm_ceil(float_of(0x3A800001)), 127 - 9);
    ck_assert_uint_eq(assay_deepgemm_ceil(float_of(0x41800001)), 127 + 5);
}
END_TEST

START_TEST(ceilings_differ_below_2_to_the_minus_126_and_for_nan)
{
    static const struct {
        uint32_t bits, deepgemm, cuda;
    } rows[] = {
        { 0x00000000, 1, 0 },     { 0x80000000, 1, 0 },     { 0x00000001, 1, 0 },
        { 0x00400000, 1, 0 },     { 0x00400001, 1, 1 },     { 0x007FFFFF, 1, 1 },
        { 0x00800000, 1, 1 },     { 0x00800001, 2, 2 },     { 0x7F000000, 254, 254 },
        { 0x7F000001, 254, 254 }, { 0x7F800000, 254, 254 }, { 0xFF800000, 254, 254 },
        { 0x7F800001, 254, 255 }, { 0x7FC00000, 254, 255 }, { 0xFFFFFFFF, 254, 255 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const float value = float_of(rows[i].bits);
        ck_assert_uint_eq(assay_deepgemm_ceil(value), rows[i].deepgemm);
        ck_assert_uint_eq(assay_ue8m0_encode(value), rows[i].cuda);
    }
}
END_TEST

static struct assay_quantise_block scaled(const struct assay_quantise_numerics *numerics,
                                          bool has_power_of_two_scale, float amax)
{
    static struct assay_quantise_problem problem;
    problem.has_power_of_two_scale = has_power_of_two_scale;
    struct assay_quantise_block block = { .problem = &problem,
                                          .numerics = numerics,
                                          .amax = amax };
    assay_quantise_scale(&block);
    return block;
}

/* Whichever way amax is divided: the smallest 2^e with 448 * 2^e >= amax. A quotient
 * rounded from double is rounded once, as 53 >= 2 * 24 + 2. */
START_TEST(scales_of_every_significand_are_right)
{
    struct assay_quantise_numerics numerics = deepgemm;
    static const int exponents[] = { 0, -13, 8, 127 };
    const float inverse = (float)(1 / 448.0);
    numerics.order = ASSAY_QUANTISE_BY_RAW_SCALE; /* shows the raw scale as well */
    for (size_t i = 0; i < sizeof(exponents) / sizeof(exponents[0]); i++) {
        const uint32_t exponent = (uint32_t)(exponents[i] + 127);
        const float low = ldexpf(1, exponents[i] - 8), high = 2 * low;
        for (uint32_t mantissa = 0; mantissa < 1u << 23; mantissa += i ? 61 : 1) {
            const float amax = float_of(exponent << 23 | mantissa);
            const float power = mantissa <= 3u << 21 ? low : high;
            for (int times = 0; times < 2; times++) {
                numerics.reciprocal = times;
                const float raw = times ? (float)((double)amax * (double)inverse)
                                        : (float)((double)amax / 448);
                const struct assay_quantise_block block = scaled(&numerics, true, amax);
                if (block.scale != power || block.divisor != raw)
                    ck_abort_msg("amax 0x%08x", bits_of(amax));
            }
        }
    }
}
END_TEST

/* Published: 994 of 1792 sampled bf16 maxima, 71 of 128 in each binade. */
START_TEST(multiplying_by_the_reciprocal_changes_71_of_128_scales)
{
    struct assay_quantise_numerics numerics = deepgemm;
    numerics.reciprocal = 1;
    for (int exponent = -13; exponent < 127; exponent++) {
        int differ = 0;
        for (int mantissa = 0; mantissa < 128; mantissa++) {
            const float amax = ldexpf(1 + (float)mantissa / 128, exponent);
            differ += scaled(&numerics, false, amax).scale !=
                      scaled(&deepgemm, false, amax).scale;
        }
        ck_assert_int_eq(differ, 71);
        const float power = ldexpf(1, exponent - 9);
        ck_assert(scaled(&numerics, false, 448 * power).scale == power);
    }
}
END_TEST

/* transformers issue 47030: payload by the raw scale, then the scale is rounded up. */
START_TEST(scale_is_rounded_up_before_the_payload_is_divided_by_it)
{
    float values[128];
    for (int i = 0; i < 128; i++)
        values[i] = 300;
    run_group(&deepgemm, true, values, 128);
    ck_assert(fixture.sf[0] == 1.0f);
    ck_assert_uint_eq(fixture.q[0], 0x79); /* 288 */
    struct assay_quantise_numerics faulty = deepgemm;
    faulty.order = ASSAY_QUANTISE_BY_RAW_SCALE;
    run_group(&faulty, true, values, 128);
    ck_assert(fixture.sf[0] == 1.0f);
    ck_assert_uint_eq(fixture.q[0], 0x7E); /* 448 */
}
END_TEST

/* onnxruntime PR 32122 doubled it. */
START_TEST(amax_of_448_has_scale_1)
{
    const float values[3] = { -448, 1, 17 };
    for (int is_power = 0; is_power < 2; is_power++)
        for (int ceil = 0; ceil < 2; ceil++) {
            struct assay_quantise_numerics numerics = deepgemm;
            numerics.ceil = ceil;
            run_group(&numerics, is_power, values, 3);
            ck_assert(fixture.sf[0] == 1.0f);
            ck_assert_uint_eq(fixture.q[0], 0xFE);
            ck_assert_uint_eq(fixture.q[1], 0x38);
            ck_assert_uint_eq(fixture.q[2], 0x58); /* a tie: 16 */
        }
}
END_TEST

/* flashinfer PR 4023: the inverse of code 254 was 0, and infinity times that NaN. */
START_TEST(infinity_saturates_when_the_scale_is_a_power_of_two)
{
    const float values[5] = { INFINITY, -INFINITY, 1, 0x1p127f, NAN };
    run_group(&deepgemm, true, values, 4);
    ck_assert(fixture.sf[0] == 0x1p127f);
    ck_assert_uint_eq(fixture.q[0], 0x7E);
    ck_assert_uint_eq(fixture.q[1], 0xFE);
    ck_assert_uint_eq(fixture.q[2], 0x00);
    ck_assert_uint_eq(fixture.q[3], 0x38);

    struct assay_quantise_numerics numerics = deepgemm;
    numerics.overflow = ASSAY_E4M3_OVERFLOW_IS_NAN;
    run_group(&numerics, true, values, 4);
    ck_assert_uint_eq(fixture.q[0] & 0x7F, 0x7F);
    ck_assert_uint_eq(fixture.q[3], 0x38);
}
END_TEST

START_TEST(infinity_with_an_f32_scale_leaves_zeros_and_nan)
{
    const float values[3] = { INFINITY, -5, 5 };
    run_group(&deepgemm, false, values, 3);
    ck_assert(isinf(fixture.sf[0]));
    ck_assert_uint_eq(fixture.q[0], 0x7F);
    ck_assert_uint_eq(fixture.q[1], 0x80);
    ck_assert_uint_eq(fixture.q[2], 0x00);
}
END_TEST

START_TEST(nan_takes_its_block_along_or_only_itself)
{
    const float values[3] = { 448, float_of(0xFFC00001), 2 };
    struct assay_quantise_numerics numerics = deepgemm;
    for (int is_power = 0; is_power < 2; is_power++) {
        numerics.nan = ASSAY_AMAX_IGNORES_NAN;
        run_group(&numerics, is_power, values, 3);
        ck_assert(fixture.sf[0] == 1.0f);
        ck_assert_uint_eq(fixture.q[0], 0x7E);
        ck_assert_uint_eq(fixture.q[1], 0x7F);
        ck_assert_uint_eq(fixture.q[2], 0x40);
        numerics.nan = ASSAY_AMAX_PROPAGATES_NAN;
        for (int ceil = 0; ceil < 2; ceil++) {
            numerics.ceil = ceil;
            run_group(&numerics, is_power, values, 3);
            const bool is_largest = is_power && ceil == ASSAY_CEIL_DEEPGEMM;
            ck_assert_uint_eq(bits_of(fixture.sf[0]),
                              is_largest ? 0x7F000000 : 0x7FFFFFFF);
            ck_assert_uint_eq(fixture.q[0], is_largest ? 0x00 : 0x7F);
            ck_assert_uint_eq(fixture.q[1], 0x7F);
        }
    }
}
END_TEST

/* No floor gives 0 / 0; a floor on the scale instead of amax another scale. */
START_TEST(amax_is_at_least_1e_minus_4)
{
    static const float tiny[] = { 0.0f, -0.0f, 0x1p-149f, 1e-38f, 9.99e-5f };
    for (int i = 0; i < 5; i++) {
        run_group(&deepgemm, false, &tiny[i], 1);
        ck_assert(fixture.sf[0] == (float)((double)1e-4f / 448.0));
        ck_assert_uint_eq(fixture.q[0], nearest_code(tiny[i] * (1.0f / fixture.sf[0])));
        run_group(&deepgemm, true, &tiny[i], 1);
        ck_assert(fixture.sf[0] == 0x1p-22f); /* 1e-4 / 448 is 0.94 of it */
    }
    ck_assert_uint_eq(fixture.q[0], nearest_code(9.99e-5f * 0x1p22f));
}
END_TEST

START_TEST(largest_amax_does_not_overflow)
{
    const float values[2] = { 0x1.fffffep127f, -0x1p120f };
    run_group(&deepgemm, false, values, 2);
    ck_assert(fixture.sf[0] == (float)(0x1.fffffep127 / 448));
    ck_assert_uint_eq(fixture.q[0], 0x7E);
    run_group(&deepgemm, true, values, 2);
    ck_assert(fixture.sf[0] == 0x1p120f);
    ck_assert_uint_eq(fixture.q[0], 0x78);
    ck_assert_uint_eq(fixture.q[1], 0xB8);
}
END_TEST

/* With 448 in each group the scale is 1 and the payload is x itself. */
START_TEST(every_bf16_becomes_its_nearest_code)
{
    const struct assay_quantise_problem problem = { 128, 128, 1, 32, false };
    for (uint32_t first = 0; first < 1 << 16; first += 124 * 128) {
        shape(&problem, ASSAY_BF16, 128, 128);
        for (uint32_t i = 0; i < 128 * 128; i++) {
            const uint32_t next = first + i / 32 * 31 + i % 32 - 1;
            const float value = float_of(next << 16);
            const bool fits = i % 32 && next < 1 << 16 && fabsf(value) <= 448;
            set_x(i / 128, i % 128, fits ? value : 448);
        }
        run(&deepgemm);
        for (int64_t i = 0; i < 128 * 128; i++) {
            ck_assert(fixture.sf[i / 32] == 1.0f);
            ck_assert_uint_eq(fixture.q[i], nearest_code(x_at(i / 128, i % 128)));
        }
    }
}
END_TEST

struct box {
    int64_t row0, row_end, column0, column_end;
};

static struct box block_at(int64_t i, int64_t j)
{
    const struct assay_quantise_problem *const p = &fixture.problem;
    const int64_t row_end = (i + 1) * p->gran_m, column_end = (j + 1) * p->gran_k;
    return (struct box){ i * p->gran_m, row_end < p->m ? row_end : p->m, j * p->gran_k,
                         column_end < p->k ? column_end : p->k };
}

static float plain_scale(const struct box *box, bool is_reciprocal)
{
    float amax = 1e-4f;
    for (int64_t row = box->row0; row < box->row_end; row++)
        for (int64_t column = box->column0; column < box->column_end; column++)
            amax = fmaxf(amax, fabsf(x_at(row, column)));
    const float factor = 1.0f / 448.0f;
    const float sf = is_reciprocal ? amax * factor : amax / 448.0f;
    return fixture.problem.has_power_of_two_scale ? ldexpf(1, ceiling(sf)) : sf;
}

/* The whole function once more, in plain float arithmetic. */
static void compare_with_plain_arithmetic(bool is_reciprocal, bool is_divided)
{
    const struct assay_tensor *const q = &fixture.tensors.item[1], *const sf = q + 1;
    for (int64_t i = 0; i < sf->shape[0]; i++)
        for (int64_t j = 0; j < sf->shape[1]; j++) {
            const struct box box = block_at(i, j);
            const float scale = plain_scale(&box, is_reciprocal), inverse = 1.0f / scale;
            ck_assert(fixture.sf[i * sf->shape[1] + j] == scale);
            for (int64_t row = box.row0; row < box.row_end; row++)
                for (int64_t column = box.column0; column < box.column_end; column++) {
                    const float x = x_at(row, column);
                    const float value = is_divided ? x / scale : x * inverse;
                    if (fixture.q[row * q->stride[0] + column] != nearest_code(value))
                        ck_abort_msg("[%d, %d]", (int)row, (int)column);
                }
        }
}

static void check_guards(void)
{
    const struct assay_tensor *const q = &fixture.tensors.item[1];
    for (int64_t i = 0; i < q->shape[0] * q->stride[0]; i++)
        if (i % q->stride[0] >= q->shape[1]) ck_assert_uint_eq(fixture.q[i], GUARD);
}

START_TEST(tails_strides_and_every_granularity_equal_plain_arithmetic)
{
    static const struct {
        int64_t m, k, gran_m, gran_k, x_stride, q_stride;
    } rows[] = {
        { 1, 1, 1, 128, 1, 1 },           { 5, 129, 1, 128, 131, 133 },
        { 129, 31, 1, 32, 40, 31 },       { 37, 1100, 1, 128, 1100, 1200 },
        { 9, 130, 128, 128, 135, 131 },   { 131, 33, 32, 32, 33, 35 },
        { 130, 129, 128, 128, 129, 129 },
    };
    struct assay_quantise_numerics numerics = deepgemm;
    for (int i = 0; i < 7; i++)
        for (int flags = 0; flags < 16; flags++) {
            const struct assay_quantise_problem problem = { rows[i].m, rows[i].k,
                                                            rows[i].gran_m,
                                                            rows[i].gran_k, flags & 1 };
            shape(&problem, flags & 2 ? ASSAY_F32 : ASSAY_BF16, rows[i].x_stride,
                  rows[i].q_stride);
            state = (uint64_t)(i * 16 + flags);
            for (int64_t row = 0; row < problem.m; row++)
                for (int64_t column = 0; column < problem.k; column++) {
                    const float value = ldexpf((float)(int32_t)draw(), -38);
                    set_x(row, column, ldexpf(value, -(int)(draw() >> 28)));
                }
            numerics.reciprocal = flags >> 2 & 1;
            numerics.payload = flags >> 3;
            run(&numerics);
            compare_with_plain_arithmetic(numerics.reciprocal, numerics.payload);
            check_guards();
        }
}
END_TEST

static void halve_the_scale(struct assay_quantise_block *block)
{
    assay_quantise_scale(block);
    block->divisor /= 2;
}

START_TEST(a_replaced_stage_is_the_one_that_runs)
{
    const float values[2] = { 448, 1 };
    struct assay_quantise_numerics numerics = deepgemm;
    numerics.stage.scale = halve_the_scale;
    run_group(&numerics, true, values, 2);
    ck_assert(fixture.sf[0] == 1.0f);
    ck_assert_uint_eq(fixture.q[0], 0x7E);
    ck_assert_uint_eq(fixture.q[1], 0x40);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        both_ceilings_are_right_within_4_units_of_every_power_of_two,
        ceilings_differ_below_2_to_the_minus_126_and_for_nan,
        scales_of_every_significand_are_right,
        multiplying_by_the_reciprocal_changes_71_of_128_scales,
        scale_is_rounded_up_before_the_payload_is_divided_by_it,
        amax_of_448_has_scale_1,
        infinity_saturates_when_the_scale_is_a_power_of_two,
        infinity_with_an_f32_scale_leaves_zeros_and_nan,
        nan_takes_its_block_along_or_only_itself,
        amax_is_at_least_1e_minus_4,
        largest_amax_does_not_overflow,
        every_bf16_becomes_its_nearest_code,
        tails_strides_and_every_granularity_equal_plain_arithmetic,
        a_replaced_stage_is_the_one_that_runs,
        NULL,
    };
    return run_tests("quantise", tests);
}
