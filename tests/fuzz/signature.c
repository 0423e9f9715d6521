/* SPDX-License-Identifier: MIT */
/* Failures that are one and the same get one line, others another one. */
#include "fuzz/shrink/signature.h"

#include "tests/harness.h"
#include "verify/check/trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 4, COLUMNS = 64 };

/* A result of a GEMM whose elements @index, closed by -1, differ. */
struct fixture {
    struct assay_result result;
    struct assay_output_result output;
};

static void shape(struct assay_output_result *output, int64_t rows, int64_t columns)
{
    output->name = "d";
    output->tensor = (struct assay_tensor){
        .name = "d", .format = ASSAY_BF16, .rank = 2, .shape = { rows, columns }
    };
    output->elements = output->defined = rows * columns;
    output->bound_worst_index = -1;
}

static void begin(struct fixture *fixture, const int64_t *index)
{
    *fixture = (struct fixture){ .result = { .status = ASSAY_RAN,
                                             .verdict = ASSAY_BOUNDED,
                                             .is_decisive = true,
                                             .output_count = 1 } };
    struct assay_output_result *const output = &fixture->output;
    fixture->result.operation = assay_operation_find("fp8_gemm_nt");
    fixture->result.output = output;
    shape(output, ROWS, COLUMNS);
    output->has_bits = output->has_bound = true;
    for (; *index >= 0; index++, output->differ++)
        output->difference[output->difference_count++] =
            (struct assay_difference){ .index = *index, .ulps = 1 };
    output->max_ulps = 1;
}

static const char *text_of(const struct fixture *fixture)
{
    static struct assay_signature signature;
    signature = assay_signature_of(&fixture->result);
    return signature.text;
}

static const char *places(const int64_t *index)
{
    static struct fixture fixture;
    begin(&fixture, index);
    const char *const text = text_of(&fixture);
    const char *const start = strchr(text, '[');
    ck_assert_msg(start, "%s", text);
    return start;
}

#define PLACES(...) places((const int64_t[]){ __VA_ARGS__, -1 })

START_TEST(places_are_first_last_some_or_all_of_a_dimension)
{
    ck_assert_str_eq(PLACES(0), "[first,first]");
    ck_assert_str_eq(PLACES(ROWS * COLUMNS - 1), "[last,last]");
    ck_assert_str_eq(PLACES(COLUMNS - 1, 2 * COLUMNS - 1), "[some,last]");
    ck_assert_str_eq(PLACES(5, COLUMNS + 5, 2 * COLUMNS + 5, 3 * COLUMNS + 5),
                     "[all,some]");
    ck_assert_str_eq(PLACES(COLUMNS, COLUMNS + 63), "[some,some]");
}
END_TEST

START_TEST(all_of_an_output_needs_no_list_of_differences)
{
    static struct fixture fixture;
    begin(&fixture, (const int64_t[]){ 0, 1, -1 });
    fixture.output.differ = ROWS * COLUMNS;
    ck_assert_str_eq(text_of(&fixture), "fp8_gemm_nt bounded by bitwise: d[all,all]");
    fixture.output.differ--; /* no row and no column can be without one */
    ck_assert_str_eq(text_of(&fixture), "fp8_gemm_nt bounded by bitwise: d[all,all]");
    fixture.output.differ = 200; /* every row; columns are not known */
    ck_assert_str_eq(text_of(&fixture), "fp8_gemm_nt bounded by bitwise: d[all,some]");
    fixture.output.differ = 3; /* kept ones are all in the first row; one is not kept */
    ck_assert_str_eq(text_of(&fixture), "fp8_gemm_nt bounded by bitwise: d[some,some]");
}
END_TEST

START_TEST(without_bits_places_come_from_counts)
{
    static struct fixture fixture;
    begin(&fixture, (const int64_t[]){ -1 });
    fixture.result.verdict = ASSAY_OUTSIDE;
    fixture.output.has_bits = false;
    fixture.output.outside = 3;
    ck_assert_str_eq(text_of(&fixture), "fp8_gemm_nt outside by bound: d[some,some]");
    fixture.output.outside = ROWS * COLUMNS;
    ck_assert_str_eq(text_of(&fixture), "fp8_gemm_nt outside by bound: d[all,all]");
}
END_TEST

START_TEST(checks_outputs_nan_and_explanation_are_named)
{
    static struct fixture fixture;
    begin(&fixture, (const int64_t[]){ 7, -1 });
    fixture.result.verdict = ASSAY_OUTSIDE;
    fixture.output.outside = fixture.output.inexact = 1;
    fixture.result.finding[fixture.result.finding_count++] =
        (struct assay_finding){ .check = "batch", .is_failure = true, .output = "lse" };
    fixture.result.finding[fixture.result.finding_count++] =
        (struct assay_finding){ .check = "repeat", .is_failure = false };
    ck_assert_str_eq(
        text_of(&fixture),
        "fp8_gemm_nt outside by bitwise, bound, exact, batch: d[first,some]");
    fixture.output.max_ulps = UINT64_MAX;
    strcpy(fixture.result.explanation, "deepgemm-1d1d");
    ck_assert_str_eq(text_of(&fixture),
                     "fp8_gemm_nt outside by bitwise, bound, exact, batch: d[first,some] "
                     "NaN; explained by deepgemm-1d1d");
}
END_TEST

START_TEST(an_output_that_only_a_second_run_got_wrong_is_named)
{
    static struct fixture fixture;
    begin(&fixture, (const int64_t[]){ -1 });
    fixture.result.verdict = ASSAY_OUTSIDE;
    fixture.result.finding[fixture.result.finding_count++] = (struct assay_finding){
        .check = "repeat", .is_failure = true, .output = "d", .worst.ulps = UINT64_MAX
    };
    ck_assert_str_eq(text_of(&fixture), "fp8_gemm_nt outside by repeat: d NaN");
    fixture.result.finding[0].is_failure = false;
    ck_assert_str_eq(text_of(&fixture), "fp8_gemm_nt outside");
}
END_TEST

START_TEST(nan_beyond_the_bound_counts_on_either_side)
{
    static struct fixture fixture;
    begin(&fixture, (const int64_t[]){ -1 });
    fixture.output.outside = 1;
    fixture.output.bound_worst_bits = 0x3f80;
    ck_assert_ptr_null(strstr(text_of(&fixture), "NaN"));
    fixture.output.bound_worst_bits = 0x7fc0;
    ck_assert_ptr_nonnull(strstr(text_of(&fixture), " NaN"));
    fixture.output.bound_worst_bits = 0x3f80;
    fixture.output.bound_worst_value = (double)NAN;
    ck_assert_ptr_nonnull(strstr(text_of(&fixture), " NaN"));
}
END_TEST

/* --- ends --------------------------------------------------------------------------- */

static const char *ended(enum assay_status status, const char *message)
{
    static struct fixture fixture;
    begin(&fixture, (const int64_t[]){ -1 });
    fixture.result.status = status;
    fixture.result.output_count = 0;
    snprintf(fixture.result.message.text, sizeof(fixture.result.message.text), "%s",
             message);
    return text_of(&fixture);
}

START_TEST(an_end_is_its_kind_whatever_the_addresses)
{
    ck_assert_str_eq(
        ended(ASSAY_CRASHED, "plugin a.so was killed by signal 11 (SIGSEGV) (launch)"),
        "fp8_gemm_nt crashed: SIGSEGV");
    ck_assert_str_eq(ended(ASSAY_CRASHED, "run 3 of 10 on second inputs: plugin a.so "
                                          "was killed by signal 11 (SIGSEGV) (launch)"),
                     "fp8_gemm_nt crashed: SIGSEGV");
    ck_assert_str_eq(ended(ASSAY_CRASHED, "plugin a.so wrote outside its tensors"),
                     "fp8_gemm_nt crashed: wrote outside its tensors");
    ck_assert_str_eq(ended(ASSAY_HUNG, "plugin a.so gave no answer within 1 s"),
                     "fp8_gemm_nt hung");
    ck_assert_str_eq(
        ended(ASSAY_FAILED, "plugin a.so: error 700 at 0x7ffd12ab, 12ms, fp8 x_1"),
        "fp8_gemm_nt failed: plugin a.so: error # at #, #, fp8 x_#");
    ck_assert_str_eq(ended(ASSAY_CRASHED, ""), "fp8_gemm_nt crashed");
}
END_TEST

START_TEST(a_long_message_is_cut)
{
    char message[500];
    memset(message, 'x', sizeof(message) - 1);
    message[sizeof(message) - 1] = '\0';
    const char *const text = ended(ASSAY_FAILED, message);
    ck_assert_uint_lt(strlen(text), 200);
    ck_assert_str_eq(text + strlen(text) - 3, "...");
}
END_TEST

/* --- likeness ----------------------------------------------------------------------- */

START_TEST(only_what_went_wrong_is_a_failure)
{
    static struct fixture fixture;
    begin(&fixture, (const int64_t[]){ 1, -1 });
    struct assay_result *const result = &fixture.result;
    ck_assert(assay_result_is_failure(result));
    result->has_passed = true;
    ck_assert(!assay_result_is_failure(result));
    result->has_passed = result->is_decisive = false;
    ck_assert(!assay_result_is_failure(result));
    for (int status = ASSAY_RAN + 1; status < ASSAY_STATUS_COUNT; status++) {
        result->status = (enum assay_status)status;
        ck_assert_int_eq(assay_result_is_failure(result),
                         status != ASSAY_UNSUPPORTED && status != ASSAY_REFUSED);
    }
}
END_TEST

/* Whether @change makes another failure of a case that fails by bits, bound and exact. */
static bool stays_like(void (*change)(struct fixture *))
{
    static struct fixture original, smaller;
    begin(&original, (const int64_t[]){ 3, 9, -1 });
    original.result.verdict = ASSAY_OUTSIDE;
    original.output.outside = original.output.inexact = 1;
    smaller = original;
    smaller.result.output = &smaller.output;
    change(&smaller);
    return assay_signature_is_like(&smaller.result, &original.result);
}

static void change_nothing(struct fixture *fixture)
{
    (void)fixture;
}

static void change_places(struct fixture *fixture)
{
    shape(&fixture->output, 1, 8);
    fixture->output.difference_count = 1;
    fixture->output.difference[0].index = 0;
    fixture->output.differ = 1;
}

static void fail_fewer_checks(struct fixture *fixture)
{
    fixture->output.inexact = 0;
}

static void fail_another_check(struct fixture *fixture)
{
    fixture->result.finding_count = 1;
    fixture->result.finding[0] =
        (struct assay_finding){ .check = "poison", .is_failure = true };
}

static void pass(struct fixture *fixture)
{
    fixture->result.has_passed = true;
}

static void fail_by_bits_alone(struct fixture *fixture)
{
    fixture->output.inexact = fixture->output.outside = 0;
    fixture->result.verdict = ASSAY_BOUNDED;
}

static void become_nan(struct fixture *fixture)
{
    fixture->output.max_ulps = UINT64_MAX;
}

static void fail_in_another_output(struct fixture *fixture)
{
    fixture->output.name = "lse";
}

static void crash(struct fixture *fixture)
{
    fixture->result.status = ASSAY_CRASHED;
}

static void be_of_another_operation(struct fixture *fixture)
{
    fixture->result.operation = assay_operation_find("quantise");
}

START_TEST(likeness_is_of_verdict_checks_outputs_and_nan)
{
    ck_assert(stays_like(change_nothing));
    ck_assert(stays_like(change_places));
    ck_assert(stays_like(fail_fewer_checks));
    ck_assert(!stays_like(fail_another_check));
    ck_assert(!stays_like(pass));
    ck_assert(!stays_like(fail_by_bits_alone));
    ck_assert(!stays_like(become_nan));
    ck_assert(!stays_like(fail_in_another_output));
    ck_assert(!stays_like(crash));
    ck_assert(!stays_like(be_of_another_operation));
}
END_TEST

START_TEST(crashes_are_alike_by_their_signal)
{
    static struct fixture a, b;
    begin(&a, (const int64_t[]){ -1 });
    a.result.status = ASSAY_CRASHED;
    strcpy(a.result.message.text, "plugin x was killed by signal 11 (SIGSEGV) (launch)");
    b = a;
    strcpy(b.result.message.text, "plugin x was killed by signal 11 (SIGSEGV) (claim)");
    ck_assert(assay_signature_is_like(&a.result, &b.result));
    strcpy(b.result.message.text, "plugin x was killed by signal 6 (SIGABRT) (launch)");
    ck_assert(!assay_signature_is_like(&a.result, &b.result));
}
END_TEST

/* --- real failures ------------------------------------------------------------------ */

static struct assay_signature signature_of_line(const char *backend, const char *line)
{
    struct assay_trial_plan plan = { .uses_model = true,
                                     .uses_oracle = true,
                                     .checks = assay_checks };
    struct assay_case the_case;
    struct assay_message message;
    struct assay_result result;
    ck_assert_int_eq(assay_case_parse(line, &the_case, &message), ASSAY_RAN);
    ck_assert_int_eq(assay_backend_open(backend, NULL, &plan.candidate,
                                        &plan.candidate_state, &message),
                     ASSAY_RAN);
    assay_trial_run(&plan, &the_case, NULL, 0, &result);
    const struct assay_signature signature = assay_signature_of(&result);
    assay_result_close(&result);
    plan.candidate->close(plan.candidate_state);
    return signature;
}

START_TEST(seeds_change_nothing)
{
    for (int seed = 1; seed <= 5; seed++) {
        char line[128];
        snprintf(line, sizeof(line),
                 "fp8_gemm_nt m=20 n=24 k=256 recipe=1d1d out=f32 c=1 seed=%d", seed);
        ck_assert_str_eq(signature_of_line("fault:c-twice", line).text,
                         "fp8_gemm_nt outside by bitwise, bound: d[all,all]");
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { places_are_first_last_some_or_all_of_a_dimension,
                                   all_of_an_output_needs_no_list_of_differences,
                                   without_bits_places_come_from_counts,
                                   checks_outputs_nan_and_explanation_are_named,
                                   an_output_that_only_a_second_run_got_wrong_is_named,
                                   nan_beyond_the_bound_counts_on_either_side,
                                   an_end_is_its_kind_whatever_the_addresses,
                                   a_long_message_is_cut,
                                   only_what_went_wrong_is_a_failure,
                                   likeness_is_of_verdict_checks_outputs_and_nan,
                                   crashes_are_alike_by_their_signal,
                                   seeds_change_nothing,
                                   NULL };
    return run_tests("signature", tests);
}
