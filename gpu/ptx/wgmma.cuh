/* SPDX-License-Identifier: MIT */
/* wgmma: a warpgroup's 64 x N x 32 step on FP8 operands in shared memory (PTX ISA,
 * asynchronous warpgroup level matrix instructions). What it computes, to the bit, is
 * ref/unit/dot_add.h's profile hopper-fp8. */
#ifndef ASSAY_GPU_PTX_WGMMA_CUH
#define ASSAY_GPU_PTX_WGMMA_CUH

#include <cstdint>

namespace ptx {

enum operand_type { E4M3, E5M2 };

/* Orders the accumulators' registers, and what other instructions wrote to shared memory,
 * before the next wgmma. */
__device__ __forceinline__ void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit_group()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most @pending groups of this warp's have not ended. */
template <int pending> __device__ __forceinline__ void wgmma_wait_group()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/* Keeps the compiler from moving reads and writes of accumulators over a fence. */
template <int count> __device__ __forceinline__ void keep(float (&registers)[count])
{
#pragma unroll
    for (int i = 0; i < count; i++)
        asm volatile("" : "+f"(registers[i])::"memory");
}

/* The matrix descriptor of a K-major tile of rows of 128 bytes, as a tensor map with
 * 128-byte swizzle leaves them: 8 rows are an atom of 1024 bytes, its alignment, too. 32
 * bytes along K are 2 more. */
__device__ __forceinline__ uint64_t wgmma_descriptor(uint32_t shared_address)
{
    const uint64_t stride_of_atoms = 1024 >> 4, swizzle_128 = 1;
    return (uint64_t)((shared_address & 0x3FFFF) >> 4) | (uint64_t)1 << 16 |
           stride_of_atoms << 32 | swizzle_128 << 62;
}

/* So many bytes on, a multiple of 16: the address is in the low half, and never gets out
 * of its 14 bits. */
__device__ __forceinline__ uint64_t wgmma_advance(uint64_t descriptor, int bytes)
{
    const uint32_t low = (uint32_t)descriptor + (uint32_t)(bytes >> 4);
    return descriptor >> 32 << 32 | low;
}

/* d = a * b^T + (accumulates ? d : 0). Element 4i + 2h + c of a lane is that of row 16 *
 * warp + lane / 4 + 8 * h and column 8 * i + 2 * (lane % 4) + c. */
template <int n, operand_type a_type, operand_type b_type> struct wgmma;

#define ASSAY_WGMMA_N16(types, a_type, b_type)                                           \
  template <> struct wgmma<16, a_type, b_type> {                                         \
    static __device__ __forceinline__ void step(float (&d)[8], uint64_t a, uint64_t b,   \
                                                int accumulates)                         \
    {                                                                                    \
      asm volatile("{.reg .pred p; setp.ne.b32 p, %10, 0; "                              \
                   "wgmma.mma_async.sync.aligned.m64n16k32.f32." types " {"              \
                   "%0, %1, %2, %3, %4, %5, %6, %7 "                                     \
                   "}, %8, %9, p, 1, 1;}"                                                \
                   : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]),         \
                     "+f"(d[5]), "+f"(d[6]), "+f"(d[7])                                  \
                   : "l"(a), "l"(b), "r"(accumulates));                                  \
    }                                                                                    \
  };

ASSAY_WGMMA_N16("e4m3.e4m3", E4M3, E4M3)
#undef ASSAY_WGMMA_N16

#define ASSAY_WGMMA_N32(types, a_type, b_type)                                           \
  template <> struct wgmma<32, a_type, b_type> {                                         \
    static __device__ __forceinline__ void step(float (&d)[16], uint64_t a, uint64_t b,  \
                                                int accumulates)                         \
    {                                                                                    \
      asm volatile("{.reg .pred p; setp.ne.b32 p, %18, 0; "                              \
                   "wgmma.mma_async.sync.aligned.m64n32k32.f32." types " {"              \
                   "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, "   \
                   "%15 "                                                                \
                   "}, %16, %17, p, 1, 1;}"                                              \
                   : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]),         \
                     "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),         \
                     "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),    \
                     "+f"(d[15])                                                         \
                   : "l"(a), "l"(b), "r"(accumulates));                                  \
    }                                                                                    \
  };

ASSAY_WGMMA_N32("e4m3.e4m3", E4M3, E4M3)
#undef ASSAY_WGMMA_N32

#define ASSAY_WGMMA_N64(types, a_type, b_type)                                           \
  template <> struct wgmma<64, a_type, b_type> {                                         \
    static __device__ __forceinline__ void step(float (&d)[32], uint64_t a, uint64_t b,  \
                                                int accumulates)                         \
    {                                                                                    \
      asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0; "                              \
                   "wgmma.mma_async.sync.aligned.m64n64k32.f32." types " {"              \
                   "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, "   \
                   "%15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, "   \
                   "%28, %29, %30, %31 "                                                 \
                   "}, %32, %33, p, 1, 1;}"                                              \
                   : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]),         \
                     "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),         \
                     "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),    \
                     "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),    \
                     "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),    \
                     "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),    \
                     "+f"(d[30]), "+f"(d[31])                                            \
                   : "l"(a), "l"(b), "r"(accumulates));                                  \
    }                                                                                    \
  };

ASSAY_WGMMA_N64("e4m3.e4m3", E4M3, E4M3)
ASSAY_WGMMA_N64("e4m3.e5m2", E4M3, E5M2)
ASSAY_WGMMA_N64("e5m2.e4m3", E5M2, E4M3)
ASSAY_WGMMA_N64("e5m2.e5m2", E5M2, E5M2)
#undef ASSAY_WGMMA_N64

#define ASSAY_WGMMA_N128(types, a_type, b_type)                                          \
  template <> struct wgmma<128, a_type, b_type> {                                        \
    static __device__ __forceinline__ void step(float (&d)[64], uint64_t a, uint64_t b,  \
                                                int accumulates)                         \
    {                                                                                    \
      asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0; "                              \
                   "wgmma.mma_async.sync.aligned.m64n128k32.f32." types " {"             \
                   "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, "   \
                   "%15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, "   \
                   "%28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, "   \
                   "%41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, "   \
                   "%54, %55, %56, %57, %58, %59, %60, %61, %62, %63 "                   \
                   "}, %64, %65, p, 1, 1;}"                                              \
                   : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]),         \
                     "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),         \
                     "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),    \
                     "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),    \
                     "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),    \
                     "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),    \
                     "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]),    \
                     "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),    \
                     "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]),    \
                     "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]),    \
                     "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]),    \
                     "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),    \
                     "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])                  \
                   : "l"(a), "l"(b), "r"(accumulates));                                  \
    }                                                                                    \
  };

ASSAY_WGMMA_N128("e4m3.e4m3", E4M3, E4M3)
ASSAY_WGMMA_N128("e4m3.e5m2", E4M3, E5M2)
ASSAY_WGMMA_N128("e5m2.e4m3", E5M2, E4M3)
ASSAY_WGMMA_N128("e5m2.e5m2", E5M2, E5M2)
#undef ASSAY_WGMMA_N128

} // namespace ptx

#endif
