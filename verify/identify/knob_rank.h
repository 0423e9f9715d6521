/* SPDX-License-Identifier: MIT */
/* Settings in order: by how near they came, and by how few knobs are turned. */
#ifndef ASSAY_VERIFY_IDENTIFY_KNOB_RANK_H
#define ASSAY_VERIFY_IDENTIFY_KNOB_RANK_H

#include "verify/identify/knob_space.h"

/* Below 0 where @a comes before @b, 0 where neither does. */
typedef int assay_setting_order(const struct assay_knob_setting *a,
                                const struct assay_knob_setting *b);

/* What came through more parts, then what has more equal elements in those compared. */
assay_setting_order assay_compare_nearness;
/* The larger share of equal elements. */
assay_setting_order assay_compare_share;
/* What was compared in more parts, then fewer knobs turned. */
assay_setting_order assay_compare_turned;

/* Sorts @index, places in the space; equals keep their order. */
void assay_sort_settings(const struct assay_knob_space *space, int *index, int count,
                         assay_setting_order *order);

/* The places of all settings in that state, in the order of the space. @index has room
 * for space->count. Returns how many. */
int assay_settings_in_state(const struct assay_knob_space *space,
                            enum assay_setting_state state, int *index);

/* What was compared of the whole or, if nothing, of the few rows looked at first. */
const struct assay_knob_tally *
assay_setting_tally(const struct assay_knob_setting *setting);

/* Equal elements among those compared, 0 to 1. */
double assay_setting_share(const struct assay_knob_setting *setting);

#endif
