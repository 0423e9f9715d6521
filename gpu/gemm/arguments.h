/* SPDX-License-Identifier: MIT */
/* What a GEMM kernel is given: d[m, n] = [c +] (sfa * a) (sfb * b)^T, in groups or not.
 * a and b are K-major; sfa is MN-major, [blocks of K][rows]; so is sfb of 1D1D. */
#ifndef ASSAY_GPU_GEMM_ARGUMENTS_H
#define ASSAY_GPU_GEMM_ARGUMENTS_H

#include <cstdint>
#include <cuda.h>

namespace gemm {

enum : int { BLOCK_K = 128 };
enum : int { MASKED_ROWS = 128 }; /* of d are written together, whatever the tile */

enum kind {
    DENSE,
    CONTIGUOUS, /* rows of all groups one below the other, each labelled with its group */
    MASKED,     /* a and d [groups, m, ...], of which masked_m[group] rows count */
    K_GROUPED   /* d [groups, m, n], each group over its own stretch of K */
};

/* 1D2D: sfb for blocks of 128 x 128; d is stored. 1D1D: sfb a row of b, and d = c + sums,
 * one more addition, also where c is absent. */
enum scale_form { SCALE_1D2D, SCALE_1D1D };

/* K-grouped: the operands of one group. */
struct group_maps {
    CUtensorMap a, b;
};

struct arguments {
    CUtensorMap a, b, sfa, sfb, c, d; /* d: not 1D2D's in f32 */
    const group_maps *groups_maps;    /* in device memory; K_GROUPED only */
    const float *sfb_blocks;          /* 1D2D: [groups][ceil(n / 128)][k_blocks] */
    const int32_t *layout;            /* m_indices, masked_m, or the K of each group */
    void *d_data;
    int64_t d_stride; /* elements */
    int32_t m, n;     /* of one group; CONTIGUOUS: m of all */
    int32_t k_blocks; /* blocks of 128 of K, the last one may be partial */
    int32_t groups;
    int32_t band;    /* rows of tiles that are worked on before the next ones */
    int32_t cluster; /* blocks that share the tile of a: 1 or 2 */
    int32_t d_is_f32;
    int32_t has_c;
    int32_t kind;  /* enum kind */
    int32_t fault; /* a planted fault, in a build that has them */
};

} // namespace gemm

#endif
