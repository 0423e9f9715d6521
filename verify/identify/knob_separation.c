/* SPDX-License-Identifier: MIT */
#include "verify/identify/knob_separation.h"

#include "verify/check/inputs.h"
#include "verify/data/clock.h"
#include "verify/identify/candidate.h"
#include "verify/identify/observation.h"
#include "verify/operation/draw.h"
#include "verify/operation/parts.h"

#include <stdlib.h>
#include <string.h>

enum {
    CONFIRMING_DRAWS = 8, /* run whether the settings differ or not */
    DRAWS = 240,          /* random cases at most, those of no use included */
    FRUITLESS_DRAWS = 30, /* in a row: nothing more is to be learned */
    SMALL_COST = 1 << 19, /* multiply-adds */
    LARGE_COST = 1 << 22, /* elements enough for what seldom shows */
    CHOICE = 6,           /* draws for a large one */
    SAME_SHAPE_COST = 1 << 25,
};

struct member {
    int setting;
    bool is_legal, is_dropped;
    _Alignas(max_align_t) char settled[ASSAY_MAX_NUMERICS_BYTES];
    int twin;      /* the first member that computes the same on this case; -1: itself */
    uint64_t bits; /* hash of all judged elements it computes */
};

/* One further case at work. */
struct further {
    const struct assay_separation_plan *plan;
    const struct assay_knob_space *space;
    struct member *member;
    int count;
    struct assay_case the_case;
    union assay_problem_storage problem;
    struct assay_tensors tensors;
    struct assay_buffers buffers;
    struct assay_observation observation;
};

static bool is_useful(const struct further *further, const struct assay_case *the_case,
                      void *problem)
{
    const struct assay_operation *const operation = the_case->operation;
    struct assay_message ignored;
    return operation->bind(the_case, problem, &ignored) == ASSAY_RAN &&
           operation->default_numerics(problem) == further->plan->usual &&
           operation->cost(problem).multiply_adds <= SAME_SHAPE_COST;
}

/* Draw @draw of the operation: the kinds of data take turns, in one round with large
 * cases, in the next with small ones. Of several draws one of the kind is taken, if there
 * is any; the largest in a round of large ones, for many have next to nothing to
 * compute. */
static bool draw_case(struct further *further, int draw)
{
    const struct assay_case *const first = further->plan->the_case;
    const struct assay_operation *const operation = first->operation;
    const enum assay_data_kind kind = (enum assay_data_kind)(draw % ASSAY_DATA_RECORDED);
    const bool is_large = draw / ASSAY_DATA_RECORDED % 2 == 0;
    double largest = -1;
    for (int i = 0; i < CHOICE; i++) {
        struct assay_case made;
        struct assay_stream stream;
        assay_stream_open(&stream, first->seed, operation->name, "separation",
                          draw * CHOICE + i);
        assay_draw(operation, &stream, is_large ? LARGE_COST : SMALL_COST, &made);
        strcpy(made.numerics, first->numerics);
        if (!is_useful(further, &made, &further->problem)) continue;
        const double cost = operation->cost(&further->problem).multiply_adds;
        const double size =
            (is_large ? cost : 0) + (made.data == kind ? SAME_SHAPE_COST : 0);
        if (size <= largest) continue;
        largest = size;
        further->the_case = made;
    }
    return largest >= 0 && is_useful(further, &further->the_case, &further->problem);
}

/* Further case @index: false when it would be too large, is no case of the operation, or
 * usually has other numerics. */
static bool make_case(struct further *further, int index)
{
    const struct assay_case *const first = further->plan->the_case;
    struct assay_case *const made = &further->the_case;
    if (index >= ASSAY_DATA_RECORDED)
        return draw_case(further, index - ASSAY_DATA_RECORDED);
    *made = *first;
    made->data = (enum assay_data_kind)index;
    made->seed = first->seed + 1;
    made->explicit_bits_count = 0;
    return assay_operation_takes(first->operation, made->data) &&
           is_useful(further, made, &further->problem);
}

/* Which members make sense for the case, and which of them need not be computed. Returns
 * how many have to. */
static int settle_members(struct further *further)
{
    const struct assay_operation *const operation = further->space->operation;
    int distinct = 0;
    for (int i = 0; i < further->count; i++) {
        struct member *const member = &further->member[i];
        const void *const numerics = further->space->item[member->setting].numerics;
        struct assay_message ignored;
        member->twin = -1;
        member->is_legal =
            !member->is_dropped &&
            operation->check_numerics(&further->problem, numerics, &ignored) == ASSAY_RAN;
        if (!member->is_legal) continue;
        assay_knobs_settle(operation, &further->problem, numerics, member->settled);
        for (int j = 0; j < i && member->twin < 0; j++)
            if (further->member[j].is_legal &&
                assay_knobs_are_equal(operation, further->member[j].settled,
                                      member->settled))
                member->twin = j;
        distinct += member->twin < 0;
    }
    return distinct;
}

static enum assay_status compute_member(void *context, int64_t index)
{
    struct further *const further = context;
    struct member *const member = &further->member[index];
    const void *const numerics = further->space->item[member->setting].numerics;
    struct assay_scratch scratch;
    member->bits = 0;
    if (!member->is_legal || member->twin >= 0) return ASSAY_RAN;
    enum assay_status status = assay_scratch_open(&further->observation, &scratch);
    for (int64_t part = 0; part < further->observation.parts && status == ASSAY_RAN;
         part++) {
        struct assay_part_comparison comparison;
        status = assay_compare_part(&further->observation, numerics, &scratch, part,
                                    &comparison);
        member->bits = member->bits * UINT64_C(0x9E3779B97F4A7C15) + comparison.bits;
    }
    assay_scratch_close(&scratch);
    return status;
}

static enum assay_status compute_members(struct further *further)
{
    const enum assay_status status =
        assay_for_each_part(further->count, compute_member, further);
    for (int i = 0; i < further->count; i++)
        if (further->member[i].twin >= 0)
            further->member[i].bits = further->member[further->member[i].twin].bits;
    return status;
}

static bool members_differ(const struct further *further)
{
    const struct member *first = NULL;
    for (int i = 0; i < further->count; i++) {
        if (!further->member[i].is_legal) continue;
        if (first && first->bits != further->member[i].bits) return true;
        first = &further->member[i];
    }
    return false;
}

/* Whether the candidate's outputs are those of the member. */
static enum assay_status fits(struct further *further, const struct member *member,
                              bool *is_equal)
{
    const void *const numerics = further->space->item[member->setting].numerics;
    struct assay_scratch scratch;
    enum assay_status status = assay_scratch_open(&further->observation, &scratch);
    *is_equal = true;
    for (int64_t part = 0;
         part < further->observation.parts && status == ASSAY_RAN && *is_equal; part++) {
        struct assay_part_comparison comparison;
        status = assay_compare_part(&further->observation, numerics, &scratch, part,
                                    &comparison);
        *is_equal = status == ASSAY_RAN && comparison.equal == comparison.elements;
    }
    assay_scratch_close(&scratch);
    return status;
}

/* Drops what the candidate is not; members with the same bits stand or fall together. */
static enum assay_status drop_members(struct further *further)
{
    enum assay_status status = ASSAY_RAN;
    for (int i = 0; i < further->count && status == ASSAY_RAN; i++) {
        struct member *const first = &further->member[i];
        bool is_equal;
        if (!first->is_legal) continue;
        status = fits(further, first, &is_equal);
        for (int j = i; j < further->count && status == ASSAY_RAN; j++) {
            struct member *const member = &further->member[j];
            if (!member->is_legal || member->bits != first->bits || j == i) continue;
            member->is_legal = false;
            member->is_dropped = !is_equal;
        }
        first->is_legal = false;
        first->is_dropped = !is_equal;
    }
    return status;
}

/* Runs the candidate if the settings differ, or to confirm them. */
static enum assay_status run_case(struct further *further, bool confirms,
                                  struct assay_separation *separation,
                                  struct assay_message *message)
{
    if (settle_members(further) < 2 && !confirms) return ASSAY_RAN;
    enum assay_status status =
        assay_inputs_open(&further->the_case, NULL, 0, &further->problem,
                          &further->tensors, &further->buffers, message);
    if (status == ASSAY_REFUSED) return ASSAY_RAN;
    if (status != ASSAY_RAN) return status;
    further->observation = (struct assay_observation){
        .operation = further->space->operation,
        .problem = &further->problem,
        .tensors = &further->tensors,
    };
    status = assay_observation_open(&further->observation);
    if (status == ASSAY_RAN) status = compute_members(further);
    if (status != ASSAY_RAN)
        return assay_fail(message, status, "no memory for a further case");
    separation->cases++;
    if (!members_differ(further) && !confirms) return ASSAY_RAN;
    const struct assay_run_call call = { .the_case = &further->the_case,
                                         .problem = &further->problem,
                                         .tensors = &further->tensors };
    status = assay_candidate_run(further->plan->backend, further->plan->state, &call,
                                 &further->buffers, message);
    if (status == ASSAY_UNSUPPORTED || status == ASSAY_REFUSED) return ASSAY_RAN;
    if (status != ASSAY_RAN) return status;
    separation->runs++;
    status = drop_members(further);
    return status == ASSAY_RAN
               ? status
               : assay_fail(message, status, "no memory for a further case");
}

static int members_left(const struct further *further)
{
    int left = 0;
    for (int i = 0; i < further->count; i++)
        left += !further->member[i].is_dropped;
    return left;
}

static enum assay_status run_cases(struct further *further,
                                   struct assay_separation *separation,
                                   struct assay_message *message)
{
    const double deadline = assay_clock_seconds() + further->plan->seconds;
    int fruitless = 0, confirmed = 0;
    for (int i = 0; i < ASSAY_DATA_RECORDED + DRAWS; i++) {
        const int before = members_left(further), cases = separation->cases;
        const bool is_draw = confirmed == CONFIRMING_DRAWS;
        if (before == 0 || fruitless == FRUITLESS_DRAWS || (is_draw && before == 1))
            break;
        if (!make_case(further, i)) continue;
        confirmed += i >= ASSAY_DATA_RECORDED && !is_draw;
        separation->was_cut_short = assay_clock_seconds() > deadline;
        if (separation->was_cut_short) break;
        const enum assay_status status = run_case(further, !is_draw, separation, message);
        assay_observation_close(&further->observation);
        assay_buffers_close(&further->buffers);
        if (status != ASSAY_RAN) return status;
        const int after = members_left(further);
        if (after == 0)
            assay_case_format(&further->the_case, separation->refuted_by,
                              sizeof(separation->refuted_by));
        if (after < before || !is_draw)
            fruitless = 0;
        else
            fruitless += separation->cases > cases;
    }
    return ASSAY_RAN;
}

enum assay_status assay_knobs_separate(const struct assay_separation_plan *plan,
                                       const struct assay_knob_space *space, int *setting,
                                       int *count, struct assay_separation *separation,
                                       struct assay_message *message)
{
    *separation = (struct assay_separation){ 0 };
    struct further *const further = calloc(1, sizeof(*further));
    struct member *const member = calloc((size_t)*count + 1, sizeof(*member));
    enum assay_status status =
        further && member
            ? ASSAY_RAN
            : assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for further cases");
    if (status == ASSAY_RAN) {
        further->plan = plan;
        further->space = space;
        further->member = member;
        further->count = *count;
        for (int i = 0; i < *count; i++)
            member[i].setting = setting[i];
        status = run_cases(further, separation, message);
        *count = 0;
        for (int i = 0; i < further->count; i++)
            if (!member[i].is_dropped) setting[(*count)++] = member[i].setting;
    }
    free(member);
    free(further);
    return status;
}
