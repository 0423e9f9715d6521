/* SPDX-License-Identifier: MIT */
/* Matrices of one-byte elements, transposed: what stands before a k-grouped GEMM whose
 * operands have K outermost. */
#ifndef ASSAY_GPU_TRANSPOSE_H
#define ASSAY_GPU_TRANSPOSE_H

#include <cstdint>
#include <cuda_runtime.h>

/* From [rows][columns] to [columns][rows], both dense. */
cudaError_t gpu_transpose_bytes(const uint8_t *from, int64_t rows, int64_t columns,
                                uint8_t *to, cudaStream_t stream);

/* The same for every group of rows by itself: group g is rows @first_row[g] to
 * @first_row[g + 1] of @from, and lies at @to + columns * first_row[g]. @first_row is on
 * the host, ascends and has groups + 1 entries. One launch for 64 groups. */
cudaError_t gpu_transpose_groups(const uint8_t *from, const int64_t *first_row,
                                 int64_t groups, int64_t columns, uint8_t *to,
                                 cudaStream_t stream);

#endif
