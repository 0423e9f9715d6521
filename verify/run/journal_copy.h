/* SPDX-License-Identifier: MIT */
/* The journal of a run that nobody is running, to be read by another command. */
#ifndef ASSAY_VERIFY_RUN_JOURNAL_COPY_H
#define ASSAY_VERIFY_RUN_JOURNAL_COPY_H

#include "verify/run/journal.h"
#include "verify/run/journal_index.h"

enum { ASSAY_MAX_JOURNAL_SETTINGS = 64 };

struct assay_journal_copy {
    struct assay_journal_header header; /* its texts are the copy's */
    bool is_ended;                      /* the run said that all cases are finished */
    struct assay_journal_index index;   /* which cases have results: those with bytes */
    /* Its own: */
    struct assay_journal_setting setting[ASSAY_MAX_JOURNAL_SETTINGS + 1];
    void *texts; /* what header and settings point into */
    char *path;
    int fd;
};

/* Reads journal.jsonl in @folder. ASSAY_REFUSED when there is none, when it is damaged,
 * of another version or being written. To be closed whatever the status. */
enum assay_status assay_journal_copy_open(const char *folder,
                                          struct assay_journal_copy *copy,
                                          struct assay_message *message);

/* The value of the setting of that name; NULL: there is none. */
const char *assay_journal_copy_setting(const struct assay_journal_copy *copy,
                                       const char *name);

/* Whether the case has a result; that result, which the caller frees. */
bool assay_journal_copy_has(const struct assay_journal_copy *copy, int64_t number);
enum assay_status assay_journal_copy_read(const struct assay_journal_copy *copy,
                                          int64_t number, char **line,
                                          struct assay_message *message);

void assay_journal_copy_close(struct assay_journal_copy *copy);

#endif
