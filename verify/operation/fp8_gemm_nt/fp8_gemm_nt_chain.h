/* SPDX-License-Identifier: MIT */
/* One output of one chain, for the bound of fp8_gemm_nt: the loss of a chain of products,
 * and of scaling it. Derived where the bound is. */
#ifndef ASSAY_VERIFY_OPERATION_FP8_GEMM_NT_FP8_GEMM_NT_CHAIN_H
#define ASSAY_VERIFY_OPERATION_FP8_GEMM_NT_FP8_GEMM_NT_CHAIN_H

#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt_bound.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define ASSAY_CHAIN_SLACK (1 + 0x1p-20)
/* Beyond it a result may have overflowed; a little below FLT_MAX for the bound's sake. */
#define ASSAY_CHAIN_OVERFLOW ((double)FLT_MAX * (1 - 0x1p-30))
/* For functions inside loops over a line: they have no branches, so that the loops can be
 * vectorised, and what does not apply to an output is computed and not used. */
#define ASSAY_INSIDE_LOOP __attribute__((always_inline)) static inline

enum {
    ASSAY_F32_BITS = 24,
    ASSAY_BF16_BITS = 8,
    ASSAY_F32_LSB = -149,
    ASSAY_F32_MINIMUM_EXPONENT = -126
};

struct assay_factor { /* a scale: an integer of width bits, times 2^unit */
    float value;
    double magnitude;
    int64_t unit, width;
};

struct
    assay_block { /* a computed f32: |computed - exact| <= error, |computed| <= largest */
    double error, largest;
    int64_t unit, width; /* a multiple of 2^unit, of width bits */
};

struct assay_chains { /* what one range of k has in common */
    const struct assay_fp8_gemm_precision *precision;
    double instructions, steps; /* dot-adds in steps */
    double growth;              /* of partial sums, by rounding to nearest */
};

struct assay_chain {                /* of one output */
    double magnitude, sum, largest; /* A, |S|, M of the derivation */
    double nonzero;                 /* products */
    int64_t unit;                   /* exponent of u */
    int64_t aligned;                /* largest exponent a product can align by */
};

ASSAY_INSIDE_LOOP int64_t assay_minimum(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

ASSAY_INSIDE_LOOP int64_t assay_maximum(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

ASSAY_INSIDE_LOOP double assay_smaller(double a, double b)
{
    return a < b ? a : b;
}

ASSAY_INSIDE_LOOP double assay_larger(double a, double b)
{
    return a > b ? a : b;
}

/* floor(log2 @x), for normal @x > 0 */
ASSAY_INSIDE_LOOP int64_t assay_exponent_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (int64_t)(bits >> 52 & 0x7ff) - 1023;
}

/* For exponents of normal doubles. */
ASSAY_INSIDE_LOOP double assay_double_power(int64_t exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

ASSAY_INSIDE_LOOP double assay_loss(double quantum, double unit)
{
    return assay_larger(quantum - unit, 0);
}

/* The same to nearest: a tie loses half the quantum, whatever the unit. */
ASSAY_INSIDE_LOOP double assay_nearest_loss(double quantum, double unit)
{
    return quantum > unit ? quantum / 2 : 0;
}

/* Distance of neighbours at @magnitude in a format of f32's range and @bits bits. */
static inline double assay_spacing(double magnitude, int bits)
{
    const int64_t exponent =
        magnitude > 0 ? assay_exponent_of(magnitude) : ASSAY_F32_MINIMUM_EXPONENT;
    return assay_double_power(assay_maximum(exponent, ASSAY_F32_MINIMUM_EXPONENT) - bits +
                              1);
}

static inline struct assay_factor assay_factor_of(float value)
{
    struct assay_factor factor = { .value = value,
                                   .magnitude = fabs((double)value),
                                   .width = 1 };
    if (!isfinite(value) || value == 0.0f) return factor;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const unsigned field = bits >> 23 & 0xff, fraction = bits & 0x7fffff;
    const unsigned significand = field ? fraction | 0x800000 : fraction;
    const int zeros = __builtin_ctz(significand);
    factor.unit = (int)(field ? field : 1) - 1 + ASSAY_F32_LSB + zeros;
    factor.width = 32 - __builtin_clz(significand) - zeros;
    return factor;
}

static inline struct assay_chains
assay_chains_of(const struct assay_fp8_gemm_precision *precision, int64_t k_count)
{
    const int64_t instructions = (k_count + precision->terms - 1) / precision->terms;
    const double steps = (double)(instructions * assay_maximum(precision->groups, 1));
    return (struct assay_chains){ precision, (double)instructions, steps,
                                  precision->adds_accumulator_last ? 1 + steps * 0x1p-23
                                                                   : 1 };
}

/* The chain of products that are multiples of 2^@unit and have no larger exponents than
 * @exponent. */
ASSAY_INSIDE_LOOP struct assay_chain assay_chain_of(const struct assay_chains *chains,
                                                    double magnitude, double sum,
                                                    double nonzero, int unit,
                                                    int exponent)
{
    return (struct assay_chain){
        .magnitude = magnitude,
        .sum = fabs(sum),
        .largest = (magnitude + fabs(sum)) / 2 * chains->growth,
        .nonzero = nonzero,
        .unit = unit,
        .aligned = assay_minimum(exponent, assay_exponent_of(magnitude)),
    };
}

ASSAY_INSIDE_LOOP int64_t assay_quantum_exponent(const struct assay_chains *chains,
                                                 const struct assay_chain *chain)
{
    const int64_t accumulated =
        assay_maximum(chain->aligned, assay_exponent_of(chain->largest));
    return (chains->steps > 1 ? accumulated : chain->aligned) -
           chains->precision->align_bits;
}

/* @residue is the sum of |p| mod q. */
ASSAY_INSIDE_LOOP struct assay_block assay_chain_block(const struct assay_chains *chains,
                                                       const struct assay_chain *chain,
                                                       double residue)
{
    const struct assay_fp8_gemm_precision *const precision = chains->precision;
    const int align_bits = precision->align_bits, result_bits = precision->result_bits;
    const double unit = assay_double_power(chain->unit);
    const int64_t exponent = assay_exponent_of(chain->largest);
    const double first =
        assay_loss(assay_double_power(chain->aligned - align_bits), unit);
    const double any =
        assay_loss(assay_double_power(assay_quantum_exponent(chains, chain)), unit);
    const double result = assay_loss(assay_double_power(exponent - result_bits), unit);
    const double nearest =
        assay_nearest_loss(assay_double_power(exponent - ASSAY_F32_BITS + 1), unit);

    const double steps = assay_smaller(chains->steps, chain->nonzero);
    const double sums = assay_smaller(chains->instructions, chain->nonzero);
    const double aligned =
        align_bits >= result_bits ? (steps - 1) * first : (chains->steps - 1) * any;
    const double last = precision->adds_accumulator_last ? (sums - 1) * nearest : 0;
    const double error = residue + steps * result + aligned + last;

    const double reached = assay_smaller(chain->largest, chain->sum + error);
    const int64_t width =
        precision->adds_accumulator_last ? ASSAY_F32_BITS : result_bits + 1;
    const int64_t fits = assay_exponent_of(reached) - chain->unit + 1;
    return (struct assay_block){ error, reached, chain->unit,
                                 assay_minimum(width, assay_maximum(fits, 1)) };
}

ASSAY_INSIDE_LOOP int64_t assay_product_width(int64_t a, int64_t b)
{
    return a == 1 ? b : b == 1 ? a : a + b;
}

/* The block times both finite scales. */
ASSAY_INSIDE_LOOP struct assay_block assay_scaled_block(const struct assay_block *block,
                                                        const struct assay_factor *a,
                                                        const struct assay_factor *b)
{
    const double scale = a->magnitude * b->magnitude, exact = scale * block->largest;
    const int64_t width =
        assay_product_width(assay_product_width(a->width, b->width), block->width);
    const double inexact = a->width == 1 || b->width == 1 ? 0x1p-24 : 0x1p-23;
    const double relative = width <= ASSAY_F32_BITS ? 0 : inexact;
    const int64_t unit = a->unit + b->unit + block->unit;
    const double vanishing = (a->unit + b->unit < ASSAY_F32_LSB ? block->largest : 0) +
                             (a->unit + block->unit < ASSAY_F32_LSB ? b->magnitude : 0) +
                             (b->unit + block->unit < ASSAY_F32_LSB ? a->magnitude : 0) +
                             (unit < ASSAY_F32_LSB ? 1.0 : 0);
    const double rounding = relative * exact + 0x1p-150 * vanishing;
    return (struct assay_block){ .error = scale * block->error + rounding,
                                 .largest = exact + rounding * ASSAY_CHAIN_SLACK,
                                 .unit = unit,
                                 .width = ASSAY_F32_BITS };
}

/* Whether a step of scaling the block, in some form, may overflow. */
ASSAY_INSIDE_LOOP bool assay_may_overflow(const struct assay_block *block,
                                          const struct assay_factor *a,
                                          const struct assay_factor *b)
{
    const double factor = assay_larger(a->magnitude, b->magnitude);
    const double scale = a->magnitude * b->magnitude;
    return assay_larger(scale, block->largest * assay_larger(factor, scale)) >
           ASSAY_CHAIN_OVERFLOW;
}

#endif
