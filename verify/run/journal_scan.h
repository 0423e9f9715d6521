/* SPDX-License-Identifier: MIT */
/* Reading a journal that is there, whoever has written it and whatever became of it. */
#ifndef ASSAY_VERIFY_RUN_JOURNAL_SCAN_H
#define ASSAY_VERIFY_RUN_JOURNAL_SCAN_H

#include "verify/run/journal.h"
#include "verify/run/journal_index.h"

#include <stdio.h>

struct assay_journal_scan {
    int64_t bytes; /* of whole lines; what follows them was torn off; 0: no header */
    bool is_ended; /* there is a summary */
    struct assay_journal_index index;
};

/* Reads @stream from its beginning. ASSAY_REFUSED for the journal of another run and,
 * with the line, for a damaged one. The index is the caller's to free in any case. */
enum assay_status assay_journal_scan(FILE *stream, const char *path,
                                     const struct assay_journal_header *header,
                                     struct assay_journal_scan *scan,
                                     struct assay_message *message);

/* The header's line; the caller frees it. NULL when there is no memory. */
char *assay_journal_header_line(const struct assay_journal_header *header);

#endif
