/* SPDX-License-Identifier: MIT */
/* The FP8 GEMM as Hopper's units and one named numerics compute it. Modelled: equal to
 * recorded outputs of DeepGEMM (1D1D, 1D2D) and cuBLASLt on H200 to the bit. */
#ifndef ASSAY_REF_KERNEL_FP8_GEMM_H
#define ASSAY_REF_KERNEL_FP8_GEMM_H

#include "ref/fp8_gemm_problem.h"
#include "ref/unit/dot_add.h"

/* Units that take FP8 operands, as rows of assay_dot_adds. */
enum assay_fp8_unit {
    ASSAY_FP8_UNIT_HOPPER,
    ASSAY_FP8_UNIT_HOPPER_MMA,
    ASSAY_FP8_UNIT_ADA,
    ASSAY_FP8_UNIT_BLACKWELL,
};
const struct assay_dot_add *assay_fp8_unit(int unit);

enum assay_scale_form {
    ASSAY_SCALE_PRODUCT_FIRST, /* s = rn(sfa * sfb), then s * block */
    ASSAY_SCALE_A_THEN_B,      /* rn(block * sfa), then times sfb */
    ASSAY_SCALE_B_THEN_A,      /* rn(block * sfb), then times sfa */
    ASSAY_SCALE_AT_END,      /* unscaled blocks; d = fma(rn(sfa * sfb), final, c or +0) */
    ASSAY_SCALE_IN_OPERANDS, /* exponents of powers of two join the operands': mx only */
};
enum assay_promotion {
    ASSAY_PROMOTION_FUSED,    /* final = fma(scale, block, final) */
    ASSAY_PROMOTION_SEPARATE, /* final = rn(final + rn(scale * block)) */
};
enum assay_k_order { ASSAY_K_ASCENDING, ASSAY_K_DESCENDING };
enum assay_out_rounding { ASSAY_OUT_NEAREST_EVEN, ASSAY_OUT_TOWARD_ZERO };
enum assay_epilogue {
    ASSAY_EPILOGUE_STORE,  /* d = final, or c + final */
    ASSAY_EPILOGUE_REDUCE, /* without c: d = 0 + final, which loses -0 */
};

struct assay_fp8_gemm_tile;

/* Stages by value: a fault or an explanation edits its own copy. */
struct assay_fp8_gemm_stages {
    /* accumulator = chain of dot-adds over [k0, k0 + k_count) of the tile */
    void (*chain)(struct assay_fp8_gemm_tile *);
    /* final = final + scale * accumulator */
    void (*promote)(struct assay_fp8_gemm_tile *);
    /* d = round(c + final) */
    void (*finish)(struct assay_fp8_gemm_tile *);
};

struct assay_fp8_gemm_numerics { /* ints, so that a knob is an offset; then the stages */
    int unit;                    /* enum assay_fp8_unit */
    int align_bits, result_bits; /* 0: the unit's own */
    int promote_k;               /* K elements a chain; 0: all of K */
    int k_order;                 /* of the chains, and of the steps inside one */
    int scale_form;
    int promotion;
    int epilogue;
    int out_rounding;
    struct assay_fp8_gemm_stages stage;
};

/* One tile of d on its way through the stages. */
struct assay_fp8_gemm_tile {
    const struct assay_fp8_gemm_problem *problem;
    const struct assay_fp8_gemm_numerics *numerics;
    struct assay_dot_add unit; /* numerics->unit with the knobs applied */
    const struct assay_tensor *a, *b, *sfa, *sfb, *c, *d; /* c may be NULL */
    struct assay_fp8_gemm_tile_range range;
    int64_t k0, k_count; /* the chain in hand */
    uint32_t accumulator[ASSAY_FP8_GEMM_TILE_M * ASSAY_FP8_GEMM_TILE_N]; /* f32 bits */
    float final[ASSAY_FP8_GEMM_TILE_M * ASSAY_FP8_GEMM_TILE_N];
};

/* The stages of every named numerics. */
void assay_fp8_gemm_chain(struct assay_fp8_gemm_tile *tile);
void assay_fp8_gemm_promote(struct assay_fp8_gemm_tile *tile);
void assay_fp8_gemm_finish(struct assay_fp8_gemm_tile *tile);

/* The numerics' unit with its overrides applied. */
struct assay_dot_add assay_fp8_gemm_unit(const struct assay_fp8_gemm_numerics *numerics);

/* Computes part @part of d. The numerics must be legal for the problem: with block scales
 * a chain stays inside a block (promote_k divides gran_k) and scales are not applied at
 * the end (asserted). Without K, d is c to the bit, NaNs and -0 too, where scales are
 * not applied at the end: DeepGEMM then copies and runs no kernel. */
void assay_fp8_gemm_model(const struct assay_fp8_gemm_problem *problem,
                          const struct assay_fp8_gemm_numerics *numerics,
                          const struct assay_tensors *tensors, int64_t part);

#endif
