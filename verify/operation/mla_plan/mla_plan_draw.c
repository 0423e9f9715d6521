/* SPDX-License-Identifier: MIT */
/* Random cases of mla_plan: dense and sparse, few and many requests, every kind of
 * length and machine. */
#include "verify/operation/mla_plan/mla_plan.h"

static int64_t draw_length(struct assay_stream *stream, int64_t maximum)
{
    static const int64_t edges[] = { 0, 0, 1, 63, 64, 65, 128, 129 };
    const int64_t edge = edges[assay_stream_below(stream, 8)];
    if (assay_stream_below(stream, 3) == 0 && edge <= maximum) return edge;
    return (int64_t)assay_stream_below(stream, (uint32_t)maximum + 1);
}

/* One value in four serves all requests. */
static void draw_lengths(struct assay_stream *stream, const char *name, int64_t maximum,
                         struct assay_case *the_case)
{
    int64_t values[ASSAY_MLA_MAX_REQUESTS];
    const int count =
        assay_stream_below(stream, 4) == 0 ? 1 : (int)assay_case_value(the_case, "b");
    for (int i = 0; i < count; i++)
        values[i] = draw_length(stream, maximum);
    assay_case_set_list(the_case, name, values, count);
}

static void draw_dense(struct assay_stream *stream, struct assay_case *the_case)
{
    static const int64_t heads[] = { 1, 3, 9, 16, 63, 64, 126, 128 };
    static const int64_t kv_heads[] = { 1, 1, 2, 3, 8 };
    static const int64_t lengths[] = { 100, 1000, 5000, 70000 };
    const int64_t h_q = heads[assay_stream_below(stream, 8)];
    const int64_t h_k = kv_heads[assay_stream_below(stream, 5)];
    assay_case_set(the_case, "h_q", h_q);
    assay_case_set(the_case, "h_k", h_q % h_k == 0 ? h_k : 1);
    draw_lengths(stream, "s_k", lengths[assay_stream_below(stream, 4)], the_case);
}

static void draw_sparse(struct assay_stream *stream, struct assay_case *the_case)
{
    static const int64_t topks[] = { 64, 128, 192, 512, 576, 2048 };
    const int64_t topk = topks[assay_stream_below(stream, 6)];
    const int64_t extra_topk = topks[assay_stream_below(stream, 6)];
    assay_case_set(the_case, "h_q", assay_stream_below(stream, 2) ? 128 : 64);
    assay_case_set(the_case, "topk", topk);
    if (assay_stream_below(stream, 2))
        draw_lengths(stream, "topk_length", topk, the_case);
    if (assay_stream_below(stream, 2) == 0) return;
    assay_case_set(the_case, "extra_topk", extra_topk);
    if (assay_stream_below(stream, 2))
        draw_lengths(stream, "extra_topk_length", extra_topk, the_case);
}

static void draw_machine(struct assay_stream *stream, struct assay_case *the_case)
{
    static const int64_t machines[] = { 132, 132, 114, 78, 144, 2 };
    assay_case_set(the_case, "s_q", 1 + (int64_t)assay_stream_below(stream, 4));
    assay_case_set(the_case, "sms", machines[assay_stream_below(stream, 6)]);
    if (assay_stream_below(stream, 4) == 0)
        assay_case_set(the_case, "parts",
                       1 + (int64_t)assay_stream_below(stream, ASSAY_MLA_MAX_PARTS));
    if (assay_stream_below(stream, 8) == 0)
        assay_case_set(the_case, "overhead", assay_stream_below(stream, 12));
}

void assay_mla_plan_draw(struct assay_stream *stream, double multiply_adds,
                         struct assay_case *the_case)
{
    /* Two lists of 250 values fit a line. */
    static const int64_t requests[] = { 1, 2, 3, 24, 64, 128, 250 };
    int64_t b;
    do
        b = assay_stream_below(stream, 2) ? requests[assay_stream_below(stream, 7)]
                                          : 1 + (int64_t)assay_stream_below(stream, 40);
    while ((double)b > multiply_adds);
    const bool is_sparse = assay_stream_below(stream, 2);
    assay_case_set(the_case, "attention", is_sparse);
    assay_case_set(the_case, "b", b);
    draw_machine(stream, the_case);
    if (is_sparse)
        draw_sparse(stream, the_case);
    else
        draw_dense(stream, the_case);
    the_case->seed = assay_stream_next(stream);
}
