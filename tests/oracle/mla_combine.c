/* SPDX-License-Identifier: MIT */
/* The oracle of combined splits against sums in long double, and what becomes of splits
 * that hold no numbers. */
#include "ref/oracle/mla_combine.h"

#include "tests/harness.h"

#include <math.h>
#include <string.h>

enum { D_V = 512, B = 3, S_Q = 2, H_Q = 5, SPLITS = 1 + 160 + 7, ROWS = S_Q * H_Q };

static uint64_t state = 1;
static struct assay_mla_combine_problem problem;
static struct assay_tensors tensors;
static float oaccum[SPLITS][S_Q][H_Q][D_V], lseaccum[SPLITS][S_Q][H_Q], sinks[H_Q];
static int32_t num_splits[B + 1] = { 0, 1, 161, 168 };
static struct assay_mla_combined row;

static double uniform(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (double)(state >> 32) * 0x1p-31 - 1;
}

static void add_tensor(const char *name, enum assay_format format, int rank,
                       const int64_t *shape, void *data)
{
    struct assay_tensor *const tensor = &tensors.item[tensors.count++];
    *tensor = (struct assay_tensor){
        .name = name, .format = format, .rank = rank, .data = data
    };
    memcpy(tensor->shape, shape, (size_t)rank * sizeof(shape[0]));
    assay_tensor_set_dense(tensor);
}

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

static void fill(bool has_sink)
{
    problem = (struct assay_mla_combine_problem){
        .b = B, .s_q = S_Q, .h_q = H_Q, .splits = SPLITS, .has_sink = has_sink
    };
    tensors.count = 0;
    add_tensor("oaccum", ASSAY_F32, 4, SHAPE(SPLITS, S_Q, H_Q, D_V), oaccum);
    add_tensor("lseaccum", ASSAY_F32, 3, SHAPE(SPLITS, S_Q, H_Q), lseaccum);
    add_tensor("num_splits", ASSAY_I32, 1, SHAPE(B + 1), num_splits);
    if (has_sink) add_tensor("attn_sink", ASSAY_F32, 1, SHAPE(H_Q), sinks);
    float *const lse = (float *)lseaccum, *const partial = (float *)oaccum;
    for (int i = 0; i < SPLITS * ROWS; i++)
        lse[i] = i % 11 ? (float)(9 * uniform()) : -INFINITY;
    for (int i = 0; i < SPLITS * ROWS * D_V; i++)
        partial[i] = (float)uniform();
    for (int i = 0; i < H_Q; i++)
        sinks[i] = i == 3 ? INFINITY : i == 4 ? -INFINITY : (float)(3 * uniform());
}

static void combine(int64_t request, int64_t token, int64_t head)
{
    assay_mla_combine_oracle(&problem, &tensors, request, token, head, &row);
}

static void check_row(int request, int token, int head)
{
    long double total = 0, out[D_V] = { 0 }, magnitude[D_V] = { 0 };
    for (int i = num_splits[request]; i < num_splits[request + 1]; i++) {
        const long double weight = exp2l((long double)lseaccum[i][token][head]);
        total += weight;
        for (int d = 0; d < D_V; d++) {
            out[d] += weight * (long double)oaccum[i][token][head][d];
            magnitude[d] += weight * fabsl((long double)oaccum[i][token][head][d]);
        }
    }
    const long double sink = problem.has_sink ? expl((long double)sinks[head]) : 0;
    combine(request, token, head);
    if (total == 0) {
        ck_assert_int_eq(row.state, ASSAY_MLA_COMBINED_EMPTY);
        return;
    }
    ck_assert_int_eq(row.state, ASSAY_MLA_COMBINED_FINITE);
    ck_assert_ldouble_eq_tol((long double)assay_mla_combined_lse(&row), logl(total),
                             0x1p-45L);
    for (int d = 0; d < D_V; d++)
        if (!(fabsl((long double)row.out[d] - out[d] / (total + sink)) <=
              0x1p-44L * magnitude[d] / (total + sink)))
            ck_abort_msg("request %d, token %d, head %d, column %d: %a, but %La", request,
                         token, head, d, row.out[d], out[d] / (total + sink));
}

START_TEST(splits_add_up_by_their_weights)
{
    for (int has_sink = 0; has_sink < 2; has_sink++) {
        fill(has_sink != 0);
        for (int i = 0; i < B * ROWS; i++)
            check_row(i / ROWS, i / H_Q % S_Q, i % H_Q);
    }
}
END_TEST

START_TEST(a_single_split_that_counts_is_itself)
{
    fill(false);
    for (int i = num_splits[2]; i < num_splits[3]; i++)
        lseaccum[i][0][0] = -INFINITY;
    lseaccum[num_splits[2] + 3][0][0] = 1234.5f;
    combine(2, 0, 0);
    for (int d = 0; d < D_V; d++)
        ck_assert_double_eq(row.out[d], (double)oaccum[num_splits[2] + 3][0][0][d]);
}
END_TEST

START_TEST(rows_without_keys_are_zero_whatever_the_sink)
{
    fill(true);
    for (int head = 0; head < H_Q; head++) {
        for (int i = num_splits[2]; i < num_splits[3]; i++)
            lseaccum[i][1][head] = -INFINITY;
        combine(2, 1, head);
        ck_assert_int_eq(row.state, ASSAY_MLA_COMBINED_EMPTY);
        ck_assert_double_eq(row.out[7], 0);
        ck_assert_double_eq(assay_mla_combined_lse(&row), (double)INFINITY);
    }
}
END_TEST

static void check_state(enum assay_mla_combined_state of_row,
                        enum assay_mla_combined_state of_column)
{
    combine(2, 0, 0);
    ck_assert_int_eq(row.state, of_row);
    ck_assert_int_eq(row.out_state[9], of_column);
}

START_TEST(what_is_no_number_is_told_apart)
{
    const enum assay_mla_combined_state finite = ASSAY_MLA_COMBINED_FINITE;
    const enum assay_mla_combined_state nan = ASSAY_MLA_COMBINED_NAN;
    const enum assay_mla_combined_state unknown = ASSAY_MLA_COMBINED_UNKNOWN;
    fill(true);
    float *const lse = &lseaccum[num_splits[2] + 1][0][0];
    float *const partial = &oaccum[num_splits[2] + 1][0][0][9];
    *lse = 1;
    check_state(finite, finite);
    *partial = NAN;
    check_state(finite, nan);
    ck_assert_int_eq(row.out_state[8], finite);
    *partial = INFINITY;
    check_state(finite, unknown);
    *partial = NAN;
    *lse = -INFINITY;
    check_state(finite, unknown); /* 0 * NaN, or left out */
    *partial = 0;
    *lse = NAN;
    check_state(nan, nan);
    *lse = INFINITY;
    check_state(unknown, unknown);
    *lse = 0;
    sinks[0] = NAN;
    check_state(unknown, unknown);
    sinks[0] = -3e38f;
    check_state(unknown, unknown);
    sinks[0] = 0;
    num_splits[3] = 169;
    check_state(unknown, unknown);
    num_splits[3] = num_splits[2];
    check_state(unknown, unknown);
    num_splits[3] = 168;
    check_state(finite, finite);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        splits_add_up_by_their_weights,
        a_single_split_that_counts_is_itself,
        rows_without_keys_are_zero_whatever_the_sink,
        what_is_no_number_is_told_apart,
        NULL,
    };
    return run_tests("oracle_mla_combine", tests);
}
