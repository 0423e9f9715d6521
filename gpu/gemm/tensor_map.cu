/* SPDX-License-Identifier: MIT */
#include "gpu/gemm/tensor_map.h"

#include <cudaTypedefs.h>

namespace gemm {

enum : int64_t { UNIT_BYTES = 16, MAX_EXTENT = (int64_t)1 << 32 };
enum : int64_t { MAX_ROW_BYTES = (int64_t)1 << 40, MAX_BOX = 256 };

static int64_t element_bytes(CUtensorMapDataType type)
{
    return type == CU_TENSOR_MAP_DATA_TYPE_UINT8      ? 1
           : type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 ? 2
                                                      : 4;
}

static cudaError_t check(assay_cuda::run &run, const matrix &of)
{
    if ((uintptr_t)of.data % UNIT_BYTES)
        return run.refuse("%s lies at %p, which no tensor map can describe; it must be "
                          "aligned to 16 bytes",
                          of.name, of.data);
    if (of.row_bytes % UNIT_BYTES || of.row_bytes <= 0 || of.row_bytes >= MAX_ROW_BYTES)
        return run.refuse("rows of %s are %lld bytes apart, which no tensor map can "
                          "describe; use a multiple of 16 below 2^40",
                          of.name, (long long)of.row_bytes);
    if (of.rows < 1 || of.columns < 1 || of.rows > MAX_EXTENT || of.columns > MAX_EXTENT)
        return run.refuse("%s is %lld x %lld, and a tensor map takes 1 to 2^32 of each",
                          of.name, (long long)of.rows, (long long)of.columns);
    if (of.columns * element_bytes(of.type) > of.row_bytes)
        return run.refuse("rows of %s hold %lld bytes and are %lld apart, so that they "
                          "overlap; use a longer stride",
                          of.name, (long long)(of.columns * element_bytes(of.type)),
                          (long long)of.row_bytes);
    if (of.box_rows > MAX_BOX || of.box_columns > MAX_BOX)
        return run.refuse("a box of %s is %d x %d, and 256 is the most", of.name,
                          of.box_rows, of.box_columns);
    return cudaSuccess;
}

static cudaError_t find_encoder(PFN_cuTensorMapEncodeTiled_v12000 *encode)
{
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    void *found = nullptr;
    const cudaError_t error = cudaGetDriverEntryPointByVersion(
        "cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
    *encode = (PFN_cuTensorMapEncodeTiled_v12000)found;
    if (error != cudaSuccess) return error;
    return result == cudaDriverEntryPointSuccess && found ? cudaSuccess
                                                          : cudaErrorNotSupported;
}

cudaError_t make_tensor_map(assay_cuda::run &run, const matrix &of, CUtensorMap *map)
{
    PFN_cuTensorMapEncodeTiled_v12000 encode = nullptr;
    cudaError_t error = check(run, of);
    if (error == cudaSuccess) error = find_encoder(&encode);
    if (error != cudaSuccess) return error;
    const cuuint64_t extents[] = { (cuuint64_t)of.columns, (cuuint64_t)of.rows };
    const cuuint64_t strides[] = { (cuuint64_t)of.row_bytes };
    const cuuint32_t box[] = { (cuuint32_t)of.box_columns, (cuuint32_t)of.box_rows };
    const cuuint32_t steps[] = { 1, 1 };
    const CUresult result =
        encode(map, of.type, 2, const_cast<void *>(of.data), extents, strides, box, steps,
               CU_TENSOR_MAP_INTERLEAVE_NONE,
               of.is_swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result == CUDA_SUCCESS) return cudaSuccess;
    return run.refuse(
        "the driver makes no tensor map of %s (%lld x %lld, rows %lld bytes "
        "apart): error %d",
        of.name, (long long)of.rows, (long long)of.columns, (long long)of.row_bytes,
        (int)result);
}

} // namespace gemm
