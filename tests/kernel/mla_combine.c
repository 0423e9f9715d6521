/* SPDX-License-Identifier: MIT */
/* The combine model against a warp written out lane by lane, against doubles, and by the
 * properties of single, empty and weightless splits. */
#include "ref/kernel/mla_combine.h"

#include "ref/format/minifloat.h"
#include "ref/unit/special_function.h"
#include "tests/harness.h"

#include <math.h>
#include <string.h>

enum { D = ASSAY_MLA_D_V, MOST = ASSAY_MLA_MAX_PARTS, COMBINATIONS = 32 };

static const struct assay_mla_combine_numerics flashmla = {
    .functions = ASSAY_MLA_FUNCTIONS_HARDWARE,
    .flush = 1,
    .sink_product = ASSAY_MLA_SINK_FUSED,
    .lse_form = ASSAY_MLA_LSE_SEPARATE,
    .zero_weight = ASSAY_MLA_ZERO_WEIGHT_KEPT,
};

static uint64_t state;

static uint32_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 32);
}

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

static float normal_like(void)
{
    return ((float)(draw() >> 8) + (float)(draw() >> 8)) * 0x1p-24f - 1.0f;
}

/* --- the warp, written anew ------------------------------------------------------- */

static uint16_t code_of(enum assay_format format, float value)
{
    return (uint16_t)assay_minifloat_encode_f32(assay_minifloat(format), value,
                                                ASSAY_OVERFLOW_SPECIAL);
}

static bool flushes;

static float flushed(float value)
{
    if (isnan(value)) return float_of(0x7FFFFFFF);
    return flushes && fabsf(value) < 0x1p-126f ? copysignf(0, value) : value;
}

static float power(int functions, float x)
{
    if (functions == ASSAY_MLA_FUNCTIONS_HARDWARE)
        return float_of(assay_ex2_approx_ftz(bits_of(x)));
    return flushed((float)exp2l((long double)flushed(x)));
}

static float logarithm(int functions, float x)
{
    if (functions == ASSAY_MLA_FUNCTIONS_HARDWARE)
        return float_of(assay_lg2_approx_ftz(bits_of(x)));
    return flushed((float)log2l((long double)flushed(x)));
}

static float sum_of(float a, float b)
{
    return flushed(flushed(a) + flushed(b));
}

/* Products and sums here stay clear of 2^-126 from below by rounding: arguments are
 * drawn far from there. */
static float fused(float a, float b, float c)
{
    return flushed(fmaf(flushed(a), flushed(b), flushed(c)));
}

struct warp_row {
    int count;
    float lse[MOST];
    float partial[MOST][D];
    bool has_sink;
    float sink;
};

static void warp(const struct assay_mla_combine_numerics *numerics,
                 const struct warp_row *row, enum assay_format format, uint16_t *out,
                 float *lse, float *lse_base_two)
{
    const float log2_e = float_of(0x3FB8AA3B), ln_2 = float_of(0x3F317218);
    const int functions = numerics->functions;
    float lane_lse[5][32], largest[32], sum[32], before[32];
    flushes = numerics->flush;
    for (int lane = 0; lane < 32; lane++) {
        largest[lane] = -INFINITY;
        for (int i = 0; i < 5; i++) {
            const int split = lane + 32 * i;
            lane_lse[i][lane] = split < row->count ? row->lse[split] : -INFINITY;
            largest[lane] = fmaxf(largest[lane], lane_lse[i][lane]);
        }
    }
    for (int d = 16; d; d /= 2) {
        memcpy(before, largest, sizeof(before));
        for (int lane = 0; lane < 32; lane++)
            largest[lane] = fmaxf(before[lane], before[lane ^ d]);
    }
    for (int lane = 0; lane < 32; lane++) {
        if (isinf(largest[lane])) largest[lane] = 0;
        sum[lane] = 0;
        for (int i = 0; i < 5; i++)
            sum[lane] = sum_of(
                sum[lane], power(functions, sum_of(lane_lse[i][lane], -largest[lane])));
    }
    for (int d = 16; d; d /= 2) {
        memcpy(before, sum, sizeof(before));
        for (int lane = 0; lane < 32; lane++)
            sum[lane] = sum_of(before[lane], before[lane ^ d]);
    }
    for (int lane = 1; lane < 32; lane++)
        ck_assert_uint_eq(bits_of(sum[lane]), bits_of(sum[0]));

    const bool is_empty = sum[0] == 0;
    float total = is_empty ? INFINITY : sum_of(logarithm(functions, sum[0]), largest[0]);
    *lse_base_two = total;
    *lse =
        is_empty ? INFINITY
        : numerics->lse_form == ASSAY_MLA_LSE_SEPARATE
            ? fused(total, ln_2, -0.0f)
            : fused(logarithm(functions, sum[0]), ln_2, fused(largest[0], ln_2, -0.0f));
    if (row->has_sink && is_empty && row->sink != -INFINITY)
        total = fused(row->sink, log2_e, -0.0f);
    else if (row->has_sink && !is_empty) {
        const float x = numerics->sink_product == ASSAY_MLA_SINK_FUSED
                            ? fused(row->sink, log2_e, -total)
                            : sum_of(fused(row->sink, log2_e, -0.0f), -total);
        total = sum_of(total, logarithm(functions, sum_of(1, power(functions, x))));
    }
    for (int column = 0; column < D; column++) {
        float result = 0;
        for (int i = 0; i < row->count; i++) {
            const float weight = power(functions, sum_of(row->lse[i], -total));
            if (weight == 0 && numerics->zero_weight == ASSAY_MLA_ZERO_WEIGHT_SKIPPED)
                continue;
            result = fused(weight, row->partial[i][column], result);
        }
        out[column] = code_of(format, result);
    }
}

/* --- rows ------------------------------------------------------------------------- */

static struct warp_row row; /* of the test in hand */

static void draw_row(int count)
{
    const int spread = (int)(draw() % 3);
    float largest = -INFINITY;
    row.count = count;
    for (int i = 0; i < count; i++) {
        row.lse[i] = normal_like() * (spread == 0 ? 1.0f : spread == 1 ? 20.0f : 160.0f);
        if (draw() % 8 == 0) row.lse[i] = -INFINITY;
        largest = fmaxf(largest, row.lse[i]);
        for (int column = 0; column < D; column++) {
            const float value = normal_like() + 2.0f;
            row.partial[i][column] = column % 16 ? value : value * 0x1p-126f;
            if (row.lse[i] == -INFINITY) row.partial[i][column] = 0;
        }
    }
    row.has_sink = draw() % 2;
    row.sink = normal_like() * 3.0f;
    if (largest > -INFINITY) row.sink += largest * 0.7f; /* comparable */
    if (draw() % 4 == 0) row.sink = draw() % 2 ? INFINITY : -INFINITY;
}

struct combined {
    uint16_t out[D];
    float lse;
};

static struct combined combine(const struct assay_mla_combine_numerics *numerics,
                               bool is_base_two, enum assay_format format)
{
    struct combined result;
    assay_mla_combine_row(numerics, row.count, row.partial[0], D, row.lse, 1,
                          row.has_sink ? &row.sink : NULL, is_base_two, format,
                          result.out, &result.lse);
    return result;
}

static struct assay_mla_combine_numerics combination(int which)
{
    return (struct assay_mla_combine_numerics){
        .functions =
            which & 1 ? ASSAY_MLA_FUNCTIONS_ROUNDED : ASSAY_MLA_FUNCTIONS_HARDWARE,
        .flush = !(which & 2),
        .sink_product = which & 4 ? ASSAY_MLA_SINK_SEPARATE : ASSAY_MLA_SINK_FUSED,
        .lse_form = which & 8 ? ASSAY_MLA_LSE_FUSED : ASSAY_MLA_LSE_SEPARATE,
        .zero_weight =
            which & 16 ? ASSAY_MLA_ZERO_WEIGHT_SKIPPED : ASSAY_MLA_ZERO_WEIGHT_KEPT,
    };
}

START_TEST(every_knob_equals_a_warp_written_out_lane_by_lane)
{
    static const int counts[] = { 1, 2, 3, 31, 32, 33, 64, 65, 100, 160 };
    state = 1;
    for (int i = 0; i < 640; i++) {
        const struct assay_mla_combine_numerics numerics = combination(i % COMBINATIONS);
        const enum assay_format format = draw() % 2 ? ASSAY_BF16 : ASSAY_F16;
        uint16_t out[D];
        float lse, lse_base_two;
        draw_row(draw() % 2 ? 1 + (int)(draw() % 12) : counts[draw() % 10]);
        warp(&numerics, &row, format, out, &lse, &lse_base_two);
        const struct combined natural = combine(&numerics, false, format);
        const struct combined base_two = combine(&numerics, true, format);
        if (memcmp(natural.out, out, sizeof(out)) != 0 ||
            memcmp(base_two.out, out, sizeof(out)) != 0)
            ck_abort_msg("row %d", i);
        ck_assert_msg(bits_of(natural.lse) == bits_of(lse), "row %d: %a %a", i,
                      (double)natural.lse, (double)lse);
        ck_assert_uint_eq(bits_of(base_two.lse), bits_of(lse_base_two));
    }
}
END_TEST

/* 9 units of 2^-24 a weight and 160 roundings of the sum are far below 2^-14. */
START_TEST(results_are_near_those_of_doubles)
{
    state = 2;
    for (int i = 0; i < 300; i++) {
        draw_row(2 + (int)(draw() % 40));
        const struct combined result = combine(&flashmla, false, ASSAY_F16);
        double sum = 0, largest = -1e9;
        for (int j = 0; j < row.count; j++)
            largest = fmax(largest, (double)row.lse[j]);
        for (int j = 0; j < row.count; j++)
            sum += exp2((double)row.lse[j] - largest);
        if (sum == 0) continue;
        const double lse = (largest + log2(sum)) * log(2);
        ck_assert_double_eq_tol((double)result.lse, lse, 4e-7 * (fabs(lse) + 1));
        const double share = row.has_sink ? 1 / (1 + exp((double)row.sink - lse)) : 1;
        for (int column = 0; column < D; column++) {
            double mean = 0;
            for (int j = 0; j < row.count; j++)
                mean += exp2((double)row.lse[j] - largest) / sum *
                        (double)row.partial[j][column];
            const uint16_t bits = result.out[column];
            const double value = ldexp((bits & 0x3FF) | (bits >> 10 ? 0x400 : 0),
                                       (bits >> 10 ? bits >> 10 : 1) - 25);
            if (fabs(value - mean * share) > mean * share * 0x1p-10 + 0x1p-24)
                ck_abort_msg("row %d, column %d: %g for %g", i, column, value,
                             mean * share);
        }
    }
}
END_TEST

START_TEST(a_single_split_is_rounded_once_whatever_its_lse)
{
    state = 3;
    for (int which = 0; which < COMBINATIONS; which++) {
        const struct assay_mla_combine_numerics numerics = combination(which);
        for (int i = 0; i < 200; i++) {
            draw_row(1);
            row.has_sink = false;
            if (row.lse[0] == -INFINITY) continue;
            for (int column = 0; column < D; column++) {
                const uint32_t bits = draw();
                const uint32_t exponent = bits >> 23 & 0xFF;
                row.partial[0][column] =
                    float_of(exponent == 0 ? bits | 0x00800000 : bits);
            }
            const struct combined result = combine(&numerics, true, ASSAY_BF16);
            ck_assert_uint_eq(bits_of(result.lse), bits_of(row.lse[0]));
            for (int column = 0; column < D; column++)
                if (result.out[column] != code_of(ASSAY_BF16, row.partial[0][column]))
                    ck_abort_msg("%08x", bits_of(row.partial[0][column]));
        }
    }
}
END_TEST

static void set_row(int count, float lse, float partial)
{
    row.count = count;
    row.has_sink = false;
    for (int i = 0; i < count; i++) {
        row.lse[i] = lse;
        for (int column = 0; column < D; column++)
            row.partial[i][column] = partial;
    }
}

START_TEST(a_nan_without_weight_leaks_unless_such_splits_are_skipped)
{
    for (int which = 0; which < COMBINATIONS; which++) {
        const struct assay_mla_combine_numerics numerics = combination(which);
        set_row(3, 1.0f, 5.0f);
        row.lse[1] = -INFINITY;
        row.partial[1][7] = NAN;
        row.partial[1][8] = INFINITY;
        const struct combined result = combine(&numerics, false, ASSAY_BF16);
        const bool is_kept = numerics.zero_weight == ASSAY_MLA_ZERO_WEIGHT_KEPT;
        for (int column = 0; column < D; column++)
            ck_assert_uint_eq(result.out[column],
                              is_kept && (column == 7 || column == 8) ? 0x7FFF : 0x40A0);
        ck_assert(result.lse > 1.38f && result.lse < 1.39f); /* ln 4 */
    }
}
END_TEST

START_TEST(an_infinite_sink_takes_everything_or_nothing)
{
    state = 4;
    for (int i = 0; i < 200; i++) {
        const struct assay_mla_combine_numerics numerics = combination(i % COMBINATIONS);
        draw_row(1 + (int)(draw() % 40));
        row.lse[0] = 1.0f;
        row.has_sink = false;
        const struct combined without = combine(&numerics, false, ASSAY_BF16);
        row.has_sink = true;
        row.sink = -INFINITY;
        const struct combined nothing = combine(&numerics, false, ASSAY_BF16);
        row.sink = INFINITY;
        const struct combined everything = combine(&numerics, false, ASSAY_BF16);
        ck_assert_mem_eq(nothing.out, without.out, sizeof(without.out));
        ck_assert_uint_eq(bits_of(nothing.lse), bits_of(without.lse));
        ck_assert_uint_eq(bits_of(everything.lse), bits_of(without.lse));
        for (int column = 0; column < D; column++)
            ck_assert_uint_eq(everything.out[column], 0);
    }
}
END_TEST

START_TEST(splits_without_keys_give_0_and_an_infinite_lse_whatever_the_sink)
{
    static const float sinks[] = { 0.0f, 3.0f, -100.0f, INFINITY, -INFINITY };
    for (int which = 0; which < COMBINATIONS; which++)
        for (int i = 0; i < 6; i++) {
            const struct assay_mla_combine_numerics numerics = combination(which);
            set_row(5, -INFINITY, 0.0f);
            row.has_sink = i > 0;
            row.sink = sinks[i ? i - 1 : 0];
            const struct combined result = combine(&numerics, false, ASSAY_BF16);
            ck_assert_uint_eq(bits_of(result.lse), 0x7F800000);
            for (int column = 0; column < D; column++)
                ck_assert_uint_eq(result.out[column], 0);
        }
}
END_TEST

/* 2^k splits of one lse weigh 2^-k each: the mean of small integers is exact. */
START_TEST(a_power_of_two_of_equal_splits_gives_the_exact_mean)
{
    state = 5;
    for (int k = 0; k <= 7; k++)
        for (int which = 0; which < COMBINATIONS; which++)
            for (int lse = -8; lse <= 8; lse += 4) {
                const struct assay_mla_combine_numerics numerics = combination(which);
                set_row(1 << k, (float)lse, 0.0f);
                row.has_sink = which & 1;
                row.sink = -INFINITY;
                int sum[D] = { 0 };
                for (int i = 0; i < row.count; i++)
                    for (int column = 0; column < D; column++) {
                        const int value = (int)(draw() % 17) - 8;
                        sum[column] += value;
                        row.partial[i][column] = (float)value;
                    }
                const struct combined result = combine(&numerics, true, ASSAY_BF16);
                if (result.lse != (float)(lse + k)) ck_abort_msg("lse, k = %d", k);
                for (int column = 0; column < D; column++) {
                    const float mean = (float)sum[column] / (float)(1 << k);
                    if (result.out[column] != code_of(ASSAY_BF16, mean))
                        ck_abort_msg("k = %d, column %d", k, column);
                }
            }
}
END_TEST

/* --- the operation ---------------------------------------------------------------- */

enum { B = 4, S_Q = 2, H_Q = 3, SPLITS = 9, POISON = 0xDB };

static float oaccum[SPLITS][S_Q][H_Q + 1][D], lseaccum[SPLITS][S_Q][H_Q];
static uint16_t out[B][S_Q][H_Q][D + 8];
static float lse[B][H_Q][S_Q], attn_sink[H_Q];
static int32_t num_splits[B + 1];

static struct assay_tensors operation_tensors(bool has_sink)
{
    struct assay_tensors tensors = {
        .count = has_sink ? 6 : 5,
        .item = { { "oaccum",
                    ASSAY_F32,
                    false,
                    4,
                    { SPLITS, S_Q, H_Q, D },
                    { S_Q * (H_Q + 1) * D, (H_Q + 1) * D, D, 1 },
                    oaccum },
                  { "lseaccum",
                    ASSAY_F32,
                    false,
                    3,
                    { SPLITS, S_Q, H_Q },
                    { S_Q * H_Q, H_Q, 1 },
                    lseaccum },
                  { "num_splits", ASSAY_I32, false, 1, { B + 1 }, { 1 }, num_splits },
                  { "out",
                    ASSAY_BF16,
                    true,
                    4,
                    { B, S_Q, H_Q, D },
                    { S_Q * H_Q * (D + 8), H_Q * (D + 8), D + 8, 1 },
                    out },
                  { "lse",
                    ASSAY_F32,
                    true,
                    3,
                    { B, H_Q, S_Q },
                    { H_Q * S_Q, S_Q, 1 },
                    lse },
                  { "attn_sink", ASSAY_F32, false, 1, { H_Q }, { 1 }, attn_sink } },
    };
    return tensors;
}

static const struct assay_mla_combine_problem problem = {
    .b = B, .s_q = S_Q, .h_q = H_Q, .splits = SPLITS, .format = ASSAY_BF16
};

static void run_operation(bool has_sink)
{
    const struct assay_tensors tensors = operation_tensors(has_sink);
    memset(out, POISON, sizeof(out));
    memset(lse, POISON, sizeof(lse));
    for (int64_t part = 0; part < assay_mla_combine_parts(&problem); part++)
        assay_mla_combine_model(&problem, &flashmla, &tensors, part);
}

static bool is_poison(const void *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const unsigned char *)memory)[i] != POISON) return false;
    return true;
}

static void fill_operation(void)
{
    for (int i = 0; i < SPLITS; i++)
        for (int token = 0; token < S_Q; token++)
            for (int head = 0; head < H_Q; head++) {
                lseaccum[i][token][head] = 4.0f * normal_like();
                for (int column = 0; column < D; column++)
                    oaccum[i][token][head][column] = normal_like();
            }
    for (int head = 0; head < H_Q; head++)
        attn_sink[head] = normal_like();
}

START_TEST(every_row_gets_its_own_splits_and_single_splits_are_left_alone)
{
    static const int32_t ends[] = { 0, 2, 3, 8, 9 };
    state = 6;
    fill_operation();
    memcpy(num_splits, ends, sizeof(ends));
    for (int has_sink = 0; has_sink < 2; has_sink++) {
        run_operation(has_sink);
        for (int i = 0; i < B; i++) {
            if (ends[i + 1] - ends[i] == 1) {
                ck_assert(is_poison(out[i], sizeof(out[i])));
                ck_assert(is_poison(lse[i], sizeof(lse[i])));
                continue;
            }
            for (int token = 0; token < S_Q; token++)
                for (int head = 0; head < H_Q; head++) {
                    row.count = ends[i + 1] - ends[i];
                    row.has_sink = has_sink;
                    row.sink = attn_sink[head];
                    for (int at = 0; at < row.count; at++) {
                        row.lse[at] = lseaccum[ends[i] + at][token][head];
                        memcpy(row.partial[at], oaccum[ends[i] + at][token][head],
                               sizeof(row.partial[at]));
                    }
                    const struct combined one = combine(&flashmla, false, ASSAY_BF16);
                    ck_assert_mem_eq(out[i][token][head], one.out, sizeof(one.out));
                    ck_assert_uint_eq(bits_of(lse[i][head][token]), bits_of(one.lse));
                }
        }
    }
}
END_TEST

START_TEST(num_splits_that_cannot_be_leave_the_outputs_alone)
{
    static const int32_t ends[][B + 1] = {
        { 0, 0, 0, 0, 0 },           { 9, 7, 5, 3, 1 },
        { 0, 10, 9, 10, 9 },         { -2, -1, INT32_MIN, INT32_MAX, INT32_MIN },
        { -5, 3, -1, 8, INT32_MIN },
    };
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        memcpy(num_splits, ends[i], sizeof(num_splits));
        run_operation(true);
        ck_assert_msg(is_poison(out, sizeof(out)) && is_poison(lse, sizeof(lse)),
                      "row %zu", i);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_knob_equals_a_warp_written_out_lane_by_lane,
        results_are_near_those_of_doubles,
        a_single_split_is_rounded_once_whatever_its_lse,
        a_nan_without_weight_leaks_unless_such_splits_are_skipped,
        an_infinite_sink_takes_everything_or_nothing,
        splits_without_keys_give_0_and_an_infinite_lse_whatever_the_sink,
        a_power_of_two_of_equal_splits_gives_the_exact_mean,
        every_row_gets_its_own_splits_and_single_splits_are_left_alone,
        num_splits_that_cannot_be_leave_the_outputs_alone,
        NULL,
    };
    return run_tests("mla_combine", tests);
}
