/* SPDX-License-Identifier: MIT */
#include "gpu/transpose.h"
#include "gpu/transpose_kernel.cuh"

#include <algorithm>

enum : int64_t { MOST_BLOCKS_X = 0x7FFFFFFF, MOST_BLOCKS_Y = 65535 };

static int64_t tiles(int64_t extent)
{
    return (extent + GPU_TRANSPOSE_TILE - 1) / GPU_TRANSPOSE_TILE;
}

/* As many groups as one launch takes. */
static cudaError_t transpose_some(gpu_transpose_arguments *arguments,
                                  const int64_t *first_row, int64_t groups,
                                  cudaStream_t stream)
{
    int64_t most_rows = 0;
    arguments->first_row[0] = first_row[0];
    for (int64_t i = 0; i < groups; i++) {
        arguments->first_row[i + 1] = first_row[i + 1];
        most_rows = std::max(most_rows, first_row[i + 1] - first_row[i]);
    }
    const int64_t column_tiles = tiles(arguments->columns);
    if (most_rows == 0 || column_tiles == 0) return cudaSuccess;
    if (column_tiles > MOST_BLOCKS_X) return cudaErrorInvalidValue;
    const dim3 grid(unsigned(column_tiles),
                    unsigned(std::min(tiles(most_rows), int64_t(MOST_BLOCKS_Y))),
                    unsigned(groups));
    const dim3 block(GPU_TRANSPOSE_THREADS_X, GPU_TRANSPOSE_THREADS_Y);
    gpu_transpose<<<grid, block, 0, stream>>>(*arguments);
    return cudaGetLastError();
}

cudaError_t gpu_transpose_groups(const uint8_t *from, const int64_t *first_row,
                                 int64_t groups, int64_t columns, uint8_t *to,
                                 cudaStream_t stream)
{
    gpu_transpose_arguments arguments = {};
    arguments.from = from;
    arguments.to = to;
    arguments.columns = columns;
    cudaError_t error = cudaSuccess;
    for (int64_t i = 0; i < groups && error == cudaSuccess; i += GPU_TRANSPOSE_GROUPS)
        error =
            transpose_some(&arguments, first_row + i,
                           std::min(groups - i, int64_t(GPU_TRANSPOSE_GROUPS)), stream);
    return error;
}

cudaError_t gpu_transpose_bytes(const uint8_t *from, int64_t rows, int64_t columns,
                                uint8_t *to, cudaStream_t stream)
{
    const int64_t first_row[] = { 0, rows };
    return gpu_transpose_groups(from, first_row, 1, columns, to, stream);
}
