/* SPDX-License-Identifier: MIT */
/* Random cases of mla_absorb: both forms, every kind of data, extents around the steps
 * and tiles of the tensor core. */
#include "verify/operation/mla_absorb/mla_absorb.h"

struct extent {
    const char *name;
    int64_t most;     /* of a uniform draw */
    int64_t multiple; /* of which it is one */
};

static const struct extent extents[] = {
    { "d", 130, 1 },  { "d_c", 80, 1 }, { "d_c_q", 80, 1 },
    { "d_h", 72, 1 }, { "d_r", 36, 2 }, { "h_q", 3, 1 },
};
enum { EXTENTS = sizeof(extents) / sizeof(extents[0]) };

/* Edges of steps and tiles and their neighbours, or anything. */
static int64_t draw_extent(struct assay_stream *stream, const struct extent *extent)
{
    static const int64_t edges[] = { 1, 2, 15, 16, 17, 32, 63, 64, 65, 128 };
    const uint32_t count = sizeof(edges) / sizeof(edges[0]);
    int64_t value = 1 + assay_stream_below(stream, (uint32_t)extent->most);
    if (assay_stream_below(stream, 3) == 0)
        value = edges[assay_stream_below(stream, count)];
    if (value > extent->most) value = extent->most;
    return value + value % extent->multiple;
}

/* With one token there is nothing to choose between: rare. */
static void draw_tokens(struct assay_stream *stream, struct assay_case *the_case)
{
    const int64_t n =
        assay_stream_below(stream, 8) ? 2 + (int64_t)assay_stream_below(stream, 70) : 1;
    const int64_t most = n < 5 ? n : 5;
    assay_case_set(the_case, "n", n);
    assay_case_set(the_case, "s_q", 1 + assay_stream_below(stream, (uint32_t)most));
}

/* Weights for scores of moderate size: products of positive values all add up. */
static void draw_data(struct assay_stream *stream, struct assay_case *the_case)
{
    static const enum assay_data_kind kinds[] = { ASSAY_DATA_NORMAL, ASSAY_DATA_UNIFORM,
                                                  ASSAY_DATA_POSITIVE };
    the_case->data = kinds[assay_stream_below(stream, 3)];
    const int64_t least = the_case->data == ASSAY_DATA_POSITIVE ? -6 : -4;
    assay_case_set(the_case, "weight_exponent",
                   least + (int64_t)assay_stream_below(stream, 3));
}

static double multiply_adds_of(const struct assay_case *the_case)
{
    struct assay_mla_absorb_case absorb;
    struct assay_message message;
    const enum assay_status status = assay_mla_absorb.bind(the_case, &absorb, &message);
    return status == ASSAY_RAN ? assay_mla_absorb.cost(&absorb).multiply_adds : 0;
}

/* Raises the extents, or all of them, to what leaves no output to chance: with less all
 * may be zeros. */
static void set_least(struct assay_case *the_case, bool all)
{
    for (int i = 0; i < EXTENTS; i++) {
        const int64_t least = i < 4 ? 16 : extents[i].multiple;
        if (all || assay_case_value(the_case, extents[i].name) < least)
            assay_case_set(the_case, extents[i].name, least);
    }
}

/* Of some 100,000 multiply-adds at most, or @multiply_adds. */
static void draw_exact(struct assay_stream *stream, double multiply_adds,
                       struct assay_case *the_case)
{
    the_case->data = ASSAY_DATA_EXACT;
    assay_case_set(the_case, "n", INT64_C(8) << assay_stream_below(stream, 4));
    assay_case_set(the_case, "s_q", 1);
    assay_case_set(the_case, "weight_exponent", -3);
    set_least(the_case, false);
    if (multiply_adds_of(the_case) > multiply_adds) set_least(the_case, true);
}

/* Halves the extents until the case fits; one of everything is the least there is. */
static void shrink_to(double multiply_adds, struct assay_case *the_case)
{
    bool is_least = false;
    while (multiply_adds_of(the_case) > multiply_adds && !is_least) {
        const int64_t s_q = assay_case_value(the_case, "s_q");
        const int64_t n = assay_case_value(the_case, "n");
        assay_case_set(the_case, "n", n / 2 > s_q ? n / 2 : s_q);
        is_least = n == s_q;
        for (int i = 0; i < EXTENTS; i++) {
            const int64_t value = assay_case_value(the_case, extents[i].name);
            const int64_t half = value / 2 + value / 2 % extents[i].multiple;
            if (half < extents[i].multiple || half == value) continue;
            assay_case_set(the_case, extents[i].name, half);
            is_least = false;
        }
    }
}

void assay_mla_absorb_draw(struct assay_stream *stream, double multiply_adds,
                           struct assay_case *the_case)
{
    for (int i = 0; i < EXTENTS; i++)
        assay_case_set(the_case, extents[i].name, draw_extent(stream, &extents[i]));
    assay_case_set(the_case, "form", assay_stream_below(stream, 2));
    assay_case_set(the_case, "out",
                   assay_stream_below(stream, 3) ? ASSAY_BF16 : ASSAY_F32);
    draw_tokens(stream, the_case);
    draw_data(stream, the_case);
    const bool is_exact = assay_stream_below(stream, 5) == 0;
    if (is_exact && multiply_adds >= 1 << 17)
        draw_exact(stream, multiply_adds, the_case);
    else
        shrink_to(multiply_adds, the_case);
    /* Means of few positive values may all round to one. */
    if (the_case->data == ASSAY_DATA_POSITIVE && assay_case_value(the_case, "d_h") < 4)
        the_case->data = ASSAY_DATA_UNIFORM;
    the_case->seed = assay_stream_next(stream);
}
