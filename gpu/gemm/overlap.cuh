/* SPDX-License-Identifier: MIT */
/* Two sets of products: the next block's are on their way while one's are added, and the
 * tensor core does not wait for additions. */
#ifndef ASSAY_GPU_GEMM_OVERLAP_CUH
#define ASSAY_GPU_GEMM_OVERLAP_CUH

#include "gpu/gemm/consume.cuh"

namespace gemm {

/* Products on their way, and what they will be multiplied by. */
template <class shape> struct flight {
    float product[shape::accumulators];
    slab_scales<shape> scales;
};

/* Sends the products of the next stage on their way. */
template <class shape>
__device__ __forceinline__ void start(const work &all, int32_t block,
                                      block_scales<shape> &scales,
                                      stage_ring<shape> &front, flight<shape> &out)
{
    const int row = first_row<shape>(all.lane, 0);
    const float block_sfb = scales.take(block, all.at.k_blocks);
    await_stage<shape>(all.given, front);
    load_scales<shape>(all, front, row, block_sfb, out.scales);
    multiply<shape>(all.given, front, row, block, out.product);
    if (fault_is(all.given, FAULT_EARLY_RELEASE)) release<shape>(all.given, front);
    front.advance();
}

/* Gives the stage of products that have come back, and adds them. */
template <class shape>
__device__ __forceinline__ void finish(const work &all, int32_t block,
                                       stage_ring<shape> &back, flight<shape> &in,
                                       float (&sum)[shape::accumulators])
{
    ptx::keep(in.product);
    if (!fault_is(all.given, FAULT_EARLY_RELEASE)) release<shape>(all.given, back);
    back.advance();
    add_up<shape>(all, block, in.scales, in.product, sum);
}

/* Sums up all of K. */
template <class shape>
__device__ __forceinline__ void
sum_up_overlapped(const work &all, block_scales<shape> &scales, stage_ring<shape> &ring,
                  float (&sum)[shape::accumulators])
{
    flight<shape> even, odd;
    stage_ring<shape> front = ring;
    const int32_t blocks = all.at.k_blocks;
    int32_t block = 0;
    if (blocks == 0) return;
    start<shape>(all, 0, scales, front, even);
    for (; block + 2 < blocks; block += 2) {
        start<shape>(all, block + 1, scales, front, odd);
        ptx::wgmma_wait_group<1>();
        finish<shape>(all, block, ring, even, sum);
        start<shape>(all, block + 2, scales, front, even);
        ptx::wgmma_wait_group<1>();
        finish<shape>(all, block + 1, ring, odd, sum);
    }
    if (block + 1 < blocks) {
        start<shape>(all, block + 1, scales, front, odd);
        ptx::wgmma_wait_group<1>();
        finish<shape>(all, block, ring, even, sum);
        ptx::wgmma_wait_group<0>();
        finish<shape>(all, block + 1, ring, odd, sum);
    } else {
        ptx::wgmma_wait_group<0>();
        finish<shape>(all, block, ring, even, sum);
    }
}

} // namespace gemm

#endif
