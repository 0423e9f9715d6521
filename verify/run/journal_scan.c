/* SPDX-License-Identifier: MIT */
#include "verify/run/journal_scan.h"

#include "verify/case/text.h"
#include "verify/data/buffers.h"
#include "verify/data/safetensors.h"
#include "verify/report/brief.h"
#include "verify/report/json_read.h"
#include "verify/report/version.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum {
    SCHEMA = 1,
    MAX_LEAP = 1 << 20, /* of a number over all before it, where no end is known */
};

struct place { /* what messages name */
    const char *path;
    int64_t line;
};

struct hash_text {
    char text[24];
};

static struct hash_text hash_text(uint64_t hash)
{
    struct hash_text text;
    snprintf(text.text, sizeof(text.text), "0x%016" PRIx64, hash);
    return text;
}

/* A value that is no text is kept as its hash. */
static json_t *options_object(const struct assay_journal_setting *settings)
{
    json_t *const object = json_object();
    for (const struct assay_journal_setting *row = settings; row && row->name; row++) {
        json_t *const value = json_string(row->value);
        json_object_set_new(
            object, row->name,
            value ? value : json_string(hash_text(assay_text_hash(row->value)).text));
    }
    return object;
}

char *assay_journal_header_line(const struct assay_journal_header *header)
{
    json_t *const object = json_pack(
        "{s:s, s:i, s:s, s:s, s:I, s:s, s:o}", "type", "header", "schema", SCHEMA,
        "version", ASSAY_VERSION, "command", header->command, "cases",
        (json_int_t)header->cases, "selection", hash_text(header->selection).text,
        "options", options_object(header->settings));
    char *const line = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return line;
}

static enum assay_status damaged(const struct place *place, const char *why,
                                 struct assay_message *message)
{
    const struct assay_excerpt excerpt = assay_excerpt(why);
    return assay_fail(message, ASSAY_REFUSED,
                      "%s: line %" PRId64 " is damaged (%s); repair it, or name another "
                      "folder to begin anew",
                      assay_shown_path(place->path), place->line, excerpt.text);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *const text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static enum assay_status other_run(const struct place *place, const char *what,
                                   const char *theirs, const char *ours,
                                   struct assay_message *message)
{
    const struct assay_excerpt first = assay_excerpt(theirs),
                               second = assay_excerpt(ours);
    return assay_fail(message, ASSAY_REFUSED,
                      "%s belongs to a run with%s %s%s%s%s%s; repeat that run's command "
                      "line, or name another folder",
                      assay_shown_path(place->path), *theirs ? "" : "out", what,
                      *theirs ? " " : "", first.text, *ours ? ", not " : "", second.text);
}

static enum assay_status compare_settings(const struct place *place, const json_t *theirs,
                                          const struct assay_journal_setting *settings,
                                          struct assay_message *message)
{
    json_t *const ours = options_object(settings);
    enum assay_status status = ASSAY_RAN;
    const char *name;
    json_t *value;
    json_object_foreach(ours, name, value)
    {
        const char *const kept = text_of(theirs, name), *const asked =
                                                            text_of(ours, name);
        if (status == ASSAY_RAN && !json_equal(value, json_object_get(theirs, name)))
            status = other_run(place, name, kept, asked, message);
    }
    if (status == ASSAY_RAN && json_object_size(theirs) != json_object_size(ours))
        status = other_run(place, "options", "of its own", "these", message);
    json_decref(ours);
    return status;
}

static enum assay_status compare_header(const struct place *place, const json_t *line,
                                        const struct assay_journal_header *header,
                                        struct assay_message *message)
{
    const char *const command = text_of(line, "command");
    const char *const version = text_of(line, "version");
    if (strcmp(text_of(line, "type"), "header") != 0 ||
        json_integer_value(json_object_get(line, "schema")) != SCHEMA)
        return damaged(place, "no header of a journal", message);
    if (strcmp(command, header->command) != 0)
        return other_run(place, "command", command, header->command, message);
    if (strcmp(version, ASSAY_VERSION) != 0)
        return other_run(place, "assay", version, ASSAY_VERSION, message);
    const json_int_t cases = json_integer_value(json_object_get(line, "cases"));
    if (cases != header->cases ||
        strcmp(text_of(line, "selection"), hash_text(header->selection).text) != 0)
        return assay_fail(message, ASSAY_REFUSED,
                          "%s belongs to a run of %s%" JSON_INTEGER_FORMAT " case%s, not "
                          "of the %" PRId64 " selected now; repeat that run's command "
                          "line, or name another folder",
                          assay_shown_path(place->path),
                          cases == header->cases ? "other " : "", cases,
                          cases == 1 ? "" : "s", header->cases);
    return compare_settings(place, json_object_get(line, "options"), header->settings,
                            message);
}

/* The entry of the case that the line is about; a finished case is named no more. */
static struct assay_journal_entry *entry_of(const json_t *line, const char *key,
                                            const struct assay_journal_header *header,
                                            struct assay_journal_index *index)
{
    const json_t *const value = json_object_get(line, key);
    const json_int_t number = json_integer_value(value);
    const int64_t end = header->cases ? header->cases : index->count + MAX_LEAP;
    if (!json_is_integer(value) || number >= end) return NULL;
    struct assay_journal_entry *const entry = assay_journal_entry(index, number);
    return entry && !entry->bytes ? entry : NULL;
}

static enum assay_status take_result(const struct place *place, const json_t *line,
                                     const char *text, size_t bytes,
                                     const struct assay_journal_header *header,
                                     struct assay_journal_scan *scan,
                                     struct assay_message *message)
{
    struct assay_journal_entry *const entry =
        entry_of(line, "number", header, &scan->index);
    struct assay_result result;
    struct assay_message why;
    if (!entry) return damaged(place, "no unfinished case has that number", message);
    if (bytes > UINT32_MAX) return damaged(place, "too long", message);
    struct assay_brief brief;
    bool is_brief = false;
    enum assay_status status = assay_brief_read(text, &brief, &is_brief, &why);
    if (status == ASSAY_RAN && !is_brief) {
        status = assay_json_result_read(text, &result, &why);
        assay_result_close(&result);
    }
    if (status != ASSAY_RAN) return damaged(place, why.text, message);
    entry->offset = scan->bytes;
    entry->bytes = (uint32_t)bytes;
    scan->index.begun -= entry->is_begun;
    entry->is_begun = false;
    return ASSAY_RAN;
}

static enum assay_status take_begin(const struct place *place, const json_t *line,
                                    const struct assay_journal_header *header,
                                    struct assay_journal_scan *scan,
                                    struct assay_message *message)
{
    struct assay_journal_entry *const entry =
        entry_of(line, "case", header, &scan->index);
    if (!entry || entry->is_begun)
        return damaged(place, "no case with that number can begin", message);
    entry->is_begun = true;
    scan->index.begun++;
    return ASSAY_RAN;
}

static enum assay_status take_line(const struct place *place, const json_t *line,
                                   const char *text, size_t bytes,
                                   const struct assay_journal_header *header,
                                   struct assay_journal_scan *scan,
                                   struct assay_message *message)
{
    const char *const type = text_of(line, "type");
    if (!line) return damaged(place, "no JSON", message);
    if (place->line == 1) return compare_header(place, line, header, message);
    if (strcmp(type, "case") == 0 || strcmp(type, "brief") == 0)
        return take_result(place, line, text, bytes, header, scan, message);
    if (strcmp(type, "begin") == 0) return take_begin(place, line, header, scan, message);
    const bool is_stop = strcmp(type, "stopped") == 0;
    scan->is_ended |= strcmp(type, "summary") == 0;
    if (!is_stop && strcmp(type, "resumed") != 0 && strcmp(type, "summary") != 0)
        return damaged(place, "no line of a journal", message);
    assay_journal_close_run(&scan->index, is_stop);
    return ASSAY_RAN;
}

enum assay_status assay_journal_scan(FILE *stream, const char *path,
                                     const struct assay_journal_header *header,
                                     struct assay_journal_scan *scan,
                                     struct assay_message *message)
{
    *scan = (struct assay_journal_scan){ .bytes = 0 };
    struct place place = { .path = path, .line = 1 };
    enum assay_status status = ASSAY_RAN;
    char *text = NULL;
    size_t room = 0;
    rewind(stream);
    for (ssize_t got; status == ASSAY_RAN && (got = getline(&text, &room, stream)) > 0;) {
        if (text[got - 1] != '\n') break;
        text[--got] = '\0';
        json_t *const line = json_loadb(text, (size_t)got, JSON_REJECT_DUPLICATES, NULL);
        status = take_line(&place, line, text, (size_t)got, header, scan, message);
        json_decref(line);
        scan->bytes += got + 1;
        place.line++;
    }
    if (status == ASSAY_RAN && ferror(stream))
        status = assay_fail(message, ASSAY_FAILED, "%s: reading failed: %s",
                            assay_shown_path(path), strerror(errno));
    assay_journal_close_run(&scan->index, false);
    free(text);
    return status;
}
