/* SPDX-License-Identifier: MIT */
/* What an FP8 GEMM is asked to compute, without a word on how: the input that model and
 * oracle have in common.
 *
 *   d[m, n] = c[m, n] + sum over k of sfa[m / gran_m, k / gran_k] * a[m, k]
 *                                   * sfb[n / gran_n, k / gran_k] * b[n, k]
 *
 * Tensors, by name: a [m, k], b [n, k] (FP8 codes), sfa [ceil(m / gran_m),
 * ceil(k / gran_k)], sfb [ceil(n / gran_n), ceil(k / gran_k)] (f32, at least 1 x 1),
 * c [m, n] (f32, only if has_c), d [m, n] (bf16 or f32). */
#ifndef ASSAY_REF_FP8_GEMM_PROBLEM_H
#define ASSAY_REF_FP8_GEMM_PROBLEM_H

#include "ref/tensor.h"

/* A part is one tile of d, independent of all others. */
enum { ASSAY_FP8_GEMM_TILE_M = 64, ASSAY_FP8_GEMM_TILE_N = 64 };

struct assay_fp8_gemm_problem {
    int64_t m, n, k;
    int64_t gran_m, gran_n, gran_k; /* elements one scale covers; per tensor: m, n, k */
    bool has_c;                     /* c is added */
};

/* Rows and columns of d that part @part covers; parts ascend along n first. */
struct assay_fp8_gemm_tile_range {
    int64_t m0, rows, n0, columns;
};

static inline int64_t assay_fp8_gemm_parts(const struct assay_fp8_gemm_problem *problem)
{
    const int64_t tiles_m =
        (problem->m + ASSAY_FP8_GEMM_TILE_M - 1) / ASSAY_FP8_GEMM_TILE_M;
    const int64_t tiles_n =
        (problem->n + ASSAY_FP8_GEMM_TILE_N - 1) / ASSAY_FP8_GEMM_TILE_N;
    return tiles_m * tiles_n;
}

static inline struct assay_fp8_gemm_tile_range
assay_fp8_gemm_part_range(const struct assay_fp8_gemm_problem *problem, int64_t part)
{
    const int64_t tiles_n =
        (problem->n + ASSAY_FP8_GEMM_TILE_N - 1) / ASSAY_FP8_GEMM_TILE_N;
    const int64_t m0 = part / tiles_n * ASSAY_FP8_GEMM_TILE_M;
    const int64_t n0 = part % tiles_n * ASSAY_FP8_GEMM_TILE_N;
    const int64_t rows = problem->m - m0, columns = problem->n - n0;
    return (struct assay_fp8_gemm_tile_range){
        m0, rows < ASSAY_FP8_GEMM_TILE_M ? rows : ASSAY_FP8_GEMM_TILE_M, n0,
        columns < ASSAY_FP8_GEMM_TILE_N ? columns : ASSAY_FP8_GEMM_TILE_N
    };
}

#endif
