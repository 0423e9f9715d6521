/* SPDX-License-Identifier: MIT */
/* Backend "exec:COMMAND": a program that computes one case after the other, each handed
 * over in a folder. */
#include "verify/backend/backend.h"
#include "verify/worker/program.h"

#include <stdlib.h>
#include <string.h>

extern const struct assay_backend assay_backend_exec;

struct exec {
    char *command;
    struct assay_program *program;
};

static void close_exec(void *state)
{
    struct exec *const exec = state;
    assay_program_close(exec->program);
    free(exec->command);
    free(exec);
}

static enum assay_status open_exec(const char *argument, void **state,
                                   struct assay_message *message)
{
    if (!argument || !argument[strspn(argument, " \t\n")])
        return assay_fail(message, ASSAY_REFUSED,
                          "backend exec needs a command; write exec:COMMAND, such as "
                          "'exec:python3 mine.py'");
    struct exec *const exec = calloc(1, sizeof(*exec));
    if (exec) exec->command = strdup(argument);
    if (!exec || !exec->command) {
        free(exec);
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a backend");
    }
    *state = exec;
    return ASSAY_RAN;
}

static enum assay_status start(void *state, const struct assay_backend_limits *limits,
                               struct assay_message *message)
{
    struct exec *const exec = state;
    const struct assay_program_plan plan = { exec->command, *limits };
    return assay_program_open(&plan, &exec->program, message);
}

/* Bits are unspecified: what a program writes is held to the bound. */
static enum assay_status claim(void *state, const struct assay_run_call *call,
                               struct assay_backend_claim *claim,
                               struct assay_message *message)
{
    (void)state, (void)call, (void)message;
    *claim = (struct assay_backend_claim){ .has_numerics = false };
    return ASSAY_RAN;
}

static enum assay_status run(void *state, const struct assay_run_call *call,
                             struct assay_message *message)
{
    return assay_program_run(((struct exec *)state)->program, call, message);
}

static void notes(void *state, struct assay_backend_notes *notes)
{
    assay_program_notes(((struct exec *)state)->program, notes);
}

const struct assay_backend assay_backend_exec = {
    .scheme = "exec",
    .argument = "COMMAND",
    .summary = "a program that is given cases in folders, one after the other",
    .open = open_exec,
    .start = start,
    .claim = claim,
    .run = run,
    .notes = notes,
    .close = close_exec,
};
