/* SPDX-License-Identifier: MIT */
/* Tests of check "repeat": what is said when the bits of runs differ. */
#include "ref/unit/scalar.h"
#include "tests/verify/rerun_backend.h"
#include "verify/data/buffers.h"

static const char padded[] =
    "fp8_gemm_nt m=6 n=8 k=160 a_stride=176 out=f32 seed=5 bits=a.1.2:38";
enum { RUNS = 10, ALL_RUNS = 2 * RUNS - 2 };

static const struct assay_backend_claim deterministic = { .is_deterministic = true };
static const struct assay_backend_claim numerics = { .has_numerics = true };
static const struct assay_backend_claim nothing = { .is_deterministic = false };

static struct assay_result run_check(const struct assay_backend_claim *claim)
{
    const struct assay_trial_plan plan = plan_of_check("repeat");
    rerun_backend.claim = *claim;
    return run_line(&plan, padded);
}

static void do_nothing(void)
{
    rerun_backend.before = rerun_backend.after = NULL;
    rerun_backend.status = NULL;
    rerun_backend.has_changed_inputs = false;
}

static int wrong_run;

static void flip_three_in_one_run(const struct assay_run_call *call, int run)
{
    static const int64_t elements[] = { 11, 12, 40 };
    if (run != wrong_run) return;
    for (int i = 0; i < 3; i++)
        assay_tensor_set_bits(tensor_d(call), elements[i],
                              assay_tensor_bits(tensor_d(call), elements[i]) ^ 1);
}

static void check_failure(const struct assay_result *result, enum assay_verdict verdict)
{
    ck_assert_int_eq(result->status, ASSAY_RAN);
    ck_assert_int_eq(result->verdict, verdict);
    ck_assert(!result->has_passed);
    ck_assert(result->is_decisive);
    ck_assert_int_eq(result->finding_count, 1);
    ck_assert(result->finding[0].is_failure);
    ck_assert_str_eq(result->finding[0].check, "repeat");
}

START_TEST(three_bits_of_any_run_break_a_promise)
{
    static const struct assay_backend_claim *const claims[] = { &deterministic,
                                                                &numerics };
    do_nothing();
    rerun_backend.after = flip_three_in_one_run;
    for (int i = 0; i < 2; i++)
        for (wrong_run = 1; wrong_run <= ALL_RUNS; wrong_run++) {
            struct assay_result result = run_check(claims[i]);
            const struct assay_finding *const finding = &result.finding[0];
            char sentence[100];
            check_failure(&result, ASSAY_OUTSIDE);
            ck_assert_int_eq(finding->elements, 3);
            ck_assert_int_eq(finding->worst.index, 11);
            ck_assert_uint_eq(finding->worst.candidate ^ finding->worst.reference, 1);
            ck_assert_uint_eq(finding->worst.ulps, 1);
            ck_assert_str_eq(finding->output, "d");
            ck_assert_int_eq(finding->tensor.format, ASSAY_F32);
            ck_assert(finding->tensor.shape[0] == 6 && finding->tensor.shape[1] == 8);
            ck_assert_str_eq(finding->worst.place.text, "tile 0,0");
            /* A wrong first run shows in the next one on these inputs. */
            const int shown = wrong_run < 3 ? wrong_run + 2 : wrong_run;
            const bool is_same = shown % 2 || shown == ALL_RUNS;
            snprintf(sentence, sizeof(sentence),
                     "run %d of %d on %s inputs gave other bits in 3 elements",
                     shown == ALL_RUNS ? RUNS : (shown + 1) / 2,
                     is_same ? RUNS : RUNS - 2, is_same ? "the same" : "second");
            ck_assert_str_eq(finding->sentence, sentence);
            ck_assert_int_eq(rerun_backend.runs, shown); /* one is enough */
            assay_result_close(&result);
        }
}
END_TEST

START_TEST(without_a_promise_other_bits_within_the_bound_are_a_note)
{
    do_nothing();
    rerun_backend.after = flip_three_in_one_run;
    for (wrong_run = 1; wrong_run <= ALL_RUNS; wrong_run++) {
        struct assay_result result = run_check(&nothing);
        const struct assay_finding *const finding = &result.finding[0];
        ck_assert_int_eq(result.verdict, ASSAY_NOT_JUDGED);
        ck_assert_int_eq(result.finding_count, 1);
        ck_assert(!finding->is_failure);
        ck_assert_int_eq(finding->elements, 3);
        ck_assert_ptr_nonnull(strstr(finding->sentence,
                                     "gave other bits in 3 elements, all within the "
                                     "bound"));
        ck_assert_int_eq(rerun_backend.runs, ALL_RUNS);
        assay_result_close(&result);
    }
}
END_TEST

static void flip_from_fifth_run_on(const struct assay_run_call *call, int run)
{
    wrong_run = run >= 5 ? run : 0;
    flip_three_in_one_run(call, run);
}

START_TEST(of_many_notes_the_first_is_kept)
{
    do_nothing();
    rerun_backend.after = flip_from_fifth_run_on;
    struct assay_result result = run_check(&nothing);
    ck_assert_int_eq(result.finding_count, 1);
    ck_assert_str_eq(result.finding[0].sentence,
                     "run 3 of 10 on the same inputs gave other bits in 3 elements, all "
                     "within the bound");
    assay_result_close(&result);
}
END_TEST

START_TEST(whoever_requires_equal_bits_requires_the_same_ones_again)
{
    struct assay_trial_plan plan = plan_of_check("repeat");
    plan.require = ASSAY_EQUAL;
    do_nothing();
    rerun_backend.claim = nothing;
    rerun_backend.after = flip_three_in_one_run;
    wrong_run = 4;
    struct assay_result result = run_line(&plan, padded);
    check_failure(&result, ASSAY_OUTSIDE);
    assay_result_close(&result);
}
END_TEST

static void write_a_million_in_one_run(const struct assay_run_call *call, int run)
{
    if (run != wrong_run) return;
    assay_tensor_set_bits(tensor_d(call), 3, assay_tensor_bits(tensor_d(call), 3) ^ 1);
    assay_tensor_set_bits(tensor_d(call), 17, assay_f32_bits(1e6f));
}

START_TEST(without_a_promise_the_bound_holds_for_every_run)
{
    do_nothing();
    rerun_backend.after = write_a_million_in_one_run;
    for (wrong_run = 3; wrong_run <= ALL_RUNS; wrong_run++) {
        struct assay_result result = run_check(&nothing);
        const struct assay_finding *const finding = &result.finding[0];
        check_failure(&result, ASSAY_OUTSIDE);
        ck_assert_ptr_nonnull(
            strstr(finding->sentence, "in 2 elements, some of them beyond the bound"));
        ck_assert_int_eq(finding->elements, 1);
        ck_assert_int_eq(finding->worst.index, 17);
        ck_assert_uint_eq(finding->worst.candidate, assay_f32_bits(1e6f));
        assay_result_close(&result);
    }
    /* Without a bound nobody knows. */
    struct assay_trial_plan plan = plan_of_check("repeat");
    plan.uses_oracle = false;
    wrong_run = 5;
    struct assay_result result = run_line(&plan, padded);
    ck_assert(result.finding_count == 1 && !result.finding[0].is_failure);
    ck_assert_str_eq(result.finding[0].sentence,
                     "run 3 of 10 on the same inputs gave other bits in 2 elements");
    assay_result_close(&result);
}
END_TEST

static void err_over_other_poison(const struct assay_run_call *call, int run)
{
    const unsigned char *const d = tensor_d(call)->data;
    wrong_run = *d == 0x5A ? run : 0;
}

static void err_when_launched_again(const struct assay_run_call *call, int run)
{
    wrong_run = call->launches > 1 ? run : 0;
}

/* Keeps something of the case before. */
static void err_after_other_inputs(const struct assay_run_call *call, int run)
{
    static uint64_t last;
    const uint64_t inputs = assay_inputs_hash(call->tensors);
    wrong_run = run > 1 && inputs != last ? run : 0;
    last = inputs;
}

START_TEST(dirt_poison_and_further_launches_are_noticed)
{
    static void (*const errors[])(const struct assay_run_call *,
                                  int) = { err_over_other_poison, err_when_launched_again,
                                           err_after_other_inputs };
    for (int i = 0; i < 3; i++) {
        do_nothing();
        rerun_backend.before = errors[i];
        rerun_backend.after = flip_three_in_one_run;
        struct assay_result result = run_check(&deterministic);
        check_failure(&result, ASSAY_OUTSIDE);
        ck_assert_int_eq(rerun_backend.runs, 3);
        assay_result_close(&result);
    }
}
END_TEST

static void flip_every_second_time(const struct assay_run_call *call, int run)
{
    wrong_run = run % 2 ? 0 : run;
    flip_three_in_one_run(call, run);
}

START_TEST(what_goes_wrong_every_second_time_is_noticed)
{
    do_nothing();
    rerun_backend.after = flip_every_second_time;
    struct assay_result result = run_check(&deterministic);
    check_failure(&result, ASSAY_OUTSIDE);
    ck_assert_int_eq(rerun_backend.runs, ALL_RUNS);
    assay_result_close(&result);
}
END_TEST

/* Elements 24 to 1023 may hold anything, those from 1024 must stay as they were. */
static const char masked[] = "m_grouped_fp8_gemm_nt_masked groups=2 m_max=256 n=8 k=160 "
                             "masked_m=3,0 out=f32 seed=5";

START_TEST(elements_that_must_stay_untouched_count_as_equal)
{
    const struct assay_trial_plan plan = plan_of_check("repeat");
    do_nothing();
    rerun_backend.claim = deterministic;
    struct assay_result result = run_line(&plan, masked);
    ck_assert_int_eq(result.status, ASSAY_RAN);
    ck_assert_int_eq(result.finding_count, 0);
    assay_result_close(&result);

    /* Nor are they beyond the bound when they hold the other poison. */
    rerun_backend.claim = nothing;
    rerun_backend.after = flip_three_in_one_run;
    wrong_run = 3;
    result = run_line(&plan, masked);
    ck_assert_int_eq(result.finding_count, 1);
    ck_assert(!result.finding[0].is_failure);
    ck_assert_int_eq(result.finding[0].elements, 2); /* the third may hold anything */
    assay_result_close(&result);
}
END_TEST

static void touch_in_one_run(const struct assay_run_call *call, int run)
{
    if (run == wrong_run) assay_tensor_set_bits(tensor_d(call), 2000, 0x3F800000);
}

START_TEST(an_element_touched_in_one_run_is_beyond_the_bound)
{
    const struct assay_trial_plan plan = plan_of_check("repeat");
    do_nothing();
    rerun_backend.claim = nothing;
    rerun_backend.after = touch_in_one_run;
    wrong_run = 5;
    struct assay_result result = run_line(&plan, masked);
    check_failure(&result, ASSAY_OUTSIDE);
    ck_assert_int_eq(result.finding[0].worst.index, 2000);
    ck_assert_uint_eq(result.finding[0].worst.candidate, 0x3F800000);
    ck_assert_uint_eq(result.finding[0].worst.reference, 0x5A5A5A5A);
    assay_result_close(&result);

    rerun_backend.claim = deterministic;
    result = run_line(&plan, masked);
    check_failure(&result, ASSAY_OUTSIDE);
    ck_assert_int_eq(result.finding[0].worst.index, 2000);
    assay_result_close(&result);
}
END_TEST

static unsigned char held;

static void remember(const struct assay_run_call *call, int run)
{
    (void)run;
    held = *(const unsigned char *)tensor_d(call)->data;
}

static void leave_out_in_one_run(const struct assay_run_call *call, int run)
{
    if (run == wrong_run) memset((char *)tensor_d(call)->data + 4 * 11, held, 4);
}

START_TEST(an_element_that_one_run_leaves_out_differs)
{
    do_nothing();
    rerun_backend.before = remember;
    rerun_backend.after = leave_out_in_one_run;
    for (wrong_run = 1; wrong_run < 6; wrong_run++) {
        struct assay_result result = run_check(&deterministic);
        check_failure(&result, ASSAY_OUTSIDE);
        ck_assert_int_eq(result.finding[0].elements, 1);
        ck_assert_int_eq(result.finding[0].worst.index, 11);
        assay_result_close(&result);
    }
}
END_TEST

static void spoil_both_outputs(const struct assay_run_call *call, int run)
{
    const struct assay_tensors *const tensors = call->tensors;
    if (run != 3) return;
    assay_tensor_set_bits(assay_tensors_find(tensors, "out"), 600, 0x7FC0);
    assay_tensor_set_bits(assay_tensors_find(tensors, "lse"), 1, 0x7FC00000);
}

START_TEST(elements_of_all_outputs_are_counted)
{
    static const struct assay_backend_claim *const claims[] = { &nothing,
                                                                &deterministic };
    const struct assay_trial_plan plan = plan_of_check("repeat");
    do_nothing();
    rerun_backend.after = spoil_both_outputs;
    for (int i = 0; i < 2; i++) {
        rerun_backend.claim = *claims[i];
        struct assay_result result =
            run_line(&plan, "mla_combine b=1 h_q=2 splits=2 seed=1");
        check_failure(&result, ASSAY_OUTSIDE);
        ck_assert_int_eq(result.finding[0].elements, 2);
        ck_assert_str_eq(result.finding[0].output, "out");
        ck_assert_int_eq(result.finding[0].worst.index, 600);
        ck_assert_uint_eq(result.finding[0].worst.candidate, 0x7FC0);
        ck_assert_uint_eq(result.finding[0].worst.ulps, UINT64_MAX);
        assay_result_close(&result);
    }
}
END_TEST

/* With 1 as the first input, element 11 may hold anything. */
static void undefined_by_input(const void *problem, const struct assay_tensors *tensors,
                               int64_t part, int output, uint8_t *definedness)
{
    (void)problem, (void)output;
    ck_assert_int_eq(part, 0); /* a single tile of 6 x 8 */
    memset(definedness, ASSAY_DEFINED, 6 * 8);
    if (assay_tensor_bits(assay_tensors_find(tensors, "a"), 0) == 0x38)
        definedness[11] = ASSAY_UNDEFINED;
}

static void undefine_in_fifth_run(const struct assay_run_call *call, int run)
{
    wrong_run = 5;
    rerun_backend.has_changed_inputs = run == 5;
    if (run == 5) assay_tensor_set_bits(assay_tensors_find(call->tensors, "a"), 0, 0x38);
    flip_three_in_one_run(call, run);
}

START_TEST(changed_inputs_may_change_what_is_defined)
{
    struct assay_operation operation = *assay_operation_find("fp8_gemm_nt");
    struct assay_case the_case = parsed_case(padded);
    const struct assay_trial_plan plan = plan_of_check("repeat");
    operation.defined = undefined_by_input;
    the_case.operation = &operation;
    do_nothing();
    rerun_backend.claim = deterministic;
    rerun_backend.after = undefine_in_fifth_run;
    struct assay_result result = run_plan(&plan, &the_case, NULL);
    check_failure(&result, ASSAY_OUTSIDE);
    ck_assert_int_eq(result.finding[0].elements, 2);
    ck_assert_int_eq(result.finding[0].worst.index, 12);
    assay_result_close(&result);
}
END_TEST

START_TEST(a_model_that_does_not_repeat_itself_is_a_contradiction)
{
    struct assay_backend own = somebodys;
    struct assay_trial_plan plan = plan_of_check("repeat");
    own.is_model = true;
    plan.candidate = &own;
    do_nothing();
    rerun_backend.claim = numerics;
    rerun_backend.after = flip_three_in_one_run;
    wrong_run = 6;
    struct assay_result result = run_line(&plan, padded);
    check_failure(&result, ASSAY_CONTRADICTION);
    assay_result_close(&result);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        three_bits_of_any_run_break_a_promise,
        without_a_promise_other_bits_within_the_bound_are_a_note,
        of_many_notes_the_first_is_kept,
        whoever_requires_equal_bits_requires_the_same_ones_again,
        without_a_promise_the_bound_holds_for_every_run,
        dirt_poison_and_further_launches_are_noticed,
        what_goes_wrong_every_second_time_is_noticed,
        elements_that_must_stay_untouched_count_as_equal,
        an_element_touched_in_one_run_is_beyond_the_bound,
        an_element_that_one_run_leaves_out_differs,
        elements_of_all_outputs_are_counted,
        changed_inputs_may_change_what_is_defined,
        a_model_that_does_not_repeat_itself_is_a_contradiction,
        NULL,
    };
    return run_tests("repeat_bits", tests);
}
