/* SPDX-License-Identifier: MIT */
/* Which settings of an operation's knobs reproduce given bits.
 *
 * The search goes outward from the named numerics: all of them are compared, then what
 * lies one knob away from each, the nearest first. Pairs of knobs are tried on request
 * when nothing has fit, those first that each change something and have no integer among
 * them; they end behind the first named numerics with a pair that fits. Last come the
 * integers of wide ranges that were left out, so that without pairs the answer holds
 * every setting that lies at most one knob away from named numerics and fits. */
#ifndef ASSAY_VERIFY_IDENTIFY_KNOB_SEARCH_H
#define ASSAY_VERIFY_IDENTIFY_KNOB_SEARCH_H

#include "verify/identify/knob_stage.h"

struct assay_knob_search_plan {
    bool with_pairs;
    bool only_looks; /* leaves most parts to assay_knob_search_finish; not with pairs */
    double
        seconds; /* after which nothing new is begun, once the named ones are compared */
};

struct assay_knob_search {
    struct assay_knob_space space;
    const struct assay_observation *observation;
    struct assay_knob_search_plan plan;
    double deadline;
    bool has_named; /* all of them are compared: from now on the clock counts */
    struct assay_knob_stages stages;
    int tried, fits;
    bool was_cut_short; /* by the clock */
};

/* Searches. To be closed whatever the status (ASSAY_RAN, ASSAY_OUT_OF_MEMORY); the
 * observation must outlive the search. */
enum assay_status assay_knob_search_run(const struct assay_observation *observation,
                                        const struct assay_knob_search_plan *plan,
                                        struct assay_knob_search *search);

/* Takes those of @setting, *@count places, that fit through the parts that are left, and
 * drops those that then differ. Begins nothing new after @seconds. ASSAY_RAN or
 * ASSAY_OUT_OF_MEMORY. */
enum assay_status assay_knob_search_finish(struct assay_knob_search *search, int *setting,
                                           int *count, double seconds);

/* Counts the equal elements of a setting that differs over the parts that are left too,
 * time permitting: ASSAY_RAN or ASSAY_OUT_OF_MEMORY. */
enum assay_status assay_knob_search_count(struct assay_knob_search *search, int index);

void assay_knob_search_close(struct assay_knob_search *search);

#endif
