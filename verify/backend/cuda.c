/* SPDX-License-Identifier: MIT */
/* Backend "cuda[:option=value,...]": this project's Hopper kernels, a plugin that needs
 * no path: what ASSAY_CUDA_LIBRARY names, else the build folder's, else the installed
 * one. */
#include "verify/backend/install_folder.h"
#include "verify/backend/plugin.h"
#include "verify/data/safetensors.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY   "libassay_cuda.so"
#define INSTALLED ASSAY_INSTALL_FOLDER "/" LIBRARY

extern const struct assay_backend assay_backend_cuda;

/* Where a build folder has it, seen from the program; empty if that is too long. */
static void built_path(char *path, size_t bytes)
{
    char program[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    path[0] = '\0';
    if (length <= 0) return;
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (slash) *slash = '\0';
    slash = strrchr(program, '/');
    if (slash) *slash = '\0';
    if (snprintf(path, bytes, "%s/gpu/" LIBRARY, program) >= (int)bytes) path[0] = '\0';
}

static enum assay_status open_found(const char *options, void **state,
                                    struct assay_message *message)
{
    char built[PATH_MAX];
    const char *const named = getenv("ASSAY_CUDA_LIBRARY");
    if (named && *named)
        return assay_plugin_open("ASSAY_CUDA_LIBRARY", named, options, state, message);
    built_path(built, sizeof(built));
    if (access(built, F_OK) == 0)
        return assay_plugin_open("library", built, options, state, message);
    if (access(INSTALLED, F_OK) == 0)
        return assay_plugin_open("library", INSTALLED, options, state, message);
    return assay_fail(message, ASSAY_REFUSED,
                      "backend cuda finds neither %s nor " INSTALLED
                      "; build with nvcc, or name the library in ASSAY_CUDA_LIBRARY",
                      assay_shown_path(built));
}

static enum assay_status open_cuda(const char *argument, void **state,
                                   struct assay_message *message)
{
    const char *const options = argument ? argument : "";
    for (const char *word = options; *word;) {
        const size_t length = strcspn(word, ",");
        const char *const equals = memchr(word, '=', length);
        if (!equals || equals == word)
            return assay_fail(message, ASSAY_REFUSED,
                              "backend cuda takes options, not '%.*s'; write "
                              "cuda[:option=value,...]",
                              (int)length, word);
        word += length + (word[length] == ',');
    }
    return open_found(options, state, message);
}

const struct assay_backend assay_backend_cuda = {
    .scheme = "cuda",
    .argument = "[option=value,...]",
    .summary = "this project's kernels for Hopper, in a process of their own",
    .open = open_cuda,
    .start = assay_plugin_start,
    .claim = assay_plugin_claim,
    .run = assay_plugin_run,
    .notes = assay_plugin_notes,
    .close = assay_plugin_close,
};
