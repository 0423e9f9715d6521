/* SPDX-License-Identifier: MIT */
/* Random cases of scale_layout: every legal conversion, granularity and tail. */
#include "verify/operation/scale_layout/scale_layout.h"

static void draw_extents(struct assay_stream *stream, double multiply_adds,
                         struct assay_case *the_case)
{
    static const int64_t edges[] = { 1, 2, 3, 4, 5, 63, 64, 65, 127, 128, 129, 256 };
    const uint32_t count = sizeof(edges) / sizeof(edges[0]);
    int64_t groups, mn, k;
    do {
        const uint32_t how = assay_stream_next(stream);
        groups = how & 1 ? 0 : 1 + (int64_t)assay_stream_below(stream, 4);
        mn = how & 2 ? edges[assay_stream_below(stream, count)]
                     : 1 + (int64_t)assay_stream_below(stream, 400);
        k = how & 4 ? 128 * edges[assay_stream_below(stream, count)]
                    : 1 + (int64_t)assay_stream_below(stream, 3000);
        /* A few equal scales would prove nothing. */
    } while ((double)(groups + !groups) * (double)mn * (double)k / 128 > multiply_adds ||
             (groups + !groups) * mn * ((k + 127) / 128) < 4);
    assay_case_set(the_case, "groups", groups);
    assay_case_set(the_case, "mn", mn);
    assay_case_set(the_case, "k", k);
}

static void draw_layouts(struct assay_stream *stream, struct assay_case *the_case)
{
    const uint32_t from = assay_stream_below(stream, 3);
    const uint32_t to = (from + 1 + assay_stream_below(stream, 2)) % 3;
    const bool is_packing = to == ASSAY_SCALE_PACKED_UE8M0;
    const bool is_packed = is_packing || from == ASSAY_SCALE_PACKED_UE8M0;
    assay_case_set(the_case, "from", from);
    assay_case_set(the_case, "to", to);
    if (is_packing && assay_stream_below(stream, 3) == 0)
        assay_case_set(the_case, "gran_mn", 128);
    if (is_packed && assay_stream_below(stream, 2))
        assay_case_set(the_case, "gran_k", 32);
}

void assay_scale_layout_draw(struct assay_stream *stream, double multiply_adds,
                             struct assay_case *the_case)
{
    draw_extents(stream, multiply_adds, the_case);
    draw_layouts(stream, the_case);
    const bool is_packing = assay_case_value(the_case, "to") == ASSAY_SCALE_PACKED_UE8M0;
    enum assay_data_kind kind;
    do
        kind = (enum assay_data_kind)assay_stream_below(stream, ASSAY_GENERAL_DATA_KINDS);
    while (!assay_scale_layout_has_data(kind) ||
           (is_packing && !assay_scale_layout_has_packable_data(kind)));
    the_case->data = kind;
    the_case->seed = assay_stream_next(stream);
}
