/* SPDX-License-Identifier: MIT */
/* Scales into the layout that this project's GEMMs read. */
#ifndef ASSAY_GPU_SCALE_LAYOUT_H
#define ASSAY_GPU_SCALE_LAYOUT_H

#include <cstdint>
#include <cuda_runtime.h>

/* Rows of MN-major scales lie so many elements apart: 16 bytes, as tensor maps demand. */
inline int64_t gpu_aligned_rows(int64_t rows)
{
    return (rows + 3) / 4 * 4;
}

/* From [groups][rows][k_blocks] to [groups][k_blocks][gpu_aligned_rows(rows)], both
 * dense; what is behind row @rows becomes zero. */
cudaError_t gpu_scale_to_mn_major(const float *from, int64_t groups, int64_t rows,
                                  int64_t k_blocks, float *to, cudaStream_t stream);

#endif
