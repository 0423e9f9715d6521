/* SPDX-License-Identifier: MIT */
/* The options that say how a case is judged: --reference, --check, --repeats, --require,
 * --criteria. */
#ifndef ASSAY_VERIFY_COMMAND_TRIAL_OPTIONS_H
#define ASSAY_VERIFY_COMMAND_TRIAL_OPTIONS_H

#include "verify/check/trial.h"

#include <argp.h>

enum { ASSAY_MAX_CHECKS = 16 };

struct assay_trial_options {
    /* All but the candidate; points into this struct, which must not be copied. */
    struct assay_trial_plan plan;
    const struct assay_check *checks[ASSAY_MAX_CHECKS + 1];
    /* As they were given, for lines that repeat a case; NULL: not */
    char *reference_list, *check_list;
    enum assay_status status; /* other than ASSAY_RAN: message says what was wrong */
    struct assay_message message;
};

/* Before any option is read: model and oracle, all checks that apply, those that run the
 * candidate again only where it is somebody's code. */
void assay_trial_options_init(struct assay_trial_options *options);

/* The options, for the children of a command's parser; their input is the struct. */
const struct argp *assay_trial_options_argp(void);

/* Opens the backend that --reference names, if any, once all options are read. To be
 * closed whatever the status; closing leaves the rest as it is. */
enum assay_status assay_trial_options_open(struct assay_trial_options *options,
                                           const struct assay_backend_limits *limits,
                                           struct assay_message *message);
void assay_trial_options_close(struct assay_trial_options *options);

void assay_trial_options_free(struct assay_trial_options *options);

#endif
