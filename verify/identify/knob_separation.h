/* SPDX-License-Identifier: MIT */
/* Further cases for a live candidate, which tell apart settings that one case could
 * not. */
#ifndef ASSAY_VERIFY_IDENTIFY_KNOB_SEPARATION_H
#define ASSAY_VERIFY_IDENTIFY_KNOB_SEPARATION_H

#include "verify/backend/backend.h"
#include "verify/identify/knob_space.h"

struct assay_separation_plan {
    const struct assay_backend *backend; /* the candidate */
    void *state;
    const struct assay_case *the_case;        /* that the settings fit */
    const struct assay_named_numerics *usual; /* the default ones of that case */
    double seconds;                           /* after which no further case is begun */
};

struct assay_separation {
    int cases; /* looked at: the settings were computed */
    int runs;  /* of the candidate */
    bool was_cut_short;
    char refuted_by[ASSAY_MAX_CASE_LINE]; /* the case that no setting fits, or "" */
};

/* Drops from @setting, *@count places in @space, those that the candidate does not have.
 * First come cases of the same shape, one for each kind of data, then random ones of the
 * operation that have the same numerics by default, until one setting is left or a row of
 * them tells nothing more. The first of these confirm what is left as well; on later ones
 * the candidate is not run where the settings agree. A setting that makes no sense for a
 * case is not touched by it. Fails as the candidate does; cases that it does not support
 * or refuses are passed over. */
enum assay_status assay_knobs_separate(const struct assay_separation_plan *plan,
                                       const struct assay_knob_space *space, int *setting,
                                       int *count, struct assay_separation *separation,
                                       struct assay_message *message);

#endif
