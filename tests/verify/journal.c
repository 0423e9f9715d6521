/* SPDX-License-Identifier: MIT */
/* The journal of a run: what it holds, and what is made of it when it was torn, damaged
 * or is somebody else's. */
#include "verify/run/journal.h"

#include "tests/harness.h"
#include "tests/verify/scratch.h"
#include "verify/run/job.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { CASES = 6 };

static const struct assay_journal_setting settings[] = { { "--require", "" },
                                                         { "--timeout", "60" },
                                                         { NULL, NULL } };
static const struct assay_journal_header ours = {
    .command = "verify", .cases = CASES, .selection = 0xfeed, .settings = settings
};
static struct scratch scratch;
static struct assay_message message;

/* The folder is made anew for each test; the journal is the only file in it. */
static const char *journal_path(void)
{
    return scratch_name(&scratch, "journal.jsonl");
}

static enum assay_status try_open(struct assay_journal **journal)
{
    return assay_journal_open(scratch.folder, &ours, journal, &message);
}

static struct assay_journal *opened(void)
{
    struct assay_journal *journal = NULL;
    ck_assert_msg(try_open(&journal) == ASSAY_RAN, "%s", message.text);
    return journal;
}

/* A result's line that names the case. */
static char *line_of(int64_t number)
{
    struct assay_result result = { .status = ASSAY_FAILED,
                                   .model_max_error_over_bound = -1 };
    snprintf(result.case_line, sizeof(result.case_line), "case %" PRId64, number);
    char *const line = assay_job_result(&result);
    ck_assert_ptr_nonnull(line);
    return line;
}

static void begin(struct assay_journal *journal, int64_t number)
{
    ck_assert(assay_journal_begin(journal, number, &message) == ASSAY_RAN);
}

static void finish(struct assay_journal *journal, int64_t number)
{
    char *const line = line_of(number);
    ck_assert(assay_journal_finish(journal, number, line, true, &message) == ASSAY_RAN);
    free(line);
}

static void check_line(const struct assay_journal *journal, int64_t number)
{
    char *line, wanted[64];
    ck_assert(assay_journal_has(journal, number));
    ck_assert(assay_journal_read(journal, number, &line, &message) == ASSAY_RAN);
    snprintf(wanted, sizeof(wanted), "{\"number\":%" PRId64 ",\"type\":\"case\",",
             number);
    ck_assert_msg(strncmp(line, wanted, strlen(wanted)) == 0, "%s", line);
    snprintf(wanted, sizeof(wanted), "\"case\":\"case %" PRId64 "\"", number);
    ck_assert_ptr_nonnull(strstr(line, wanted));
    ck_assert_ptr_null(strchr(line, '\n'));
    free(line);
}

/* A run as it is when it is killed after some cases: the lock goes, nothing is said. */
static void run_and_die(const int *finished, const int *in_flight)
{
    const pid_t child = fork();
    if (child == 0) {
        struct assay_journal *const journal = opened();
        for (; *finished >= 0; finished++) {
            begin(journal, *finished);
            finish(journal, *finished);
        }
        for (; *in_flight >= 0; in_flight++)
            begin(journal, *in_flight);
        raise(SIGKILL);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void put(const char *text, size_t bytes)
{
    scratch_put(&scratch, "journal.jsonl", text, bytes);
}

static char *whole(size_t *bytes)
{
    char *const text = (char *)scratch_get(journal_path(), bytes);
    text[*bytes] = '\0';
    return text;
}

START_TEST(what_is_finished_is_kept_in_any_order)
{
    scratch_open(&scratch);
    struct assay_journal *journal = opened();
    static const int order[] = { 3, 0, 5 };
    for (int i = 0; i < 3; i++)
        begin(journal, order[i]);
    for (int i = 0; i < 3; i++)
        finish(journal, order[2 - i]);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < CASES; i++) {
            const bool is_there = i == 3 || i == 0 || i == 5;
            ck_assert(assay_journal_has(journal, i) == is_there);
            if (is_there) check_line(journal, i);
        }
        ck_assert(!assay_journal_has(journal, CASES + 1000000));
        assay_journal_close(journal);
        journal = opened();
    }
    assay_journal_close(journal);
    scratch_close(&scratch);
}
END_TEST

START_TEST(runs_that_died_are_counted_for_what_they_left_begun)
{
    scratch_open(&scratch);
    static const int none[] = { -1 }, zero[] = { 0, -1 }, one[] = { 1, -1 },
                     two[] = { 1, 2, -1 };
    run_and_die(zero, two);
    run_and_die(none, one);
    struct assay_journal *journal = opened();
    ck_assert_int_eq(assay_journal_deaths(journal, 0), 0);
    ck_assert_int_eq(assay_journal_deaths(journal, 1), 2);
    ck_assert_int_eq(assay_journal_deaths(journal, 2), 1);
    ck_assert_int_eq(assay_journal_deaths(journal, 3), 0);
    begin(journal, 1);
    begin(journal, 3);
    assay_journal_close(journal); /* stops */
    run_and_die(none, none);
    journal = opened();
    ck_assert_int_eq(assay_journal_deaths(journal, 1), 2);
    ck_assert_int_eq(assay_journal_deaths(journal, 2), 1);
    ck_assert_int_eq(assay_journal_deaths(journal, 3), 0);
    assay_journal_close(journal);
    scratch_close(&scratch);
}
END_TEST

START_TEST(a_signal_that_asks_for_an_end_blames_no_case)
{
    scratch_open(&scratch);
    static const int number[] = { SIGINT, SIGTERM, SIGHUP };
    for (int i = 0; i < 3; i++) {
        int status;
        const pid_t child = fork();
        if (child == 0) {
            signal(number[i], SIG_DFL);
            begin(opened(), 4);
            raise(number[i]);
            _exit(1);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == number[i]);
    }
    struct assay_journal *const journal = opened();
    ck_assert_int_eq(assay_journal_deaths(journal, 4), 0);
    assay_journal_close(journal);
    scratch_close(&scratch);
}
END_TEST

START_TEST(a_journal_cut_anywhere_goes_on_from_its_last_whole_line)
{
    scratch_open(&scratch);
    static const int finished[] = { 0, 2, 1, -1 }, in_flight[] = { 4, -1 };
    size_t bytes;
    run_and_die(finished, in_flight);
    char *const text = whole(&bytes);
    for (size_t cut = 0; cut <= bytes; cut += 3) {
        put(text, cut);
        int results = 0;
        for (size_t at = 0; at < cut; at++)
            if (text[at] == '\n' && memmem(text, at, "seconds", 7)) {
                size_t start = at;
                while (start > 0 && text[start - 1] != '\n')
                    start--;
                results += strncmp(text + start, "{\"number\"", 9) == 0;
            }
        struct assay_journal *const journal = opened();
        int found = 0;
        for (int i = 0; i < CASES; i++)
            found += assay_journal_has(journal, i);
        ck_assert_int_eq(found, results);
        finish(journal, 5);
        assay_journal_close(journal);
        struct assay_journal *const again = opened();
        check_line(again, 5);
        assay_journal_close(again);
    }
    free(text);
    scratch_close(&scratch);
}
END_TEST

/* Replaces line @number (from 1) of @text by another in the journal. */
static void replace_line(const char *text, int number, const char *line)
{
    char changed[8192];
    const char *start = text;
    for (int i = 1; i < number; i++)
        start = strchr(start, '\n') + 1;
    const int length = snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(start - text),
                                text, line, strchr(start, '\n'));
    ck_assert_int_lt(length, (int)sizeof(changed));
    put(changed, (size_t)length);
}

START_TEST(a_damaged_line_is_refused_by_its_number)
{
    scratch_open(&scratch);
    static const int finished[] = { 0, 2, -1 }, in_flight[] = { 4, -1 };
    static const char *const damage[] = {
        "",
        "{",
        "[]",
        "null",
        "{\"type\":\"beginning\",\"case\":1}",
        "{\"type\":\"begin\"}",
        "{\"type\":\"begin\",\"case\":\"1\"}",
        "{\"type\":\"begin\",\"case\":-1}",
        "{\"type\":\"begin\",\"case\":6}",
        "{\"type\":\"begin\",\"case\":99999999999}",
        "{\"type\":\"case\",\"number\":1}",
        "{\"type\":\"stopped\"} x",
    };
    size_t bytes;
    run_and_die(finished, in_flight);
    char *const text = whole(&bytes);
    for (size_t i = 0; i < sizeof(damage) / sizeof(*damage); i++)
        for (int number = 1; number <= 6; number++) {
            char wanted[64];
            struct assay_journal *journal;
            snprintf(wanted, sizeof(wanted), "journal.jsonl: line %d is damaged", number);
            replace_line(text, number, damage[i]);
            ck_assert_msg(try_open(&journal) == ASSAY_REFUSED, "%d: %s", number,
                          damage[i]);
            ck_assert_msg(strstr(message.text, wanted), "%s", message.text);
        }
    free(text);
    scratch_close(&scratch);
}
END_TEST

/* Or one damaged digit would ask for an index of many gigabytes. */
START_TEST(without_a_known_end_a_number_that_leaps_is_refused)
{
    struct assay_journal_header endless = ours;
    struct assay_journal *journal;
    size_t bytes;
    endless.cases = 0;
    scratch_open(&scratch);
    ck_assert(assay_journal_open(scratch.folder, &endless, &journal, &message) ==
              ASSAY_RAN);
    begin(journal, 1000000);
    begin(journal, 2000000);
    assay_journal_close(journal);
    ck_assert(assay_journal_open(scratch.folder, &endless, &journal, &message) ==
              ASSAY_RAN);
    assay_journal_close(journal);
    char *const text = whole(&bytes);
    replace_line(text, 3, "{\"type\":\"begin\",\"case\":2000000000}");
    ck_assert(assay_journal_open(scratch.folder, &endless, &journal, &message) ==
              ASSAY_REFUSED);
    ck_assert_msg(strstr(message.text, "line 3 is damaged"), "%s", message.text);
    free(text);
    scratch_close(&scratch);
}
END_TEST

START_TEST(a_case_begins_once_in_a_run_and_is_finished_once)
{
    scratch_open(&scratch);
    static const int finished[] = { 0, -1 }, in_flight[] = { 1, -1 };
    static const int added[] = { 2, 3, 4 }; /* begun and done, done, begun */
    size_t bytes;
    run_and_die(finished, in_flight);
    char *const text = whole(&bytes);
    for (int i = 0; i < 3; i++) {
        char twice[8192];
        struct assay_journal *journal;
        const char *line = text;
        for (int at = 1; at < added[i]; at++)
            line = strchr(line, '\n') + 1;
        const int length = (int)(strchr(line, '\n') + 1 - line);
        const int all = snprintf(twice, sizeof(twice), "%s%.*s", text, length, line);
        put(twice, (size_t)all);
        ck_assert(try_open(&journal) == ASSAY_REFUSED);
        ck_assert_msg(strstr(message.text, "line 5 is damaged"), "%s", message.text);
    }
    free(text);
    scratch_close(&scratch);
}
END_TEST

static void check_other(const struct assay_journal_header *header, const char *sentence)
{
    struct assay_journal *journal;
    ck_assert(assay_journal_open(scratch.folder, header, &journal, &message) ==
              ASSAY_REFUSED);
    ck_assert_msg(strstr(message.text, sentence), "%s", message.text);
}

START_TEST(another_run_is_refused)
{
    scratch_open(&scratch);
    static const struct assay_journal_setting stricter[] = { { "--require", "equal" },
                                                             { "--timeout", "60" },
                                                             { NULL, NULL } };
    struct assay_journal_header other = ours;
    assay_journal_close(opened());
    other.command = "fuzz";
    check_other(&other, "with command verify, not fuzz");
    other = ours;
    other.cases = 7;
    check_other(&other, "belongs to a run of 6 cases, not of the 7");
    other = ours;
    other.selection++;
    check_other(&other, "belongs to a run of other 6 cases");
    other = ours;
    other.settings = stricter;
    check_other(&other, "without --require, not equal");
    other.settings = settings + 1;
    check_other(&other, "with options of its own");
    assay_journal_close(opened());
    scratch_close(&scratch);
}
END_TEST

START_TEST(a_second_run_waits_a_while_and_is_refused)
{
    scratch_open(&scratch);
    struct assay_journal *const first = opened(), *second;
    ck_assert(try_open(&second) == ASSAY_REFUSED);
    ck_assert_ptr_nonnull(strstr(message.text, "another run is using it"));
    assay_journal_close(first);
    assay_journal_close(opened());
    scratch_close(&scratch);
}
END_TEST

START_TEST(a_line_that_does_not_fit_leaves_no_trace)
{
    scratch_open(&scratch);
    struct assay_journal *const journal = opened();
    size_t before, after;
    begin(journal, 1);
    free(whole(&before));
    char *const line = line_of(1);
    const struct rlimit little = { before + 20, RLIM_INFINITY },
                        unlimited = { RLIM_INFINITY, RLIM_INFINITY };
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &little), 0);
    ck_assert(assay_journal_finish(journal, 1, line, true, &message) == ASSAY_FAILED);
    ck_assert(!assay_journal_has(journal, 1));
    free(line);
    free(whole(&after));
    ck_assert_uint_eq(before, after);
    assay_journal_close(journal);
    setrlimit(RLIMIT_FSIZE, &unlimited);
    free(whole(&after));
    ck_assert_uint_eq(after, before + strlen("{\"type\":\"stopped\"}\n"));
    scratch_close(&scratch);
}
END_TEST

START_TEST(an_ended_journal_is_not_written_any_more)
{
    scratch_open(&scratch);
    struct assay_journal *journal = opened();
    size_t before, after;
    for (int i = 0; i < CASES; i++)
        finish(journal, i);
    ck_assert(assay_journal_end(journal, CASES, &message) == ASSAY_RAN);
    assay_journal_close(journal);
    char *const text = whole(&before);
    journal = opened();
    check_line(journal, 3);
    ck_assert(assay_journal_end(journal, CASES, &message) == ASSAY_RAN);
    assay_journal_close(journal);
    char *const again = whole(&after);
    ck_assert_str_eq(text, again);
    free(text);
    free(again);
    scratch_close(&scratch);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        what_is_finished_is_kept_in_any_order,
        runs_that_died_are_counted_for_what_they_left_begun,
        a_signal_that_asks_for_an_end_blames_no_case,
        a_journal_cut_anywhere_goes_on_from_its_last_whole_line,
        a_damaged_line_is_refused_by_its_number,
        without_a_known_end_a_number_that_leaps_is_refused,
        a_case_begins_once_in_a_run_and_is_finished_once,
        another_run_is_refused,
        a_second_run_waits_a_while_and_is_refused,
        a_line_that_does_not_fit_leaves_no_trace,
        an_ended_journal_is_not_written_any_more,
        NULL,
    };
    return run_tests("journal", tests);
}
