/* SPDX-License-Identifier: MIT */
/* Results in brief: what is kept, whether it is enough, and what is no such line. */
#include "verify/report/brief.h"

#include "tests/harness.h"
#include "verify/report/json_read.h"
#include "verify/run/job.h"
#include "verify/run/tally.h"

#include <math.h>
#include <string.h>

static struct assay_message message;

static struct assay_result passed(void)
{
    struct assay_result result = { .status = ASSAY_RAN,
                                   .verdict = ASSAY_EQUAL,
                                   .has_passed = true,
                                   .is_decisive = true,
                                   .model_max_error_over_bound = -1,
                                   .note = "0a-_Z" };
    return result;
}

static struct assay_brief read_back(const char *line)
{
    struct assay_brief brief;
    bool is_brief;
    ck_assert_msg(assay_brief_read(line, &brief, &is_brief, &message) == ASSAY_RAN, "%s",
                  message.text);
    ck_assert(is_brief);
    return brief;
}

static void expect_same(const struct assay_brief *a, const struct assay_brief *b)
{
    ck_assert_int_eq(a->status, b->status);
    ck_assert_int_eq(a->verdict, b->verdict);
    ck_assert_int_eq(a->has_passed, b->has_passed);
    ck_assert_int_eq(a->is_decisive, b->is_decisive);
    ck_assert_int_eq(a->compared, b->compared);
    ck_assert_int_eq(a->equal, b->equal);
    ck_assert(
        memcmp(&a->max_error_over_bound, &b->max_error_over_bound, sizeof(double)) == 0);
    ck_assert_str_eq(a->note, b->note);
}

START_TEST(every_brief_result_comes_back)
{
    static const double errors[] = { 0, 0x1p-1074, 0.1, 1, 1e300, (double)INFINITY };
    for (int status = 0; status < ASSAY_STATUS_COUNT; status++)
        for (int verdict = 0; verdict < ASSAY_VERDICT_COUNT; verdict++)
            for (int i = 0; i < 24; i++) {
                const struct assay_brief brief = {
                    .status = (enum assay_status)status,
                    .verdict = (enum assay_verdict)verdict,
                    .has_passed = i & 1,
                    .is_decisive = i & 2,
                    .compared = i * 1000,
                    .equal = i & 4 ? i * 1000 : 0,
                    .max_error_over_bound = errors[i % 6],
                    .note = { i & 8 ? 'n' : '\0' },
                };
                char *const line = assay_brief_line(&brief);
                const struct assay_brief again = read_back(line);
                expect_same(&brief, &again);
                free(line);
            }
}
END_TEST

START_TEST(a_result_that_passed_is_a_short_line)
{
    struct assay_result result = passed();
    result.output = calloc(2, sizeof(*result.output));
    result.output_count = 2;
    for (int i = 0; i < 2; i++) {
        result.output[i].has_bits = result.output[i].has_bound = true;
        result.output[i].defined = 1000000;
        result.output[i].max_error_over_bound = 0.1 + i;
    }
    result.output[1].differ = 3;
    char *const line = assay_job_brief(&result);
    ck_assert_uint_lt(strlen(line), 140);
    ck_assert_ptr_null(strchr(line, '\n'));
    const struct assay_brief brief = read_back(line);
    ck_assert_int_eq(brief.compared, 2000000);
    ck_assert_int_eq(brief.equal, 1999997);
    ck_assert(brief.max_error_over_bound == 1.1);
    ck_assert_str_eq(brief.note, "0a-_Z");
    struct assay_summary whole = { .cases = 0 }, told = { .cases = 0 };
    assay_summary_add(&whole, &result);
    assay_summary_add_brief(&told, &brief);
    ck_assert(memcmp(&whole, &told, sizeof(whole)) == 0);
    free(line);
    assay_result_close(&result);
}
END_TEST

START_TEST(failures_are_told_in_full)
{
    struct assay_result result = passed();
    ck_assert(assay_brief_is_enough(&result));
    result.has_passed = false;
    ck_assert(!assay_brief_is_enough(&result));
    result.is_decisive = false; /* it proves nothing */
    ck_assert(assay_brief_is_enough(&result));
    result.verdict = ASSAY_OUTSIDE;
    ck_assert(!assay_brief_is_enough(&result));
    result.verdict = ASSAY_CONTRADICTION;
    ck_assert(!assay_brief_is_enough(&result));
    result.verdict = ASSAY_NOT_JUDGED;
    for (int status = 0; status < ASSAY_STATUS_COUNT; status++) {
        result.status = (enum assay_status)status;
        ck_assert_int_eq(assay_brief_is_enough(&result),
                         status == ASSAY_RAN || status == ASSAY_UNSUPPORTED);
    }
}
END_TEST

START_TEST(a_note_stays_with_a_result_told_in_full)
{
    struct assay_result result = passed(), again;
    strcpy(result.case_line, "convert to=bf16 count=1 seed=1");
    char *const line = assay_job_result(&result);
    ck_assert_int_eq(assay_json_result_read(line, &again, &message), ASSAY_RAN);
    ck_assert_str_eq(again.note, "0a-_Z");
    struct assay_brief brief;
    bool is_brief = true;
    ck_assert_int_eq(assay_brief_read(line, &brief, &is_brief, &message), ASSAY_RAN);
    ck_assert(!is_brief);
    assay_result_close(&again);
    free(line);
}
END_TEST

/* One character more than there is room for. */
static const char long_note[] =
    "{\"type\":\"brief\",\"verdict\":\"equal\","
    "\"note\":\"012345678901234567890123456789012345678901234567\"}";

START_TEST(what_is_no_brief_result_is_refused)
{
    static const char *const lines[] = {
        long_note,
        "",
        "{",
        "{\"type\":\"brief\"}",
        "{\"type\":\"brief\",\"verdict\":\"fine\"}",
        "{\"type\":\"brief\",\"verdict\":7}",
        "{\"type\":\"brief\",\"verdict\":\"equal\",\"status\":\"well\"}",
        "{\"type\":\"brief\",\"verdict\":\"equal\",\"passed\":1}",
        "{\"type\":\"brief\",\"verdict\":\"equal\",\"decisive\":\"no\"}",
        "{\"type\":\"brief\",\"verdict\":\"equal\",\"compared\":-1}",
        "{\"type\":\"brief\",\"verdict\":\"equal\",\"compared\":1,\"equal\":2}",
        "{\"type\":\"brief\",\"verdict\":\"equal\",\"error\":\"x\"}",
        "{\"type\":\"brief\",\"verdict\":\"equal\",\"note\":7}",
        "{\"type\":\"brief\",\"type\":\"brief\",\"verdict\":\"equal\"}",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        struct assay_brief brief;
        bool is_brief;
        ck_assert_msg(assay_brief_read(lines[i], &brief, &is_brief, &message) ==
                          ASSAY_REFUSED,
                      "%s", lines[i]);
        ck_assert_uint_gt(strlen(message.text), 10);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_brief_result_comes_back,      a_result_that_passed_is_a_short_line,
        failures_are_told_in_full,          a_note_stays_with_a_result_told_in_full,
        what_is_no_brief_result_is_refused, NULL,
    };
    return run_tests("brief", tests);
}
