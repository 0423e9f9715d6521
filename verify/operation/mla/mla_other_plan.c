/* SPDX-License-Identifier: MIT */
/* Relations between attention runs under different plans. */
#include "ref/kernel/mla_plan.h"
#include "verify/operation/mla/mla_properties.h"

bool assay_mla_is_derived(struct assay_case *second)
{
    union assay_problem_storage problem;
    struct assay_message message;
    if (second->data == ASSAY_DATA_EXACT) second->data = ASSAY_DATA_NORMAL;
    return second->operation->bind(second, &problem, &message) == ASSAY_RAN;
}

/* A recorded plan may be anybody's, whatever the case says. */
static bool derive_plan(struct assay_case *second, enum assay_mla_plan_choice choice)
{
    if (second->data != ASSAY_DATA_RECORDED &&
        assay_case_value(second, "plan") == (int64_t)choice)
        return false;
    assay_case_set(second, "plan", (int64_t)choice);
    return assay_mla_is_derived(second);
}

bool assay_mla_derive_scheduler(const struct assay_property_run *first,
                                struct assay_case *second)
{
    (void)first;
    return derive_plan(second, ASSAY_MLA_PLAN_SCHEDULER);
}

bool assay_mla_derive_whole(const struct assay_property_run *first,
                            struct assay_case *second)
{
    (void)first;
    return derive_plan(second, ASSAY_MLA_PLAN_WHOLE);
}

bool assay_mla_derive_blocks(const struct assay_property_run *first,
                             struct assay_case *second)
{
    (void)first;
    return derive_plan(second, ASSAY_MLA_PLAN_BLOCKS);
}

bool assay_mla_derive_random(const struct assay_property_run *first,
                             struct assay_case *second)
{
    (void)first;
    return derive_plan(second, ASSAY_MLA_PLAN_RANDOM);
}

void assay_mla_write_plan(const struct assay_mla_plan_problem *plan,
                          const struct assay_property_run *second)
{
    assay_mla_fill_plan(
        plan, (enum assay_mla_plan_choice)assay_case_value(second->the_case, "plan"),
        second->the_case->seed, second->tensors);
}

static int64_t splits_of(const struct assay_property_run *run, int64_t request)
{
    return (int64_t)assay_mla_integer(run, "num_splits", request + 1) -
           assay_mla_integer(run, "num_splits", request);
}

bool assay_mla_is_single(const struct assay_property_run *run, int64_t request)
{
    return splits_of(run, request) == 1;
}

static int64_t read_splits(const struct assay_mla_plan_problem *plan,
                           const struct assay_property_run *run, int64_t request,
                           struct assay_mla_split splits[ASSAY_MLA_MAX_PARTS])
{
    return assay_mla_plan_splits(
        assay_tensors_find(run->tensors, "tile_scheduler_metadata"),
        assay_tensors_find(run->tensors, "num_splits"), request,
        assay_mla_plan_blocks(plan, run->tensors, request), splits, ASSAY_MLA_MAX_PARTS);
}

bool assay_mla_has_same_splits(const struct assay_mla_plan_problem *plan,
                               const struct assay_property_run *first,
                               int64_t first_request,
                               const struct assay_property_run *second,
                               int64_t second_request)
{
    struct assay_mla_split a[ASSAY_MLA_MAX_PARTS], b[ASSAY_MLA_MAX_PARTS];
    const int64_t count = splits_of(first, first_request);
    if (count != splits_of(second, second_request)) return false;
    if (count == 1) return true;
    if (read_splits(plan, first, first_request, a) != count ||
        read_splits(plan, second, second_request, b) != count)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (a[i].begin_block != b[i].begin_block || a[i].end_block != b[i].end_block ||
            a[i].split != b[i].split)
            return false;
    return true;
}
