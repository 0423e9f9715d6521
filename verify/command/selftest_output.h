/* SPDX-License-Identifier: MIT */
/* What `assay selftest` found, for people and for machines. */
#ifndef ASSAY_VERIFY_COMMAND_SELFTEST_OUTPUT_H
#define ASSAY_VERIFY_COMMAND_SELFTEST_OUTPUT_H

#include "fuzz/fault/class.h"
#include "fuzz/selftest/selftest.h"
#include "verify/command/report_file.h"

/* One fault a line: name, class, what found it and after how many cases. As JSON
 * {"type":"fault","fault","class","class_name","report","kind","operation","meaning",
 * "caught","remark","cases","case","seconds","checks":{NAME:{"chances","cases"}},
 * "criteria"}, with "cases" of a check absent where it found nothing, and a check where
 * it never judged; at the end {"type":"selftest"} with the totals, "classes" and
 * "columns", checks and criteria, among them. What does not apply is absent. */
struct assay_selftest_output {
    bool has_text; /* to stdout */
    struct assay_report_file json, markdown;
    int faults, caught, skipped;
    int kernels, without_model; /* function and execution faults; those that a check
                                   without the model found */
    int judged[ASSAY_MAX_COLUMNS], found[ASSAY_MAX_COLUMNS]; /* faults, by column */
    int class_faults[ASSAY_FAULT_CLASSES], class_caught[ASSAY_FAULT_CLASSES];
};

/* Paths: NULL for none, "-" to replace the text. */
enum assay_status assay_selftest_output_open(struct assay_selftest_output *output,
                                             const char *json_path,
                                             const char *markdown_path,
                                             struct assay_message *message);
enum assay_status assay_selftest_output_add(struct assay_selftest_output *output,
                                            const struct assay_selftest *selftest,
                                            const struct assay_fault_outcome *outcome,
                                            struct assay_message *message);
enum assay_status assay_selftest_output_end(struct assay_selftest_output *output,
                                            const struct assay_selftest *selftest,
                                            int exit_code, struct assay_message *message);
void assay_selftest_output_close(struct assay_selftest_output *output);

#endif
