/* SPDX-License-Identifier: MIT */
#include "fuzz/campaign/merge.h"

#include "verify/case/number.h"
#include "verify/case/text.h"
#include "verify/data/safetensors.h"
#include "verify/report/json_read.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMED_MISSING = 8 }; /* shards that a sentence names */

static enum assay_status no_memory(struct assay_message *message)
{
    return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a campaign");
}

/* Its copy takes the first place that is free. */
static enum assay_status add_journal(struct assay_merge *merge, const char *folder,
                                     struct assay_message *message)
{
    void *const grown = realloc(merge->shard, (size_t)(merge->count + 1) *
                                                  sizeof(struct assay_journal_copy *));
    if (grown) merge->shard = grown;
    struct assay_journal_copy *const copy = grown ? malloc(sizeof(*copy)) : NULL;
    if (!copy) return no_memory(message);
    merge->shard[merge->count++] = copy;
    const enum assay_status status = assay_journal_copy_open(folder, copy, message);
    if (status != ASSAY_RAN || strcmp(copy->header.command, "fuzz") == 0) return status;
    return assay_fail(message, ASSAY_REFUSED,
                      "%s is the journal of `assay %s`; name folders of `assay fuzz`",
                      assay_shown_path(copy->path),
                      assay_excerpt(copy->header.command).text);
}

static int is_shard_name(const struct dirent *entry)
{
    return strncmp(entry->d_name, "shard-", 6) == 0 && strstr(entry->d_name, "-of-");
}

static enum assay_status add_below(struct assay_merge *merge, const char *folder,
                                   struct assay_message *message)
{
    struct dirent **entries;
    const int count = scandir(folder, &entries, is_shard_name, alphasort);
    if (count < 0)
        return assay_fail(message, ASSAY_REFUSED, "%s: can't be read: %s; name a folder",
                          assay_shown_path(folder), strerror(errno));
    enum assay_status status = ASSAY_RAN;
    if (count == 0)
        status = assay_fail(message, ASSAY_REFUSED,
                            "%s holds neither journal.jsonl nor folders shard-I-of-N; "
                            "name the --out of a campaign",
                            assay_shown_path(folder));
    for (int i = 0; i < count; i++) {
        char *path = NULL;
        if (status == ASSAY_RAN)
            status = asprintf(&path, "%s/%s", folder, entries[i]->d_name) < 0
                         ? no_memory(message)
                         : add_journal(merge, path, message);
        free(path);
        free(entries[i]);
    }
    free(entries);
    return status;
}

static enum assay_status add_folder(struct assay_merge *merge, const char *folder,
                                    struct assay_message *message)
{
    char *path;
    if (asprintf(&path, "%s/journal.jsonl", folder) < 0) return no_memory(message);
    const bool has_journal = access(path, F_OK) == 0;
    free(path);
    return has_journal ? add_journal(merge, folder, message)
                       : add_below(merge, folder, message);
}

static enum assay_status shard_of(const struct assay_journal_copy *copy,
                                  struct assay_shard *shard,
                                  struct assay_message *message)
{
    const char *const text = assay_journal_copy_setting(copy, ASSAY_SETTING_SHARD);
    return assay_shard_parse(text ? text : "", shard, message);
}

/* Another campaign's, if its header is not that of the first. */
static enum assay_status compare(const struct assay_journal_copy *first,
                                 const struct assay_journal_copy *other,
                                 struct assay_message *message)
{
    const char *name = NULL, *theirs = "";
    for (const struct assay_journal_setting *row = first->setting; row->name; row++) {
        const char *const value = assay_journal_copy_setting(other, row->name);
        if (strcmp(row->name, ASSAY_SETTING_SHARD) == 0 ||
            (value && strcmp(value, row->value) == 0))
            continue;
        name = row->name;
        theirs = value ? value : "";
    }
    if (!name && first->header.selection == other->header.selection) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "%s is of another campaign, with %s %s; name the shards of one",
                      assay_shown_path(other->path), name ? name : "other operations",
                      assay_excerpt(theirs).text);
}

static enum assay_status report_missing(const struct assay_merge *merge, int64_t count,
                                        struct assay_message *message)
{
    char list[160];
    struct assay_text text = assay_text_open(list, sizeof(list));
    int64_t missing = 0;
    for (int64_t i = 0; i < count; i++) {
        if (merge->shard[i]) continue;
        if (missing < NAMED_MISSING)
            assay_text_add(&text, "%s%" PRId64, missing ? ", " : "", i);
        missing++;
    }
    if (missing == 0) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "shard%s %s%s of %" PRId64 " %s missing; name the folders of all",
                      missing == 1 ? "" : "s", list,
                      missing > NAMED_MISSING ? ", ..." : "", count,
                      missing == 1 ? "is" : "are");
}

/* Puts the shards in their order. */
static enum assay_status arrange(struct assay_merge *merge, struct assay_message *message)
{
    struct assay_shard shard;
    enum assay_status status = shard_of(merge->shard[0], &shard, message);
    if (status != ASSAY_RAN) return status;
    const int64_t found = merge->count, count = shard.count;
    struct assay_journal_copy **const copies = merge->shard;
    merge->shard = calloc((size_t)(count > found ? count : found), sizeof(*copies));
    if (!merge->shard) {
        merge->shard = copies;
        return no_memory(message);
    }
    for (int64_t i = 0; i < found; i++) {
        struct assay_journal_copy *const copy = copies[i];
        if (status == ASSAY_RAN) status = compare(copies[0], copy, message);
        if (status == ASSAY_RAN) status = shard_of(copy, &shard, message);
        if (status == ASSAY_RAN && shard.count != count)
            status = assay_fail(message, ASSAY_REFUSED,
                                "%s is one of %" PRId64 " shards, others are of %" PRId64
                                "; name those of one sharing",
                                assay_shown_path(copy->path), shard.count, count);
        if (status == ASSAY_RAN && merge->shard[shard.index])
            status = assay_fail(message, ASSAY_REFUSED,
                                "%s is shard %" PRId64 " once more; name each once",
                                assay_shown_path(copy->path), shard.index);
        if (status == ASSAY_RAN)
            merge->shard[shard.index] = copy;
        else {
            assay_journal_copy_close(copy);
            free(copy);
        }
    }
    free(copies);
    merge->count = count;
    return status == ASSAY_RAN ? report_missing(merge, count, message) : status;
}

/* A shard of no given end has a result for every number up to its last one. */
static enum assay_status check_finished(const struct assay_journal_copy *copy,
                                        struct assay_shard shard,
                                        struct assay_message *message)
{
    const char *const text = assay_journal_copy_setting(copy, ASSAY_SETTING_CASES);
    uint64_t cases = 0;
    const bool is_counted = text && *text &&
                            assay_number_unsigned(text, &cases) == ASSAY_NUMBER_VALID &&
                            cases <= INT64_MAX;
    const int64_t count = assay_shard_cases(shard, (int64_t)cases);
    int64_t end = is_counted ? count : copy->index.count, open = 0;
    while (!is_counted && end > 0 && !assay_journal_copy_has(copy, end - 1) &&
           assay_journal_find(&copy->index, end - 1).runs == 0)
        end--;
    for (int64_t i = 0; i < end; i++)
        open += !assay_journal_copy_has(copy, i);
    if (open == 0) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "%s is not finished: %" PRId64 " of %" PRId64
                      " cases are missing; go on with it by --resume",
                      assay_shown_path(copy->path), open, end);
}

enum assay_status assay_merge_open(char *const *folders, int count,
                                   struct assay_merge *merge,
                                   struct assay_message *message)
{
    *merge = (struct assay_merge){ .count = 0 };
    enum assay_status status = ASSAY_RAN;
    for (int i = 0; i < count && status == ASSAY_RAN; i++)
        status = add_folder(merge, folders[i], message);
    if (status == ASSAY_RAN) status = arrange(merge, message);
    for (int64_t i = 0; i < merge->count && status == ASSAY_RAN; i++)
        status = check_finished(merge->shard[i], (struct assay_shard){ i, merge->count },
                                message);
    return status;
}

static enum assay_status take_line(struct assay_campaign_tally *tally, int64_t number,
                                   const char *line, struct assay_message *message)
{
    struct assay_brief brief;
    struct assay_result result;
    bool is_brief, is_new;
    enum assay_status status = assay_brief_read(line, &brief, &is_brief, message);
    if (status == ASSAY_RAN && is_brief)
        return assay_campaign_take_brief(tally, number, &brief, message);
    if (status == ASSAY_RAN) status = assay_json_result_read(line, &result, message);
    if (status != ASSAY_RAN) return status;
    status = assay_campaign_take(tally, number, &result, &is_new, message);
    assay_result_close(&result);
    return status;
}

enum assay_status assay_merge_take(const struct assay_merge *merge,
                                   struct assay_campaign_tally *tally,
                                   struct assay_message *message)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < merge->count; i++)
        if (merge->shard[i]->index.count > rows) rows = merge->shard[i]->index.count;
    enum assay_status status = ASSAY_RAN;
    for (int64_t number = 0; number < rows * merge->count && status == ASSAY_RAN;
         number++) {
        const struct assay_journal_copy *const copy = merge->shard[number % merge->count];
        const int64_t local = number / merge->count;
        char *line;
        if (!assay_journal_copy_has(copy, local)) continue;
        status = assay_journal_copy_read(copy, local, &line, message);
        if (status != ASSAY_RAN) break;
        status = take_line(tally, number, line, message);
        free(line);
    }
    return status;
}

void assay_merge_close(struct assay_merge *merge)
{
    for (int64_t i = 0; i < merge->count; i++) {
        if (!merge->shard[i]) continue;
        assay_journal_copy_close(merge->shard[i]);
        free(merge->shard[i]);
    }
    free(merge->shard);
    *merge = (struct assay_merge){ .count = 0 };
}
