/* SPDX-License-Identifier: MIT */
/* A rendering of results; one file a format. */
#ifndef ASSAY_VERIFY_REPORT_REPORT_H
#define ASSAY_VERIFY_REPORT_REPORT_H

#include <stdio.h>

#include "verify/check/result.h"

struct assay_run_header {
    const char *command, *candidate, *require;
};

struct assay_report {
    const char *name, *summary; /* also the option --NAME FILE; "text" goes to stdout */
    size_t state_bytes;
    enum assay_status (*begin)(void *state, FILE *, const struct assay_run_header *);
    enum assay_status (*result)(void *state, const struct assay_result *);
    enum assay_status (*end)(void *state, const struct assay_summary *);
};

/* All reports, closed by NULL. */
extern const struct assay_report *const assay_reports[];

const struct assay_report *assay_report_find(const char *name);

#endif
