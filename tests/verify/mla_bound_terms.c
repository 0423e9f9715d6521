/* SPDX-License-Identifier: MIT */
/* The terms of attention's bound one by one: rows whose scores are single exact products,
 * so that one kind of rounding stands out, against simulated kernels. Each reaches a good
 * part of the bound, or would leave it without its term. */
#include "tests/verify/judged_attention.h"

#include <cblas.h>

enum { SCORED = 575 }; /* the only element of q, which is no element of v */

static struct assay_mla_numerics numerics;

/* Key j scores query * key(j), exactly: values are so coarse that no unit of products is
 * smaller than those of the scores. */
static void place(enum assay_format format, int keys, double query, double (*key)(int j))
{
    memset(q_codes, 0, sizeof(q_codes));
    memset(keys_codes, 0, sizeof(keys_codes));
    length[0] = keys;
    for (int i = 0; i < PAGES; i++)
        table[i] = i;
    for (int row = 0; row < ROWS; row++) {
        q_codes[row * WIDTH + SCORED] = code_of(format, query);
        sinks[row] = -INFINITY;
    }
    for (int j = 0; j < keys; j++) {
        indices[j] = j;
        keys_codes[j * WIDTH + SCORED] = code_of(format, key(j));
        for (int d = 0; d < OUTPUTS; d++)
            keys_codes[j * WIDTH + d] = code_of(format, 1 + (double)below(8) / 8);
    }
}

static double one(int j)
{
    (void)j;
    return 1;
}

static double lone_top(int j)
{
    return j ? 1 : 0;
}

static double ascending(int j)
{
    return j;
}

static double close(int j)
{
    return j % 5;
}

/* Row 0, @trials times in the direction set. */
static struct tally simulate_dense(enum assay_format format, float scale, int trials)
{
    struct tally tally = { 0 };
    expect_dense(&numerics, format, scale);
    load_row(&numerics, format, scale, 0, length[0] > 64);
    simulation.sink = -INFINITY;
    for (int i = 0; i < trials; i++) {
        simulate();
        judge(&tally, 0, false);
    }
    ck_assert_int_eq(tally.unclaimed, 0);
    return tally;
}

static struct tally simulate_prefill(float scale, int trials)
{
    struct tally tally = { 0 };
    expect_prefill(&numerics, scale);
    load_row(&numerics, ASSAY_BF16, scale, 0, false);
    for (int i = 0; i < trials; i++) {
        simulate();
        judge(&tally, 0, true);
    }
    ck_assert_int_eq(tally.unclaimed, 0);
    return tally;
}

START_TEST(a_sum_may_lose_half_a_unit_a_key)
{
    /* p is just below 1 for all keys but one: its low bits are lost in every sum. */
    numerics = assay_mla_naive;
    place(ASSAY_BF16, 255, -0x1p-10, lone_top);
    ck_assert_double_gt(simulate_dense(ASSAY_BF16, 0x1.ep-8f, 3).lse, 0.3);
}
END_TEST

START_TEST(every_rise_of_the_maximum_costs_an_exponential)
{
    numerics = assay_mla_flashmla_dense;
    numerics.schedule = ASSAY_MLA_PLAIN;
    numerics.row_sum = ASSAY_MLA_SUM_ONE_LANE;
    place(ASSAY_BF16, 64, 0x1p-6, ascending);
    simulation.is_in_order = true;
    simulation.direction = UPWARD;
    ck_assert_double_gt(simulate_dense(ASSAY_BF16, 0x1p-7f, 3).lse, 0.15);
    simulation.is_in_order = false;
}
END_TEST

START_TEST(large_logarithms_are_rounded_by_their_size)
{
    double lse_ratio = 0, max_logit_ratio = 0;
    numerics = assay_mla_flashmla_sparse_prefill;
    for (int i = 0; i < 2000; i++) {
        place(ASSAY_BF16, 1, exp2(8 + 2 * uniform()), one);
        const struct tally tally = simulate_prefill((float)exp2(uniform()), 1);
        lse_ratio = fmax(lse_ratio, tally.lse);
        max_logit_ratio = fmax(max_logit_ratio, tally.max_logit);
    }
    ck_assert_double_gt(lse_ratio, 0.55);
    ck_assert_double_gt(max_logit_ratio, 0.45);
}
END_TEST

START_TEST(a_rounded_maximum_moves_the_largest_weight)
{
    numerics = assay_mla_flashmla_dense;
    simulation.direction = RANDOM;
    double found = 0;
    for (int i = 0; i < 100; i++) {
        place(ASSAY_F16, 1, 128 * (1 + fabs(uniform())), one);
        found = fmax(found, simulate_dense(ASSAY_F16, (float)(30 + uniform()), 1).out);
    }
    ck_assert_double_gt(found, 0.4);
}
END_TEST

/* Scores near 2^14 that differ by less than 3: their roundings are 2^-10 of a weight,
 * beyond those of f16. */
static double at_large_scores(int keys, int trials)
{
    double found = 0;
    for (int i = 0; i < trials; i++) {
        place(ASSAY_F16, keys, 64 * (1 + fabs(uniform())), one);
        q_codes[SCORED - 1] = code_of(ASSAY_F16, 0x1p-8);
        for (int j = 0; j < keys; j++)
            keys_codes[j * WIDTH + SCORED - 1] = code_of(ASSAY_F16, j % 5);
        found =
            fmax(found, simulate_dense(ASSAY_F16, (float)(90 + 10 * uniform()), 1).out);
    }
    return found;
}

START_TEST(splits_round_their_logarithms)
{
    numerics = assay_mla_flashmla_dense;
    numerics.p_rounding = ASSAY_MLA_P_KEPT;
    ck_assert_double_gt(at_large_scores(130, 20), 0.3);
}
END_TEST

START_TEST(separate_arguments_round_scores)
{
    numerics = assay_mla_flashmla_dense;
    numerics.p_rounding = ASSAY_MLA_P_KEPT;
    numerics.argument = ASSAY_MLA_ARGUMENT_SEPARATE;
    ck_assert_double_gt(at_large_scores(7, 60), 0.3);
}
END_TEST

START_TEST(a_sink_is_rounded_by_its_size)
{
    double found = 0;
    numerics = assay_mla_flashmla_sparse_prefill;
    numerics.p_rounding = ASSAY_MLA_P_KEPT;
    for (int i = 0; i < 60; i++) {
        place(ASSAY_BF16, 1, 128 * (1 + fabs(uniform())), one);
        const double scale = 100 + 20 * uniform();
        const double score = value_of(ASSAY_BF16, q_codes[SCORED]) * (double)(float)scale;
        sinks[0] = (float)(score + uniform());
        found = fmax(found, simulate_prefill((float)scale, 1).out);
    }
    ck_assert_double_gt(found, 0.3);
}
END_TEST

START_TEST(truncated_weights_are_too_small)
{
    /* All but one key have p just below 1/2 + 2^-8, and lose nearly that. */
    numerics = assay_mla_flashmla_dense;
    numerics.p_rounding = ASSAY_MLA_P_TOWARD_ZERO;
    place(ASSAY_BF16, 60, -1, lone_top);
    ck_assert_double_gt(simulate_dense(ASSAY_BF16, 0.685516f, 3).out, 0.5);
}
END_TEST

START_TEST(narrow_accumulators_lose_values)
{
    numerics = assay_mla_flashmla_dense;
    numerics.align_bits = numerics.result_bits = 10;
    place(ASSAY_BF16, 64, 0x1p-5, close);
    ck_assert_double_gt(simulate_dense(ASSAY_BF16, 0.25f, 3).out, 0.1);
}
END_TEST

int main(void)
{
    openblas_set_num_threads(1);
    const TTest *const tests[] = {
        a_sum_may_lose_half_a_unit_a_key,
        every_rise_of_the_maximum_costs_an_exponential,
        large_logarithms_are_rounded_by_their_size,
        a_rounded_maximum_moves_the_largest_weight,
        splits_round_their_logarithms,
        separate_arguments_round_scores,
        a_sink_is_rounded_by_its_size,
        truncated_weights_are_too_small,
        narrow_accumulators_lose_values,
        NULL,
    };
    return run_tests("verify_mla_bound_terms", tests);
}
