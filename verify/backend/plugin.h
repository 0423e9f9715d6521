/* SPDX-License-Identifier: MIT */
/* What the backends share that load a plugin; a state is a plugin with its process. */
#ifndef ASSAY_VERIFY_BACKEND_PLUGIN_H
#define ASSAY_VERIFY_BACKEND_PLUGIN_H

#include "verify/backend/backend.h"

/* The shared library @path; a refusal says "@name PATH cannot be opened". */
enum assay_status assay_plugin_open(const char *name, const char *path,
                                    const char *options, void **state,
                                    struct assay_message *message);

enum assay_status assay_plugin_start(void *state, const struct assay_backend_limits *,
                                     struct assay_message *);
enum assay_status assay_plugin_claim(void *state, const struct assay_run_call *,
                                     struct assay_backend_claim *,
                                     struct assay_message *);
enum assay_status assay_plugin_run(void *state, const struct assay_run_call *,
                                   struct assay_message *);
void assay_plugin_notes(void *state, struct assay_backend_notes *);
void assay_plugin_close(void *state);

#endif
