/* SPDX-License-Identifier: MIT */
/* Inputs of mla_sparse_decode: queries, caches whose used tokens lie at shuffled slots of
 * memory that is NaN otherwise, indices, lengths, sinks, plans. */
#include "verify/operation/mla_sparse_decode/mla_sparse_decode.h"

#include <assert.h>
#include <limits.h>

enum { MAX_HEADS = 128, EXACT_TIES = 32, EDGE_ATTEMPTS = 32 };

/* One cache of a case, and what names its streams. */
struct pool {
    const struct assay_mla_sparse_decode_task *task;
    const struct assay_mla_cache *cache;
    const struct assay_mla_token_pool *tokens;
    const struct assay_tensor *k_cache, *indices;
    enum assay_data_kind kind;
    uint64_t seed;
};

static int64_t slot_of(const struct pool *pool, int64_t request, int64_t token)
{
    return assay_mla_shuffled(pool->seed, pool->k_cache->name,
                              pool->cache->pages * pool->cache->page_size,
                              request * pool->tokens->s_kv + token);
}

/* request * s_kv + token of the token at the slot; beyond the last of them where there
 * is none. */
static int64_t owner_of(const struct pool *pool, int64_t slot)
{
    return assay_mla_unshuffled(pool->seed, pool->k_cache->name,
                                pool->cache->pages * pool->cache->page_size, slot);
}

static void fill_queries(const struct assay_mla_sparse_decode_task *task,
                         enum assay_data_kind kind, uint64_t seed,
                         const struct assay_tensor *q)
{
    const struct assay_mla_sparse_decode_problem *const problem = &task->problem;
    const int64_t d_qk = assay_mla_d_qk(problem->cache.kv);
    /* e2m1 keys cannot be so small that the huge queries of kind subnormal would suit. */
    const bool has_e2m1 = problem->extra.topk && problem->extra.kv == ASSAY_MLA_V41_FP4;
    if (kind == ASSAY_DATA_SUBNORMAL && has_e2m1) kind = ASSAY_DATA_NORMAL;
    for (int64_t row = 0; row < problem->b * problem->s_q * problem->h_q; row++) {
        const int64_t token = row / problem->h_q % problem->s_q;
        const int64_t request = row / problem->h_q / problem->s_q;
        const struct assay_mla_vector vector = {
            .format = ASSAY_BF16,
            .element = (uint16_t *)q->data + row * d_qk,
            .count = d_qk,
            .row_key = assay_mla_row_key(request, token * MAX_HEADS + row % problem->h_q),
            .softmax_scale = problem->softmax_scale,
        };
        assay_mla_fill_vector(&vector, kind, seed, q->name);
    }
}

static void fill_cache(const struct pool *pool)
{
    const struct assay_mla_token_source source = { pool->cache->kv, pool->kind,
                                                   pool->seed, pool->k_cache->name,
                                                   pool->task->has_any_scales };
    const struct assay_mla_token_layout *const layout =
        &assay_mla_token_layouts[pool->cache->kv];
    const int64_t page_size = pool->cache->page_size, s_kv = pool->tokens->s_kv;
    for (int64_t request = 0; request < pool->task->problem.b; request++) {
        const int64_t needle = assay_mla_needle(pool->seed, request, s_kv);
        for (int64_t token = 0; token < s_kv; token++) {
            struct assay_mla_token made;
            const int64_t slot = slot_of(pool, request, token);
            assay_mla_make_token(&source, request, token, token == needle, &made);
            assay_mla_token_pack(layout, page_size, slot % page_size, &made,
                                 (uint8_t *)pool->k_cache->data +
                                     slot / page_size * pool->cache->page_stride);
        }
    }
}

/* --- which tokens a query token names --------------------------------------------- */

/* Positions of a list that can hold an attended token: as many as there are tokens, if
 * each is named once. */
static int64_t room(const struct pool *pool, int64_t length)
{
    if (pool->task->pattern >= ASSAY_MLA_INDICES_REPEATED) return length;
    return length < pool->tokens->s_kv ? length : pool->tokens->s_kv;
}

/* The list of one query token. */
struct list {
    const struct pool *pool;
    int64_t request, row;   /* row: of query tokens */
    int64_t key;            /* the row in streams */
    uint64_t order, choice; /* seeds of its permutations */
    int64_t length;         /* positions that count */
    int64_t room, anchor;   /* anchor: a position that is valid if any is; -1: none */
    int64_t before, all;    /* positions of the list before, and of both together */
    int64_t needle;         /* kind needle: the token that wins; -1: it is not here */
    bool is_empty;          /* no index is valid */
};

static bool is_counted(enum assay_data_kind kind)
{
    return kind == ASSAY_DATA_EXACT || kind == ASSAY_DATA_TIES;
}

/* Kinds exact and ties attend to a power of two of keys, so that means are exact. */
static bool is_chosen(const struct list *list, int64_t position)
{
    const struct pool *const pool = list->pool;
    int64_t wanted = 1;
    while (2 * wanted <= list->all &&
           !(pool->kind == ASSAY_DATA_TIES && wanted == EXACT_TIES))
        wanted *= 2;
    if (pool->task->invalid && pool->kind == ASSAY_DATA_EXACT && wanted > 1) wanted /= 2;
    return assay_mla_shuffled(list->choice, "attended", list->all,
                              list->before + position) < wanted;
}

static bool is_valid(const struct list *list, int64_t position, uint32_t draw)
{
    const struct assay_mla_sparse_decode_task *const task = list->pool->task;
    if (list->is_empty || position >= list->room) return false;
    if (is_counted(list->pool->kind)) return is_chosen(list, position);
    const double invalid = (double)task->invalid / (double)ASSAY_FRACTION_UNIT;
    return position == list->anchor || draw * 0x1p-32 >= invalid;
}

/* Some page's first or last slot, or the one next to it. */
static int64_t edge_slot(const struct assay_mla_cache *cache, struct assay_stream *stream)
{
    const int64_t page = assay_stream_next(stream) % cache->pages;
    const uint32_t draw = assay_stream_next(stream);
    const int64_t beside = cache->page_size > 1 ? draw >> 1 & 1 : 0;
    const int64_t place = draw & 1 ? cache->page_size - 1 - beside : beside;
    return page * cache->page_size + place;
}

/* A token of the request at an edge of a page, if a few attempts find one; otherwise, and
 * in one of four positions anyway, the first or the last one. */
static int64_t edge_token(const struct list *list, int64_t position, uint32_t draw)
{
    const struct pool *const pool = list->pool;
    const int64_t s_kv = pool->tokens->s_kv;
    struct assay_stream stream;
    assay_stream_open(&stream, list->order, pool->indices->name, "edges", position);
    for (int i = 0; i < EDGE_ATTEMPTS && draw % 4; i++) {
        const int64_t owner = owner_of(pool, edge_slot(pool->cache, &stream));
        if (owner / s_kv == list->request) return owner % s_kv;
    }
    return draw & 4 ? s_kv - 1 : 0;
}

/* By a pattern that does not care whose token another position names. */
static int64_t named_token(const struct list *list, int64_t position, uint32_t draw)
{
    const int64_t s_kv = list->pool->tokens->s_kv;
    const int64_t few =
        s_kv < ASSAY_MLA_REPEATED_TOKENS ? s_kv : ASSAY_MLA_REPEATED_TOKENS;
    switch (list->pool->task->pattern) {
    case ASSAY_MLA_INDICES_LAST: return s_kv - 1;
    case ASSAY_MLA_INDICES_EDGES: return edge_token(list, position, draw);
    default:
        return assay_mla_shuffled(list->order, list->pool->indices->name, s_kv,
                                  draw % few);
    }
}

/* Another position's token in one of 16 positions, except where that would matter. */
static int64_t token_at(const struct list *list, int64_t position, uint32_t draw)
{
    const struct pool *const pool = list->pool;
    if (pool->task->pattern >= ASSAY_MLA_INDICES_REPEATED)
        return named_token(list, position, draw);
    const bool is_needle = pool->kind == ASSAY_DATA_NEEDLE;
    if (is_needle && position == list->anchor && list->needle >= 0) return list->needle;
    const bool is_repeated = draw % 16 == 0 && !is_needle && position != list->anchor;
    return assay_mla_shuffled(list->order, pool->indices->name, pool->tokens->s_kv,
                              is_repeated ? position / 2 : position);
}

/* Whether the token must not be attended: a second winner, and what would make the first
 * row odd. */
static bool is_barred(const struct list *list, int64_t position, int64_t token)
{
    const struct pool *const pool = list->pool;
    if (pool->kind == ASSAY_DATA_NEEDLE) {
        const bool is_winner =
            token == assay_mla_needle(pool->seed, list->request, pool->tokens->s_kv);
        return is_winner && !(position == list->anchor && token == list->needle);
    }
    return pool->kind == ASSAY_DATA_SPECIAL && list->row == 0 &&
           assay_mla_is_special_token(pool->seed, list->request, token);
}

/* What lies behind the length is nobody's business. */
static int32_t garbage(uint32_t draw)
{
    static const int32_t values[] = { INT_MIN, INT_MAX, -123456, 2147480000, -2, 114514 };
    return draw % 8 < 6 ? values[draw % 8] : (int32_t)(draw >> 1);
}

static int32_t make_index(const void *one_list, int64_t position,
                          struct assay_stream *stream)
{
    const struct list *const list = one_list;
    const struct pool *const pool = list->pool;
    const uint32_t valid_draw = assay_stream_next(stream);
    const uint32_t draw = assay_stream_next(stream);
    if (position >= list->length) return garbage(draw);
    if (!is_valid(list, position, valid_draw)) return -1;
    const int64_t token = token_at(list, position, draw);
    if (is_barred(list, position, token)) return -1;
    return (int32_t)slot_of(pool, list->request, token);
}

static void fill_list(const struct list *list)
{
    const struct pool *const pool = list->pool;
    const struct assay_mla_index_source source = {
        .pattern = pool->task->pattern,
        .length = list->length,
        .topk = pool->cache->topk,
        .end = pool->cache->pages * pool->cache->page_size,
        .make = make_index,
        .list = list,
    };
    struct assay_stream stream;
    assay_stream_open(&stream, pool->seed, pool->indices->name, "indices", list->key);
    assay_mla_fill_indices(&source, &stream,
                           (int32_t *)pool->indices->data + list->row * source.topk);
}

/* One row in eight names nothing, if invalid indices are asked for at all, but not the
 * first. */
static bool is_empty_row(const struct list *list)
{
    const struct pool *const pool = list->pool;
    struct assay_stream stream;
    assay_stream_open(&stream, pool->seed, "indices", "empty rows", list->key);
    if (pool->task->invalid == ASSAY_FRACTION_UNIT) return true;
    return pool->task->invalid > 0 && list->row > 0 &&
           assay_stream_next(&stream) % 8 == 0;
}

static uint64_t next_seed(struct assay_stream *stream)
{
    const uint64_t high = assay_stream_next(stream);
    return high << 32 | assay_stream_next(stream);
}

static void open_list(struct list *list, const struct pool *pool, int64_t row)
{
    const int64_t s_q = pool->task->problem.s_q;
    struct assay_stream stream, shared;
    *list = (struct list){ .pool = pool,
                           .request = row / s_q,
                           .row = row,
                           .key = assay_mla_row_key(row / s_q, row % s_q),
                           .anchor = -1,
                           .needle = -1 };
    list->length = assay_mla_task_length(pool->task, pool->cache, list->request);
    list->room = room(pool, list->length);
    list->is_empty = is_empty_row(list);
    assay_stream_open(&stream, pool->seed, pool->indices->name, "list", list->key);
    assay_stream_open(&shared, pool->seed, "indices", "both lists", list->key);
    list->order = next_seed(&stream);
    list->choice = next_seed(&shared);
    if (list->room > 0)
        list->anchor =
            (int64_t)((uint64_t)assay_stream_next(&stream) * (uint64_t)list->room >> 32);
}

static void fill_lists(const struct pool *main_pool, const struct pool *extra)
{
    const struct assay_mla_sparse_decode_problem *const problem =
        &main_pool->task->problem;
    for (int64_t row = 0; row < problem->b * problem->s_q; row++) {
        struct list first, second = { 0 };
        open_list(&first, main_pool, row);
        if (problem->extra.topk) open_list(&second, extra, row);
        first.all = second.all = first.room + second.room;
        second.before = first.room;
        struct list *const winner = first.room > 0 ? &first : &second;
        if (winner->room > 0)
            winner->needle = assay_mla_needle(main_pool->seed, winner->request,
                                              winner->pool->tokens->s_kv);
        fill_list(&first);
        if (problem->extra.topk) fill_list(&second);
    }
}

/* --- the rest ---------------------------------------------------------------------- */

static void fill_lengths(const struct assay_mla_sparse_decode_task *task,
                         const struct assay_mla_cache *cache,
                         const struct assay_tensor *lengths)
{
    for (int64_t request = 0; lengths && request < task->problem.b; request++)
        ((int32_t *)lengths->data)[request] =
            (int32_t)assay_mla_task_length(task, cache, request);
}

static void fill_garbage(const struct assay_tensor *table, uint64_t seed)
{
    struct assay_stream stream;
    assay_stream_open(&stream, seed, table->name, "ignored", 0);
    for (int64_t i = 0; i < assay_tensor_elements(table); i++)
        ((int32_t *)table->data)[i] = garbage(assay_stream_next(&stream));
}

void assay_mla_sparse_decode_fill(const void *bound, enum assay_data_kind kind,
                                  uint64_t seed, const struct assay_tensors *tensors)
{
    const struct assay_mla_sparse_decode_task *const task = bound;
    const struct assay_mla_sparse_decode_problem *const problem = &task->problem;
    const struct pool main_pool = { task,
                                    &problem->cache,
                                    &task->main,
                                    assay_tensors_find(tensors, "k_cache"),
                                    assay_tensors_find(tensors, "indices"),
                                    kind,
                                    seed };
    const struct pool extra = { task,
                                &problem->extra,
                                &task->extra,
                                assay_tensors_find(tensors, "extra_k_cache"),
                                assay_tensors_find(tensors, "extra_indices_in_kvcache"),
                                kind,
                                seed };
    const struct assay_tensor *const sink = assay_tensors_find(tensors, "attn_sink");
    fill_queries(task, kind, seed, assay_tensors_find(tensors, "q"));
    fill_cache(&main_pool);
    if (problem->extra.topk) fill_cache(&extra);
    fill_lists(&main_pool, &extra);
    fill_lengths(task, &problem->cache, assay_tensors_find(tensors, "topk_length"));
    fill_lengths(task, &problem->extra, assay_tensors_find(tensors, "extra_topk_length"));
    if (sink) assay_mla_fill_sink(sink, kind, seed);
    if (problem->has_ignored_tables) {
        fill_garbage(assay_tensors_find(tensors, "block_table"), seed);
        fill_garbage(assay_tensors_find(tensors, "cache_seqlens"), seed);
    }
    const struct assay_mla_plan_problem plan = assay_mla_sparse_decode_plan(problem);
    assay_mla_fill_plan(&plan, task->plan, seed, tensors);
}
