/* SPDX-License-Identifier: MIT */
/* A request as both sides of the channel see it: made of a call, and turned into what a
 * plugin is given. */
#ifndef ASSAY_VERIFY_WORKER_REQUEST_H
#define ASSAY_VERIFY_WORKER_REQUEST_H

#include "verify/backend/backend.h"
#include "verify/plugin/assay_plugin.h"
#include "verify/worker/arena.h"

#include <jansson.h>

/* Without an arena: {"do":"claim"}, tensors as the operation shapes them. NULL when there
 * is no memory. */
json_t *assay_request_of(const struct assay_run_call *call,
                         const struct assay_arena *arena);

struct assay_request { /* borrows texts from the line, and data from the mapping */
    bool is_run;
    int launches; /* 1 or more */
    void *memory; /* NULL for a claim */
    size_t bytes;
    char why[400];
    struct assay_plugin_tensor tensor[ASSAY_MAX_TENSORS];
    const struct assay_plugin_tensor *pointer[ASSAY_MAX_TENSORS];
    struct assay_call call;
};

/* Maps the memory behind @fd (closed in any case; -1: none). False when the line is not
 * as assay_request_of makes it, or there is no room for the mapping. */
bool assay_request_open(struct assay_request *request, const json_t *line, int fd,
                        const char *options);
void assay_request_close(struct assay_request *request);

#endif
