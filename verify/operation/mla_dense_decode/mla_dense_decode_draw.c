/* SPDX-License-Identifier: MIT */
/* Random cases of mla_dense_decode: page edges, many requests, grouped heads, every plan,
 * format and kind of data. */
#include "verify/operation/mla_dense_decode/mla_dense_decode.h"

#include <stdio.h>

enum { MAX_DRAWN_REQUESTS = 40, ATTEMPTS = 100 };

struct drawn {
    int64_t b, h_q, h_k, s_q;
    int64_t s_k[MAX_DRAWN_REQUESTS];
    int lengths; /* 1, or b */
};

static int64_t one_of(struct assay_stream *stream, const int64_t *values, size_t count)
{
    return values[assay_stream_below(stream, (uint32_t)count)];
}

#define ONE_OF(stream, values) one_of(stream, values, sizeof(values) / sizeof(values[0]))

static int64_t draw_length(struct assay_stream *stream, enum assay_data_kind kind)
{
    static const int64_t edges[] = { 0,   0,   1,   2,   63,  64,  65,  66, 127,
                                     128, 129, 191, 192, 193, 256, 257, 320 };
    if (kind == ASSAY_DATA_EXACT) {
        const uint32_t draw = assay_stream_below(stream, 11);
        return draw == 10 ? 0 : INT64_C(1) << draw;
    }
    return assay_stream_below(stream, 2) ? ONE_OF(stream, edges)
                                         : 1 + assay_stream_below(stream, 600);
}

static void draw_sizes(struct assay_stream *stream, enum assay_data_kind kind,
                       struct drawn *drawn)
{
    static const int64_t requests[] = { 1, 1, 2, 2, 3, 5, 9, MAX_DRAWN_REQUESTS };
    static const int64_t tokens[] = { 1, 1, 1, 2, 3, 4 };
    static const int64_t heads[][2] = { { 1, 1 },   { 3, 1 },  { 9, 1 },  { 16, 1 },
                                        { 63, 1 },  { 64, 1 }, { 65, 1 }, { 128, 1 },
                                        { 128, 1 }, { 18, 2 }, { 4, 2 },  { 63, 3 },
                                        { 8, 8 } };
    const uint32_t pair = assay_stream_below(stream, sizeof(heads) / sizeof(heads[0]));
    drawn->b = ONE_OF(stream, requests);
    drawn->h_q = heads[pair][0];
    drawn->h_k = heads[pair][1];
    drawn->s_q = ONE_OF(stream, tokens);
    drawn->lengths = assay_stream_below(stream, 4) ? (int)drawn->b : 1;
    for (int i = 0; i < drawn->lengths; i++)
        drawn->s_k[i] = draw_length(stream, kind);
}

static double cost_of(const struct drawn *drawn)
{
    int64_t keys = 0;
    for (int64_t i = 0; i < drawn->b; i++)
        keys += drawn->s_k[drawn->lengths == 1 ? 0 : i];
    return (double)(drawn->s_q * drawn->h_q * keys) * (ASSAY_DENSE_D_QK + ASSAY_MLA_D_V);
}

/* Too few rows, and one odd key may leave nothing but NaN. */
static bool is_blind(const struct drawn *drawn, enum assay_data_kind kind)
{
    return kind == ASSAY_DATA_SPECIAL && drawn->s_q * drawn->h_q / drawn->h_k < 16;
}

/* One row and one key is the least there is, whatever the budget. */
static void draw_case(struct assay_stream *stream, double multiply_adds,
                      struct assay_case *the_case)
{
    struct drawn drawn;
    int attempt = 0;
    do
        draw_sizes(stream, the_case->data, &drawn);
    while ((cost_of(&drawn) > multiply_adds || is_blind(&drawn, the_case->data)) &&
           ++attempt < ATTEMPTS);
    if (attempt == ATTEMPTS) {
        drawn = (struct drawn){ 1, 1, 1, 1, { 1 }, 1 };
        the_case->data = ASSAY_DATA_NORMAL;
    }
    assay_case_set(the_case, "b", drawn.b);
    assay_case_set(the_case, "h_q", drawn.h_q);
    assay_case_set(the_case, "h_k", drawn.h_k);
    assay_case_set(the_case, "s_q", drawn.s_q);
    assay_case_set_list(the_case, "s_k", drawn.s_k, drawn.lengths);
}

static void draw_rest(struct assay_stream *stream, struct assay_case *the_case)
{
    static const int64_t machines[] = { 1, 4, 16, 78, 132, 132, 132, 160 };
    static const int64_t scales[] = { 41666666667, 50000000000, 25000000000,
                                      72168783648 };
    static const char *const others[] = { "flash", "naive" };
    const bool is_exact = the_case->data == ASSAY_DATA_EXACT;
    assay_case_set(the_case, "causal",
                   (!is_exact || assay_case_value(the_case, "s_q") == 1) &&
                       assay_stream_below(stream, 2));
    assay_case_set(the_case, "sms", ONE_OF(stream, machines));
    assay_case_set(the_case, "plan", assay_stream_below(stream, 4));
    if (assay_stream_below(stream, 4) == 0) assay_case_set(the_case, "format", ASSAY_F16);
    if (assay_stream_below(stream, 4) == 0)
        assay_case_set(the_case, "softmax_scale", ONE_OF(stream, scales));
    if (assay_stream_below(stream, 4) == 0) assay_case_set(the_case, "lse", 1);
    const uint32_t how = assay_stream_below(stream, 8);
    if (how < 2)
        snprintf(the_case->numerics, sizeof(the_case->numerics), "%s", others[how]);
}

static void draw_room(struct assay_stream *stream, struct assay_case *the_case)
{
    int count;
    int64_t all = 0, longest = 1;
    const int64_t b = assay_case_value(the_case, "b");
    const int64_t *const s_k = assay_case_list(the_case, "s_k", &count);
    for (int64_t i = 0; i < b; i++) {
        const int64_t pages = assay_mla_dense_pages(s_k[count == 1 ? 0 : i]);
        all += pages;
        longest = pages > longest ? pages : longest;
    }
    if (assay_stream_below(stream, 4) == 0)
        assay_case_set(the_case, "pages", all + assay_stream_below(stream, 20));
    if (assay_stream_below(stream, 4) == 0)
        assay_case_set(the_case, "table_columns",
                       longest + assay_stream_below(stream, 5));
}

void assay_mla_dense_decode_draw(struct assay_stream *stream, double multiply_adds,
                                 struct assay_case *the_case)
{
    struct assay_mla_dense_decode_case dense;
    struct assay_message ignored;
    the_case->data =
        (enum assay_data_kind)assay_stream_below(stream, ASSAY_DATA_NEEDLE + 1);
    draw_case(stream, multiply_adds, the_case);
    draw_rest(stream, the_case);
    draw_room(stream, the_case);
    the_case->seed = assay_stream_next(stream);
    if (the_case->data == ASSAY_DATA_EXACT &&
        the_case->operation->bind(the_case, &dense, &ignored) != ASSAY_RAN)
        assay_case_set(the_case, "plan", ASSAY_MLA_PLAN_WHOLE);
}
