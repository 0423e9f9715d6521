/* SPDX-License-Identifier: MIT */
/* As much of the CUDA driver's interface as gpu/gemm needs, for tests without CUDA: names
 * and numbers of the real one. cuTensorMapEncodeTiled takes what the driver's
 * documentation allows and nothing else; the map that it makes is a list of what it was
 * given, for fake_map_text. FAKE_CUDA lets it fail as it does any function. */
#ifndef ASSAY_TESTS_VERIFY_FAKE_CUDA_CUDA_H
#define ASSAY_TESTS_VERIFY_FAKE_CUDA_CUDA_H

#include <cstdint>
#include <cstring>
#include <cuda_runtime.h>
#include <string>

using cuuint32_t = std::uint32_t;
using cuuint64_t = std::uint64_t;

enum CUresult {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_UNKNOWN = 999 /* as in the driver's, so that all between are values */
};
enum CUtensorMapDataType {
    CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT32 = 7,
    CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9,
};
enum CUtensorMapInterleave { CU_TENSOR_MAP_INTERLEAVE_NONE = 0 };
enum CUtensorMapSwizzle {
    CU_TENSOR_MAP_SWIZZLE_NONE = 0,
    CU_TENSOR_MAP_SWIZZLE_32B = 1,
    CU_TENSOR_MAP_SWIZZLE_64B = 2,
    CU_TENSOR_MAP_SWIZZLE_128B = 3,
};
enum CUtensorMapL2promotion { CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3 };
enum CUtensorMapFloatOOBfill { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0 };

struct alignas(128) CUtensorMap {
    cuuint64_t opaque[16];
};

enum : cuuint64_t { FAKE_MAP_MARK = 0xA55A };

inline cuuint64_t fake_element_bytes(CUtensorMapDataType type)
{
    switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8: return 1;
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: return 2;
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32: return 4;
    }
    return 0;
}

/* By the documentation of cuTensorMapEncodeTiled, of two dimensions; and rows must not
 * overlap. */
inline bool fake_map_is_legal(const void *address, cuuint64_t element,
                              const cuuint64_t *extents, cuuint64_t row_bytes,
                              const cuuint32_t *box, const cuuint32_t *steps,
                              CUtensorMapSwizzle swizzle)
{
    const cuuint64_t span = cuuint64_t(16) << int(swizzle);
    bool is_legal = element > 0 && reinterpret_cast<std::uintptr_t>(address) % 16 == 0 &&
                    row_bytes % 16 == 0 && row_bytes < cuuint64_t(1) << 40 &&
                    row_bytes >= extents[0] * element && box[0] * element % 16 == 0 &&
                    (swizzle == CU_TENSOR_MAP_SWIZZLE_NONE || box[0] * element <= span);
    for (int i = 0; i < 2; i++)
        is_legal = is_legal && extents[i] >= 1 && extents[i] <= cuuint64_t(1) << 32 &&
                   box[i] >= 1 && box[i] <= 256 && steps[i] >= 1 && steps[i] <= 8;
    return is_legal;
}

inline CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type,
                                       cuuint32_t rank, void *address,
                                       const cuuint64_t *extents,
                                       const cuuint64_t *strides, const cuuint32_t *box,
                                       const cuuint32_t *steps, CUtensorMapInterleave,
                                       CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                       CUtensorMapFloatOOBfill)
{
    const int fault = int(fake_fault("cuTensorMapEncodeTiled"));
    if (fault) return CUresult(fault);
    if (rank != 2 || reinterpret_cast<std::uintptr_t>(map) % 64 ||
        !fake_map_is_legal(address, fake_element_bytes(type), extents, strides[0], box,
                           steps, swizzle))
        return CUDA_ERROR_INVALID_VALUE;
    const cuuint64_t given[16] = { FAKE_MAP_MARK,
                                   reinterpret_cast<std::uintptr_t>(address),
                                   cuuint64_t(type),
                                   extents[1],
                                   extents[0],
                                   strides[0],
                                   box[1],
                                   box[0],
                                   cuuint64_t(swizzle) };
    std::memcpy(map->opaque, given, sizeof(given));
    return CUDA_SUCCESS;
}

/* What a map describes: "place type rows columns row_bytes box_rows box_columns swizzle";
 * empty for one that was never made. */
inline std::string fake_map_text(const CUtensorMap &map)
{
    if (map.opaque[0] != FAKE_MAP_MARK) return "";
    std::string text = fake_place(reinterpret_cast<const void *>(map.opaque[1]));
    for (int i = 2; i < 9; i++)
        text += " " + std::to_string(map.opaque[i]);
    return text;
}

/* The runtime's way to a function of the driver. */

enum cudaDriverEntryPointQueryResult {
    cudaDriverEntryPointSuccess = 0,
    cudaDriverEntryPointSymbolNotFound = 1,
};
enum { cudaEnableDefault = 0 };

inline cudaError_t
cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned,
                                 unsigned long long,
                                 cudaDriverEntryPointQueryResult *result)
{
    const bool is_known = std::strcmp(symbol, "cuTensorMapEncodeTiled") == 0 &&
                          fake_fault("cuTensorMapEncodeTiled-lookup") == cudaSuccess;
    *function = is_known ? reinterpret_cast<void *>(&cuTensorMapEncodeTiled) : nullptr;
    *result = is_known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return fake_begin("cudaGetDriverEntryPointByVersion");
}

#endif
