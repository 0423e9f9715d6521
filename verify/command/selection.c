/* SPDX-License-Identifier: MIT */
#include "verify/command/selection.h"

#include "verify/data/buffers.h"
#include "verify/data/overrides.h"
#include "verify/data/recording.h"
#include "verify/operation/numerics.h"

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static enum assay_status append(struct assay_selection *selection, const char *line,
                                const char *recorded_path, struct assay_message *message)
{
    if (selection->count == selection->capacity) {
        const int64_t capacity = 2 * selection->capacity + 16;
        void *const grown =
            realloc(selection->item, (size_t)capacity * sizeof(*selection->item));
        if (!grown)
            return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for more cases");
        selection->item = grown;
        selection->capacity = capacity;
    }
    struct assay_selected *const item = &selection->item[selection->count];
    *item = (struct assay_selected){
        .line = line ? strdup(line) : NULL,
        .recorded_path = recorded_path ? strdup(recorded_path) : NULL,
    };
    if (!item->line && !item->recorded_path)
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for more cases");
    selection->count++;
    return ASSAY_RAN;
}

/* What only the operation can refuse, or only this recording, is refused here, before
 * anything runs. */
static enum assay_status check_binds(const struct assay_case *the_case,
                                     struct assay_recording *recording, int index,
                                     struct assay_message *message)
{
    const struct assay_operation *const operation = the_case->operation;
    union assay_problem_storage bound;
    union assay_numerics_storage parsed;
    struct assay_tensors tensors;
    size_t bytes;
    enum assay_status status = operation->bind(the_case, &bound, message);
    if (status == ASSAY_RAN)
        status =
            assay_numerics_parse(operation, &bound, the_case->numerics, &parsed, message);
    if (status != ASSAY_RAN) return status;
    operation->shape(&bound, &tensors);
    status = assay_overrides_check(the_case, &tensors, message);
    if (status != ASSAY_RAN) return status;
    return recording ? assay_recording_bind_inputs(recording, index, &tensors, message)
                     : assay_buffers_measure(&tensors, &bytes, message);
}

static enum assay_status add_case(void *context, const struct assay_case *the_case,
                                  struct assay_message *message)
{
    char line[ASSAY_MAX_CASE_LINE];
    const enum assay_status status = check_binds(the_case, NULL, 0, message);
    if (status != ASSAY_RAN) return status;
    if (the_case->data == ASSAY_DATA_RECORDED)
        return assay_fail(message, ASSAY_REFUSED,
                          "data=recorded needs the file that holds the inputs; give it "
                          "with --recorded FILE");
    assay_case_format(the_case, line, sizeof(line));
    return append(context, line, NULL, message);
}

enum assay_status assay_select_case(struct assay_selection *selection, const char *line,
                                    struct assay_message *message)
{
    struct assay_case the_case;
    const enum assay_status status = assay_case_parse(line, &the_case, message);
    return status == ASSAY_RAN ? add_case(selection, &the_case, message) : status;
}

enum assay_status assay_select_suite(struct assay_selection *selection, const char *path,
                                     struct assay_message *message)
{
    return assay_suite_read(path, add_case, selection, message);
}

static enum assay_status select_file(struct assay_selection *selection, const char *path,
                                     struct assay_message *message)
{
    struct assay_recording recording;
    enum assay_status status = assay_recording_open(&recording, path, message);
    if (status != ASSAY_RAN) return status;
    for (int i = 0; i < recording.count && status == ASSAY_RAN; i++) {
        status = check_binds(&recording.cases[i], &recording, i, message);
        if (status != ASSAY_RAN && !strstr(message->text, path)) {
            const struct assay_message inner = *message;
            assay_fail(message, status, "%s: case %d: %s", path, i, inner.text);
        }
    }
    assay_recording_close(&recording);
    return status == ASSAY_RAN ? append(selection, NULL, path, message) : status;
}

static int is_recording(const struct dirent *entry)
{
    static const char *const endings[] = { ".safetensors", ".safetensors.zst" };
    const size_t length = strlen(entry->d_name);
    for (int i = 0; i < 2; i++) {
        const size_t ending = strlen(endings[i]);
        if (length > ending && strcmp(entry->d_name + length - ending, endings[i]) == 0)
            return 1;
    }
    return 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static enum assay_status select_folder(struct assay_selection *selection,
                                       const char *folder, struct assay_message *message)
{
    struct dirent **entries;
    const int count = scandir(folder, &entries, is_recording, by_bytes);
    if (count < 0)
        return assay_fail(message, ASSAY_REFUSED, "%s: can't be read: %s", folder,
                          strerror(errno));
    enum assay_status status = ASSAY_RAN;
    for (int i = 0; i < count; i++) {
        char *path = NULL;
        if (status == ASSAY_RAN)
            status =
                asprintf(&path, "%s/%s", folder, entries[i]->d_name) < 0
                    ? assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a path")
                    : select_file(selection, path, message);
        free(path);
        free(entries[i]);
    }
    free(entries);
    return status;
}

enum assay_status assay_select_recorded(struct assay_selection *selection,
                                        const char *path, struct assay_message *message)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return assay_fail(message, ASSAY_REFUSED, "%s: can't be read: %s", path,
                          strerror(errno));
    return S_ISDIR(about.st_mode) ? select_folder(selection, path, message)
                                  : select_file(selection, path, message);
}

void assay_selection_close(struct assay_selection *selection)
{
    for (int64_t i = 0; i < selection->count; i++) {
        free(selection->item[i].line);
        free(selection->item[i].recorded_path);
    }
    free(selection->item);
}

typedef enum assay_status visitor(void *context, const struct assay_case *the_case,
                                  struct assay_recording *recording, int index,
                                  struct assay_message *);

static enum assay_status walk_file(const char *path, visitor *visit, void *context,
                                   struct assay_message *message)
{
    struct assay_recording recording;
    enum assay_status status = assay_recording_open(&recording, path, message);
    if (status != ASSAY_RAN) return status;
    for (int i = 0; i < recording.count && status == ASSAY_RAN; i++)
        status = visit(context, &recording.cases[i], &recording, i, message);
    assay_recording_close(&recording);
    return status;
}

enum assay_status assay_selection_walk(const struct assay_selection *selection,
                                       visitor *visit, void *context,
                                       struct assay_message *message)
{
    enum assay_status status = ASSAY_RAN;
    for (int64_t i = 0; i < selection->count && status == ASSAY_RAN; i++) {
        const struct assay_selected *const item = &selection->item[i];
        if (item->recorded_path) {
            status = walk_file(item->recorded_path, visit, context, message);
            continue;
        }
        struct assay_case the_case;
        status = assay_case_parse(item->line, &the_case, message);
        if (status == ASSAY_RAN) status = visit(context, &the_case, NULL, 0, message);
    }
    return status;
}
