/* SPDX-License-Identifier: MIT */
/* What a quantiser to e4m3 is asked to compute, without a word on how: the input that
 * model and oracle have in common.
 *
 *   sf[i, j] = max(amax of |x| over the block, 1e-4) / 448      1e-4 as the nearest f32
 *   q[r, c]  = e4m3(x[r, c] / sf[r / gran_m, c / gran_k])
 *
 * Blocks at the edges are as if padded with zeros. With has_power_of_two_scale sf is the
 * smallest power of two that is not below that, and q is by this one.
 *
 * Tensors, by name: x [m, k] (bf16 or f32), q [m, k] (e4m3), sf [ceil(m / gran_m),
 * ceil(k / gran_k)] (f32). */
#ifndef ASSAY_REF_QUANTISE_PROBLEM_H
#define ASSAY_REF_QUANTISE_PROBLEM_H

#include "ref/tensor.h"

/* A part is one tile of q with its scales, independent of all others: whole blocks, which
 * are at most 128 x 128. */
enum { ASSAY_QUANTISE_TILE_M = 128, ASSAY_QUANTISE_TILE_K = 1024 };

struct assay_quantise_problem {
    int64_t m, k;
    int64_t gran_m, gran_k; /* elements one scale covers; they divide the tile's */
    bool has_power_of_two_scale;
};

struct assay_quantise_range {
    int64_t m0, rows, k0, columns;
};

static inline int64_t assay_quantise_parts(const struct assay_quantise_problem *problem)
{
    const int64_t tiles_m =
        (problem->m + ASSAY_QUANTISE_TILE_M - 1) / ASSAY_QUANTISE_TILE_M;
    const int64_t tiles_k =
        (problem->k + ASSAY_QUANTISE_TILE_K - 1) / ASSAY_QUANTISE_TILE_K;
    return tiles_m * tiles_k;
}

/* Rows and columns of q that part @part covers; parts ascend along k first. */
static inline struct assay_quantise_range
assay_quantise_part_range(const struct assay_quantise_problem *problem, int64_t part)
{
    const int64_t tiles_k =
        (problem->k + ASSAY_QUANTISE_TILE_K - 1) / ASSAY_QUANTISE_TILE_K;
    const int64_t m0 = part / tiles_k * ASSAY_QUANTISE_TILE_M;
    const int64_t k0 = part % tiles_k * ASSAY_QUANTISE_TILE_K;
    const int64_t rows = problem->m - m0, columns = problem->k - k0;
    return (struct assay_quantise_range){
        m0, rows < ASSAY_QUANTISE_TILE_M ? rows : ASSAY_QUANTISE_TILE_M, k0,
        columns < ASSAY_QUANTISE_TILE_K ? columns : ASSAY_QUANTISE_TILE_K
    };
}

/* Blocks of sf that a range covers. */
static inline struct assay_quantise_range
assay_quantise_blocks(const struct assay_quantise_problem *problem,
                      const struct assay_quantise_range *range)
{
    return (struct assay_quantise_range){
        range->m0 / problem->gran_m,
        (range->rows + problem->gran_m - 1) / problem->gran_m,
        range->k0 / problem->gran_k,
        (range->columns + problem->gran_k - 1) / problem->gran_k,
    };
}

#endif
