/* SPDX-License-Identifier: MIT */
#include "verify/command/case_list.h"

#include "verify/data/buffers.h"
#include "verify/data/recording.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool grow(struct assay_case_list *list)
{
    if (list->count < list->capacity) return true;
    const int64_t capacity = 2 * list->capacity + 64;
    void *const grown = realloc(list->item, (size_t)capacity * sizeof(*list->item));
    if (!grown) return false;
    list->item = grown;
    list->capacity = capacity;
    return true;
}

/* Each case's hash covers those before it. */
static bool add_to_hash(struct assay_case_list *list, const char *path, int index,
                        const char *line)
{
    char *text;
    if (asprintf(&text, "%016" PRIx64 " %s %d %s", list->hash, path ? path : "", index,
                 line) < 0)
        return false;
    list->hash = assay_text_hash(text);
    free(text);
    return true;
}

enum assay_status assay_case_list_add(struct assay_case_list *list,
                                      const struct assay_case *the_case,
                                      const struct assay_recording *recording, int index,
                                      struct assay_message *message)
{
    char line[ASSAY_MAX_CASE_LINE];
    const char *const path = recording ? recording->path : NULL;
    assay_case_format(the_case, line, sizeof(line));
    char *const copy = path ? NULL : strdup(line);
    if ((!path && !copy) || !grow(list) || !add_to_hash(list, path, index, line)) {
        free(copy);
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for more cases");
    }
    list->item[list->count++] =
        (struct assay_listed_case){ .line = copy, .recorded = path, .index = index };
    return ASSAY_RAN;
}

bool assay_case_list_find(const struct assay_case_list *list,
                          struct assay_run_case *the_case)
{
    if (the_case->number < 0 || the_case->number >= list->count) return false;
    const struct assay_listed_case *const item = &list->item[the_case->number];
    the_case->line = item->line;
    the_case->recorded = item->recorded;
    the_case->index = item->index;
    return true;
}

void assay_case_list_close(struct assay_case_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        free(list->item[i].line);
    free(list->item);
    *list = (struct assay_case_list){ 0 };
}
