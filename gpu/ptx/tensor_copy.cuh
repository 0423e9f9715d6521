/* SPDX-License-Identifier: MIT */
/* The copy engine: boxes of tensors between global and shared memory (PTX ISA,
 * cp.async.bulk.tensor). Elements outside the tensor read as zero and are not written.
 * Coordinates count elements, the innermost dimension first. */
#ifndef ASSAY_GPU_PTX_TENSOR_COPY_CUH
#define ASSAY_GPU_PTX_TENSOR_COPY_CUH

#include <cstdint>
#include <cuda.h>

namespace ptx {

__device__ __forceinline__ void prefetch_tensor_map(const CUtensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* Reads the box at (@x, @y); its bytes count at @barrier. */
__device__ __forceinline__ void tensor_load(uint32_t shared, const CUtensorMap *map,
                                            uint32_t barrier, int32_t x, int32_t y)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile"
        ".mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(shared),
        "l"(map), "r"(barrier), "r"(x), "r"(y)
        : "memory");
}

/* The same into the blocks of the cluster whose bits are set in @blocks: data and count
 * arrive at the same places in each. */
__device__ __forceinline__ void tensor_load_multicast(uint32_t shared,
                                                      const CUtensorMap *map,
                                                      uint32_t barrier, uint16_t blocks,
                                                      int32_t x, int32_t y)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1, {%4, %5}], [%2], %3;" ::"r"(shared),
                 "l"(map), "r"(barrier), "h"(blocks), "r"(x), "r"(y)
                 : "memory");
}

/* Writes the box at (@x, @y) from shared memory. */
__device__ __forceinline__ void tensor_store(const CUtensorMap *map, uint32_t shared,
                                             int32_t x, int32_t y)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
                 " [%0, {%2, %3}], [%1];" ::"l"(map),
                 "r"(shared), "r"(x), "r"(y)
                 : "memory");
}

__device__ __forceinline__ void tensor_store_commit()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Waits until the stores of this thread have read shared memory. */
__device__ __forceinline__ void tensor_store_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/* Makes ordinary writes to shared memory visible to the copy engine. */
__device__ __forceinline__ void fence_proxy_async_shared()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

} // namespace ptx

#endif
