/* SPDX-License-Identifier: MIT */
/* The bound of fp8_gemm_nt against simulated kernels of every class on random inputs. */
#include "tests/verify/simulated_gemm.h"

#include <stdio.h>

enum contents {
    NORMAL,
    POSITIVE,
    WIDE,
    CANCELLING,
    SUBNORMAL,
    OUTLIERS,
    SPARSE,
    SPECIAL,
    SMALL_INTEGERS,
    CONTENTS
};
enum scales { POWERS_OF_TWO, UNIFORM, WILD, ANYTHING, SCALES, SIGNS };

static enum contents contents;
static enum scales scales;

static uint8_t finite_code(enum assay_format format)
{
    const uint8_t code = (uint8_t)(draw() >> 24);
    return isfinite(decoded(format, code).value) ? code : code & 0x87;
}

static uint8_t drawn_code(enum assay_format format, uint8_t before, bool is_a,
                          bool is_odd)
{
    const double unit = (double)draw() * 0x1p-32;
    const double normal = 16 * (unit + (double)draw() * 0x1p-32 - 1);
    switch (contents) {
    case POSITIVE: return nearest_code(format, 448 * unit);
    case WIDE: return finite_code(format);
    case SUBNORMAL: return (uint8_t)(draw() >> 24) & (format == ASSAY_E4M3 ? 0x87 : 0x83);
    case OUTLIERS:
        return nearest_code(format, below(32) ? unit / 8 - 0.03 : 300 * normal);
    case SPARSE: return below(24) ? 0 : finite_code(format);
    case SPECIAL:
        return below(300) ? nearest_code(format, normal) : (uint8_t)(draw() >> 24);
    case SMALL_INTEGERS: return nearest_code(format, (double)(below(7) - 3));
    case CANCELLING:
        if (is_odd && below(16)) return before ^ (is_a ? 0x80 : 0);
        return nearest_code(format, normal);
    default: return nearest_code(format, normal);
    }
}

static void fill_codes(uint8_t *codes, int64_t rows, enum assay_format format, bool is_a)
{
    for (int64_t i = 0; i < rows * setup.problem.k; i++)
        codes[i] = drawn_code(format, i ? codes[i - 1] : 0, is_a, i % 2);
}

static float drawn_scale(void)
{
    static const float odd[] = { (float)NAN, INFINITY, -INFINITY, 0.0f, 0x1p-149f };
    const uint32_t bits = draw();
    float any;
    memcpy(&any, &bits, sizeof any);
    switch (scales) {
    case POWERS_OF_TWO: return ldexpf(below(2) ? -1 : 1, (int)below(25) - 12);
    case SIGNS: return below(2) ? -1 : 1;
    case WILD: return isfinite(any) ? any : -0.0f;
    case ANYTHING: return below(20) ? 1.5f : odd[below(5)];
    default: return ((float)below(1 << 20) + 1) * 0x1p-20f;
    }
}

static void fill(void)
{
    const struct assay_fp8_gemm_problem *const problem = &setup.problem;
    shape();
    fill_codes(a_codes, problem->m, setup.a, true);
    fill_codes(b_codes, problem->n, setup.b, false);
    for (int64_t i = 0; i < problem->m * k_blocks(); i++)
        sfa[i] = drawn_scale();
    for (int64_t i = 0; i < problem->n * k_blocks(); i++)
        sfb[i] = drawn_scale();
    for (int64_t i = 0; i < problem->m * problem->n; i++)
        c_values[i] = 100 * drawn_scale();
}

static void run(struct tally *tally)
{
    snprintf(setup.name, sizeof setup.name, "contents %d, scales %d, form %d", contents,
             scales, setup.form);
    fill();
    expect();
    for (int64_t i = 0; i < setup.problem.m * setup.problem.n; i++)
        judge(tally, simulated(i / setup.problem.n, i % setup.problem.n), value[i],
              bound[i]);
}

static struct assay_fp8_gemm_precision drawn_precision(void)
{
    static const struct assay_fp8_gemm_precision classes[] = {
        { .terms = 32, .align_bits = 13, .result_bits = 13 },
        { .terms = 32, .groups = 2, .align_bits = 13, .result_bits = 13 },
        { .terms = 32,
          .groups = 2,
          .align_bits = 25,
          .result_bits = 23,
          .adds_accumulator_last = true },
        { .terms = 32, .groups = 1, .align_bits = 25, .result_bits = 23 },
        { .terms = 32, .groups = 1, .align_bits = 9, .result_bits = 13 },
        { .terms = 16, .groups = 1, .align_bits = 13, .result_bits = 7 },
    };
    return classes[below(3) ? 0 : below(6)];
}

/* Chains of 32, 96, 128 or all of K; block scales or one scale a row. */
static void draw_setup(void)
{
    static const int64_t chains[] = { 32, 96, 128, 0 };
    static const int64_t granularities[] = { 1, 3, 128 };
    const int64_t chain_k = chains[below(4)];
    setup.problem = (struct assay_fp8_gemm_problem){
        .m = 1 + below(6),
        .n = 1 + below(6),
        .k = below(MOST_K + 1),
        .gran_m = granularities[below(3)],
        .gran_n = granularities[below(3)],
        .has_c = below(2),
    };
    const bool has_blocks = chain_k && below(3);
    setup.problem.gran_k = has_blocks ? chain_k * (1 + below(3)) : MOST_K;
    setup.precision = drawn_precision();
    setup.precision.chain_k = chain_k;
    setup.precision.is_scaled_at_end = !has_blocks && below(2);
    setup.precision.rounds_toward_zero = below(4) == 0;
    setup.a = below(2) ? ASSAY_E4M3 : ASSAY_E5M2;
    setup.b = below(2) ? ASSAY_E4M3 : ASSAY_E5M2;
    setup.d = below(2) ? ASSAY_F32 : ASSAY_BF16;
    setup.form = (enum form)below(FORMS);
    setup.is_fused = below(2);
}

START_TEST(no_simulated_kernel_is_outside_whatever_the_input)
{
    struct tally tame = { 0 }, wild = { 0 };
    state = 1;
    for (int i = 0; i < 2700; i++) {
        draw_setup();
        contents = (enum contents)(i % CONTENTS);
        scales = (enum scales)(i / CONTENTS % SCALES);
        const bool is_tame = contents != SPECIAL && scales < WILD;
        run(is_tame ? &tame : &wild);
    }
    ck_assert_int_eq(tame.special, 0);
    ck_assert_int_eq(tame.unclaimed, 0);
    ck_assert_int_gt(tame.finite, 10000);
    ck_assert_int_gt(wild.finite, 5000);
    ck_assert_int_gt(wild.special, 1000);
    ck_assert_int_lt(wild.unclaimed, (wild.finite + wild.special) / 3);
}
END_TEST

START_TEST(sums_that_never_round_have_a_bound_of_zero)
{
    struct tally tally = { 0 };
    state = 2;
    for (int i = 0; i < 300; i++) {
        draw_setup();
        setup.precision = hopper;
        setup.precision.chain_k = setup.problem.gran_k == MOST_K ? 0 : 32;
        setup.precision.is_scaled_at_end = setup.problem.gran_k == MOST_K && below(2);
        setup.a = setup.b = ASSAY_E4M3;
        setup.d = ASSAY_F32;
        contents = SMALL_INTEGERS;
        scales = SIGNS;
        run(&tally);
    }
    ck_assert_int_eq(tally.exact, tally.finite);
    ck_assert_int_gt(tally.exact, 1000);
}
END_TEST

START_TEST(exact_sums_in_bf16_are_off_by_their_last_rounding_alone)
{
    struct tally tally = { 0 };
    state = 3;
    for (int i = 0; i < 300; i++) {
        draw_setup();
        setup.precision = hopper;
        setup.problem.gran_k = MOST_K;
        setup.precision.rounds_toward_zero = i % 2;
        setup.a = setup.b = ASSAY_E4M3;
        setup.d = ASSAY_BF16;
        contents = SMALL_INTEGERS;
        scales = SIGNS;
        run(&tally);
    }
    ck_assert_double_eq(tally.largest_ratio, 1);
    ck_assert_int_gt(tally.exact, tally.finite / 20);
}
END_TEST

static double largest_ratio_of_positive_data(int64_t chain_k)
{
    struct tally tally = { 0 };
    contents = POSITIVE;
    scales = UNIFORM;
    state = 4;
    for (int i = 0; i < 12; i++) {
        setup = (struct setup){
            .problem = { MOST_ROWS, MOST_COLUMNS, 128 + 128 * below(5), 1, 128, 128,
                         false },
            .precision = hopper,
            .a = ASSAY_E4M3,
            .b = ASSAY_E4M3,
            .d = ASSAY_F32,
            .is_fused = true,
        };
        if (!chain_k) setup.problem.gran_k = MOST_K;
        setup.precision.chain_k = chain_k;
        run(&tally);
    }
    return tally.largest_ratio;
}

/* Thresholds above half of what is reached, so that a bound twice as large fails. */
START_TEST(bound_is_tight_for_positive_data)
{
    const double block = largest_ratio_of_positive_data(128);
    ck_assert_msg(block > 0.3, "chains of 128 reach %g of the bound", block);
    const double whole = largest_ratio_of_positive_data(0);
    ck_assert_msg(whole > 0.4, "one chain reaches %g of the bound", whole);
}
END_TEST

int main(void)
{
    start_simulation();
    const TTest *const tests[] = {
        no_simulated_kernel_is_outside_whatever_the_input,
        sums_that_never_round_have_a_bound_of_zero,
        exact_sums_in_bf16_are_off_by_their_last_rounding_alone,
        bound_is_tight_for_positive_data,
        NULL,
    };
    return run_tests("verify_fp8_gemm_nt_bound", tests);
}
