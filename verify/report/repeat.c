/* SPDX-License-Identifier: MIT */
/* The command that repeats a result. */
#include "verify/report/report.h"

#include <string.h>

/* A word for the shell: as it is, in '', or in $'' when it holds unprintable bytes. */
static void print_word(FILE *file, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_./:=,+-@%";
    const bool is_bare = *word && word[strspn(word, plain)] == '\0';
    const bool has_escapes = !assay_report_is_printable(word);

    if (is_bare) {
        fputs(word, file);
        return;
    }
    fputs(has_escapes ? "$'" : "'", file);
    for (; *word; word++) {
        const unsigned char byte = (unsigned char)*word;
        if (has_escapes && (byte < 0x20 || byte >= 0x7f || byte == '\'' || byte == '\\'))
            fprintf(file, "\\%03o", byte);
        else if (byte == '\'')
            fputs("'\\''", file);
        else
            fputc(byte, file);
    }
    fputc('\'', file);
}

static void print_option(FILE *file, const char *name, const char *value)
{
    if (!value || !*value) return;
    fprintf(file, " %s ", name);
    print_word(file, value);
}

/* Only what differs from a plain `assay verify CASE`, where the candidate is the model,
 * or `assay verify --recorded FILE`, where it is the file. */
void assay_report_repeat(FILE *file, const struct assay_run_header *header,
                         const struct assay_result *result)
{
    const char *const candidate = header->candidate;
    const char *const usual = *result->source ? "recorded" : "model";
    const bool is_usual =
        !candidate || !*candidate || strcmp(candidate, usual) == 0 ||
        (*result->source && strncmp(candidate, "recorded:", strlen("recorded:")) == 0);

    fprintf(file, "assay verify ");
    if (*result->source) fprintf(file, "--recorded ");
    print_word(file, *result->source ? result->source : result->case_line);
    print_option(file, "--candidate", is_usual ? NULL : candidate);
    print_option(file, "--reference", header->reference);
    print_option(file, "--check", header->checks);
    if (header->repeats) fprintf(file, " --repeats %d", header->repeats);
    print_option(file, "--require", header->require);
    for (int i = 0; i < result->criteria.count; i++)
        fprintf(file, "%s%s", i ? "," : " --criteria ", result->criteria.name[i]);
}
