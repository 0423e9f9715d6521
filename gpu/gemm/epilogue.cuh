/* SPDX-License-Identifier: MIT */
/* From a warpgroup's sums to d: through shared memory and the copy engine, but 1D2D's f32
 * and narrow tiles from registers. Rows and columns beyond d are not written, padding
 * between rows neither. */
#ifndef ASSAY_GPU_GEMM_EPILOGUE_CUH
#define ASSAY_GPU_GEMM_EPILOGUE_CUH

#include "gpu/gemm/consume.cuh"
#include "gpu/ptx/warp.cuh"

namespace gemm {

/* 64 rows from @row on, as bf16. */
template <class shape>
__device__ __forceinline__ void write_bf16(const d_buffer<shape> &buffer, int row,
                                           const lane_place &lane,
                                           const float (&sum)[shape::accumulators])
{
    const int in_warp = lane.thread % WARP;
    row += lane.thread / WARP * 16 + in_warp % 16;
#pragma unroll
    for (int i = 0; i < shape::block_n / 8; i += 2) {
        const int chunk = i % 8 + in_warp / 16;
        const uint32_t place =
            buffer.panel(i / 8) + row * PANEL_WIDTH + (chunk ^ row % 8) * 16;
        ptx::stmatrix_x4(place, ptx::bf16x2(sum[4 * i], sum[4 * i + 1]),
                         ptx::bf16x2(sum[4 * i + 2], sum[4 * i + 3]),
                         ptx::bf16x2(sum[4 * i + 4], sum[4 * i + 5]),
                         ptx::bf16x2(sum[4 * i + 6], sum[4 * i + 7]));
    }
}

/* c + sums, in place of c; zeros, where there is none. Without any K, d is c to the
 * bit. */
template <class shape>
__device__ __forceinline__ void
write_onto_c(const arguments &given, const tile &at, const d_buffer<shape> &buffer,
             int row, const lane_place &lane, const float (&sum)[shape::accumulators])
{
    if (given.has_c && at.k_blocks == 0) return;
    row += lane.row;
#pragma unroll
    for (int i = 0; i < shape::accumulators; i += 2) {
        const int column = i / 4 * 8 + lane.column, own_row = row + i / 2 % 2 * 8;
        const int chunk = column % 32 / 4;
        const uint32_t place = buffer.panel(column / 32) + own_row * PANEL_WIDTH +
                               (chunk ^ own_row % 8) * 16 + column % 4 * 4;
        const float2 c = given.has_c ? load_shared_pair(place) : make_float2(0, 0);
        store_shared_pair(place, __fadd_rn(c.x, sum[i]), __fadd_rn(c.y, sum[i + 1]));
    }
}

/* This warpgroup's share of the buffer belongs to it: c has come, or the tile before has
 * left. */
template <class shape>
__device__ __forceinline__ void
take_buffer(const arguments &given, const lane_place &lane, d_buffer<shape> &buffer)
{
    if (given.has_c) {
        ptx::mbarrier_wait(buffer.full(), buffer.phase);
        buffer.phase ^= 1;
        return;
    }
    if (lane.thread == 0 && !fault_is(given, FAULT_NO_STORE_WAIT))
        ptx::tensor_store_wait_read();
    ptx::named_barrier_sync(1 + lane.group, WARPGROUP);
}

template <class shape>
__device__ __forceinline__ void send_buffer(const arguments &given, const tile &at,
                                            const lane_place &lane,
                                            const d_buffer<shape> &buffer)
{
    if (!fault_is(given, FAULT_NO_PROXY_FENCE)) ptx::fence_proxy_async_shared();
    ptx::named_barrier_sync(1 + lane.group, WARPGROUP);
    if (lane.thread != 0) return;
    for (int slab = 0; slab < shape::slabs; slab++) {
        const int row = first_row<shape>(lane, slab);
        for (int panel = 0; panel < shape::panels && at.m0 + row < at.m_end; panel++)
            ptx::tensor_store(&given.d, buffer.panel(panel) + row * PANEL_WIDTH,
                              at.n0 + panel * shape::panel_columns, at.d_row + row);
    }
    ptx::tensor_store_commit();
    if (!given.has_c) return;
    ptx::tensor_store_wait_read();
    ptx::mbarrier_arrive(buffer.empty());
}

template <class shape>
__device__ __forceinline__ void
store_panels(const arguments &given, const tile &at, const lane_place &lane,
             d_buffer<shape> &buffer,
             const float (&sum)[shape::slabs][shape::accumulators])
{
    take_buffer<shape>(given, lane, buffer);
#pragma unroll
    for (int slab = 0; slab < shape::slabs; slab++) {
        const int row = first_row<shape>(lane, slab);
        if constexpr (shape::form == SCALE_1D1D)
            write_onto_c<shape>(given, at, buffer, row, lane, sum[slab]);
        else
            write_bf16<shape>(buffer, row, lane, sum[slab]);
    }
    send_buffer<shape>(given, at, lane, buffer);
}

/* --- From registers. */

__device__ __forceinline__ int64_t offset_in_d(const arguments &given, int64_t row,
                                               int32_t column)
{
    const int64_t offset = row * given.d_stride + column;
    return fault_is(given, FAULT_OFFSET_32_BITS) ? (int32_t)(offset * 4) / 4 : offset;
}

/* Two neighbouring columns of a row. Of f32 one after the other: a store of both wants
 * them in neighbouring registers, and then the operands of every second addition lie in
 * the same bank, which costs some 3 % of a GEMM. */
__device__ __forceinline__ void store_pair(const arguments &given, int64_t row,
                                           int32_t column, float low, float high)
{
    const int64_t place = offset_in_d(given, row, column);
    float *const d = (float *)given.d_data + place;
    if (given.d_is_f32)
        d[0] = low, d[1] = high;
    else
        *(uint32_t *)((uint16_t *)given.d_data + place) = ptx::bf16x2(low, high);
}

template <class shape>
__device__ __forceinline__ void store_pairs(const arguments &given, const tile &at,
                                            const lane_place &lane, int first,
                                            const float (&sum)[shape::accumulators])
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = first + lane.row + half * 8;
        if (at.m0 + row >= at.m_end) continue;
#pragma unroll
        for (int i = 0; i < shape::block_n / 8; i++) {
            const int32_t column = at.n0 + i * 8 + lane.column;
            if (column < given.n)
                store_pair(given, (int64_t)at.d_row + row, column, sum[4 * i + 2 * half],
                           sum[4 * i + 2 * half + 1]);
        }
    }
}

} // namespace gemm

#endif
