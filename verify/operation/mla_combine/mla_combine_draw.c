/* SPDX-License-Identifier: MIT */
/* Random cases of mla_combine: any number of splits, shapes, sinks and kinds of data. */
#include "verify/operation/mla_combine/mla_combine.h"

enum { TRIES = 64, FEWEST_ROWS = 16 }; /* rows of which some certainly have keys */

static int64_t draw_splits(struct assay_stream *stream)
{
    static const int64_t edges[] = { 1, 2, 31, 32, 33, 64, 65, 160 };
    if (assay_stream_below(stream, 4) == 0) return edges[assay_stream_below(stream, 8)];
    return 1 + (int64_t)assay_stream_below(stream, 12);
}

/* Draws until the case fits; at last one row of two splits. */
static void draw_shape(struct assay_stream *stream, double multiply_adds,
                       struct assay_case *the_case)
{
    static const int64_t heads[] = { 1, 3, 7, 8, 9, 16, 64, 128 };
    int64_t b = 1, s_q = 1, h_q = 1, splits[8] = { 2 };
    for (int i = 0; i < TRIES; i++) {
        int64_t total = 0, most = 0;
        b = 1 + (int64_t)assay_stream_below(stream, 8);
        s_q = 1 + (int64_t)assay_stream_below(stream, 3);
        h_q = heads[assay_stream_below(stream, 8)];
        for (int64_t at = 0; at < b; at++) {
            splits[at] = draw_splits(stream);
            total += splits[at];
            if (splits[at] > most) most = splits[at];
        }
        if (most > 1 && (double)(total * s_q * h_q) * ASSAY_MLA_D_V <= multiply_adds)
            break;
        b = s_q = h_q = 1;
        splits[0] = 2;
    }
    assay_case_set(the_case, "b", b);
    assay_case_set(the_case, "s_q", s_q);
    assay_case_set(the_case, "h_q", h_q);
    assay_case_set_list(the_case, "splits", splits, (int)b);
}

static bool has_several_rows(const struct assay_case *the_case)
{
    return assay_case_value(the_case, "s_q") * assay_case_value(the_case, "h_q") >=
           FEWEST_ROWS;
}

void assay_mla_combine_draw(struct assay_stream *stream, double multiply_adds,
                            struct assay_case *the_case)
{
    draw_shape(stream, multiply_adds, the_case);
    assay_case_set(the_case, "sink", assay_stream_below(stream, 2));
    assay_case_set(the_case, "format",
                   assay_stream_below(stream, 3) ? ASSAY_BF16 : ASSAY_F16);
    the_case->data =
        (enum assay_data_kind)assay_stream_below(stream, ASSAY_GENERAL_DATA_KINDS);
    const bool may_be_empty =
        the_case->data != ASSAY_DATA_EXACT && the_case->data != ASSAY_DATA_TIES;
    const int64_t tenths = (int64_t)assay_stream_below(stream, 6);
    if (may_be_empty && has_several_rows(the_case))
        assay_case_set(the_case, "empty", tenths * (ASSAY_FRACTION_UNIT / 10));
    the_case->seed = assay_stream_next(stream);
}
