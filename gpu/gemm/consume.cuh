/* SPDX-License-Identifier: MIT */
/* The consumers: each warpgroup multiplies its rows of a tile by all its columns, one
 * block of 128 of K after the other, and adds each block's sums with their scales in f32:
 *     final = fma(rn(sfa * sfb), sum, final)
 * The tensor core's accumulator has 13 bits below the leading one: it starts from zero in
 * every block. While one warpgroup does this addition, the other one's products run. */
#ifndef ASSAY_GPU_GEMM_CONSUME_CUH
#define ASSAY_GPU_GEMM_CONSUME_CUH

#include "gpu/gemm/schedule.cuh"
#include "gpu/gemm/shape.cuh"
#include "gpu/ptx/tensor_copy.cuh"

namespace gemm {

/* A thread's place in its warpgroup: it holds rows row and row + 8 of each 64, and
 * columns 8i + column and the next. */
struct lane_place {
    int group, thread, row, column;

    __device__ __forceinline__ lane_place()
        : group(threadIdx.x / WARPGROUP), thread(threadIdx.x % WARPGROUP),
          row(thread / WARP * 16 + thread % WARP / 4), column(thread % 4 * 2)
    {
    }
};

template <class shape> struct sums {
    float of[shape::waves][shape::accumulators];
};

/* 1D2D's scales of b: at most two rows of sfb meet in a tile. They are fetched a block
 * of K ahead. */
template <class shape> struct block_scales {
    const float *row[2];
    float next[2];
    int32_t first_columns; /* that the first row serves */

    __device__ __forceinline__ void open(const arguments &given, const tile &at)
    {
        if (shape::form != SCALE_1D2D) return;
        const int64_t rows = (given.n + 127) / 128, last = rows - 1;
        const int64_t first = min((int64_t)(at.n0 / 128), last);
        const int64_t second = min(first + 1, last), base = at.group * rows;
        row[0] = given.sfb_blocks + (base + first) * given.k_blocks;
        row[1] = given.sfb_blocks + (base + second) * given.k_blocks;
        first_columns = 128 - at.n0 % 128;
        if (fault_is(given, FAULT_SCALE_ROW)) first_columns = shape::block_n;
        if (at.k_blocks > 0) fetch(0);
    }
    __device__ __forceinline__ void fetch(int32_t block)
    {
        next[0] = __ldg(row[0] + block);
        if (shape::has_two_scales) next[1] = __ldg(row[1] + block);
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

__device__ __forceinline__ void promote(float &sum, float sfa, float sfb, float product)
{
    sum = __fmaf_rn(__fmul_rn(sfa, sfb), product, sum);
}

/* The products of 64 rows and one block of K. */
template <class shape>
__device__ __forceinline__ void
multiply(const arguments &given, const stage_ring<shape> &ring, int row, int32_t block,
         float (&product)[shape::accumulators])
{
    using mma = ptx::wgmma<shape::block_n, shape::a_type, shape::b_type>;
    const uint64_t a = ptx::wgmma_descriptor(ring.a() + row * BLOCK_K);
    const uint64_t b = ptx::wgmma_descriptor(ring.b());
    const bool goes_on =
        fault_is(given, FAULT_DROPPED_PROMOTION) && shape::waves == 1 && block % 2;
    ptx::keep(product);
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < BLOCK_K / MMA_K; k++)
        mma::step(product, a + k * (MMA_K >> 4), b + k * (MMA_K >> 4), k > 0 || goes_on);
    ptx::wgmma_commit_group();
    ptx::keep(product);
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

template <class shape>
__device__ __forceinline__ void
add_1d2d(const block_scales<shape> &scales, const float (&current)[2], const float2 &sfa,
         const float (&product)[shape::accumulators], float (&sum)[shape::accumulators])
{
    constexpr int step = shape::scale_columns;
#pragma unroll
    for (int column = 0; column < shape::block_n; column += step) {
        const bool is_second = shape::has_two_scales && column >= scales.first_columns;
        const float sfb = is_second ? current[1] : current[0];
        const float low = __fmul_rn(sfa.x, sfb), high = __fmul_rn(sfa.y, sfb);
#pragma unroll
        for (int i = column / 2; i < (column + step) / 2; i += 4) {
            sum[i] = __fmaf_rn(low, product[i], sum[i]);
            sum[i + 1] = __fmaf_rn(low, product[i + 1], sum[i + 1]);
            sum[i + 2] = __fmaf_rn(high, product[i + 2], sum[i + 2]);
            sum[i + 3] = __fmaf_rn(high, product[i + 3], sum[i + 3]);
        }
    }
}

template <class shape>
__device__ __forceinline__ void add_1d1d(uint32_t sfb_row, const float2 &sfa,
                                         const float (&product)[shape::accumulators],
                                         float (&sum)[shape::accumulators])
{
#pragma unroll
    for (int i = 0; i < shape::accumulators; i += 4) {
        const float2 sfb = load_shared_pair(sfb_row + i * 8);
        promote(sum[i], sfa.x, sfb.x, product[i]);
        promote(sum[i + 1], sfa.x, sfb.y, product[i + 1]);
        promote(sum[i + 2], sfa.y, sfb.x, product[i + 2]);
        promote(sum[i + 3], sfa.y, sfb.y, product[i + 3]);
    }
}

template <class shape>
__device__ __forceinline__ uint32_t place_of_sfa(const arguments &given,
                                                 const stage_ring<shape> &ring)
{
    const bool is_wrong = fault_is(given, FAULT_SCALE_STAGE) && ring.stage > 0;
    return ring.sfa() - (is_wrong ? shape::scale_stage_bytes : 0);
}

/* A planted fault: two blocks of K in one chain, where one set of products is enough. */
template <class shape>
__device__ __forceinline__ bool is_promotion_dropped(const arguments &given,
                                                     const tile &at, int32_t block)
{
    return fault_is(given, FAULT_DROPPED_PROMOTION) && shape::waves == 1 &&
           block % 2 == 0 && block + 1 < at.k_blocks;
}

/* Sums up all of K. @counts: whether the 64 rows of each wave do; if not, their stages
 * only pass. @scales: opened for the tile. */
template <class shape>
__device__ __forceinline__ void
sum_up(const arguments &given, const tile &at, const lane_place &lane, const bool *counts,
       block_scales<shape> &scales, stage_ring<shape> &ring, sums<shape> &sum)
{
    float product[shape::accumulators];
    for (int32_t block = 0; block < at.k_blocks; block++, ring.advance()) {
        const float current[2] = { scales.next[0], scales.next[1] };
        if (shape::form == SCALE_1D2D && block + 1 < at.k_blocks) scales.fetch(block + 1);
        if (!fault_is(given, FAULT_NO_FULL_WAIT))
            ptx::mbarrier_wait(ring.full(), ring.phase);
        const uint32_t sfa_row = place_of_sfa<shape>(given, ring);
#pragma unroll
        for (int wave = 0; wave < shape::waves; wave++) {
            const int row = (wave * shape::math_groups + lane.group) * MMA_ROWS;
            const uint32_t scale = sfa_row + (row + lane.row) * 4;
            const float2 sfa = { load_shared(scale), load_shared(scale + 32) };
            const bool is_last = wave + 1 == shape::waves;
            const bool is_early = fault_is(given, FAULT_EARLY_RELEASE);
            const bool adds =
                counts[wave] && !is_promotion_dropped<shape>(given, at, block);
            if (counts[wave]) multiply<shape>(given, ring, row, block, product);
            if (is_last && is_early) release<shape>(given, ring);
            ptx::wgmma_wait_group<0>();
            ptx::keep(product);
            /* 1D1D's scales of b lie in the stage, too. */
            if (shape::form == SCALE_1D1D && adds)
                add_1d1d<shape>(ring.sfb() + lane.column * 4, sfa, product, sum.of[wave]);
            if (is_last && !is_early) release<shape>(given, ring);
            if (shape::form == SCALE_1D2D && adds)
                add_1d2d<shape>(scales, current, sfa, product, sum.of[wave]);
        }
    }
}

} // namespace gemm

#endif
