/* SPDX-License-Identifier: MIT */
/* Of a candidate that is wrong under a condition, the smallest case that meets it is
 * left. */
#include "tests/fuzz/shrink_subject.h"

/* --- parameters --------------------------------------------------------------------- */

static bool is_ragged(struct subject *subject, const struct assay_run_call *call)
{
    (void)subject;
    return value(call, "m") > 64 && value(call, "k") % 128 != 0 &&
           value(call, "k") > 128 && value(call, "n") > 16;
}

START_TEST(dimensions_go_down_to_the_smallest_that_fail)
{
    expect((struct subject){ is_ragged, ASSAY_RAN, 0 },
           "fp8_gemm_nt m=130 n=40 k=400 out=f32 a_stride=512 "
           "d_stride=48 data=outlier seed=77 as=deepgemm-1d2d,result_bits=20 "
           "unsafe=1",
           "fp8_gemm_nt m=65 n=24 k=144 data=zero seed=1");
}
END_TEST

static bool is_huge(struct subject *subject, const struct assay_run_call *call)
{
    (void)subject;
    return value(call, "m") >= 10000 && value(call, "n") > 0;
}

START_TEST(large_dimensions_take_few_trials)
{
    struct subject subject = { is_huge, ASSAY_RAN, 0 };
    ck_assert_int_eq(shrink(&subject, "fp8_gemm_nt m=16001 n=8 k=0 data=zero seed=1", 0),
                     ASSAY_RAN);
    ck_assert_str_eq(line_of(&outcome.smallest),
                     "fp8_gemm_nt m=10000 n=8 k=0 data=zero seed=1");
    ck_assert_msg(outcome.trials <= 160, "%d trials", outcome.trials);
    assay_shrink_outcome_close(&outcome);
}
END_TEST

static bool has_stride(struct subject *subject, const struct assay_run_call *call)
{
    (void)subject;
    return value(call, "a_stride") > value(call, "k") && value(call, "m") > 1;
}

START_TEST(an_option_that_matters_stays)
{
    expect((struct subject){ has_stride, ASSAY_RAN, 0 },
           "fp8_gemm_nt m=70 n=64 k=128 out=f32 a_stride=144 b_stride=256 seed=3",
           "fp8_gemm_nt m=2 n=8 k=0 a_stride=16 data=zero seed=1");
}
END_TEST

static bool has_two_causes(struct subject *subject, const struct assay_run_call *call)
{
    (void)subject;
    return call->the_case->is_unsafe && strstr(call->the_case->numerics, "result_bits");
}

START_TEST(a_knob_and_a_flag_that_matter_stay)
{
    expect(
        (struct subject){ has_two_causes, ASSAY_RAN, 0 },
        "fp8_gemm_nt m=3 n=8 k=128 seed=9 as=deepgemm-1d2d,result_bits=23,align_bits=20 "
        "unsafe=1",
        "fp8_gemm_nt m=1 n=1 k=0 data=zero seed=1 as=result_bits=23 unsafe=1");
}
END_TEST

/* --- lists -------------------------------------------------------------------------- */

static bool has_full_group(struct subject *subject, const struct assay_run_call *call)
{
    int count;
    bool found = false;
    const int64_t *const rows = assay_case_list(call->the_case, "masked_m", &count);
    (void)subject;
    for (int i = 0; i < count; i++)
        found |= rows[i] >= 5;
    return found;
}

START_TEST(groups_go_together_with_what_counts_them)
{
    expect((struct subject){ has_full_group, ASSAY_RAN, 0 },
           "m_grouped_fp8_gemm_nt_masked groups=6 m_max=256 n=64 k=128 "
           "masked_m=0,64,129,4,256,17 seed=5",
           "m_grouped_fp8_gemm_nt_masked groups=1 m_max=128 n=8 k=0 masked_m=5 "
           "data=zero seed=1");
}
END_TEST

static bool has_empty_between(struct subject *subject, const struct assay_run_call *call)
{
    int count;
    const int64_t *const rows = assay_case_list(call->the_case, "group_m", &count);
    (void)subject;
    for (int i = 1; i + 1 < count; i++)
        if (rows[i - 1] && !rows[i] && rows[i + 1]) return true;
    return false;
}

START_TEST(neighbours_in_a_list_stay)
{
    expect((struct subject){ has_empty_between, ASSAY_RAN, 0 },
           "m_grouped_fp8_gemm_nt_contiguous group_m=130,0,0,7,0,65,3 n=16 k=128 seed=5",
           "m_grouped_fp8_gemm_nt_contiguous group_m=1,0,1 n=8 k=0 data=zero seed=1");
}
END_TEST

static bool has_three_requests(struct subject *subject, const struct assay_run_call *call)
{
    (void)subject;
    return value(call, "b") >= 3;
}

START_TEST(one_value_serves_all_where_it_can)
{
    expect((struct subject){ has_three_requests, ASSAY_RAN, 0 },
           "mla_plan b=5 sms=8 s_k=100,200,64,1,7 seed=3",
           "mla_plan b=3 sms=1 s_k=0 data=zero seed=1");
}
END_TEST

static bool has_two_lists(struct subject *subject, const struct assay_run_call *call)
{
    int count, others;
    (void)subject;
    assay_case_list(call->the_case, "topk_length", &count);
    assay_case_list(call->the_case, "extra_topk_length", &others);
    return count >= 2 && others >= 2;
}

START_TEST(lists_of_one_length_get_shorter_together)
{
    struct subject subject = { has_two_lists, ASSAY_RAN, 0 };
    ck_assert_int_eq(shrink(&subject,
                            "mla_plan attention=sparse b=4 h_q=64 topk=128 extra_topk=64 "
                            "topk_length=1,2,3,4 extra_topk_length=5,6,7,8 seed=3",
                            0),
                     ASSAY_RAN);
    ck_assert_int_eq(assay_case_value(&outcome.smallest, "b"), 2);
    assay_shrink_outcome_close(&outcome);
}
END_TEST

static bool has_some_empty(struct subject *subject, const struct assay_run_call *call)
{
    const double empty = assay_case_fraction(call->the_case, "empty");
    (void)subject;
    return empty > 0.2 && empty < 0.4;
}

START_TEST(fractions_lose_their_decimals)
{
    struct subject subject = { has_some_empty, ASSAY_RAN, 0 };
    ck_assert_int_eq(
        shrink(&subject, "mla_combine b=1 h_q=1 splits=2 empty=0.317531 seed=3", 0),
        ASSAY_RAN);
    ck_assert_msg(strstr(line_of(&outcome.smallest), " empty=0.3 "), "%s",
                  line_of(&outcome.smallest));
    assay_shrink_outcome_close(&outcome);
}
END_TEST

/* --- ends and budgets --------------------------------------------------------------- */

static bool is_tall(struct subject *subject, const struct assay_run_call *call)
{
    (void)subject;
    return value(call, "m") >= 3 && value(call, "n") > 0;
}

START_TEST(a_crash_shrinks_as_well)
{
    expect((struct subject){ is_tall, ASSAY_CRASHED, 0 },
           "fp8_gemm_nt m=100 n=64 k=128 seed=12",
           "fp8_gemm_nt m=3 n=8 k=0 data=zero seed=1");
}
END_TEST

static bool is_always_wrong(struct subject *subject, const struct assay_run_call *call)
{
    (void)subject;
    (void)call;
    return true;
}

START_TEST(a_lost_device_ends_it)
{
    struct subject subject = { is_always_wrong, ASSAY_DEVICE_LOST, 0 };
    ck_assert_int_eq(shrink(&subject, "fp8_gemm_nt m=4 n=8 k=16", 0), ASSAY_DEVICE_LOST);
    ck_assert_int_eq(subject.runs, 1);
    assay_shrink_outcome_close(&outcome);
}
END_TEST

START_TEST(what_is_refused_is_refused)
{
    struct subject subject = { is_always_wrong, ASSAY_CRASHED, 0 };
    ck_assert_int_eq(shrink(&subject, "fp8_gemm_nt m=4 n=9 k=16", 0), ASSAY_REFUSED);
    ck_assert_int_eq(shrink(&subject, "fp8_gemm_nt m=4 n=8 k=16 as=nothing", 0),
                     ASSAY_REFUSED);
    ck_assert_int_eq(shrink(&subject, "fp8_gemm_nt m=4 n=8 k=16 data=recorded", 0),
                     ASSAY_REFUSED);
    ck_assert_int_eq(subject.runs, 0);
}
END_TEST

static bool is_right(struct subject *subject, const struct assay_run_call *call)
{
    (void)subject;
    (void)call;
    return false;
}

START_TEST(a_case_that_passes_is_left_alone)
{
    struct subject subject = { is_right, ASSAY_RAN, 0 };
    ck_assert_int_eq(shrink(&subject, "fp8_gemm_nt m=4 n=8 k=16", 0), ASSAY_RAN);
    ck_assert_int_eq(outcome.end, ASSAY_SHRINK_PASSES);
    ck_assert_int_eq(outcome.failed_tries, 0);
    ck_assert_int_eq(outcome.tries, ASSAY_SHRINK_TRIES);
    ck_assert_int_eq(subject.runs, ASSAY_SHRINK_TRIES);
    ck_assert(outcome.result.has_passed);
    assay_shrink_outcome_close(&outcome);
}
END_TEST

/* A key may say less than its default 0 stands for. */
START_TEST(defaults_that_stand_for_more_are_replaced)
{
    struct subject subject = { is_always_wrong, ASSAY_RAN, 0 };
    ck_assert_int_eq(shrink(&subject, "mla_dense_decode b=1 h_q=1 s_k=3 seed=1", 30),
                     ASSAY_RAN);
    ck_assert_int_eq(assay_case_value(&outcome.smallest, "pages"), 1);
    ck_assert_int_eq(assay_case_value(&outcome.smallest, "sms"), 1);
    assay_shrink_outcome_close(&outcome);
}
END_TEST

START_TEST(trials_are_counted_and_limited)
{
    for (int trials = 1; trials < 60; trials += 19) {
        struct subject subject = { is_ragged, ASSAY_RAN, 0 };
        ck_assert_int_eq(shrink(&subject, "fp8_gemm_nt m=130 n=40 k=400", trials),
                         ASSAY_RAN);
        ck_assert_int_eq(outcome.end, ASSAY_SHRINK_CUT);
        ck_assert_int_le(outcome.trials, trials);
        /* The original, and the smallest with all checks, are no trials. */
        ck_assert_int_le(subject.runs, trials + 2 * ASSAY_SHRINK_TRIES);
        ck_assert(assay_result_is_failure(&outcome.result));
        ck_assert_int_le(outcome.after.elements, outcome.before.elements);
        assay_shrink_outcome_close(&outcome);
    }
}
END_TEST

static bool is_wrong_every_second_time(struct subject *subject,
                                       const struct assay_run_call *call)
{
    return value(call, "m") >= 3 && value(call, "n") > 0 && subject->runs % 2;
}

START_TEST(a_flaky_case_is_said_to_be_flaky_and_shrinks)
{
    struct subject subject = { is_wrong_every_second_time, ASSAY_RAN, 0 };
    ck_assert_int_eq(shrink(&subject, "fp8_gemm_nt m=50 n=64 k=128 seed=1", 0),
                     ASSAY_RAN);
    ck_assert_int_eq(outcome.failed_tries, 2);
    ck_assert_int_eq(outcome.tries, 3);
    ck_assert_str_eq(line_of(&outcome.smallest),
                     "fp8_gemm_nt m=3 n=8 k=0 data=zero seed=1");
    ck_assert(assay_result_is_failure(&outcome.result));
    assay_shrink_outcome_close(&outcome);
}
END_TEST

static bool is_wrong_once(struct subject *subject, const struct assay_run_call *call)
{
    (void)call;
    return subject->runs == 2;
}

START_TEST(a_failure_that_does_not_come_back_stays_as_it_is)
{
    struct subject subject = { is_wrong_once, ASSAY_RAN, 0 };
    ck_assert_int_eq(shrink(&subject, "fp8_gemm_nt m=5 n=8 k=32 seed=7", 0), ASSAY_RAN);
    ck_assert_int_eq(outcome.failed_tries, 1);
    ck_assert_str_eq(line_of(&outcome.smallest), "fp8_gemm_nt m=5 n=8 k=32 seed=7");
    assay_shrink_outcome_close(&outcome);
}
END_TEST

static void count_pass(void *context, const struct assay_shrink_progress *progress)
{
    int64_t *const elements = context;
    ck_assert_int_le(progress->elements, *elements);
    parse(progress->case_line);
    *elements = progress->elements;
}

START_TEST(progress_tells_of_ever_smaller_cases)
{
    struct subject subject = { is_ragged, ASSAY_RAN, 0 };
    const struct assay_trial_plan plan = plan_of(&subject);
    const struct assay_case the_case = parse("fp8_gemm_nt m=130 n=40 k=400 seed=3");
    int64_t elements = INT64_MAX;
    const struct assay_shrink wanted = { .plan = &plan,
                                         .progress = count_pass,
                                         .context = &elements };
    struct assay_message message;
    ck_assert_int_eq(assay_shrink(&wanted, &the_case, &outcome, &message), ASSAY_RAN);
    ck_assert_int_eq(elements, outcome.after.elements);
    assay_shrink_outcome_close(&outcome);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        dimensions_go_down_to_the_smallest_that_fail,
        large_dimensions_take_few_trials,
        an_option_that_matters_stays,
        a_knob_and_a_flag_that_matter_stay,
        groups_go_together_with_what_counts_them,
        neighbours_in_a_list_stay,
        one_value_serves_all_where_it_can,
        lists_of_one_length_get_shorter_together,
        fractions_lose_their_decimals,
        a_crash_shrinks_as_well,
        a_lost_device_ends_it,
        what_is_refused_is_refused,
        a_case_that_passes_is_left_alone,
        defaults_that_stand_for_more_are_replaced,
        trials_are_counted_and_limited,
        a_flaky_case_is_said_to_be_flaky_and_shrinks,
        a_failure_that_does_not_come_back_stays_as_it_is,
        progress_tells_of_ever_smaller_cases,
        NULL,
    };
    return run_tests("shrink", tests);
}
