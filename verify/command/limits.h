/* SPDX-License-Identifier: MIT */
/* The options --timeout, --warmup-timeout, --memory-limit and --fresh: what somebody's
 * code may take for a case, and whether it shares a process with the next one. */
#ifndef ASSAY_VERIFY_COMMAND_LIMITS_H
#define ASSAY_VERIFY_COMMAND_LIMITS_H

#include "verify/backend/backend.h"

#include <argp.h>

struct assay_limits {
    struct assay_backend_limits backend;
    enum assay_status status; /* other than ASSAY_RAN: message says what was wrong */
    struct assay_message message;
};

/* Before any option is read. */
struct assay_limits assay_limits_default(void);

/* The options, for the children of a command's parser; their input is the limits. */
const struct argp *assay_limits_argp(void);

#endif
