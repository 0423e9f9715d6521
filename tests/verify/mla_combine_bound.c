/* SPDX-License-Identifier: MIT */
/* The bound of combine against simulated kernels whose functions err as far as they may,
 * in any order of splits. */
#include "ref/kernel/mla_combine.h"
#include "tests/harness.h"
#include "verify/operation/mla/mla_bound.h"

#include <math.h>
#include <string.h>

enum { D_V = 512, H_Q = 8, MOST = 160 };

static uint64_t state = 1;
static struct assay_tensors tensors;
static struct assay_mla_combine_problem problem;
static float oaccum[MOST][H_Q][D_V], lseaccum[MOST][H_Q], sinks[H_Q];
static int32_t num_splits[2];
static double out[2][H_Q * D_V], lse[2][H_Q];

static const struct assay_mla_combine_numerics upstream = {
    .functions = ASSAY_MLA_FUNCTIONS_HARDWARE,
    .flush = 1,
    .sink_product = ASSAY_MLA_SINK_FUSED,
    .lse_form = ASSAY_MLA_LSE_SEPARATE,
    .zero_weight = ASSAY_MLA_ZERO_WEIGHT_KEPT,
};

static uint32_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 32);
}

static double uniform(void)
{
    return (double)draw() * 0x1p-31 - 1;
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

/* @spread: of lse. One split in @share has no key. */
static void fill(int splits, double spread, double center, int share, bool has_sink)
{
    problem = (struct assay_mla_combine_problem){ .b = 1,
                                                  .s_q = 1,
                                                  .h_q = H_Q,
                                                  .splits = splits,
                                                  .format = ASSAY_BF16,
                                                  .has_sink = has_sink };
    num_splits[1] = splits;
    for (int i = 0; i < splits; i++)
        for (int head = 0; head < H_Q; head++) {
            const bool is_empty = i > 0 && share && draw() % (uint32_t)share == 0;
            lseaccum[i][head] =
                is_empty ? -INFINITY : (float)(center + spread * uniform());
            for (int d = 0; d < D_V; d++)
                oaccum[i][head][d] = is_empty ? 0 : (float)uniform();
        }
    for (int head = 0; head < H_Q; head++)
        sinks[head] = (float)(log(2) * (center + 3 * uniform()));
}

static void expect(const struct assay_mla_combine_numerics *numerics)
{
    struct assay_expected expected[ASSAY_MAX_TENSORS] = { 0 };
    tensors.count = 0;
    add_tensor("oaccum", ASSAY_F32, 4, SHAPE(problem.splits, 1, H_Q, D_V), oaccum);
    add_tensor("lseaccum", ASSAY_F32, 3, SHAPE(problem.splits, 1, H_Q), lseaccum);
    add_tensor("num_splits", ASSAY_I32, 1, SHAPE(2), num_splits);
    add_tensor("attn_sink", ASSAY_F32, 1, SHAPE(H_Q), sinks);
    add_tensor("out", problem.format, 4, SHAPE(1, 1, H_Q, D_V), NULL);
    add_tensor("lse", ASSAY_F32, 3, SHAPE(1, H_Q, 1), NULL);
    expected[4] = (struct assay_expected){ out[0], out[1] };
    expected[5] = (struct assay_expected){ lse[0], lse[1] };
    ck_assert_int_eq(assay_mla_combine_expect(&problem, numerics, &tensors, 0, expected),
                     ASSAY_RAN);
}

/* --- a simulated kernel ------------------------------------------------------------ */

static double way; /* of errors: 0 random */

static double direction(void)
{
    return way == 0 ? (draw() % 2 ? 1 : -1) : way;
}

static float ex2(float x, double towards)
{
    const double value = exp2((double)x);
    if (x == 0) return 1;
    return value < 0x1p-126 ? 0 : (float)(value * (1 + towards * 1.5 * 0x1p-24));
}

static float lg2(float x, double towards)
{
    const double value = log2((double)x);
    return x == 1 ? 0
                  : (float)(value + towards * (2.625 * 0x1p-24 + fabs(value) * 0x1p-24));
}

static double narrowed(double x)
{
    if (x == 0) return 0;
    const int quantum = (ilogb(x) > -126 ? ilogb(x) : -126) - 7;
    return ldexp(rint(ldexp(x, -quantum)), quantum);
}

struct result {
    double out[D_V], lse;
};

static void simulate(int head, struct result *result)
{
    const int splits = (int)problem.splits, first = (int)(draw() % (uint32_t)splits);
    const float log2_e = 0x1.715476p+0f, ln_2 = 0x1.62e430p-1f;
    const double sums = direction();
    float largest = -INFINITY, sum = 0, output[D_V] = { 0 };
    for (int i = 0; i < splits; i++)
        largest = fmaxf(largest, lseaccum[i][head]);
    for (int i = 0; i < splits; i++) {
        const float difference = lseaccum[(first + i) % splits][head] - largest;
        sum = sum + ex2(difference, sums);
    }
    float total = lg2(sum, sums) + largest;
    result->lse = (double)(float)(total * ln_2);
    if (problem.has_sink) {
        const float factor = 1 + ex2(fmaf(sinks[head], log2_e, -total), sums);
        total = total + lg2(factor, sums);
    }
    for (int i = 0; i < splits; i++) {
        const int split = (first + i) % splits;
        const float difference = lseaccum[split][head] - total;
        const float weight = ex2(difference, way == 0 ? direction() : -sums);
        for (int d = 0; d < D_V; d++)
            output[d] = fmaf(weight, oaccum[split][head][d], output[d]);
    }
    for (int d = 0; d < D_V; d++)
        result->out[d] = narrowed((double)output[d]);
}

static double ratio(double found, double value, double bound)
{
    if (found == value) return 0;
    if (!(fabs(found - value) <= bound))
        ck_abort_msg("%a, but %a within %a (%d splits)", found, value, bound,
                     (int)problem.splits);
    return fabs(found - value) / bound;
}

START_TEST(simulated_kernels_stay_within_the_bound)
{
    static const int counts[] = { 1, 2, 3, 7, 33, 160 };
    static struct result result;
    double largest_out = 0, largest_lse = 0;
    for (int i = 0; i < 6 * 2 * 3 * 3; i++) {
        const double centers[3] = { 0, 30, 3000 };
        fill(counts[i % 6], i / 12 % 3 * 8, centers[i / 36 % 3], i % 5, i / 6 % 2 != 0);
        expect(&upstream);
        for (int head = 0; head < H_Q; head++)
            for (int turn = -1; turn <= 1; turn++) {
                way = turn;
                simulate(head, &result);
                largest_lse =
                    fmax(largest_lse, ratio(result.lse, lse[0][head], lse[1][head]));
                for (int d = 0; d < D_V; d++)
                    largest_out =
                        fmax(largest_out, ratio(result.out[d], out[0][head * D_V + d],
                                                out[1][head * D_V + d]));
            }
    }
    ck_assert_double_gt(largest_out, 0.5);
    ck_assert_double_gt(largest_lse, 0.5);
}
END_TEST

START_TEST(splits_without_keys_change_no_bound)
{
    static double bounds[H_Q * D_V];
    fill(3, 4, 0, 0, false);
    expect(&upstream);
    memcpy(bounds, out[1], sizeof(bounds));
    const double of_lse = lse[1][2];
    for (int i = 3; i < 50; i++)
        for (int head = 0; head < H_Q; head++) {
            lseaccum[i][head] = -INFINITY;
            memset(oaccum[i][head], 0, sizeof(oaccum[i][head]));
        }
    problem.splits = num_splits[1] = 50;
    expect(&upstream);
    ck_assert_double_eq(lse[1][2], of_lse);
    for (int at = 0; at < H_Q * D_V; at++)
        ck_assert_double_eq_tol(out[1][at], bounds[at], 0x1p-110);
}
END_TEST

START_TEST(a_single_split_is_rounded_and_nothing_else)
{
    fill(1, 9, 5, 0, false);
    for (int d = 0; d < D_V; d += 2) /* next to the middle of two codes */
        oaccum[0][0][d] = 1 + 0x1p-8f + (d % 4 ? 0x1p-23f : -0x1p-23f);
    expect(&upstream);
    for (int d = 0; d < D_V; d++) {
        ck_assert_double_eq(out[0][d], (double)oaccum[0][0][d]);
        ck_assert_double_eq(out[1][d], fabs(narrowed(out[0][d]) - out[0][d]));
    }
}
END_TEST

START_TEST(nan_is_claimed_unless_it_may_be_skipped)
{
    struct assay_mla_combine_numerics numerics = upstream;
    fill(5, 1, 0, 0, false);
    oaccum[2][1][7] = NAN;
    lseaccum[3][4] = NAN;
    for (int may_skip = 0; may_skip < 2; may_skip++) {
        numerics.zero_weight =
            may_skip ? ASSAY_MLA_ZERO_WEIGHT_SKIPPED : ASSAY_MLA_ZERO_WEIGHT_KEPT;
        expect(&numerics);
        ck_assert(isinf(out[1][D_V + 7]) == may_skip);
        ck_assert(isnan(out[0][D_V + 7]) == !may_skip);
        ck_assert(isfinite(out[0][D_V + 8]) && out[1][D_V + 8] < 0.01);
        ck_assert(isnan(lse[0][4]) && lse[1][4] == 0);
    }
    lseaccum[3][4] = INFINITY;
    lseaccum[2][1] = -INFINITY; /* 0 * NaN, or left out */
    expect(&upstream);
    ck_assert(isinf(lse[1][4]) && isinf(out[1][4 * D_V]));
    ck_assert(isinf(out[1][D_V + 7]));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        simulated_kernels_stay_within_the_bound,
        splits_without_keys_change_no_bound,
        a_single_split_is_rounded_and_nothing_else,
        nan_is_claimed_unless_it_may_be_skipped,
        NULL,
    };
    return run_tests("verify_mla_combine_bound", tests);
}
