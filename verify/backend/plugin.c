/* SPDX-License-Identifier: MIT */
/* Backend "plugin:FILE.so[,option=value...]": somebody's kernel behind assay_plugin.h, in
 * a process of its own. */
#include "verify/backend/plugin.h"

#include "verify/data/safetensors.h"
#include "verify/worker/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern const struct assay_backend assay_backend_plugin;

struct plugin {
    char *path, *options;
    struct assay_worker *worker;
};

void assay_plugin_close(void *state)
{
    struct plugin *const plugin = state;
    assay_worker_close(plugin->worker);
    free(plugin->path);
    free(plugin->options);
    free(plugin);
}

enum assay_status assay_plugin_open(const char *name, const char *path,
                                    const char *options, void **state,
                                    struct assay_message *message)
{
    struct plugin *const plugin = calloc(1, sizeof(*plugin));
    if (!plugin)
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a backend");
    plugin->path = realpath(path, NULL);
    const int problem = errno;
    plugin->options = strdup(options);
    enum assay_status status = ASSAY_RAN;
    if (!plugin->path)
        status = assay_fail(message, ASSAY_REFUSED,
                            "%s %s cannot be opened: %s; name a shared library", name,
                            assay_shown_path(path), strerror(problem));
    else if (!plugin->options)
        status = assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a backend");
    if (status == ASSAY_RAN)
        *state = plugin;
    else
        assay_plugin_close(plugin);
    return status;
}

static enum assay_status open_file(const char *argument, void **state,
                                   struct assay_message *message)
{
    if (!argument || !*argument || *argument == ',')
        return assay_fail(message, ASSAY_REFUSED,
                          "backend plugin needs a shared library; write plugin:FILE.so");
    const char *const comma = strchrnul(argument, ',');
    char *const path = strndup(argument, (size_t)(comma - argument));
    if (!path) return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a backend");
    const enum assay_status status =
        assay_plugin_open("plugin", path, *comma ? comma + 1 : "", state, message);
    free(path);
    return status;
}

enum assay_status assay_plugin_start(void *state,
                                     const struct assay_backend_limits *limits,
                                     struct assay_message *message)
{
    struct plugin *const plugin = state;
    const struct assay_worker_plan plan = { plugin->path, plugin->options, *limits };
    return assay_worker_open(&plan, &plugin->worker, message);
}

enum assay_status assay_plugin_claim(void *state, const struct assay_run_call *call,
                                     struct assay_backend_claim *claim,
                                     struct assay_message *message)
{
    return assay_worker_claim(((struct plugin *)state)->worker, call, claim, message);
}

enum assay_status assay_plugin_run(void *state, const struct assay_run_call *call,
                                   struct assay_message *message)
{
    return assay_worker_run(((struct plugin *)state)->worker, call, message);
}

void assay_plugin_notes(void *state, struct assay_backend_notes *notes)
{
    assay_worker_notes(((struct plugin *)state)->worker, notes);
}

const struct assay_backend assay_backend_plugin = {
    .scheme = "plugin",
    .argument = "FILE.so[,option=value...]",
    .summary = "somebody's kernel behind assay_plugin.h, in a process of its own",
    .open = open_file,
    .start = assay_plugin_start,
    .claim = assay_plugin_claim,
    .run = assay_plugin_run,
    .notes = assay_plugin_notes,
    .close = assay_plugin_close,
};
