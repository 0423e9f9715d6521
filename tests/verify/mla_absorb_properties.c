/* SPDX-License-Identifier: MIT */
/* The relations of mla_absorb: the model keeps to them in both forms, kernels that are
 * wrong within the bound do not. */
#include "ref/mla_absorb_problem.h"
#include "tests/harness.h"
#include "tests/verify/related_case.h"

#include <cblas.h>

START_TEST(model_keeps_to_every_relation_in_both_forms)
{
    static const char *const lines[] = {
        "mla_absorb n=21 s_q=5 h_q=3",
        "mla_absorb n=21 s_q=5 h_q=3 form=expanded out=f32",
        "mla_absorb n=70 s_q=2 h_q=2 d_h=40 d_r=2 form=expanded",
        "mla_absorb n=9 s_q=9 h_q=4 d=33 d_c=17 out=f32",
    };
    static const char *const kinds[] = { "normal", "uniform", "positive" };
    for (int i = 0; i < 4 * 3; i++) {
        char line[256];
        snprintf(line, sizeof(line), "%s data=%s seed=%d", lines[i / 3], kinds[i % 3], i);
        const struct assay_named_numerics *const table = parsed(line).operation->numerics;
        for (int row = 0; table[row].name; row++) {
            char with[512];
            snprintf(with, sizeof(with), "%s as=%s", line, table[row].name);
            ck_assert_int_eq(expect_model_keeps_to_all(with), 4);
        }
    }
    ck_assert_int_eq(expect_model_keeps_to_all("mla_absorb n=16 data=exact h_q=1"), 1);
}
END_TEST

START_TEST(relations_judge_what_they_name)
{
    static const char line[] = "mla_absorb n=21 s_q=5 h_q=3 d_h=16 out=f32 seed=1";
    ck_assert_int_eq(expect_model_keeps_to(line, "negation"), 5 * 3 * 16);
    ck_assert_int_eq(expect_model_keeps_to(line, "last-token"), 4 * 3 * 16);
    ck_assert_int_eq(expect_model_keeps_to(line, "heads"), 5 * 3 * 16);
    ck_assert_int_eq(expect_model_keeps_to(line, "fewer-queries"), 2 * 3 * 16);
}
END_TEST

static void add_to_o(const struct related_run *run, int64_t row, uint32_t units)
{
    const struct assay_tensor *const o = &run->tensors.item[ASSAY_MLA_ABSORB_O];
    const int64_t element = row * o->shape[2];
    assay_tensor_set_bits(o, element, assay_tensor_bits(o, element) + units);
}

static void by_sign(const struct related_run *run)
{
    run_model(run);
    add_to_o(run, 0,
             assay_tensor_bits(&run->tensors.item[ASSAY_MLA_ABSORB_W_UV], 0) >> 15);
}

static void by_last_token(const struct related_run *run)
{
    const struct assay_tensor *const hidden = &run->tensors.item[ASSAY_MLA_ABSORB_HIDDEN];
    run_model(run);
    add_to_o(run, 0, assay_tensor_bits(hidden, assay_tensor_elements(hidden) - 1) >> 15);
}

static void by_head(const struct related_run *run)
{
    run_model(run);
    add_to_o(run, 0, 1);
}

static void by_count_of_queries(const struct related_run *run)
{
    run_model(run);
    add_to_o(run, 0, run->tensors.item[ASSAY_MLA_ABSORB_O].shape[0] < 4);
}

START_TEST(kernels_that_are_wrong_within_the_bound_break_their_relation)
{
    static const struct {
        const char *property;
        related_kernel *kernel;
    } rows[] = {
        { "negation", by_sign },
        { "last-token", by_last_token },
        { "heads", by_head },
        { "fewer-queries", by_count_of_queries },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct related_verdict verdict =
            relate("mla_absorb n=21 s_q=5 h_q=3 out=f32 seed=1", rows[i].property,
                   rows[i].kernel);
        ck_assert_msg(is_caught(&verdict), "%s: %lld wrong, %lld and %lld outside",
                      rows[i].property, (long long)verdict.wrong,
                      (long long)verdict.outside, (long long)verdict.first_outside);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        model_keeps_to_every_relation_in_both_forms,
        relations_judge_what_they_name,
        kernels_that_are_wrong_within_the_bound_break_their_relation,
        NULL,
    };
    openblas_set_num_threads(1);
    return run_tests("mla_absorb_properties", tests);
}
