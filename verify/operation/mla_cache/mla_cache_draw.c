/* SPDX-License-Identifier: MIT */
/* Random cases of the cache operations: every layout, page size and kind of data. */
#include "verify/operation/mla_cache/mla_cache.h"

enum { MOST_TOKENS = 300, LARGEST_KEY = ASSAY_MLA_MAX_D_QK };

static void draw_pages(struct assay_stream *stream, double multiply_adds,
                       struct assay_case *the_case)
{
    static const int64_t sizes[] = { 64, 64, 64, 1, 2, 53, 61, 69, 128, 576 };
    const double affordable = multiply_adds / LARGEST_KEY;
    const uint32_t most = affordable > MOST_TOKENS ? MOST_TOKENS : (uint32_t)affordable;
    const uint32_t size = assay_stream_below(stream, sizeof(sizes) / sizeof(sizes[0]));
    assay_case_set(the_case, "tokens",
                   1 + (int64_t)assay_stream_below(stream, most ? most : 1));
    assay_case_set(the_case, "page_size", sizes[size]);
    if (assay_stream_below(stream, 3) == 0)
        assay_case_set(the_case, "page_padding",
                       1 + (int64_t)assay_stream_below(stream, 1200));
}

static void draw_layout(struct assay_stream *stream, struct assay_case *the_case)
{
    const uint32_t kv = assay_stream_below(stream, 4);
    assay_case_set(the_case, "kv", kv);
    if (kv == ASSAY_MLA_V32)
        assay_case_set(the_case, "scale", assay_stream_below(stream, 2));
}

static void draw_data(struct assay_stream *stream, struct assay_case *the_case)
{
    do
        the_case->data =
            (enum assay_data_kind)assay_stream_below(stream, ASSAY_GENERAL_DATA_KINDS);
    while (!assay_operation_takes(the_case->operation, the_case->data));
    the_case->seed = assay_stream_next(stream);
}

void assay_mla_cache_quantise_draw(struct assay_stream *stream, double multiply_adds,
                                   struct assay_case *the_case)
{
    draw_pages(stream, multiply_adds, the_case);
    draw_layout(stream, the_case);
    draw_data(stream, the_case);
}

void assay_mla_cache_dequantise_draw(struct assay_stream *stream, double multiply_adds,
                                     struct assay_case *the_case)
{
    draw_pages(stream, multiply_adds, the_case);
    draw_layout(stream, the_case);
    do
        draw_data(stream, the_case);
    while (the_case->data == ASSAY_DATA_TIES &&
           assay_case_value(the_case, "kv") == ASSAY_MLA_V41_FP4);
    if (the_case->data == ASSAY_DATA_SPECIAL)
        the_case->is_unsafe = assay_stream_below(stream, 2);
}
