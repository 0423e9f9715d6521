/* SPDX-License-Identifier: MIT */
#include "verify/identify/knob_search.h"

#include "verify/identify/knob_rank.h"

#include <stdlib.h>

static bool is_late(const struct assay_knob_search *search)
{
    return search->has_named && assay_knob_seconds() > search->deadline;
}

/* What was found out about its twin. */
static void take_over(const struct assay_knob_space *space,
                      struct assay_knob_setting *setting)
{
    const struct assay_knob_setting *const twin = &space->item[setting->twin];
    setting->state = twin->state;
    setting->narrow = twin->narrow;
    setting->whole = twin->whole;
    setting->bits = twin->bits;
}

/* Compares the settings from @from on. */
static enum assay_status try_settings(struct assay_knob_search *search, int from)
{
    struct assay_knob_space *const space = &search->space;
    const enum assay_status status = assay_knob_stages_try(
        &search->stages, space->item + from, space->count - from, &search->was_cut_short);
    for (int i = from; i < space->count && status == ASSAY_RAN; i++) {
        if (space->item[i].twin >= 0) take_over(space, &space->item[i]);
        search->tried += space->item[i].state != ASSAY_SETTING_UNTRIED;
        search->fits += space->item[i].state == ASSAY_SETTING_FITS;
    }
    return status;
}

static enum assay_status search_around(struct assay_knob_search *search, int row)
{
    enum assay_status status = ASSAY_RAN;
    for (int pass = 0; pass < 2 && status == ASSAY_RAN; pass++) {
        const int from = search->space.count;
        status = assay_knob_space_add_singles(&search->space, row, pass == 1);
        if (status == ASSAY_RAN) status = try_settings(search, from);
    }
    return status;
}

/* The singles of each row in turn, nearest row first; the quick choices before the
 * integers. */
static enum assay_status search_singles(struct assay_knob_search *search, const int *rows,
                                        int row_count)
{
    enum assay_status status = ASSAY_RAN;
    for (int i = 0; i < row_count && status == ASSAY_RAN; i++)
        status = search_around(search, search->space.item[rows[i]].row);
    /* Rows that make no sense for the problem may have neighbours that do. */
    const struct assay_named_numerics *const table = search->space.operation->numerics;
    for (int row = 0; table[row].name && status == ASSAY_RAN; row++)
        status = search_around(search, row);
    return status;
}

/* Pairs of the singles of one row, tier by tier. */

enum { TIERS = 4 };

static bool is_single_of(const struct assay_knob_setting *setting, int row)
{
    return setting->row == row && setting->turned == 1 &&
           setting->state == ASSAY_SETTING_DIFFERS;
}

static bool is_live(const struct assay_knob_setting *setting,
                    const struct assay_knob_setting *named)
{
    return setting->bits != named->bits || setting->narrow.parts != named->narrow.parts ||
           setting->whole.parts != named->whole.parts;
}

/* 0 for two choices that each change what was compared, 1 with an integer, 2 and 3 where
 * one of them alone changes nothing. */
static int tier_of(const struct assay_knob_setting *named,
                   const struct assay_knob_setting *a, const struct assay_knob_setting *b)
{
    return 2 * !(is_live(a, named) && is_live(b, named)) +
           (a->turns_integer || b->turns_integer);
}

static enum assay_status search_tier(struct assay_knob_search *search, int named,
                                     int tier)
{
    struct assay_knob_space *const space = &search->space;
    const int from = space->count, row = space->item[named].row;
    enum assay_status status = ASSAY_RAN;
    for (int i = 0; i < from; i++) {
        if (!is_single_of(&space->item[i], row)) continue;
        for (int j = i + 1; j < from && status == ASSAY_RAN; j++)
            if (is_single_of(&space->item[j], row) &&
                tier_of(&space->item[named], &space->item[i], &space->item[j]) == tier)
                status = assay_knob_space_add_pair(space, i, j);
    }
    return status == ASSAY_RAN ? try_settings(search, from) : status;
}

static enum assay_status search_pairs(struct assay_knob_search *search, const int *rows,
                                      int row_count)
{
    enum assay_status status = ASSAY_RAN;
    for (int tier = 0; tier < TIERS; tier++)
        for (int i = 0; i < row_count; i++) {
            if (search->fits || is_late(search) || status != ASSAY_RAN) return status;
            status = search_tier(search, rows[i], tier);
        }
    return status;
}

/* What wide ranges of integers still hold. */
static enum assay_status search_integers(struct assay_knob_search *search)
{
    const struct assay_named_numerics *const table = search->space.operation->numerics;
    enum assay_status status = ASSAY_RAN;
    for (int row = 0; table[row].name && status == ASSAY_RAN; row++) {
        const int from = search->space.count;
        status = assay_knob_space_add_integers(&search->space, row);
        if (status == ASSAY_RAN) status = try_settings(search, from);
    }
    return status;
}

static enum assay_status search_outward(struct assay_knob_search *search)
{
    enum assay_status status = assay_knob_space_add_named(&search->space);
    if (status != ASSAY_RAN) return status;
    if (search->space.count == 0 || search->observation->judged == 0) return ASSAY_RAN;
    const int row_count = search->space.count;
    int *const rows = calloc((size_t)row_count, sizeof(*rows));
    for (int i = 0; rows && i < row_count; i++)
        rows[i] = i;
    status = rows ? assay_knob_stages_open(&search->stages, search->observation,
                                           search->space.item[0].numerics)
                  : ASSAY_OUT_OF_MEMORY;
    search->stages.only_looks = search->plan.only_looks && !search->plan.with_pairs;
    if (status == ASSAY_RAN) status = try_settings(search, 0);
    search->has_named = true;
    search->stages.deadline = search->deadline;
    if (status == ASSAY_RAN) {
        assay_sort_settings(&search->space, rows, row_count, assay_compare_nearness);
        status = search_singles(search, rows, row_count);
    }
    if (status == ASSAY_RAN && search->plan.with_pairs)
        status = search_pairs(search, rows, row_count);
    if (status == ASSAY_RAN) status = search_integers(search);
    free(rows);
    return status;
}

enum assay_status assay_knob_search_run(const struct assay_observation *observation,
                                        const struct assay_knob_search_plan *plan,
                                        struct assay_knob_search *search)
{
    *search = (struct assay_knob_search){
        .space = { .operation = observation->operation, .problem = observation->problem },
        .observation = observation,
        .plan = *plan,
        .deadline = assay_knob_seconds() + plan->seconds,
    };
    return search_outward(search);
}

enum assay_status assay_knob_search_finish(struct assay_knob_search *search, int *setting,
                                           int *count, double seconds)
{
    struct assay_knob_space *const space = &search->space;
    enum assay_status status = ASSAY_RAN;
    int left = 0;
    search->stages.deadline = assay_knob_seconds() + seconds;
    for (int i = 0; i < *count && status == ASSAY_RAN; i++) {
        struct assay_knob_setting *const item = &space->item[setting[i]];
        struct assay_knob_setting *const first =
            item->twin >= 0 ? &space->item[item->twin] : item;
        status = assay_knob_stages_finish(&search->stages, first, &search->was_cut_short);
        if (item->twin >= 0) take_over(space, item);
        if (item->state == ASSAY_SETTING_FITS) setting[left++] = setting[i];
    }
    *count = search->fits = left;
    return status;
}

enum assay_status assay_knob_search_count(struct assay_knob_search *search, int index)
{
    return assay_knob_stages_count(&search->stages, &search->space.item[index]);
}

void assay_knob_search_close(struct assay_knob_search *search)
{
    assay_knob_stages_close(&search->stages);
    assay_knob_space_close(&search->space);
    *search = (struct assay_knob_search){ 0 };
}
