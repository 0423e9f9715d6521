/* SPDX-License-Identifier: MIT */
/* What a long run says about itself. */
#include "verify/run/progress.h"

#include "tests/harness.h"

#include <string.h>

/* What is said 100 seconds after the beginning, but for the newline. */
static void told(struct assay_progress progress, char text[256])
{
    size_t bytes = 0;
    char *line = NULL;
    FILE *const stream = open_memstream(&line, &bytes);
    ck_assert_ptr_nonnull(stream);
    progress.stream = stream;
    progress.began -= 100;
    progress.said -= 100;
    assay_progress_tell(&progress);
    ck_assert_int_eq(fclose(stream), 0);
    ck_assert_uint_lt(bytes, 256);
    ck_assert(bytes > 0 && line[bytes - 1] == '\n');
    line[bytes - 1] = '\0';
    strcpy(text, line);
    free(line);
}

static struct assay_progress run_of(int64_t cases, int64_t skipped, int64_t done)
{
    struct assay_progress progress = assay_progress_begin(stderr, cases, skipped);
    progress.is_terminal = false;
    progress.done = done;
    progress.failed = 3;
    return progress;
}

START_TEST(time_left_is_judged_by_the_cases_that_were_run_now)
{
    char text[256];
    told(run_of(100, 20, 60), text);
    ck_assert_str_eq(
        text, "assay: 60 of 100 cases done, 3 failed, about 2 min left, 0.4 cases/s");
    told(run_of(2420, 20, 1220), text);
    ck_assert_str_eq(
        text, "assay: 1220 of 2420 cases done, 3 failed, about 2 min left, 12 cases/s");
    told(run_of(100, 20, 20), text);
    ck_assert_str_eq(text, "assay: 20 of 100 cases done, 3 failed");
}
END_TEST

START_TEST(a_limit_counts_where_it_comes_first)
{
    char text[256];
    struct assay_progress progress = run_of(100, 20, 60);
    progress.seconds = 150;
    told(progress, text);
    ck_assert_str_eq(text,
                     "assay: 60 of 100 cases done, 3 failed, 50 s left, 0.4 cases/s");
    progress.seconds = 7300;
    told(progress, text);
    ck_assert_str_eq(
        text, "assay: 60 of 100 cases done, 3 failed, about 2 min left, 0.4 cases/s");
    progress.cases = 0;
    told(progress, text);
    ck_assert_str_eq(text, "assay: 60 cases done, 3 failed, 2.0 h left, 0.4 cases/s");
    progress.seconds = 99;
    told(progress, text);
    ck_assert_str_eq(text, "assay: 60 cases done, 3 failed, 0 s left, 0.4 cases/s");
}
END_TEST

START_TEST(findings_are_shown_where_they_are_counted)
{
    char text[256];
    int64_t findings = 1;
    struct assay_progress progress = run_of(0, 0, 50);
    progress.findings = &findings;
    told(progress, text);
    ck_assert_str_eq(text, "assay: 50 cases done, 3 failed (1 finding), 0.5 cases/s");
    findings = 2;
    told(progress, text);
    ck_assert_str_eq(text, "assay: 50 cases done, 3 failed (2 findings), 0.5 cases/s");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        time_left_is_judged_by_the_cases_that_were_run_now,
        a_limit_counts_where_it_comes_first,
        findings_are_shown_where_they_are_counted,
        NULL,
    };
    return run_tests("progress", tests);
}
