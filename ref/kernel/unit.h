/* SPDX-License-Identifier: MIT */
/* Single hardware units as kernels of their own: a chain of tensor-core instructions, the
 * special-function unit, conversions of f32. Modelled on units measured on H200
 * (corpus/units/README.md). */
#ifndef ASSAY_REF_KERNEL_UNIT_H
#define ASSAY_REF_KERNEL_UNIT_H

#include "ref/unit/dot_add.h"

/* --- wgmma: d = c + sum over the steps of a * b^T, block by block ----------------- */

/* Rows of a in a block; most columns; elements of K a step has at most. */
enum {
    ASSAY_WGMMA_ROWS = 64,
    ASSAY_WGMMA_MAX_COLUMNS = 256,
    ASSAY_WGMMA_STEP_BYTES = 32,
};

enum assay_wgmma_unit {
    ASSAY_WGMMA_HOPPER,     /* wgmma */
    ASSAY_WGMMA_HOPPER_MMA, /* mma.sync on the same chip */
    ASSAY_WGMMA_ADA,
    ASSAY_WGMMA_AMPERE,
    ASSAY_WGMMA_BLACKWELL,
    ASSAY_WGMMA_VOLTA,
};

struct assay_wgmma_block;

/* Stages by value: a fault or an explanation edits its own copy. */
struct assay_wgmma_stages {
    /* accumulator = dot-adds of the step in hand onto accumulator */
    void (*step)(struct assay_wgmma_block *);
};

struct assay_wgmma_numerics {    /* ints, so that a knob is an offset; then the stages */
    int unit;                    /* enum assay_wgmma_unit */
    int align_bits, result_bits; /* 0: the unit's own */
    struct assay_wgmma_stages stage;
};

/* One block on its way through its steps. */
struct assay_wgmma_block {
    const struct assay_wgmma_numerics *numerics;
    struct assay_dot_add profile; /* with the knobs applied */
    struct assay_tensor a, b; /* [rows or columns, elements of K] of the step in hand */
    int columns;
    uint32_t accumulator[ASSAY_WGMMA_ROWS * ASSAY_WGMMA_MAX_COLUMNS]; /* f32 bits */
};

/* The stage of every named numerics. */
void assay_wgmma_step(struct assay_wgmma_block *block);

/* Whether the unit takes these operands in one instruction. */
bool assay_wgmma_unit_takes(int unit, enum assay_format a, enum assay_format b);

/* The unit's profile for these operands, which it must take (asserted), with the
 * numerics' overrides applied. */
struct assay_dot_add assay_wgmma_profile(const struct assay_wgmma_numerics *numerics,
                                         enum assay_format a, enum assay_format b);

/* Computes block @block of d [blocks, 64, n] from c, a [blocks, steps, 64, elements] and
 * b [blocks, steps, n, elements]; steps in ascending order. A unit of fewer terms than a
 * step has elements takes several instructions a step. */
void assay_wgmma_model(const struct assay_wgmma_numerics *numerics,
                       const struct assay_tensors *tensors, int64_t block);

/* --- sfu: y = function(x) --------------------------------------------------------- */

enum assay_sfu_function {
    ASSAY_SFU_EX2,
    ASSAY_SFU_LG2,
    ASSAY_SFU_RCP,
    ASSAY_SFU_RSQRT,
    ASSAY_SFU_FUNCTIONS
};

enum assay_sfu_rounding {
    ASSAY_SFU_INTERPOLATED, /* as the unit */
    ASSAY_SFU_ROUNDED,      /* through FP64, flushed as by the unit */
};

struct assay_sfu_numerics { /* an int, so that a knob is an offset; then the stages */
    int rounding;
    uint32_t (*stage[ASSAY_SFU_FUNCTIONS])(uint32_t bits); /* by function, on f32 bits */
};

/* Computes y[i] for @count elements from @first on. */
void assay_sfu_model(const struct assay_sfu_numerics *numerics,
                     enum assay_sfu_function function,
                     const struct assay_tensors *tensors, int64_t first, int64_t count);

/* --- convert: y = x in another format --------------------------------------------- */

enum assay_convert_overflow {
    ASSAY_CONVERT_AS_MEASURED, /* FP8 saturates (satfinite), bf16 and f16 do not */
    ASSAY_CONVERT_SATURATES,
    ASSAY_CONVERT_SPECIAL, /* infinity, or NaN where there is none */
};
enum assay_convert_rounding {
    ASSAY_CONVERT_NEAREST_EVEN,
    ASSAY_CONVERT_TOWARD_ZERO,
};

struct assay_convert_numerics {
    int overflow, rounding;
    struct {
        uint32_t (*encode)(const struct assay_convert_numerics *, enum assay_format to,
                           uint32_t bits);
    } stage;
};

/* Whether overflow gives the largest finite code of @to. */
bool assay_convert_saturates(const struct assay_convert_numerics *numerics,
                             enum assay_format to);

/* The stage of every named numerics: the code of @to for f32 bits. Toward zero, a finite
 * value never becomes larger in magnitude: nothing overflows but infinities. */
uint32_t assay_convert_encode(const struct assay_convert_numerics *numerics,
                              enum assay_format to, uint32_t bits);

/* Computes y[i], in y's format, for @count elements from @first on. */
void assay_convert_model(const struct assay_convert_numerics *numerics,
                         const struct assay_tensors *tensors, int64_t first,
                         int64_t count);

#endif
