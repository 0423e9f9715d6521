/* SPDX-License-Identifier: MIT */
/* Reading a file of case lines. */
#include "verify/case/case.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct suite {
    FILE *file;
    const char *name; /* in messages */
    long line_number;
    char line[ASSAY_MAX_CASE_LINE];
    struct assay_message *message;
};

static enum assay_status refuse_line(const struct suite *suite, const char *problem)
{
    return assay_fail(suite->message, ASSAY_REFUSED, "%s:%ld: %s", suite->name,
                      suite->line_number, problem);
}

/* A name that leads to no file is a mistake; anything else is the environment's. */
static enum assay_status fail_to_read(const char *name, struct assay_message *message)
{
    const int error = errno;
    const bool is_mistake = error == ENOENT || error == ENOTDIR || error == EISDIR ||
                            error == ENAMETOOLONG || error == ELOOP;
    return assay_fail(message, is_mistake ? ASSAY_REFUSED : ASSAY_FAILED,
                      "suite '%s' can't be read: %s", name, strerror(error));
}

/* Reads the next line without its newline; *@is_end when there is none. */
static enum assay_status read_line(struct suite *suite, bool *is_end)
{
    size_t length = 0;
    int byte;
    suite->line_number++;
    while ((byte = getc(suite->file)) != EOF && byte != '\n') {
        if (byte == '\0')
            return refuse_line(suite, "a NUL byte; a suite is a text file of case lines");
        if (byte == '\r')
            return refuse_line(suite, "a carriage return; lines end in a newline alone, "
                                      "as in files of Unix");
        if (length == sizeof(suite->line) - 1)
            return assay_fail(suite->message, ASSAY_REFUSED,
                              "%s:%ld: a line longer than %d characters, the limit",
                              suite->name, suite->line_number, ASSAY_MAX_CASE_LINE - 1);
        suite->line[length++] = (char)byte;
    }
    suite->line[length] = '\0';
    if (ferror(suite->file)) return fail_to_read(suite->name, suite->message);
    *is_end = byte == EOF && length == 0;
    return ASSAY_RAN;
}

/* Cuts off a comment; returns whether anything is left. */
static bool strip_comment(char *line)
{
    bool is_blank = true;
    for (char *s = line; *s; s++) {
        const bool starts_word = s == line || s[-1] == ' ' || s[-1] == '\t';
        if (*s == '#' && starts_word) {
            *s = '\0';
            break;
        }
        if (*s != ' ' && *s != '\t') is_blank = false;
    }
    return !is_blank;
}

static enum assay_status read_cases(struct suite *suite,
                                    enum assay_status (*visit)(void *,
                                                               const struct assay_case *,
                                                               struct assay_message *),
                                    void *context)
{
    for (;;) {
        bool is_end = false;
        enum assay_status status = read_line(suite, &is_end);
        if (status != ASSAY_RAN || is_end) return status;
        if (!strip_comment(suite->line)) continue;

        struct assay_case the_case;
        suite->message->text[0] = '\0';
        status = assay_case_parse(suite->line, &the_case, suite->message);
        if (status == ASSAY_RAN) status = visit(context, &the_case, suite->message);
        if (status == ASSAY_REFUSED) return refuse_line(suite, suite->message->text);
        if (status != ASSAY_RAN) return status;
    }
}

enum assay_status assay_suite_read(const char *path,
                                   enum assay_status (*visit)(void *context,
                                                              const struct assay_case *,
                                                              struct assay_message *),
                                   void *context, struct assay_message *message)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    struct suite suite = { .name = is_stdin ? "stdin" : path, .message = message };
    suite.file = is_stdin ? stdin : fopen(path, "r");
    if (!suite.file) return fail_to_read(path, message);

    const enum assay_status status = read_cases(&suite, visit, context);
    if (!is_stdin) (void)fclose(suite.file);
    return status;
}
