/* SPDX-License-Identifier: MIT */
/* Which classes of an operation's features the cases had, and which pairs of classes of
 * two features. */
#ifndef ASSAY_FUZZ_CAMPAIGN_COVERAGE_H
#define ASSAY_FUZZ_CAMPAIGN_COVERAGE_H

#include "verify/check/result.h"
#include "verify/operation/feature.h"

struct assay_coverage {
    int64_t cases;
    int features, classes;         /* of all features together */
    int first[ASSAY_MAX_FEATURES]; /* place of a feature's first class among them */
    uint64_t *taken;               /* bit a * classes + b: both were taken by one case */
};

struct assay_coverage_counts {
    int64_t classes, pairs;         /* taken */
    int64_t all_classes, all_pairs; /* that the table has */
};

/* ASSAY_RAN or ASSAY_OUT_OF_MEMORY. */
enum assay_status assay_coverage_open(struct assay_coverage *coverage,
                                      const struct assay_operation *operation);

/* The classes of a case as a result's note keeps them: a letter each. */
void assay_coverage_note(const struct assay_operation *operation, const int *classes,
                         char note[ASSAY_MAX_NOTE]);

/* Adds a case by its note; false when that is none of the operation. */
bool assay_coverage_add(struct assay_coverage *coverage, const char *note);

struct assay_coverage_counts assay_coverage_count(const struct assay_coverage *coverage);

void assay_coverage_close(struct assay_coverage *coverage);

#endif
