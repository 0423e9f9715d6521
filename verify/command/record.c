/* SPDX-License-Identifier: MIT */
/* `assay record`: writes inputs and outputs of cases as recorded files, one a case. */
#include "verify/backend/backend.h"
#include "verify/check/inputs.h"
#include "verify/command/command.h"
#include "verify/command/limits.h"
#include "verify/command/selection.h"
#include "verify/data/recording.h"
#include "verify/data/safetensors.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { KEY_SUITE = 256, KEY_CANDIDATE, KEY_OUT };

struct record {
    struct assay_selection selection;
    const char *candidate, *folder;
    struct assay_limits limits;
    const struct assay_backend *backend;
    void *state;
    enum assay_status status;
    struct assay_message message;
};

static const struct argp_option options[] = {
    { "suite", KEY_SUITE, "FILE", 0, "cases from a file, one a line; - is stdin", 0 },
    { "candidate", KEY_CANDIDATE, "BACKEND", 0, "who computes the outputs (model)", 0 },
    { "out", KEY_OUT, "DIR", 0, "an existing folder for the files", 0 },
    { 0 },
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct record *const record = state->input;
    if (key == ARGP_KEY_INIT) state->child_inputs[0] = &record->limits;
    if (record->status != ASSAY_RAN) return 0;
    switch (key) {
    case KEY_SUITE:
        record->status =
            assay_select_suite(&record->selection, argument, &record->message);
        break;
    case KEY_CANDIDATE: record->candidate = argument; break;
    case KEY_OUT: record->folder = argument; break;
    case ARGP_KEY_ARG:
        record->status =
            assay_select_case(&record->selection, argument, &record->message);
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static struct assay_safetensors_entry stored(const struct assay_tensor *tensor)
{
    struct assay_safetensors_entry entry = {
        .name = (char *)(uintptr_t)tensor->name,
        .format = tensor->format,
        .rank = tensor->rank,
        .data = tensor->data,
        .bytes = assay_tensor_bytes(tensor),
    };
    assay_recording_stored_shape(tensor, entry.shape);
    return entry;
}

static enum assay_status write_file(const struct record *record, const char *line,
                                    const struct assay_tensors *tensors,
                                    struct assay_message *message)
{
    struct assay_safetensors_entry entries[ASSAY_MAX_TENSORS];
    for (int i = 0; i < tensors->count; i++)
        entries[i] = stored(&tensors->item[i]);
    const char *const candidate = record->candidate ? record->candidate : "model";
    const struct assay_safetensors_metadata metadata[] = {
        { (char *)"cases", (char *)(uintptr_t)line },
        { (char *)"kernel", (char *)(uintptr_t)candidate },
    };
    const size_t length = strcspn(line, " ");
    char path[4096];
    if (snprintf(path, sizeof(path), "%s/%.*s_%016" PRIx64 ".safetensors.zst",
                 record->folder, (int)length, line,
                 assay_text_hash(line)) >= (int)sizeof(path))
        return assay_fail(message, ASSAY_REFUSED, "--out %s is too long a path",
                          record->folder);
    const enum assay_status status =
        assay_safetensors_write(path, entries, tensors->count, metadata, 2, message);
    if (status == ASSAY_RAN) puts(path);
    return status;
}

static enum assay_status record_case(void *context, const struct assay_case *the_case,
                                     struct assay_recording *recording, int index,
                                     struct assay_message *message)
{
    (void)recording, (void)index;
    struct record *const record = context;
    union assay_problem_storage problem;
    struct assay_tensors tensors;
    struct assay_buffers buffers = { 0 };
    char line[ASSAY_MAX_CASE_LINE];

    enum assay_status status =
        assay_inputs_open(the_case, NULL, 0, &problem, &tensors, &buffers, message);
    const struct assay_run_call call = { .the_case = the_case,
                                         .problem = &problem,
                                         .tensors = &tensors };
    if (status == ASSAY_RAN) status = record->backend->run(record->state, &call, message);
    assay_case_format(the_case, line, sizeof(line));
    if (status == ASSAY_RAN) status = write_file(record, line, &tensors, message);
    assay_buffers_close(&buffers);
    return status;
}

static enum assay_status run(struct record *record)
{
    struct stat about;
    if (!record->folder)
        return assay_fail(&record->message, ASSAY_REFUSED,
                          "record needs a folder for the files; give --out DIR");
    if (stat(record->folder, &about) != 0 || !S_ISDIR(about.st_mode))
        return assay_fail(&record->message, ASSAY_REFUSED,
                          "--out %s is no folder; name an existing one", record->folder);
    const enum assay_status status = assay_backend_open(
        record->candidate ? record->candidate : "model", &record->limits.backend,
        &record->backend, &record->state, &record->message);
    if (status != ASSAY_RAN) {
        record->backend = NULL;
        return status;
    }
    return assay_selection_walk(&record->selection, record_case, record,
                                &record->message);
}

int assay_command_record(int argc, char **argv)
{
    const struct argp_child children[] = { { assay_limits_argp(), 0, NULL, 0 }, { 0 } };
    const struct argp argp = {
        .options = options,
        .children = children,
        .parser = parse_option,
        .args_doc = "[CASE]...",
        .doc = "Runs cases and keeps their inputs and outputs: one file a case, named "
               "after operation and case line. The names are printed.",
    };
    struct record record = { .limits = assay_limits_default(), .status = ASSAY_RAN };
    argp_parse(&argp, argc, argv, 0, NULL, &record);
    enum assay_status status = record.status;
    if (status == ASSAY_RAN && record.limits.status != ASSAY_RAN) {
        status = record.limits.status;
        record.message = record.limits.message;
    }
    if (status == ASSAY_RAN) status = run(&record);
    int code = record.selection.count ? ASSAY_EXIT_PASSED : ASSAY_EXIT_NOTHING_SELECTED;
    if (status != ASSAY_RAN) code = assay_complain((int)status, &record.message);
    if (record.backend) record.backend->close(record.state);
    assay_selection_close(&record.selection);
    return code;
}
