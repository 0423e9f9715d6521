/* SPDX-License-Identifier: MIT */
/* What single hardware units compute, as mathematics: sums of products, four functions of
 * one variable, conversions. It shares nothing with the model. */
#ifndef ASSAY_REF_ORACLE_UNIT_H
#define ASSAY_REF_ORACLE_UNIT_H

#include "ref/tensor.h"

/* --- sums of products ------------------------------------------------------------- */

enum assay_unit_special { /* a set */
                          ASSAY_UNIT_NAN = 1,
                          ASSAY_UNIT_PLUS_INFINITY = 2,
                          ASSAY_UNIT_MINUS_INFINITY = 4,
};

enum { ASSAY_UNIT_NO_EXPONENT = -10000, ASSAY_UNIT_NO_LSB = 10000 };

/* One output of a block: facts about its terms, which are c and the products. NaN and
 * infinite ones are in @special alone; an infinity times zero is a NaN. */
struct assay_dot_sum {
    double value;              /* sum of the finite terms; exact, then rounded once */
    double positive, negative; /* magnitudes of the sums of either sign; the same */
    int lsb;                   /* every term is a multiple of 2^lsb */
    int aligned;   /* largest exponent of a nonzero product, its factors' added; that of a
                    * subnormal is the smallest normal's */
    int c_aligned; /* exponent of c, at least -126 */
    int64_t products; /* that are not zero */
    unsigned special;
};

/* Fills @sum for block @block of a [blocks, steps, rows, elements], b [blocks, steps,
 * columns, elements] and c [blocks, rows, columns] (f32), row-major. a and b are e4m3,
 * e5m2, bf16, f16 or tf32 (whose low 13 bits are ignored). Returns false when memory ran
 * out. */
bool assay_dot_sums(const struct assay_tensors *tensors, int64_t block,
                    struct assay_dot_sum *sum);

/* For each output: the sums over the positive and over the negative products of |product|
 * modulo 2^exponent[output], and with @has_c the same of c: what truncating each to a
 * multiple of that power loses. Within 2^-30 of itself, and 0 only if it is. */
bool assay_dot_residues(const struct assay_tensors *tensors, int64_t block, bool has_c,
                        const int *exponent, double (*residue)[2]);

/* --- functions -------------------------------------------------------------------- */

/* 2^x, log2 x, 1 / x, 1 / sqrt x of f32, subnormal arguments counting as zeros of their
 * sign. Within 2^-52 of the value; results that are no f32 (subnormal, too large) are
 * not rounded to one. The logarithm of zero is minus infinity, 1 / -0 and 1 / sqrt -0
 * too. */
double assay_exact_ex2(float x);
double assay_exact_lg2(float x);
double assay_exact_rcp(float x);
double assay_exact_rsqrt(float x);

/* --- conversions ------------------------------------------------------------------ */

struct assay_conversion {
    enum assay_format to; /* e4m3, e5m2, bf16 or f16 */
    bool saturates;       /* overflow gives the largest finite value, infinities too */
    bool truncates;       /* toward zero, else to nearest with ties to even */
};

/* @x in the format: exact. */
double assay_exact_conversion(const struct assay_conversion *conversion, float x);

#endif
