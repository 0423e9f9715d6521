/* SPDX-License-Identifier: MIT */
/* Loading a plugin into this process, which from then on may be trusted with nothing. */
#ifndef ASSAY_VERIFY_WORKER_LOAD_H
#define ASSAY_VERIFY_WORKER_LOAD_H

#include "verify/case/message.h"
#include "verify/plugin/assay_plugin.h"

/* Refuses files that are no plugin, were made for another version of the interface, or
 * lack a function. It stays loaded. */
enum assay_status assay_plugin_load(const char *path, const struct assay_plugin **plugin,
                                    struct assay_message *message);

#endif
