/* SPDX-License-Identifier: MIT */
/* The names a user could have meant, collected from tables for a suggestion. */
#ifndef ASSAY_VERIFY_CASE_NAMES_H
#define ASSAY_VERIFY_CASE_NAMES_H

#include "verify/case/text.h"

#include <stddef.h>

enum { ASSAY_MAX_NAMES = 128 };

struct assay_names { /* zeroed: empty */
    int count;
    const char *name[ASSAY_MAX_NAMES + 1]; /* closed by NULL */
};

void assay_names_add(struct assay_names *names, const char *name);

/* Adds the names of a table whose rows of @row_bytes begin with their name, up to the row
 * with a NULL name. */
void assay_names_add_table(struct assay_names *names, const void *table,
                           size_t row_bytes);

/* Appends "a, b, c". */
void assay_names_list(const struct assay_names *names, struct assay_text *text);

struct assay_hint {
    char text[300];
};

/* "; did you mean 'm'?", or nothing when no name is near @word. */
struct assay_hint assay_names_suggest(const struct assay_names *names, const char *word);

/* The suggestion or, when there is none, "; legal: a, b, c". */
struct assay_hint assay_names_hint(const struct assay_names *names, const char *word);

#endif
