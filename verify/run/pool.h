/* SPDX-License-Identifier: MIT */
/* The processes of a run with several jobs: this program again, each running one case at
 * a time. One that dies costs its case and is replaced. */
#ifndef ASSAY_VERIFY_RUN_POOL_H
#define ASSAY_VERIFY_RUN_POOL_H

#include "verify/run/run.h"

struct assay_pool;

struct assay_pool_answer {
    int64_t number;
    char *line;       /* of the job, to be freed; NULL: it died, */
    char ending[128]; /* "was killed by signal 11 (SIGSEGV)" */
};

/* No process is started before it is needed. OMP_NUM_THREADS of each is its share of this
 * process's threads unless the user has set it. @words is borrowed. */
enum assay_status assay_pool_open(int jobs, char *const *words, struct assay_pool **pool,
                                  struct assay_message *message);

int assay_pool_busy(const struct assay_pool *pool); /* jobs that run a case */

/* Gives the case to a job that has none; there has to be one (asserted). */
enum assay_status assay_pool_give(struct assay_pool *pool,
                                  const struct assay_run_case *the_case,
                                  struct assay_message *message);

/* Waits for an answer, but no longer than @seconds: false when none came. A job that
 * somebody killed (SIGKILL, SIGTERM, SIGINT, SIGHUP) has its case run once more before it
 * counts. */
bool assay_pool_wait(struct assay_pool *pool, double seconds,
                     struct assay_pool_answer *answer);

/* Lets idle jobs finish; ends the others. NULL is fine. */
void assay_pool_close(struct assay_pool *pool);

#endif
