/* SPDX-License-Identifier: MIT */
/* Reports on their way to files: written beside the target and renamed at the end, so
 * that a file is there whole or not at all. */
#ifndef ASSAY_VERIFY_COMMAND_REPORT_FILE_H
#define ASSAY_VERIFY_COMMAND_REPORT_FILE_H

#include "verify/report/report.h"

struct assay_report_file {
    const struct assay_report *report;
    const char *path; /* "-": stdout */
    char *temporary;  /* NULL for stdout */
    FILE *stream;
    void *state;
};

/* Opens the target and begins the report; ASSAY_REFUSED when it can't be written. */
enum assay_status assay_report_file_open(struct assay_report_file *file,
                                         const struct assay_report *report,
                                         const char *path,
                                         const struct assay_run_header *header,
                                         struct assay_message *message);

/* Ends the report and gives the file its name. */
enum assay_status assay_report_file_end(struct assay_report_file *file,
                                        const struct assay_summary *summary,
                                        struct assay_message *message);

/* Releases everything; a report that was not ended leaves nothing behind. */
void assay_report_file_close(struct assay_report_file *file);

#endif
