/* SPDX-License-Identifier: MIT */
/* Latent attention from hidden states to the heads' outputs, absorbed or expanded, as a
 * GPU would string the units together. Modelled on units measured on H200 (bf16 wgmma,
 * ex2 and rcp, f32 arithmetic); which intermediate is rounded where is this project's
 * choice, after modules that keep bf16 between their matrix products: no upstream sm_90
 * kernel computes all of it. */
#ifndef ASSAY_REF_KERNEL_MLA_ABSORB_H
#define ASSAY_REF_KERNEL_MLA_ABSORB_H

#include "ref/mla_absorb_problem.h"

/* What products of two bf16 matrices run on. Others are f32 fma: no unit takes them. */
enum assay_mla_absorb_unit {
    ASSAY_MLA_ABSORB_TENSOR_CORE, /* hopper-bf16 */
    ASSAY_MLA_ABSORB_FMA,         /* one f32 fma after the other, terms ascending */
};

enum assay_mla_absorb_storage {
    ASSAY_MLA_ABSORB_BF16, /* rounded to nearest even */
    ASSAY_MLA_ABSORB_F32,  /* kept as the unit leaves it */
};

/* The intermediates. */
enum assay_mla_absorb_store {
    ASSAY_MLA_ABSORB_C_KV,
    ASSAY_MLA_ABSORB_C_Q,
    ASSAY_MLA_ABSORB_ROTARY,   /* w_kr h and w_qr c_q before they are turned */
    ASSAY_MLA_ABSORB_K,        /* k_c, and k_r when turned */
    ASSAY_MLA_ABSORB_Q,        /* q_c, and q_r when turned */
    ASSAY_MLA_ABSORB_V,        /* expanded */
    ASSAY_MLA_ABSORB_Q_LATENT, /* w_uk^T q_c; absorbed */
    ASSAY_MLA_ABSORB_P,        /* weights before they are normalised */
    ASSAY_MLA_ABSORB_O_LATENT, /* sum of a * c_kv; absorbed */
    ASSAY_MLA_ABSORB_STORES
};

/* Stages by value: a fault or an explanation edits its own copy. */
struct assay_mla_absorb_stages {
    /* Turns @pairs pairs of one vector in place. */
    void (*rotate)(float *x, const float *cosine, const float *sine, int64_t pairs);
    /* Scores of one query become weights; returns their sum. @scale is in log2 units. */
    float (*weigh)(float *score, int64_t keys, float scale);
};

struct
    assay_mla_absorb_numerics { /* ints, so that a knob is an offset; then the stages */
    int unit;
    int stored[ASSAY_MLA_ABSORB_STORES]; /* an assay_mla_absorb_storage each */
    struct assay_mla_absorb_stages stage;
};

/* The stages of every named numerics. Each operation is one rounding to nearest even.
 *
 *   rotate: fma(x, cos, -rn(y * sin)) and fma(x, sin, rn(y * cos)) replace a pair x, y
 *   weigh:  M = rn(largest score * scale), p = ex2(fma(score, scale, -M)), the sum from
 *           the first key to the last, before p is stored */
void assay_mla_absorb_rotate(float *x, const float *cosine, const float *sine,
                             int64_t pairs);
float assay_mla_absorb_weigh(float *score, int64_t keys, float scale);

/* Computes head @head. Products are chains over ascending terms from an accumulator of
 * zero, in steps of 16 on the tensor core; in a score the rotary terms are chained behind
 * the others and begin a step of their own. What p weighs is multiplied by rcp(sum), then
 * stored; o is rounded once more to its format. Returns false when memory ran out. */
bool assay_mla_absorb_model(const struct assay_mla_absorb_problem *problem,
                            const struct assay_mla_absorb_numerics *numerics,
                            const struct assay_tensors *tensors, int64_t head);

#endif
