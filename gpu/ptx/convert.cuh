/* SPDX-License-Identifier: MIT */
/* Conversions to eight-bit floating point. */
#ifndef ASSAY_GPU_PTX_CONVERT_CUH
#define ASSAY_GPU_PTX_CONVERT_CUH

#include <cstdint>

namespace ptx {

/* Two f32 as e4m3, to nearest even, @low in the low byte; what is too large becomes 448
 * of its sign, infinity too, and any NaN 0x7F (PTX ISA, cvt). */
__device__ __forceinline__ uint32_t e4m3x2(float low, float high)
{
    uint16_t packed;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(packed) : "f"(high), "f"(low));
    return packed;
}

} // namespace ptx

#endif
