/* SPDX-License-Identifier: MIT */
/* Text put together piece by piece in a buffer of fixed size. */
#ifndef ASSAY_VERIFY_CASE_TEXT_H
#define ASSAY_VERIFY_CASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct assay_text {
    char *buffer; /* always ends in NUL */
    size_t size;
    size_t length; /* of the whole text, also of what did not fit */
};

/* An empty text; @size > 0. */
struct assay_text assay_text_open(char *buffer, size_t size);

__attribute__((format(printf, 2, 3))) void assay_text_add(struct assay_text *text,
                                                          const char *format, ...);

/* Whether nothing was cut off. */
bool assay_text_fits(const struct assay_text *text);

/* Puts "..." at the end of a text that was cut off; needs a buffer of 4 at least. */
void assay_text_mark_cut(const struct assay_text *text);

/* What a message quotes of a long text: its beginning and "...". */
struct assay_excerpt {
    char text[64];
};
struct assay_excerpt assay_excerpt(const char *text);

#endif
