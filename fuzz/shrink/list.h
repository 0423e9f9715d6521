/* SPDX-License-Identifier: MIT */
/* The value of a list key, taken out of a case and put back. */
#ifndef ASSAY_FUZZ_SHRINK_LIST_H
#define ASSAY_FUZZ_SHRINK_LIST_H

#include "verify/case/case.h"

struct assay_shrink_list {
    int count;
    int64_t value[ASSAY_MAX_LIST_VALUES];
};

struct assay_shrink_list assay_shrink_list_of(const struct assay_case *the_case,
                                              const char *name);

/* Puts the list, which has no more values, in the place of the old one. */
void assay_shrink_list_set(struct assay_case *the_case, const char *name,
                           const struct assay_shrink_list *list);

#endif
