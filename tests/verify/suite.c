/* SPDX-License-Identifier: MIT */
/* Reading suites: comments, line numbers, refusals, and files that are not there. The
 * operation is the test's own. */
#include "tests/harness.h"
#include "verify/operation/operation.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct assay_parameter parameters[] = {
    { .name = "m", .meaning = "rows", .minimum = 1, .maximum = 99, .is_required = true },
    { 0 },
};
static const struct assay_operation probe = { .name = "probe", .parameters = parameters };

const struct assay_operation *const assay_operations[] = { &probe, NULL };

const struct assay_operation *assay_operation_find(const char *name)
{
    return strcmp(name, probe.name) == 0 ? &probe : NULL;
}

struct log {
    int count;
    int64_t m[8];
    int64_t stop_at;
    enum assay_status stop_with;
};

static enum assay_status visit(void *context, const struct assay_case *the_case,
                               struct assay_message *message)
{
    struct log *const log = context;
    const int64_t m = assay_case_value(the_case, "m");
    ck_assert_int_lt(log->count, 8);
    log->m[log->count++] = m;
    if (m != log->stop_at) return ASSAY_RAN;
    return assay_fail(message, log->stop_with, "the visitor stops");
}

static char path[] = "/tmp/assay_suite_XXXXXX";

static void write_suite(const char *content, size_t bytes)
{
    strcpy(path + strlen(path) - 6, "XXXXXX");
    const int descriptor = mkstemp(path);
    ck_assert_int_ge(descriptor, 0);
    ck_assert_int_eq(write(descriptor, content, bytes), (ssize_t)bytes);
    ck_assert_int_eq(close(descriptor), 0);
}

static enum assay_status read_bytes(const char *content, size_t bytes, struct log *log,
                                    struct assay_message *message)
{
    write_suite(content, bytes);
    const enum assay_status status = assay_suite_read(path, visit, log, message);
    ck_assert_int_eq(unlink(path), 0);
    return status;
}

static enum assay_status read_text(const char *content, struct log *log,
                                   struct assay_message *message)
{
    return read_bytes(content, strlen(content), log, message);
}

/* The refusal must be "PATH:LINE: ..." with @word in the sentence. */
static void assert_names_line(const struct assay_message *message, int line,
                              const char *word)
{
    char expected[64];
    snprintf(expected, sizeof(expected), "%s:%d: ", path, line);
    ck_assert_msg(strncmp(message->text, expected, strlen(expected)) == 0 &&
                      strstr(message->text, word),
                  "%s", message->text);
}

START_TEST(comments_and_blank_lines_are_skipped)
{
    struct log log = { 0 };
    struct assay_message message;
    const enum assay_status status = read_text("# title, m=9 \xC3\xA9\n"
                                               "\n"
                                               "probe m=1\n"
                                               " \t \n"
                                               "  # indented\n"
                                               "\tprobe  m=2 # trailing probe m=8\n"
                                               "#probe m=7\n"
                                               "probe seed=1\tm=3\t#\n"
                                               "probe m=4",
                                               &log, &message);
    ck_assert_int_eq(status, ASSAY_RAN);
    ck_assert_int_eq(log.count, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(log.m[i], i + 1);
}
END_TEST

START_TEST(an_empty_suite_has_no_cases)
{
    struct log log = { 0 };
    struct assay_message message;
    ck_assert_int_eq(read_text("", &log, &message), ASSAY_RAN);
    ck_assert_int_eq(read_text("\n", &log, &message), ASSAY_RAN);
    ck_assert_int_eq(read_text("# only\n#this", &log, &message), ASSAY_RAN);
    ck_assert_int_eq(log.count, 0);
}
END_TEST

START_TEST(a_refusal_names_file_and_line)
{
    struct log log = { 0 };
    struct assay_message message;
    ck_assert_int_eq(read_text("probe m=1\n\nprobe m=0\nprobe m=2\n", &log, &message),
                     ASSAY_REFUSED);
    assert_names_line(&message, 3, "m=0 is out of range");
    ck_assert_int_eq(log.count, 1);

    /* A # inside a word begins no comment. */
    ck_assert_int_eq(read_text("probe m=1#2\n", &log, &message), ASSAY_REFUSED);
    assert_names_line(&message, 1, "m=1#2");
}
END_TEST

START_TEST(a_file_that_is_no_text_of_unix_is_refused)
{
    struct log log = { 0 };
    struct assay_message message;
    ck_assert_int_eq(read_text("probe m=1\r\nprobe m=2\r\n", &log, &message),
                     ASSAY_REFUSED);
    assert_names_line(&message, 1, "carriage return");

    static const char with_nul[] = "probe m=1\nprobe m=2\0\n";
    ck_assert_int_eq(read_bytes(with_nul, sizeof(with_nul) - 1, &log, &message),
                     ASSAY_REFUSED);
    assert_names_line(&message, 2, "NUL");

    ck_assert_int_eq(read_text("\xEF\xBB\xBFprobe m=1\n", &log, &message), ASSAY_REFUSED);
    assert_names_line(&message, 1, "0xef");
}
END_TEST

START_TEST(a_line_of_4095_characters_is_read_and_one_more_is_refused)
{
    struct assay_message message;
    for (size_t letters = 4095; letters <= 4097; letters++) {
        static char content[5000];
        memset(content, ' ', letters);
        memcpy(content, "probe m=5", 9);
        memcpy(content + letters, "\nprobe m=6\n", sizeof("\nprobe m=6\n"));
        struct log log = { 0 };
        const enum assay_status status = read_text(content, &log, &message);
        ck_assert_int_eq(status, letters == 4095 ? ASSAY_RAN : ASSAY_REFUSED);
        ck_assert_int_eq(log.count, letters == 4095 ? 2 : 0);
        if (letters > 4095) assert_names_line(&message, 1, "4095");
    }
}
END_TEST

START_TEST(the_visitor_stops_the_reading)
{
    struct assay_message message;
    struct log refusing = { .stop_at = 2, .stop_with = ASSAY_REFUSED };
    ck_assert_int_eq(read_text("probe m=1\nprobe m=2\nprobe m=3\n", &refusing, &message),
                     ASSAY_REFUSED);
    assert_names_line(&message, 2, "the visitor stops");
    ck_assert_int_eq(refusing.count, 2);

    struct log failing = { .stop_at = 2, .stop_with = ASSAY_OUT_OF_MEMORY };
    ck_assert_int_eq(read_text("probe m=1\nprobe m=2\nprobe m=3\n", &failing, &message),
                     ASSAY_OUT_OF_MEMORY);
    ck_assert_str_eq(message.text, "the visitor stops");
    ck_assert_int_eq(failing.count, 2);
}
END_TEST

START_TEST(a_missing_file_or_a_folder_is_a_mistake)
{
    struct log log = { 0 };
    struct assay_message message;
    ck_assert_int_eq(assay_suite_read("/nowhere/x.cases", visit, &log, &message),
                     ASSAY_REFUSED);
    ck_assert_ptr_nonnull(strstr(message.text, "/nowhere/x.cases"));
    ck_assert_ptr_nonnull(strstr(message.text, "No such file"));

    ck_assert_int_eq(assay_suite_read("/tmp", visit, &log, &message), ASSAY_REFUSED);
    ck_assert_ptr_nonnull(strstr(message.text, "Is a directory"));
    ck_assert_int_eq(log.count, 0);
}
END_TEST

START_TEST(a_file_that_fails_to_be_read_is_the_environments_failure)
{
    struct log log = { 0 };
    struct assay_message message;
    /* Address 0 of this process is not mapped: reading it gives EIO. */
    ck_assert_int_eq(assay_suite_read("/proc/self/mem", visit, &log, &message),
                     ASSAY_FAILED);
    ck_assert_ptr_nonnull(strstr(message.text, "Input/output error"));
}
END_TEST

START_TEST(a_dash_is_standard_input)
{
    struct log log = { 0 };
    struct assay_message message;
    static const char content[] = "probe m=1\nprobe m=two\n";
    write_suite(content, sizeof(content) - 1);
    ck_assert_ptr_nonnull(freopen(path, "r", stdin));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(assay_suite_read("-", visit, &log, &message), ASSAY_REFUSED);
    ck_assert_int_eq(log.count, 1);
    ck_assert_ptr_nonnull(strstr(message.text, "stdin:2: m=two"));
}
END_TEST

int main(void)
{
    return run_tests("suite",
                     (const TTest *const[]){
                         comments_and_blank_lines_are_skipped,
                         an_empty_suite_has_no_cases,
                         a_refusal_names_file_and_line,
                         a_file_that_is_no_text_of_unix_is_refused,
                         a_line_of_4095_characters_is_read_and_one_more_is_refused,
                         the_visitor_stops_the_reading,
                         a_missing_file_or_a_folder_is_a_mistake,
                         a_file_that_fails_to_be_read_is_the_environments_failure,
                         a_dash_is_standard_input,
                         NULL,
                     });
}
