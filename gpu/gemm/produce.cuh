/* SPDX-License-Identifier: MIT */
/* The producer: one thread that keeps the copy engine a ring of stages ahead. */
#ifndef ASSAY_GPU_GEMM_PRODUCE_CUH
#define ASSAY_GPU_GEMM_PRODUCE_CUH

#include "gpu/gemm/schedule.cuh"
#include "gpu/gemm/shape.cuh"
#include "gpu/ptx/tensor_copy.cuh"

namespace gemm {

/* The blocks of a cluster each fetch a share of a's rows, for all of them. */
template <class shape>
__device__ __forceinline__ void fetch_a(const arguments &given, const tile &at,
                                        const stage_ring<shape> &ring, uint32_t rank,
                                        int32_t x)
{
    if (given.cluster == 1) {
        ptx::tensor_load(ring.a(), at.a, ring.full(), x, at.a_row);
        return;
    }
    const int32_t share = shape::block_m / 2;
    const uint32_t place = fault_is(given, FAULT_WRONG_PEER) ? 1 - rank : rank;
    ptx::tensor_load_multicast(ring.a() + place * share * BLOCK_K, at.a, ring.full(), 3,
                               x, at.a_row + (int32_t)rank * share);
}

template <class shape>
__device__ __forceinline__ void fetch_block(const arguments &given, const tile &at,
                                            const stage_ring<shape> &ring, uint32_t rank,
                                            int32_t block)
{
    ptx::mbarrier_wait(ring.empty(), ring.phase ^ 1);
    ptx::mbarrier_arrive_expect_tx(ring.full(), shape::stage_bytes);
    fetch_a<shape>(given, at, ring, rank, block * BLOCK_K);
    ptx::tensor_load(ring.b(), at.b, ring.full(), block * BLOCK_K, at.b_row);
    ptx::tensor_load(ring.sfa(), &given.sfa, ring.full(), at.m0, at.sfa_row + block);
    if (shape::form == SCALE_1D1D)
        ptx::tensor_load(ring.sfb(), &given.sfb, ring.full(), at.n0, at.sfa_row + block);
}

/* c, once the tile before has left: no sooner than the ring is full, so that nothing of
 * this tile waits for that. */
template <class shape>
__device__ __forceinline__ void fetch_c(const arguments &given, const tile &at,
                                        d_buffer<shape> &buffer)
{
    ptx::mbarrier_wait(buffer.empty(), buffer.phase ^ 1);
    ptx::mbarrier_arrive_expect_tx(buffer.full(), shape::d_bytes);
    for (int panel = 0; panel < shape::panels; panel++)
        ptx::tensor_load(buffer.panel(panel), &given.c, buffer.full(),
                         at.n0 + panel * shape::panel_columns, at.d_row);
    buffer.phase ^= 1;
}

template <class shape>
__device__ __forceinline__ void produce(const arguments &given, uint32_t shared)
{
    const uint32_t rank = given.cluster > 1 ? ptx::cluster_block_rank() : 0;
    schedule<shape::block_m, shape::block_n> tiles(given);
    stage_ring<shape> ring(shared);
    d_buffer<shape> buffer(shared);
    const bool has_c = shape::form == SCALE_1D1D && given.has_c;
    tile at;
    while (tiles.next(at)) {
        const int32_t turn = min(at.k_blocks, (int32_t)shape::stages);
        for (int32_t block = 0; block < at.k_blocks; block++, ring.advance()) {
            if (has_c && block == turn) fetch_c<shape>(given, at, buffer);
            fetch_block<shape>(given, at, ring, rank, block);
        }
        if (has_c && turn == at.k_blocks) fetch_c<shape>(given, at, buffer);
    }
}

} // namespace gemm

#endif
