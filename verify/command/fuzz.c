/* SPDX-License-Identifier: MIT */
/* `assay fuzz`: runs random cases of all operations on a candidate for as long as asked,
 * and says what failed. */
#include "verify/command/campaign_output.h"
#include "verify/command/case_runner.h"
#include "verify/command/command.h"
#include "verify/command/fuzz_options.h"
#include "verify/command/fuzz_save.h"
#include "verify/command/limits.h"
#include "verify/command/trial_options.h"
#include "verify/data/clock.h"
#include "verify/report/report.h"
#include "verify/run/job.h"
#include "verify/run/run.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLED_BLOCKS = 16 }; /* of numbers, asked for before anything runs */

struct fuzz {
    struct assay_fuzz_options options;
    struct assay_limits limits;
    struct assay_trial_options judging;
    struct assay_case_runner runner;
    struct assay_campaign_tally tally;
    struct assay_campaign_output output;
    char *folder, *repetition;
    int64_t taken; /* results of the shard that have come */
    int64_t ran;   /* cases that were run now */
    double seconds;
    struct assay_message message;
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct fuzz *const fuzz = state->input;
    (void)argument;
    if (key == ARGP_KEY_ARG) argp_usage(state);
    if (key != ARGP_KEY_INIT) return ARGP_ERR_UNKNOWN;
    state->child_inputs[0] = &fuzz->options;
    state->child_inputs[1] = &fuzz->limits;
    state->child_inputs[2] = &fuzz->judging;
    return 0;
}

static enum assay_status parse(struct fuzz *fuzz, int argc, char **argv)
{
    const struct argp_child children[] = { { .argp = assay_fuzz_options_argp() },
                                           { .argp = assay_limits_argp() },
                                           { .argp = assay_trial_options_argp() },
                                           { 0 } };
    const struct argp argp = {
        .parser = parse_option,
        .doc =
            "Runs a campaign of random cases: case number i follows from the seed and i "
            "alone. One in 16 is illegal and has to be refused. Failures of one "
            "signature are one finding.\v"
            "Give --cases, --time or both. What is finished is not run again by "
            "--resume, whatever ended the run. Shards may share one --out; `assay merge` "
            "puts their reports together. Cases that prove nothing or that the candidate "
            "does not do are counted and are no failure.",
        .children = children,
    };
    fuzz->limits = assay_limits_default();
    assay_fuzz_options_init(&fuzz->options);
    assay_trial_options_init(&fuzz->judging);
    argp_parse(&argp, argc, argv, 0, NULL, fuzz);
    const enum assay_status status =
        assay_fuzz_options_check(&fuzz->options, &fuzz->message);
    if (status != ASSAY_RAN) return status;
    if (fuzz->limits.status != ASSAY_RAN) fuzz->message = fuzz->limits.message;
    if (fuzz->limits.status != ASSAY_RAN) return fuzz->limits.status;
    fuzz->message = fuzz->judging.message;
    return fuzz->judging.status;
}

static enum assay_status open_backends(struct fuzz *fuzz)
{
    fuzz->runner = (struct assay_case_runner){
        .plan = &fuzz->judging.plan,
        .candidate = fuzz->options.settings.candidate,
        .limits = &fuzz->limits.backend,
    };
    const enum assay_status status =
        assay_case_runner_open(&fuzz->runner, &fuzz->message);
    if (status != ASSAY_RAN) return status;
    return assay_trial_options_open(&fuzz->judging, &fuzz->limits.backend,
                                    &fuzz->message);
}

static void close_backends(struct fuzz *fuzz)
{
    if (fuzz->runner.plan) assay_case_runner_close(&fuzz->runner);
    assay_trial_options_close(&fuzz->judging);
}

/* The options behind the case in a line that repeats one. */
static enum assay_status make_repetition(struct fuzz *fuzz)
{
    static const char before[] = "assay verify x";
    const struct assay_trial_options *const judging = &fuzz->judging;
    const struct assay_trial_plan *const plan = &judging->plan;
    const struct assay_run_header header = {
        .candidate = fuzz->options.settings.candidate,
        .reference = judging->reference_list,
        .checks = judging->check_list,
        .repeats = plan->repeats == ASSAY_DEFAULT_REPEATS ? 0 : plan->repeats,
        .require =
            plan->require == ASSAY_NOT_JUDGED ? NULL : assay_verdicts[plan->require].name,
    };
    struct assay_result *const result = calloc(1, sizeof(*result));
    size_t bytes = 0;
    FILE *const stream = result ? open_memstream(&fuzz->repetition, &bytes) : NULL;
    if (stream) {
        strcpy(result->case_line, "x");
        result->criteria = plan->criteria;
        assay_report_repeat(stream, &header, result);
    }
    free(result);
    if (!stream || fclose(stream) != 0)
        return assay_fail(&fuzz->message, ASSAY_OUT_OF_MEMORY, "no memory for a run");
    assert(strncmp(fuzz->repetition, before, strlen(before)) == 0);
    fuzz->options.settings.repetition = fuzz->repetition + strlen(before);
    return ASSAY_RAN;
}

static enum assay_status check_case(const struct fuzz *fuzz, const char *line,
                                    struct assay_message *message)
{
    struct assay_case the_case;
    const enum assay_status status = assay_case_parse(line, &the_case, message);
    return status == ASSAY_RAN
               ? assay_case_runner_check(&fuzz->runner, &the_case, message)
               : status;
}

/* Refuses numerics of candidate or reference that none of the first cases can have. */
static enum assay_status check_sample(struct fuzz *fuzz)
{
    const struct assay_campaign *const campaign = &fuzz->options.settings.campaign;
    struct assay_campaign_case drawn;
    for (int64_t i = 0; i < SAMPLED_BLOCKS * campaign->operations; i++) {
        assay_campaign_draw(campaign, i, &drawn);
        if (!drawn.negative &&
            check_case(fuzz, drawn.line, &fuzz->message) != ASSAY_REFUSED)
            return ASSAY_RAN;
    }
    return ASSAY_REFUSED;
}

/* --- cases ------------------------------------------------------------------------ */

static bool find_case(void *context, struct assay_run_case *the_case)
{
    const struct fuzz *const fuzz = context;
    const int64_t cases = fuzz->options.settings.cases;
    return !cases || the_case->number < assay_shard_cases(fuzz->options.shard, cases);
}

static void draw(const struct fuzz *fuzz, int64_t local,
                 struct assay_campaign_case *drawn, struct assay_result *result)
{
    assay_campaign_draw(&fuzz->options.settings.campaign,
                        assay_shard_number(fuzz->options.shard, local), drawn);
    result->operation = drawn->operation;
    memcpy(result->case_line, drawn->line, sizeof(drawn->line));
    if (!drawn->negative)
        assay_coverage_note(drawn->operation, drawn->classes, result->note);
}

static enum assay_status name_case(void *context, const struct assay_run_case *the_case,
                                   struct assay_result *result,
                                   struct assay_message *message)
{
    struct assay_campaign_case drawn;
    (void)message;
    draw(context, the_case->number, &drawn, result);
    return ASSAY_RAN;
}

/* To be refused is right, to be accepted a failure. */
static void judge_negative(const struct assay_negative *negative,
                           struct assay_result *result)
{
    result->status = assay_negative_try(result->case_line, &result->message);
    result->has_passed = result->status == ASSAY_REFUSED && *result->message.text;
    result->is_decisive = true;
    if (result->status == ASSAY_RAN)
        snprintf(result->warning, sizeof(result->warning), "accepted what is illegal: %s",
                 negative->why);
}

static enum assay_status run_case(void *context, const struct assay_run_case *wanted,
                                  struct assay_result *result,
                                  struct assay_message *message)
{
    struct fuzz *const fuzz = context;
    struct assay_campaign_case drawn;
    *result = (struct assay_result){ .model_max_error_over_bound = -1 };
    draw(fuzz, wanted->number, &drawn, result);
    if (drawn.negative) {
        judge_negative(drawn.negative, result);
        return ASSAY_RAN;
    }
    result->status = check_case(fuzz, drawn.line, &result->message);
    if (result->status == ASSAY_REFUSED &&
        assay_negative_try(drawn.line, message) == ASSAY_RAN)
        result->status = ASSAY_UNSUPPORTED; /* it is the numerics that were named */
    if (result->status != ASSAY_RAN) return ASSAY_RAN;
    const struct assay_run_case the_case = { .number = wanted->number,
                                             .line = drawn.line };
    const enum assay_status status =
        assay_case_runner_run(&fuzz->runner, &the_case, result, message);
    if (status == ASSAY_RAN)
        assay_coverage_note(drawn.operation, drawn.classes, result->note);
    return status;
}

/* --- results ---------------------------------------------------------------------- */

static int64_t next_number(struct fuzz *fuzz)
{
    return assay_shard_number(fuzz->options.shard, fuzz->taken++);
}

static enum assay_status take_result(void *context, const struct assay_result *result,
                                     struct assay_message *message)
{
    struct fuzz *const fuzz = context;
    bool is_new;
    return assay_campaign_take(&fuzz->tally, next_number(fuzz), result, &is_new, message);
}

static enum assay_status take_brief(void *context, const struct assay_brief *brief,
                                    struct assay_message *message)
{
    struct fuzz *const fuzz = context;
    return assay_campaign_take_brief(&fuzz->tally, next_number(fuzz), brief, message);
}

/* --- the run ---------------------------------------------------------------------- */

static enum assay_status run_cases(struct fuzz *fuzz, char *const *job_words)
{
    const struct assay_fuzz_options *const options = &fuzz->options;
    const int64_t cases = options->settings.cases;
    struct assay_run_settings settings;
    if (!assay_run_settings_open(&settings, options->settings.candidate,
                                 &fuzz->judging.plan, &fuzz->limits.backend) ||
        !assay_campaign_settings_add(&settings, &options->settings, options->shard)) {
        assay_run_settings_close(&settings);
        return assay_fail(&fuzz->message, ASSAY_OUT_OF_MEMORY, "no memory for a run");
    }
    const struct assay_run_plan plan = {
        .context = fuzz,
        .find = find_case,
        .run = run_case,
        .name = name_case,
        .take = take_result,
        .take_brief = take_brief,
        .cases = cases ? assay_shard_cases(options->shard, cases) : 0,
        .seconds = options->seconds,
        .findings = &fuzz->tally.findings.count,
        .ran = &fuzz->ran,
        .jobs = options->jobs,
        .job_words = job_words,
        .folder = fuzz->folder,
        .header = { .command = "fuzz",
                    .cases = cases ? assay_shard_cases(options->shard, cases) : 0,
                    .selection = assay_campaign_hash(&options->settings.campaign),
                    .settings = settings.row,
                    .folder_option = "--out" },
    };
    /* Each job has backends of its own. */
    if (plan.jobs > 1) close_backends(fuzz);
    const double began = assay_clock_seconds();
    const enum assay_status status = assay_run(&plan, &fuzz->message);
    fuzz->seconds = assay_clock_seconds() - began;
    assay_run_settings_close(&settings);
    return status;
}

static enum assay_status save(struct fuzz *fuzz)
{
    if (!fuzz->options.save) return ASSAY_RAN;
    const struct assay_fuzz_save saving = { .path = fuzz->options.save,
                                            .plan = &fuzz->judging.plan };
    const enum assay_status status =
        fuzz->options.jobs > 1 ? open_backends(fuzz) : ASSAY_RAN;
    return status == ASSAY_RAN
               ? assay_fuzz_save_all(&saving, &fuzz->tally.findings, &fuzz->message)
               : status;
}

static enum assay_status run(struct fuzz *fuzz, char *const *job_words)
{
    const struct assay_fuzz_options *const options = &fuzz->options;
    enum assay_status status = open_backends(fuzz);
    if (status == ASSAY_RAN) status = check_sample(fuzz);
    if (status == ASSAY_RAN) status = make_repetition(fuzz);
    if (status == ASSAY_RAN)
        status = assay_campaign_tally_open(&fuzz->tally, &options->settings.campaign,
                                           &fuzz->message);
    if (status == ASSAY_RAN)
        status = assay_fuzz_folder(options, &fuzz->folder, &fuzz->message);
    if (status == ASSAY_RAN)
        status = assay_campaign_output_open(&fuzz->output, &options->settings,
                                            options->json, &fuzz->message);
    if (status == ASSAY_RAN) status = assay_shard_acknowledge(&fuzz->message);
    if (status == ASSAY_RAN) status = run_cases(fuzz, job_words);
    if (status == ASSAY_RAN) status = save(fuzz);
    if (status != ASSAY_RAN) return status;
    return assay_campaign_output_end(&fuzz->output, &options->settings, &fuzz->tally,
                                     fuzz->ran, fuzz->seconds, &fuzz->message);
}

int assay_command_fuzz(int argc, char **argv)
{
    struct fuzz fuzz = { .taken = 0 };
    char **const words = assay_job_words("fuzz", argc, argv);
    enum assay_status status = parse(&fuzz, argc, argv);
    if (status == ASSAY_RAN && !words)
        status = assay_fail(&fuzz.message, ASSAY_OUT_OF_MEMORY, "no memory for a run");
    if (status == ASSAY_RAN) status = run(&fuzz, words);
    int code = fuzz.tally.summary.exit_code;
    if (status != ASSAY_RAN) code = assay_complain((int)status, &fuzz.message);
    assay_campaign_output_close(&fuzz.output);
    assay_campaign_tally_close(&fuzz.tally);
    close_backends(&fuzz);
    assay_trial_options_free(&fuzz.judging);
    free(fuzz.folder);
    free(fuzz.repetition);
    assay_job_words_free(words);
    return code;
}

int assay_fuzz_job(int argc, char **argv)
{
    struct fuzz fuzz = { .taken = 0 };
    enum assay_status status = parse(&fuzz, argc, argv);
    if (status == ASSAY_RAN) status = open_backends(&fuzz);
    const int code = status == ASSAY_RAN ? assay_job_serve(run_case, &fuzz)
                                         : assay_complain((int)status, &fuzz.message);
    close_backends(&fuzz);
    assay_trial_options_free(&fuzz.judging);
    return code;
}
