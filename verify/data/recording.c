/* SPDX-License-Identifier: MIT */
/* Recorded files: safetensors content understood as cases. */
#include "verify/data/recording.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STORED_NAME_SIZE = 64, SHAPE_TEXT_SIZE = 128, COPY_ALIGNMENT = 64 };

static enum assay_status no_memory(const struct assay_recording *recording,
                                   struct assay_message *message)
{
    return assay_fail(message, ASSAY_OUT_OF_MEMORY, "%s: no memory for its cases",
                      assay_shown_path(recording->path));
}

/* Lines of @text; a final newline ends the last one. */
static int64_t count_lines(const char *text)
{
    int64_t lines = 0;
    for (; *text; lines++)
        text += strcspn(text, "\n") + (text[strcspn(text, "\n")] == '\n');
    return lines;
}

static enum assay_status parse_line(struct assay_recording *recording, const char *start,
                                    size_t length, struct assay_message *message)
{
    char line[ASSAY_MAX_CASE_LINE];
    if (length >= sizeof line)
        return assay_fail(message, ASSAY_REFUSED,
                          "%s: case %d is a line of %zu bytes: at most %d are possible",
                          assay_shown_path(recording->path), recording->count, length,
                          ASSAY_MAX_CASE_LINE - 1);
    memcpy(line, start, length);
    line[length] = '\0';
    struct assay_message reason;
    const enum assay_status status =
        assay_case_parse(line, &recording->cases[recording->count], &reason);
    if (status != ASSAY_RAN)
        return assay_fail(message, status, "%s: case %d: %s",
                          assay_shown_path(recording->path), recording->count,
                          reason.text);
    recording->count++;
    return ASSAY_RAN;
}

static enum assay_status parse_cases(struct assay_recording *recording,
                                     struct assay_message *message)
{
    const char *text = assay_safetensors_metadata(&recording->file, "cases");
    const int64_t lines = text ? count_lines(text) : 0;
    if (lines == 0)
        return assay_fail(
            message, ASSAY_REFUSED,
            "%s: has no cases: a recorded file must have metadata \"cases\" "
            "with one case line each",
            assay_shown_path(recording->path));
    if (lines > ASSAY_MAX_RECORDED_CASES)
        return assay_fail(
            message, ASSAY_REFUSED, "%s: has %" PRId64 " cases: at most %d are possible",
            assay_shown_path(recording->path), lines, ASSAY_MAX_RECORDED_CASES);
    recording->cases = calloc((size_t)lines, sizeof *recording->cases);
    if (!recording->cases) return no_memory(recording, message);
    enum assay_status status = ASSAY_RAN;
    while (*text && status == ASSAY_RAN) {
        const size_t length = strcspn(text, "\n");
        status = parse_line(recording, text, length, message);
        text += length + (text[length] == '\n');
    }
    return status;
}

/* Whether @name is plain or "N/plain" with N the canonical number of a case. */
static bool belongs_to_a_case(const char *name, int count)
{
    const char *const slash = strchr(name, '/');
    if (!slash) return *name != '\0';
    char *end;
    const long number = strtol(name, &end, 10);
    if (slash[1] == '\0' || strchr(slash + 1, '/')) return false;
    char canonical[16];
    const int length = snprintf(canonical, sizeof canonical, "%ld", number);
    return end == slash && number >= 0 && number < count && end - name == length &&
           memcmp(name, canonical, (size_t)length) == 0;
}

static enum assay_status check_names(const struct assay_recording *recording,
                                     struct assay_message *message)
{
    for (int i = 0; i < recording->file.count; i++) {
        const char *const name = recording->file.entry[i].name;
        if (!belongs_to_a_case(name, recording->count))
            return assay_fail(message, ASSAY_REFUSED,
                              "%s: tensor '%.80s' belongs to no case: it must be NAME or "
                              "N/NAME with N from 0 to %d",
                              assay_shown_path(recording->path), name,
                              recording->count - 1);
    }
    return ASSAY_RAN;
}

static bool is_aligned(const struct assay_safetensors *file)
{
    for (int i = 0; i < file->count; i++)
        if ((uintptr_t)file->entry[i].data % assay_format_bytes(file->entry[i].format))
            return false;
    return true;
}

static size_t copy_bytes(const struct assay_safetensors_entry *entry)
{
    return ((size_t)entry->bytes + COPY_ALIGNMENT - 1) / COPY_ALIGNMENT * COPY_ALIGNMENT;
}

static enum assay_status align_data(struct assay_recording *recording,
                                    struct assay_message *message)
{
    struct assay_safetensors *const file = &recording->file;
    if (is_aligned(file)) return ASSAY_RAN;
    size_t bytes = 0;
    for (int i = 0; i < file->count; i++)
        bytes += copy_bytes(&file->entry[i]);
    unsigned char *const memory = aligned_alloc(COPY_ALIGNMENT, bytes + COPY_ALIGNMENT);
    if (!memory) return no_memory(recording, message);
    unsigned char *to = memory;
    for (int i = 0; i < file->count; i++) {
        memcpy(to, file->entry[i].data, (size_t)file->entry[i].bytes);
        file->entry[i].data = to;
        to += copy_bytes(&file->entry[i]);
    }
    free(file->memory);
    file->memory = memory;
    file->memory_bytes = bytes;
    return ASSAY_RAN;
}

enum assay_status assay_recording_open(struct assay_recording *recording,
                                       const char *path, struct assay_message *message)
{
    *recording = (struct assay_recording){ .path = path };
    enum assay_status status = assay_safetensors_read(path, &recording->file, message);
    if (status == ASSAY_RAN) status = parse_cases(recording, message);
    if (status == ASSAY_RAN) status = check_names(recording, message);
    if (status == ASSAY_RAN) status = align_data(recording, message);
    if (status != ASSAY_RAN) assay_recording_close(recording);
    return status;
}

void assay_recording_stored_shape(const struct assay_tensor *tensor,
                                  int64_t shape[ASSAY_MAX_RANK])
{
    for (int i = 0; i < tensor->rank; i++) {
        const bool is_padded_axis = i > 0 && tensor->stride[i] > 0;
        shape[i] =
            is_padded_axis ? tensor->stride[i - 1] / tensor->stride[i] : tensor->shape[i];
        assert(!is_padded_axis || tensor->stride[i - 1] % tensor->stride[i] == 0);
    }
}

static void shape_text(char *text, int rank, const int64_t *shape)
{
    size_t used = (size_t)snprintf(text, SHAPE_TEXT_SIZE, "[");
    for (int i = 0; i < rank; i++)
        used += (size_t)snprintf(text + used, SHAPE_TEXT_SIZE - used, "%s%" PRId64,
                                 i ? ", " : "", shape[i]);
    snprintf(text + used, SHAPE_TEXT_SIZE - used, "]");
}

static const struct assay_safetensors_entry *
find_entry(const struct assay_recording *recording, int index, const char *name)
{
    char own[STORED_NAME_SIZE];
    snprintf(own, sizeof own, "%d/%s", index, name);
    const struct assay_safetensors_entry *const entry =
        assay_safetensors_find(&recording->file, own);
    return entry ? entry : assay_safetensors_find(&recording->file, name);
}

static enum assay_status bind_tensor(const struct assay_recording *recording, int index,
                                     struct assay_tensor *tensor,
                                     struct assay_message *message)
{
    const struct assay_safetensors_entry *const entry =
        find_entry(recording, index, tensor->name);
    if (!entry)
        return assay_fail(
            message, ASSAY_REFUSED,
            "%s: case %d has no tensor %s: it must be there as %s or '%d/%s'%s",
            assay_shown_path(recording->path), index, tensor->name, tensor->name, index,
            tensor->name,
            tensor->is_output ? "; inputs alone are enough with --candidate" : "");

    int64_t shape[ASSAY_MAX_RANK];
    assay_recording_stored_shape(tensor, shape);
    const char *const dtype = assay_safetensors_dtype(tensor->format);
    const char *const stored_dtype = assay_safetensors_dtype(entry->format);
    if (strcmp(dtype, stored_dtype) == 0 && entry->rank == tensor->rank &&
        memcmp(entry->shape, shape, sizeof *shape * (size_t)tensor->rank) == 0) {
        tensor->data = (void *)entry->data;
        return ASSAY_RAN;
    }
    char wanted[SHAPE_TEXT_SIZE], stored[SHAPE_TEXT_SIZE];
    shape_text(wanted, tensor->rank, shape);
    shape_text(stored, entry->rank, entry->shape);
    return assay_fail(message, ASSAY_REFUSED,
                      "%s: tensor '%.80s' is %s %s, but case %d needs %s %s",
                      assay_shown_path(recording->path), entry->name, stored_dtype,
                      stored, index, dtype, wanted);
}

enum assay_status assay_recording_bind(struct assay_recording *recording, int index,
                                       struct assay_tensors *tensors,
                                       struct assay_message *message)
{
    assert(index >= 0 && index < recording->count);
    for (int i = 0; i < tensors->count; i++) {
        const enum assay_status status =
            bind_tensor(recording, index, &tensors->item[i], message);
        if (status != ASSAY_RAN) return status;
    }
    return ASSAY_RAN;
}

enum assay_status assay_recording_bind_inputs(struct assay_recording *recording,
                                              int index, struct assay_tensors *tensors,
                                              struct assay_message *message)
{
    assert(index >= 0 && index < recording->count);
    for (int i = 0; i < tensors->count; i++) {
        struct assay_tensor *const tensor = &tensors->item[i];
        tensor->data = NULL;
        if (tensor->is_output && !find_entry(recording, index, tensor->name)) continue;
        const enum assay_status status = bind_tensor(recording, index, tensor, message);
        if (status != ASSAY_RAN) return status;
    }
    return ASSAY_RAN;
}

void assay_recording_close(struct assay_recording *recording)
{
    free(recording->cases);
    assay_safetensors_close(&recording->file);
    recording->cases = NULL;
    recording->count = 0;
}
