/* SPDX-License-Identifier: MIT */
/* Random cases of wgmma: every format, kind of data and length of chain. */
#include "verify/operation/unit/unit.h"

static int64_t one_of(struct assay_stream *stream, const int64_t *values, size_t count)
{
    return values[assay_stream_below(stream, (uint32_t)count)];
}

#define ONE_OF(stream, values) one_of(stream, values, sizeof(values) / sizeof(values[0]))

static void draw_formats(struct assay_stream *stream, struct assay_case *the_case)
{
    static const enum assay_format pairs[][2] = {
        { ASSAY_E4M3, ASSAY_E4M3 }, { ASSAY_E4M3, ASSAY_E4M3 },
        { ASSAY_E4M3, ASSAY_E5M2 }, { ASSAY_E5M2, ASSAY_E4M3 },
        { ASSAY_E5M2, ASSAY_E5M2 }, { ASSAY_BF16, ASSAY_BF16 },
        { ASSAY_F16, ASSAY_F16 },   { ASSAY_TF32, ASSAY_TF32 },
    };
    const uint32_t pair = assay_stream_below(stream, sizeof(pairs) / sizeof(pairs[0]));
    assay_case_set(the_case, "a_format", pairs[pair][0]);
    assay_case_set(the_case, "b_format", pairs[pair][1]);
}

/* One step of one block is the least there is, whatever the budget. */
void assay_wgmma_draw(struct assay_stream *stream, double multiply_adds,
                      struct assay_case *the_case)
{
    static const int64_t block_counts[] = { 1, 1, 2, 3 };
    static const int64_t step_counts[] = { 1, 1, 2, 3, 4, 8, 16, 36 };
    static const int64_t columns[] = { 8, 8, 8, 16, 64 };
    const double step_multiply_adds = ASSAY_WGMMA_ROWS * ASSAY_WGMMA_STEP_BYTES;
    int64_t blocks = ONE_OF(stream, block_counts), steps = ONE_OF(stream, step_counts);
    int64_t n = ONE_OF(stream, columns);
    while ((double)(blocks * steps * n) * step_multiply_adds > multiply_adds &&
           blocks * steps * n > 8) {
        blocks = 1;
        n = steps > 1 ? n : 8;
        steps = (steps + 1) / 2;
    }
    assay_case_set(the_case, "blocks", blocks);
    assay_case_set(the_case, "steps", steps);
    assay_case_set(the_case, "n", n);
    draw_formats(stream, the_case);
    the_case->data =
        (enum assay_data_kind)assay_stream_below(stream, ASSAY_GENERAL_DATA_KINDS);
    the_case->seed = assay_stream_next(stream);
}
