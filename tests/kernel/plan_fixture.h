/* SPDX-License-Identifier: MIT */
/* A plan and the lengths it is made for, in memory of just their size. */
#ifndef ASSAY_TESTS_KERNEL_PLAN_FIXTURE_H
#define ASSAY_TESTS_KERNEL_PLAN_FIXTURE_H

#include "ref/kernel/mla_plan.h"
#include "ref/mla_problem.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const struct assay_mla_plan_numerics flashmla = { .block_keys = 64,
                                                         .overhead = -1 };

/* Tensors lie in memory of just their size, where a sanitiser sees every step beyond. */
struct plan {
    struct assay_mla_plan_problem problem;
    struct assay_tensors tensors;
    int32_t *length, *extra_length, *metadata, *num_splits;
};

static inline int32_t *add_tensor(struct plan *plan, const char *name, int64_t rows,
                                  int64_t columns)
{
    struct assay_tensor *const tensor = &plan->tensors.item[plan->tensors.count++];
    *tensor = (struct assay_tensor){ .name = name,
                                     .format = ASSAY_I32,
                                     .rank = columns ? 2 : 1,
                                     .shape = { rows, columns } };
    assay_tensor_set_dense(tensor);
    tensor->data = malloc((size_t)assay_tensor_bytes(tensor));
    ck_assert_ptr_nonnull(tensor->data);
    memset(tensor->data, 0x5A, (size_t)assay_tensor_bytes(tensor));
    return tensor->data;
}

static inline void open_plan(struct plan *plan,
                             const struct assay_mla_plan_problem *problem)
{
    *plan = (struct plan){ .problem = *problem };
    if (!problem->is_sparse)
        plan->length = add_tensor(plan, "cache_seqlens", problem->b, 0);
    if (problem->has_topk_length)
        plan->length = add_tensor(plan, "topk_length", problem->b, 0);
    if (problem->has_extra_topk_length)
        plan->extra_length = add_tensor(plan, "extra_topk_length", problem->b, 0);
    plan->metadata = add_tensor(plan, "tile_scheduler_metadata", problem->num_sm_parts,
                                ASSAY_PLAN_FIELDS);
    plan->num_splits = add_tensor(plan, "num_splits", problem->b + 1, 0);
}

static inline void close_plan(struct plan *plan)
{
    for (int i = 0; i < plan->tensors.count; i++)
        free(plan->tensors.item[i].data);
}

static inline void schedule(struct plan *plan)
{
    assay_mla_plan_model(&plan->problem, &flashmla, &plan->tensors);
}

static inline const char *fault_of(const struct plan *plan, int64_t *request)
{
    return assay_mla_plan_fault(&plan->problem, &plan->tensors, request);
}

static inline int64_t splits_of(const struct plan *plan, int64_t request,
                                struct assay_mla_split *splits, int64_t capacity)
{
    return assay_mla_plan_splits(
        assay_tensors_find(&plan->tensors, "tile_scheduler_metadata"),
        assay_tensors_find(&plan->tensors, "num_splits"), request,
        assay_mla_plan_blocks(&plan->problem, &plan->tensors, request), splits, capacity);
}

static inline void open_dense(struct plan *plan, int64_t parts, int64_t b,
                              const int32_t *lengths)
{
    open_plan(plan, &(struct assay_mla_plan_problem){
                        .b = b, .num_sm_parts = parts, .overhead = 5 });
    for (int64_t i = 0; i < b; i++)
        plan->length[i] = lengths[i];
}

#endif
