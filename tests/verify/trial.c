/* SPDX-License-Identifier: MIT */
/* Tests of the path from a case to its verdict, with backends and operations that are
 * wrong on purpose. */
#include "verify/check/trial.h"

#include "ref/unit/scalar.h"
#include "tests/harness.h"

#include <math.h>
#include <string.h>

static const char dense[] = "fp8_gemm_nt m=70 n=72 k=160 out=f32 seed=5";
static const char masked[] = "m_grouped_fp8_gemm_nt_masked groups=2 m_max=256 n=8 k=160 "
                             "masked_m=3,0 out=f32 seed=5";

static struct assay_case parsed(const char *text)
{
    struct assay_case the_case;
    struct assay_message message;
    ck_assert_msg(assay_case_parse(text, &the_case, &message) == ASSAY_RAN, "%s",
                  message.text);
    return the_case;
}

static struct assay_trial_plan plan_for(const struct assay_backend *backend)
{
    static char no_numerics[] = "";
    return (struct assay_trial_plan){
        .candidate = backend,
        .candidate_state = no_numerics,
        .uses_model = true,
        .uses_oracle = true,
        .checks = assay_checks,
    };
}

static const struct assay_backend *backend_called(const char *scheme)
{
    for (int i = 0; assay_backends[i]; i++)
        if (strcmp(assay_backends[i]->scheme, scheme) == 0) return assay_backends[i];
    ck_abort_msg("no backend %s", scheme);
    return NULL;
}

/* A backend of the test: the model, then something done to its outputs. */
static void (*vandalism)(const struct assay_tensor *d);
static bool claims_numerics;

static enum assay_status claim(void *state, const struct assay_run_call *call,
                               struct assay_backend_claim *claim,
                               struct assay_message *message)
{
    (void)state, (void)call, (void)message;
    *claim = (struct assay_backend_claim){ .has_numerics = claims_numerics };
    return ASSAY_RAN;
}

static enum assay_status run(void *state, const struct assay_run_call *call,
                             struct assay_message *message)
{
    const enum assay_status status = backend_called("model")->run(state, call, message);
    vandalism(assay_tensors_find(call->tensors, "d"));
    return status;
}

static struct assay_result result_of_vandal_on(const char *line,
                                               void (*how)(const struct assay_tensor *d),
                                               bool is_claiming)
{
    const struct assay_backend vandal = {
        .scheme = "vandal", .is_trusted = true, .claim = claim, .run = run
    };
    const struct assay_trial_plan plan = plan_for(&vandal);
    const struct assay_case the_case = parsed(line);
    struct assay_result result;
    vandalism = how;
    claims_numerics = is_claiming;
    assay_trial_run(&plan, &the_case, NULL, 0, &result);
    return result;
}

static struct assay_result result_of_vandal(void (*how)(const struct assay_tensor *d),
                                            bool is_claiming)
{
    return result_of_vandal_on(dense, how, is_claiming);
}

static void do_nothing(const struct assay_tensor *d)
{
    (void)d;
}

static void flip_lowest_bit(const struct assay_tensor *d)
{
    assay_tensor_set_bits(d, 71, assay_tensor_bits(d, 71) ^ 1);
}

static void write_nan(const struct assay_tensor *d)
{
    assay_tensor_set_bits(d, 5000, 0x7FFFFFFF);
}

static void write_infinity(const struct assay_tensor *d)
{
    assay_tensor_set_bits(d, 5000, 0x7F800000);
}

static void leave_last_row_unwritten(const struct assay_tensor *d)
{
    memset((char *)d->data + 69 * 72 * 4, 0xDB, 72 * 4);
}

static void write_behind_the_end(const struct assay_tensor *d)
{
    ((char *)d->data)[assay_tensor_bytes(d) + 100] = 0;
}

START_TEST(an_honest_claim_is_equal)
{
    struct assay_result result = result_of_vandal(do_nothing, true);
    ck_assert_int_eq(result.verdict, ASSAY_EQUAL);
    ck_assert(result.has_passed && result.is_decisive);
    ck_assert_int_eq(result.output[0].differ, 0);
    ck_assert_int_eq(result.output[0].elements, 70 * 72);
    assay_result_close(&result);
}
END_TEST

START_TEST(one_low_bit_is_found_and_passes_only_without_a_claim)
{
    for (int is_claiming = 0; is_claiming < 2; is_claiming++) {
        struct assay_result result = result_of_vandal(flip_lowest_bit, is_claiming);
        ck_assert_int_eq(result.verdict, ASSAY_BOUNDED);
        ck_assert_int_eq(result.output[0].differ, 1);
        ck_assert_int_eq(result.output[0].worst.index, 71);
        ck_assert_uint_eq(result.output[0].max_ulps, 1);
        ck_assert_str_eq(result.output[0].worst.place.text, "tile 0,1");
        /* The model is there to compare with, so a claim is held to its bits. */
        ck_assert(result.has_passed == !is_claiming);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(nan_and_infinity_in_the_wrong_place_are_outside)
{
    void (*const ways[])(const struct assay_tensor *) = { write_nan, write_infinity };
    for (int i = 0; i < 2; i++) {
        struct assay_result result = result_of_vandal(ways[i], false);
        ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
        ck_assert(!result.has_passed);
        ck_assert_int_eq(result.output[0].outside, 1);
        ck_assert_int_eq(result.output[0].bound_worst_index, 5000);
        ck_assert(isinf(result.output[0].max_error_over_bound));
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(unwritten_outputs_are_outside)
{
    struct assay_result result = result_of_vandal(leave_last_row_unwritten, false);
    ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
    ck_assert_int_eq(result.output[0].outside, 72);
    assay_result_close(&result);
}
END_TEST

/* Elements 24 to 1023 of the masked case may hold anything, those from 1024 must not have
 * been touched. */
static int64_t touched;

static void touch_one(const struct assay_tensor *d)
{
    assay_tensor_set_bits(d, touched, 0x12345678);
}

START_TEST(rows_that_must_stay_untouched_are_watched)
{
    static const struct {
        int64_t element, differ;
    } rows[] = {
        { 23, 1 }, { 24, 0 }, { 1023, 0 }, { 1024, 1 }, { 2048, 1 }, { 4095, 1 }
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        touched = rows[i].element;
        struct assay_result result = result_of_vandal_on(masked, touch_one, true);
        ck_assert_int_eq(result.output[0].differ, rows[i].differ);
        ck_assert_int_eq(result.output[0].defined, 24);
        ck_assert_int_eq(result.output[0].outside, rows[i].differ);
        ck_assert(result.has_passed == !rows[i].differ);
        assay_result_close(&result);

        /* Nor does it pass by the bound alone. */
        result = result_of_vandal_on(masked, touch_one, false);
        ck_assert(result.has_passed == !rows[i].differ);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(writing_outside_the_tensors_is_a_crash)
{
    struct assay_result result = result_of_vandal(write_behind_the_end, true);
    ck_assert_int_eq(result.status, ASSAY_CRASHED);
    ck_assert(!result.has_passed);
    assay_result_close(&result);
}
END_TEST

/* An operation of the test: fp8_gemm_nt with a model that is wrong in one element. */
static enum assay_status wrong_model(const void *problem, const void *numerics,
                                     const struct assay_tensors *tensors, int64_t part)
{
    const enum assay_status status =
        assay_operation_find("fp8_gemm_nt")->model(problem, numerics, tensors, part);
    if (part == 3)
        assay_tensor_set_bits(assay_tensors_find(tensors, "d"), 70 * 72 - 1,
                              assay_f32_bits(1e6f));
    return status;
}

START_TEST(a_model_outside_the_bound_is_a_contradiction)
{
    struct assay_operation wrong = *assay_operation_find("fp8_gemm_nt");
    wrong.model = wrong_model;
    struct assay_case the_case = parsed(dense);
    the_case.operation = &wrong;
    static const char *const candidates[] = { "model", "oracle" };
    for (int i = 0; i < 2; i++) {
        const struct assay_trial_plan plan = plan_for(backend_called(candidates[i]));
        struct assay_result result;
        assay_trial_run(&plan, &the_case, NULL, 0, &result);
        ck_assert_int_eq(result.verdict, ASSAY_CONTRADICTION);
        ck_assert(!result.has_passed);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(without_references_nothing_is_judged)
{
    struct assay_trial_plan plan = plan_for(backend_called("model"));
    plan.uses_model = plan.uses_oracle = false;
    const struct assay_case the_case = parsed(dense);
    struct assay_result result;
    assay_trial_run(&plan, &the_case, NULL, 0, &result);
    ck_assert_int_eq(result.verdict, ASSAY_NOT_JUDGED);
    ck_assert(!result.has_passed);
    assay_result_close(&result);
}
END_TEST

static bool always(const struct assay_trial *trial)
{
    (void)trial;
    return true;
}

static enum assay_status judge_nothing(struct assay_trial *trial,
                                       struct assay_result *result)
{
    (void)trial, (void)result;
    return ASSAY_RAN;
}

/* Of a trial of the oracle against the model, with only this check. */
static uint32_t checks_noted(const struct assay_check *check)
{
    const struct assay_check *const checks[] = { check, NULL };
    struct assay_trial_plan plan = plan_for(backend_called("oracle"));
    const struct assay_case the_case = parsed("fp8_gemm_nt m=2 n=8 k=16 seed=5");
    struct assay_result result;
    plan.checks = checks;
    assay_trial_run(&plan, &the_case, NULL, 0, &result);
    ck_assert_int_eq(result.status, ASSAY_RAN);
    const uint32_t noted = result.checks;
    assay_result_close(&result);
    return noted;
}

START_TEST(a_check_is_noted_by_its_row_and_not_if_it_has_none)
{
    const struct assay_check foreign = {
        .name = "foreign", .proves = "nothing", .applies = always, .judge = judge_nothing
    };
    for (int row = 0; row < 2; row++) /* bitwise and bound: any case has them */
        ck_assert_uint_eq(checks_noted(assay_checks[row]), UINT32_C(1) << row);
    ck_assert_uint_eq(checks_noted(&foreign), 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        an_honest_claim_is_equal,
        one_low_bit_is_found_and_passes_only_without_a_claim,
        nan_and_infinity_in_the_wrong_place_are_outside,
        unwritten_outputs_are_outside,
        rows_that_must_stay_untouched_are_watched,
        writing_outside_the_tensors_is_a_crash,
        a_model_outside_the_bound_is_a_contradiction,
        without_references_nothing_is_judged,
        a_check_is_noted_by_its_row_and_not_if_it_has_none,
        NULL,
    };
    return run_tests("trial", tests);
}
