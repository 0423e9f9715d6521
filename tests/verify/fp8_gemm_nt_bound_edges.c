/* SPDX-License-Identifier: MIT */
/* The bound of fp8_gemm_nt on single outputs: where it is reached, and what it claims
 * about overflow, NaN and infinities. */
#include "tests/verify/simulated_gemm.h"

#include <stdio.h>

/* A problem of one output, without c, in f32, whose codes and scales the test sets. */
static void start_single(int64_t k, enum assay_format format)
{
    setup = (struct setup){ .problem = { 1, 1, k, 1, 1, k ? k : 1, false },
                            .precision = hopper,
                            .a = format,
                            .b = format,
                            .d = ASSAY_F32 };
    shape();
    c_values[0] = 0;
}

/* Error over bound of the single output. */
static double judge_single(void)
{
    struct tally tally = { 0 };
    expect();
    judge(&tally, simulated(0, 0), value[0], bound[0]);
    return tally.largest_ratio;
}

/* One product of 1 and 31 of 2^-14, all of which one step loses. */
START_TEST(bound_is_nearly_reached_where_every_term_is_lost)
{
    start_single(32, ASSAY_E4M3);
    memset(a_codes, nearest_code(ASSAY_E4M3, 0x1p-6), 32);
    memset(b_codes, nearest_code(ASSAY_E4M3, 0x1p-8), 32);
    a_codes[7] = b_codes[7] = nearest_code(ASSAY_E4M3, 1);
    sfa[0] = sfb[0] = 1;
    ck_assert_double_gt(judge_single(), 0.9);
    ck_assert_double_eq(value[0], 1 + 31 * 0x1p-14);
    ck_assert_double_eq(simulated(0, 0), 1);
}
END_TEST

/* In the order that has 1 - 2^-9 first, the accumulator loses 2^-7 - 2^-9 beside 4 - 4.
 * That order is one of sixteen. */
START_TEST(bound_counts_what_an_accumulator_loses)
{
    double ratio = 0;
    start_single(64, ASSAY_E4M3);
    setup.precision.align_bits = 9;
    sfa[0] = sfb[0] = 1;
    memset(a_codes, 0, 64);
    memset(b_codes, nearest_code(ASSAY_E4M3, 1), 64);
    a_codes[0] = nearest_code(ASSAY_E4M3, 1);
    a_codes[1] = nearest_code(ASSAY_E4M3, -0x1p-9);
    a_codes[2] = nearest_code(ASSAY_E4M3, 4);
    a_codes[3] = nearest_code(ASSAY_E4M3, -4);
    for (int i = 0; i < 200; i++)
        ratio = fmax(ratio, judge_single());
    ck_assert_msg(ratio > 0.7, "reaches %g of %a", ratio, bound[0]);
}
END_TEST

/* Half the smallest float is lost in the one product that vanishes, then multiplied. */
START_TEST(bound_is_nearly_reached_below_the_smallest_float)
{
    const struct {
        enum form form;
        double code_a, code_b;
        float a, b;
    } cases[] = {
        { PRODUCT_FIRST, 256, 256, 0x1p-75f, 0x1.8p-74f },
        { A_THEN_B, 1, 1.5, 0x1p-149f, 0x1p100f },
        { B_THEN_A, 1, 1.5, 0x1p100f, 0x1p-149f },
        { PRODUCT_FIRST, 0.5, 1, 0x1.8p-74f, 0x1p-74f },
    };
    for (int i = 0; i < 4; i++) {
        start_single(1, ASSAY_E4M3);
        setup.form = cases[i].form;
        a_codes[0] = nearest_code(ASSAY_E4M3, cases[i].code_a);
        b_codes[0] = nearest_code(ASSAY_E4M3, cases[i].code_b);
        sfa[0] = cases[i].a;
        sfb[0] = cases[i].b;
        const double ratio = judge_single();
        ck_assert_msg(ratio > 0.9, "case %d reaches %g of its bound %a", i, ratio,
                      bound[0]);
    }
}
END_TEST

/* d = a, or 3 * a in three chains so that adding may round. */
START_TEST(overflow_is_claimed_where_it_is_certain_and_only_there)
{
    const double infinite = (double)INFINITY;
    const struct {
        bool has_three;
        enum assay_format d;
        bool toward_zero;
        float scale, c;
        double value, bound;
    } cases[] = {
        { false, ASSAY_F32, false, 0x1.fffffep127f, 0, 0x1.fffffep127, infinite },
        { false, ASSAY_F32, false, 0x1.fffffp127f, 0, 0x1.fffffp127, 0 },
        { false, ASSAY_F32, false, 0x1p127f, 0x1p127f, 0x1p128, infinite },
        { false, ASSAY_BF16, false, 0x1.fep127f, 0, 0x1.fep127, 0 },
        { false, ASSAY_BF16, false, 0x1.fefffep127f, 0, 0x1.fefffep127, 0x0.00fffep127 },
        { false, ASSAY_BF16, false, 0x1.ffp127f, 0, infinite, 0 },
        { false, ASSAY_BF16, true, 0x1.ffp127f, 0, 0x1.ffp127, 0x0.01p127 },
        { true, ASSAY_BF16, false, 0x1.54ab54p126f, 0, infinite, 0 },
        { true, ASSAY_BF16, false, -0x1.54ab54p126f, 0, -infinite, 0 },
        { true, ASSAY_BF16, false, 0x1.54aaaap126f, 0, 0x1.feffffp127, infinite },
    };
    for (int i = 0; i < 10; i++) {
        start_single(cases[i].has_three ? 96 : 1, ASSAY_E4M3);
        setup.d = tensors.item[5].format = cases[i].d;
        setup.precision.rounds_toward_zero = cases[i].toward_zero;
        setup.precision.chain_k = 32;
        setup.problem.has_c = true;
        memset(a_codes, 0, 96);
        for (int k = 0; k < setup.problem.k; k += 32)
            a_codes[k] = b_codes[k] = nearest_code(ASSAY_E4M3, 1);
        sfa[0] = cases[i].scale;
        sfb[0] = 1;
        c_values[0] = cases[i].c;
        judge_single();
        ck_assert_msg(value[0] == cases[i].value && bound[0] == cases[i].bound,
                      "case %d: %a within %a", i, value[0], bound[0]);
    }
}
END_TEST

static unsigned class_of(double x)
{
    return isnan(x) ? 1 : isfinite(x) ? 0 : x > 0 ? 2 : 4;
}

/* Judges every form; returns the set of classes they give. */
static unsigned judge_forms(void)
{
    unsigned classes = 0;
    for (int form = 0; form < FORMS; form++)
        for (int is_fused = 0; is_fused < 2; is_fused++) {
            setup.form = (enum form)form;
            setup.is_fused = is_fused;
            judge_single();
            classes |= 1u << class_of(simulated(0, 0));
        }
    return classes;
}

START_TEST(nan_and_infinity_are_claimed_where_all_forms_agree_and_only_there)
{
    static const float scales[] = { 0,        -0.0f,    1,         -2,        0x1p-149f,
                                    0x1p-75f, INFINITY, -INFINITY, (float)NAN };
    static const uint8_t codes[] = { 0x00, 0x01, 0x3c, 0xbc, 0x7c, 0xfc, 0x7f };
    int agreed = 0, differed = 0;
    start_single(2, ASSAY_E5M2);
    for (int i = 0; i < 7 * 7 * 9 * 9; i++) {
        a_codes[0] = codes[i % 7];
        a_codes[1] = codes[i / 7 % 7];
        b_codes[0] = b_codes[1] = 0x3c;
        sfa[0] = scales[i / 49 % 9];
        sfb[0] = scales[i / 441];
        const unsigned classes = judge_forms();
        const bool agree = (classes & (classes - 1)) == 0;
        /* 1 - 1 is certainly zero in one step, but the class promises any order. */
        const bool cancels = a_codes[0] != a_codes[1] && value[0] == 0;
        if (!cancels) ck_assert_int_eq(isinf(bound[0]) == 0, agree);
        agreed += agree;
        differed += !agree;
    }
    ck_assert_int_gt(agreed, 1000);
    ck_assert_int_gt(differed, 50);
}
END_TEST

START_TEST(special_scales_at_the_end_are_claimed_where_the_sum_is_certain)
{
    const double infinite = (double)INFINITY, nothing = (double)NAN;
    const struct {
        int64_t k;
        uint8_t a;
        float scale;
        double value, bound;
    } cases[] = {
        { 0, 0, INFINITY, 0, infinite },     { 0, 0, 1, 0, 0 },
        { 1, 0, INFINITY, nothing, 0 },      { 1, 0x3c, (float)NAN, nothing, 0 },
        { 1, 0x3c, INFINITY, 0, infinite },  { 1, 0x7c, -1, -infinite, 0 },
        { 1, 0xfc, -INFINITY, infinite, 0 }, { 1, 0x7c, 0, nothing, 0 },
        { 1, 0x7f, 1, nothing, 0 },
    };
    for (int i = 0; i < 9; i++) {
        start_single(cases[i].k, ASSAY_E5M2);
        setup.precision.is_scaled_at_end = true;
        a_codes[0] = cases[i].a;
        b_codes[0] = 0x3c;
        sfa[0] = cases[i].scale;
        sfb[0] = 1;
        judge_single();
        ck_assert_msg(class_of(value[0]) == class_of(cases[i].value) &&
                          bound[0] == cases[i].bound,
                      "case %d: %a within %a", i, value[0], bound[0]);
    }
}
END_TEST

int main(void)
{
    start_simulation();
    const TTest *const tests[] = {
        bound_is_nearly_reached_where_every_term_is_lost,
        bound_counts_what_an_accumulator_loses,
        bound_is_nearly_reached_below_the_smallest_float,
        overflow_is_claimed_where_it_is_certain_and_only_there,
        nan_and_infinity_are_claimed_where_all_forms_agree_and_only_there,
        special_scales_at_the_end_are_claimed_where_the_sum_is_certain,
        NULL,
    };
    return run_tests("verify_fp8_gemm_nt_bound_edges", tests);
}
