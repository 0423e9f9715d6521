/* SPDX-License-Identifier: MIT */
/* What no kernel may be given: indices outside the cache, lengths outside the list, NaN
 * scales of tokens that are attended, plans with holes. */
#include "verify/operation/mla_sparse_decode/mla_sparse_decode.h"

#include <string.h>

struct names { /* of one cache's tensors */
    const char *k_cache, *indices, *topk_length;
};
static const struct names main_names = { "k_cache", "indices", "topk_length" };
static const struct names extra_names = { "extra_k_cache", "extra_indices_in_kvcache",
                                          "extra_topk_length" };

static bool is_nan_scale(enum assay_format format, const uint8_t *bytes)
{
    uint32_t bits = 0;
    memcpy(&bits, bytes, assay_format_bytes(format)); /* low bytes first */
    switch (format) {
    case ASSAY_UE8M0: return bits == 0xFF;
    case ASSAY_E4M3: return (bits & 0x7F) == 0x7F;
    default: return (bits & 0x7FFFFFFF) > 0x7F800000;
    }
}

/* The number of a scale of the token that is NaN; -1 if none is. */
static int nan_scale(const struct assay_mla_cache *cache,
                     const struct assay_tensor *k_cache, int64_t slot)
{
    const struct assay_mla_token_layout *const layout =
        &assay_mla_token_layouts[cache->kv];
    const uint8_t *const page =
        (const uint8_t *)k_cache->data + slot / cache->page_size * cache->page_stride;
    const struct assay_mla_token_place place =
        assay_mla_place(layout, cache->page_size, slot % cache->page_size);
    const int64_t bytes = (int64_t)assay_format_bytes(layout->scale);
    for (int i = 0; i < layout->scales; i++)
        if (is_nan_scale(layout->scale, page + place.scales + i * bytes)) return i;
    return -1;
}

static enum assay_status check_index(const struct assay_mla_cache *cache,
                                     const struct assay_tensors *tensors,
                                     const struct names *names, const int64_t at[3],
                                     int32_t slot, struct assay_message *message)
{
    const int64_t slots = cache->pages * cache->page_size;
    if (slot == -1) return ASSAY_RAN;
    if (slot < 0 || slot >= slots)
        return assay_fail(message, ASSAY_REFUSED,
                          "%s[%lld, %lld, %lld] is %d, which is no slot of %s; use -1 or "
                          "0 to %lld, or unsafe=1",
                          names->indices, (long long)at[0], (long long)at[1],
                          (long long)at[2], slot, names->k_cache, (long long)slots - 1);
    const int scale = nan_scale(cache, assay_tensors_find(tensors, names->k_cache), slot);
    if (scale < 0) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "scale %d of the token at slot %d of %s is NaN, and %s[%lld, %lld, "
                      "%lld] attends to it; use a number, or unsafe=1",
                      scale, slot, names->k_cache, names->indices, (long long)at[0],
                      (long long)at[1], (long long)at[2]);
}

static enum assay_status check_length(const struct assay_mla_cache *cache,
                                      const struct names *names, int64_t request,
                                      int32_t length, struct assay_message *message)
{
    if (length >= 0 && length <= cache->topk) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "%s[%lld] is %d; use 0 to %lld, the indices there are, or unsafe=1",
                      names->topk_length, (long long)request, length,
                      (long long)cache->topk);
}

static enum assay_status
check_cache(const struct assay_mla_sparse_decode_problem *problem,
            const struct assay_mla_cache *cache, const struct assay_tensors *tensors,
            const struct names *names, struct assay_message *message)
{
    const int32_t *const indices = assay_tensors_find(tensors, names->indices)->data;
    const struct assay_tensor *const lengths =
        assay_tensors_find(tensors, names->topk_length);
    for (int64_t row = 0; row < problem->b * problem->s_q; row++) {
        int64_t at[3] = { row / problem->s_q, row % problem->s_q, 0 };
        const int32_t length =
            lengths ? ((const int32_t *)lengths->data)[at[0]] : (int32_t)cache->topk;
        enum assay_status status = check_length(cache, names, at[0], length, message);
        for (; status == ASSAY_RAN && at[2] < length; at[2]++)
            status = check_index(cache, tensors, names, at,
                                 indices[row * cache->topk + at[2]], message);
        if (status != ASSAY_RAN) return status;
    }
    return ASSAY_RAN;
}

enum assay_status assay_mla_sparse_decode_check(const void *task,
                                                const struct assay_tensors *tensors,
                                                struct assay_message *message)
{
    const struct assay_mla_sparse_decode_problem *const problem =
        &((const struct assay_mla_sparse_decode_task *)task)->problem;
    const struct assay_mla_plan_problem plan = assay_mla_sparse_decode_plan(problem);
    enum assay_status status =
        check_cache(problem, &problem->cache, tensors, &main_names, message);
    if (status == ASSAY_RAN && problem->extra.topk)
        status = check_cache(problem, &problem->extra, tensors, &extra_names, message);
    return status == ASSAY_RAN ? assay_mla_check_plan(&plan, tensors, message) : status;
}
