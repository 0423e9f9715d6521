/* SPDX-License-Identifier: MIT */
/* The combine kernel: a warp a row, then 512 columns with the row's weights. */
#include "ref/kernel/mla_combine.h"

#include "ref/kernel/mla_arithmetic.h"

#include <assert.h>
#include <math.h>

enum { LANES = 32 };

static const float log2_e = 0x1.715476p+0f; /* 0x3FB8AA3B */
static const float ln_2 = 0x1.62e430p-1f;   /* 0x3F317218 */

/* One row on its way. */
struct row {
    const struct assay_mla_combine_numerics *numerics;
    bool flush;
    int64_t count;
    const float *lseaccum;
    int64_t lseaccum_stride;
    float maximum, sum;
    float total; /* G: the base 2 logarithm of all weights together */
};

static float ex2(const struct row *row, float x)
{
    return assay_mla_ex2(row->numerics->functions, row->flush, x);
}

static float lg2(const struct row *row, float x)
{
    return assay_mla_lg2(row->numerics->functions, row->flush, x);
}

static float lse_of(const struct row *row, int64_t split)
{
    return row->lseaccum[split * row->lseaccum_stride];
}

/* Addition commutes, so every lane of the butterfly ends with the same bits. */
static void reduce(struct row *row)
{
    float sum[LANES] = { 0 };
    row->maximum = -INFINITY;
    for (int64_t i = 0; i < row->count; i++)
        row->maximum = assay_f32_maximum(row->maximum, lse_of(row, i));
    if (row->maximum == -INFINITY) row->maximum = 0;
    for (int64_t i = 0; i < row->count; i++) {
        const float difference = assay_mla_add(row->flush, lse_of(row, i), -row->maximum);
        sum[i % LANES] = assay_mla_add(row->flush, sum[i % LANES], ex2(row, difference));
    }
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        for (int lane = 0; lane < distance; lane++)
            sum[lane] = assay_mla_add(row->flush, sum[lane], sum[lane + distance]);
    row->sum = sum[0];
    row->total = row->sum == 0
                     ? INFINITY
                     : assay_mla_add(row->flush, lg2(row, row->sum), row->maximum);
}

static float row_lse(const struct row *row, bool is_base_two)
{
    if (is_base_two || row->sum == 0) return row->total;
    if (row->numerics->lse_form == ASSAY_MLA_LSE_SEPARATE)
        return assay_mla_multiply(row->flush, row->total, ln_2);
    return assay_mla_fma(row->flush, lg2(row, row->sum), ln_2,
                         assay_mla_multiply(row->flush, row->maximum, ln_2));
}

static void add_sink(struct row *row, float sink)
{
    if (row->total == INFINITY) {
        if (sink != -INFINITY) row->total = assay_mla_multiply(row->flush, sink, log2_e);
        return;
    }
    const float difference =
        row->numerics->sink_product == ASSAY_MLA_SINK_FUSED
            ? assay_mla_fma(row->flush, sink, log2_e, -row->total)
            : assay_mla_add(row->flush, assay_mla_multiply(row->flush, sink, log2_e),
                            -row->total);
    const float factor = assay_mla_add(row->flush, 1, ex2(row, difference));
    row->total = assay_mla_add(row->flush, row->total, lg2(row, factor));
}

static void add_split(const struct row *row, int64_t split, const float *partial,
                      float *result)
{
    const float weight =
        ex2(row, assay_mla_add(row->flush, lse_of(row, split), -row->total));
    if (row->numerics->zero_weight == ASSAY_MLA_ZERO_WEIGHT_SKIPPED && weight == 0)
        return;
    for (int64_t i = 0; i < ASSAY_MLA_D_V; i++)
        result[i] = assay_mla_fma(row->flush, weight, partial[i], result[i]);
}

void assay_mla_combine_row(const struct assay_mla_combine_numerics *numerics,
                           int64_t count, const float *oaccum, int64_t oaccum_stride,
                           const float *lseaccum, int64_t lseaccum_stride,
                           const float *sink, bool is_base_two, enum assay_format format,
                           uint16_t *out, float *lse)
{
    struct row row = { .numerics = numerics,
                       .flush = numerics->flush != 0,
                       .count = count,
                       .lseaccum = lseaccum,
                       .lseaccum_stride = lseaccum_stride };
    float result[ASSAY_MLA_D_V] = { 0 };
    assert(count >= 1 && count <= ASSAY_MLA_MAX_PARTS);
    reduce(&row);
    *lse = row_lse(&row, is_base_two);
    if (sink) add_sink(&row, *sink);
    for (int64_t i = 0; i < count; i++)
        add_split(&row, i, oaccum + i * oaccum_stride, result);
    assay_mla_encode(format, ASSAY_MLA_P_NEAREST_EVEN, result, ASSAY_MLA_D_V, out);
}

int64_t assay_mla_combine_splits(const struct assay_mla_combine_problem *problem,
                                 const struct assay_tensor *num_splits, int64_t request,
                                 int64_t *first)
{
    const int32_t *const ends = num_splits->data;
    const int64_t begin = ends[request * num_splits->stride[0]];
    const int64_t end = ends[(request + 1) * num_splits->stride[0]];
    *first = begin;
    if (begin < 0 || end < begin || end > problem->splits) return 0;
    return end - begin > ASSAY_MLA_MAX_PARTS ? 0 : end - begin;
}

void assay_mla_combine_model(const struct assay_mla_combine_problem *problem,
                             const struct assay_mla_combine_numerics *numerics,
                             const struct assay_tensors *tensors, int64_t part)
{
    const int64_t request = part / problem->s_q, token = part % problem->s_q;
    const struct assay_tensor *const oaccum = assay_tensors_find(tensors, "oaccum");
    const struct assay_tensor *const lseaccum = assay_tensors_find(tensors, "lseaccum");
    const struct assay_tensor *const out = assay_tensors_find(tensors, "out");
    const struct assay_tensor *const lse = assay_tensors_find(tensors, "lse");
    const struct assay_tensor *const sinks = assay_tensors_find(tensors, "attn_sink");
    int64_t first;
    const int64_t count = assay_mla_combine_splits(
        problem, assay_tensors_find(tensors, "num_splits"), request, &first);
    if (count <= 1) return;
    for (int64_t head = 0; head < problem->h_q; head++)
        assay_mla_combine_row(
            numerics, count,
            (const float *)oaccum->data + first * oaccum->stride[0] +
                token * oaccum->stride[1] + head * oaccum->stride[2],
            oaccum->stride[0],
            (const float *)lseaccum->data + first * lseaccum->stride[0] +
                token * lseaccum->stride[1] + head * lseaccum->stride[2],
            lseaccum->stride[0],
            sinks ? (const float *)sinks->data + head * sinks->stride[0] : NULL, false,
            problem->format,
            (uint16_t *)out->data + request * out->stride[0] + token * out->stride[1] +
                head * out->stride[2],
            (float *)lse->data + request * lse->stride[0] + head * lse->stride[1] +
                token * lse->stride[2]);
}
