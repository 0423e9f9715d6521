/* SPDX-License-Identifier: MIT */
/* `assay verify`: runs cases on a candidate, judges them, reports. */
#include "verify/check/trial.h"
#include "verify/command/command.h"
#include "verify/command/limits.h"
#include "verify/command/report_set.h"
#include "verify/command/selection.h"
#include "verify/operation/numerics.h"

#include <argp.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHECKS = 16, KEY_FIRST = 256 };
enum key {
    KEY_SUITE = KEY_FIRST,
    KEY_RECORDED,
    KEY_CANDIDATE,
    KEY_REFERENCE,
    KEY_CHECK,
    KEY_REQUIRE,
    KEY_MAX_INDECISIVE,
    KEY_CRITERIA,
};

struct verify {
    struct assay_selection selection;
    const char *candidate; /* NULL: model, or the recorded file itself */
    char *reference_text, *check_text;
    int64_t max_indecisive;
    struct assay_limits limits;
    struct assay_trial_plan plan;
    const struct assay_check *checks[MAX_CHECKS + 1];
    struct assay_report_set reports;
    struct assay_summary summary;
    bool was_refused;
    char recorded_path[4096]; /* whose backend plan.candidate_state is */
    struct assay_message message;
    enum assay_status status; /* of reading the arguments */
};

static const struct argp_option options[] = {
    { "suite", KEY_SUITE, "FILE", 0, "cases from a file, one a line; - is stdin", 0 },
    { "recorded", KEY_RECORDED, "FILE|DIR", 0, "cases, inputs and outputs of a recording",
      0 },
    { "candidate", KEY_CANDIDATE, "BACKEND", 0,
      "what is tested (model; with --recorded: the file's outputs)", 0 },
    { "reference", KEY_REFERENCE, "LIST", 0, "model[:NUMERICS] and oracle (both)", 0 },
    { "check", KEY_CHECK, "LIST", 0, "which checks (all that apply)", 0 },
    { "require", KEY_REQUIRE, "VERDICT", 0,
      "worst verdict that passes (equal if the candidate claims numerics, else bounded)",
      0 },
    { "criteria", KEY_CRITERIA, "LIST", 0,
      "also say what other people's pass rules would say; no part of the verdict", 0 },
    { "max-indecisive", KEY_MAX_INDECISIVE, "N", 0, "so many cases may prove nothing (0)",
      0 },
    { 0 },
};

static enum assay_status parse_require(struct verify *verify, const char *name)
{
    static const enum assay_verdict allowed[] = { ASSAY_EQUAL, ASSAY_EXPLAINED,
                                                  ASSAY_BOUNDED };
    for (int i = 0; i < 3; i++)
        if (strcmp(assay_verdicts[allowed[i]].name, name) == 0) {
            verify->plan.require = allowed[i];
            return ASSAY_RAN;
        }
    return assay_fail(&verify->message, ASSAY_REFUSED,
                      "--require %s is no verdict to require; use equal, explained or "
                      "bounded",
                      name);
}

static enum assay_status parse_count(struct verify *verify, const char *text)
{
    char *end;
    errno = 0;
    verify->max_indecisive = strtoll(text, &end, 10);
    if (errno || *end || end == text || verify->max_indecisive < 0)
        return assay_fail(&verify->message, ASSAY_REFUSED,
                          "--max-indecisive %s is no count; use 0 or more", text);
    return ASSAY_RAN;
}

static enum assay_status parse_checks(struct verify *verify)
{
    int count = 0;
    const char *names[MAX_CHECKS + 1] = { NULL };
    for (int i = 0; assay_checks[i]; i++)
        names[i] = assay_checks[i]->name;
    char *rest = verify->check_text;
    for (char *word; (word = strsep(&rest, ",")) && count < MAX_CHECKS;) {
        int row = 0;
        while (names[row] && strcmp(names[row], word) != 0)
            row++;
        if (!names[row]) {
            const char *const nearest = assay_nearest(word, names);
            return assay_fail(&verify->message, ASSAY_REFUSED,
                              "--check names '%s', which is no check; %s%s%s", word,
                              nearest ? "did you mean '" : "see `assay list checks`",
                              nearest ? nearest : "", nearest ? "'?" : "");
        }
        verify->checks[count++] = assay_checks[row];
    }
    verify->checks[count] = NULL;
    return ASSAY_RAN;
}

static enum assay_status parse_references(struct verify *verify)
{
    verify->plan.uses_model = verify->plan.uses_oracle = false;
    char *rest = verify->reference_text;
    /* The numerics behind "model:" may hold commas, so model comes last in a list. */
    while (rest && *rest) {
        if (strncmp(rest, "model:", 6) == 0) {
            verify->plan.uses_model = true;
            verify->plan.model_numerics = rest + 6;
            break;
        }
        const char *const word = strsep(&rest, ",");
        if (strcmp(word, "model") == 0)
            verify->plan.uses_model = true;
        else if (strcmp(word, "oracle") == 0)
            verify->plan.uses_oracle = true;
        else
            return assay_fail(&verify->message, ASSAY_REFUSED,
                              "--reference names '%s'; use oracle, model or "
                              "model:NUMERICS (model: last)",
                              word);
    }
    return ASSAY_RAN;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct verify *const verify = state->input;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = &verify->reports;
        state->child_inputs[1] = &verify->limits;
    }
    if (verify->status != ASSAY_RAN) return 0;
    struct assay_message *const message = &verify->message;
    switch (key) {
    case KEY_SUITE:
        verify->status = assay_select_suite(&verify->selection, argument, message);
        break;
    case KEY_RECORDED:
        verify->status = assay_select_recorded(&verify->selection, argument, message);
        break;
    case KEY_CANDIDATE: verify->candidate = argument; break;
    case KEY_REFERENCE:
        verify->reference_text = argument;
        verify->status = parse_references(verify);
        break;
    case KEY_CHECK:
        verify->check_text = argument;
        verify->status = parse_checks(verify);
        break;
    case KEY_CRITERIA:
        verify->status = assay_criteria_parse(argument, &verify->plan.criteria, message);
        break;
    case KEY_REQUIRE: verify->status = parse_require(verify, argument); break;
    case KEY_MAX_INDECISIVE: verify->status = parse_count(verify, argument); break;
    case ARGP_KEY_ARG:
        verify->status = assay_select_case(&verify->selection, argument, message);
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static enum assay_status open_reports(struct verify *verify)
{
    const struct assay_run_header header = {
        .command = "verify",
        .candidate = verify->candidate,
        .require = verify->plan.require == ASSAY_NOT_JUDGED
                       ? NULL
                       : assay_verdicts[verify->plan.require].name,
    };
    return assay_report_set_open(&verify->reports, &header, &verify->message);
}

/* The backend for the next case: the one asked for, or the recorded file's outputs. */
static enum assay_status choose_candidate(struct verify *verify,
                                          const struct assay_recording *recording)
{
    struct assay_trial_plan *const plan = &verify->plan;
    const bool is_recorded = recording && !verify->candidate;
    const char *const path = is_recorded ? recording->path : "";
    if (plan->candidate && strcmp(verify->recorded_path, path) == 0) return ASSAY_RAN;
    if (plan->candidate) plan->candidate->close(plan->candidate_state);
    plan->candidate = NULL;
    snprintf(verify->recorded_path, sizeof(verify->recorded_path), "%s", path);
    const char *text = verify->candidate ? verify->candidate : "model";
    char *recorded = NULL;
    if (is_recorded) {
        if (asprintf(&recorded, "recorded:%s", path) < 0)
            return assay_fail(&verify->message, ASSAY_OUT_OF_MEMORY,
                              "no memory for a path");
        text = recorded;
    }
    const struct assay_backend *backend;
    const enum assay_status status =
        assay_backend_open(text, &verify->limits.backend, &backend,
                           &plan->candidate_state, &verify->message);
    if (status == ASSAY_RAN) plan->candidate = backend;
    free(recorded);
    return status;
}

static void count_result(struct verify *verify, const struct assay_result *result)
{
    struct assay_summary *const summary = &verify->summary;
    summary->cases++;
    verify->was_refused |= result->status == ASSAY_REFUSED;
    if (result->status == ASSAY_UNSUPPORTED) summary->unsupported++;
    if (result->status != ASSAY_RAN) {
        summary->broken +=
            result->status != ASSAY_UNSUPPORTED && result->status != ASSAY_REFUSED;
        return;
    }
    summary->verdicts[result->verdict]++;
    if (result->verdict == ASSAY_CONTRADICTION)
        summary->contradictions++;
    else if (!result->is_decisive && result->verdict < ASSAY_OUTSIDE)
        summary->indecisive++;
    if (result->has_passed)
        summary->passed++;
    else if (result->is_decisive || result->verdict >= ASSAY_OUTSIDE)
        summary->failed++;
    for (int i = 0; i < result->output_count; i++) {
        const struct assay_output_result *const output = &result->output[i];
        if (output->has_bits) {
            summary->elements_compared += output->defined;
            summary->elements_equal += output->defined - output->differ;
        }
        if (output->has_bound &&
            output->max_error_over_bound > summary->max_error_over_bound)
            summary->max_error_over_bound = output->max_error_over_bound;
    }
}

static enum assay_status verify_case(void *context, const struct assay_case *the_case,
                                     struct assay_recording *recording, int index,
                                     struct assay_message *message)
{
    struct verify *const verify = context;
    enum assay_status status = choose_candidate(verify, recording);
    if (status != ASSAY_RAN) {
        *message = verify->message;
        return status;
    }
    struct assay_result result;
    assay_trial_run(&verify->plan, the_case, recording, index, &result);
    count_result(verify, &result);
    status = assay_report_set_result(&verify->reports, &result, message);
    assay_result_close(&result);
    return status;
}

static int exit_code(const struct verify *verify)
{
    const struct assay_summary *const summary = &verify->summary;
    if (verify->was_refused) return ASSAY_EXIT_BAD_INPUT;
    if (summary->contradictions) return ASSAY_EXIT_CONTRADICTION;
    if (summary->broken) return ASSAY_EXIT_BROKEN;
    if (summary->failed || summary->indecisive > verify->max_indecisive)
        return ASSAY_EXIT_BELOW_REQUIRED;
    if (summary->cases == summary->unsupported) return ASSAY_EXIT_NOTHING_SELECTED;
    return ASSAY_EXIT_PASSED;
}

/* Refuses numerics named for candidate or reference that a selected case can't have. */
static enum assay_status check_numerics(void *context, const struct assay_case *the_case,
                                        struct assay_recording *recording, int index,
                                        struct assay_message *message)
{
    (void)recording, (void)index;
    const struct verify *const verify = context;
    const struct assay_trial_plan *const plan = &verify->plan;
    const struct assay_operation *const operation = the_case->operation;
    union {
        max_align_t alignment;
        char bytes[ASSAY_MAX_PROBLEM_BYTES > ASSAY_MAX_NUMERICS_BYTES
                       ? ASSAY_MAX_PROBLEM_BYTES
                       : ASSAY_MAX_NUMERICS_BYTES];
    } problem, numerics;
    struct assay_backend_claim claim;
    const struct assay_run_call call = { the_case, &problem, NULL };
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

static enum assay_status run(struct verify *verify)
{
    enum assay_status status = choose_candidate(verify, NULL);
    if (status == ASSAY_RAN && (verify->candidate || verify->plan.model_numerics))
        status = assay_selection_walk(&verify->selection, check_numerics, verify,
                                      &verify->message);
    if (status == ASSAY_RAN) status = open_reports(verify);
    if (status == ASSAY_RAN)
        status = assay_selection_walk(&verify->selection, verify_case, verify,
                                      &verify->message);
    verify->summary.exit_code = exit_code(verify);
    if (status != ASSAY_RAN) return status;
    return assay_report_set_end(&verify->reports, &verify->summary, &verify->message);
}

int assay_command_verify(int argc, char **argv)
{
    const struct argp_child children[] = { { .argp = assay_report_set_argp() },
                                           { .argp = assay_limits_argp() },
                                           { 0 } };
    const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .args_doc = "[CASE]...",
        .doc = "Runs each case on a candidate and compares its outputs with the model, "
               "bit for bit, and with the oracle, within a proven bound.\v"
               "A report whose FILE is - goes to standard output instead of the text.",
        .children = children,
    };
    struct verify verify = { .plan = { .uses_model = true, .uses_oracle = true },
                             .limits = assay_limits_default(),
                             .status = ASSAY_RAN };
    for (int i = 0; assay_checks[i]; i++)
        verify.checks[i] = assay_checks[i];
    verify.plan.checks = verify.checks;
    argp_parse(&argp, argc, argv, 0, NULL, &verify);
    if (verify.status == ASSAY_RAN && verify.limits.status != ASSAY_RAN) {
        verify.status = verify.limits.status;
        verify.message = verify.limits.message;
    }
    enum assay_status status = verify.status;
    if (status == ASSAY_RAN) status = run(&verify);
    int code = verify.summary.exit_code;
    if (status != ASSAY_RAN) code = assay_complain((int)status, &verify.message);
    assay_report_set_close(&verify.reports);
    if (verify.plan.candidate) verify.plan.candidate->close(verify.plan.candidate_state);
    assay_selection_close(&verify.selection);
    return code;
}
