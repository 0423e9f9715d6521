/* SPDX-License-Identifier: MIT */
/* Random cases of fp8_gemm_nt: every recipe, format, kind of data and tail. */
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt.h"

#include <stdio.h>

static int64_t one_of(struct assay_stream *stream, const int64_t *values, size_t count)
{
    return values[assay_stream_below(stream, (uint32_t)count)];
}

#define ONE_OF(stream, values) one_of(stream, values, sizeof(values) / sizeof(values[0]))

/* Tile edges and their neighbours, or anything, until the case fits the budget. */
static void draw_extents(struct assay_stream *stream, double multiply_adds,
                         struct assay_case *the_case)
{
    static const int64_t edges_m[] = { 1, 2, 7, 16, 31, 63, 64, 65, 96, 127, 128, 129 };
    static const int64_t edges_n[] = { 8, 16, 56, 64, 72, 120, 128, 136, 192, 256, 264 };
    static const int64_t edges_k[] = { 16, 32, 48, 112, 128, 144, 240, 256, 272, 512 };
    int64_t m, n, k;
    do {
        const uint32_t how = assay_stream_next(stream);
        m = how & 1 ? ONE_OF(stream, edges_m) : 1 + assay_stream_below(stream, 160);
        n = how & 2 ? ONE_OF(stream, edges_n) : 8 + 8 * assay_stream_below(stream, 40);
        k = how & 4 ? ONE_OF(stream, edges_k) : 16 * assay_stream_below(stream, 80);
    } while ((double)m * (double)n * (double)k > multiply_adds);
    assay_case_set(the_case, "m", m);
    assay_case_set(the_case, "n", n);
    assay_case_set(the_case, "k", k);
}

static void draw_strides(struct assay_stream *stream, struct assay_case *the_case)
{
    static const char *const keys[] = { "a_stride", "b_stride", "d_stride" };
    static const char *const extents[] = { "k", "k", "n" };
    for (int i = 0; i < 3; i++)
        if (assay_stream_below(stream, 8) == 0)
            assay_case_set(the_case, keys[i],
                           (assay_case_value(the_case, extents[i]) + 31) / 16 * 16);
}

static void draw_formats(struct assay_stream *stream, bool has_e2m1,
                         struct assay_case *the_case)
{
    static const char *const keys[] = { "a_format", "b_format" };
    for (int i = 0; i < 2; i++) {
        const uint32_t how = assay_stream_below(stream, 4);
        if (how == 0) assay_case_set(the_case, keys[i], ASSAY_E5M2);
        if (how == 1 && has_e2m1) assay_case_set(the_case, keys[i], ASSAY_E2M1);
    }
}

void assay_fp8_gemm_nt_draw(struct assay_stream *stream, double multiply_adds,
                            struct assay_case *the_case)
{
    draw_extents(stream, multiply_adds, the_case);
    draw_strides(stream, the_case);
    const int recipe = (int)assay_stream_below(stream, 4);
    const bool is_mx = recipe == ASSAY_RECIPE_MX;
    const bool is_1d1d = recipe == ASSAY_RECIPE_1D1D;
    const bool is_f32 = is_1d1d || assay_stream_below(stream, 2);
    assay_case_set(the_case, "recipe", recipe);
    assay_case_set(the_case, "out", is_f32 ? ASSAY_F32 : ASSAY_BF16);
    assay_case_set(the_case, "c", is_1d1d && assay_stream_below(stream, 2));
    draw_formats(stream, is_mx, the_case);
    if (is_mx && assay_stream_below(stream, 2)) assay_case_set(the_case, "gran_k", 32);
    the_case->data =
        (enum assay_data_kind)assay_stream_below(stream, ASSAY_GENERAL_DATA_KINDS);
    the_case->seed = assay_stream_next(stream);
    if (recipe == ASSAY_RECIPE_TENSOR && assay_stream_below(stream, 2))
        snprintf(the_case->numerics, sizeof(the_case->numerics), "cublaslt-fast");
}
