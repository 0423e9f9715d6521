/* SPDX-License-Identifier: MIT */
#include "verify/identify/knob_search.h"

#include "verify/identify/knob_rank.h"
#include "verify/operation/parts.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* So many parts decide whether a setting goes on through the others. */
enum { FIRST_PARTS = 4 };

static double now_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool is_late(const struct assay_knob_search *search)
{
    return search->has_named && now_seconds() > search->deadline;
}

/* The order of parts: by time taken, in steps of 2, then by number. */

struct timed_part {
    int64_t part;
    int step;
};

struct clocking {
    const struct assay_knob_search *search;
    struct assay_scratch scratch;
    struct timed_part *part;
};

static enum assay_status clock_part(void *context, int64_t part)
{
    struct clocking *const clocking = context;
    const struct assay_knob_search *const search = clocking->search;
    struct assay_part_comparison ignored;
    const double start = now_seconds();
    const enum assay_status status =
        assay_compare_part(search->observation, search->space.item[0].numerics,
                           &clocking->scratch, part, &ignored);
    clocking->part[part] =
        (struct timed_part){ part, (int)floor(log2(now_seconds() - start + 1e-7)) };
    return status;
}

static int by_time(const void *a, const void *b)
{
    const struct timed_part *const first = a, *const second = b;
    if (first->step != second->step) return first->step < second->step ? -1 : 1;
    return first->part < second->part ? -1 : 1;
}

static enum assay_status order_parts(struct assay_knob_search *search)
{
    const int64_t parts = search->observation->parts;
    struct clocking clocking = { .search = search };
    clocking.part = calloc((size_t)parts + 1, sizeof(*clocking.part));
    search->order = calloc((size_t)parts + 1, sizeof(*search->order));
    enum assay_status status =
        clocking.part && search->order
            ? assay_scratch_open(search->observation, &clocking.scratch)
            : ASSAY_OUT_OF_MEMORY;
    if (status == ASSAY_RAN) status = assay_for_each_part(parts, clock_part, &clocking);
    if (status == ASSAY_RAN) {
        qsort(clocking.part, (size_t)parts, sizeof(*clocking.part), by_time);
        for (int64_t i = 0; i < parts; i++)
            search->order[i] = clocking.part[i].part;
    }
    assay_scratch_close(&clocking.scratch);
    free(clocking.part);
    return status;
}

/* One setting through the first parts; many settings side by side. */

struct first_round {
    const struct assay_knob_search *search;
    int from; /* and all behind it */
};

static enum assay_status compare_next(const struct assay_knob_search *search,
                                      struct assay_knob_setting *setting,
                                      struct assay_scratch *scratch)
{
    struct assay_part_comparison comparison;
    const enum assay_status status =
        assay_compare_part(search->observation, setting->numerics, scratch,
                           search->order[setting->parts], &comparison);
    if (status != ASSAY_RAN) return status;
    setting->parts++;
    setting->bits = setting->bits * UINT64_C(0x9E3779B97F4A7C15) + comparison.bits;
    setting->equal += comparison.equal;
    setting->elements += comparison.elements;
    setting->state = comparison.equal == comparison.elements ? ASSAY_SETTING_FITS
                                                             : ASSAY_SETTING_DIFFERS;
    return ASSAY_RAN;
}

static enum assay_status try_first_parts(void *context, int64_t index)
{
    const struct first_round *const round = context;
    const struct assay_knob_search *const search = round->search;
    struct assay_knob_setting *const setting = &search->space.item[round->from + index];
    struct assay_scratch scratch;
    if (is_late(search)) return ASSAY_RAN;
    enum assay_status status = assay_scratch_open(search->observation, &scratch);
    while (status == ASSAY_RAN && setting->state != ASSAY_SETTING_DIFFERS &&
           setting->parts < FIRST_PARTS && setting->parts < search->observation->parts)
        status = compare_next(search, setting, &scratch);
    assay_scratch_close(&scratch);
    return status;
}

/* One setting through its other parts, side by side. */

struct second_round {
    const struct assay_knob_search *search;
    struct assay_knob_setting *setting;
    struct assay_scratch scratch;
    int64_t from;
    bool counts_all; /* goes on behind a difference */
    atomic_bool has_difference, was_late;
    _Atomic int64_t parts, equal, elements;
};

static enum assay_status try_part(void *context, int64_t index)
{
    struct second_round *const round = context;
    const struct assay_knob_search *const search = round->search;
    struct assay_part_comparison comparison;
    if (round->has_difference && !round->counts_all) return ASSAY_RAN;
    if (is_late(search)) {
        round->was_late = true;
        return ASSAY_RAN;
    }
    const enum assay_status status =
        assay_compare_part(search->observation, round->setting->numerics, &round->scratch,
                           search->order[round->from + index], &comparison);
    if (status != ASSAY_RAN) return status;
    round->parts++;
    round->equal += comparison.equal;
    round->elements += comparison.elements;
    if (comparison.equal != comparison.elements) round->has_difference = true;
    return ASSAY_RAN;
}

static enum assay_status try_other_parts(struct assay_knob_search *search,
                                         struct assay_knob_setting *setting,
                                         bool counts_all)
{
    struct second_round round = { .search = search,
                                  .setting = setting,
                                  .from = setting->parts,
                                  .counts_all = counts_all };
    const int64_t left = search->observation->parts - setting->parts;
    if (left == 0) return ASSAY_RAN;
    enum assay_status status = assay_scratch_open(search->observation, &round.scratch);
    if (status == ASSAY_RAN) status = assay_for_each_part(left, try_part, &round);
    assay_scratch_close(&round.scratch);
    setting->parts += round.parts;
    setting->equal += round.equal;
    setting->elements += round.elements;
    search->was_cut_short |= round.was_late && !counts_all;
    if (round.has_difference) setting->state = ASSAY_SETTING_DIFFERS;
    return status;
}

/* Compares the settings from @from on. */
static enum assay_status try_settings(struct assay_knob_search *search, int from)
{
    struct first_round round = { search, from };
    const int count = search->space.count;
    enum assay_status status = assay_for_each_part(count - from, try_first_parts, &round);
    for (int i = from; i < count && status == ASSAY_RAN; i++) {
        struct assay_knob_setting *const setting = &search->space.item[i];
        if (setting->state == ASSAY_SETTING_FITS)
            status = try_other_parts(search, setting, false);
        search->tried += setting->state != ASSAY_SETTING_UNTRIED;
        search->was_cut_short |= setting->state == ASSAY_SETTING_UNTRIED;
        search->fits += setting->state == ASSAY_SETTING_FITS;
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
    const bool has_named_fit = search->fits > 0;
    for (int i = 0; i < row_count && status == ASSAY_RAN; i++) {
        const struct assay_knob_setting *const named = &search->space.item[rows[i]];
        if (has_named_fit && named->state != ASSAY_SETTING_FITS) break;
        status = search_around(search, named->row);
    }
    /* Rows that make no sense for the problem may have neighbours that do. */
    const struct assay_named_numerics *const table = search->space.operation->numerics;
    for (int row = 0; table[row].name && !has_named_fit && status == ASSAY_RAN; row++)
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
    return setting->bits != named->bits || setting->parts != named->parts;
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

static enum assay_status search_outward(struct assay_knob_search *search)
{
    enum assay_status status = assay_knob_space_add_named(&search->space);
    if (status != ASSAY_RAN) return status;
    if (search->space.count == 0 || search->observation->judged == 0) return ASSAY_RAN;
    const int row_count = search->space.count;
    int *const rows = calloc((size_t)row_count, sizeof(*rows));
    for (int i = 0; rows && i < row_count; i++)
        rows[i] = i;
    status = rows ? order_parts(search) : ASSAY_OUT_OF_MEMORY;
    if (status == ASSAY_RAN) status = try_settings(search, 0);
    search->has_named = true;
    if (status == ASSAY_RAN) {
        assay_sort_settings(&search->space, rows, row_count, assay_compare_nearness);
        status = search_singles(search, rows, row_count);
    }
    if (status == ASSAY_RAN && search->plan.with_pairs)
        status = search_pairs(search, rows, row_count);
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
        .deadline = now_seconds() + plan->seconds,
    };
    return search_outward(search);
}

enum assay_status assay_knob_search_count(struct assay_knob_search *search, int index)
{
    return try_other_parts(search, &search->space.item[index], true);
}

void assay_knob_search_close(struct assay_knob_search *search)
{
    free(search->order);
    assay_knob_space_close(&search->space);
    *search = (struct assay_knob_search){ 0 };
}
