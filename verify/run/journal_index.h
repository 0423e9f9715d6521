/* SPDX-License-Identifier: MIT */
/* Where the journal's file has the result of each case, and what became of the others. */
#ifndef ASSAY_VERIFY_RUN_JOURNAL_INDEX_H
#define ASSAY_VERIFY_RUN_JOURNAL_INDEX_H

#include <stdbool.h>
#include <stdint.h>

struct assay_journal_entry {
    int64_t offset; /* of the result's line */
    uint32_t bytes; /* of it, without its newline; 0: there is none */
    uint16_t runs;  /* that began the case and did not finish it */
    bool is_begun;  /* by the run whose lines are being read or written */
};

struct assay_journal_index {
    struct assay_journal_entry *entry;
    int64_t count; /* of entries: all numbers that were mentioned are below */
    int64_t begun; /* entries with is_begun */
};

/* The case's entry, made if need be; NULL when there is no memory or the number is none
 * (negative, or 2^31 and above). */
struct assay_journal_entry *assay_journal_entry(struct assay_journal_index *index,
                                                int64_t number);

/* The same for reading; zeros for what was never mentioned. */
struct assay_journal_entry assay_journal_find(const struct assay_journal_index *index,
                                              int64_t number);

/* A run is over: what it had begun it did not finish, which counts unless it just
 * stopped. */
void assay_journal_close_run(struct assay_journal_index *index, bool has_stopped);

void assay_journal_index_free(struct assay_journal_index *index);

#endif
