/* SPDX-License-Identifier: MIT */
#include "verify/identify/knob_stage.h"

#include "verify/operation/parts.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum {
    FIRST_PARTS = 4,    /* decide whether a setting goes on through the others */
    FEW_SETTINGS = 8,   /* share out parts between threads rather than settings */
    CLOCKED_PARTS = 16, /* of which the quickest come first */
};

double assay_knob_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool is_late(const struct assay_knob_stages *stages)
{
    return assay_knob_seconds() > stages->deadline;
}

/* The order of parts: a few, evenly spread, by time taken in steps of 2, then the others,
 * by number; those without an element to judge come last. */

enum { NOT_CLOCKED = INT_MAX - 1, NOTHING_TO_JUDGE = INT_MAX };

struct timed_part {
    int64_t part;
    int step;
};

struct clocking {
    const struct assay_observation *observation;
    const void *numerics;
    struct assay_scratch scratch;
    struct timed_part *part;
};

static enum assay_status clock_part(void *context, int64_t index)
{
    struct clocking *const clocking = context;
    const int64_t parts = clocking->observation->parts;
    const int64_t part = parts <= CLOCKED_PARTS ? index : index * parts / CLOCKED_PARTS;
    struct assay_part_comparison comparison;
    const double start = assay_knob_seconds();
    const enum assay_status status = assay_compare_part(
        clocking->observation, clocking->numerics, &clocking->scratch, part, &comparison);
    const double seconds = assay_knob_seconds() - start;
    clocking->part[part].step = (int)floor(log2(seconds + 1e-7));
    return status;
}

static int by_time(const void *a, const void *b)
{
    const struct timed_part *const first = a, *const second = b;
    if (first->step != second->step) return first->step < second->step ? -1 : 1;
    return first->part < second->part ? -1 : 1;
}

static enum assay_status order_parts(struct assay_knob_stage *stage, const void *numerics)
{
    const int64_t parts = stage->observation.parts;
    struct clocking clocking = { .observation = &stage->observation,
                                 .numerics = numerics };
    if (parts == 0) return ASSAY_RAN;
    clocking.part = calloc((size_t)parts + 1, sizeof(*clocking.part));
    stage->order = calloc((size_t)parts + 1, sizeof(*stage->order));
    enum assay_status status =
        clocking.part && stage->order
            ? assay_scratch_open(&stage->observation, &clocking.scratch)
            : ASSAY_OUT_OF_MEMORY;
    for (int64_t i = 0; i < parts && status == ASSAY_RAN; i++)
        clocking.part[i] = (struct timed_part){ i, NOT_CLOCKED };
    if (status == ASSAY_RAN)
        status = assay_for_each_part(parts < CLOCKED_PARTS ? parts : CLOCKED_PARTS,
                                     clock_part, &clocking);
    if (status == ASSAY_RAN) {
        for (int64_t i = 0; i < parts; i++)
            if (assay_judged_in_part(&stage->observation, i) == 0)
                clocking.part[i].step = NOTHING_TO_JUDGE;
        qsort(clocking.part, (size_t)parts, sizeof(*clocking.part), by_time);
        for (int64_t i = 0; i < parts; i++)
            stage->order[i] = clocking.part[i].part;
    }
    assay_scratch_close(&clocking.scratch);
    free(clocking.part);
    return status;
}

static enum assay_status open_narrow(struct assay_knob_stages *stages,
                                     const struct assay_observation *whole)
{
    const struct assay_operation *const operation = whole->operation;
    struct assay_observation *const narrow = &stages->narrow.observation;
    if (!operation->narrow || !operation->narrow(whole->problem, whole->tensors,
                                                 &stages->problem, &stages->windows))
        return ASSAY_RAN;
    *narrow = (struct assay_observation){
        .operation = operation,
        .problem = &stages->problem,
        .tensors = &stages->windows,
        .is_recording = whole->is_recording,
    };
    return assay_observation_open(narrow);
}

enum assay_status assay_knob_stages_open(struct assay_knob_stages *stages,
                                         const struct assay_observation *observation,
                                         const void *numerics)
{
    *stages = (struct assay_knob_stages){ .deadline = (double)INFINITY };
    enum assay_status status = open_narrow(stages, observation);
    if (status == ASSAY_RAN) status = order_parts(&stages->narrow, numerics);
    stages->whole.observation = *observation;
    return status == ASSAY_RAN ? order_parts(&stages->whole, numerics) : status;
}

void assay_knob_stages_close(struct assay_knob_stages *stages)
{
    assay_observation_close(&stages->narrow.observation);
    free(stages->narrow.order);
    free(stages->whole.order);
    *stages = (struct assay_knob_stages){ 0 };
}

/* One setting through the first parts of a stage; many settings side by side. */

struct first_round {
    const struct assay_knob_stages *stages;
    struct assay_knob_setting *setting;
};

static enum assay_status compare_next(const struct assay_knob_stage *stage,
                                      struct assay_knob_setting *setting,
                                      struct assay_knob_tally *tally,
                                      struct assay_scratch *scratch)
{
    struct assay_part_comparison comparison;
    const enum assay_status status =
        assay_compare_part(&stage->observation, setting->numerics, scratch,
                           stage->order[tally->parts], &comparison);
    if (status != ASSAY_RAN) return status;
    tally->parts++;
    tally->equal += comparison.equal;
    tally->elements += comparison.elements;
    setting->bits = setting->bits * UINT64_C(0x9E3779B97F4A7C15) + comparison.bits;
    setting->state = comparison.equal == comparison.elements ? ASSAY_SETTING_FITS
                                                             : ASSAY_SETTING_DIFFERS;
    return ASSAY_RAN;
}

static enum assay_status try_stage(const struct assay_knob_stage *stage, int limit,
                                   struct assay_knob_setting *setting,
                                   struct assay_knob_tally *tally)
{
    const int64_t parts = stage->observation.parts;
    const int64_t first = parts < limit ? parts : limit;
    struct assay_scratch scratch;
    if (first == 0 || setting->twin >= 0 || setting->state == ASSAY_SETTING_DIFFERS)
        return ASSAY_RAN;
    enum assay_status status = assay_scratch_open(&stage->observation, &scratch);
    while (status == ASSAY_RAN && setting->state != ASSAY_SETTING_DIFFERS &&
           tally->parts < first)
        status = compare_next(stage, setting, tally, &scratch);
    assay_scratch_close(&scratch);
    return status;
}

static enum assay_status try_narrow(void *context, int64_t index)
{
    const struct first_round *const round = context;
    struct assay_knob_setting *const setting = &round->setting[index];
    if (is_late(round->stages)) return ASSAY_RAN;
    return try_stage(&round->stages->narrow, FIRST_PARTS, setting, &setting->narrow);
}

static enum assay_status try_whole(void *context, int64_t index)
{
    const struct first_round *const round = context;
    struct assay_knob_setting *const setting = &round->setting[index];
    const int limit = round->stages->only_looks ? 1 : FIRST_PARTS;
    if (is_late(round->stages)) return ASSAY_RAN;
    return try_stage(&round->stages->whole, limit, setting, &setting->whole);
}

/* Settings through their other parts, side by side. */

struct second_round {
    const struct assay_knob_stages *stages;
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
    const struct assay_knob_stage *const whole = &round->stages->whole;
    struct assay_part_comparison comparison;
    if (round->has_difference && !round->counts_all) return ASSAY_RAN;
    if (is_late(round->stages)) {
        round->was_late = true;
        return ASSAY_RAN;
    }
    const enum assay_status status =
        assay_compare_part(&whole->observation, round->setting->numerics, &round->scratch,
                           whole->order[round->from + index], &comparison);
    if (status != ASSAY_RAN) return status;
    round->parts++;
    round->equal += comparison.equal;
    round->elements += comparison.elements;
    if (comparison.equal != comparison.elements) round->has_difference = true;
    return ASSAY_RAN;
}

static enum assay_status try_other_parts(const struct assay_knob_stages *stages,
                                         struct assay_knob_setting *setting,
                                         bool counts_all, bool *was_late)
{
    struct second_round round = { .stages = stages,
                                  .setting = setting,
                                  .from = setting->whole.parts,
                                  .counts_all = counts_all };
    const struct assay_observation *const observation = &stages->whole.observation;
    const int64_t left = observation->parts - setting->whole.parts;
    if (left == 0) return ASSAY_RAN;
    enum assay_status status = assay_scratch_open(observation, &round.scratch);
    if (status == ASSAY_RAN) status = assay_for_each_part(left, try_part, &round);
    assay_scratch_close(&round.scratch);
    setting->whole.parts += round.parts;
    setting->whole.equal += round.equal;
    setting->whole.elements += round.elements;
    *was_late |= round.was_late;
    if (round.has_difference) setting->state = ASSAY_SETTING_DIFFERS;
    return status;
}

enum assay_status assay_knob_stages_try(const struct assay_knob_stages *stages,
                                        struct assay_knob_setting *setting, int count,
                                        bool *was_late)
{
    struct first_round round = { stages, setting };
    enum assay_status status = ASSAY_RAN;
    int left = count;
    if (stages->narrow.observation.parts) {
        status = assay_for_each_part(count, try_narrow, &round);
        for (int i = 0; i < count; i++)
            left -= setting[i].state != ASSAY_SETTING_FITS;
    }
    if (status == ASSAY_RAN && (left > FEW_SETTINGS || left == count))
        status = assay_for_each_part(count, try_whole, &round);
    for (int i = 0; i < count && status == ASSAY_RAN; i++) {
        if (setting[i].state == ASSAY_SETTING_FITS && !stages->only_looks)
            status = try_other_parts(stages, &setting[i], false, was_late);
        *was_late |= setting[i].twin < 0 && setting[i].state == ASSAY_SETTING_UNTRIED;
    }
    return status;
}

enum assay_status assay_knob_stages_finish(const struct assay_knob_stages *stages,
                                           struct assay_knob_setting *setting,
                                           bool *was_late)
{
    return setting->state == ASSAY_SETTING_FITS
               ? try_other_parts(stages, setting, false, was_late)
               : ASSAY_RAN;
}

enum assay_status assay_knob_stages_count(const struct assay_knob_stages *stages,
                                          struct assay_knob_setting *setting)
{
    bool ignored = false;
    return try_other_parts(stages, setting, true, &ignored);
}
