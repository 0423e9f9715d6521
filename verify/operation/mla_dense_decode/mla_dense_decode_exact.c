/* SPDX-License-Identifier: MIT */
/* Which cases of mla_dense_decode have outputs without any rounding but the last. */
#include "ref/kernel/mla_plan.h"
#include "verify/operation/mla_dense_decode/mla_dense_decode.h"

#include <string.h>

/* Sums of integers of magnitude 15 stay below 2^24. */
enum { MAX_EXACT_KEYS = 1 << 20 };

static bool is_power_of_two(int64_t value)
{
    return value > 0 && (value & (value - 1)) == 0;
}

struct plan { /* as the case will have it */
    int32_t lengths[ASSAY_MLA_MAX_REQUESTS];
    int32_t metadata[ASSAY_MLA_MAX_PARTS * ASSAY_PLAN_FIELDS];
    int32_t num_splits[ASSAY_MLA_MAX_REQUESTS + 1];
    struct assay_tensors tensors;
};

static void add(struct assay_tensors *tensors, const char *name, void *data, int64_t rows,
                int64_t columns)
{
    struct assay_tensor *const tensor = &tensors->item[tensors->count++];
    *tensor = (struct assay_tensor){ .name = name,
                                     .format = ASSAY_I32,
                                     .rank = columns ? 2 : 1,
                                     .shape = { rows, columns },
                                     .data = data };
    assay_tensor_set_dense(tensor);
}

static void make_plan(const struct assay_mla_dense_decode_case *dense, uint64_t seed,
                      struct plan *plan)
{
    const struct assay_mla_plan_problem problem =
        assay_mla_dense_plan_problem(&dense->problem);
    memcpy(plan->lengths, dense->s_k, sizeof(plan->lengths));
    plan->tensors.count = 0;
    add(&plan->tensors, "cache_seqlens", plan->lengths, problem.b, 0);
    add(&plan->tensors, "tile_scheduler_metadata", plan->metadata, problem.num_sm_parts,
        ASSAY_PLAN_FIELDS);
    add(&plan->tensors, "num_splits", plan->num_splits, problem.b + 1, 0);
    assay_mla_fill_plan(&problem, dense->plan, seed, &plan->tensors);
}

static bool has_exact_splits(const struct plan *plan, int64_t request)
{
    struct assay_mla_split splits[ASSAY_MLA_MAX_PARTS];
    const int64_t keys = plan->lengths[request];
    const int64_t count =
        assay_mla_plan_splits(&plan->tensors.item[1], &plan->tensors.item[2], request,
                              assay_mla_dense_pages(keys), splits, ASSAY_MLA_MAX_PARTS);
    for (int64_t i = 0; i < count; i++) {
        const int64_t begin = splits[i].begin_block * ASSAY_MLA_BLOCK;
        const int64_t end = splits[i].end_block * ASSAY_MLA_BLOCK;
        const int64_t taken = (end < keys ? end : keys) - begin;
        if (taken > 0 && !is_power_of_two(taken)) return false;
    }
    return true;
}

static enum assay_status check_lengths(const struct assay_mla_dense_decode_case *dense,
                                       uint64_t seed, struct assay_message *message)
{
    struct plan plan;
    make_plan(dense, seed, &plan);
    for (int64_t i = 0; i < dense->problem.b; i++) {
        const long long length = dense->s_k[i];
        if (length > MAX_EXACT_KEYS)
            return assay_fail(message, ASSAY_REFUSED,
                              "data=exact cannot promise exact sums of s_k=%lld keys; "
                              "use at most %d",
                              length, MAX_EXACT_KEYS);
        if (length != 0 && !is_power_of_two(length))
            return assay_fail(message, ASSAY_REFUSED,
                              "data=exact needs as many keys as a power of two, or none, "
                              "but s_k of request %lld is %lld",
                              (long long)i, length);
        if (!has_exact_splits(&plan, i))
            return assay_fail(message, ASSAY_REFUSED,
                              "data=exact needs as many keys as a power of two in every "
                              "split, which this plan of request %lld has not; use "
                              "plan=whole",
                              (long long)i);
    }
    return ASSAY_RAN;
}

enum assay_status
assay_mla_dense_check_exact(const struct assay_mla_dense_decode_case *dense,
                            enum assay_data_kind kind, uint64_t seed,
                            struct assay_message *message)
{
    const struct assay_mla_dense_decode_problem *const problem = &dense->problem;
    if (kind != ASSAY_DATA_EXACT) return ASSAY_RAN;
    if (problem->is_causal && problem->s_q > 1)
        return assay_fail(message, ASSAY_REFUSED,
                          "data=exact needs as many keys as a power of two for every "
                          "row, but with causal=1 each token sees one more; use causal=0 "
                          "or s_q=1");
    return check_lengths(dense, seed, message);
}
