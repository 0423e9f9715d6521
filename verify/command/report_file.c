/* SPDX-License-Identifier: MIT */
#include "verify/command/report_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum assay_status open_beside(struct assay_report_file *file,
                                     struct assay_message *message)
{
    if (asprintf(&file->temporary, "%s.XXXXXX", file->path) < 0) {
        file->temporary = NULL;
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a report");
    }
    const int descriptor = mkstemp(file->temporary);
    if (descriptor < 0) {
        const int error = errno;
        free(file->temporary);
        file->temporary = NULL;
        return assay_fail(message, ASSAY_REFUSED,
                          "report %s: can't be written: %s; name a file in a writable "
                          "folder",
                          file->path, strerror(error));
    }
    file->stream = fdopen(descriptor, "w");
    if (file->stream) return ASSAY_RAN;
    close(descriptor);
    return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a report");
}

static enum assay_status failed(const struct assay_report_file *file,
                                struct assay_message *message)
{
    return assay_fail(message, ASSAY_FAILED, "report %s: writing failed: %s", file->path,
                      strerror(errno));
}

enum assay_status assay_report_file_open(struct assay_report_file *file,
                                         const struct assay_report *report,
                                         const char *path,
                                         const struct assay_run_header *header,
                                         struct assay_message *message)
{
    *file = (struct assay_report_file){ .report = report, .path = path };
    file->state = calloc(1, report->state_bytes + 1);
    if (!file->state)
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a report");
    if (strcmp(path, "-") == 0) {
        file->stream = stdout;
    } else {
        const enum assay_status status = open_beside(file, message);
        if (status != ASSAY_RAN) return status;
    }
    return report->begin(file->state, file->stream, header) == ASSAY_RAN
               ? ASSAY_RAN
               : failed(file, message);
}

enum assay_status assay_report_file_end(struct assay_report_file *file,
                                        const struct assay_summary *summary,
                                        struct assay_message *message)
{
    if (file->report->end(file->state, summary) != ASSAY_RAN || fflush(file->stream) != 0)
        return failed(file, message);
    if (!file->temporary) return ASSAY_RAN;
    const int error = fclose(file->stream);
    file->stream = NULL;
    if (error || rename(file->temporary, file->path) != 0) return failed(file, message);
    free(file->temporary);
    file->temporary = NULL;
    return ASSAY_RAN;
}

void assay_report_file_close(struct assay_report_file *file)
{
    if (file->temporary) {
        if (file->stream) fclose(file->stream);
        unlink(file->temporary);
        free(file->temporary);
    }
    if (file->state && file->report->close) file->report->close(file->state);
    free(file->state);
    *file = (struct assay_report_file){ 0 };
}
