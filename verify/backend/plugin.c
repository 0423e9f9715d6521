/* SPDX-License-Identifier: MIT */
/* Backend "plugin:FILE.so[,option=value...]": somebody's kernel behind assay_plugin.h, in
 * a process of its own. */
#include "verify/backend/backend.h"
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

static void close_plugin(void *state)
{
    struct plugin *const plugin = state;
    assay_worker_close(plugin->worker);
    free(plugin->path);
    free(plugin->options);
    free(plugin);
}

static enum assay_status open_plugin(const char *argument, void **state,
                                     struct assay_message *message)
{
    if (!argument || !*argument || *argument == ',')
        return assay_fail(message, ASSAY_REFUSED,
                          "backend plugin needs a shared library; write plugin:FILE.so");
    struct plugin *const plugin = calloc(1, sizeof(*plugin));
    const char *const comma = strchrnul(argument, ',');
    char *const given = strndup(argument, (size_t)(comma - argument));
    if (!plugin || !given) {
        free(plugin);
        free(given);
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a backend");
    }
    plugin->path = realpath(given, NULL);
    const int problem = errno;
    plugin->options = strdup(*comma ? comma + 1 : "");
    enum assay_status status = ASSAY_RAN;
    if (!plugin->path)
        status = assay_fail(message, ASSAY_REFUSED,
                            "plugin %s cannot be opened: %s; name a shared library",
                            assay_shown_path(given), strerror(problem));
    else if (!plugin->options)
        status = assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a backend");
    free(given);
    if (status == ASSAY_RAN)
        *state = plugin;
    else
        close_plugin(plugin);
    return status;
}

static enum assay_status start(void *state, const struct assay_backend_limits *limits,
                               struct assay_message *message)
{
    struct plugin *const plugin = state;
    const struct assay_worker_plan plan = { plugin->path, plugin->options, *limits };
    return assay_worker_open(&plan, &plugin->worker, message);
}

static enum assay_status claim(void *state, const struct assay_run_call *call,
                               struct assay_backend_claim *claim,
                               struct assay_message *message)
{
    return assay_worker_claim(((struct plugin *)state)->worker, call, claim, message);
}

static enum assay_status run(void *state, const struct assay_run_call *call,
                             struct assay_message *message)
{
    return assay_worker_run(((struct plugin *)state)->worker, call, message);
}

static void notes(void *state, struct assay_backend_notes *notes)
{
    assay_worker_notes(((struct plugin *)state)->worker, notes);
}

const struct assay_backend assay_backend_plugin = {
    .scheme = "plugin",
    .argument = "FILE.so[,option=value...]",
    .summary = "somebody's kernel behind assay_plugin.h, in a process of its own",
    .open = open_plugin,
    .start = start,
    .claim = claim,
    .run = run,
    .notes = notes,
    .close = close_plugin,
};
