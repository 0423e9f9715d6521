/* SPDX-License-Identifier: MIT */
/* A job: one of several processes that run the cases of a run. This is its own side; the
 * other is in pool.h.
 *
 * Lines, a JSON object each. To the job: {"number":N,"line":CASE}, or {"number":N,
 * "recorded":FILE,"index":I}, or the number alone where that says which case it is, with
 * "brief":true when so much is enough of a result that is no failure. Back: the result as
 * the json report has it, or in brief, or {"type":"failed","status":I,"message":SENTENCE}
 * when the run has to end. */
#ifndef ASSAY_VERIFY_RUN_JOB_H
#define ASSAY_VERIFY_RUN_JOB_H

#include "verify/run/run.h"

enum { ASSAY_JOB_FD = 3 /* where a job finds its end of the conversation */ };

/* Runs what comes until there is no more. Returns the process's exit status: 2 when
 * descriptor 3 is no conversation with a pool. */
int assay_job_serve(assay_run_function *run, void *context);

/* The line of a case; the caller frees it. NULL when there is no memory, or a text that
 * cannot be sent. */
char *assay_job_request(const struct assay_run_case *the_case);

/* A result as one line without its newline; the caller frees it. NULL: no memory. */
char *assay_job_result(const struct assay_result *result);

/* The same in brief. */
char *assay_job_brief(const struct assay_result *result);

/* If the line says that the run has to end: its status, with the sentence. ASSAY_RAN for
 * results. */
enum assay_status assay_job_failure(const char *line, struct assay_message *message);

#endif
