/* SPDX-License-Identifier: MIT */
/* Registers of warpgroups, and matrices from registers to shared memory. */
#ifndef ASSAY_GPU_PTX_WARP_CUH
#define ASSAY_GPU_PTX_WARP_CUH

#include <cstdint>

namespace ptx {

/* Every warp of a warpgroup gives registers back, or waits for more of them (PTX ISA,
 * setmaxnreg). */
template <int registers> __device__ __forceinline__ void registers_release()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

template <int registers> __device__ __forceinline__ void registers_take()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

/* Four 8 x 8 matrices of 16-bit elements: lane 8i + r gives the address of row r of
 * matrix i, and holds two elements of each (PTX ISA, stmatrix). */
__device__ __forceinline__ void stmatrix_x4(uint32_t row, uint32_t first, uint32_t second,
                                            uint32_t third, uint32_t fourth)
{
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(
            row),
        "r"(first), "r"(second), "r"(third), "r"(fourth)
        : "memory");
}

/* Two f32 as bf16, to nearest even, @low in the low half; NaN is 0x7FFF. */
__device__ __forceinline__ uint32_t bf16x2(float low, float high)
{
    uint32_t packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

} // namespace ptx

#endif
