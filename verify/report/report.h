/* SPDX-License-Identifier: MIT */
/* A rendering of results; one file a format.
 *
 * text         for people: a line for a case that passes, a block with everything needed
 *              to repeat and to locate it for one that does not, and a summary.
 * json         JSON Lines, schema 1; fields are only ever added. First line
 *              {"type":"header"}, one {"type":"case"} a result, last {"type":"summary"}.
 *              Bits and hashes are hexadecimal strings and the truth; values beside bits
 *              are a courtesy, absent where they are NaN or infinite. Other reals that
 *              are no JSON number are there as "NAME_bits", the double's; texts of a
 *              command line that aren't printable as "NAME_bytes" as well. What does not
 *              apply is absent ("ulp" beside a NaN); integers are below 2^53.
 *              "checks" names those that judged the case, "candidate_runs" counts what
 *              the candidate ran for them, "reference" is the backend whose bits were the
 *              reference if it wasn't the model, "findings" are what checks that run the
 *              candidate again have to say: {"check","failure","message"} and, where
 *              there is an element to show, "output" with its "format" and "shape" in
 *              that run, "elements" that are wrong, and the first of them like one of
 *              "differences".
 *              With --criteria, a case's "criteria" says in words what each would say, an
 *              output's "criteria" holds the figures of those that have a rule for it.
 *              "warning" and "output", the beginning of the "output_bytes" that the
 *              candidate printed, are there when there is any.
 * junit        JUnit XML, for CI systems: a testcase a result, named by its case line;
 *              where a line is there twice, file, index and number are appended.
 *              `failure` for a verdict below the required one, `error` for what did not
 *              run to its end, `skipped` for what is unsupported or proves nothing. One
 *              file, however large (GitLab takes up to 30 MB).
 *
 * Every text from outside is made printable first (assay_report_character). */
#ifndef ASSAY_VERIFY_REPORT_REPORT_H
#define ASSAY_VERIFY_REPORT_REPORT_H

#include "verify/check/result.h"

#include <stdio.h>

/* Borrowed until the report ends. NULL or 0 where the user did not ask: repeat lines name
 * what was asked for, but a candidate only where it is not what a case (model) or a
 * recorded file (the file) has by default. */
struct assay_run_header {
    const char *command, *candidate, *require;
    const char *reference, *checks; /* the lists behind --reference and --check */
    int repeats;
};

/* @state is state_bytes of memory that begin initialises and the others are handed. Each
 * call flushes the file; ASSAY_FAILED when it could not be written completely. A report
 * with a close must know all results first: it writes in end alone. */
struct assay_report {
    const char *name, *summary; /* also the option --NAME FILE; "text" goes to stdout */
    size_t state_bytes;
    enum assay_status (*begin)(void *state, FILE *, const struct assay_run_header *);
    enum assay_status (*result)(void *state, const struct assay_result *);
    enum assay_status (*end)(void *state, const struct assay_summary *);
    /* Frees what a report that did not come to its end holds; harmless after end and on
     * a state of zeros. NULL: there is nothing to free. */
    void (*close)(void *state);
};

/* All reports, closed by NULL. */
extern const struct assay_report *const assay_reports[];

/* The report of that name; NULL if there is none. */
const struct assay_report *assay_report_find(const char *name);

/* For the writers. */

extern const struct assay_report assay_report_text, assay_report_json, assay_report_junit;

/* Bytes of the printable UTF-8 character at the start of @text: 0 at its end and for a
 * byte that has to be shown as '?' (control characters, malformed UTF-8). */
size_t assay_report_character(const char *text);

/* Whether all of the text is printable. */
bool assay_report_is_printable(const char *text);

/* Writes the command that repeats the result, fit for a shell, without a newline. */
void assay_report_repeat(FILE *file, const struct assay_run_header *header,
                         const struct assay_result *result);

/* Writes what the candidate printed, as far as the result holds it, a line each with an
 * indent, under a heading; nothing if it printed nothing. */
void assay_report_printed(FILE *file, const struct assay_result *result);

/* Logical coordinates of the row-major index @element. */
void assay_report_index(const struct assay_tensor *tensor, int64_t element,
                        int64_t index[ASSAY_MAX_RANK]);

/* "0x3fa0": as many digits as the format has. */
struct assay_bits_text {
    char text[16];
};
struct assay_bits_text assay_report_bits(enum assay_format format, uint32_t bits);

/* Value of the stored @bits; exact. */
double assay_report_value(enum assay_format format, uint32_t bits);

#endif
