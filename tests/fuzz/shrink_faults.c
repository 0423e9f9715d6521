/* SPDX-License-Identifier: MIT */
/* Planted faults shrink to a line that shows the same failure.
 *
 * A default run takes a handful; ASSAY_EXHAUSTIVE=1 in the environment takes all that
 * change a function, and prints what they come to: elements of all tensors and of the
 * largest one, before and after, trials, seconds, and the line. */
#include "fuzz/fault/fault.h"
#include "fuzz/shrink/shrink.h"
#include "fuzz/shrink/signature.h"
#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

static struct assay_shrink_outcome outcome;

static struct assay_case parse(const char *line)
{
    struct assay_case the_case;
    struct assay_message message;
    ck_assert_msg(assay_case_parse(line, &the_case, &message) == ASSAY_RAN, "%s: %s",
                  line, message.text);
    return the_case;
}

static const char *line_of(const struct assay_case *the_case)
{
    static char line[ASSAY_MAX_CASE_LINE];
    assay_case_format(the_case, line, sizeof(line));
    return line;
}

/* What is left of a fault's case may have so many elements: of attention, most of them
 * are the least of its tensors. */
static const struct {
    const char *operation;
    int64_t elements;
} limits[] = {
    { "fp8_gemm_nt", 6000 },
    { "m_grouped_fp8_gemm_nt_contiguous", 20000 },
    { "m_grouped_fp8_gemm_nt_masked", 20000 },
    { "k_grouped_fp8_gemm_nt_contiguous", 40000 },
    { "quantise", 300 },
    { "convert", 4 },
    { "scale_layout", 300 },
    { "mla_plan", 40 },
    { "mla_combine", 7000 },
    { "mla_cache_quantise", 3000 },
    { "mla_cache_dequantise", 3000 },
    { "mla_absorb", 3000 },
    { "mla_dense_decode", 120000 },
    { "mla_sparse_decode", 160000 },
    { "mla_sparse_prefill", 140000 },
};

static int64_t limit_of(const char *operation)
{
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        if (strcmp(limits[i].operation, operation) == 0) return limits[i].elements;
    return 0;
}

/* By its line, as somebody who was sent it would run it. */
static void check_line(const struct assay_trial_plan *plan, const char *line,
                       const struct assay_result *original)
{
    const struct assay_case the_case = parse(line);
    struct assay_result result;
    ck_assert_str_eq(line_of(&the_case), line);
    assay_trial_run(plan, &the_case, NULL, 0, &result);
    ck_assert_msg(assay_signature_is_like(&result, original), "%s: %s, was %s", line,
                  assay_signature_of(&result).text, assay_signature_of(original).text);
    assay_result_close(&result);
}

static void shrink_fault(const struct assay_fault *fault, bool is_shown)
{
    char text[128];
    struct assay_message message;
    struct assay_trial_plan plan = { .uses_model = true,
                                     .uses_oracle = true,
                                     .checks = assay_checks };
    const struct assay_shrink wanted = { .plan = &plan, .seconds = 300 };
    const struct assay_case the_case = parse(fault->cases[0]);
    struct assay_result original;
    snprintf(text, sizeof(text), "fault:%s", fault->name);
    ck_assert_int_eq(
        assay_backend_open(text, NULL, &plan.candidate, &plan.candidate_state, &message),
        ASSAY_RAN);
    assay_trial_run(&plan, &the_case, NULL, 0, &original);
    ck_assert_int_eq(assay_shrink(&wanted, &the_case, &outcome, &message), ASSAY_RAN);
    const char *const line = line_of(&outcome.smallest);
    if (is_shown)
        fprintf(stderr, "%-26s %9lld %9lld %7lld %7lld %5d %6.1f  %s\n", fault->name,
                (long long)outcome.before.elements, (long long)outcome.before.largest,
                (long long)outcome.after.elements, (long long)outcome.after.largest,
                outcome.trials, outcome.seconds, line);
    check_line(&plan, line, &original);
    ck_assert_msg(outcome.after.elements <= limit_of(fault->operation), "%s: %s",
                  fault->name, line);
    ck_assert_msg(strlen(line) <= 300, "%s: %s", fault->name, line);
    assay_result_close(&original);
    assay_shrink_outcome_close(&outcome);
    plan.candidate->close(plan.candidate_state);
}

START_TEST(planted_faults_shrink_to_a_line)
{
    static const char *const names[] = { "c-twice",
                                         "dot-in-f16",
                                         "k-tail-scale",
                                         "scale-a-first-tile",
                                         "exponent-code-zero",
                                         "amax-half-block",
                                         "convert-overflow",
                                         "split-strides-swapped",
                                         "plan-overhead" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct assay_fault *const fault = assay_fault_find(names[i]);
        ck_assert_msg(fault, "%s", names[i]);
        shrink_fault(fault, false);
    }
}
END_TEST

START_TEST(all_faults_of_functions_shrink)
{
    for (int i = 0; getenv("ASSAY_EXHAUSTIVE") && assay_fault_at(i); i++)
        if (assay_fault_at(i)->kind == ASSAY_FAULT_FUNCTION)
            shrink_fault(assay_fault_at(i), true);
}
END_TEST

static void shrink_rounding(char *line)
{
    struct assay_message message;
    struct assay_trial_plan plan = { .uses_model = true,
                                     .uses_oracle = true,
                                     .checks = assay_checks };
    const struct assay_shrink wanted = { .plan = &plan, .seconds = 300 };
    const struct assay_case the_case =
        parse("fp8_gemm_nt m=20 n=24 k=384 out=f32 seed=3");
    ck_assert_int_eq(assay_backend_open("fault:promote-separately", NULL, &plan.candidate,
                                        &plan.candidate_state, &message),
                     ASSAY_RAN);
    ck_assert_int_eq(assay_shrink(&wanted, &the_case, &outcome, &message), ASSAY_RAN);
    ck_assert_int_eq(outcome.result.verdict, ASSAY_BOUNDED);
    ck_assert_int_lt(outcome.after.elements, outcome.before.elements / 10);
    strcpy(line, line_of(&outcome.smallest));
    assay_shrink_outcome_close(&outcome);
    plan.candidate->close(plan.candidate_state);
}

START_TEST(the_same_case_shrinks_to_the_same_line)
{
    static char first[ASSAY_MAX_CASE_LINE], second[ASSAY_MAX_CASE_LINE];
    shrink_rounding(first);
    shrink_rounding(second);
    ck_assert_str_eq(first, second);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { planted_faults_shrink_to_a_line,
                                   all_faults_of_functions_shrink,
                                   the_same_case_shrinks_to_the_same_line, NULL };
    return run_tests("shrink_faults", tests);
}
