/* SPDX-License-Identifier: MIT */
/* The figures of a run. */
#ifndef ASSAY_VERIFY_RUN_TALLY_H
#define ASSAY_VERIFY_RUN_TALLY_H

#include "verify/report/brief.h"

/* Adds a result; the exit code is left alone. */
void assay_summary_add(struct assay_summary *summary, const struct assay_result *result);
void assay_summary_add_brief(struct assay_summary *summary,
                             const struct assay_brief *brief);

#endif
