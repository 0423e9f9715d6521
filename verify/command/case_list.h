/* SPDX-License-Identifier: MIT */
/* All cases of a selection, one after the other and by number. */
#ifndef ASSAY_VERIFY_COMMAND_CASE_LIST_H
#define ASSAY_VERIFY_COMMAND_CASE_LIST_H

#include "verify/case/case.h"
#include "verify/run/run.h"

struct assay_recording;

struct assay_listed_case {
    char *line;           /* NULL for a recorded one: */
    const char *recorded; /* borrowed from the selection */
    int index;
};

struct assay_case_list {
    int64_t count, capacity;
    struct assay_listed_case *item;
    uint64_t hash; /* of all of them in their order */
};

/* Adds what a selection's walk visits; the recording's path must outlive the list. */
enum assay_status assay_case_list_add(struct assay_case_list *list,
                                      const struct assay_case *the_case,
                                      const struct assay_recording *recording, int index,
                                      struct assay_message *message);

/* Fills in the case of that number; false when there is none. */
bool assay_case_list_find(const struct assay_case_list *list,
                          struct assay_run_case *the_case);

void assay_case_list_close(struct assay_case_list *list);

#endif
