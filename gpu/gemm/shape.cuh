/* SPDX-License-Identifier: MIT */
/* A block's tile, what lies where in its shared memory, and who does what. */
#ifndef ASSAY_GPU_GEMM_SHAPE_CUH
#define ASSAY_GPU_GEMM_SHAPE_CUH

#include "gpu/gemm/arguments.h"
#include "gpu/ptx/wgmma.cuh"

namespace gemm {

enum : int {
    WARPGROUP = 128, /* threads */
    WARP = 32,
    MMA_ROWS = 64, /* of one wgmma */
    MMA_K = 32,
    PANEL_WIDTH = 128,    /* bytes of d: the box of a tensor map with 128-byte swizzle */
    SHARED_BYTES = 232448 /* that a block of sm_90 can have */
};

template <int block_m_, int block_n_, scale_form form_,
          ptx::operand_type a_type_ = ptx::E4M3, ptx::operand_type b_type_ = ptx::E4M3>
struct shape {
    static constexpr int block_m = block_m_, block_n = block_n_;
    static constexpr scale_form form = form_;
    static constexpr ptx::operand_type a_type = a_type_, b_type = b_type_;

    /* A warpgroup has 64 rows, or twice that; one more, of which a single thread works,
     * fetches. */
    static constexpr int slabs = block_m > 128 ? 2 : 1;
    static constexpr int math_groups = block_m / MMA_ROWS / slabs;
    static constexpr int threads = (math_groups + 1) * WARPGROUP;
    static constexpr int math_warps = math_groups * WARPGROUP / WARP;
    /* Of a thread, once the producer has given some back: 504 of three warpgroups. */
    static constexpr int producer_registers = form == SCALE_1D1D ? 56 : 40;
    static constexpr int math_registers = (504 - producer_registers) / 2;
    static constexpr int accumulators = block_n / 2; /* of a thread and a slab */
    /* Whether there are registers for the products of two blocks of K at a time. */
    static constexpr bool is_overlapped =
        slabs == 1 && block_n <= (form == SCALE_1D1D ? 64 : 128);
    static_assert(form == SCALE_1D1D || 128 % block_n == 0, "sfb has one scale a tile");
    static_assert(block_m == 64 || block_m == 128 || block_m == 256,
                  "no such number of warpgroups");

    /* 1D1D: d, and c before it, in f32; 1D2D: d in bf16, if whole boxes fit. */
    static constexpr int d_element_bytes = form == SCALE_1D1D ? 4 : 2;
    static constexpr int panel_columns = PANEL_WIDTH / d_element_bytes;
    static constexpr int panels = block_n / panel_columns;
    static constexpr int panel_bytes = block_m * PANEL_WIDTH;
    static constexpr bool stores_panels = block_n % panel_columns == 0;
    static_assert(stores_panels || form == SCALE_1D2D, "c needs whole boxes");
    static_assert(block_n <= 256, "no such box");

    static constexpr int a_bytes = block_m * BLOCK_K, b_bytes = block_n * BLOCK_K;
    static constexpr int sfa_bytes = block_m * 4;
    static constexpr int sfb_bytes = form == SCALE_1D1D ? block_n * 4 : 0;
    static constexpr int stage_bytes = a_bytes + b_bytes + sfa_bytes + sfb_bytes;
    static constexpr int d_bytes = stores_panels ? panels * panel_bytes : 0;
    static constexpr int barrier_bytes = 16; /* full and empty: of a stage, and of c */

    static constexpr int scale_stage_bytes = (sfa_bytes + sfb_bytes + 127) / 128 * 128;
    static constexpr int all_stage_bytes =
        a_bytes + b_bytes + scale_stage_bytes + barrier_bytes;
    static constexpr int fitting =
        (SHARED_BYTES - 1024 - d_bytes - barrier_bytes) / all_stage_bytes;
    static constexpr int stages = fitting < 8 ? fitting : 8;
    static_assert(stages >= 3, "too few stages to hide the memory's latency");

    /* Offsets from an address that is a multiple of 1024. */
    static constexpr int a_offset = 0;
    static constexpr int b_offset = a_offset + stages * a_bytes;
    static constexpr int d_offset = (b_offset + stages * b_bytes + 1023) / 1024 * 1024;
    static constexpr int scale_offset = d_offset + d_bytes;
    static constexpr int barrier_offset = scale_offset + stages * scale_stage_bytes;
    static constexpr int c_barrier_offset = barrier_offset + stages * barrier_bytes;
    static constexpr int shared_bytes = 1024 + c_barrier_offset + barrier_bytes;
    static_assert(shared_bytes <= SHARED_BYTES, "more than a block can have");
    /* A box must begin at a multiple of its swizzle's atom. */
    static_assert(a_bytes % 1024 == 0 && b_bytes % 1024 == 0, "misaligned stages");
};

/* The part of shared memory that c comes to and d leaves from, row r of panel p at p *
 * panel_bytes + r * 128; the 16 bytes at i lie at i ^ (r % 8). */
template <class shape> struct d_buffer {
    uint32_t shared;
    uint32_t phase = 0;

    __device__ __forceinline__ explicit d_buffer(uint32_t aligned) : shared(aligned) {}
    __device__ __forceinline__ uint32_t panel(int index) const
    {
        return shared + shape::d_offset + index * shape::panel_bytes;
    }
    __device__ __forceinline__ uint32_t full() const
    {
        return shared + shape::c_barrier_offset;
    }
    __device__ __forceinline__ uint32_t empty() const
    {
        return full() + 8;
    }
};

/* The stages of a block's shared memory, walked through in turn. */
template <class shape> struct stage_ring {
    uint32_t shared; /* the aligned address */
    int stage = 0;
    uint32_t phase = 0;

    __device__ __forceinline__ explicit stage_ring(uint32_t aligned) : shared(aligned) {}
    __device__ __forceinline__ uint32_t a() const
    {
        return shared + shape::a_offset + stage * shape::a_bytes;
    }
    __device__ __forceinline__ uint32_t b() const
    {
        return shared + shape::b_offset + stage * shape::b_bytes;
    }
    __device__ __forceinline__ uint32_t sfa() const
    {
        return shared + shape::scale_offset + stage * shape::scale_stage_bytes;
    }
    __device__ __forceinline__ uint32_t sfb() const
    {
        return sfa() + shape::sfa_bytes;
    }
    __device__ __forceinline__ uint32_t full() const
    {
        return shared + shape::barrier_offset + stage * 8;
    }
    __device__ __forceinline__ uint32_t empty() const
    {
        return full() + shape::stages * 8;
    }
    __device__ __forceinline__ void advance()
    {
        if (++stage == shape::stages) stage = 0, phase ^= 1;
    }
};

} // namespace gemm

#endif
