/* SPDX-License-Identifier: MIT */
/* Inputs of mla_sparse_prefill. Keys belong to their token; those that nobody attends to
 * keep the NaN that memory begins with. */
#include "verify/operation/mla_sparse_prefill/mla_sparse_prefill.h"

#include <limits.h>

enum { HEAD_BITS = 16, UNWRITTEN = 0xFFFF };

struct filler {
    const struct assay_mla_sparse_prefill_case *prefill;
    struct assay_tensor q, kv, indices;
    enum assay_data_kind kind;
    uint64_t seed;
};

static void fill_queries(const struct filler *filler)
{
    const struct assay_mla_sparse_prefill_problem *const problem =
        &filler->prefill->problem;
    uint16_t *element = filler->q.data;
    for (int64_t token = 0; token < problem->s_q; token++)
        for (int64_t head = 0; head < problem->h_q; head++) {
            const struct assay_mla_vector vector = {
                .format = filler->q.format,
                .element = element,
                .count = problem->d_qk,
                .row_key = assay_mla_row_key(0, token << HEAD_BITS | head),
                .softmax_scale = problem->softmax_scale,
            };
            assay_mla_fill_vector(&vector, filler->kind, filler->seed, "q");
            element += problem->d_qk;
        }
}

/* Unless it is there already; a key that was generated has no NaN but the canonical. */
static void fill_key(const struct filler *filler, int64_t token)
{
    const struct assay_mla_sparse_prefill_problem *const problem =
        &filler->prefill->problem;
    uint16_t *const key = (uint16_t *)filler->kv.data + token * problem->kv_stride;
    if (key[0] != UNWRITTEN) return;
    const struct assay_mla_vector vector = {
        .format = filler->kv.format,
        .element = key,
        .count = problem->d_qk,
        .row_key = assay_mla_row_key(0, token),
        .is_key = true,
        .is_needle = token == assay_mla_needle(filler->seed, 0, problem->s_kv),
        .softmax_scale = problem->softmax_scale,
    };
    assay_mla_fill_vector(&vector, filler->kind, filler->seed, "kv");
}

/* One of the indices that no key has, whichever @draw begins with. */
static int32_t outside_index(uint32_t draw, int64_t s_kv)
{
    const int32_t outside[] = { INT_MIN, -123456,    -1,     (int32_t)s_kv,
                                114514,  2147480000, INT_MAX };
    const uint32_t count = sizeof(outside) / sizeof(outside[0]);
    uint32_t place = draw % count;
    while (outside[place] >= 0 && outside[place] < s_kv)
        place = (place + 1) % count;
    return outside[place];
}

/* Keys in shuffled order, again from the first when all are used up. Kind ties takes even
 * and odd ones in turns. */
static int64_t key_at(const struct filler *filler, int64_t token, int64_t position)
{
    const int64_t s_kv = filler->prefill->problem.s_kv;
    const uint64_t seed = filler->seed ^ (uint64_t)token * 0x9E3779B97F4A7C15u;
    if (filler->kind != ASSAY_DATA_TIES || s_kv < 2)
        return assay_mla_shuffled(seed, "indices", s_kv, position % s_kv);
    const int64_t pairs = s_kv / 2;
    return 2 * assay_mla_shuffled(seed, "indices", pairs, position / 2 % pairs) +
           position % 2;
}

static bool may_repeat(enum assay_data_kind kind)
{
    return kind != ASSAY_DATA_TIES;
}

/* Whether a row may have nothing but indices outside: not the first that has any. */
static bool may_be_lonely(const struct filler *filler, int64_t token)
{
    return filler->prefill->invalid > 0 && token > 0 &&
           assay_mla_sparse_prefill_length(filler->prefill, token - 1) > 0;
}

struct list { /* of one query token */
    const struct filler *filler;
    int64_t token;
    int64_t needle_at; /* kind needle: where the winner is; -1: nowhere */
    bool is_lonely;    /* nothing but indices outside */
};

/* The first key, the last one, and those around multiples of a block of 64. */
static int64_t edge_key(uint32_t draw, int64_t s_kv)
{
    const int64_t edge = (draw >> 8) % (s_kv / ASSAY_MLA_BLOCK + 1) * ASSAY_MLA_BLOCK;
    const int64_t key = edge + draw % 4 - 1;
    if (draw % 4 == 3) return draw & 4 ? s_kv - 1 : 0;
    return key < 0 ? 0 : key >= s_kv ? s_kv - 1 : key;
}

static int64_t named_key(const struct list *list, int64_t position, bool is_any,
                         uint32_t draw)
{
    const struct filler *const filler = list->filler;
    const int64_t s_kv = filler->prefill->problem.s_kv;
    const int64_t few =
        s_kv < ASSAY_MLA_REPEATED_TOKENS ? s_kv : ASSAY_MLA_REPEATED_TOKENS;
    switch (filler->prefill->pattern) {
    case ASSAY_MLA_INDICES_LAST: return s_kv - 1;
    case ASSAY_MLA_INDICES_EDGES: return edge_key(draw, s_kv);
    case ASSAY_MLA_INDICES_REPEATED: return key_at(filler, list->token, draw % few);
    default: break;
    }
    if (is_any && may_repeat(filler->kind))
        return (int64_t)((uint64_t)draw * (uint64_t)s_kv >> 32);
    return key_at(filler, list->token, position);
}

static int32_t make_index(const void *one_list, int64_t position,
                          struct assay_stream *stream)
{
    const struct list *const list = one_list;
    const struct filler *const filler = list->filler;
    const int64_t s_kv = filler->prefill->problem.s_kv;
    const double invalid = filler->prefill->invalid;
    const bool is_outside =
        assay_stream_unit(stream) < invalid && (position > 0 || invalid >= 1);
    const bool is_any = assay_stream_next(stream) < UINT32_MAX / 8;
    const uint32_t draw = assay_stream_next(stream);
    if (position == list->needle_at)
        return (int32_t)assay_mla_needle(filler->seed, 0, s_kv);
    if (is_outside || list->is_lonely) return outside_index(draw, s_kv);
    return (int32_t)named_key(list, position, is_any, draw);
}

/* One in eight is any key, of which some are repeated; the asked share is outside (but
 * not the first, unless all are), and with it all of one row in eight. */
static void fill_index_row(const struct filler *filler, int64_t token)
{
    const struct assay_mla_sparse_prefill_problem *const problem =
        &filler->prefill->problem;
    const int64_t length = assay_mla_sparse_prefill_length(filler->prefill, token);
    int32_t *const row = (int32_t *)filler->indices.data + token * problem->topk;
    struct list list = { .filler = filler, .token = token, .needle_at = -1 };
    struct assay_stream stream;
    assay_stream_open(&stream, filler->seed, "indices",
                      assay_data_kinds[filler->kind].name, token);
    list.is_lonely =
        assay_stream_next(&stream) < UINT32_MAX / 8 && may_be_lonely(filler, token);
    const uint32_t needle_draw = assay_stream_next(&stream);
    if (filler->kind == ASSAY_DATA_NEEDLE && length > 0)
        list.needle_at = (int64_t)((uint64_t)needle_draw * (uint64_t)length >> 32);
    const struct assay_mla_index_source source = {
        filler->prefill->pattern, length, problem->topk, problem->s_kv, make_index, &list
    };
    assay_mla_fill_indices(&source, &stream, row);
    for (int64_t position = 0; position < length; position++)
        if (row[position] >= 0 && row[position] < problem->s_kv)
            fill_key(filler, row[position]);
}

void assay_mla_sparse_prefill_fill(const void *problem, enum assay_data_kind kind,
                                   uint64_t seed, const struct assay_tensors *tensors)
{
    const struct assay_mla_sparse_prefill_case *const prefill = problem;
    const struct assay_mla_sparse_prefill_places place =
        assay_mla_sparse_prefill_places(&prefill->problem);
    const struct filler filler = { prefill,
                                   tensors->item[place.q],
                                   tensors->item[place.kv],
                                   tensors->item[place.indices],
                                   kind,
                                   seed };
    fill_queries(&filler);
    for (int64_t token = 0; token < prefill->problem.s_q; token++) {
        fill_index_row(&filler, token);
        if (place.topk_length >= 0)
            assay_tensor_set_bits(
                &tensors->item[place.topk_length], token,
                (uint32_t)assay_mla_sparse_prefill_length(prefill, token));
    }
    if (place.attn_sink >= 0)
        assay_mla_fill_sink(&tensors->item[place.attn_sink], kind, seed);
}

enum assay_status
assay_mla_sparse_prefill_check_inputs(const void *problem,
                                      const struct assay_tensors *tensors,
                                      struct assay_message *message)
{
    const struct assay_mla_sparse_prefill_case *const prefill = problem;
    const struct assay_tensor *const lengths = assay_tensors_find(tensors, "topk_length");
    const int64_t topk = prefill->problem.topk;
    for (int64_t token = 0; lengths && token < prefill->problem.s_q; token++) {
        const int32_t length = (int32_t)assay_tensor_bits(lengths, token);
        if (length < 0 || length > topk)
            return assay_fail(message, ASSAY_REFUSED,
                              "topk_length[%lld] is %d, but a row of indices has %lld; "
                              "use 0 to %lld",
                              (long long)token, length, (long long)topk, (long long)topk);
    }
    return ASSAY_RAN;
}
