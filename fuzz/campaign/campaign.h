/* SPDX-License-Identifier: MIT */
/* The cases of a fuzz campaign. Case number i is a pure function of the campaign's
 * settings, the generator's version and i, so that a campaign can be stopped, gone on
 * with, shared out and repeated case by case.
 *
 * With n operations, every n consecutive numbers from a multiple of n on have each
 * operation once, rotated by an amount that changes from one such block to the next: any
 * share of the numbers meets them all. Block number p takes entry p of a permutation of
 * the operation's tuples of classes (draw.h), then of another one. One number in every 16
 * is given to what is illegal (negative.h). */
#ifndef ASSAY_FUZZ_CAMPAIGN_CAMPAIGN_H
#define ASSAY_FUZZ_CAMPAIGN_CAMPAIGN_H

#include "fuzz/campaign/negative.h"
#include "verify/operation/draw.h"

enum {
    ASSAY_CAMPAIGN_VERSION = 1, /* raised when a number means another case */
    ASSAY_CAMPAIGN_MAX_OPERATIONS = 64,
    ASSAY_CAMPAIGN_NEGATIVE_PERIOD = 16,
};

struct assay_campaign {
    const struct assay_operation *operation[ASSAY_CAMPAIGN_MAX_OPERATIONS];
    int operations; /* at least 1 */
    uint64_t seed;
    /* At most so many a case, where the operation has so small ones; times its
     * campaign_scale. */
    double multiply_adds;
    int64_t shape_pool; /* so many shapes an operation, for kernels that are compiled for
                           each; 0: any */
};

struct assay_campaign_case {
    const struct assay_operation *operation;
    const struct assay_negative *negative; /* NULL: a legal case */
    char line[ASSAY_MAX_CASE_LINE];
    int classes[ASSAY_MAX_FEATURES]; /* of a legal case; see draw.h */
};

/* Both without drawing the case. */
int assay_campaign_operation(const struct assay_campaign *campaign, int64_t number);
const struct assay_negative *assay_campaign_negative(const struct assay_campaign *,
                                                     int64_t number);

void assay_campaign_draw(const struct assay_campaign *campaign, int64_t number,
                         struct assay_campaign_case *drawn);

/* A hash of what the tables of features say: with other tables numbers mean other
 * cases. */
uint64_t assay_campaign_hash(const struct assay_campaign *campaign);

#endif
