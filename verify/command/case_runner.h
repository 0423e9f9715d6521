/* SPDX-License-Identifier: MIT */
/* Runs cases on the candidate that a command line asks for. */
#ifndef ASSAY_VERIFY_COMMAND_CASE_RUNNER_H
#define ASSAY_VERIFY_COMMAND_CASE_RUNNER_H

#include "verify/check/trial.h"
#include "verify/run/run.h"

struct assay_case_runner {
    struct assay_trial_plan *plan; /* all but the candidate */
    const char *candidate;         /* NULL: model, or a recorded case's own file */
    const struct assay_backend_limits *limits;
    /* Its own: */
    char *candidate_path; /* the recorded file whose outputs are plan's candidate */
    char *recorded_path;  /* the recorded file that is open */
    struct assay_recording recording;
};

/* Opens the candidate for cases that are not recorded; other cases change it where they
 * have to. */
enum assay_status assay_case_runner_open(struct assay_case_runner *runner,
                                         struct assay_message *message);

/* Refuses numerics named for candidate or reference that the case can't have. */
enum assay_status assay_case_runner_check(const struct assay_case_runner *runner,
                                          const struct assay_case *the_case,
                                          struct assay_message *message);

/* An assay_run_function; @context is the runner. */
enum assay_status assay_case_runner_run(void *runner, const struct assay_run_case *,
                                        struct assay_result *, struct assay_message *);

/* Fills in a result's names of the case, as for assay_run_plan. */
enum assay_status assay_case_runner_name(struct assay_case_runner *runner,
                                         const struct assay_run_case *,
                                         struct assay_result *, struct assay_message *);

/* Ends the candidate; it may be opened again. */
void assay_case_runner_close(struct assay_case_runner *runner);

#endif
