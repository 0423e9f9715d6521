/* SPDX-License-Identifier: MIT */
/* Cached tokens quantised and dequantised as upstream does. Modelled: dequantisation is
 * equal to the H200 through sparse decode (v32 and model1, FlashMLA 9241ae3); the
 * quantisers are FlashMLA's tests/quant.py, on the f32 arithmetic and the conversion to
 * e4m3 measured there. */
#ifndef ASSAY_REF_KERNEL_MLA_CACHE_H
#define ASSAY_REF_KERNEL_MLA_CACHE_H

#include "ref/layout/mla_cache.h"
#include "ref/mla_cache_problem.h"

/* The d_qk bf16 codes of a token. @dequantisation is an enum assay_mla_dequantisation.
 * Every code times its scale is rounded once to bf16, subnormals kept; f32 scales (v32)
 * are first rounded to bf16, unless the f32 product is asked for. The other formats'
 * scales are exact in bf16, so that both forms agree on them. */
void assay_mla_dequantise(const struct assay_mla_token_layout *layout, int dequantisation,
                          const struct assay_mla_token *token, uint16_t *key);

/* Keys of the tokens of page @part. */
void assay_mla_cache_dequantise_model(const struct assay_mla_cache_problem *problem,
                                      int dequantisation,
                                      const struct assay_tensors *tensors, int64_t part);

enum assay_mla_cache_payload {
    ASSAY_MLA_PAYLOAD_DIVIDED,       /* rn(x / s) */
    ASSAY_MLA_PAYLOAD_TIMES_INVERSE, /* rn(x * rn(1 / s)) */
};
enum assay_mla_cache_floor {
    ASSAY_MLA_FLOOR_SCALE, /* max(amax / 448, 1e-4) */
    ASSAY_MLA_FLOOR_AMAX,  /* max(amax, 1e-4) / 448, as DeepGEMM */
};
enum assay_mla_cache_nan {
    ASSAY_MLA_AMAX_PROPAGATES_NAN, /* torch.max */
    ASSAY_MLA_AMAX_IGNORES_NAN,    /* fmaxf */
};

/* One tile on its way through the stages. */
struct assay_mla_cache_tile {
    const struct assay_mla_token_layout *layout;
    const struct assay_mla_cache_numerics *numerics;
    bool has_power_of_two_scale;
    const uint16_t *x; /* layout->scale_dims codes */
    uint8_t *code;     /* as many */
    float amax;
    uint32_t scale; /* bits of what is stored */
    float divisor;  /* what the payload is divided by */
};

/* Stages by value: a fault or an explanation edits its own copy. */
struct assay_mla_cache_stages {
    /* amax = largest |x| of the tile */
    void (*amax)(struct assay_mla_cache_tile *);
    /* scale and divisor from amax */
    void (*scale)(struct assay_mla_cache_tile *);
    /* code = x / divisor, rounded to the codes' format */
    void (*payload)(struct assay_mla_cache_tile *);
};

struct assay_mla_cache_numerics { /* ints, so that a knob is an offset; then the stages */
    int reciprocal; /* 1: rn(amax * rn(1 / 448)) for rn(amax / 448); 1 / 6 */
    int payload, floor, nan;
    struct assay_mla_cache_stages stage;
};

/* The stages of every named numerics. An infinite amax leaves an infinite divisor, stored
 * as such in f32 and as the NaN of ue8m0; a NaN scale is 0x7FFFFFFF, 255 or 0x7F, a NaN
 * code 0x7F, or 0 in e2m1. */
void assay_mla_cache_amax(struct assay_mla_cache_tile *tile);
void assay_mla_cache_scale(struct assay_mla_cache_tile *tile);
void assay_mla_cache_payload(struct assay_mla_cache_tile *tile);

/* Writes the tokens of page @part. */
void assay_mla_cache_quantise_model(const struct assay_mla_cache_problem *problem,
                                    const struct assay_mla_cache_numerics *numerics,
                                    const struct assay_tensors *tensors, int64_t part);

#endif
