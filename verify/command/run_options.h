/* SPDX-License-Identifier: MIT */
/* The options that say how many processes run the cases of a run, and where its journal
 * is: --jobs and --resume. */
#ifndef ASSAY_VERIFY_COMMAND_RUN_OPTIONS_H
#define ASSAY_VERIFY_COMMAND_RUN_OPTIONS_H

#include "verify/backend/backend.h"
#include "verify/check/trial.h"
#include "verify/run/run.h"

#include <argp.h>

struct assay_run_options {
    int jobs;
    const char *folder;       /* NULL: no journal */
    enum assay_status status; /* other than ASSAY_RAN: message says what was wrong */
    struct assay_message message;
};

/* Before any option is read. */
struct assay_run_options assay_run_options_default(void);

/* The options, for the children of a command's parser; their input is the struct. */
const struct argp *assay_run_options_argp(void);

/* What --jobs says. */
enum assay_status assay_run_jobs_parse(const char *text, int *jobs,
                                       struct assay_message *message);

/* The words that start a job with the same options: "assay job COMMAND ARGUMENT...",
 * copied, since parsing may change the given ones. NULL: no memory. */
char **assay_job_words(const char *command, int argc, char *const *argv);
void assay_job_words_free(char **words);

/* Options that change results, as a journal keeps them. */
enum { ASSAY_MAX_RUN_SETTINGS = 24 };
struct assay_run_settings {
    struct assay_journal_setting row[ASSAY_MAX_RUN_SETTINGS + 1];
    char *text[ASSAY_MAX_RUN_SETTINGS]; /* those of the values that are its own */
};
bool assay_run_settings_open(struct assay_run_settings *settings, const char *candidate,
                             const struct assay_trial_plan *plan,
                             const struct assay_backend_limits *limits);
/* One more, of a command's own. @name is borrowed. False: no memory. */
__attribute__((format(printf, 3, 4))) bool
assay_run_settings_add(struct assay_run_settings *settings, const char *name,
                       const char *format, ...);
void assay_run_settings_close(struct assay_run_settings *settings);

#endif
