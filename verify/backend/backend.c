/* SPDX-License-Identifier: MIT */
/* The table of backends, and opening one from text. */
#include "verify/backend/backend.h"

#include <string.h>

extern const struct assay_backend assay_backend_cuda, assay_backend_exec,
    assay_backend_fault, assay_backend_model, assay_backend_oracle, assay_backend_plugin,
    assay_backend_recorded;

const struct assay_backend *const assay_backends[] = {
    &assay_backend_model,  &assay_backend_oracle,
    &assay_backend_plugin, &assay_backend_cuda,
    &assay_backend_exec,   &assay_backend_recorded,
    &assay_backend_fault,  NULL,
};

const struct assay_backend_limits assay_backend_default_limits = { .seconds = 60,
                                                                   .warmup_seconds =
                                                                       300 };

static enum assay_status open_row(const struct assay_backend *row, const char *argument,
                                  const struct assay_backend_limits *limits, void **state,
                                  struct assay_message *message)
{
    enum assay_status status = row->open(argument, state, message);
    if (status != ASSAY_RAN || !row->start) return status;
    status = row->start(*state, limits ? limits : &assay_backend_default_limits, message);
    if (status != ASSAY_RAN) row->close(*state);
    return status;
}

enum assay_status assay_backend_open(const char *text,
                                     const struct assay_backend_limits *limits,
                                     const struct assay_backend **backend, void **state,
                                     struct assay_message *message)
{
    const char *const colon = strchrnul(text, ':');
    const size_t length = (size_t)(colon - text);
    const char *schemes[16] = { NULL };
    for (int i = 0; assay_backends[i]; i++) {
        const char *const scheme = schemes[i] = assay_backends[i]->scheme;
        if (strlen(scheme) != length || strncmp(scheme, text, length) != 0) continue;
        *backend = assay_backends[i];
        return open_row(*backend, *colon ? colon + 1 : NULL, limits, state, message);
    }
    const char *const nearest = assay_nearest(text, schemes);
    return assay_fail(
        message, ASSAY_REFUSED,
        "no backend is called '%.*s'; %s%s%s `assay list backends` shows all",
        (int)length, text, nearest ? "did you mean '" : "", nearest ? nearest : "",
        nearest ? "'?" : "");
}
