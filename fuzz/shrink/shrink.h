/* SPDX-License-Identifier: MIT */
/* From a case that fails to one that fails in the same way and can be read: fewer tensor
 * elements in all, then a shorter line; data that are zero but for a handful of elements,
 * where that is enough. */
#ifndef ASSAY_FUZZ_SHRINK_SHRINK_H
#define ASSAY_FUZZ_SHRINK_SHRINK_H

#include "verify/check/trial.h"

#define ASSAY_SHRINK_SECONDS 60.0
enum { ASSAY_SHRINK_TRIALS = 2000, ASSAY_SHRINK_TRIES = 3 };

struct assay_shrink_progress {
    const char *pass; /* that found something simpler: "dimensions" */
    const char *case_line;
    int64_t elements; /* of all tensors */
    int trials;
};

struct assay_shrink {
    const struct assay_trial_plan *plan;
    double seconds; /* begin no trial after so long; 0: ASSAY_SHRINK_SECONDS */
    int trials;     /* at most so many; 0: ASSAY_SHRINK_TRIALS */
    void (*progress)(void *context, const struct assay_shrink_progress *); /* or NULL */
    void *context;
};

struct assay_case_size {
    int64_t elements, largest; /* of all tensors; of the largest one */
};

enum assay_shrink_end {
    ASSAY_SHRINK_DONE,   /* nothing simpler fails */
    ASSAY_SHRINK_CUT,    /* trials or seconds are used up */
    ASSAY_SHRINK_PASSES, /* the case does not fail: there is nothing to shrink */
};

struct assay_shrink_outcome {
    enum assay_shrink_end end;
    struct assay_case smallest; /* the case itself when nothing simpler was found */
    struct assay_result result; /* of the smallest case under the plan; of the case itself
                                   when it passes. To be closed. */
    struct assay_case_size before, after;
    int tries, failed_tries; /* of the case itself: if not all failed, it is flaky */
    int trials;
    double seconds;
};

/* Looks for the smallest case that @from leads to. The same plan, case and number of
 * trials give the same answer as long as the candidate and the clock allow. Only the
 * checks are run that the verdict needs. A case that fails in some of ASSAY_SHRINK_TRIES
 * tries alone is flaky: smaller ones have as many tries then. Refuses what trials refuse;
 * another status is the environment's. @outcome is to be closed whatever the status. */
enum assay_status assay_shrink(const struct assay_shrink *shrink,
                               const struct assay_case *from,
                               struct assay_shrink_outcome *outcome,
                               struct assay_message *message);

void assay_shrink_outcome_close(struct assay_shrink_outcome *outcome);

#endif
