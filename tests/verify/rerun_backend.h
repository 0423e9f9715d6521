/* SPDX-License-Identifier: MIT */
/* A backend of the test that is somebody's code: the model, with something done before
 * and after each of its runs. */
#ifndef ASSAY_TESTS_VERIFY_RERUN_BACKEND_H
#define ASSAY_TESTS_VERIFY_RERUN_BACKEND_H

#include "tests/harness.h"
#include "verify/check/trial.h"

#include <stdio.h>
#include <string.h>

static struct {
    struct assay_backend_claim claim;
    void (*before)(const struct assay_run_call *call, int run); /* NULL: nothing */
    void (*after)(const struct assay_run_call *call, int run);
    enum assay_status (*status)(const struct assay_run_call *call, int run);
    int runs, claims; /* the first run is number 1 */
    bool is_asked_for_notes, has_changed_inputs;
} rerun_backend;

static inline const struct assay_backend *backend_called(const char *scheme)
{
    for (int i = 0; assay_backends[i]; i++)
        if (strcmp(assay_backends[i]->scheme, scheme) == 0) return assay_backends[i];
    ck_abort_msg("no backend %s", scheme);
    return NULL;
}

static inline enum assay_status rerun_backend_claim(void *state,
                                                    const struct assay_run_call *call,
                                                    struct assay_backend_claim *claim,
                                                    struct assay_message *message)
{
    (void)state, (void)call, (void)message;
    rerun_backend.claims++;
    *claim = rerun_backend.claim;
    return ASSAY_RAN;
}

static inline enum assay_status rerun_backend_run(void *state,
                                                  const struct assay_run_call *call,
                                                  struct assay_message *message)
{
    const int run = ++rerun_backend.runs;
    if (rerun_backend.before) rerun_backend.before(call, run);
    enum assay_status status = backend_called("model")->run(state, call, message);
    ck_assert_int_eq(status, ASSAY_RAN);
    if (rerun_backend.after) rerun_backend.after(call, run);
    if (rerun_backend.status) status = rerun_backend.status(call, run);
    return status == ASSAY_RAN ? status
                               : assay_fail(message, status, "broken on purpose");
}

static inline void rerun_backend_notes(void *state, struct assay_backend_notes *notes)
{
    (void)state;
    *notes = (struct assay_backend_notes){
        .output_bytes = 1,
        .has_changed_inputs = rerun_backend.has_changed_inputs,
    };
    snprintf(notes->warning, sizeof(notes->warning), "about run %d", rerun_backend.runs);
    snprintf(notes->output, sizeof(notes->output), "%d", rerun_backend.runs);
}

static const struct assay_backend somebodys = { .scheme = "somebodys",
                                                .claim = rerun_backend_claim,
                                                .run = rerun_backend_run,
                                                .notes = rerun_backend_notes };

static inline const struct assay_check *check_called(const char *name)
{
    for (int i = 0; assay_checks[i]; i++)
        if (strcmp(assay_checks[i]->name, name) == 0) return assay_checks[i];
    ck_abort_msg("no check %s", name);
    return NULL;
}

static inline uint32_t bit_of_check(const char *name)
{
    for (int i = 0; assay_checks[i]; i++)
        if (strcmp(assay_checks[i]->name, name) == 0) return UINT32_C(1) << i;
    ck_abort_msg("no check %s", name);
    return 0;
}

/* The plan for that backend: no model, and of the checks this one. */
static inline struct assay_trial_plan plan_of_check(const char *name)
{
    static const struct assay_check *checks[2];
    static char no_numerics[] = "";
    checks[0] = check_called(name);
    return (struct assay_trial_plan){ .candidate = &somebodys,
                                      .candidate_state = no_numerics,
                                      .uses_oracle = true,
                                      .checks = checks };
}

static inline struct assay_case parsed_case(const char *line)
{
    struct assay_case the_case;
    struct assay_message message;
    ck_assert_msg(assay_case_parse(line, &the_case, &message) == ASSAY_RAN, "%s",
                  message.text);
    return the_case;
}

/* To be closed. Runs are counted from here. */
static inline struct assay_result run_plan(const struct assay_trial_plan *plan,
                                           const struct assay_case *the_case,
                                           struct assay_recording *recording)
{
    struct assay_result result;
    rerun_backend.runs = rerun_backend.claims = 0;
    assay_trial_run(plan, the_case, recording, 0, &result);
    return result;
}

static inline struct assay_result run_line(const struct assay_trial_plan *plan,
                                           const char *line)
{
    const struct assay_case the_case = parsed_case(line);
    return run_plan(plan, &the_case, NULL);
}

static inline const struct assay_tensor *tensor_d(const struct assay_run_call *call)
{
    return assay_tensors_find(call->tensors, "d");
}

#endif
