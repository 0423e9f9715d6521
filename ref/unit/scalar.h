/* SPDX-License-Identifier: MIT */
/* Scalar f32 arithmetic of the GPU: IEEE 754 nearest even, except that every NaN result
 * is 0x7FFFFFFF, and flush-to-zero variants. Exactness: correctly rounded. Source:
 * measured on H200 (corpus/units/README.md). Values travel as floats; a NaN's bits are
 * canonical after every operation. */
#ifndef ASSAY_REF_UNIT_SCALAR_H
#define ASSAY_REF_UNIT_SCALAR_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline float assay_f32_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint32_t assay_f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* @value, with any NaN replaced by 0x7FFFFFFF. */
static inline float assay_f32_canonical(float value)
{
    const uint32_t bits = assay_f32_bits(value);
    return assay_f32_from_bits((bits & 0x7FFFFFFF) > 0x7F800000 ? 0x7FFFFFFF : bits);
}

static inline float assay_f32_multiply(float a, float b)
{
    return assay_f32_canonical(a * b);
}

static inline float assay_f32_add(float a, float b)
{
    return assay_f32_canonical(a + b);
}

static inline float assay_f32_fma(float a, float b, float c)
{
    return assay_f32_canonical(fmaf(a, b, c));
}

/* max.f32: the non-NaN operand; of two NaNs the first's bits; max(-0, +0) is +0. */
float assay_f32_maximum(float a, float b);

/* The .ftz forms: subnormal inputs and results become zero of the same sign. A result is
 * subnormal if it lies below 2^-126 after rounding to 24 bits with an unbounded exponent,
 * as x86 has it: (1 - 2^-24) * 2^-126, which rounds up to 2^-126 without .ftz, is
 * flushed.
 * The state of the processor's own flush-to-zero mode is neither used nor changed. */
float assay_f32_flush(float value);
float assay_f32_multiply_ftz(float a, float b);
float assay_f32_add_ftz(float a, float b);
float assay_f32_fma_ftz(float a, float b, float c);

/* Whether this process computes as all of ref/ assumes: no contraction, no flush to zero,
 * nearest even. Four operations whose bits prove it; to be asked before trusting bits. */
bool assay_float_mode_is_sound(void);

#endif
