/* SPDX-License-Identifier: MIT */
/* The bound of attention against simulated kernels that reorder, split and err as they
 * may; what it says where nothing is rounded; that half of it is too little. */
#include "tests/verify/judged_attention.h"

#include <cblas.h>

enum contents { NORMAL, POSITIVE, CANCELLING, STEEP, WIDE, TINY, CONTENTS };

static double element(enum contents contents, int i)
{
    const double x = uniform() + uniform() + uniform();
    switch (contents) {
    case POSITIVE: return fabs(x);
    case CANCELLING: return i % 2 ? x : 1 + x / 64;
    case STEEP: return 4 * x;
    case WIDE: return x * exp2(uniform() * 6);
    case TINY: return x * 0x1p86; /* of keys; those of q are subnormal */
    default: return x;
    }
}

static void fill(enum contents contents, int keys, enum assay_format format)
{
    for (int i = 0; i < ROWS * WIDTH; i++)
        q_codes[i] =
            code_of(format, element(contents, i) * (contents == TINY ? 0x1p-214 : 1));
    for (int i = 0; i < keys * WIDTH; i++)
        keys_codes[i] = code_of(format, element(contents, i / 2 * 2) *
                                            (contents == CANCELLING && i % 2 ? -1 : 1));
    length[0] = keys;
    for (int i = 0; i < PAGES; i++)
        table[i] = i;
    for (int i = 0; i < keys; i++)
        indices[i] = i;
}

/* Simulates some rows in every direction. */
static void challenge(const struct assay_mla_numerics *numerics, enum assay_format format,
                      float scale, bool may_be_split, int rows, struct tally *tally)
{
    for (int i = 0; i < rows; i++) {
        const int row = (int)below(ROWS);
        load_row(numerics, format, scale, row, may_be_split);
        for (int direction = RANDOM; direction < AGAINST_COLUMN; direction++) {
            simulation.direction = (enum direction)direction;
            simulate();
            judge(tally, row, !may_be_split);
        }
        simulation.direction = AGAINST_COLUMN;
        for (int trial = 0; trial < 6; trial++) {
            simulation.column = (int)below(OUTPUTS);
            simulation.expected = out[0][row * OUTPUTS + simulation.column];
            simulation.sign = trial % 2 ? 1 : -1;
            simulate();
            judge(tally, row, !may_be_split);
        }
    }
}

static void fill_sinks(void)
{
    for (int i = 0; i < ROWS; i++)
        sinks[i] = i % 3 ? (float)uniform() * 9 : -INFINITY;
}

static struct tally challenge_all(const struct assay_mla_numerics *numerics,
                                  enum assay_format format, bool may_be_split)
{
    static const int counts[] = { 1, 2, 5, 40, 150, 300 };
    struct tally tally = { 0 };
    for (int contents = NORMAL; contents < CONTENTS; contents++)
        for (int i = 0; i < 6; i++) {
            const float scale = contents == WIDE   ? 0.001f
                                : contents == TINY ? 0x1p37f
                                                   : 1 / 24.0f;
            if (contents == TINY && format == ASSAY_F16) continue;
            fill((enum contents)contents, counts[i], format);
            fill_sinks();
            if (may_be_split)
                expect_dense(numerics, format, scale);
            else
                expect_prefill(numerics, scale);
            challenge(numerics, format, scale, may_be_split, 1, &tally);
        }
    return tally;
}

START_TEST(simulated_kernels_stay_within_the_bound)
{
    const struct tally dense = challenge_all(&assay_mla_flashmla_dense, ASSAY_BF16, true);
    const struct tally prefill =
        challenge_all(&assay_mla_flashmla_sparse_prefill, ASSAY_BF16, false);
    ck_assert_double_gt(dense.out, 0.5);
    ck_assert_double_gt(prefill.out, 0.5);
    ck_assert_int_eq(dense.unclaimed, 0);
    ck_assert_int_eq(prefill.unclaimed, 0);
}
END_TEST

START_TEST(so_they_do_with_other_arithmetic)
{
    struct assay_mla_numerics numerics = assay_mla_flashmla_dense;
    challenge_all(&numerics, ASSAY_F16, true);
    numerics.p_rounding = ASSAY_MLA_P_TOWARD_ZERO;
    numerics.argument = ASSAY_MLA_ARGUMENT_SEPARATE;
    challenge_all(&numerics, ASSAY_F16, true);
    challenge_all(&numerics, ASSAY_BF16, true);
    numerics = assay_mla_flashmla_dense;
    numerics.align_bits = numerics.result_bits = 13;
    challenge_all(&numerics, ASSAY_BF16, true);
    numerics.align_bits = 18;
    numerics.result_bits = 23;
    challenge_all(&numerics, ASSAY_BF16, true);
    numerics = assay_mla_flashmla_dense;
    numerics.unit = ASSAY_MLA_FMA;
    challenge_all(&numerics, ASSAY_BF16, true);
    challenge_all(&assay_mla_flash, ASSAY_BF16, true);
    challenge_all(&assay_mla_naive, ASSAY_BF16, false);
}
END_TEST

/* --- where little or nothing is rounded -------------------------------------------- */

static const struct assay_mla_numerics *const named[] = {
    &assay_mla_flashmla_dense, &assay_mla_flashmla_sparse_decode,
    &assay_mla_flashmla_sparse_prefill, &assay_mla_flash, &assay_mla_naive
};
enum { NAMED = sizeof(named) / sizeof(named[0]) };

START_TEST(equal_weights_leave_only_the_rounding_of_the_output)
{
    fill(NORMAL, 256, ASSAY_BF16);
    memset(q_codes, 0, sizeof(q_codes));
    for (int i = 0; i < 256 * WIDTH; i++)
        keys_codes[i] = code_of(ASSAY_BF16, 8 * (double)(below(31) - 15));
    for (int i = 0; i < ROWS; i++)
        sinks[i] = -INFINITY;
    for (int i = 0; i < NAMED; i++) {
        expect_prefill(named[i], 1 / 24.0f);
        for (int d = 0; d < OUTPUTS; d++) {
            double sum = 0;
            for (int j = 0; j < 256; j++)
                sum += value_of(ASSAY_BF16, keys_codes[j * WIDTH + d]);
            simulation.format = ASSAY_BF16;
            const double mean = sum / 256, nearest = narrowed(mean, false);
            const double ulp = ldexp(1, ilogb(mean == 0 ? 1 : mean) - 7);
            ck_assert_double_eq(out[0][d], mean);
            /* Of two neighbours as near, both are allowed. */
            if (fabs(fabs(mean - nearest) - ulp / 2) > ulp / 64)
                ck_assert_double_eq_tol(out[1][d], fabs(nearest - mean), 0x1p-100);
        }
        ck_assert_double_eq_tol(lse[0][0], log(256), 0x1p-40);
        ck_assert_double_lt(lse[1][0], 0x1p-19);
        ck_assert_double_eq(max_logits[0][0], 0);
        ck_assert_double_eq(max_logits[1][0], 0);
    }
}
END_TEST

START_TEST(a_lone_winner_is_its_value_to_the_bit)
{
    fill(NORMAL, 200, ASSAY_BF16);
    for (int row = 0; row < ROWS; row++)
        for (int d = 512; d < WIDTH; d++)
            q_codes[row * WIDTH + d] = code_of(ASSAY_BF16, 2);
    for (int j = 0; j < 200; j++)
        for (int d = 512; d < WIDTH; d++)
            keys_codes[j * WIDTH + d] = code_of(ASSAY_BF16, j == 77 ? 64 : 0);
    for (int i = 0; i < ROWS; i++)
        sinks[i] = -INFINITY;
    for (int i = 0; i < NAMED; i++)
        for (int is_dense = 0; is_dense < 2; is_dense++) {
            if (is_dense)
                expect_dense(named[i], ASSAY_BF16, 1 / 24.0f);
            else
                expect_prefill(named[i], 1 / 24.0f);
            for (int at = 0; at < ROWS * OUTPUTS; at++) {
                const double value =
                    value_of(ASSAY_BF16, keys_codes[77 * WIDTH + at % OUTPUTS]);
                if (fabs(out[0][at] - value) + out[1][at] > 0x1p-100)
                    ck_abort_msg("%a within %a, not %a", out[0][at], out[1][at], value);
            }
        }
}
END_TEST

START_TEST(a_sink_takes_its_share)
{
    fill(NORMAL, 100, ASSAY_BF16);
    fill_sinks();
    sinks[0] = INFINITY;
    sinks[1] = 200; /* its weight overflows, or its reciprocal vanishes */
    sinks[2] = NAN;
    sinks[3] = -200;
    expect_prefill(&assay_mla_flashmla_sparse_prefill, 1 / 24.0f);
    ck_assert_double_eq(out[0][5], 0);
    ck_assert_double_lt(out[1][5], 0x1p-110);
    ck_assert_double_ge(out[1][OUTPUTS + 5], fabs(out[0][OUTPUTS + 5]));
    ck_assert_double_lt(out[1][OUTPUTS + 5], 0x1p-110);
    ck_assert(isinf(out[1][2 * OUTPUTS]));
    ck_assert_double_lt(out[1][3 * OUTPUTS], 0x1p-6);
}
END_TEST

/* --- cached keys that kernels round ------------------------------------------------ */

/* One v32 token of ones, 1.0 being code 0x38, with @scale, is all that a row sees. */
static void expect_token(float scale, const struct assay_mla_numerics *numerics)
{
    static uint8_t token[656];
    const struct assay_mla_sparse_decode_problem problem = {
        .b = 1,
        .s_q = 1,
        .h_q = ROWS,
        .cache = { .kv = ASSAY_MLA_V32,
                   .pages = 1,
                   .page_size = 1,
                   .page_stride = sizeof(token),
                   .topk = 64 },
        .num_sm_parts = 66,
        .softmax_scale = 1 / 24.0f,
    };
    struct assay_expected expected[ASSAY_MAX_TENSORS] = { 0 };
    memset(token, 0x38, 512);
    for (int tile = 0; tile < 4; tile++)
        memcpy(token + 512 + 4 * tile, &scale, sizeof(scale));
    for (int i = 0; i < 64; i++)
        indices[i] = i == 9 ? 0 : -1;
    tensors.count = 0;
    add_tensor("q", ASSAY_BF16, 4, SHAPE(1, 1, ROWS, WIDTH), q_codes);
    add_tensor("k_cache", ASSAY_U8, 2, SHAPE(1, sizeof(token)), token);
    add_tensor("indices", ASSAY_I32, 3, SHAPE(1, 1, 64), indices);
    add_tensor("out", ASSAY_BF16, 4, SHAPE(1, 1, ROWS, OUTPUTS), NULL);
    add_tensor("lse", ASSAY_F32, 3, SHAPE(1, ROWS, 1), NULL);
    expected[3] = (struct assay_expected){ out[0], out[1] };
    expected[4] = (struct assay_expected){ lse[0], lse[1] };
    ck_assert_int_eq(
        assay_mla_sparse_decode_expect(&problem, numerics, &tensors, 0, expected),
        ASSAY_RAN);
}

START_TEST(the_value_is_that_of_stored_keys_and_the_bound_reaches_rounded_ones)
{
    const float scale = 1 + 0x1.8p-9f; /* its bf16 is 1 */
    fill(NORMAL, 1, ASSAY_BF16);
    expect_token(scale, &assay_mla_flashmla_sparse_decode);
    double score = 0;
    for (int d = 0; d < 512; d++)
        score += value_of(ASSAY_BF16, q_codes[d]) / 24;
    ck_assert_double_eq_tol(lse[0][0], score * (double)scale, 0x1p-20);
    ck_assert_double_ge(lse[1][0], fabs(score) * 0x1.8p-9 * (1 - 0x1p-20));
    ck_assert_double_le(lse[1][0], fabs(score) * 0x1.8p-9 + 0x1p-10);
    for (int at = 0; at < ROWS * OUTPUTS; at++) {
        ck_assert_double_eq(out[0][at], (double)scale);
        ck_assert_double_eq_tol(out[1][at], 0x1.8p-9, 0x1p-20);
    }
    expect_token(1, &assay_mla_flashmla_sparse_decode);
    ck_assert_double_lt(lse[1][0], 0x1p-10);
    ck_assert_double_eq(out[1][0], 0);
}
END_TEST

/* --- what is claimed of what is no number ------------------------------------------ */

START_TEST(rows_without_keys_are_known)
{
    length[0] = 0;
    expect_dense(&assay_mla_flashmla_dense, ASSAY_BF16, 1 / 24.0f);
    ck_assert_double_eq(out[0][3], 0);
    ck_assert_double_eq(out[1][3], 0);
    ck_assert_double_eq(lse[0][3], (double)INFINITY);
    ck_assert_double_eq(lse[1][3], 0);
    fill(NORMAL, 4, ASSAY_BF16);
    for (int i = 0; i < 4; i++)
        indices[i] = -1 - i;
    expect_prefill(&assay_mla_flashmla_sparse_prefill, 1 / 24.0f);
    ck_assert_double_eq(max_logits[0][3], -(double)INFINITY);
    ck_assert_double_eq(max_logits[1][3], 0);
    ck_assert_double_eq(out[1][3], 0);
}
END_TEST

START_TEST(nan_is_claimed_and_infinity_is_not)
{
    struct assay_mla_numerics numerics = assay_mla_flashmla_dense;
    fill(NORMAL, 70, ASSAY_BF16);
    keys_codes[5 * WIDTH + 3] = 0x7fff;
    expect_dense(&numerics, ASSAY_BF16, 1 / 24.0f);
    ck_assert(isnan(out[0][9]) && out[1][9] == 0);
    ck_assert(isinf(lse[1][0])); /* such rows count as empty */
    numerics.combine.zero_weight = ASSAY_MLA_ZERO_WEIGHT_SKIPPED;
    expect_dense(&numerics, ASSAY_BF16, 1 / 24.0f);
    ck_assert(isinf(out[1][9]));
    expect_prefill(&assay_mla_flashmla_sparse_prefill, 1 / 24.0f);
    ck_assert(isnan(lse[0][0]) && lse[1][0] == 0);
    ck_assert(isinf(max_logits[1][0]));
    keys_codes[5 * WIDTH + 3] = 0x7f80;
    expect_dense(&numerics, ASSAY_BF16, 1 / 24.0f);
    ck_assert(isinf(out[1][9]) && isinf(lse[1][0]));
    ck_assert(isfinite(out[0][9]));
}
END_TEST

START_TEST(what_kernels_cannot_keep_is_not_claimed)
{
    fill(NORMAL, 70, ASSAY_BF16);
    expect_dense(&assay_mla_flashmla_dense, ASSAY_BF16, 0.0005f);
    ck_assert(isinf(out[1][9])); /* -1e33 * c is no mask */
    expect_dense(&assay_mla_flash, ASSAY_BF16, 0.0005f);
    ck_assert(!isinf(out[1][9]));
    expect_dense(&assay_mla_flash, ASSAY_BF16, -1.0f);
    ck_assert(isinf(out[1][9]) && isinf(lse[1][9]));
    q_codes[0] = code_of(ASSAY_BF16, 0x1p100);
    expect_dense(&assay_mla_flashmla_dense, ASSAY_BF16, 1 / 24.0f);
    ck_assert(isinf(out[1][9]) && isinf(lse[1][0]));
    ck_assert(!isinf(out[1][OUTPUTS + 9]));
    keys_codes[9] = code_of(ASSAY_BF16, 0x1p120);
    for (int row = 0; row < ROWS; row++)
        q_codes[row * WIDTH + 9] = 0;
    expect_dense(&assay_mla_flashmla_dense, ASSAY_BF16, 1 / 24.0f);
    ck_assert(isinf(out[1][OUTPUTS + 9])); /* sums of values may overflow */
}
END_TEST

int main(void)
{
    openblas_set_num_threads(1);
    const TTest *const tests[] = {
        simulated_kernels_stay_within_the_bound,
        so_they_do_with_other_arithmetic,
        equal_weights_leave_only_the_rounding_of_the_output,
        a_lone_winner_is_its_value_to_the_bit,
        a_sink_takes_its_share,
        the_value_is_that_of_stored_keys_and_the_bound_reaches_rounded_ones,
        rows_without_keys_are_known,
        nan_is_claimed_and_infinity_is_not,
        what_kernels_cannot_keep_is_not_claimed,
        NULL,
    };
    return run_tests("verify_mla_bound", tests);
}
