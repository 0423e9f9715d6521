/* SPDX-License-Identifier: MIT */
#include "verify/identify/knob_rank.h"

const struct assay_knob_tally *
assay_setting_tally(const struct assay_knob_setting *setting)
{
    return setting->whole.elements ? &setting->whole : &setting->narrow;
}

double assay_setting_share(const struct assay_knob_setting *setting)
{
    const struct assay_knob_tally *const tally = assay_setting_tally(setting);
    return tally->elements ? (double)tally->equal / (double)tally->elements : 0;
}

int assay_compare_share(const struct assay_knob_setting *a,
                        const struct assay_knob_setting *b)
{
    const double first = assay_setting_share(a), second = assay_setting_share(b);
    return (first < second) - (first > second);
}

static int64_t equal_parts(const struct assay_knob_setting *setting)
{
    return setting->narrow.parts + setting->whole.parts -
           (setting->state == ASSAY_SETTING_DIFFERS);
}

int assay_compare_nearness(const struct assay_knob_setting *a,
                           const struct assay_knob_setting *b)
{
    const int64_t first = equal_parts(a), second = equal_parts(b);
    if (first != second) return first > second ? -1 : 1;
    return assay_compare_share(a, b);
}

int assay_compare_turned(const struct assay_knob_setting *a,
                         const struct assay_knob_setting *b)
{
    if (a->whole.parts != b->whole.parts) return a->whole.parts > b->whole.parts ? -1 : 1;
    return a->turned - b->turned;
}

void assay_sort_settings(const struct assay_knob_space *space, int *index, int count,
                         assay_setting_order *order)
{
    for (int i = 1; i < count; i++) {
        const int moved = index[i];
        int at = i;
        for (; at > 0 && order(&space->item[moved], &space->item[index[at - 1]]) < 0;
             at--)
            index[at] = index[at - 1];
        index[at] = moved;
    }
}

int assay_settings_in_state(const struct assay_knob_space *space,
                            enum assay_setting_state state, int *index)
{
    int count = 0;
    for (int i = 0; i < space->count; i++)
        if (space->item[i].state == state) index[count++] = i;
    return count;
}
