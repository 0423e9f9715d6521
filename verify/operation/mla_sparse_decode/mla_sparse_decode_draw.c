/* SPDX-License-Identifier: MIT */
/* Random cases of mla_sparse_decode: every format, page size, length edge, extra cache,
 * plan and kind of data. */
#include "verify/operation/mla_sparse_decode/mla_sparse_decode.h"

#define COUNT(values) ((uint32_t)(sizeof(values) / sizeof(values[0])))

static const int64_t page_sizes[] = { 2, 53, 61, 64, 69 };

/* A tile of 64 heads against 64 keys is the least there is, 4.5 million multiply-adds;
 * smaller budgets get what a few of them cost. */
static const double least_multiply_adds = 1 << 25;

static bool is_one_in(struct assay_stream *stream, uint32_t count)
{
    return assay_stream_below(stream, count) == 0;
}

/* 0, the block edges, all, or anything up to @topk. */
static int64_t draw_length(struct assay_stream *stream, int64_t topk)
{
    const int64_t edges[] = { 0, 1, 63, 64, 65, topk - 1, topk };
    const int64_t any = assay_stream_below(stream, (uint32_t)topk + 1);
    const int64_t edge = edges[assay_stream_below(stream, COUNT(edges))];
    return is_one_in(stream, 2) || edge > topk ? any : edge;
}

static void draw_lengths(struct assay_stream *stream, const char *key, int64_t topk,
                         struct assay_case *the_case)
{
    const int b = (int)assay_case_value(the_case, "b");
    const int count = is_one_in(stream, 4) ? 1 : b;
    int64_t lengths[16];
    for (int i = 0; i < count; i++)
        lengths[i] = draw_length(stream, topk);
    assay_case_set_list(the_case, key, lengths, count);
}

/* Fewer tokens than indices leave the last of these -1. */
static int64_t draw_tokens(struct assay_stream *stream, int64_t topk)
{
    switch (assay_stream_below(stream, 4)) {
    case 0: return 1 + assay_stream_below(stream, (uint32_t)topk);
    case 1: return topk + assay_stream_below(stream, 300);
    default: return 0;
    }
}

static void draw_extents(struct assay_stream *stream, double multiply_adds,
                         struct assay_case *the_case)
{
    int64_t b, h_q, s_q, topk, extra_topk;
    const bool has_extra =
        assay_case_value(the_case, "kv") != ASSAY_MLA_V32 && is_one_in(stream, 2);
    do {
        b = 1 + assay_stream_below(stream, is_one_in(stream, 4) ? 8 : 3);
        h_q = is_one_in(stream, 3) ? 128 : 64;
        s_q = 1 + assay_stream_below(stream, 3);
        topk = 64 * (1 + (int64_t)assay_stream_below(stream, 6));
        extra_topk = has_extra ? 64 * (1 + (int64_t)assay_stream_below(stream, 3)) : 0;
    } while ((double)(b * h_q * s_q * (topk + extra_topk) * 1088) > multiply_adds);
    assay_case_set(the_case, "b", b);
    assay_case_set(the_case, "h_q", h_q);
    assay_case_set(the_case, "s_q", s_q);
    assay_case_set(the_case, "topk", topk);
    assay_case_set(the_case, "extra_topk", extra_topk);
}

static void draw_cache(struct assay_stream *stream, struct assay_case *the_case)
{
    const int64_t topk = assay_case_value(the_case, "topk");
    assay_case_set(the_case, "s_kv", draw_tokens(stream, topk));
    assay_case_set(the_case, "page_size",
                   page_sizes[assay_stream_below(stream, COUNT(page_sizes))]);
    if (is_one_in(stream, 4))
        assay_case_set(the_case, "page_padding", 16 * assay_stream_below(stream, 40));
    if (assay_case_value(the_case, "kv") == ASSAY_MLA_V32)
        assay_case_set(the_case, "scales", is_one_in(stream, 2));
    else if (is_one_in(stream, 2))
        draw_lengths(stream, "topk_length", topk, the_case);
}

static void draw_extra(struct assay_stream *stream, struct assay_case *the_case)
{
    const int64_t topk = assay_case_value(the_case, "extra_topk");
    if (topk == 0) return;
    if (assay_case_value(the_case, "kv") == ASSAY_MLA_V41_FP8 && is_one_in(stream, 2))
        assay_case_set(the_case, "extra_kv", ASSAY_MLA_V41_FP4);
    assay_case_set(the_case, "extra_s_kv", draw_tokens(stream, topk));
    if (is_one_in(stream, 2))
        assay_case_set(the_case, "extra_page_size",
                       page_sizes[assay_stream_below(stream, COUNT(page_sizes))]);
    if (is_one_in(stream, 2)) draw_lengths(stream, "extra_topk_length", topk, the_case);
}

static void draw_invalid(struct assay_stream *stream, struct assay_case *the_case)
{
    static const int shares[] = { 0, 0, 1, 5, 9, 10 }; /* tenths */
    const int tenths = shares[assay_stream_below(stream, COUNT(shares))];
    const bool is_all = tenths == 10 && !is_one_in(stream, 4);
    assay_case_set(the_case, "invalid", is_all ? 0 : tenths * (ASSAY_FRACTION_UNIT / 10));
}

static void draw_rest(struct assay_stream *stream, struct assay_case *the_case)
{
    static const int64_t machines[] = { 132, 132, 78, 8, 1 };
    static const int64_t scales[] = { 0, 0, 30322684, 41666668, 100000000 }; /* 10^-9 */
    assay_case_set(the_case, "sink", is_one_in(stream, 2));
    assay_case_set(the_case, "tables", is_one_in(stream, 4));
    assay_case_set(the_case, "sms",
                   machines[assay_stream_below(stream, COUNT(machines))]);
    assay_case_set(the_case, "plan", assay_stream_below(stream, 4));
    assay_case_set(the_case, "softmax_scale",
                   scales[assay_stream_below(stream, COUNT(scales))] * 1000);
    assay_case_set(the_case, "lse", is_one_in(stream, 4));
    the_case->data =
        (enum assay_data_kind)assay_stream_below(stream, ASSAY_DATA_RECORDED);
    if (the_case->data == ASSAY_DATA_EXACT || the_case->data == ASSAY_DATA_NEEDLE)
        assay_case_set(the_case, "scales", 0);
    if (the_case->data == ASSAY_DATA_EXACT)
        assay_case_set(the_case, "plan", ASSAY_MLA_PLAN_WHOLE);
    the_case->seed = assay_stream_next(stream);
}

void assay_mla_sparse_decode_draw(struct assay_stream *stream, double multiply_adds,
                                  struct assay_case *the_case)
{
    assay_case_set(the_case, "kv",
                   assay_mla_sparse_decode_kvs[assay_stream_below(stream, 3)].value);
    draw_extents(
        stream, multiply_adds > least_multiply_adds ? multiply_adds : least_multiply_adds,
        the_case);
    draw_cache(stream, the_case);
    draw_extra(stream, the_case);
    draw_invalid(stream, the_case);
    draw_rest(stream, the_case);
}
