/* SPDX-License-Identifier: MIT */
/* Sparse decode: blocks of indices, first the main cache's, then the extra one's, and
 * the tokens they name. */
#include "ref/kernel/mla_sparse_decode.h"

#include "ref/kernel/mla_cache.h"
#include "ref/kernel/mla_decode.h"

#include <assert.h>
#include <string.h>

enum { ROWS = ASSAY_MLA_ROWS, KEYS = ASSAY_MLA_BLOCK };

/* One cache as a query token sees it. */
struct list {
    const struct assay_mla_cache *cache;
    const struct assay_mla_token_layout *layout;
    const struct assay_tensor *k_cache;
    const int32_t *indices;
    int64_t index_stride;
    int64_t length; /* indices that count */
    int64_t blocks;
};

struct lists {
    struct list main, extra;
    int dequantisation;
};

static struct list list_of(const struct assay_mla_cache *cache,
                           const struct assay_tensors *tensors, const char *k_cache,
                           const char *indices_name, const char *length_name,
                           int64_t request, int64_t token)
{
    struct list list = { .cache = cache };
    if (cache->topk == 0) return list;
    const struct assay_tensor *const indices = assay_tensors_find(tensors, indices_name);
    list.layout = &assay_mla_token_layouts[cache->kv];
    list.k_cache = assay_tensors_find(tensors, k_cache);
    list.indices = (const int32_t *)indices->data + request * indices->stride[0] +
                   token * indices->stride[1];
    list.index_stride = indices->stride[2];
    list.length = cache->topk;
    if (cache->has_topk_length) {
        const struct assay_tensor *const lengths =
            assay_tensors_find(tensors, length_name);
        const int64_t length =
            ((const int32_t *)lengths->data)[request * lengths->stride[0]];
        if (length < list.length) list.length = length > 0 ? length : 0;
    }
    list.blocks = (list.length + KEYS - 1) / KEYS;
    return list;
}

/* The main cache has a block even of length 0. */
static struct lists lists_of(const struct assay_mla_sparse_decode_problem *problem,
                             const struct assay_mla_numerics *numerics,
                             const struct assay_tensors *tensors, int64_t request,
                             int64_t token)
{
    struct lists lists = {
        .main = list_of(&problem->cache, tensors, "k_cache", "indices", "topk_length",
                        request, token),
        .extra = list_of(&problem->extra, tensors, "extra_k_cache",
                         "extra_indices_in_kvcache", "extra_topk_length", request, token),
        .dequantisation = numerics->dequantisation,
    };
    if (lists.main.blocks == 0) lists.main.blocks = 1;
    return lists;
}

/* False, and nothing is written, if the slot lies outside the cache. */
static bool load_token(const struct list *list, int dequantisation, int32_t index,
                       uint16_t *key)
{
    const int64_t slot = (uint32_t)index, page_size = list->cache->page_size;
    const int64_t page = slot / page_size;
    if (page >= list->cache->pages) return false;
    const uint8_t *const bytes =
        (const uint8_t *)list->k_cache->data + page * list->k_cache->stride[0];
    struct assay_mla_token token;
    assay_mla_token_unpack(list->layout, page_size, slot % page_size, bytes, &token);
    assay_mla_dequantise(list->layout, dequantisation, &token, key);
    return true;
}

/* Keys nobody attends are zeros. */
static void load_block(const void *source, int64_t block, struct assay_mla_block *into)
{
    const struct lists *const lists = source;
    const bool is_extra = block >= lists->main.blocks;
    const struct list *const list = is_extra ? &lists->extra : &lists->main;
    const int64_t first = (is_extra ? block - lists->main.blocks : block) * KEYS;
    uint64_t attended = 0;
    for (int i = 0; i < KEYS; i++) {
        const int64_t position = first + i;
        const bool is_listed = position < list->length;
        const int32_t index =
            is_listed ? list->indices[position * list->index_stride] : -1;
        if (index != -1) attended |= UINT64_C(1) << i;
        if (index == -1 || !load_token(list, lists->dequantisation, index, into->key[i]))
            memset(into->key[i], 0, sizeof(into->key[i]));
    }
    for (int row = 0; row < ROWS; row++)
        into->attended[row] = attended;
}

static void point_at_heads(const struct assay_tensors *tensors, int64_t request,
                           int64_t token, int64_t first_head,
                           struct assay_mla_decode *decode)
{
    const struct assay_tensor *const q = assay_tensors_find(tensors, "q");
    const struct assay_tensor *const out = assay_tensors_find(tensors, "out");
    const struct assay_tensor *const lse = assay_tensors_find(tensors, "lse");
    assert(q->stride[3] == 1 && out->stride[3] == 1);
    for (int i = 0; i < decode->query.rows; i++) {
        const int64_t head = first_head + i;
        decode->query.q[i] = (const uint16_t *)q->data + request * q->stride[0] +
                             token * q->stride[1] + head * q->stride[2];
        decode->out[i] = (uint16_t *)out->data + request * out->stride[0] +
                         token * out->stride[1] + head * out->stride[2];
        decode->lse[i] = (float *)lse->data + request * lse->stride[0] +
                         head * lse->stride[1] + token * lse->stride[2];
    }
}

bool assay_mla_sparse_decode_model(const struct assay_mla_sparse_decode_problem *problem,
                                   const struct assay_mla_numerics *numerics,
                                   const struct assay_tensors *tensors, int64_t part)
{
    const int64_t tiles = assay_mla_head_tiles(problem->h_q);
    const int64_t first_head = part % tiles * ROWS;
    const int rows = (int)assay_mla_tile_heads(problem->h_q, first_head);
    const int64_t token = part / tiles % problem->s_q;
    const int64_t request = part / tiles / problem->s_q;
    const struct lists lists = lists_of(problem, numerics, tensors, request, token);
    const int64_t blocks = lists.main.blocks + lists.extra.blocks;
    float sink[ROWS];
    if (problem->has_sink) {
        const struct assay_tensor *const all = assay_tensors_find(tensors, "attn_sink");
        for (int i = 0; i < rows; i++)
            sink[i] = ((const float *)all->data)[(first_head + i) * all->stride[0]];
    }
    struct assay_mla_decode decode = {
        .query = {
            .numerics = numerics,
            .format = ASSAY_BF16,
            .rows = rows,
            .d_qk = (int)assay_mla_d_qk(problem->cache.kv),
            .softmax_scale = problem->softmax_scale,
            .is_base_two = problem->is_base_two,
            .sink = problem->has_sink ? sink : NULL,
            .keys = { &lists, load_block },
        },
        .tensors = tensors,
        .request = request,
        .blocks = blocks,
        .end_block = blocks,
    };
    point_at_heads(tensors, request, token, first_head, &decode);
    return assay_mla_decode_rows(&decode);
}
