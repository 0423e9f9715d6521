/* SPDX-License-Identifier: MIT */
/* A case with its inputs, ready to be run on one of the example plugins. */
#ifndef ASSAY_TESTS_VERIFY_PLUGIN_CALL_H
#define ASSAY_TESTS_VERIFY_PLUGIN_CALL_H

#include "tests/harness.h"
#include "verify/check/inputs.h"
#include "verify/worker/worker.h"

#include <stdio.h>

struct plugin_call {
    union assay_problem_storage problem;
    struct assay_case the_case;
    struct assay_tensors tensors;
    struct assay_buffers buffers;
    struct assay_run_call call;
};

static inline void open_call(struct plugin_call *call, const char *line)
{
    struct assay_message message = { "" };
    *call = (struct plugin_call){ .buffers = { 0 } };
    ck_assert_msg(assay_case_parse(line, &call->the_case, &message) == ASSAY_RAN &&
                      assay_inputs_open(&call->the_case, NULL, 0, &call->problem,
                                        &call->tensors, &call->buffers,
                                        &message) == ASSAY_RAN,
                  "%s", message.text);
    call->call = (struct assay_run_call){ .the_case = &call->the_case,
                                          .problem = &call->problem,
                                          .tensors = &call->tensors };
}

static inline void close_call(struct plugin_call *call)
{
    assay_buffers_close(&call->buffers);
}

struct plugin_path {
    char text[4096];
};

static inline struct plugin_path plugin_path(const char *name)
{
    struct plugin_path path;
    const char *const folder = getenv("ASSAY_PLUGINS");
    snprintf(path.text, sizeof(path.text), "%s/%s.so",
             folder ? folder : "build/verify/plugin", name);
    return path;
}

#endif
