/* SPDX-License-Identifier: MIT */
/* The GEMM kernel: persistent, one block a multiprocessor. One warpgroup fetches, the
 * others multiply; they meet at the barriers of the ring of stages alone. */
#ifndef ASSAY_GPU_GEMM_KERNEL_CUH
#define ASSAY_GPU_GEMM_KERNEL_CUH

#include "gpu/gemm/epilogue.cuh"
#include "gpu/gemm/in_turn.cuh"
#include "gpu/gemm/overlap.cuh"
#include "gpu/gemm/produce.cuh"

namespace gemm {

template <class shape>
__device__ __forceinline__ void open_barriers(const arguments &given, uint32_t shared)
{
    if (threadIdx.x == 0) {
        stage_ring<shape> ring(shared);
        for (int i = 0; i < shape::stages; i++, ring.advance()) {
            ptx::mbarrier_init(ring.full(), 1);
            ptx::mbarrier_init(ring.empty(),
                               (uint32_t)(shape::math_warps * given.cluster));
        }
        const d_buffer<shape> buffer(shared);
        ptx::mbarrier_init(buffer.full(), 1);
        ptx::mbarrier_init(buffer.empty(), shape::math_groups);
        ptx::fence_mbarrier_init();
    }
    if (given.cluster > 1)
        ptx::cluster_sync();
    else
        __syncthreads();
}

/* The next tile's first scales are on their way while this one is stored. */
template <class shape>
__device__ __forceinline__ void consume(const arguments &given, uint32_t shared)
{
    schedule<shape::block_m, shape::block_n> tiles(given);
    stage_ring<shape> ring(shared);
    d_buffer<shape> buffer(shared);
    block_scales<shape> scales;
    const lane_place lane;
    tile at;
    bool goes_on = tiles.next(at);
    if (goes_on) scales.open(given, at);
    while (goes_on) {
        float sum[shape::slabs][shape::accumulators] = {};
        const tile done = at;
        const work all = { given, done, lane };
        if (!tiles.counts(done, done.m0 + first_row<shape>(lane, 0)))
            pass_by<shape>(all, ring);
        else if constexpr (shape::is_overlapped)
            sum_up_overlapped<shape>(all, scales, ring, sum[0]);
        else
            sum_up_in_turn<shape>(all, scales, ring, sum);
        goes_on = tiles.next(at);
        if (goes_on) scales.open(given, at);
        if (shape::form == SCALE_1D1D || (shape::stores_panels && !given.d_is_f32))
            store_panels<shape>(given, done, lane, buffer, sum);
        else
#pragma unroll
            for (int slab = 0; slab < shape::slabs; slab++)
                store_pairs<shape>(given, done, lane, first_row<shape>(lane, slab),
                                   sum[slab]);
    }
}

template <class shape>
__global__ void __launch_bounds__(shape::threads, 1)
    fp8_gemm(const __grid_constant__ arguments given)
{
    extern __shared__ uint8_t memory[];
    const uint32_t shared = (ptx::shared_address(memory) + 1023) & ~1023u;
    open_barriers<shape>(given, shared);
    if (threadIdx.x >= shape::math_groups * WARPGROUP) {
        if (shape::math_groups > 1) ptx::registers_release<shape::producer_registers>();
        if (threadIdx.x == shape::math_groups * WARPGROUP) produce<shape>(given, shared);
    } else {
        if (shape::math_groups > 1) ptx::registers_take<shape::math_registers>();
        /* Through a shuffle: else the compiler works the address out, which takes long,
         * in front of every product. */
        consume<shape>(given, __shfl_sync(0xFFFFFFFF, shared, 0));
    }
    /* Nobody leaves while the other block may write to it, or arrive at its barriers. */
    if (given.cluster > 1) {
        __syncwarp();
        ptx::cluster_sync();
    }
}

} // namespace gemm

#endif
