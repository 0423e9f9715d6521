/* SPDX-License-Identifier: MIT */
/* Tests of the checks "batch", "properties" and "plan" on candidates that treat the
 * second case otherwise than the first, or not at all. */
#include "tests/verify/own_relations.h"
#include "verify/check/rerun.h"

/* --- candidates that treat the second case otherwise -------------------------------- */

static enum assay_status only_first(const struct assay_run_call *call, int run)
{
    (void)call;
    return run == 1 ? ASSAY_RAN : ASSAY_UNSUPPORTED;
}

static enum assay_status crash_in_second(const struct assay_run_call *call, int run)
{
    (void)call;
    return run == 1 ? ASSAY_RAN : ASSAY_CRASHED;
}

START_TEST(a_second_case_that_the_candidate_does_not_do_is_passed_over)
{
    struct assay_result result = run_setting(
        &(struct setting){ "batch", three, .claim = invariant, .status = only_first });
    check_silence(&result);
    ck_assert_str_eq(result.warning, "about run 1");
    assay_result_close(&result);
    result = run_setting(&(struct setting){ "batch", three, .claim = invariant,
                                            .status = crash_in_second });
    ck_assert_int_eq(result.status, ASSAY_CRASHED);
    ck_assert_str_eq(result.message.text, "property more_rows: broken on purpose");
    ck_assert_str_eq(result.warning, "about run 2");
    assay_result_close(&result);
}
END_TEST

static enum assay_status claim_by_rows(void *state, const struct assay_run_call *call,
                                       struct assay_backend_claim *claim,
                                       struct assay_message *message)
{
    (void)state, (void)message;
    *claim = (struct assay_backend_claim){ .has_numerics = true };
    const bool is_first = assay_case_value(call->the_case, "m") == 6;
    strcpy(claim->numerics, is_first ? "deepgemm-1d2d" : "deepgemm-1d2d,promote_k=64");
    return ASSAY_RAN;
}

static enum assay_status claim_six_rows(void *state, const struct assay_run_call *call,
                                        struct assay_backend_claim *claim,
                                        struct assay_message *message)
{
    (void)state;
    *claim = invariant;
    return assay_case_value(call->the_case, "m") == 6
               ? ASSAY_RAN
               : assay_fail(message, ASSAY_UNSUPPORTED, "six rows only");
}

/* The bound of the second run is for what was claimed about the second case. */
static int oracle_calls[2];

static enum assay_status watch_numerics(const void *problem, const void *given,
                                        const struct assay_tensors *tensors, int64_t part,
                                        const struct assay_expected *expected)
{
    const struct assay_operation *const gemm = assay_operation_find("fp8_gemm_nt");
    const bool is_second = assay_tensors_find(tensors, "d")->shape[0] == 9;
    ck_assert_str_eq(gemm->numerics[0].name, "deepgemm-1d2d");
    ck_assert((memcmp(given, gemm->numerics[0].numerics, gemm->numerics_bytes) != 0) ==
              is_second);
    oracle_calls[is_second]++;
    return gemm->oracle(problem, given, tensors, part, expected);
}

START_TEST(another_claim_about_the_second_case_leaves_the_bound)
{
    static enum assay_status (*const claims[])(
        void *, const struct assay_run_call *, struct assay_backend_claim *,
        struct assay_message *) = { claim_by_rows, claim_six_rows };
    for (int i = 0; i < 2; i++) {
        struct assay_operation operation = *assay_operation_find("fp8_gemm_nt");
        struct assay_backend changing = somebodys;
        struct assay_trial_plan plan = plan_of_check("batch");
        struct assay_case the_case = parsed_case(dense);
        operation.properties = three;
        operation.oracle = watch_numerics;
        oracle_calls[0] = oracle_calls[1] = 0;
        the_case.operation = &operation;
        changing.claim = claims[i];
        plan.candidate = &changing;
        rerun_backend.after = flip_two_in_second;
        rerun_backend.status = NULL;
        struct assay_result result = run_plan(&plan, &the_case, NULL);
        check_silence(&result);
        ck_assert_int_eq(rerun_backend.runs, i ? 1 : 2);
        ck_assert(oracle_calls[0] == 0 && (oracle_calls[1] > 0) == !i);
        assay_result_close(&result);
    }
}
END_TEST

/* Also where as= names what both are compared with. */
START_TEST(other_numerics_claimed_leave_the_bound_whatever_the_case_says)
{
    struct assay_operation operation = *assay_operation_find("fp8_gemm_nt");
    struct assay_backend changing = somebodys;
    struct assay_trial_plan plan = plan_of_check("batch");
    struct assay_case the_case = parsed_case(dense);
    strcpy(the_case.numerics, "deepgemm-1d2d");
    operation.properties = three;
    the_case.operation = &operation;
    changing.claim = claim_by_rows;
    plan.candidate = &changing;
    rerun_backend.after = flip_two_in_second;
    rerun_backend.status = NULL;
    struct assay_result result = run_plan(&plan, &the_case, NULL);
    check_silence(&result);
    ck_assert_int_eq(rerun_backend.runs, 2);
    assay_result_close(&result);
}
END_TEST

static const struct assay_named_numerics *other_default_above_six(const void *problem)
{
    const struct assay_operation *const gemm = assay_operation_find("fp8_gemm_nt");
    struct assay_tensors tensors = { .count = 0 };
    gemm->shape(problem, &tensors);
    const bool is_first = assay_tensors_find(&tensors, "d")->shape[0] == 6;
    ck_assert_str_eq(gemm->numerics[1].name, "deepgemm-1d1d");
    return &gemm->numerics[is_first ? 0 : 1];
}

START_TEST(other_default_numerics_of_the_second_case_leave_the_bound)
{
    struct assay_operation operation = *assay_operation_find("fp8_gemm_nt");
    struct assay_case the_case = parsed_case(dense);
    const struct assay_trial_plan plan = plan_of_check("batch");
    operation.properties = three;
    operation.default_numerics = other_default_above_six;
    the_case.operation = &operation;
    rerun_backend.claim = numerics;
    rerun_backend.after = flip_two_in_second;
    rerun_backend.status = NULL;
    struct assay_result result = run_plan(&plan, &the_case, NULL);
    check_silence(&result);
    ck_assert_int_eq(rerun_backend.runs, 2);
    assay_result_close(&result);
}
END_TEST

static enum assay_status crash_in_second_claim(void *state,
                                               const struct assay_run_call *call,
                                               struct assay_backend_claim *claim,
                                               struct assay_message *message)
{
    (void)state;
    *claim = invariant;
    return assay_case_value(call->the_case, "m") == 6
               ? ASSAY_RAN
               : assay_fail(message, ASSAY_CRASHED, "nine rows are too many");
}

START_TEST(a_claim_that_fails_fails_the_case_and_says_where)
{
    struct assay_operation operation = *assay_operation_find("fp8_gemm_nt");
    struct assay_backend crashing = somebodys;
    struct assay_trial_plan plan = plan_of_check("batch");
    struct assay_case the_case = parsed_case(dense);
    operation.properties = three;
    the_case.operation = &operation;
    crashing.claim = crash_in_second_claim;
    plan.candidate = &crashing;
    rerun_backend.after = NULL;
    rerun_backend.status = NULL;
    struct assay_result result = run_plan(&plan, &the_case, NULL);
    ck_assert_int_eq(result.status, ASSAY_CRASHED);
    ck_assert_str_eq(result.message.text, "property more_rows: nine rows are too many");
    assay_result_close(&result);
}
END_TEST

START_TEST(recordings_cannot_run_again)
{
    struct assay_backend recorded = somebodys;
    struct assay_operation operation = *assay_operation_find("fp8_gemm_nt");
    struct assay_case the_case = parsed_case(dense);
    recorded.is_recording = true;
    operation.properties = three;
    the_case.operation = &operation;
    rerun_backend.after = NULL;
    rerun_backend.status = NULL;
    struct assay_trial_plan plan = plan_of_check("batch");
    plan.candidate = &recorded;
    plan.checks = assay_checks;
    plan.runs_trusted_again = true;
    struct assay_result result = run_plan(&plan, &the_case, NULL);
    ck_assert_int_eq(rerun_backend.runs, 1);
    ck_assert_uint_eq(result.checks, bit_of_check("bound"));
    assay_result_close(&result);
}
END_TEST

START_TEST(no_failure_is_lost_when_there_are_too_many)
{
    struct assay_result result = { .finding_count = 0 };
    for (int i = 0; i < ASSAY_MAX_FINDINGS; i++)
        assay_result_add_finding(&result, "plan", i == ASSAY_MAX_FINDINGS - 1);
    ck_assert_ptr_eq(assay_result_add_finding(&result, "repeat", false),
                     &result.finding[ASSAY_MAX_FINDINGS - 1]);
    ck_assert_int_eq(result.finding_count, ASSAY_MAX_FINDINGS);
    ck_assert(result.finding[ASSAY_MAX_FINDINGS - 1].is_failure);
    ck_assert(!result.finding[0].is_failure);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_second_case_that_the_candidate_does_not_do_is_passed_over,
        another_claim_about_the_second_case_leaves_the_bound,
        other_numerics_claimed_leave_the_bound_whatever_the_case_says,
        other_default_numerics_of_the_second_case_leave_the_bound,
        a_claim_that_fails_fails_the_case_and_says_where,
        recordings_cannot_run_again,
        no_failure_is_lost_when_there_are_too_many,
        NULL,
    };
    return run_tests("relation_claims", tests);
}
