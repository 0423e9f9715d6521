/* SPDX-License-Identifier: MIT */
/* `assay verify`: runs cases on a candidate, judges them, reports. */
#include "verify/command/case_list.h"
#include "verify/command/case_runner.h"
#include "verify/command/command.h"
#include "verify/command/limits.h"
#include "verify/command/report_set.h"
#include "verify/command/run_options.h"
#include "verify/command/selection.h"
#include "verify/command/trial_options.h"
#include "verify/data/recording.h"
#include "verify/run/job.h"
#include "verify/run/run.h"
#include "verify/run/tally.h"

#include <argp.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

enum { KEY_SUITE = 256, KEY_RECORDED, KEY_CANDIDATE, KEY_MAX_INDECISIVE };

struct verify {
    bool is_job; /* cases come from elsewhere: what selects them is passed over */
    struct assay_selection selection;
    struct assay_case_list cases;
    const char *candidate; /* NULL: model, or the recorded file itself */
    int64_t max_indecisive;
    struct assay_limits limits;
    struct assay_trial_options judging;
    struct assay_run_options running;
    struct assay_case_runner runner;
    struct assay_report_set reports;
    struct assay_summary summary;
    bool was_refused;
    struct assay_message message;
    enum assay_status status; /* of reading the arguments */
};

static const struct argp_option options[] = {
    { "suite", KEY_SUITE, "FILE", 0, "cases from a file, one a line; - is stdin", 0 },
    { "recorded", KEY_RECORDED, "FILE|DIR", 0, "cases, inputs and outputs of a recording",
      0 },
    { "candidate", KEY_CANDIDATE, "BACKEND", 0,
      "what is tested (model; with --recorded: the file's outputs)", 0 },
    { "max-indecisive", KEY_MAX_INDECISIVE, "N", 0, "so many cases may prove nothing (0)",
      0 },
    { 0 },
};

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

static enum assay_status select_cases(struct verify *verify, int key,
                                      const char *argument)
{
    struct assay_selection *const selection = &verify->selection;
    if (verify->is_job) return ASSAY_RAN;
    if (key == KEY_SUITE)
        return assay_select_suite(selection, argument, &verify->message);
    if (key == KEY_RECORDED)
        return assay_select_recorded(selection, argument, &verify->message);
    return assay_select_case(selection, argument, &verify->message);
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct verify *const verify = state->input;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = &verify->reports;
        state->child_inputs[1] = &verify->limits;
        state->child_inputs[2] = &verify->judging;
        state->child_inputs[3] = &verify->running;
    }
    if (verify->status != ASSAY_RAN) return 0;
    switch (key) {
    case KEY_SUITE:
    case KEY_RECORDED:
    case ARGP_KEY_ARG: verify->status = select_cases(verify, key, argument); break;
    case KEY_CANDIDATE: verify->candidate = argument; break;
    case KEY_MAX_INDECISIVE: verify->status = parse_count(verify, argument); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* Reads the arguments; the message says what is wrong with them. */
static enum assay_status parse(struct verify *verify, int argc, char **argv)
{
    const struct argp_child children[] = { { .argp = assay_report_set_argp() },
                                           { .argp = assay_limits_argp() },
                                           { .argp = assay_trial_options_argp() },
                                           { .argp = assay_run_options_argp() },
                                           { 0 } };
    const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .args_doc = "[CASE]...",
        .doc = "Runs each case on a candidate and compares its outputs with the "
               "model, bit for bit, and with the oracle, within a proven bound.\v"
               "A report whose FILE is - goes to standard output instead of the text.",
        .children = children,
    };
    verify->limits = assay_limits_default();
    verify->running = assay_run_options_default();
    assay_trial_options_init(&verify->judging);
    argp_parse(&argp, argc, argv, 0, NULL, verify);
    const struct {
        enum assay_status status;
        const struct assay_message *message;
    } parts[] = { { verify->status, &verify->message },
                  { verify->limits.status, &verify->limits.message },
                  { verify->judging.status, &verify->judging.message },
                  { verify->running.status, &verify->running.message } };
    for (int i = 0; i < 4; i++) {
        if (parts[i].status == ASSAY_RAN) continue;
        verify->message = *parts[i].message;
        return parts[i].status;
    }
    return ASSAY_RAN;
}

static enum assay_status open_backends(struct verify *verify)
{
    verify->runner = (struct assay_case_runner){
        .plan = &verify->judging.plan,
        .candidate = verify->candidate,
        .limits = &verify->limits.backend,
    };
    const enum assay_status status =
        assay_case_runner_open(&verify->runner, &verify->message);
    if (status != ASSAY_RAN) return status;
    return assay_trial_options_open(&verify->judging, &verify->limits.backend,
                                    &verify->message);
}

static void close_backends(struct verify *verify)
{
    if (verify->runner.plan) assay_case_runner_close(&verify->runner);
    assay_trial_options_close(&verify->judging);
}

/* The outputs of a recorded case are the candidate where none was named. */
static enum assay_status check_outputs(const struct assay_case *the_case,
                                       struct assay_recording *recording, int index,
                                       struct assay_message *message)
{
    union assay_problem_storage problem;
    struct assay_tensors tensors;
    const enum assay_status status =
        the_case->operation->bind(the_case, &problem, message);
    if (status != ASSAY_RAN) return status;
    the_case->operation->shape(&problem, &tensors);
    return assay_recording_bind(recording, index, &tensors, message);
}

static enum assay_status list_case(void *context, const struct assay_case *the_case,
                                   struct assay_recording *recording, int index,
                                   struct assay_message *message)
{
    struct verify *const verify = context;
    enum assay_status status = ASSAY_RAN;
    if (verify->candidate || verify->judging.plan.model_numerics)
        status = assay_case_runner_check(&verify->runner, the_case, message);
    if (status == ASSAY_RAN && recording && !verify->candidate)
        status = check_outputs(the_case, recording, index, message);
    return status == ASSAY_RAN
               ? assay_case_list_add(&verify->cases, the_case, recording, index, message)
               : status;
}

static enum assay_status open_reports(struct verify *verify)
{
    const struct assay_run_header header = {
        .command = "verify",
        .candidate = verify->candidate,
        .reference = verify->judging.reference_list,
        .checks = verify->judging.check_list,
        .repeats = verify->judging.plan.repeats == ASSAY_DEFAULT_REPEATS
                       ? 0
                       : verify->judging.plan.repeats,
        .require = verify->judging.plan.require == ASSAY_NOT_JUDGED
                       ? NULL
                       : assay_verdicts[verify->judging.plan.require].name,
    };
    return assay_report_set_open(&verify->reports, &header, &verify->message);
}

static bool find_case(void *context, struct assay_run_case *the_case)
{
    return assay_case_list_find(&((struct verify *)context)->cases, the_case);
}

static enum assay_status run_case(void *context, const struct assay_run_case *the_case,
                                  struct assay_result *result,
                                  struct assay_message *message)
{
    struct verify *const verify = context;
    return assay_case_runner_run(&verify->runner, the_case, result, message);
}

static enum assay_status name_case(void *context, const struct assay_run_case *the_case,
                                   struct assay_result *result,
                                   struct assay_message *message)
{
    struct verify *const verify = context;
    return assay_case_runner_name(&verify->runner, the_case, result, message);
}

static enum assay_status take_result(void *context, const struct assay_result *result,
                                     struct assay_message *message)
{
    struct verify *const verify = context;
    assay_summary_add(&verify->summary, result);
    verify->was_refused |= result->status == ASSAY_REFUSED;
    return assay_report_set_result(&verify->reports, result, message);
}

static enum assay_status run_cases(struct verify *verify, char *const *job_words)
{
    struct assay_run_settings settings;
    if (!assay_run_settings_open(&settings, verify->candidate, &verify->judging.plan,
                                 &verify->limits.backend)) {
        assay_run_settings_close(&settings);
        return assay_fail(&verify->message, ASSAY_OUT_OF_MEMORY, "no memory for a run");
    }
    const struct assay_run_plan plan = {
        .context = verify,
        .find = find_case,
        .run = run_case,
        .name = name_case,
        .take = take_result,
        .cases = verify->cases.count,
        .jobs = verify->running.jobs,
        .job_words = job_words,
        .folder = verify->running.folder,
        .header = { .command = "verify",
                    .cases = verify->cases.count,
                    .selection = verify->cases.hash,
                    .settings = settings.row },
    };
    /* Each job has backends of its own. */
    if (plan.jobs > 1) close_backends(verify);
    const enum assay_status status = assay_run(&plan, &verify->message);
    assay_run_settings_close(&settings);
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

static enum assay_status run(struct verify *verify, char *const *job_words)
{
    enum assay_status status = open_backends(verify);
    if (status == ASSAY_RAN)
        status =
            assay_selection_walk(&verify->selection, list_case, verify, &verify->message);
    if (status == ASSAY_RAN) status = open_reports(verify);
    if (status == ASSAY_RAN) status = run_cases(verify, job_words);
    verify->summary.exit_code = exit_code(verify);
    if (status != ASSAY_RAN) return status;
    return assay_report_set_end(&verify->reports, &verify->summary, &verify->message);
}

int assay_command_verify(int argc, char **argv)
{
    struct verify verify = { .status = ASSAY_RAN };
    char **const words = assay_job_words("verify", argc, argv);
    enum assay_status status = parse(&verify, argc, argv);
    if (status == ASSAY_RAN && !words)
        status = assay_fail(&verify.message, ASSAY_OUT_OF_MEMORY, "no memory for a run");
    if (status == ASSAY_RAN) status = run(&verify, words);
    int code = verify.summary.exit_code;
    if (status != ASSAY_RAN) code = assay_complain((int)status, &verify.message);
    assay_report_set_close(&verify.reports);
    close_backends(&verify);
    assay_trial_options_free(&verify.judging);
    assay_case_list_close(&verify.cases);
    assay_selection_close(&verify.selection);
    assay_job_words_free(words);
    return code;
}

int assay_verify_job(int argc, char **argv)
{
    struct verify verify = { .is_job = true, .status = ASSAY_RAN };
    enum assay_status status = parse(&verify, argc, argv);
    if (status == ASSAY_RAN) status = open_backends(&verify);
    const int code = status == ASSAY_RAN ? assay_job_serve(run_case, &verify)
                                         : assay_complain((int)status, &verify.message);
    close_backends(&verify);
    assay_trial_options_free(&verify.judging);
    return code;
}
