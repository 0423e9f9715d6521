/* SPDX-License-Identifier: MIT */
/* A plugin in a disposable process: the supervisor's side. Whatever the plugin does costs
 * the case in hand and nothing else; the process is then replaced. What a process does
 * when somebody else kills it (SIGKILL, SIGTERM, SIGINT, SIGHUP) is done once more before
 * that counts. */
#ifndef ASSAY_VERIFY_WORKER_WORKER_H
#define ASSAY_VERIFY_WORKER_WORKER_H

#include "verify/backend/backend.h"

struct assay_worker_plan {      /* texts are borrowed */
    const char *path, *options; /* of the plugin; options may be "" */
    struct assay_backend_limits limits;
};

struct assay_worker;

/* Starts the process and loads the plugin. ASSAY_REFUSED when that is no plugin. */
enum assay_status assay_worker_open(const struct assay_worker_plan *plan,
                                    struct assay_worker **worker,
                                    struct assay_message *message);

/* What the plugin claims about the case; the tensors of @call are not looked at. */
enum assay_status assay_worker_claim(struct assay_worker *worker,
                                     const struct assay_run_call *call,
                                     struct assay_backend_claim *claim,
                                     struct assay_message *message);

/* Runs the case. ASSAY_CRASHED also when the plugin wrote outside its tensors. */
enum assay_status assay_worker_run(struct assay_worker *worker,
                                   const struct assay_run_call *call,
                                   struct assay_message *message);

/* What is to be said beside the last case: its claim and its run. */
void assay_worker_notes(const struct assay_worker *worker,
                        struct assay_backend_notes *notes);

void assay_worker_close(struct assay_worker *worker);

#endif
