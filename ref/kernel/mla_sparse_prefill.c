/* SPDX-License-Identifier: MIT */
/* Sparse prefill: a token's indices and the keys they name. */
#include "ref/kernel/mla_sparse_prefill.h"

#include <assert.h>
#include <string.h>

enum { ROWS = ASSAY_MLA_ROWS, KEYS = ASSAY_MLA_BLOCK };

struct list {
    const struct assay_tensor *kv;
    const int32_t *indices;
    int64_t index_stride, length;
    size_t key_bytes;
};

static struct list list_of(const struct assay_mla_sparse_prefill_problem *problem,
                           const struct assay_tensors *tensors, int64_t token)
{
    const struct assay_tensor *const indices = assay_tensors_find(tensors, "indices");
    struct list list = {
        .kv = assay_tensors_find(tensors, "kv"),
        .indices = (const int32_t *)indices->data + token * indices->stride[0],
        .index_stride = indices->stride[2],
        .length = problem->topk,
        .key_bytes = (size_t)problem->d_qk * sizeof(uint16_t),
    };
    if (problem->has_topk_length) {
        const struct assay_tensor *const lengths =
            assay_tensors_find(tensors, "topk_length");
        const int64_t length =
            ((const int32_t *)lengths->data)[token * lengths->stride[0]];
        if (length < list.length) list.length = length > 0 ? length : 0;
    }
    return list;
}

static void load_block(const void *source, int64_t block, struct assay_mla_block *into)
{
    const struct list *const list = source;
    const struct assay_tensor *const kv = list->kv;
    uint64_t attended = 0;
    for (int i = 0; i < KEYS; i++) {
        const int64_t position = block * KEYS + i;
        const bool is_listed = position < list->length;
        const int64_t index =
            is_listed ? list->indices[position * list->index_stride] : -1;
        if (index < 0 || index >= kv->shape[0]) {
            memset(into->key[i], 0, sizeof(into->key[i]));
            continue;
        }
        attended |= UINT64_C(1) << i;
        memcpy(into->key[i], (const uint16_t *)kv->data + index * kv->stride[0],
               list->key_bytes);
    }
    for (int row = 0; row < ROWS; row++)
        into->attended[row] = attended;
}

/* Pointers to the results of 64 heads. */
struct rows {
    uint16_t *out[ROWS];
    float *lse[ROWS], *max_logits[ROWS];
    float sink[ROWS];
};

static void point_at_heads(const struct assay_tensors *tensors, bool has_sink,
                           int64_t token, int64_t first_head,
                           struct assay_mla_query *query, struct rows *rows)
{
    const struct assay_tensor *const q = assay_tensors_find(tensors, "q");
    const struct assay_tensor *const out = assay_tensors_find(tensors, "out");
    const struct assay_tensor *const lse = assay_tensors_find(tensors, "lse");
    const struct assay_tensor *const max = assay_tensors_find(tensors, "max_logits");
    const struct assay_tensor *const sink = assay_tensors_find(tensors, "attn_sink");
    assert(q->stride[2] == 1 && out->stride[2] == 1);
    for (int i = 0; i < query->rows; i++) {
        const int64_t head = first_head + i;
        query->q[i] =
            (const uint16_t *)q->data + token * q->stride[0] + head * q->stride[1];
        rows->out[i] =
            (uint16_t *)out->data + token * out->stride[0] + head * out->stride[1];
        rows->lse[i] =
            (float *)lse->data + token * lse->stride[0] + head * lse->stride[1];
        rows->max_logits[i] =
            (float *)max->data + token * max->stride[0] + head * max->stride[1];
        if (has_sink) rows->sink[i] = ((const float *)sink->data)[head * sink->stride[0]];
    }
    query->sink = has_sink ? rows->sink : NULL;
}

bool assay_mla_sparse_prefill_model(
    const struct assay_mla_sparse_prefill_problem *problem,
    const struct assay_mla_numerics *numerics, const struct assay_tensors *tensors,
    int64_t part)
{
    const int64_t tiles = assay_mla_head_tiles(problem->h_q), token = part / tiles;
    const int64_t first_head = part % tiles * ROWS;
    const struct list list = list_of(problem, tensors, token);
    struct rows rows;
    struct assay_mla_query query = {
        .numerics = numerics,
        .format = ASSAY_BF16,
        .rows = (int)assay_mla_tile_heads(problem->h_q, first_head),
        .d_qk = (int)problem->d_qk,
        .softmax_scale = problem->softmax_scale,
        .is_base_two = problem->is_base_two,
        .keys = { &list, load_block },
    };
    point_at_heads(tensors, problem->has_sink, token, first_head, &query, &rows);
    struct assay_mla_tile *const tile = assay_mla_tile_open(&query);
    const bool has_memory =
        tile && assay_mla_tile_attend(tile, 0, (list.length + KEYS - 1) / KEYS);
    if (has_memory) assay_mla_tile_finish(tile, rows.out, rows.lse, rows.max_logits);
    assay_mla_tile_close(tile);
    return has_memory;
}
