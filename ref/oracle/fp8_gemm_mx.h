/* SPDX-License-Identifier: MIT */
/* The GEMM with power-of-two block scales as mathematics: the function of the stored
 * inputs, part by part, with what a bound has to know about the products. It shares
 * nothing with the model.
 *
 * Exactness. The products of a K group are summed in 128-bit integers; groups are added
 * as pairs of doubles, with an error of at most (groups + 1) * 2^-100 times the magnitude
 * (ASSAY_FP8_GEMM_MX_ORACLE_ERROR), and zero as long as all partial sums are doubles. NaN
 * and infinities follow IEEE 754 as if nothing ever rounded. */
#ifndef ASSAY_REF_ORACLE_FP8_GEMM_MX_H
#define ASSAY_REF_ORACLE_FP8_GEMM_MX_H

#include "ref/fp8_gemm_mx_problem.h"
#include "ref/oracle/pair.h"

#define ASSAY_FP8_GEMM_MX_ORACLE_ERROR 0x1p-100

enum assay_fp8_gemm_mx_special { /* a set */
                                 ASSAY_MX_NAN = 1,
                                 ASSAY_MX_PLUS_INFINITY = 2,
                                 ASSAY_MX_MINUS_INFINITY = 4,
};

/* One output: its scaled products, those that are NaN or infinite in special alone. */
struct assay_fp8_gemm_mx_output {
    struct assay_pair sum;
    double magnitude; /* sum of |products|, a subnormal factor counting as the smallest
                         normal: never below it, at most 2^-29 above */
    int64_t nonzero;  /* products that are not zero; 0: the next two mean nothing */
    int unit;         /* every product is a multiple of 2^unit */
    int exponent;     /* largest that alignment can see in one product */
    unsigned special;
};

struct assay_fp8_gemm_mx_oracle;

/* Opens part @part; NULL when memory ran out. Problem and tensors are borrowed. */
struct assay_fp8_gemm_mx_oracle *
assay_fp8_gemm_mx_oracle_open(const struct assay_fp8_gemm_problem *problem,
                              const struct assay_tensors *tensors, int64_t part);
void assay_fp8_gemm_mx_oracle_close(struct assay_fp8_gemm_mx_oracle *oracle);

/* The part's outputs, row-major. */
void assay_fp8_gemm_mx_oracle_sums(const struct assay_fp8_gemm_mx_oracle *oracle,
                                   struct assay_fp8_gemm_mx_output *output);

/* For each output, the sum over its products of |product| modulo 2^exponent[output]: what
 * truncating each to a multiple of that power loses. Within 2^-20 of itself and 0 only if
 * it is; infinite and NaN products count as 0. */
void assay_fp8_gemm_mx_oracle_residues(const struct assay_fp8_gemm_mx_oracle *oracle,
                                       const int *exponent, double *residue);

/* The output's value rounded to a double, NaN and infinities included. */
double assay_fp8_gemm_mx_value(const struct assay_fp8_gemm_mx_output *output);

#endif
