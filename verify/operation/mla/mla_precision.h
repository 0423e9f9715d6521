/* SPDX-License-Identifier: MIT */
/* The precision class of attention numerics, which is all that bounds know of them, and
 * the errors of single steps. Errors of products and logarithms are relative and absolute
 * ones of f32 arithmetic, 2^-24 being half a unit in the last place of 1. */
#ifndef ASSAY_VERIFY_OPERATION_MLA_PRECISION_H
#define ASSAY_VERIFY_OPERATION_MLA_PRECISION_H

#include "ref/kernel/mla_attention.h"

#define ASSAY_MLA_HALF_ULP 0x1p-24
/* Of the flush to zero; and of any f32. */
#define ASSAY_MLA_SMALLEST_NORMAL 0x1p-126

/* |ex2(x) - 2^x| <= ex2 * 2^x, but ex2(0) is 1; |lg2(x) - log2(x)| <= lg2_absolute +
 * lg2_relative * |log2(x)|; |rcp(x) - 1 / x| <= rcp / x. */
struct assay_mla_accuracy {
    double ex2, lg2_absolute, lg2_relative, rcp;
};

struct assay_mla_precision {
    bool is_score_by_fma, is_value_by_fma; /* else by tensor cores: */
    int align_bits, result_bits;
    struct assay_mla_accuracy attention, combine;
    double quotient;               /* relative, of normalising */
    double p_relative, p_absolute; /* of rounding p; 0 if it is kept */
    int p_exponent;                /* of the smallest normal p */
    bool is_p_nearest, is_argument_fused, is_mask_finite;
    bool is_nan_empty, is_zero_weight_skipped;
    int64_t keys_per_raise; /* at most one rise of the maximum each; 0: none */
};

struct assay_mla_precision assay_mla_precision_of(const struct assay_mla_numerics *given,
                                                  enum assay_format format);
struct assay_mla_accuracy assay_mla_accuracy_of(int functions);

/* Error of a logarithm of values in [1, 2^@log2_largest]. */
double assay_mla_lg2_error(const struct assay_mla_accuracy *accuracy,
                           double log2_largest);

/* A chain of products, in any order. */
struct assay_mla_chain {
    int64_t products;
    double sum, magnitude; /* exact sum; sum of padded magnitudes */
    int exponent, lsb;     /* largest that alignment can see; of all products */
    int factor;            /* the factors' largest exponent */
    double residue;        /* what they lose when each is truncated, at most: */
};

/* They are truncated to multiples of two to this power, at most; the rest of @chain but
 * for residue must be there. */
int assay_mla_chain_quantum(const struct assay_mla_precision *precision,
                            const struct assay_mla_chain *chain);
/* A residue that needs no look at them. */
double assay_mla_chain_residue(const struct assay_mla_precision *precision,
                               const struct assay_mla_chain *chain);

/* Largest error of the chain's f32 value. */
double assay_mla_chain_error(const struct assay_mla_precision *precision,
                             const struct assay_mla_chain *chain);

/* floor(log2 |x|) of a normal double; a very small number for 0. */
int assay_mla_exponent(double x);

/* Bound of an output of @format (bf16, f16) that is rounded to nearest from within
 * @error of @value: infinite where it claims nothing. @value becomes infinite where the
 * output certainly is. */
double assay_mla_output_bound(enum assay_format format, double error, double *value);

#endif
