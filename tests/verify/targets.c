/* SPDX-License-Identifier: MIT */
/* What operations cost, against rates that upstream's benchmarks print: GB/s over TFLOP/s
 * of one run say how many bytes they count to an operation. */
#include "tests/harness.h"
#include "verify/operation/operation.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct listed {
    double tflop_per_s, gb_per_s;
};

static struct assay_cost cost_of(const char *line)
{
    struct assay_case the_case;
    struct assay_message message;
    union assay_problem_storage problem;
    ck_assert_msg(assay_case_parse(line, &the_case, &message) == ASSAY_RAN, "%s: %s",
                  line, message.text);
    ck_assert_int_eq(the_case.operation->bind(&the_case, &problem, &message), ASSAY_RAN);
    return the_case.operation->cost(&problem);
}

static void check_bytes(const char *line, const struct listed *listed)
{
    const struct assay_cost cost = cost_of(line);
    const double seconds = 2 * cost.multiply_adds / (1e12 * listed->tflop_per_s);
    const double ratio = cost.bytes / seconds / (1e9 * listed->gb_per_s);
    ck_assert_msg(fabs(ratio - 1) < 0.01, "%s: %g of the bytes", line, ratio);
}

/* Calls check_bytes for each case with rates in front of it; returns their number. */
static int check_suite(FILE *file)
{
    char line[ASSAY_MAX_CASE_LINE];
    int count = 0;
    while (fgets(line, sizeof(line), file)) {
        struct listed listed;
        const char *const gb_per_s = strstr(line, " gbps=");
        if (sscanf(line, "#: upstream cold=%lf", &listed.tflop_per_s) != 1 || !gb_per_s)
            continue;
        ck_assert_int_eq(sscanf(gb_per_s, " gbps=%lf", &listed.gb_per_s), 1);
        ck_assert_ptr_nonnull(fgets(line, sizeof(line), file));
        line[strcspn(line, "\n")] = '\0';
        check_bytes(line, &listed);
        count++;
    }
    return count;
}

START_TEST(bytes_and_multiply_adds_give_the_rates_upstream_lists_side_by_side)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/suites/targets.cases", corpus_folder());
    FILE *const file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s can't be read", path);
    const int count = check_suite(file);
    (void)fclose(file);
    ck_assert_int_eq(count, 26);
}
END_TEST

START_TEST(padded_rows_count_where_groups_lie_behind_each_other_and_masked_ones_do_not)
{
    static const char contiguous[] =
        "m_grouped_fp8_gemm_nt_contiguous group_m=1,129 n=16 k=256 seed=0";
    static const char masked[] = "m_grouped_fp8_gemm_nt_masked groups=2 m_max=128 n=16 "
                                 "k=256 masked_m=1,100 seed=0";
    const double weights = 2 * (16 * 256 + 4 * 2), row = 256 + 4 * 2 + 2 * 16;
    ck_assert_double_eq(cost_of(contiguous).multiply_adds, 384.0 * 16 * 256);
    ck_assert_double_eq(cost_of(contiguous).bytes, weights + 384 * row);
    ck_assert_double_eq(cost_of(masked).multiply_adds, 101.0 * 16 * 256);
    ck_assert_double_eq(cost_of(masked).bytes, weights + 101 * row);
}
END_TEST

START_TEST(k_grouped_operands_are_read_once_and_c_and_d_of_each_group)
{
    static const char *const lines[] = {
        "k_grouped_fp8_gemm_nt_contiguous m=128 n=24 ks=128,384 seed=0",
        "k_grouped_fp8_gemm_tn_contiguous m=128 n=24 ks=128,384 seed=0",
    };
    for (int i = 0; i < 2; i++) {
        const struct assay_cost cost = cost_of(lines[i]);
        ck_assert_double_eq(cost.multiply_adds, 128.0 * 24 * 512);
        ck_assert_double_eq(cost.bytes,
                            (128 + 24) * (512 + 4 * 4) + 2.0 * 2 * 4 * 128 * 24);
    }
}
END_TEST

START_TEST(tokens_that_two_lists_name_are_read_once)
{
    const double rows = 2.0 * 64 * (576 + 512);
    const struct assay_cost one =
        cost_of("mla_sparse_decode kv=v32 b=1 h_q=64 s_q=2 topk=64 s_kv=128 seed=0");
    ck_assert_double_eq_tol(one.bytes, 96 * 656 + 2 * rows, 1e-3);
    const struct assay_cost all =
        cost_of("mla_sparse_decode kv=v32 b=1 h_q=64 s_q=2 topk=64 seed=0");
    ck_assert_double_eq_tol(all.bytes, 64 * 656 + 2 * rows, 1e-3);
    const struct assay_cost prefill =
        cost_of("mla_sparse_prefill s_q=2 h_q=64 s_kv=256 d_qk=576 topk=128 seed=0");
    ck_assert_double_eq_tol(prefill.bytes, 192 * 1152 + 2 * rows + 4 * 2 * 128, 1e-3);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        bytes_and_multiply_adds_give_the_rates_upstream_lists_side_by_side,
        padded_rows_count_where_groups_lie_behind_each_other_and_masked_ones_do_not,
        k_grouped_operands_are_read_once_and_c_and_d_of_each_group,
        tokens_that_two_lists_name_are_read_once,
        NULL,
    };
    return run_tests("targets", tests);
}
