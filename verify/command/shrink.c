/* SPDX-License-Identifier: MIT */
/* `assay shrink`: the smallest case that fails like a given one. */
#include "fuzz/shrink/shrink.h"

#include "fuzz/shrink/signature.h"
#include "verify/case/text.h"
#include "verify/command/case_runner.h"
#include "verify/command/command.h"
#include "verify/command/limits.h"
#include "verify/command/number_option.h"
#include "verify/command/trial_options.h"
#include "verify/report/report.h"

#include <argp.h>
#include <inttypes.h>
#include <stdlib.h>

enum { KEY_CANDIDATE = 256, KEY_SECONDS, KEY_TRIALS };
enum { MAX_TRIALS = 1000000 };

struct shrink {
    const char *line, *candidate; /* candidate NULL: the model */
    double seconds;
    int trials;
    struct assay_limits limits;
    struct assay_trial_options judging;
    struct assay_case_runner runner;
    struct assay_message message;
    enum assay_status status; /* of reading the arguments */
};

static const struct argp_option options[] = {
    { "candidate", KEY_CANDIDATE, "BACKEND", 0, "who fails (model)", 0 },
    { "seconds", KEY_SECONDS, "S", 0, "begin nothing new after so long (60)", 0 },
    { "trials", KEY_TRIALS, "N", 0, "run at most so many cases (2000)", 0 },
    { 0 },
};

static enum assay_status parse_trials(struct shrink *shrink, const char *text)
{
    uint64_t trials = 0;
    const enum assay_status status =
        assay_option_count("--trials", text, 1, MAX_TRIALS, &trials, &shrink->message);
    if (status == ASSAY_RAN) shrink->trials = (int)trials;
    return status;
}

static enum assay_status take_line(struct shrink *shrink, const char *line)
{
    if (shrink->line)
        return assay_fail(&shrink->message, ASSAY_REFUSED,
                          "shrink takes one case, and '%s' is a second one; quote a "
                          "line that has spaces",
                          assay_excerpt(line).text);
    shrink->line = line;
    return ASSAY_RAN;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct shrink *const shrink = state->input;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = &shrink->limits;
        state->child_inputs[1] = &shrink->judging;
    }
    if (shrink->status != ASSAY_RAN) return 0;
    switch (key) {
    case KEY_CANDIDATE: shrink->candidate = argument; break;
    case KEY_SECONDS:
        shrink->status = assay_option_seconds("--seconds", argument, &shrink->seconds,
                                              &shrink->message);
        break;
    case KEY_TRIALS: shrink->status = parse_trials(shrink, argument); break;
    case ARGP_KEY_ARG: shrink->status = take_line(shrink, argument); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static enum assay_status parse(struct shrink *shrink, int argc, char **argv)
{
    const struct argp_child children[] = { { .argp = assay_limits_argp() },
                                           { .argp = assay_trial_options_argp() },
                                           { 0 } };
    const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .args_doc = "CASE",
        .doc = "Looks for a smaller case that fails in the same way: fewer elements, "
               "fewer keys, data that are zero but for a few elements.\v"
               "Prints the smallest case, what fails there, and the line that repeats "
               "it. Exit: 0 smaller or as small as it gets, 1 the case does not fail, 2 "
               "bad usage or input, 3 a backend broke, 5 the candidate does not do it.",
        .children = children,
    };
    shrink->limits = assay_limits_default();
    assay_trial_options_init(&shrink->judging);
    argp_parse(&argp, argc, argv, 0, NULL, shrink);
    if (shrink->status == ASSAY_RAN && shrink->limits.status != ASSAY_RAN) {
        shrink->message = shrink->limits.message;
        return shrink->limits.status;
    }
    if (shrink->status == ASSAY_RAN && shrink->judging.status != ASSAY_RAN) {
        shrink->message = shrink->judging.message;
        return shrink->judging.status;
    }
    if (shrink->status == ASSAY_RAN && !shrink->line)
        return assay_fail(&shrink->message, ASSAY_REFUSED,
                          "shrink needs a case that fails; give its line");
    return shrink->status;
}

static enum assay_status open_backends(struct shrink *shrink)
{
    shrink->runner = (struct assay_case_runner){
        .plan = &shrink->judging.plan,
        .candidate = shrink->candidate,
        .limits = &shrink->limits.backend,
    };
    const enum assay_status status =
        assay_case_runner_open(&shrink->runner, &shrink->message);
    return status == ASSAY_RAN
               ? assay_trial_options_open(&shrink->judging, &shrink->limits.backend,
                                          &shrink->message)
               : status;
}

static void print_progress(void *context, const struct assay_shrink_progress *progress)
{
    (void)context;
    fprintf(stderr, "%-10s  %11" PRId64 " elements, %5d trials\n", progress->pass,
            progress->elements, progress->trials);
}

/* As `assay verify` shows a case. */
static enum assay_status print_result(const struct shrink *shrink,
                                      const struct assay_result *result,
                                      struct assay_message *message)
{
    const struct assay_trial_plan *const plan = &shrink->judging.plan;
    const struct assay_run_header header = {
        .command = "verify",
        .candidate = shrink->candidate,
        .reference = shrink->judging.reference_list,
        .checks = shrink->judging.check_list,
        .repeats = plan->repeats == ASSAY_DEFAULT_REPEATS ? 0 : plan->repeats,
        .require =
            plan->require == ASSAY_NOT_JUDGED ? NULL : assay_verdicts[plan->require].name,
    };
    void *const state = calloc(1, assay_report_text.state_bytes);
    if (!state) return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a report");
    enum assay_status status = assay_report_text.begin(state, stdout, &header);
    if (status == ASSAY_RAN) status = assay_report_text.result(state, result);
    free(state);
    return status == ASSAY_RAN
               ? status
               : assay_fail(message, status, "standard output can't be written");
}

static void print_outcome(const struct assay_shrink_outcome *outcome)
{
    char line[ASSAY_MAX_CASE_LINE];
    assay_case_format(&outcome->smallest, line, sizeof(line));
    printf("\n%s\n", line);
    if (assay_result_is_failure(&outcome->result))
        printf("  %s\n", assay_signature_of(&outcome->result).text);
    printf("  %" PRId64 " elements, %" PRId64 " in the largest tensor; were %" PRId64
           " and %" PRId64 "\n",
           outcome->after.elements, outcome->after.largest, outcome->before.elements,
           outcome->before.largest);
    printf("  %d trials in %.1f s%s\n", outcome->trials, outcome->seconds,
           outcome->end == ASSAY_SHRINK_CUT ? "; not all was tried (--seconds, --trials)"
                                            : "");
    if (outcome->failed_tries < outcome->tries)
        printf("  flaky: the case itself failed in %d of %d tries\n",
               outcome->failed_tries, outcome->tries);
    if (!assay_result_is_failure(&outcome->result))
        printf("  flaky: the smallest case did not fail in %d further tries\n",
               ASSAY_SHRINK_TRIES);
}

static enum assay_status finish(const struct shrink *shrink,
                                const struct assay_shrink_outcome *outcome, int *code,
                                struct assay_message *message)
{
    const enum assay_status status = print_result(shrink, &outcome->result, message);
    if (outcome->end != ASSAY_SHRINK_PASSES) {
        print_outcome(outcome);
        *code = ASSAY_EXIT_PASSED;
    } else if (outcome->result.status == ASSAY_UNSUPPORTED) {
        *code = ASSAY_EXIT_NOTHING_SELECTED;
    } else {
        printf("there is nothing to shrink: the case did not fail in %d tries\n",
               outcome->tries);
        *code = ASSAY_EXIT_BELOW_REQUIRED;
    }
    if (status == ASSAY_RAN && (fflush(stdout) || ferror(stdout)))
        return assay_fail(message, ASSAY_FAILED, "standard output can't be written");
    return status;
}

static enum assay_status run(struct shrink *shrink, int *code)
{
    const struct assay_shrink wanted = {
        .plan = &shrink->judging.plan,
        .seconds = shrink->seconds,
        .trials = shrink->trials,
        .progress = print_progress,
    };
    struct assay_case the_case;
    enum assay_status status =
        assay_case_parse(shrink->line, &the_case, &shrink->message);
    if (status == ASSAY_RAN) status = open_backends(shrink);
    if (status != ASSAY_RAN) return status;
    struct assay_shrink_outcome *const outcome = malloc(sizeof(*outcome));
    if (!outcome)
        return assay_fail(&shrink->message, ASSAY_OUT_OF_MEMORY,
                          "no memory for shrinking");
    status = assay_shrink(&wanted, &the_case, outcome, &shrink->message);
    if (status == ASSAY_RAN) status = finish(shrink, outcome, code, &shrink->message);
    assay_shrink_outcome_close(outcome);
    free(outcome);
    return status;
}

int assay_command_shrink(int argc, char **argv)
{
    struct shrink shrink = { .status = ASSAY_RAN };
    int code = ASSAY_EXIT_PASSED;
    enum assay_status status = parse(&shrink, argc, argv);
    if (status == ASSAY_RAN) status = run(&shrink, &code);
    if (status != ASSAY_RAN) code = assay_complain((int)status, &shrink.message);
    if (shrink.runner.plan) assay_case_runner_close(&shrink.runner);
    assay_trial_options_close(&shrink.judging);
    assay_trial_options_free(&shrink.judging);
    return code;
}
