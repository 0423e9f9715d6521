/* SPDX-License-Identifier: MIT */
/* f32 operations of the attention model, by the knobs: with subnormals flushed or kept,
 * functions of the hardware or rounded to nearest; and the codes of bf16 and f16.
 * Exactness: that of ref/unit/scalar.h and ref/unit/special_function.h; conversions are
 * correctly rounded. */
#ifndef ASSAY_REF_KERNEL_MLA_ARITHMETIC_H
#define ASSAY_REF_KERNEL_MLA_ARITHMETIC_H

#include "ref/kernel/mla_attention.h"
#include "ref/unit/scalar.h"

static inline float assay_mla_multiply(bool flush, float a, float b)
{
    return flush ? assay_f32_multiply_ftz(a, b) : assay_f32_multiply(a, b);
}

static inline float assay_mla_add(bool flush, float a, float b)
{
    return flush ? assay_f32_add_ftz(a, b) : assay_f32_add(a, b);
}

static inline float assay_mla_fma(bool flush, float a, float b, float c)
{
    return flush ? assay_f32_fma_ftz(a, b, c) : assay_f32_fma(a, b, c);
}

/* a / b rounded to nearest. */
float assay_mla_divide(bool flush, float a, float b);

/* 2^x, log2(x), 1/x. @functions is an enum assay_mla_functions; rounded ones flush
 * subnormals where @flush, the hardware's always do. */
float assay_mla_ex2(int functions, bool flush, float x);
float assay_mla_lg2(int functions, bool flush, float x);
float assay_mla_rcp(int functions, bool flush, float x);

/* to[i] = bits of factor * from[i]; the two may not overlap. */
void assay_mla_scale_row(bool flush, float factor, const float *from, int count,
                         uint32_t *to);

/* Codes of bf16 or f16. @p_rounding is an enum assay_mla_p_rounding but not
 * ASSAY_MLA_P_KEPT; a NaN becomes 0x7FFF, subnormals are kept; what overflows becomes
 * infinity, toward zero the largest finite code. */
void assay_mla_encode(enum assay_format format, int p_rounding, const float *from,
                      int64_t count, uint16_t *to);

/* Values of bf16 or f16 codes, exact. */
void assay_mla_decode(enum assay_format format, const uint16_t *from, int64_t count,
                      float *to);

#endif
