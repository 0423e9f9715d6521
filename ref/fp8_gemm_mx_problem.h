/* SPDX-License-Identifier: MIT */
/* What a GEMM with power-of-two block scales inside its products ("MX") is asked to
 * compute, without a word on how: the input that model and oracle have in common.
 *
 *   d[m, n] = sum over k of 2^(sa - 127) * a[m, k] * 2^(sb - 127) * b[n, k]
 *
 * with the UE8M0 codes sa of row m of a and sb of row n of b, in K group k / gran_k. Code
 * 255 is NaN, also where it meets a zero; code 0 is 2^-127.
 *
 * Tensors, by name: a [m, k], b [n, k] (e4m3, e5m2 or e2m1; an e2m1 code is the low four
 * bits of its byte), sfa [words, m], sfb [words, n] (i32: byte g % 4 of word g / 4,
 * lowest first, is the code of K group g; rows align(m, 4) and align(n, 4) apart), d [m,
 * n] (bf16 or f32). The problem is a struct assay_fp8_gemm_problem with gran_m = gran_n =
 * 1 and without c. */
#ifndef ASSAY_REF_FP8_GEMM_MX_PROBLEM_H
#define ASSAY_REF_FP8_GEMM_MX_PROBLEM_H

#include "ref/fp8_gemm_problem.h"

/* K groups that have a scale of their own. */
static inline int64_t
assay_fp8_gemm_mx_groups(const struct assay_fp8_gemm_problem *problem)
{
    return (problem->k + problem->gran_k - 1) / problem->gran_k;
}

#endif
