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

/* The first row in its tile of a slab of 64 of this warpgroup's. */
template <class shape>
__device__ __forceinline__ int first_row(const lane_place &lane, int slab)
{
    return (lane.group * shape::slabs + slab) * MMA_ROWS;
}

/* Where the program says so: the compiler would put it between two wgmmas. */
__device__ __forceinline__ float load_constant(const float *address)
{
    float value;
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(value) : "l"(address));
    return value;
}

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
        if (at.k_blocks > 0) next = load_constant(row);
    }
    /* That of @block, of so many. */
    __device__ __forceinline__ float take(int32_t block, int32_t blocks)
    {
        const float own = next;
        if (shape::form == SCALE_1D2D && block + 1 < blocks)
            next = load_constant(row + block + 1);
        return own;
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

/* The descriptors of a stage's a, from row @row on, and b: that of the first stage, which
 * stays the same, and one addition, since wgmma waits for them. */
template <class shape>
__device__ __forceinline__ uint64_t a_descriptor(const stage_ring<shape> &ring, int row)
{
    const uint32_t first = ring.shared + shape::a_offset + row * BLOCK_K;
    return ptx::wgmma_advance(ptx::wgmma_descriptor(first), ring.stage * shape::a_bytes);
}

template <class shape>
__device__ __forceinline__ uint64_t b_descriptor(const stage_ring<shape> &ring)
{
    const uint32_t first = ring.shared + shape::b_offset;
    return ptx::wgmma_advance(ptx::wgmma_descriptor(first), ring.stage * shape::b_bytes);
}

/* The products of 64 rows from @row on and one block of K, on their way. */
template <class shape>
__device__ __forceinline__ void
multiply(const arguments &given, const stage_ring<shape> &ring, int row, int32_t block,
         float (&product)[shape::accumulators])
{
    using mma = ptx::wgmma<shape::block_n, shape::a_type, shape::b_type>;
    const uint64_t a = a_descriptor(ring, row), b = b_descriptor(ring);
    const bool goes_on =
        fault_is(given, FAULT_DROPPED_PROMOTION) && shape::slabs == 1 && block % 2;
    ptx::keep(product);
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < BLOCK_K / MMA_K; k++)
        mma::step(product, ptx::wgmma_advance(a, k * MMA_K),
                  ptx::wgmma_advance(b, k * MMA_K), k > 0 || goes_on);
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

/* A planted fault: two blocks of K in one chain, where a slab keeps its products. */
template <class shape>
__device__ __forceinline__ bool is_promotion_dropped(const arguments &given,
                                                     const tile &at, int32_t block)
{
    return fault_is(given, FAULT_DROPPED_PROMOTION) && shape::slabs == 1 &&
           block % 2 == 0 && block + 1 < at.k_blocks;
}

/* What stays the same through a tile. */
struct work {
    const arguments &given;
    const tile &at;
    const lane_place &lane;
};

/* What the products of a slab are multiplied by: 1D1D has a scale of b for each of a
 * thread's columns, 1D2D one for all. */
template <class shape> struct slab_scales {
    static constexpr int pairs = shape::form == SCALE_1D1D ? shape::accumulators / 4 : 1;
    float row[2]; /* sfa of the thread's two rows; 1D2D: rn(sfa * sfb) */
    float2 sfb[pairs];

    __device__ __forceinline__ float factor(int product) const
    {
        const float own = row[product / 2 % 2];
        if (shape::form == SCALE_1D2D) return own;
        const float2 &pair = sfb[product / 4 % pairs];
        return __fmul_rn(own, product % 2 ? pair.y : pair.x);
    }
};

/* Those of 64 rows from @row on. */
template <class shape>
__device__ __forceinline__ void load_scales(const work &all,
                                            const stage_ring<shape> &ring, int row,
                                            float block_sfb, slab_scales<shape> &out)
{
    const bool is_wrong = fault_is(all.given, FAULT_SCALE_STAGE) && ring.stage > 0;
    const uint32_t sfa =
        ring.sfa() + (row + all.lane.row) * 4 - (is_wrong ? shape::scale_stage_bytes : 0);
    const uint32_t sfb = ring.sfb() + all.lane.column * 4;
    out.row[0] = load_shared(sfa);
    out.row[1] = load_shared(sfa + 8 * 4);
    if constexpr (shape::form == SCALE_1D2D) {
        out.row[0] = __fmul_rn(out.row[0], block_sfb);
        out.row[1] = __fmul_rn(out.row[1], block_sfb);
    } else {
#pragma unroll
        for (int i = 0; i < slab_scales<shape>::pairs; i++)
            out.sfb[i] = load_shared_pair(sfb + i * 8 * 4);
    }
}

template <class shape>
__device__ __forceinline__ void await_stage(const arguments &given,
                                            const stage_ring<shape> &ring)
{
    if (!fault_is(given, FAULT_NO_FULL_WAIT)) ptx::mbarrier_wait(ring.full(), ring.phase);
}

/* Adds products that have come back. */
template <class shape>
__device__ __forceinline__ void
add_up(const work &all, int32_t block, const slab_scales<shape> &scales,
       const float (&product)[shape::accumulators], float (&sum)[shape::accumulators])
{
    if (is_promotion_dropped<shape>(all.given, all.at, block)) return;
#pragma unroll
    for (int i = 0; i < shape::accumulators; i++)
        sum[i] = __fmaf_rn(scales.factor(i), product[i], sum[i]);
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
