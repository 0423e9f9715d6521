/* SPDX-License-Identifier: MIT */
/* The consumers: each warpgroup multiplies its rows of a tile by all its columns, one
 * block of 128 of K after the other, and adds each block's products with their scales in
 * f32:
 *     sum = fma(rn(sfa * sfb), product, sum)
 * The tensor core's accumulator has 13 bits below the leading one: it starts from zero in
 * every block. */
#ifndef ASSAY_GPU_GEMM_CONSUME_CUH
#define ASSAY_GPU_GEMM_CONSUME_CUH

#include "gpu/gemm/schedule.cuh"
#include "gpu/gemm/shape.cuh"
#include "gpu/ptx/tensor_copy.cuh"

namespace gemm {

/* A thread's place in its warpgroup: it holds rows row and row + 8 of its 64, and columns
 * 8i + column and the next. */
struct lane_place {
    int group, thread, row, column;

    __device__ __forceinline__ lane_place()
        : group(__shfl_sync(0xFFFFFFFF, (int)threadIdx.x / WARPGROUP, 0)),
          thread(threadIdx.x % WARPGROUP), row(thread / WARP * 16 + thread % WARP / 4),
          column(thread % 4 * 2)
    {
    }
};

/* 1D2D's scales of b: one for a tile and a block of K, fetched a block ahead. */
template <class shape> struct block_scales {
    const float *row;
    float next;

    __device__ __forceinline__ void open(const arguments &given, const tile &at)
    {
        if (shape::form != SCALE_1D2D) return;
        const int64_t rows = (given.n + 127) / 128;
        const int64_t own = min((int64_t)(at.n0 / 128), rows - 1);
        row = given.sfb_blocks + (at.group * rows + own) * given.k_blocks;
        if (at.k_blocks > 0) fetch(0);
    }
    __device__ __forceinline__ void fetch(int32_t block)
    {
        next = __ldg(row + block);
    }
};

__device__ __forceinline__ float load_shared(uint32_t address)
{
    float value;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address));
    return value;
}

__device__ __forceinline__ float2 load_shared_pair(uint32_t address)
{
    float2 value;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(value.x), "=f"(value.y)
                 : "r"(address));
    return value;
}

__device__ __forceinline__ void store_shared_pair(uint32_t address, float low, float high)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(low), "f"(high)
                 : "memory");
}

/* The products of this warpgroup's rows and one block of K, on their way. */
template <class shape>
__device__ __forceinline__ void
multiply(const arguments &given, const stage_ring<shape> &ring, const lane_place &lane,
         int32_t block, float (&product)[shape::accumulators])
{
    using mma = ptx::wgmma<shape::block_n, shape::a_type, shape::b_type>;
    const uint32_t rows = lane.group * MMA_ROWS * BLOCK_K;
    const uint64_t a = ptx::wgmma_descriptor(ring.a() + rows);
    const uint64_t b = ptx::wgmma_descriptor(ring.b());
    const bool goes_on = fault_is(given, FAULT_DROPPED_PROMOTION) && block % 2;
    ptx::keep(product);
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < BLOCK_K / MMA_K; k++)
        mma::step(product, a + k * (MMA_K >> 4), b + k * (MMA_K >> 4), k > 0 || goes_on);
    ptx::wgmma_commit_group();
}

/* Every consumer warp tells all blocks that write into this stage. */
template <class shape>
__device__ __forceinline__ void release(const arguments &given,
                                        const stage_ring<shape> &ring)
{
    __syncwarp();
    if ((int)(threadIdx.x % WARP) < given.cluster)
        ptx::mbarrier_arrive_cluster(ring.empty(), threadIdx.x % WARP);
}

template <int count>
__device__ __forceinline__ void
add_1d2d(const float2 &sfa, float sfb, const float (&product)[count], float (&sum)[count])
{
    const float low = __fmul_rn(sfa.x, sfb), high = __fmul_rn(sfa.y, sfb);
#pragma unroll
    for (int i = 0; i < count; i += 4) {
        sum[i] = __fmaf_rn(low, product[i], sum[i]);
        sum[i + 1] = __fmaf_rn(low, product[i + 1], sum[i + 1]);
        sum[i + 2] = __fmaf_rn(high, product[i + 2], sum[i + 2]);
        sum[i + 3] = __fmaf_rn(high, product[i + 3], sum[i + 3]);
    }
}

template <int count>
__device__ __forceinline__ void
add_1d1d(const float2 &sfa, const float2 (&sfb)[count / 4], const float (&product)[count],
         float (&sum)[count])
{
#pragma unroll
    for (int i = 0; i < count; i += 4) {
        const float2 scale = sfb[i / 4];
        sum[i] = __fmaf_rn(__fmul_rn(sfa.x, scale.x), product[i], sum[i]);
        sum[i + 1] = __fmaf_rn(__fmul_rn(sfa.x, scale.y), product[i + 1], sum[i + 1]);
        sum[i + 2] = __fmaf_rn(__fmul_rn(sfa.y, scale.x), product[i + 2], sum[i + 2]);
        sum[i + 3] = __fmaf_rn(__fmul_rn(sfa.y, scale.y), product[i + 3], sum[i + 3]);
    }
}

/* A planted fault: two blocks of K in one chain. */
__device__ __forceinline__ bool is_promotion_dropped(const arguments &given,
                                                     const tile &at, int32_t block)
{
    return fault_is(given, FAULT_DROPPED_PROMOTION) && block % 2 == 0 &&
           block + 1 < at.k_blocks;
}

/* Products on their way, and what they will be scaled by: 1D1D has a scale of b for each
 * of this thread's columns. */
template <class shape> struct flight {
    float product[shape::accumulators];
    float2 sfa;
    float sfb;
    float2 column_sfb[shape::accumulators / 4];
};

/* What stays the same through a tile. */
struct work {
    const arguments &given;
    const tile &at;
    const lane_place &lane;
};

/* Sends the products of the next stage on their way. */
template <class shape>
__device__ __forceinline__ void start(const work &all, int32_t block,
                                      block_scales<shape> &scales,
                                      stage_ring<shape> &front, flight<shape> &out)
{
    const bool is_wrong = fault_is(all.given, FAULT_SCALE_STAGE) && front.stage > 0;
    const uint32_t row = all.lane.group * MMA_ROWS + all.lane.row;
    const uint32_t sfa =
        front.sfa() + row * 4 - (is_wrong ? shape::scale_stage_bytes : 0);
    out.sfb = scales.next;
    if (shape::form == SCALE_1D2D && block + 1 < all.at.k_blocks) scales.fetch(block + 1);
    if (!fault_is(all.given, FAULT_NO_FULL_WAIT))
        ptx::mbarrier_wait(front.full(), front.phase);
    out.sfa = { load_shared(sfa), load_shared(sfa + 32) };
    if (shape::form == SCALE_1D1D)
#pragma unroll
        for (int i = 0; i < shape::accumulators / 4; i++)
            out.column_sfb[i] =
                load_shared_pair(front.sfb() + (all.lane.column + 8 * i) * 4);
    multiply<shape>(all.given, front, all.lane, block, out.product);
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
    if (is_promotion_dropped(all.given, all.at, block)) return;
    if (shape::form == SCALE_1D1D)
        add_1d1d(in.sfa, in.column_sfb, in.product, sum);
    else
        add_1d2d(in.sfa, in.sfb, in.product, sum);
}

/* Sums up all of K. The products of the next block are on their way while one's are
 * added: the tensor core does not wait for additions. */
template <class shape>
__device__ __forceinline__ void sum_up(const work &all, block_scales<shape> &scales,
                                       stage_ring<shape> &ring,
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

/* The stages of rows that do not count only pass. */
template <class shape>
__device__ __forceinline__ void pass_by(const work &all, stage_ring<shape> &ring)
{
    for (int32_t block = 0; block < all.at.k_blocks; block++, ring.advance()) {
        ptx::mbarrier_wait(ring.full(), ring.phase);
        release<shape>(all.given, ring);
    }
}

} // namespace gemm

#endif
