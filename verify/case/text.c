/* SPDX-License-Identifier: MIT */
/* Appending with a limit, and excerpts for messages. */
#include "verify/case/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct assay_text assay_text_open(char *buffer, size_t size)
{
    assert(size > 0);
    buffer[0] = '\0';
    return (struct assay_text){ buffer, size, 0 };
}

void assay_text_add(struct assay_text *text, const char *format, ...)
{
    const size_t end = text->length < text->size ? text->length : text->size - 1;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text->buffer + end, text->size - end, format, arguments);
    va_end(arguments);
    assert(length >= 0);
    text->length += (size_t)length;
}

bool assay_text_fits(const struct assay_text *text)
{
    return text->length < text->size;
}

void assay_text_mark_cut(const struct assay_text *text)
{
    if (assay_text_fits(text)) return;
    memcpy(text->buffer + text->size - sizeof("..."), "...", sizeof("..."));
}

struct assay_excerpt assay_excerpt(const char *text)
{
    struct assay_excerpt excerpt;
    struct assay_text beginning = assay_text_open(excerpt.text, sizeof(excerpt.text));
    assay_text_add(&beginning, "%s", text);
    assay_text_mark_cut(&beginning);
    return excerpt;
}
