/* SPDX-License-Identifier: MIT */
/* Dense decode: which rows are a tile, which keys each sees, and where pages lie. */
#include "ref/kernel/mla_dense_decode.h"

#include "ref/kernel/mla_decode.h"

#include <assert.h>
#include <string.h>

enum { ROWS = ASSAY_MLA_ROWS, KEYS = ASSAY_MLA_BLOCK, D_QK = 576 };

/* The pages of one request and KV head. */
struct pages {
    const struct assay_tensor *k_cache, *block_table;
    int64_t request, kv_head;
    int64_t length;       /* keys of the request */
    int rows;             /* of the tile */
    int64_t border[ROWS]; /* each row sees the keys below */
};

/* The tile's place among the rows of a request and KV head: row = token * group + head
 * in the group. */
struct place {
    const struct assay_mla_dense_decode_problem *problem;
    const struct assay_tensors *tensors;
    int64_t request, kv_head, group, first_row, rows_of_all;
};

/* --- keys ------------------------------------------------------------------------- */

static int64_t page_of(const struct pages *pages, int64_t block)
{
    const struct assay_tensor *const table = pages->block_table;
    if (block >= table->shape[1]) return -1;
    return ((const int32_t *)table
                ->data)[pages->request * table->stride[0] + block * table->stride[1]];
}

/* The first @below of 64 bits. */
static uint64_t bits_below(int64_t below)
{
    if (below <= 0) return 0;
    return below < KEYS ? (UINT64_C(1) << below) - 1 : UINT64_MAX;
}

/* Keys in [border, length) stay as they are: the kernel multiplies them by zero. */
static void load_page(const void *source, int64_t block, struct assay_mla_block *into)
{
    const struct pages *const pages = source;
    const struct assay_tensor *const cache = pages->k_cache;
    const int64_t page = page_of(pages, block);
    const bool is_cached = page >= 0 && page < cache->shape[0];
    for (int key = 0; key < KEYS; key++) {
        const int64_t offset = page * cache->stride[0] + key * cache->stride[1] +
                               pages->kv_head * cache->stride[2];
        if (is_cached && block * KEYS + key < pages->length)
            memcpy(into->key[key], (const uint16_t *)cache->data + offset,
                   sizeof(into->key[key]));
        else
            memset(into->key[key], 0, sizeof(into->key[key]));
    }
    for (int row = 0; row < ROWS; row++)
        into->attended[row] =
            row < pages->rows ? bits_below(pages->border[row] - block * KEYS) : 0;
}

/* --- rows ------------------------------------------------------------------------- */

/* Keys at the end of the request that the row may not see; rows that do not exist see
 * all. */
static int64_t hidden_keys(const struct place *place, int64_t row)
{
    const struct assay_mla_dense_decode_problem *const problem = place->problem;
    if (!problem->is_causal || row >= place->rows_of_all) return 0;
    return problem->s_q - 1 - row / place->group;
}

static int64_t blocks_of(int64_t keys)
{
    return keys > 0 ? (keys + KEYS - 1) / KEYS : 0;
}

static int64_t length_of(const struct place *place)
{
    const struct assay_tensor *const lengths =
        assay_tensors_find(place->tensors, "cache_seqlens");
    return ((const int32_t *)lengths->data)[place->request * lengths->stride[0]];
}

static struct pages pages_of(const struct place *place)
{
    const int64_t left = place->rows_of_all - place->first_row;
    struct pages pages = {
        .k_cache = assay_tensors_find(place->tensors, "k_cache"),
        .block_table = assay_tensors_find(place->tensors, "block_table"),
        .request = place->request,
        .kv_head = place->kv_head,
        .length = length_of(place),
        .rows = (int)(left < ROWS ? left : ROWS),
    };
    for (int row = 0; row < pages.rows; row++)
        pages.border[row] = pages.length - hidden_keys(place, place->first_row + row);
    return pages;
}

static void point_at_rows(const struct place *place, int rows,
                          struct assay_mla_decode *decode)
{
    const struct assay_tensor *const q = assay_tensors_find(place->tensors, "q");
    const struct assay_tensor *const out = assay_tensors_find(place->tensors, "out");
    const struct assay_tensor *const lse = assay_tensors_find(place->tensors, "lse");
    const int64_t request = place->request;
    assert(q->stride[3] == 1 && out->stride[3] == 1);
    for (int i = 0; i < rows; i++) {
        const int64_t row = place->first_row + i, token = row / place->group;
        const int64_t head = place->kv_head * place->group + row % place->group;
        decode->query.q[i] = (const uint16_t *)q->data + request * q->stride[0] +
                             token * q->stride[1] + head * q->stride[2];
        decode->out[i] = (uint16_t *)out->data + request * out->stride[0] +
                         token * out->stride[1] + head * out->stride[2];
        decode->lse[i] = (float *)lse->data + request * lse->stride[0] +
                         head * lse->stride[1] + token * lse->stride[2];
    }
}

/* Blocks end where the tile's last row stops seeing keys. */
static bool decode_tile(const struct place *place,
                        const struct assay_mla_numerics *numerics)
{
    const struct pages pages = pages_of(place);
    const int64_t hidden = hidden_keys(place, place->first_row + ROWS - 1);
    struct assay_mla_decode decode = {
        .query = {
            .numerics = numerics,
            .format = place->problem->format,
            .rows = pages.rows,
            .d_qk = D_QK,
            .softmax_scale = place->problem->softmax_scale,
            .is_base_two = place->problem->is_base_two,
            .keys = { &pages, load_page },
        },
        .tensors = place->tensors,
        .request = place->request,
        .blocks = blocks_of(pages.length),
        .end_block = blocks_of(pages.length - hidden),
    };
    point_at_rows(place, pages.rows, &decode);
    return assay_mla_decode_rows(&decode);
}

bool assay_mla_dense_decode_model(const struct assay_mla_dense_decode_problem *problem,
                                  const struct assay_mla_numerics *numerics,
                                  const struct assay_tensors *tensors, int64_t part)
{
    const int64_t group = problem->h_q / problem->h_k;
    struct place place = {
        .problem = problem,
        .tensors = tensors,
        .request = part / problem->h_k,
        .kv_head = part % problem->h_k,
        .group = group,
        .rows_of_all = problem->s_q * group,
    };
    for (; place.first_row < place.rows_of_all; place.first_row += ROWS)
        if (!decode_tile(&place, numerics)) return false;
    return true;
}
