/* SPDX-License-Identifier: MIT */
/* The stdout of a command: lines that begin with "assay: " are answers, all else is
 * noise, which goes to the process's output. */
#ifndef ASSAY_VERIFY_WORKER_LISTENER_H
#define ASSAY_VERIFY_WORKER_LISTENER_H

#include "verify/worker/process.h"

enum { ASSAY_LISTENER_MAX_LINE = 4096 };

struct assay_listener {
    char heard[ASSAY_LISTENER_MAX_LINE]; /* what has been read and not been looked at */
    size_t at, end;
    char line[ASSAY_LISTENER_MAX_LINE + 1]; /* that is being put together */
    size_t length;
    bool is_long; /* the beginning of the line has been noise */
};

/* Nothing heard yet, of a new process. */
void assay_listener_reset(struct assay_listener *listener);

/* Looks at what has come, up to the end of an answer. Returns whether there was anything.
 * *@answer is NULL or, until the next call, what follows "assay: " in that line. */
bool assay_listener_hear(struct assay_listener *listener, struct assay_process *process,
                         const char **answer);

/* Takes all that is there for noise: what came before a question does not answer it. */
void assay_listener_hear_out(struct assay_listener *listener,
                             struct assay_process *process);

#endif
