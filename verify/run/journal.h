/* SPDX-License-Identifier: MIT */
/* What a run has done so far, in DIR/journal.jsonl, so that another can go on where it
 * was stopped or killed. JSON Lines, appended by one write each:
 *
 *   {"type":"header"}   schema, version, command, number and hash of the selected cases,
 *                       and all options that change results
 *   {"type":"begin"}    "case": the number of the case that is going to run
 *   {"type":"case"}     its result as the json report has it, and "number"
 *   {"type":"brief"}    the same of a result that brief.h has enough of
 *   {"type":"stopped"}  the run ended by itself or was asked to by SIGINT, SIGTERM or
 *                       SIGHUP: cases that had begun are not to blame
 *   {"type":"resumed"}  another run goes on
 *   {"type":"summary"}  all cases are finished
 *
 * A last line without its end is dropped; anything else that is no such line is refused.
 * Results that did not pass are on disk when assay_journal_finish returns, others within
 * a second while assay_journal_tick is called. A lock keeps out a second run. */
#ifndef ASSAY_VERIFY_RUN_JOURNAL_H
#define ASSAY_VERIFY_RUN_JOURNAL_H

#include "verify/case/message.h"

#include <stdbool.h>
#include <stdint.h>

struct assay_journal;

struct assay_journal_setting { /* tables are closed by a NULL name */
    const char *name;          /* "--require" */
    const char *value;         /* "": it was not given */
};

struct assay_journal_header {
    const char *command;
    int64_t cases;      /* that are selected; 0: no end is known, and a number is at most
                           2^20 beyond those before it */
    uint64_t selection; /* hash of all of them */
    const struct assay_journal_setting *settings;
    const char *folder_option; /* that named the folder, for messages; NULL: --resume */
};

/* Makes the folder unless it is there, and the journal in it; or reads the one that is
 * there, which has to have the same header: ASSAY_REFUSED otherwise. One at a time in a
 * process. */
enum assay_status assay_journal_open(const char *folder,
                                     const struct assay_journal_header *header,
                                     struct assay_journal **journal,
                                     struct assay_message *message);

/* Whether the case has a result. */
bool assay_journal_has(const struct assay_journal *journal, int64_t number);

/* How many cases have results, and the number behind the last of them. */
int64_t assay_journal_results(const struct assay_journal *journal);
int64_t assay_journal_known(const struct assay_journal *journal);

/* How many runs died while the case, which has no result, was being run. */
int assay_journal_deaths(const struct assay_journal *journal, int64_t number);

enum assay_status assay_journal_begin(struct assay_journal *journal, int64_t number,
                                      struct assay_message *message);

/* @line: the JSON object, without a newline. */
enum assay_status assay_journal_finish(struct assay_journal *journal, int64_t number,
                                       const char *line, bool has_passed,
                                       struct assay_message *message);

/* Reads a result back: its JSON object, which the caller frees. */
enum assay_status assay_journal_read(const struct assay_journal *journal, int64_t number,
                                     char **line, struct assay_message *message);

/* Brings to the disk what has been waiting for a second. */
void assay_journal_tick(struct assay_journal *journal);

/* All cases are finished; says so once. */
enum assay_status assay_journal_end(struct assay_journal *journal, int64_t cases,
                                    struct assay_message *message);

/* A run that was not ended has stopped. NULL is fine. */
void assay_journal_close(struct assay_journal *journal);

#endif
