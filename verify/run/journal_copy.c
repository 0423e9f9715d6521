/* SPDX-License-Identifier: MIT */
#include "verify/run/journal_copy.h"

#include "verify/data/safetensors.h"
#include "verify/run/journal_scan.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static enum assay_status damaged(const struct assay_journal_copy *copy,
                                 struct assay_message *message)
{
    return assay_fail(message, ASSAY_REFUSED,
                      "%s: line 1 is damaged (no header of a journal); name the folder "
                      "of a run",
                      assay_shown_path(copy->path));
}

/* The header as the line has it, so that the rest can be read by it. */
static enum assay_status read_header(struct assay_journal_copy *copy, const char *line,
                                     struct assay_message *message)
{
    json_t *const object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    json_t *const options = json_object_get(object, "options");
    const char *const command = json_string_value(json_object_get(object, "command"));
    const char *const hash = json_string_value(json_object_get(object, "selection"));
    const char *name;
    json_t *value;
    int count = 0;
    copy->texts = object;
    if (!command || !hash || !json_is_object(options)) return damaged(copy, message);
    json_object_foreach(options, name, value)
    {
        if (!json_is_string(value) || count == ASSAY_MAX_JOURNAL_SETTINGS)
            return damaged(copy, message);
        copy->setting[count++] =
            (struct assay_journal_setting){ name, json_string_value(value) };
    }
    copy->header = (struct assay_journal_header){
        .command = command,
        .cases = json_integer_value(json_object_get(object, "cases")),
        .selection = strtoull(hash, NULL, 16),
        .settings = copy->setting,
    };
    return ASSAY_RAN;
}

static enum assay_status read_lines(struct assay_journal_copy *copy, FILE *stream,
                                    struct assay_message *message)
{
    struct assay_journal_scan scan;
    char *line = NULL;
    size_t room = 0;
    const bool has_line = getline(&line, &room, stream) > 0;
    enum assay_status status =
        has_line ? read_header(copy, line, message) : damaged(copy, message);
    free(line);
    if (status != ASSAY_RAN) return status;
    status = assay_journal_scan(stream, copy->path, &copy->header, &scan, message);
    copy->index = scan.index;
    copy->is_ended = scan.is_ended;
    return status == ASSAY_RAN && scan.bytes == 0 ? damaged(copy, message) : status;
}

enum assay_status assay_journal_copy_open(const char *folder,
                                          struct assay_journal_copy *copy,
                                          struct assay_message *message)
{
    *copy = (struct assay_journal_copy){ .fd = -1 };
    if (asprintf(&copy->path, "%s/journal.jsonl", folder) < 0) {
        copy->path = NULL;
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a journal");
    }
    copy->fd = open(copy->path, O_RDONLY | O_CLOEXEC);
    if (copy->fd < 0)
        return assay_fail(message, ASSAY_REFUSED,
                          "%s: can't be read: %s; name the folder of a run",
                          assay_shown_path(copy->path), strerror(errno));
    if (flock(copy->fd, LOCK_SH | LOCK_NB) != 0)
        return assay_fail(message, ASSAY_REFUSED,
                          "%s: a run is still writing it; wait for its end",
                          assay_shown_path(copy->path));
    const int again = fcntl(copy->fd, F_DUPFD_CLOEXEC, 0);
    FILE *const stream = again >= 0 ? fdopen(again, "r") : NULL;
    if (!stream) {
        if (again >= 0) close(again);
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a journal");
    }
    const enum assay_status status = read_lines(copy, stream, message);
    fclose(stream);
    return status;
}

const char *assay_journal_copy_setting(const struct assay_journal_copy *copy,
                                       const char *name)
{
    const struct assay_journal_setting *row = copy->setting;
    while (row->name && strcmp(row->name, name) != 0)
        row++;
    return row->value;
}

bool assay_journal_copy_has(const struct assay_journal_copy *copy, int64_t number)
{
    return assay_journal_find(&copy->index, number).bytes > 0;
}

enum assay_status assay_journal_copy_read(const struct assay_journal_copy *copy,
                                          int64_t number, char **line,
                                          struct assay_message *message)
{
    const struct assay_journal_entry entry = assay_journal_find(&copy->index, number);
    assert(entry.bytes);
    *line = malloc((size_t)entry.bytes + 1);
    if (!*line) return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a result");
    (*line)[entry.bytes] = '\0';
    const ssize_t got = pread(copy->fd, *line, entry.bytes, entry.offset);
    if (got == (ssize_t)entry.bytes) return ASSAY_RAN;
    free(*line);
    *line = NULL;
    return assay_fail(message, ASSAY_FAILED, "%s: reading failed: %s",
                      assay_shown_path(copy->path),
                      got < 0 ? strerror(errno) : "it has become shorter");
}

void assay_journal_copy_close(struct assay_journal_copy *copy)
{
    if (copy->fd >= 0) close(copy->fd);
    assay_journal_index_free(&copy->index);
    json_decref(copy->texts);
    free(copy->path);
    *copy = (struct assay_journal_copy){ .fd = -1 };
}
