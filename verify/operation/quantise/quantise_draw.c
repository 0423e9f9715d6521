/* SPDX-License-Identifier: MIT */
/* Random cases of quantise: every granularity, form, kind of data and tail. */
#include "verify/operation/quantise/quantise.h"

/* Block edges and their neighbours, or anything, until the case fits the budget. */
static void draw_extents(struct assay_stream *stream, double multiply_adds,
                         struct assay_case *the_case)
{
    static const int64_t edges[] = { 1,   2,   31,  32,  33,   63,   64,  96,
                                     127, 128, 129, 255, 1024, 1025, 1152 };
    const uint32_t count = sizeof(edges) / sizeof(edges[0]);
    int64_t m, k;
    do {
        const uint32_t how = assay_stream_next(stream);
        m = how & 1 ? edges[assay_stream_below(stream, count)]
                    : 1 + (int64_t)assay_stream_below(stream, 300);
        k = how & 2 ? edges[assay_stream_below(stream, count)]
                    : 1 + (int64_t)assay_stream_below(stream, 2100);
    } while ((double)m * (double)k > multiply_adds);
    assay_case_set(the_case, "m", m);
    assay_case_set(the_case, "k", k);
}

static enum assay_data_kind draw_data(struct assay_stream *stream)
{
    enum assay_data_kind kind;
    do
        kind = (enum assay_data_kind)assay_stream_below(stream, ASSAY_GENERAL_DATA_KINDS);
    while (!assay_quantise_has_data(kind));
    return kind;
}

static void draw_strides(struct assay_stream *stream, struct assay_case *the_case)
{
    static const char *const keys[] = { "x_stride", "q_stride" };
    for (int i = 0; i < 2; i++)
        if (assay_stream_below(stream, 8) == 0)
            assay_case_set(the_case, keys[i],
                           assay_case_value(the_case, "k") + 1 +
                               (int64_t)assay_stream_below(stream, 40));
}

/* Whether all outputs may be one constant: special values spare no scale of a case with
 * one column of large blocks, and where scales are exact each begins with 448. */
static bool is_blind(const struct assay_case *the_case)
{
    const int64_t m = assay_case_value(the_case, "m");
    const int64_t k = assay_case_value(the_case, "k");
    const bool is_block =
        assay_case_value(the_case, "granularity") == ASSAY_QUANTISE_BLOCK;
    switch (the_case->data) {
    case ASSAY_DATA_SPECIAL: return is_block ? k <= 128 : m <= 1;
    case ASSAY_DATA_TIES:
    case ASSAY_DATA_EXACT: return k <= 1;
    default: return false;
    }
}

void assay_quantise_draw(struct assay_stream *stream, double multiply_adds,
                         struct assay_case *the_case)
{
    draw_extents(stream, multiply_adds, the_case);
    draw_strides(stream, the_case);
    assay_case_set(the_case, "granularity", assay_stream_below(stream, 2));
    assay_case_set(the_case, "gran_k", assay_stream_below(stream, 4) ? 128 : 32);
    assay_case_set(the_case, "x_format",
                   assay_stream_below(stream, 3) ? ASSAY_BF16 : ASSAY_F32);
    assay_case_set(the_case, "scale", assay_stream_below(stream, 2));
    do
        the_case->data = draw_data(stream);
    while (is_blind(the_case));
    the_case->seed = assay_stream_next(stream);
}
