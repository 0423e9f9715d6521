/* SPDX-License-Identifier: MIT */
/* Settings through the parts of an observation. A few rows of a large problem come first,
 * as a problem of their own (the operation's hook `narrow`), then the whole. In each,
 * parts that are quickly computed come first; a setting is dropped at its first part with
 * a difference, and what survives a few of them goes on through the others. */
#ifndef ASSAY_VERIFY_IDENTIFY_KNOB_STAGE_H
#define ASSAY_VERIFY_IDENTIFY_KNOB_STAGE_H

#include "verify/identify/knob_space.h"
#include "verify/identify/observation.h"

struct assay_knob_stage {
    struct assay_observation observation; /* parts 0: there is no such stage */
    int64_t *order;                       /* of parts */
};

struct assay_knob_stages {
    union assay_problem_storage problem; /* of the narrow stage */
    struct assay_tensors windows;
    struct assay_knob_stage narrow, whole;
    double deadline; /* on the clock of assay_knob_seconds */
    bool only_looks; /* what fits goes no further than the first part of the whole */
};

/* Seconds on a steady clock. */
double assay_knob_seconds(void);

/* Orders the parts by the time that @numerics take for a few of them. To be closed
 * whatever the status (ASSAY_RAN, ASSAY_OUT_OF_MEMORY); the observation must outlive the
 * stages, which borrow from it. */
enum assay_status assay_knob_stages_open(struct assay_knob_stages *stages,
                                         const struct assay_observation *observation,
                                         const void *numerics);
void assay_knob_stages_close(struct assay_knob_stages *stages);

/* Compares @count settings, those with a twin left out. Behind the deadline nothing new
 * is begun: settings stay untried or, *@was_late, fit in less than all parts. */
enum assay_status assay_knob_stages_try(const struct assay_knob_stages *stages,
                                        struct assay_knob_setting *setting, int count,
                                        bool *was_late);

/* Takes a setting that fits through the parts that are left, until one differs. */
enum assay_status assay_knob_stages_finish(const struct assay_knob_stages *stages,
                                           struct assay_knob_setting *setting,
                                           bool *was_late);

/* Takes a setting that differs through all parts of the whole, time permitting. */
enum assay_status assay_knob_stages_count(const struct assay_knob_stages *stages,
                                          struct assay_knob_setting *setting);

#endif
