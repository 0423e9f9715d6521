/* SPDX-License-Identifier: MIT */
/* Quantisers to e4m3 with one scale a block, as DeepGEMM's per_token_cast_to_fp8 and
 * per_block_cast_to_fp8 compute them in f32. Modelled on the units measured on H200 (f32
 * arithmetic, conversion to e4m3). */
#ifndef ASSAY_REF_KERNEL_QUANTISE_H
#define ASSAY_REF_KERNEL_QUANTISE_H

#include "ref/quantise_problem.h"

enum assay_quantise_ceil {
    ASSAY_CEIL_DEEPGEMM, /* assay_deepgemm_ceil */
    ASSAY_CEIL_CUDA,     /* assay_ue8m0_encode */
};
enum assay_quantise_order {
    ASSAY_QUANTISE_BY_STORED_SCALE, /* the scale is rounded to a power of two first */
    ASSAY_QUANTISE_BY_RAW_SCALE,    /* only what is stored is rounded */
};
enum assay_quantise_payload {
    ASSAY_PAYLOAD_TIMES_INVERSE, /* rn(x * rn(1 / sf)) */
    ASSAY_PAYLOAD_DIVIDED,       /* rn(x / sf) */
};
enum assay_quantise_nan {
    ASSAY_AMAX_PROPAGATES_NAN, /* torch.amax and clamp */
    ASSAY_AMAX_IGNORES_NAN,    /* fmaxf */
};
enum assay_quantise_overflow {
    ASSAY_E4M3_SATURATES,       /* cvt.rn.satfinite: infinity becomes 448 */
    ASSAY_E4M3_OVERFLOW_IS_NAN, /* without satfinite: NaN beyond 464 */
};
enum assay_quantise_ties {
    ASSAY_E4M3_TIES_TO_EVEN, /* cvt.rn */
    ASSAY_E4M3_TIES_AWAY,    /* from zero: half up, in software */
};
enum assay_quantise_zero {
    ASSAY_E4M3_ZERO_SIGNED,
    ASSAY_E4M3_ZERO_UNSIGNED, /* -0 becomes +0 */
};

struct assay_quantise_block;

/* Stages by value: a fault or an explanation edits its own copy. */
struct assay_quantise_stages {
    /* amax = largest |x| of the block, at least 1e-4 */
    void (*amax)(struct assay_quantise_block *);
    /* sf and divisor from amax */
    void (*scale)(struct assay_quantise_block *);
    /* q = e4m3(x / divisor) */
    void (*payload)(struct assay_quantise_block *);
};

struct assay_quantise_numerics { /* ints, so that a knob is an offset; then the stages */
    int reciprocal;              /* 1: rn(amax * rn(1 / 448)) for rn(amax / 448) */
    int ceil, order, payload, nan, overflow, ties, zero;
    struct assay_quantise_stages stage;
};

/* One block on its way through the stages. */
struct assay_quantise_block {
    const struct assay_quantise_problem *problem;
    const struct assay_quantise_numerics *numerics;
    const struct assay_tensor *x, *q, *sf;
    int64_t m0, rows, k0, columns; /* of q, what lies inside it */
    float amax;
    float scale;   /* what is stored */
    float divisor; /* what the payload is divided by */
};

/* The stages of every named numerics. */
void assay_quantise_amax(struct assay_quantise_block *block);
void assay_quantise_scale(struct assay_quantise_block *block);
void assay_quantise_payload(struct assay_quantise_block *block);

/* UE8M0 code of the smallest power of two not below |@value|, as DeepGEMM rounds: by the
 * bits, clamped to codes 1 to 254, that is 2^-126 (zero and all subnormals) to 2^127
 * (infinity and NaN). assay_ue8m0_encode differs below 2^-126, and for NaN. */
uint32_t assay_deepgemm_ceil(float value);

/* Computes part @part of q and sf. */
void assay_quantise_model(const struct assay_quantise_problem *problem,
                          const struct assay_quantise_numerics *numerics,
                          const struct assay_tensors *tensors, int64_t part);

#endif
