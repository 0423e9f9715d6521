/* SPDX-License-Identifier: MIT */
#include "verify/worker/load.h"

#include "verify/data/safetensors.h"

#include <dlfcn.h>

static enum assay_status check(const struct assay_plugin *plugin, const char *path,
                               struct assay_message *message)
{
    if (!plugin)
        return assay_fail(message, ASSAY_REFUSED,
                          "assay_plugin_v1 of %s returned NULL; it must return its table",
                          path);
    if (plugin->abi != ASSAY_PLUGIN_ABI)
        return assay_fail(message, ASSAY_REFUSED,
                          "plugin %s was made for version %u of the interface, but this "
                          "is version %u; compile it with this version's assay_plugin.h",
                          path, plugin->abi, ASSAY_PLUGIN_ABI);
    if (plugin->bytes < sizeof(*plugin))
        return assay_fail(message, ASSAY_REFUSED,
                          "the table of plugin %s says that it has %u bytes; set bytes "
                          "to sizeof(struct assay_plugin), %zu or more",
                          path, plugin->bytes, sizeof(*plugin));
    if (!plugin->name || !plugin->prepare || !plugin->launch || !plugin->fetch ||
        !plugin->release)
        return assay_fail(message, ASSAY_REFUSED,
                          "the table of plugin %s is not complete; name, prepare, "
                          "launch, fetch and release must not be NULL",
                          path);
    return ASSAY_RAN;
}

enum assay_status assay_plugin_load(const char *path, const struct assay_plugin **plugin,
                                    struct assay_message *message)
{
    const char *const shown = assay_shown_path(path);
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return assay_fail(message, ASSAY_REFUSED, "%s cannot be loaded as a plugin: %s",
                          shown, dlerror());
    const struct assay_plugin *(*entry)(void);
    *(void **)&entry = dlsym(library, "assay_plugin_v1");
    if (!entry)
        return assay_fail(message, ASSAY_REFUSED,
                          "%s is no plugin: it does not export assay_plugin_v1 (in C++: "
                          "extern \"C\")",
                          shown);
    *plugin = entry();
    return check(*plugin, shown, message);
}
