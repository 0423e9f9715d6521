/* SPDX-License-Identifier: MIT */
/* Cases that have to be refused. The rows are written from the operations' pages and from
 * what upstream's kernels need, not from the code that refuses. */
#ifndef ASSAY_FUZZ_CAMPAIGN_NEGATIVE_H
#define ASSAY_FUZZ_CAMPAIGN_NEGATIVE_H

#include "verify/operation/operation.h"

/* @change: keys to be set, "k=@k+8 out=f32", with spaces between. @KEY+N stands for what
 * the key had and N more; "-" alone leaves the key out. */
struct assay_negative { /* tables are closed by a NULL operation */
    const char *operation, *change;
    const char *why; /* "k is no multiple of 16" */
};
extern const struct assay_negative assay_negatives[];

/* Rows of the operation of that name, and one of them. */
int assay_negative_count(const char *operation);
const struct assay_negative *assay_negative_at(const char *operation, int index);

/* Writes the line of the legal @the_case with the row's change; unsafe=, as= and bits=
 * are left out unless the row gives them. @line is of ASSAY_MAX_CASE_LINE. */
void assay_negative_apply(const struct assay_negative *negative,
                          const struct assay_case *the_case, char *line);

/* ASSAY_REFUSED with the sentence when parsing, binding, the numerics or the inputs
 * refuse the line; ASSAY_RAN when all of them accept it; another status when there was
 * no answer. */
enum assay_status assay_negative_try(const char *line, struct assay_message *message);

#endif
