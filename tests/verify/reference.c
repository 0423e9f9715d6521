/* SPDX-License-Identifier: MIT */
/* Tests of what a candidate is compared with: another backend, and the model on inputs
 * that the candidate changed. */
#include "ref/unit/scalar.h"
#include "tests/verify/rerun_backend.h"
#include "verify/data/buffers.h"
#include "verify/report/brief.h"

static const char dense[] = "fp8_gemm_nt m=6 n=8 k=160 out=f32 seed=5";
static const char masked[] = "m_grouped_fp8_gemm_nt_masked groups=2 m_max=256 n=8 k=160 "
                             "masked_m=3,0 out=f32 seed=5";

/* --- another backend ---------------------------------------------------------------- */

static void (*distort)(const struct assay_run_call *call, int run);
static enum assay_status claim_status, run_status;
static bool says_it_changed_inputs;

static enum assay_status claim(void *state, const struct assay_run_call *call,
                               struct assay_backend_claim *claim,
                               struct assay_message *message)
{
    (void)state, (void)call;
    *claim = (struct assay_backend_claim){ .is_deterministic = false };
    return claim_status == ASSAY_RAN ? ASSAY_RAN
                                     : assay_fail(message, claim_status, "six rows only");
}

static enum assay_status run(void *state, const struct assay_run_call *call,
                             struct assay_message *message)
{
    const unsigned char *const d = tensor_d(call)->data;
    ck_assert_int_eq(d[0], ASSAY_BUFFER_POISON);
    ck_assert_int_eq(backend_called("model")->run(state, call, message), ASSAY_RAN);
    if (distort) distort(call, 0);
    return run_status == ASSAY_RAN ? ASSAY_RAN
                                   : assay_fail(message, run_status, "broken, too");
}

static void notes(void *state, struct assay_backend_notes *notes)
{
    (void)state;
    *notes = (struct assay_backend_notes){ .has_changed_inputs = says_it_changed_inputs };
}

static const struct assay_backend other = {
    .scheme = "other", .claim = claim, .run = run, .notes = notes
};

static struct assay_trial_plan plan_with(const struct assay_backend *reference)
{
    static char no_numerics[] = "";
    static const struct assay_check *checks[4];
    struct assay_trial_plan plan = plan_of_check("bitwise");
    checks[0] = check_called("bitwise");
    checks[1] = check_called("bound");
    plan.checks = checks;
    plan.reference = reference;
    plan.reference_state = no_numerics;
    plan.reference_text = "other:this one";
    rerun_backend.before = rerun_backend.after = NULL;
    rerun_backend.status = NULL;
    rerun_backend.claim = (struct assay_backend_claim){ .has_numerics = false };
    rerun_backend.has_changed_inputs = says_it_changed_inputs = false;
    distort = NULL;
    claim_status = run_status = ASSAY_RAN;
    return plan;
}

static void flip_one(const struct assay_run_call *call, int run_number)
{
    (void)run_number;
    const struct assay_tensor *const d = tensor_d(call);
    assay_tensor_set_bits(d, 21, assay_tensor_bits(d, 21) ^ 1);
}

static void write_a_million(const struct assay_run_call *call, int run_number)
{
    (void)run_number;
    assay_tensor_set_bits(tensor_d(call), 21, assay_f32_bits(1e6f));
}

START_TEST(the_same_bits_as_another_backend_are_equal)
{
    const struct assay_trial_plan plan = plan_with(&other);
    struct assay_result result = run_line(&plan, dense);
    ck_assert_int_eq(result.status, ASSAY_RAN);
    ck_assert_int_eq(result.verdict, ASSAY_EQUAL);
    ck_assert(result.has_passed && result.output[0].has_bits);
    ck_assert_str_eq(result.reference, "other:this one");
    ck_assert(result.model_max_error_over_bound < 0);
    assay_result_close(&result);
}
END_TEST

START_TEST(another_bit_does_not_pass_unless_the_bound_is_enough)
{
    for (int i = 0; i < 4; i++) {
        struct assay_trial_plan plan = plan_with(&other);
        const bool is_reference_wrong = i & 1, is_bound_enough = i & 2;
        if (is_reference_wrong)
            distort = flip_one;
        else
            rerun_backend.after = flip_one;
        plan.require = is_bound_enough ? ASSAY_BOUNDED : ASSAY_NOT_JUDGED;
        struct assay_result result = run_line(&plan, dense);
        ck_assert_int_eq(result.verdict, ASSAY_BOUNDED);
        ck_assert_int_eq(result.output[0].differ, 1);
        ck_assert_int_eq(result.output[0].worst.index, 21);
        ck_assert(result.has_passed == is_bound_enough);
        ck_assert_str_eq(result.explanation, "");
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(a_reference_beyond_the_bound_is_no_contradiction)
{
    const struct assay_backend *const candidates[] = { &somebodys,
                                                       backend_called("model") };
    for (int i = 0; i < 2; i++) {
        struct assay_trial_plan plan = plan_with(&other);
        distort = write_a_million;
        plan.candidate = candidates[i];
        struct assay_result result = run_line(&plan, dense);
        ck_assert_int_eq(result.verdict, ASSAY_BOUNDED);
        ck_assert_int_eq(result.output[0].differ, 1);
        ck_assert_int_eq(result.output[0].outside, 0);
        ck_assert(!result.has_passed);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(equal_bits_beyond_the_bound_are_outside)
{
    for (int uses_oracle = 0; uses_oracle < 2; uses_oracle++) {
        struct assay_trial_plan plan = plan_with(&other);
        distort = rerun_backend.after = write_a_million;
        plan.uses_oracle = uses_oracle;
        struct assay_result result = run_line(&plan, dense);
        ck_assert_int_eq(result.output[0].differ, 0);
        ck_assert_int_eq(result.verdict, uses_oracle ? ASSAY_OUTSIDE : ASSAY_EQUAL);
        ck_assert(result.has_passed == !uses_oracle);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(other_bits_without_a_bound_are_outside)
{
    struct assay_trial_plan plan = plan_with(&other);
    plan.uses_oracle = false;
    distort = flip_one;
    struct assay_result result = run_line(&plan, dense);
    ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
    ck_assert(!result.has_passed);
    assay_result_close(&result);
}
END_TEST

/* Element 24 to 1023 may hold anything, those from 1024 must stay untouched. */
static int64_t touched;

static void touch(const struct assay_run_call *call, int run_number)
{
    (void)run_number;
    assay_tensor_set_bits(tensor_d(call), touched, 0x12345678);
}

START_TEST(untouched_elements_are_compared_unless_the_reference_is_a_recording)
{
    static const struct {
        int64_t element;
        int differs[2]; /* live, recorded */
    } rows[] = { { 23, { 1, 1 } },
                 { 24, { 0, 0 } },
                 { 1023, { 0, 0 } },
                 { 1024, { 1, 0 } },
                 { 4095, { 1, 0 } } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int is_recorded = 0; is_recorded < 2; is_recorded++) {
            struct assay_backend reference = other;
            reference.is_recording = is_recorded;
            const struct assay_trial_plan plan = plan_with(&reference);
            touched = rows[i].element;
            distort = touch;
            struct assay_result result = run_line(&plan, masked);
            const struct assay_output_result *const d = &result.output[0];
            const bool is_beyond = rows[i].element >= 1024;
            ck_assert_int_eq(d->differ, rows[i].differs[is_recorded]);
            ck_assert_int_eq(d->touched, is_beyond ? d->differ : 0);
            const struct assay_brief brief = assay_brief_of(&result);
            ck_assert_int_eq(brief.compared, 24);
            ck_assert_int_eq(brief.equal, 24 - (rows[i].element < 24));
            assay_result_close(&result);
        }
}
END_TEST

static void write_behind_the_end(const struct assay_run_call *call, int run_number)
{
    (void)run_number;
    ((char *)tensor_d(call)->data)[6 * 8 * 4 + 7] = 0;
}

static void write_before_inputs(const struct assay_run_call *call, int run_number)
{
    (void)run_number;
    ((char *)assay_tensors_find(call->tensors, "a")->data)[-1] = 0;
}

START_TEST(what_a_reference_does_wrong_is_said_to_be_the_reference_s)
{
    static const struct {
        enum assay_status claim, run;
        void (*distort)(const struct assay_run_call *call, int run);
        enum assay_status expected;
        const char *sentence;
    } rows[] = {
        { ASSAY_UNSUPPORTED, ASSAY_RAN, NULL, ASSAY_UNSUPPORTED,
          "reference other:this one does not do this case: six rows only" },
        { ASSAY_RAN, ASSAY_UNSUPPORTED, NULL, ASSAY_UNSUPPORTED,
          "reference other:this one does not do this case: broken, too" },
        { ASSAY_RAN, ASSAY_CRASHED, NULL, ASSAY_CRASHED,
          "reference other:this one: broken, too" },
        { ASSAY_RAN, ASSAY_RAN, write_behind_the_end, ASSAY_CRASHED,
          "reference other:this one: backend other wrote outside its tensors" },
        { ASSAY_RAN, ASSAY_RAN, write_before_inputs, ASSAY_CRASHED,
          "reference other:this one: backend other wrote outside its tensors" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct assay_trial_plan plan = plan_with(&other);
        claim_status = rows[i].claim;
        run_status = rows[i].run;
        distort = rows[i].distort;
        struct assay_result result = run_line(&plan, dense);
        ck_assert_int_eq(result.status, rows[i].expected);
        ck_assert_str_eq(result.message.text, rows[i].sentence);
        ck_assert(!result.has_passed);
        assay_result_close(&result);
    }
}
END_TEST

/* --- inputs that the candidate changed ---------------------------------------------- */

static void change_a(const struct assay_run_call *call, int run_number)
{
    (void)run_number;
    const struct assay_tensor *const a = assay_tensors_find(call->tensors, "a");
    for (int i = 0; i < 160; i++)
        assay_tensor_set_bits(a, i, 0x38);
}

static struct assay_trial_plan plan_with_model(void)
{
    struct assay_trial_plan plan = plan_with(NULL);
    plan.uses_model = true;
    return plan;
}

START_TEST(the_reference_computes_with_the_plan_that_was_returned)
{
    struct assay_trial_plan plan = plan_with_model();
    struct assay_result unchanged = run_line(&plan, dense);
    rerun_backend.before = change_a;
    rerun_backend.has_changed_inputs = true;
    struct assay_result result = run_line(&plan, dense);
    ck_assert_int_eq(result.status, ASSAY_RAN);
    ck_assert_int_eq(result.verdict, ASSAY_EQUAL);
    ck_assert_uint_ne(result.input_hash, unchanged.input_hash);
    ck_assert_uint_ne(result.output[0].candidate_hash,
                      unchanged.output[0].candidate_hash);
    assay_result_close(&result);
    assay_result_close(&unchanged);
}
END_TEST

START_TEST(what_was_returned_is_not_known_to_be_exact)
{
    static const struct assay_check *checks[2];
    for (int has_changed = 0; has_changed < 2; has_changed++) {
        struct assay_trial_plan plan = plan_with_model();
        checks[0] = check_called("exact");
        plan.checks = checks;
        rerun_backend.has_changed_inputs = has_changed;
        struct assay_result result =
            run_line(&plan, "fp8_gemm_nt m=6 n=8 k=160 out=f32 data=exact seed=5");
        ck_assert_int_eq(result.status, ASSAY_RAN);
        ck_assert(result.output[0].has_exact == !has_changed);
        assay_result_close(&result);
    }
}
END_TEST

static enum assay_status refuse_unit_row(const void *problem,
                                         const struct assay_tensors *tensors,
                                         struct assay_message *message)
{
    (void)problem;
    const struct assay_tensor *const a = assay_tensors_find(tensors, "a");
    for (int i = 0; i < 160; i++)
        if (assay_tensor_bits(a, i) != 0x38) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED, "row 0 of a is 1; use other numbers");
}

START_TEST(a_returned_plan_that_no_kernel_may_be_given_fails_the_case)
{
    struct assay_operation strict = *assay_operation_find("fp8_gemm_nt");
    strict.check_inputs = refuse_unit_row;
    struct assay_case the_case = parsed_case(dense);
    the_case.operation = &strict;
    for (int is_unsafe = 0; is_unsafe < 2; is_unsafe++) {
        const struct assay_trial_plan plan = plan_with_model();
        the_case.is_unsafe = is_unsafe;
        rerun_backend.before = change_a;
        rerun_backend.has_changed_inputs = true;
        struct assay_result result = run_plan(&plan, &the_case, NULL);
        ck_assert_int_eq(result.status, is_unsafe ? ASSAY_RAN : ASSAY_FAILED);
        ck_assert_str_eq(result.message.text,
                         is_unsafe ? ""
                                   : "the candidate returned a plan that no kernel may "
                                     "be given: row 0 of a is 1; use other numbers");
        assay_result_close(&result);
    }
}
END_TEST

static void change_a_in_second_run(const struct assay_run_call *call, int run_number)
{
    rerun_backend.has_changed_inputs = run_number == 2;
    if (run_number == 2) change_a(call, run_number);
}

START_TEST(plans_returned_by_reruns_are_checked_as_well)
{
    struct assay_operation strict = *assay_operation_find("fp8_gemm_nt");
    strict.check_inputs = refuse_unit_row;
    struct assay_case the_case = parsed_case(dense);
    the_case.operation = &strict;
    plan_with_model();
    const struct assay_trial_plan plan = plan_of_check("repeat");
    rerun_backend.before = change_a_in_second_run;
    struct assay_result result = run_plan(&plan, &the_case, NULL);
    ck_assert_int_eq(result.status, ASSAY_FAILED);
    ck_assert_str_eq(result.message.text,
                     "run 1 of 8 on second inputs: the candidate returned a plan that no "
                     "kernel may be given: row 0 of a is 1; use other numbers");
    assay_result_close(&result);
}
END_TEST

START_TEST(another_plan_of_the_reference_leaves_nothing_to_compare)
{
    for (int has_changed = 0; has_changed < 2; has_changed++) {
        const struct assay_trial_plan plan = plan_with(&other);
        says_it_changed_inputs = true;
        distort = has_changed ? change_a : NULL;
        struct assay_result result = run_line(&plan, dense);
        ck_assert_int_eq(result.status, has_changed ? ASSAY_FAILED : ASSAY_RAN);
        if (has_changed)
            ck_assert_ptr_nonnull(strstr(result.message.text, "another plan"));
        assay_result_close(&result);
    }
}
END_TEST

/* --- what runs again ---------------------------------------------------------------- */

START_TEST(trusted_candidates_run_again_only_when_asked_to)
{
    static const struct {
        bool is_trusted, is_asked, runs_again;
    } rows[] = { { false, false, true },
                 { false, true, true },
                 { true, true, true },
                 { true, false, false } };
    for (int i = 0; i < 4; i++) {
        struct assay_backend candidate = somebodys;
        struct assay_trial_plan plan = plan_with_model();
        candidate.is_trusted = rows[i].is_trusted;
        plan.candidate = &candidate;
        plan.checks = assay_checks;
        plan.runs_trusted_again = rows[i].is_asked;
        struct assay_result result = run_line(&plan, dense);
        ck_assert_int_eq(result.status, ASSAY_RAN);
        ck_assert_int_eq(result.verdict, ASSAY_EQUAL);
        ck_assert_int_eq(result.candidate_runs, rerun_backend.runs);
        ck_assert(rows[i].runs_again ? result.candidate_runs > 20
                                     : result.candidate_runs == 1);
        const uint32_t again = bit_of_check("repeat") | bit_of_check("poison");
        ck_assert_uint_eq(result.checks & again, rows[i].runs_again ? again : 0);
        assay_result_close(&result);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_same_bits_as_another_backend_are_equal,
        another_bit_does_not_pass_unless_the_bound_is_enough,
        a_reference_beyond_the_bound_is_no_contradiction,
        equal_bits_beyond_the_bound_are_outside,
        other_bits_without_a_bound_are_outside,
        untouched_elements_are_compared_unless_the_reference_is_a_recording,
        what_a_reference_does_wrong_is_said_to_be_the_reference_s,
        the_reference_computes_with_the_plan_that_was_returned,
        what_was_returned_is_not_known_to_be_exact,
        a_returned_plan_that_no_kernel_may_be_given_fails_the_case,
        plans_returned_by_reruns_are_checked_as_well,
        another_plan_of_the_reference_leaves_nothing_to_compare,
        trusted_candidates_run_again_only_when_asked_to,
        NULL,
    };
    return run_tests("reference", tests);
}
