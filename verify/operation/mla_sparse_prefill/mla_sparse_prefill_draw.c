/* SPDX-License-Identifier: MIT */
/* Random cases of mla_sparse_prefill: length edges, rows without a key, sinks, strides,
 * every kind of data. */
#include "verify/operation/mla_sparse_prefill/mla_sparse_prefill.h"

#include <stdio.h>

enum { MAX_TOKENS = 6, ATTEMPTS = 100 };

struct drawn {
    int64_t s_q, h_q, s_kv, d_qk, topk;
    int64_t topk_length[MAX_TOKENS];
    int lengths;
};

static int64_t one_of(struct assay_stream *stream, const int64_t *values, size_t count)
{
    return values[assay_stream_below(stream, (uint32_t)count)];
}

#define ONE_OF(stream, values) one_of(stream, values, sizeof(values) / sizeof(values[0]))

static int64_t draw_length(struct assay_stream *stream, enum assay_data_kind kind,
                           int64_t topk)
{
    static const int64_t edges[] = { 0, 1, 2, 63, 64, 65, 127, 128, 128, 128 };
    if (kind == ASSAY_DATA_EXACT) return INT64_C(1) << assay_stream_below(stream, 8);
    return assay_stream_below(stream, 2)
               ? ONE_OF(stream, edges)
               : (int64_t)assay_stream_below(stream, (uint32_t)topk + 1);
}

static void draw_sizes(struct assay_stream *stream, enum assay_data_kind kind,
                       struct drawn *drawn)
{
    static const int64_t topks[] = { 128, 128, 128, 256, 384, 512 };
    static const int64_t keys[] = { 1, 2, 32, 64, 127, 128, 200, 300, 1000, 120000 };
    static const int64_t exact_topks[] = { 128, 256, 512 };
    drawn->s_q = 1 + assay_stream_below(stream, MAX_TOKENS);
    drawn->h_q = assay_stream_below(stream, 3) ? 64 : 128;
    drawn->d_qk = assay_stream_below(stream, 3) ? 576 : 512;
    drawn->s_kv = ONE_OF(stream, keys);
    drawn->topk =
        kind == ASSAY_DATA_EXACT ? ONE_OF(stream, exact_topks) : ONE_OF(stream, topks);
    const uint32_t how = assay_stream_below(stream, 4);
    drawn->lengths = how < 2 ? 0 : how == 2 ? 1 : (int)drawn->s_q;
    for (int i = 0; i < drawn->lengths; i++)
        drawn->topk_length[i] = draw_length(stream, kind, drawn->topk);
}

static double cost_of(const struct drawn *drawn)
{
    int64_t keys = 0;
    for (int64_t i = 0; i < drawn->s_q; i++)
        keys += drawn->lengths == 0 ? drawn->topk
                                    : drawn->topk_length[drawn->lengths == 1 ? 0 : i];
    return (double)(drawn->h_q * keys) * (double)(drawn->d_qk + ASSAY_MLA_D_V);
}

/* One row of heads and one key is the least there is, whatever the budget. */
static void draw_case(struct assay_stream *stream, double multiply_adds,
                      struct assay_case *the_case)
{
    struct drawn drawn;
    int attempt = 0;
    do
        draw_sizes(stream, the_case->data, &drawn);
    while (cost_of(&drawn) > multiply_adds && ++attempt < ATTEMPTS);
    if (attempt == ATTEMPTS) drawn = (struct drawn){ 1, 64, 1, 512, 128, { 1 }, 1 };
    assay_case_set(the_case, "s_q", drawn.s_q);
    assay_case_set(the_case, "h_q", drawn.h_q);
    assay_case_set(the_case, "s_kv", drawn.s_kv);
    assay_case_set(the_case, "d_qk", drawn.d_qk);
    assay_case_set(the_case, "topk", drawn.topk);
    assay_case_set_list(the_case, "topk_length", drawn.topk_length, drawn.lengths);
}

void assay_mla_sparse_prefill_draw(struct assay_stream *stream, double multiply_adds,
                                   struct assay_case *the_case)
{
    static const int64_t shares[] = { 0, 100000000000, 500000000000, 900000000000,
                                      ASSAY_FRACTION_UNIT };
    static const int64_t scales[] = { 41666666667, 60000000000, 25000000000,
                                      72168783648 };
    static const char *const others[] = { "flash", "naive" };
    the_case->data =
        (enum assay_data_kind)assay_stream_below(stream, ASSAY_DATA_NEEDLE + 1);
    draw_case(stream, multiply_adds, the_case);
    if (the_case->data != ASSAY_DATA_EXACT && assay_stream_below(stream, 2))
        assay_case_set(the_case, "invalid", ONE_OF(stream, shares));
    assay_case_set(the_case, "sink", assay_stream_below(stream, 2));
    if (assay_stream_below(stream, 4) == 0)
        assay_case_set(the_case, "kv_stride",
                       assay_case_value(the_case, "d_qk") +
                           8 * (int64_t)assay_stream_below(stream, 9));
    if (assay_stream_below(stream, 4) == 0)
        assay_case_set(the_case, "softmax_scale", ONE_OF(stream, scales));
    if (assay_stream_below(stream, 4) == 0) assay_case_set(the_case, "lse", 1);
    const uint32_t how = assay_stream_below(stream, 8);
    if (how < 2)
        snprintf(the_case->numerics, sizeof(the_case->numerics), "%s", others[how]);
    the_case->seed = assay_stream_next(stream);
}
