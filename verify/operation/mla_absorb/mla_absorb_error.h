/* SPDX-License-Identifier: MIT */
/* Errors of matrices on their way through products, stores and rotations: what the bound
 * of mla_absorb is made of. u = 2^-24; hats are what was computed. */
#ifndef ASSAY_VERIFY_OPERATION_MLA_ABSORB_MLA_ABSORB_ERROR_H
#define ASSAY_VERIFY_OPERATION_MLA_ABSORB_MLA_ABSORB_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#define ASSAY_MLA_ABSORB_UNIT       0x1p-24
#define ASSAY_MLA_ABSORB_TERM_FLOOR 0x1p-147
/* Beyond it nothing is claimed: of bf16, a little below f32's largest. */
#define ASSAY_MLA_ABSORB_LARGEST 0x1.fep127

/* A matrix, row-major, with what is known of its computed twin. Inputs have no errors
 * (NULL). An infinite or NaN error claims nothing. */
struct assay_mla_quantity {
    const double *value; /* x, the oracle's */
    double *error;       /* |^x - x| at most */
    double *local;       /* the part of it that arises here: |^x - f(what ^x is of)| */
    int64_t rows, columns;
    bool is_bf16;
};

/* Sums of products in hand, an output each. */
struct assay_mla_sums {
    double *spread;    /* what the factors' errors can make */
    double *magnitude; /* M = sum of (|a| + e(a)) (|b| + e(b)) */
    double gamma, floor;
};

/* |value| + error */
double assay_mla_absorb_reach(const struct assay_mla_quantity *x, int64_t index);

/* What a sum of @terms products adds to its error, in units of M. */
double assay_mla_absorb_gamma(bool is_on_tensor_core, int64_t terms);

/* |x| as the tensor core aligns it: at least 2^-126, or 0. */
double assay_mla_absorb_aligned(double magnitude);

/* Starts @count sums. */
void assay_mla_absorb_begin(struct assay_mla_sums *sums, int64_t count);

/* Adds the terms of a b^T, or with @is_transposed of a b, chained behind those there. */
void assay_mla_absorb_add(struct assay_mla_sums *sums, bool has_tensor_core,
                          const struct assay_mla_quantity *a,
                          const struct assay_mla_quantity *b, bool is_transposed);

/* The error of the sums themselves; infinite where they may overflow. */
double assay_mla_absorb_own_error(const struct assay_mla_sums *sums, int64_t index);

/* Errors of the sums into @into. */
void assay_mla_absorb_finish(const struct assay_mla_sums *sums,
                             const struct assay_mla_quantity *into);

/* Of rounding to bf16 something of magnitude @largest or less. */
double assay_mla_absorb_half_unit(double largest);

/* Stores the matrix in bf16. */
void assay_mla_absorb_round(const struct assay_mla_quantity *x);

/* Turns pairs: @x has the values after it and the errors before it, @flat the values
 * before. @cosine and @sine are those of its first row. */
void assay_mla_absorb_turn(const struct assay_mla_quantity *x, const double *flat,
                           const double *cosine, const double *sine);

#endif
