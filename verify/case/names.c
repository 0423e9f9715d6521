/* SPDX-License-Identifier: MIT */
/* Names collected from tables, and what to suggest out of them. */
#include "verify/case/names.h"

#include "verify/case/message.h"

#include <assert.h>
#include <string.h>

void assay_names_add(struct assay_names *names, const char *name)
{
    assert(names->count < ASSAY_MAX_NAMES);
    names->name[names->count++] = name;
}

void assay_names_add_table(struct assay_names *names, const void *table, size_t row_bytes)
{
    for (const char *row = table;; row += row_bytes) {
        const char *name;
        memcpy(&name, row, sizeof(name));
        if (!name) return;
        assay_names_add(names, name);
    }
}

void assay_names_list(const struct assay_names *names, struct assay_text *text)
{
    for (int i = 0; i < names->count; i++)
        assay_text_add(text, "%s%s", i ? ", " : "", names->name[i]);
}

struct assay_hint assay_names_suggest(const struct assay_names *names, const char *word)
{
    struct assay_hint hint;
    struct assay_text text = assay_text_open(hint.text, sizeof(hint.text));
    const char *const nearest = assay_nearest(word, names->name);
    if (nearest) assay_text_add(&text, "; did you mean '%s'?", nearest);
    return hint;
}

struct assay_hint assay_names_hint(const struct assay_names *names, const char *word)
{
    struct assay_hint hint = assay_names_suggest(names, word);
    if (hint.text[0]) return hint;

    struct assay_text text = assay_text_open(hint.text, sizeof(hint.text));
    assay_text_add(&text, "; legal: ");
    assay_names_list(names, &text);
    assay_text_mark_cut(&text);
    return hint;
}
