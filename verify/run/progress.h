/* SPDX-License-Identifier: MIT */
/* How far a run has come, on stderr: a line that is renewed on a terminal, one a minute
 * elsewhere, and nothing in the first seconds. */
#ifndef ASSAY_VERIFY_RUN_PROGRESS_H
#define ASSAY_VERIFY_RUN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct assay_progress {
    FILE *stream;
    bool is_terminal, is_shown;
    int64_t cases;   /* 0: not known */
    int64_t skipped; /* finished when the run began */
    int64_t done, failed;
    double seconds;          /* that the run may take; 0: as long as it needs */
    const int64_t *findings; /* a count to be shown; NULL: none */
    double began, said;
};

/* @skipped cases are done already, of which the time left is not to be judged. */
struct assay_progress assay_progress_begin(FILE *stream, int64_t cases, int64_t skipped);

/* Says how far the run is, if it is time to. */
void assay_progress_tell(struct assay_progress *progress);

/* Takes the line away, before others are printed and at the end. */
void assay_progress_hide(struct assay_progress *progress);

#endif
