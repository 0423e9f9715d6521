/* SPDX-License-Identifier: MIT */
/* `assay identify`: which settings of the knobs reproduce a candidate's bits. */
#include "verify/check/inputs.h"
#include "verify/command/command.h"
#include "verify/command/identify_output.h"
#include "verify/command/limits.h"
#include "verify/command/number_option.h"
#include "verify/command/selection.h"
#include "verify/data/clock.h"
#include "verify/identify/candidate.h"
#include "verify/identify/knob_identify.h"

#include <argp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_RECORDED = 256, KEY_CANDIDATE, KEY_PAIRS, KEY_JSON, KEY_SECONDS };

struct identify {
    struct assay_selection selection;
    bool has_lines;
    const char *candidate, *json_path; /* candidate NULL: the recorded outputs */
    struct assay_limits limits;
    const struct assay_backend *backend;
    void *state;
    struct assay_knob_search_plan plan;
    struct assay_identify_output output;
    struct assay_summary summary;
    bool was_refused;
    enum assay_status status; /* of reading the arguments */
    struct assay_message message;
};

static const struct argp_option options[] = {
    { "recorded", KEY_RECORDED, "FILE|DIR", 0,
      "cases and inputs of a recording, and its outputs unless a candidate is named", 0 },
    { "candidate", KEY_CANDIDATE, "BACKEND", 0,
      "whose outputs are to be explained; further cases are drawn for it that tell the "
      "settings apart which fit",
      0 },
    { "pairs", KEY_PAIRS, NULL, 0, "turn two knobs at once if one is not enough", 0 },
    { "json", KEY_JSON, "FILE", 0, "one object a case; - replaces the text", 0 },
    { "seconds", KEY_SECONDS, "S", 0,
      "begin nothing new after so many a case, but for a fifth of them for further cases "
      "(8; with --pairs 60)",
      0 },
    { 0 },
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct identify *const identify = state->input;
    if (key == ARGP_KEY_INIT) state->child_inputs[0] = &identify->limits;
    if (identify->status != ASSAY_RAN) return 0;
    switch (key) {
    case KEY_RECORDED:
        identify->status =
            assay_select_recorded(&identify->selection, argument, &identify->message);
        break;
    case KEY_CANDIDATE: identify->candidate = argument; break;
    case KEY_PAIRS: identify->plan.with_pairs = true; break;
    case KEY_JSON: identify->json_path = argument; break;
    case KEY_SECONDS:
        identify->status = assay_option_seconds(
            "--seconds", argument, &identify->plan.seconds, &identify->message);
        break;
    case ARGP_KEY_ARG:
        identify->has_lines = true;
        identify->status =
            assay_select_case(&identify->selection, argument, &identify->message);
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* A case while it is looked at. */
struct subject {
    union assay_problem_storage problem;
    struct assay_tensors tensors;
    struct assay_buffers buffers;
    struct assay_observation observation;
    struct assay_knob_identity identity;
};

static enum assay_status take_recorded_outputs(struct assay_recording *recording,
                                               int index, struct assay_tensors *tensors,
                                               struct assay_message *message)
{
    struct assay_tensors kept = *tensors;
    for (int i = 0; i < kept.count; i++)
        kept.item[i].data = NULL;
    const enum assay_status status =
        assay_recording_bind(recording, index, &kept, message);
    for (int i = 0; i < kept.count && status == ASSAY_RAN; i++)
        if (kept.item[i].is_output)
            memcpy(tensors->item[i].data, kept.item[i].data,
                   (size_t)assay_tensor_bytes(&kept.item[i]));
    return status;
}

static enum assay_status observe(const struct identify *identify,
                                 const struct assay_case *the_case,
                                 struct assay_recording *recording, int index,
                                 struct subject *subject, struct assay_message *message)
{
    const struct assay_run_call call = { .the_case = the_case,
                                         .problem = &subject->problem,
                                         .tensors = &subject->tensors };
    enum assay_status status =
        assay_inputs_open(the_case, recording, index, &subject->problem,
                          &subject->tensors, &subject->buffers, message);
    if (status != ASSAY_RAN) return status;
    status = identify->backend
                 ? assay_candidate_run(identify->backend, identify->state, &call,
                                       &subject->buffers, message)
                 : take_recorded_outputs(recording, index, &subject->tensors, message);
    if (status != ASSAY_RAN) return status;
    subject->observation = (struct assay_observation){
        .operation = the_case->operation,
        .problem = &subject->problem,
        .tensors = &subject->tensors,
        .is_recording = !identify->backend || identify->backend->is_recording,
    };
    status = assay_observation_open(&subject->observation);
    return status == ASSAY_RAN
               ? status
               : assay_fail(message, status, "no memory for a map of the outputs");
}

static enum assay_status answer(const struct identify *identify,
                                const struct assay_case *the_case,
                                struct subject *subject, struct assay_message *message)
{
    const struct assay_backend *const backend = identify->backend;
    const struct assay_knob_question question = {
        .observation = &subject->observation,
        .the_case = the_case,
        .backend = backend && !backend->is_recording ? backend : NULL,
        .state = identify->state,
        .plan = identify->plan,
    };
    return assay_knobs_identify(&question, &subject->identity, message);
}

static void count_case(struct identify *identify, enum assay_status status, int settings)
{
    struct assay_summary *const summary = &identify->summary;
    summary->cases++;
    if (status == ASSAY_RAN)
        *(settings ? &summary->passed : &summary->failed) += 1;
    else if (status == ASSAY_UNSUPPORTED)
        summary->unsupported++;
    else if (status == ASSAY_REFUSED)
        identify->was_refused = true;
    else
        summary->broken++;
}

static enum assay_status identify_case(void *context, const struct assay_case *the_case,
                                       struct assay_recording *recording, int index,
                                       struct assay_message *message)
{
    struct identify *const identify = context;
    struct subject *const subject = calloc(1, sizeof(*subject));
    struct assay_message problem = { "" };
    char line[ASSAY_MAX_CASE_LINE];
    const double start = assay_clock_seconds();
    if (!subject) return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a case");
    assay_case_format(the_case, line, sizeof(line));
    enum assay_status status =
        observe(identify, the_case, recording, index, subject, &problem);
    if (status == ASSAY_RAN) status = answer(identify, the_case, subject, &problem);
    count_case(identify, status, subject->identity.answer.count);
    const struct assay_identification found = {
        .case_line = line,
        .source = recording ? recording->path : "",
        .status = status,
        .message = problem.text,
        .answer = status == ASSAY_RAN ? &subject->identity.answer : NULL,
        .seconds = assay_clock_seconds() - start,
    };
    status = assay_identify_output_add(&identify->output, &found, message);
    assay_knob_identity_close(&subject->identity);
    assay_observation_close(&subject->observation);
    assay_buffers_close(&subject->buffers);
    free(subject);
    return status;
}

static int exit_code(const struct identify *identify)
{
    const struct assay_summary *const summary = &identify->summary;
    if (identify->was_refused) return ASSAY_EXIT_BAD_INPUT;
    if (summary->broken) return ASSAY_EXIT_BROKEN;
    if (summary->failed) return ASSAY_EXIT_BELOW_REQUIRED;
    if (summary->cases == summary->unsupported) return ASSAY_EXIT_NOTHING_SELECTED;
    return ASSAY_EXIT_PASSED;
}

static enum assay_status open_candidate(struct identify *identify)
{
    if (identify->has_lines && !identify->candidate)
        return assay_fail(&identify->message, ASSAY_REFUSED,
                          "a case has no outputs to explain before somebody computes "
                          "them; name who with --candidate, or give --recorded FILE");
    if (!identify->candidate) return ASSAY_RAN;
    const enum assay_status status =
        assay_backend_open(identify->candidate, &identify->limits.backend,
                           &identify->backend, &identify->state, &identify->message);
    if (status != ASSAY_RAN) identify->backend = NULL;
    return status;
}

static enum assay_status run(struct identify *identify)
{
    if (identify->plan.seconds == 0)
        identify->plan.seconds = identify->plan.with_pairs ? 60 : 8;
    enum assay_status status = open_candidate(identify);
    if (status == ASSAY_RAN)
        status = assay_identify_output_open(&identify->output, identify->json_path,
                                            identify->candidate, &identify->message);
    if (status == ASSAY_RAN)
        status = assay_selection_walk(&identify->selection, identify_case, identify,
                                      &identify->message);
    if (status != ASSAY_RAN) return status;
    identify->summary.exit_code = exit_code(identify);
    return assay_identify_output_end(&identify->output, &identify->summary,
                                     &identify->message);
}

int assay_command_identify(int argc, char **argv)
{
    const struct argp_child children[] = { { .argp = assay_limits_argp() }, { 0 } };
    const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .args_doc = "[CASE]...",
        .doc = "Says which settings of the knobs reproduce the outputs of a recording or "
               "of a candidate, bit for bit.\v"
               "Named numerics are compared first, then, nearest first, what lies one "
               "knob away from them (`assay list numerics` shows both): all choices, all "
               "integers of a narrow range, and of a wide one its ends, the powers of "
               "two, and the neighbours of the value in use; last, the rest of these "
               "integers. Exit: 0 identified, 1 "
               "unexplained, 2 bad usage or input, 3 the candidate broke, 5 nothing was "
               "selected.",
        .children = children,
    };
    struct identify identify = { .limits = assay_limits_default(), .status = ASSAY_RAN };
    argp_parse(&argp, argc, argv, 0, NULL, &identify);
    if (identify.status == ASSAY_RAN && identify.limits.status != ASSAY_RAN) {
        identify.status = identify.limits.status;
        identify.message = identify.limits.message;
    }
    enum assay_status status = identify.status;
    if (status == ASSAY_RAN) status = run(&identify);
    int code = identify.summary.exit_code;
    if (status != ASSAY_RAN) code = assay_complain((int)status, &identify.message);
    assay_identify_output_close(&identify.output);
    if (identify.backend) identify.backend->close(identify.state);
    assay_selection_close(&identify.selection);
    return code;
}
