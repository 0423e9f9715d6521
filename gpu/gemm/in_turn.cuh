/* SPDX-License-Identifier: MIT */
/* One set of products, of tiles that leave no registers for two: the tensor core works
 * for one warpgroup while the other adds. A warpgroup pays for what stands between its
 * products; whether the next stage is full is asked while they are on their way. */
#ifndef ASSAY_GPU_GEMM_IN_TURN_CUH
#define ASSAY_GPU_GEMM_IN_TURN_CUH

#include "gpu/gemm/consume.cuh"

namespace gemm {

/* The products of all slabs of a stage, each added as it comes back. */
template <class shape>
__device__ __forceinline__ void
sum_up_stage(const work &all, int32_t block, float block_sfb,
             const stage_ring<shape> &ring, const stage_ring<shape> &next,
             bool &is_next_full, float (&sum)[shape::slabs][shape::accumulators])
{
    const bool is_early = fault_is(all.given, FAULT_EARLY_RELEASE);
    slab_scales<shape> scales[shape::slabs];
    float product[shape::accumulators];
#pragma unroll
    for (int slab = 0; slab < shape::slabs; slab++)
        load_scales<shape>(all, ring, first_row<shape>(all.lane, slab), block_sfb,
                           scales[slab]);
#pragma unroll
    for (int slab = 0; slab < shape::slabs; slab++) {
        const bool is_last = slab + 1 == shape::slabs;
        multiply<shape>(all.given, ring, first_row<shape>(all.lane, slab), block,
                        product);
        if (is_last)
            is_next_full = block + 1 < all.at.k_blocks &&
                           ptx::mbarrier_has_ended(next.full(), next.phase);
        if (is_last && is_early) release<shape>(all.given, ring);
        ptx::wgmma_wait_group<0>();
        ptx::keep(product);
        if (is_last && !is_early) release<shape>(all.given, ring);
        add_up<shape>(all, block, scales[slab], product, sum[slab]);
    }
}

/* Sums up all of K. */
template <class shape>
__device__ __forceinline__ void
sum_up_in_turn(const work &all, block_scales<shape> &scales, stage_ring<shape> &ring,
               float (&sum)[shape::slabs][shape::accumulators])
{
    bool is_full = false;
    for (int32_t block = 0; block < all.at.k_blocks; block++) {
        stage_ring<shape> next = ring;
        next.advance();
        if (!is_full) await_stage<shape>(all.given, ring);
        const float block_sfb = scales.take(block, all.at.k_blocks);
        sum_up_stage<shape>(all, block, block_sfb, ring, next, is_full, sum);
        ring = next;
    }
}

} // namespace gemm

#endif
