/* SPDX-License-Identifier: MIT */
/* Descriptions of matrices for the copy engine. */
#ifndef ASSAY_GPU_GEMM_TENSOR_MAP_H
#define ASSAY_GPU_GEMM_TENSOR_MAP_H

#include <assay_plugin_cuda.h>
#include <cuda.h>

namespace gemm {

struct matrix {
    const char *name;
    CUtensorMapDataType type; /* UINT8, FLOAT32 or BFLOAT16 */
    const void *data;         /* a multiple of 16 bytes */
    int64_t rows, columns;    /* columns are what lies together; 1 to 2^32 of each */
    int64_t row_bytes;        /* from row to row: a multiple of 16, below 2^40 */
    int box_rows, box_columns;
    bool is_swizzled; /* 128-byte swizzle: the box is 128 bytes wide */
};

/* Anything out of range gets a sentence by run.refuse, not the driver's bare error. */
cudaError_t make_tensor_map(assay_cuda::run &run, const matrix &of, CUtensorMap *map);

} // namespace gemm

#endif
