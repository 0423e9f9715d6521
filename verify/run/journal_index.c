/* SPDX-License-Identifier: MIT */
#include "verify/run/journal_index.h"

#include <stdlib.h>
#include <string.h>

struct assay_journal_entry *assay_journal_entry(struct assay_journal_index *index,
                                                int64_t number)
{
    if (number < 0 || number > INT32_MAX) return NULL;
    if (number >= index->count) {
        const int64_t count = number + number / 2 + 256;
        struct assay_journal_entry *const grown =
            realloc(index->entry, (size_t)count * sizeof(*grown));
        if (!grown) return NULL;
        memset(grown + index->count, 0, (size_t)(count - index->count) * sizeof(*grown));
        index->entry = grown;
        index->count = count;
    }
    return &index->entry[number];
}

struct assay_journal_entry assay_journal_find(const struct assay_journal_index *index,
                                              int64_t number)
{
    return number >= 0 && number < index->count ? index->entry[number]
                                                : (struct assay_journal_entry){ 0 };
}

void assay_journal_close_run(struct assay_journal_index *index, bool has_stopped)
{
    for (int64_t i = 0; i < index->count && index->begun > 0; i++) {
        struct assay_journal_entry *const entry = &index->entry[i];
        if (!entry->is_begun) continue;
        entry->is_begun = false;
        index->begun--;
        if (!has_stopped && entry->runs < UINT16_MAX) entry->runs++;
    }
}

void assay_journal_index_free(struct assay_journal_index *index)
{
    free(index->entry);
    *index = (struct assay_journal_index){ 0 };
}
