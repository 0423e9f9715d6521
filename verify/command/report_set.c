/* SPDX-License-Identifier: MIT */
#include "verify/command/report_set.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { KEY_FIRST_REPORT = 1024 };

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct assay_report_set *const set = state->input;
    const int row = key - KEY_FIRST_REPORT;
    if (row < 0 || row >= ASSAY_MAX_REPORTS) return ARGP_ERR_UNKNOWN;
    set->path[row] = argument;
    return 0;
}

const struct argp *assay_report_set_argp(void)
{
    static struct argp_option options[ASSAY_MAX_REPORTS + 1];
    static const struct argp argp = { .options = options, .parser = parse_option };
    int count = 0;
    for (int row = 0; assay_reports[row]; row++) {
        assert(row < ASSAY_MAX_REPORTS);
        if (assay_reports[row] == &assay_report_text) continue;
        options[count++] = (struct argp_option){
            .name = assay_reports[row]->name,
            .key = KEY_FIRST_REPORT + row,
            .arg = "FILE",
            .doc = assay_reports[row]->summary,
        };
    }
    return &argp;
}

static enum assay_status check_targets(const struct assay_report_set *set,
                                       struct assay_message *message)
{
    for (int row = 0; assay_reports[row]; row++)
        for (int other = 0; set->path[row] && other < row; other++)
            if (set->path[other] && strcmp(set->path[row], set->path[other]) == 0)
                return assay_fail(message, ASSAY_REFUSED,
                                  "--%s and --%s both write to %s; name two files",
                                  assay_reports[other]->name, assay_reports[row]->name,
                                  set->path[row]);
    return ASSAY_RAN;
}

static bool is_stdout_taken(const struct assay_report_set *set)
{
    for (int row = 0; assay_reports[row]; row++)
        if (set->path[row] && strcmp(set->path[row], "-") == 0) return true;
    return false;
}

enum assay_status assay_report_set_open(struct assay_report_set *set,
                                        const struct assay_run_header *header,
                                        struct assay_message *message)
{
    enum assay_status status = check_targets(set, message);
    const bool has_text = !is_stdout_taken(set);
    for (int row = 0; assay_reports[row] && status == ASSAY_RAN; row++) {
        const bool is_text = assay_reports[row] == &assay_report_text;
        const char *const path = is_text && has_text ? "-" : set->path[row];
        if (!path) continue;
        status = assay_report_file_open(&set->file[set->count++], assay_reports[row],
                                        path, header, message);
    }
    return status;
}

enum assay_status assay_report_set_result(struct assay_report_set *set,
                                          const struct assay_result *result,
                                          struct assay_message *message)
{
    for (int i = 0; i < set->count; i++) {
        const struct assay_report_file *const file = &set->file[i];
        if (file->report->result(file->state, result) != ASSAY_RAN)
            return assay_fail(message, ASSAY_FAILED, "report %s: writing failed: %s",
                              file->path, strerror(errno));
    }
    return ASSAY_RAN;
}

enum assay_status assay_report_set_end(struct assay_report_set *set,
                                       const struct assay_summary *summary,
                                       struct assay_message *message)
{
    enum assay_status status = ASSAY_RAN;
    for (int i = 0; i < set->count && status == ASSAY_RAN; i++)
        status = assay_report_file_end(&set->file[i], summary, message);
    return status;
}

void assay_report_set_close(struct assay_report_set *set)
{
    for (int i = 0; i < set->count; i++)
        assay_report_file_close(&set->file[i]);
    set->count = 0;
}
