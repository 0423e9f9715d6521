/* SPDX-License-Identifier: MIT */
/* Tests of the checks "batch", "properties" and "plan": which relations are asked, and
 * what is said of those that do not hold. */
#include "ref/unit/scalar.h"
#include "tests/verify/own_relations.h"

static bool derive_nothing(const struct assay_property_run *first,
                           struct assay_case *second)
{
    (void)first, (void)second;
    return false;
}

static bool transform_nothing(const struct assay_property_run *first,
                              const struct assay_property_run *second)
{
    (void)first, (void)second;
    return false;
}

static const struct assay_property silent[] = {
    { .name = "underived",
      .kind = ASSAY_PROPERTY_MATHEMATICS,
      .derive = derive_nothing,
      .transform = double_sfa },
    { .name = "untransformed",
      .kind = ASSAY_PROPERTY_MATHEMATICS,
      .transform = transform_nothing },
    { .name = NULL },
};

static const char *const checks[] = { "properties", "batch", "plan" };

START_TEST(the_model_keeps_every_relation)
{
    static const struct assay_backend_claim *const claims[] = { &nothing, &deterministic,
                                                                &invariant, &numerics };
    for (int check = 0; check < 3; check++)
        for (int i = 0; i < 4; i++) {
            struct assay_result result = run_setting(
                &(struct setting){ checks[check], three, .claim = *claims[i] });
            check_silence(&result);
            ck_assert_int_eq(rerun_backend.runs, 2); /* each check asks its own */
            ck_assert_int_eq(result.candidate_runs, 2);
            /* Another case, another claim. */
            ck_assert_int_eq(rerun_backend.claims, check == 1 ? 2 : 1);
            ck_assert_uint_eq(result.checks, bit_of_check(checks[check]));
            assay_result_close(&result);
        }
}
END_TEST

START_TEST(relations_that_say_nothing_run_nothing)
{
    for (int i = 0; i < 2; i++) {
        struct assay_result result = run_setting(
            &(struct setting){ "properties", i ? silent : NULL, .after = NULL });
        check_silence(&result);
        ck_assert_int_eq(rerun_backend.runs, 1);
        ck_assert_uint_eq(result.checks, i ? bit_of_check("properties") : 0);
        assay_result_close(&result);
    }
    /* None of that kind. */
    struct assay_result result =
        run_setting(&(struct setting){ "plan", silent, .after = NULL });
    ck_assert_uint_eq(result.checks, 0);
    assay_result_close(&result);
}
END_TEST

/* --- broken relations --------------------------------------------------------------- */

static void flip_in_new_rows(const struct assay_run_call *call, int run)
{
    const struct assay_tensor *const d = tensor_d(call);
    if (run == 2) assay_tensor_set_bits(d, 48, assay_tensor_bits(d, 48) ^ 1);
}

static void write_a_million(const struct assay_run_call *call, int run)
{
    if (run == 2) assay_tensor_set_bits(tensor_d(call), 21, assay_f32_bits(1e6f));
}

START_TEST(other_bits_than_the_first_run_implies_are_found)
{
    static const struct assay_backend_claim *const claims[] = { &deterministic,
                                                                &numerics };
    for (int i = 0; i < 2; i++) {
        struct assay_result result = run_setting(&(struct setting){
            "properties", three, .claim = *claims[i], .after = flip_two_in_second });
        const struct assay_finding *const finding = &result.finding[0];
        check_finding(&result, "properties",
                      "property doubled_scales: 2 elements are not what the first run's "
                      "outputs imply (twice the scales, twice the result)");
        ck_assert_int_eq(finding->elements, 2);
        ck_assert_int_eq(finding->worst.index, 13);
        ck_assert_uint_eq(finding->worst.ulps, 1);
        ck_assert_uint_eq(finding->worst.candidate ^ finding->worst.reference, 1);
        ck_assert_int_eq(finding->tensor.shape[0], 6);
        assay_result_close(&result);
    }
}
END_TEST

static bool expect_the_same(const struct assay_property_run *first,
                            const struct assay_property_run *second, int output,
                            int64_t element, uint32_t *bits)
{
    (void)second;
    *bits = assay_tensor_bits(&first->tensors->item[output], element);
    return true;
}

static int64_t written;

static void write_in_second(const struct assay_run_call *call, int run)
{
    if (run == 2) assay_tensor_set_bits(tensor_d(call), written, 0);
}

START_TEST(what_may_hold_anything_is_no_part_of_a_relation)
{
    static const struct assay_property same[] = { { .name = "same",
                                                    .meaning = "nothing changes",
                                                    .transform = copy_inputs,
                                                    .expect = expect_the_same },
                                                  { .name = NULL } };
    struct assay_operation operation =
        *assay_operation_find("m_grouped_fp8_gemm_nt_masked");
    /* Elements from 24 on may hold anything. */
    struct assay_case the_case = parsed_case("m_grouped_fp8_gemm_nt_masked groups=1 "
                                             "m_max=128 n=8 k=160 masked_m=3 out=f32");
    struct assay_trial_plan plan = plan_of_check("properties");
    operation.properties = same;
    the_case.operation = &operation;
    plan.uses_oracle = false;
    rerun_backend.claim = deterministic;
    rerun_backend.after = write_in_second;
    rerun_backend.status = NULL;
    for (written = 23; written < 25; written++) {
        struct assay_result result = run_plan(&plan, &the_case, NULL);
        ck_assert_int_eq(result.finding_count, written == 23);
        assay_result_close(&result);
    }
}
END_TEST

static enum assay_status refuse(const void *problem, const struct assay_tensors *tensors,
                                struct assay_message *message)
{
    (void)problem, (void)tensors;
    return assay_fail(message, ASSAY_REFUSED, "never right");
}

START_TEST(relations_follow_no_indices_of_unsafe_inputs)
{
    struct assay_operation operation = *assay_operation_find("fp8_gemm_nt");
    struct assay_case the_case = parsed_case(dense);
    const struct assay_trial_plan plan = plan_of_check("properties");
    operation.properties = three;
    operation.check_inputs = refuse;
    the_case.operation = &operation;
    the_case.is_unsafe = true;
    rerun_backend.claim = deterministic;
    rerun_backend.after = NULL;
    rerun_backend.status = NULL;
    struct assay_result result = run_plan(&plan, &the_case, NULL);
    check_silence(&result);
    ck_assert_int_eq(rerun_backend.runs, 1);
    assay_result_close(&result);
}
END_TEST

START_TEST(bits_in_other_company_count_where_they_are_promised)
{
    static const struct {
        const struct assay_backend_claim *claim;
        bool is_promised;
    } rows[] = { { &invariant, true },
                 { &numerics, true },
                 { &deterministic, false },
                 { &nothing, false } };
    for (int i = 0; i < 4; i++) {
        struct assay_result result = run_setting(&(struct setting){
            "batch", three, .claim = *rows[i].claim, .after = flip_two_in_second });
        if (rows[i].is_promised) {
            check_finding(&result, "batch",
                          "property more_rows: 2 elements are not what the first run's "
                          "outputs imply (rows do not know of others)");
            ck_assert_int_eq(result.finding[0].tensor.shape[0], 9);
        } else {
            check_silence(&result);
        }
        assay_result_close(&result);
        result = run_setting(&(struct setting){ "batch", three, .claim = *rows[i].claim,
                                                .after = flip_in_new_rows });
        check_silence(&result);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(bits_are_not_asked_of_what_does_not_repeat_its_own)
{
    struct assay_result result = run_setting(&(struct setting){
        "properties", three, .claim = nothing, .after = flip_two_in_second });
    check_silence(&result);
    assay_result_close(&result);
}
END_TEST

START_TEST(the_bound_holds_for_every_second_run)
{
    static const char *const sentences[] = {
        ("property doubled_scales: 1 element is beyond the bound (twice the scales, "
         "twice the result)"),
        "property more_rows: 1 element is beyond the bound (rows do not know of others)",
        "property another_plan: 1 element is beyond the bound (the same work)",
    };
    for (int i = 0; i < 3; i++)
        for (int has_no_oracle = 0; has_no_oracle < 2; has_no_oracle++) {
            struct assay_result result = run_setting(&(struct setting){
                checks[i], three, .claim = nothing, .after = write_a_million,
                .has_no_oracle = has_no_oracle });
            if (has_no_oracle) {
                check_silence(&result);
            } else {
                check_finding(&result, checks[i], sentences[i]);
                ck_assert_int_eq(result.finding[0].worst.index, 21);
                ck_assert_uint_eq(result.finding[0].worst.candidate,
                                  assay_f32_bits(1e6f));
            }
            assay_result_close(&result);
        }
    struct assay_result both = run_setting(&(struct setting){
        "batch", three, .claim = invariant, .after = write_a_million });
    check_finding(&both, "batch",
                  "property more_rows: 1 element is not what the first run's outputs "
                  "imply, and 1 beyond the bound (rows do not know of others)");
    assay_result_close(&both);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_model_keeps_every_relation,
        relations_that_say_nothing_run_nothing,
        other_bits_than_the_first_run_implies_are_found,
        what_may_hold_anything_is_no_part_of_a_relation,
        relations_follow_no_indices_of_unsafe_inputs,
        bits_in_other_company_count_where_they_are_promised,
        bits_are_not_asked_of_what_does_not_repeat_its_own,
        the_bound_holds_for_every_second_run,
        NULL,
    };
    return run_tests("relation", tests);
}
