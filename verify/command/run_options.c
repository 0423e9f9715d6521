/* SPDX-License-Identifier: MIT */
#include "verify/command/run_options.h"

#include "verify/case/number.h"
#include "verify/case/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_JOBS = 1536, KEY_RESUME };

static const struct argp_option options[] = {
    { "jobs", KEY_JOBS, "N", 0,
      "so many cases at a time, each in a process that has a worker of its own, on one "
      "device if the candidate uses one (1)",
      0 },
    { "resume", KEY_RESUME, "DIR", 0,
      "keep a journal in DIR, or go on where the journal there ends", 0 },
    { 0 },
};

struct assay_run_options assay_run_options_default(void)
{
    return (struct assay_run_options){ .jobs = 1, .status = ASSAY_RAN };
}

enum assay_status assay_run_jobs_parse(const char *text, int *jobs,
                                       struct assay_message *message)
{
    uint64_t value;
    if (assay_number_unsigned(text, &value) != ASSAY_NUMBER_VALID || value < 1 ||
        value > ASSAY_MAX_JOBS)
        return assay_fail(message, ASSAY_REFUSED,
                          "--jobs %s is no number of processes; use 1 to %d",
                          assay_excerpt(text).text, ASSAY_MAX_JOBS);
    *jobs = (int)value;
    return ASSAY_RAN;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct assay_run_options *const run = state->input;
    if (key == KEY_RESUME)
        run->folder = argument;
    else if (key != KEY_JOBS)
        return ARGP_ERR_UNKNOWN;
    else if (run->status == ASSAY_RAN)
        run->status = assay_run_jobs_parse(argument, &run->jobs, &run->message);
    return 0;
}

const struct argp *assay_run_options_argp(void)
{
    static const struct argp argp = { .options = options, .parser = parse_option };
    return &argp;
}

void assay_job_words_free(char **words)
{
    for (char **word = words; words && *word; word++)
        free(*word);
    free(words);
}

char **assay_job_words(const char *command, int argc, char *const *argv)
{
    const char *const first[] = { "assay", "job", command };
    char **const words = calloc((size_t)argc + 3, sizeof(*words));
    bool is_whole = words != NULL;
    for (int i = 0; is_whole && i < argc + 2; i++) {
        words[i] = strdup(i < 3 ? first[i] : argv[i - 2]);
        is_whole = words[i] != NULL;
    }
    if (is_whole) return words;
    assay_job_words_free(words);
    return NULL;
}

bool assay_run_settings_add(struct assay_run_settings *settings, const char *name,
                            const char *format, ...)
{
    int row = 0;
    while (settings->row[row].name)
        row++;
    assert(row < ASSAY_MAX_RUN_SETTINGS);
    va_list arguments;
    va_start(arguments, format);
    const bool is_made = vasprintf(&settings->text[row], format, arguments) >= 0;
    va_end(arguments);
    if (!is_made) settings->text[row] = NULL;
    settings->row[row] = (struct assay_journal_setting){ name, settings->text[row] };
    return is_made;
}

/* Names with commas between. */
static bool add_list(struct assay_run_settings *settings, const char *name,
                     const char *const *words, int count)
{
    char text[1024];
    struct assay_text list = assay_text_open(text, sizeof(text));
    for (int i = 0; i < count; i++)
        assay_text_add(&list, "%s%s", i ? "," : "", words[i]);
    return assay_run_settings_add(settings, name, "%s", text);
}

static bool add_judging(struct assay_run_settings *settings,
                        const struct assay_trial_plan *plan)
{
    const char *checks[32];
    int count = 0;
    while (plan->checks[count] && count < 32) {
        checks[count] = plan->checks[count]->name;
        count++;
    }
    const char *const numerics = plan->model_numerics ? plan->model_numerics : "";
    const char *const backend = plan->reference_text ? plan->reference_text : "";
    const char *const required =
        plan->require == ASSAY_NOT_JUDGED ? "" : assay_verdicts[plan->require].name;
    return assay_run_settings_add(settings, "--reference", "%s%s%s%s%s%s",
                                  plan->uses_oracle ? "oracle " : "",
                                  plan->uses_model ? "model" : "", *numerics ? ":" : "",
                                  numerics, *backend ? " " : "", backend) &&
           add_list(settings, "--check", checks, count) &&
           assay_run_settings_add(settings, "--repeats", "%d", plan->repeats) &&
           assay_run_settings_add(settings, "--require", "%s", required) &&
           add_list(settings, "--criteria", plan->criteria.name, plan->criteria.count);
}

bool assay_run_settings_open(struct assay_run_settings *settings, const char *candidate,
                             const struct assay_trial_plan *plan,
                             const struct assay_backend_limits *limits)
{
    *settings = (struct assay_run_settings){ .text = { NULL } };
    return assay_run_settings_add(settings, "--candidate", "%s",
                                  candidate ? candidate : "") &&
           add_judging(settings, plan) &&
           assay_run_settings_add(settings, "--timeout", "%.17g", limits->seconds) &&
           assay_run_settings_add(settings, "--warmup-timeout", "%.17g",
                                  limits->warmup_seconds) &&
           assay_run_settings_add(settings, "--memory-limit", "%" PRId64,
                                  limits->memory_bytes) &&
           assay_run_settings_add(settings, "--fresh", "%s",
                                  limits->is_fresh ? "yes" : "no");
}

void assay_run_settings_close(struct assay_run_settings *settings)
{
    for (size_t i = 0; i < sizeof(settings->text) / sizeof(*settings->text); i++)
        free(settings->text[i]);
    *settings = (struct assay_run_settings){ .text = { NULL } };
}
