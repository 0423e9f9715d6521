/* SPDX-License-Identifier: MIT */
/* The bound of fp8_gemm_nt with recipe=mx: against products in random order, and how
 * tight it is against the model. */
#include "verify/operation/fp8_gemm_nt/fp8_gemm_mx_bound.h"

#include "tests/verify/mx_rules.h"

enum { TILE = ASSAY_FP8_GEMM_TILE_M * ASSAY_FP8_GEMM_TILE_N };

static double value[TILE], bound[TILE];

struct tally {
    int64_t finite, special, unclaimed;
    double largest_ratio;
};

static double decoded_output(enum assay_format out, uint32_t bits)
{
    const uint32_t wide = out == ASSAY_F32 ? bits : bits << 16;
    float result;
    memcpy(&result, &wide, sizeof result);
    return (double)result;
}

static void judge(struct tally *tally, int at, double found)
{
    if (isinf(bound[at])) {
        ck_assert(isfinite(value[at]));
        tally->unclaimed++;
    } else if (!isfinite(value[at])) {
        ck_assert_msg(isnan(value[at]) ? isnan(found) : found == value[at],
                      "element %d: %a, but %a", at, found, value[at]);
        ck_assert_double_eq(bound[at], 0);
        tally->special++;
    } else {
        const double error = fabs(found - value[at]);
        ck_assert_msg(error <= bound[at], "element %d: %a, but %a within %a", at, found,
                      value[at], bound[at]);
        if (bound[at] > 0)
            tally->largest_ratio = fmax(tally->largest_ratio, error / bound[at]);
        tally->finite++;
    }
}

static void shuffle(int64_t *order, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = below(i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

static void judge_random_orders(const struct fixture *fixture,
                                const struct assay_fp8_gemm_precision *precision,
                                struct tally *tally)
{
    const struct assay_fp8_gemm_problem *const gemm = &fixture->problem.gemm;
    const struct assay_expected expected = { value, bound };
    int64_t order[MOST_K];
    ck_assert_int_eq(
        assay_fp8_gemm_mx_expect(gemm, precision, &fixture->tensors, 0, &expected),
        ASSAY_RAN);
    for (int64_t at = 0; at < gemm->m * gemm->n; at++) {
        shuffle(order, gemm->k);
        const uint32_t bits =
            converted(chain(fixture, precision, at / gemm->n, at % gemm->n, order),
                      fixture->problem.out, precision->rounds_toward_zero);
        judge(tally, (int)at, decoded_output(fixture->problem.out, bits));
    }
}

static struct assay_fp8_gemm_precision drawn_precision(void)
{
    static const int bits[][2] = { { 25, 23 }, { 13, 13 }, { 9, 13 }, { 30, 7 } };
    const int64_t row = below(3) ? 0 : below(4);
    return (struct assay_fp8_gemm_precision){ .terms = TERMS,
                                              .groups = 1,
                                              .align_bits = bits[row][0],
                                              .result_bits = bits[row][1],
                                              .rounds_toward_zero = below(4) == 0 };
}

START_TEST(no_order_of_the_products_is_outside_whatever_the_input)
{
    static const int centres[][2] = { { 0, 0 }, { 40, 50 }, { 160, 190 }, { 1, 225 } };
    struct tally tame = { 0 }, wild = { 0 };
    char text[256];
    state = 3;
    for (int i = 0; i < 750; i++) {
        const enum assay_data_kind kind =
            (enum assay_data_kind)(i % ASSAY_GENERAL_DATA_KINDS);
        const struct assay_fp8_gemm_precision precision = drawn_precision();
        const bool is_tame = i % 3 || kind == ASSAY_DATA_SPECIAL;
        struct fixture fixture;
        drawn_case(text, sizeof text, kind, 16 * below(20), "");
        open_fixture(&fixture, text);
        if (!is_tame) {
            fill_scales(&fixture, "sfa", centres[i / 3 % 4][0]);
            fill_scales(&fixture, "sfb", centres[i / 3 % 4][1]);
        }
        judge_random_orders(&fixture, &precision,
                            is_tame && kind != ASSAY_DATA_SPECIAL ? &tame : &wild);
        close_fixture(&fixture);
    }
    ck_assert_int_eq(tame.special, 0);
    ck_assert_int_eq(tame.unclaimed, 0);
    ck_assert_int_gt(tame.finite, 15000);
    ck_assert_int_gt(wild.finite, 5000);
    ck_assert_int_gt(wild.special, 250);
    ck_assert_int_lt(wild.unclaimed, wild.finite);
}
END_TEST

/* Floors above half of what the model reaches: doubling the bound fails here. */
START_TEST(bound_is_tight_for_positive_data)
{
    static const struct {
        const char *rest;
        double floor;
    } rows[] = {
        { "k=128 out=f32", 0.3 },
        { "k=1024 out=f32", 0.2 },
        { "k=4096 out=f32 gran_k=32", 0.2 },
        { "k=1024 out=f32 b_format=e5m2", 0.2 },
        { "k=1024 out=f32 a_format=e2m1", 0.08 },
        { "k=1024", 0.5 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[256];
        snprintf(text, sizeof text, "fp8_gemm_nt m=128 n=128 recipe=mx data=positive %s",
                 rows[i].rest);
        struct assay_result result = result_of(text, "");
        const double ratio = result.output[0].max_error_over_bound;
        ck_assert_msg(ratio >= rows[i].floor && ratio <= 1 && ratio < 2 * rows[i].floor,
                      "%s: error/bound %g is not in [%g, %g)", text, ratio, rows[i].floor,
                      2 * rows[i].floor);
        ck_assert(result.is_unverified_profile);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(exact_data_never_rounds)
{
    static const char *const cases[] = {
        "fp8_gemm_nt m=65 n=72 k=16384 recipe=mx data=exact",
        "fp8_gemm_nt m=65 n=72 k=1040 recipe=mx gran_k=32 out=f32 data=exact",
        "fp8_gemm_nt m=65 n=72 k=1040 recipe=mx a_format=e2m1 b_format=e2m1 data=exact",
        "fp8_gemm_nt m=65 n=72 k=1040 recipe=mx out=f32 b_format=e5m2 data=ties",
    };
    static const char *const knobs[] = { "", "k_order=descending",
                                         "align_bits=13,result_bits=13" };
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++) {
            struct assay_result result = result_of(cases[i], knobs[j]);
            const struct assay_output_result *const d = &result.output[0];
            ck_assert_msg(d->max_error_over_bound == 0 && d->differ == 0 &&
                              d->bound_worst_bound == 0,
                          "%s, %s", cases[i], knobs[j]);
            ck_assert(result.is_decisive);
            assay_result_close(&result);
        }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        no_order_of_the_products_is_outside_whatever_the_input,
        bound_is_tight_for_positive_data,
        exact_data_never_rounds,
        NULL,
    };
    return run_tests("fp8_gemm_mx_bound", tests);
}
