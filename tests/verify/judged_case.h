/* SPDX-License-Identifier: MIT */
/* A case run and judged in a test: by the model with some numerics, or by a backend that
 * does something to the model's outputs. */
#ifndef ASSAY_TESTS_VERIFY_JUDGED_CASE_H
#define ASSAY_TESTS_VERIFY_JUDGED_CASE_H

#include "verify/check/trial.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static inline struct assay_case parsed(const char *text)
{
    struct assay_case the_case;
    struct assay_message message;
    ck_assert_msg(assay_case_parse(text, &the_case, &message) == ASSAY_RAN, "%s: %s",
                  text, message.text);
    return the_case;
}

static inline const struct assay_backend *model(void)
{
    for (int i = 0; assay_backends[i]; i++)
        if (strcmp(assay_backends[i]->scheme, "model") == 0) return assay_backends[i];
    ck_abort_msg("no backend model");
    return NULL;
}

/* A backend of the test: the model, then something done to its outputs. */
static void (*vandalism)(const struct assay_tensors *tensors);

static inline enum assay_status claim(void *state, const struct assay_run_call *call,
                                      struct assay_backend_claim *claim,
                                      struct assay_message *message)
{
    (void)state, (void)call, (void)message;
    *claim = (struct assay_backend_claim){ .has_numerics = false };
    return ASSAY_RAN;
}

static inline enum assay_status run(void *state, const struct assay_run_call *call,
                                    struct assay_message *message)
{
    const enum assay_status status = model()->run(state, call, message);
    vandalism(call->tensors);
    return status;
}

/* @vandal may be NULL: the model itself. To be closed by the caller. */
static inline struct assay_result
result_of(const char *text, const char *numerics,
          void (*vandal)(const struct assay_tensors *tensors))
{
    static char state[ASSAY_MAX_NUMERICS_TEXT];
    const struct assay_backend backend = {
        .scheme = "vandal", .is_trusted = true, .claim = claim, .run = run
    };
    const struct assay_case the_case = parsed(text);
    const struct assay_trial_plan plan = {
        .candidate = vandal ? &backend : model(),
        .candidate_state = state,
        .uses_model = true,
        .uses_oracle = true,
        .checks = assay_checks,
    };
    struct assay_result result;
    snprintf(state, sizeof(state), "%s", numerics);
    vandalism = vandal;
    assay_trial_run(&plan, &the_case, NULL, 0, &result);
    ck_assert_msg(result.status == ASSAY_RAN, "%s: %s", text, result.message.text);
    return result;
}

#endif
