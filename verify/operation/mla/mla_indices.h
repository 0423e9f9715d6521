/* SPDX-License-Identifier: MIT */
/* Patterns of the lists of indices that the sparse attention operations generate. */
#ifndef ASSAY_VERIFY_OPERATION_MLA_INDICES_H
#define ASSAY_VERIFY_OPERATION_MLA_INDICES_H

#include "verify/data/kind.h"
#include "verify/operation/operation.h"

enum assay_mla_index_pattern {
    ASSAY_MLA_INDICES_SCATTERED, /* tokens in random order, some of them repeated */
    ASSAY_MLA_INDICES_ASCENDING, /* the same, sorted; what is invalid stays where it is */
    ASSAY_MLA_INDICES_DESCENDING,
    ASSAY_MLA_INDICES_REPEATED, /* of a few tokens only, over and over */
    ASSAY_MLA_INDICES_EDGES,    /* of tokens at edges of memory only */
    ASSAY_MLA_INDICES_LAST,     /* of the last token only */
};
extern const struct assay_choice assay_mla_index_patterns[];

/* How many tokens a list of pattern repeated names, at most. */
enum { ASSAY_MLA_REPEATED_TOKENS = 4 };

/* Refuses a pattern that cannot serve the case's kind of data: needle wants its winner
 * once, ties as many tokens of either kind. */
enum assay_status assay_mla_check_pattern(const struct assay_case *the_case,
                                          enum assay_mla_index_pattern pattern,
                                          struct assay_message *message);

/* One list under construction. */
struct assay_mla_index_source {
    enum assay_mla_index_pattern pattern;
    int64_t length, topk; /* positions that count, of all */
    int64_t end;          /* indices from 0 to below name something */
    /* The index at the next position; takes the same draws whatever it is. */
    int32_t (*make)(const void *list, int64_t position, struct assay_stream *stream);
    const void *list;
};

/* Writes what @make gives with the draws of @stream to @index, sorted if the pattern says
 * so: the indices that count and name something, over the positions that had such. */
void assay_mla_fill_indices(const struct assay_mla_index_source *source,
                            const struct assay_stream *stream, int32_t *index);

#endif
