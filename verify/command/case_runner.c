/* SPDX-License-Identifier: MIT */
#include "verify/command/case_runner.h"

#include "verify/data/recording.h"
#include "verify/data/safetensors.h"
#include "verify/operation/numerics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void close_candidate(struct assay_case_runner *runner)
{
    struct assay_trial_plan *const plan = runner->plan;
    if (plan->candidate) plan->candidate->close(plan->candidate_state);
    plan->candidate = NULL;
    free(runner->candidate_path);
    runner->candidate_path = NULL;
}

/* The backend for the next case: the one asked for, or the recorded file's outputs. */
static enum assay_status choose_candidate(struct assay_case_runner *runner,
                                          const char *recorded,
                                          struct assay_message *message)
{
    struct assay_trial_plan *const plan = runner->plan;
    const char *const path = runner->candidate ? NULL : recorded;
    const struct assay_backend *backend;
    char *text = NULL;
    if (plan->candidate && is_same(runner->candidate_path, path)) return ASSAY_RAN;
    close_candidate(runner);
    if (path && (asprintf(&text, "recorded:%s", path) < 0 ||
                 !(runner->candidate_path = strdup(path))))
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a path");
    const char *const asked = runner->candidate ? runner->candidate : "model";
    const enum assay_status status = assay_backend_open(
        text ? text : asked, runner->limits, &backend, &plan->candidate_state, message);
    if (status == ASSAY_RAN) plan->candidate = backend;
    free(text);
    return status;
}

enum assay_status assay_case_runner_open(struct assay_case_runner *runner,
                                         struct assay_message *message)
{
    return choose_candidate(runner, NULL, message);
}

enum assay_status assay_case_runner_check(const struct assay_case_runner *runner,
                                          const struct assay_case *the_case,
                                          struct assay_message *message)
{
    const struct assay_trial_plan *const plan = runner->plan;
    const struct assay_operation *const operation = the_case->operation;
    union assay_problem_storage problem;
    union assay_numerics_storage numerics;
    struct assay_backend_claim claim;
    const struct assay_run_call call = { .the_case = the_case, .problem = &problem };
    enum assay_status status = operation->bind(the_case, &problem, message);
    if (status == ASSAY_RAN && plan->model_numerics)
        status = assay_numerics_parse(operation, &problem, plan->model_numerics,
                                      &numerics, message);
    /* Somebody's code is asked once, when the case runs. */
    if (status != ASSAY_RAN || !plan->candidate->is_trusted) return status;
    status = plan->candidate->claim(plan->candidate_state, &call, &claim, message);
    if (status == ASSAY_RAN && claim.has_numerics)
        status =
            assay_numerics_parse(operation, &problem, claim.numerics, &numerics, message);
    return status;
}

static void close_recording(struct assay_case_runner *runner)
{
    if (runner->recorded_path) assay_recording_close(&runner->recording);
    free(runner->recorded_path);
    runner->recorded_path = NULL;
}

static enum assay_status choose_recording(struct assay_case_runner *runner,
                                          const char *path, struct assay_message *message)
{
    if (is_same(runner->recorded_path, path)) return ASSAY_RAN;
    close_recording(runner);
    char *const copy = strdup(path);
    if (!copy) return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a path");
    const enum assay_status status =
        assay_recording_open(&runner->recording, copy, message);
    if (status == ASSAY_RAN)
        runner->recorded_path = copy;
    else
        free(copy);
    return status;
}

/* The case in its parsed form; of a recorded one its file is open then. */
static enum assay_status find_case(struct assay_case_runner *runner,
                                   const struct assay_run_case *wanted,
                                   struct assay_case *the_case,
                                   struct assay_message *message)
{
    if (wanted->line) return assay_case_parse(wanted->line, the_case, message);
    if (!wanted->recorded)
        return assay_fail(message, ASSAY_FAILED, "a job was asked for no case");
    const enum assay_status status = choose_recording(runner, wanted->recorded, message);
    if (status != ASSAY_RAN) return status;
    if (wanted->index < 0 || wanted->index >= runner->recording.count)
        return assay_fail(message, ASSAY_FAILED, "%s was changed while it was being used",
                          assay_shown_path(wanted->recorded));
    *the_case = runner->recording.cases[wanted->index];
    return ASSAY_RAN;
}

enum assay_status assay_case_runner_run(void *context,
                                        const struct assay_run_case *wanted,
                                        struct assay_result *result,
                                        struct assay_message *message)
{
    struct assay_case_runner *const runner = context;
    struct assay_case the_case;
    enum assay_status status = find_case(runner, wanted, &the_case, message);
    if (status == ASSAY_RAN) status = choose_candidate(runner, wanted->recorded, message);
    if (status == ASSAY_RAN)
        assay_trial_run(runner->plan, &the_case,
                        wanted->recorded ? &runner->recording : NULL, wanted->index,
                        result);
    return status;
}

enum assay_status assay_case_runner_name(struct assay_case_runner *runner,
                                         const struct assay_run_case *wanted,
                                         struct assay_result *result,
                                         struct assay_message *message)
{
    struct assay_case the_case;
    const enum assay_status status = find_case(runner, wanted, &the_case, message);
    if (status != ASSAY_RAN) return status;
    result->operation = the_case.operation;
    assay_case_format(&the_case, result->case_line, sizeof(result->case_line));
    snprintf(result->source, sizeof(result->source), "%s",
             wanted->recorded ? wanted->recorded : "");
    return ASSAY_RAN;
}

void assay_case_runner_close(struct assay_case_runner *runner)
{
    close_candidate(runner);
    close_recording(runner);
}
