/* SPDX-License-Identifier: MIT */
/* The table of index patterns, what they cannot serve, and sorted lists. */
#include "verify/operation/mla/mla_indices.h"

#include <stdlib.h>

const struct assay_choice assay_mla_index_patterns[] = {
    { "scattered", ASSAY_MLA_INDICES_SCATTERED, "random order, some repeated" },
    { "ascending", ASSAY_MLA_INDICES_ASCENDING, "the same in ascending order" },
    { "descending", ASSAY_MLA_INDICES_DESCENDING, "the same in descending order" },
    { "repeated", ASSAY_MLA_INDICES_REPEATED, "at most four tokens over and over" },
    { "edges", ASSAY_MLA_INDICES_EDGES, "the first, the last, and edges of pages" },
    { "last", ASSAY_MLA_INDICES_LAST, "the last token alone" },
    { NULL, 0, NULL },
};

enum assay_status assay_mla_check_pattern(const struct assay_case *the_case,
                                          enum assay_mla_index_pattern pattern,
                                          struct assay_message *message)
{
    const enum assay_data_kind kind = the_case->data;
    if (pattern < ASSAY_MLA_INDICES_REPEATED) return ASSAY_RAN;
    if (kind != ASSAY_DATA_NEEDLE && kind != ASSAY_DATA_TIES) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "data=%s says itself which tokens are named, which indices=%s does "
                      "as well; use indices=scattered, ascending or descending",
                      assay_data_kinds[kind].name,
                      assay_mla_index_patterns[pattern].name);
}

static int compare_ascending(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static int compare_descending(const void *a, const void *b)
{
    return compare_ascending(b, a);
}

static bool names_something(const struct assay_mla_index_source *source, int32_t index)
{
    return index >= 0 && index < source->end;
}

/* Sorted indices wait behind the places that they go to; others are made once more. */
static void fill_sorted(const struct assay_mla_index_source *source,
                        struct assay_stream *stream, int32_t *index)
{
    const bool is_ascending = source->pattern == ASSAY_MLA_INDICES_ASCENDING;
    struct assay_stream again = *stream;
    int64_t from = source->length;
    for (int64_t position = 0; position < source->length; position++) {
        const int32_t made = source->make(source->list, position, stream);
        if (names_something(source, made)) index[--from] = made;
    }
    qsort(index + from, (size_t)(source->length - from), sizeof(*index),
          is_ascending ? compare_ascending : compare_descending);
    for (int64_t position = 0; position < source->length; position++) {
        const int32_t made = source->make(source->list, position, &again);
        index[position] = names_something(source, made) ? index[from++] : made;
    }
}

void assay_mla_fill_indices(const struct assay_mla_index_source *source,
                            const struct assay_stream *stream, int32_t *index)
{
    const bool is_sorted = source->pattern == ASSAY_MLA_INDICES_ASCENDING ||
                           source->pattern == ASSAY_MLA_INDICES_DESCENDING;
    struct assay_stream own = *stream;
    if (is_sorted) fill_sorted(source, &own, index);
    for (int64_t position = is_sorted ? source->length : 0; position < source->topk;
         position++)
        index[position] = source->make(source->list, position, &own);
}
