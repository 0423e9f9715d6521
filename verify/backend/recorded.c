/* SPDX-License-Identifier: MIT */
/* Backend "recorded:FILE": the outputs that a file keeps for the same case with the same
 * inputs. */
#include "verify/backend/backend.h"
#include "verify/data/buffers.h"
#include "verify/data/recording.h"

#include <stdlib.h>
#include <string.h>

extern const struct assay_backend assay_backend_recorded;

struct recorded {
    char *path;
    struct assay_recording recording;
};

static void close_recorded(void *state)
{
    struct recorded *const recorded = state;
    assay_recording_close(&recorded->recording);
    free(recorded->path);
    free(recorded);
}

static enum assay_status open_recorded(const char *argument, void **state,
                                       struct assay_message *message)
{
    if (!argument || !*argument)
        return assay_fail(message, ASSAY_REFUSED,
                          "backend recorded needs a file; write recorded:FILE");
    struct recorded *const recorded = calloc(1, sizeof(*recorded));
    char *const path = strdup(argument);
    enum assay_status status =
        recorded && path
            ? assay_recording_open(&recorded->recording, path, message)
            : assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a backend");
    if (status != ASSAY_RAN) {
        free(path);
        free(recorded);
        return status;
    }
    recorded->path = path;
    *state = recorded;
    return ASSAY_RAN;
}

static enum assay_status claim(void *state, const struct assay_run_call *call,
                               struct assay_backend_claim *claim,
                               struct assay_message *message)
{
    (void)state, (void)message;
    claim->has_numerics = true;
    strcpy(claim->numerics, call->the_case->numerics);
    return ASSAY_RAN;
}

/* Points @kept at case @index of the file if it is the call's case with the call's
 * inputs; one file may hold several cases of the same line. */
static enum assay_status bind_if_same(struct recorded *recorded, int index,
                                      const struct assay_run_call *call,
                                      struct assay_tensors *kept, bool *is_same,
                                      struct assay_message *message)
{
    char wanted[ASSAY_MAX_CASE_LINE], line[ASSAY_MAX_CASE_LINE];
    assay_case_format(call->the_case, wanted, sizeof(wanted));
    assay_case_format(&recorded->recording.cases[index], line, sizeof(line));
    *is_same = false;
    if (strcmp(line, wanted) != 0) return ASSAY_RAN;
    *kept = *call->tensors;
    for (int i = 0; i < kept->count; i++)
        kept->item[i].data = NULL;
    const enum assay_status status =
        assay_recording_bind(&recorded->recording, index, kept, message);
    if (status == ASSAY_RAN)
        *is_same = assay_inputs_hash(kept) == assay_inputs_hash(call->tensors);
    return status;
}

static enum assay_status run(void *state, const struct assay_run_call *call,
                             struct assay_message *message)
{
    struct recorded *const recorded = state;
    for (int index = 0; index < recorded->recording.count; index++) {
        struct assay_tensors kept;
        bool is_same;
        const enum assay_status status =
            bind_if_same(recorded, index, call, &kept, &is_same, message);
        if (status != ASSAY_RAN) return status;
        for (int i = 0; is_same && i < kept.count; i++)
            if (kept.item[i].is_output)
                memcpy(call->tensors->item[i].data, kept.item[i].data,
                       (size_t)assay_tensor_bytes(&kept.item[i]));
        if (is_same) return ASSAY_RAN;
    }
    return assay_fail(message, ASSAY_REFUSED,
                      "%s holds no case with this line and these inputs; give the file "
                      "with --recorded to use its own",
                      recorded->path);
}

const struct assay_backend assay_backend_recorded = {
    .scheme = "recorded",
    .argument = "FILE",
    .summary = "outputs kept from a run on some GPU",
    .is_trusted = true,
    .is_recording = true,
    .open = open_recorded,
    .claim = claim,
    .run = run,
    .close = close_recorded,
};
