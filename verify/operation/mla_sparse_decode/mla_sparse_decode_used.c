/* SPDX-License-Identifier: MIT */
/* Which tokens a case of mla_sparse_decode attends to, and what else a kernel may look
 * at: indices below the length. */
#include "verify/operation/mla/mla_properties.h"
#include "verify/operation/mla_sparse_decode/mla_sparse_decode.h"

#include <string.h>

static const struct assay_mla_sparse_decode_problem *problem_of(const void *task)
{
    return &((const struct assay_mla_sparse_decode_task *)task)->problem;
}

int assay_mla_sparse_decode_pools(const void *task, struct assay_mla_pool_names pools[2])
{
    const struct assay_mla_sparse_decode_problem *const problem = problem_of(task);
    pools[0] = (struct assay_mla_pool_names){ &problem->cache, "k_cache", "indices",
                                              "topk_length" };
    pools[1] =
        (struct assay_mla_pool_names){ &problem->extra, "extra_k_cache",
                                       "extra_indices_in_kvcache", "extra_topk_length" };
    return problem->extra.topk ? 2 : 1;
}

int64_t assay_mla_pool_length(const struct assay_mla_pool_names *pool,
                              const struct assay_tensors *tensors, int64_t request)
{
    const struct assay_tensor *const lengths =
        assay_tensors_find(tensors, pool->topk_length);
    return lengths ? (int32_t)assay_tensor_bits(lengths, request) : pool->cache->topk;
}

bool assay_mla_visit_attended(const void *task, const struct assay_tensors *tensors,
                              const struct assay_mla_pool_names *pool,
                              bool (*visit)(void *context, int64_t request, int64_t slot),
                              void *context)
{
    const struct assay_mla_sparse_decode_problem *const problem = problem_of(task);
    const struct assay_tensor *const indices = assay_tensors_find(tensors, pool->indices);
    for (int64_t row = 0; row < problem->b * problem->s_q; row++) {
        const int64_t length = assay_mla_pool_length(pool, tensors, row / problem->s_q);
        for (int64_t i = 0; i < length; i++) {
            const int32_t slot =
                (int32_t)assay_tensor_bits(indices, row * pool->cache->topk + i);
            if (slot >= 0 && !visit(context, row, slot)) return false;
        }
    }
    return true;
}

/* --- used -------------------------------------------------------------------------- */

struct mark {
    const struct assay_mla_cache *cache;
    int64_t page_bytes;
    uint8_t *is_used;
};

static bool mark_token(void *context, int64_t row, int64_t slot)
{
    (void)row;
    const struct mark *const mark = context;
    const struct assay_mla_token_layout *const layout =
        &assay_mla_token_layouts[mark->cache->kv];
    const int64_t page_size = mark->cache->page_size;
    uint8_t *const page = mark->is_used + slot / page_size * mark->page_bytes;
    const struct assay_mla_token_place place =
        assay_mla_place(layout, page_size, slot % page_size);
    memset(page + place.codes, 1, (size_t)(layout->coded_dims / layout->codes_per_byte));
    memset(page + place.scales, 1,
           (size_t)layout->scales * assay_format_bytes(layout->scale));
    if (layout->rope_dims)
        memset(page + place.rope, 1, (size_t)layout->rope_dims * sizeof(uint16_t));
    return true;
}

static void mark_cache(const void *task, const struct assay_tensors *tensors,
                       const struct assay_mla_pool_names *pool, uint8_t *is_used)
{
    const struct assay_tensor *const k_cache = assay_tensors_find(tensors, pool->k_cache);
    struct mark mark = { pool->cache, k_cache->shape[1], is_used };
    memset(is_used, 0, (size_t)assay_tensor_elements(k_cache));
    assay_mla_visit_attended(task, tensors, pool, mark_token, &mark);
}

static void mark_indices(const void *task, const struct assay_tensors *tensors,
                         const struct assay_mla_pool_names *pool, uint8_t *is_used)
{
    const struct assay_mla_sparse_decode_problem *const problem = problem_of(task);
    const int64_t topk = pool->cache->topk;
    for (int64_t i = 0; i < problem->b * problem->s_q * topk; i++)
        is_used[i] =
            i % topk < assay_mla_pool_length(pool, tensors, i / topk / problem->s_q);
}

void assay_mla_sparse_decode_used(const void *task, const struct assay_tensors *tensors,
                                  int input, uint8_t *is_used)
{
    const struct assay_mla_sparse_decode_problem *const problem = problem_of(task);
    const struct assay_tensor *const tensor = &tensors->item[input];
    struct assay_mla_pool_names pools[2];
    const int count = assay_mla_sparse_decode_pools(task, pools);
    memset(is_used, 1, (size_t)assay_tensor_elements(tensor));
    if (problem->is_unsafe) return;
    for (int i = 0; i < count; i++) {
        if (strcmp(tensor->name, pools[i].k_cache) == 0)
            mark_cache(task, tensors, &pools[i], is_used);
        if (strcmp(tensor->name, pools[i].indices) == 0)
            mark_indices(task, tensors, &pools[i], is_used);
    }
    if (strcmp(tensor->name, "tile_scheduler_metadata") == 0)
        assay_mla_used_metadata(tensor, problem->b, is_used);
    if (strcmp(tensor->name, "block_table") == 0 ||
        strcmp(tensor->name, "cache_seqlens") == 0)
        memset(is_used, 0, (size_t)assay_tensor_elements(tensor));
}
