/* SPDX-License-Identifier: MIT */
/* The reports a command line asks for: an option --NAME FILE for each row of the table of
 * reports but `text`, which has standard output unless another one's FILE is "-". */
#ifndef ASSAY_VERIFY_COMMAND_REPORT_SET_H
#define ASSAY_VERIFY_COMMAND_REPORT_SET_H

#include "verify/command/report_file.h"

#include <argp.h>

enum { ASSAY_MAX_REPORTS = 16 };

struct assay_report_set {
    const char *path[ASSAY_MAX_REPORTS]; /* by row of assay_reports; NULL: not wanted */
    struct assay_report_file file[ASSAY_MAX_REPORTS];
    int count; /* of open files */
};

/* The options, for the children of a command's parser; their input is the set. */
const struct argp *assay_report_set_argp(void);

/* Opens all of them; refuses two reports with one target. On any failure the set may be
 * closed. */
enum assay_status assay_report_set_open(struct assay_report_set *set,
                                        const struct assay_run_header *header,
                                        struct assay_message *message);

enum assay_status assay_report_set_result(struct assay_report_set *set,
                                          const struct assay_result *result,
                                          struct assay_message *message);

/* Ends all of them: only then the files are there under their names. */
enum assay_status assay_report_set_end(struct assay_report_set *set,
                                       const struct assay_summary *summary,
                                       struct assay_message *message);

void assay_report_set_close(struct assay_report_set *set);

#endif
