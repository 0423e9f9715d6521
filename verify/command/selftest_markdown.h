/* SPDX-License-Identifier: MIT */
/* The matrix of `assay selftest` as a page: faults, classes, and what found them. */
#ifndef ASSAY_VERIFY_COMMAND_SELFTEST_MARKDOWN_H
#define ASSAY_VERIFY_COMMAND_SELFTEST_MARKDOWN_H

#include "fuzz/selftest/selftest.h"
#include "verify/report/report.h"

/* A report without results of cases: its state is struct assay_selftest_matrix. */
extern const struct assay_report assay_selftest_markdown;

struct assay_selftest_matrix {
    FILE *file;
    const struct assay_selftest *selftest; /* to be set before the end */
    int count, capacity;
    struct assay_fault_outcome *outcome;
};

/* Keeps a copy: ASSAY_RAN or ASSAY_OUT_OF_MEMORY. */
enum assay_status assay_selftest_matrix_add(struct assay_selftest_matrix *matrix,
                                            const struct assay_fault_outcome *outcome);

#endif
