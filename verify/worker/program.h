/* SPDX-License-Identifier: MIT */
/* A program that computes cases, one after the other: the supervisor's side. Whatever it
 * does costs the case in hand and nothing else.
 *
 * It gets one line a case on its stdin, the path of a folder (verify/data/exchange.h),
 * and answers with one of these lines on its stdout, once outputs.safetensors is there:
 *
 *   assay: ok [seconds=S]          S: what all launches took, by its own clock
 *   assay: unsupported SENTENCE    it does not do this case
 *   assay: failed SENTENCE
 *   assay: out of memory
 *
 * All other lines are noise, kept like what it writes to stderr. At the end of its stdin
 * it ends. A process is replaced when it has ended or had to be ended, when an answer was
 * none, and when it has not left any outputs. A case during which somebody else killed it
 * (SIGKILL, SIGTERM, SIGINT, SIGHUP) is run once more before that counts. */
#ifndef ASSAY_VERIFY_WORKER_PROGRAM_H
#define ASSAY_VERIFY_WORKER_PROGRAM_H

#include "verify/backend/backend.h"

struct assay_program_plan {
    const char *command; /* for /bin/sh -c; borrowed */
    struct assay_backend_limits limits;
};

struct assay_program;

/* Nothing is started before the first case. */
enum assay_status assay_program_open(const struct assay_program_plan *plan,
                                     struct assay_program **program,
                                     struct assay_message *message);

/* Runs the case. ASSAY_FAILED also when the command cannot be run, or its outputs are not
 * as they have to be. */
enum assay_status assay_program_run(struct assay_program *program,
                                    const struct assay_run_call *call,
                                    struct assay_message *message);

/* What is to be said beside the last case. */
void assay_program_notes(const struct assay_program *program,
                         struct assay_backend_notes *notes);

void assay_program_close(struct assay_program *program);

#endif
