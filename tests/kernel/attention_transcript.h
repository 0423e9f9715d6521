/* SPDX-License-Identifier: MIT */
/* A second implementation of attention: one row, one dot-add after the other, written
 * down step by step as the kernels' sources have it (FlashMLA 9241ae3,
 * csrc/sm90/decode/dense/splitkv_mla.cuh, .../sparse_fp8/splitkv_mla.cuh,
 * prefill/sparse/phase1.cuh). It shares the units with the model, nothing else. */
#ifndef ASSAY_TESTS_KERNEL_ATTENTION_TRANSCRIPT_H
#define ASSAY_TESTS_KERNEL_ATTENTION_TRANSCRIPT_H

#include "ref/format/minifloat.h"
#include "ref/unit/dot_add.h"
#include "ref/unit/scalar.h"
#include "ref/unit/special_function.h"
#include "tests/kernel/key_list.h"

struct transcript {
    struct assay_dot_add unit;
    enum assay_format format;
    int d_qk;
    float c;
    const uint16_t *q;
    const struct key_list *list;
    int row; /* of the list's masks */
    float maximum, sum;
    float output[D_V];
};

#define times assay_f32_multiply_ftz
#define plus  assay_f32_add_ftz
#define fused assay_f32_fma_ftz

static inline float exponential(float x)
{
    return assay_f32_from_bits(assay_ex2_approx_ftz(assay_f32_bits(x)));
}

static inline float logarithm(float x)
{
    return assay_f32_from_bits(assay_lg2_approx_ftz(assay_f32_bits(x)));
}

static inline float reciprocal(float x)
{
    return assay_f32_from_bits(assay_rcp_approx_ftz(assay_f32_bits(x)));
}

/* --- products --------------------------------------------------------------------- */

/* One step of 16 products. */
static inline float step(const struct transcript *t, float sum, const uint16_t *a,
                         const uint16_t *b, int64_t b_stride)
{
    struct assay_operand x[16], y[16];
    for (int i = 0; i < 16; i++) {
        x[i] = assay_operand_decode(&t->unit, t->format, a[i]);
        y[i] = assay_operand_decode(&t->unit, t->format, b[i * b_stride]);
    }
    return assay_f32_from_bits(assay_dot_add(&t->unit, assay_f32_bits(sum), x, y));
}

static inline float score(const struct transcript *t, int key, bool starts_at_fourth)
{
    const int tiles = t->d_qk / 64;
    float sum = 0.0f;
    for (int i = 0; i < tiles; i++) {
        const int tile = starts_at_fourth ? (i + 4) % tiles : i;
        for (int k = tile * 64; k < tile * 64 + 64; k += 16)
            sum = step(t, sum, t->q + k, t->list->key[key] + k, 1);
    }
    return sum;
}

static inline void score_block(const struct transcript *t, int block,
                               bool starts_at_fourth, float masked, float *s)
{
    for (int i = 0; i < 64; i++) {
        const int key = block * 64 + i;
        const bool is_seen = key < t->list->count && t->list->attended[t->row][key];
        s[i] = is_seen ? score(t, key, starts_at_fourth) : masked;
    }
}

/* output[first, first + 256) += rounded p times the block's values. */
static inline void add_values(struct transcript *t, int block, const float *p, int first)
{
    uint16_t code[64];
    for (int i = 0; i < 64; i++)
        code[i] = (uint16_t)assay_minifloat_encode_f32(assay_minifloat(t->format), p[i],
                                                       ASSAY_OVERFLOW_SPECIAL);
    for (int column = first; column < first + 256; column++)
        for (int k = 0; k < 64; k += 16)
            t->output[column] =
                step(t, t->output[column], code + k,
                     &t->list->key[block * 64 + k][column], ASSAY_MLA_MAX_D_QK);
}

static inline void rescale(struct transcript *t, float factor, int first)
{
    for (int column = first; column < first + 256; column++)
        t->output[column] = times(t->output[column], factor);
}

/* --- softmax ---------------------------------------------------------------------- */

static inline float largest(const float *s, float masked)
{
    float m = masked;
    for (int i = 0; i < 64; i++)
        m = assay_f32_maximum(m, s[i]);
    return m;
}

static inline void weigh(const struct transcript *t, const float *s, float m, float *p)
{
    for (int i = 0; i < 64; i++)
        p[i] = exponential(fused(s[i], t->c, -m));
}

static inline float lane_of_pairs(const float *p, int lane)
{
    float sum = 0.0f;
    for (int j = 0; j < 8; j++)
        sum = plus(sum, plus(p[8 * j + 2 * lane], p[8 * j + 2 * lane + 1]));
    return sum;
}

static inline float lane_one_by_one(const float *p, int lane)
{
    float sum = 0.0f;
    for (int j = 0; j < 8; j++) {
        sum = plus(sum, p[8 * j + 2 * lane]);
        sum = plus(sum, p[8 * j + 2 * lane + 1]);
    }
    return sum;
}

static inline float sum_of_lanes(const float *lane)
{
    return plus(plus(lane[0], lane[1]), plus(lane[2], lane[3]));
}

/* --- the kernels ------------------------------------------------------------------ */

enum { DENSE, PREFILL };

/* The list must have whole blocks. A prefill's missing B block is run with zeros, which
 * the caller appends to the list. */
static inline void transcribe_seesaw(struct transcript *t, int kernel, int blocks)
{
    const float masked = kernel == DENSE ? -1e33f : -INFINITY;
    float l0[4] = { 0 }, l1[4] = { 0 }, sa[64], sb[64], pa[64], pb[64], pc[64];
    float M = -1e30f;
    memset(t->output, 0, sizeof(t->output));
    for (int a = 0; a < blocks; a += 2) {
        const bool has_b = a + 1 < blocks || kernel == PREFILL;
        score_block(t, a, false, masked, sa);
        const float M0 = assay_f32_maximum(M, times(largest(sa, masked), t->c));
        const float a0 = exponential(plus(M, -M0));
        weigh(t, sa, M0, pa);
        rescale(t, a0, 0);
        add_values(t, a, pa, 0);
        for (int lane = 0; lane < 4; lane++)
            l0[lane] = fused(a0, l0[lane], lane_of_pairs(pa, lane));

        for (int i = 0; i < 64; i++)
            sb[i] = masked;
        if (has_b) score_block(t, a + 1, true, masked, sb);
        const float M1 = assay_f32_maximum(M0, times(largest(sb, masked), t->c));
        const float a1 = exponential(plus(M0, -M1));
        const float g = kernel == DENSE ? times(a1, a0) : exponential(plus(M, -M1));
        weigh(t, sb, M1, pb);
        for (int lane = 0; lane < 4; lane++)
            l1[lane] = fused(g, l1[lane], has_b ? lane_of_pairs(pb, lane) : 0.0f);
        rescale(t, g, 256);
        if (has_b) add_values(t, a + 1, pb, 256);
        for (int i = 0; i < 64; i++)
            pc[i] = times(pa[i], a1);
        add_values(t, a, pc, 256);
        if (has_b) {
            rescale(t, a1, 0);
            for (int lane = 0; lane < 4; lane++)
                l0[lane] = times(l0[lane], a1);
            add_values(t, a + 1, pb, 0);
        }
        M = M1;
    }
    t->maximum = M;
    t->sum = plus(sum_of_lanes(l0), sum_of_lanes(l1));
}

static inline void transcribe_chain(struct transcript *t, int blocks)
{
    float l[4] = { 0 }, s[64], p[64], M = -1e30f;
    memset(t->output, 0, sizeof(t->output));
    for (int block = 0; block < blocks; block++) {
        score_block(t, block, false, -INFINITY, s);
        const float m = assay_f32_maximum(times(largest(s, -INFINITY), t->c), M);
        const float a = exponential(plus(M, -m));
        weigh(t, s, m, p);
        for (int lane = 0; lane < 4; lane++)
            l[lane] = fused(a, l[lane], lane_one_by_one(p, lane));
        for (int half = 0; half < 512; half += 256) {
            rescale(t, a, half);
            add_values(t, block, p, half);
        }
        M = m;
    }
    t->maximum = M;
    t->sum = sum_of_lanes(l);
}

#endif
