/* SPDX-License-Identifier: MIT */
/* mbarrier objects in shared memory (PTX ISA, parallel synchronisation: mbarrier) and the
 * barriers of clusters. Addresses are those of shared memory, as 32 bits. */
#ifndef ASSAY_GPU_PTX_MBARRIER_CUH
#define ASSAY_GPU_PTX_MBARRIER_CUH

#include <cstdint>

namespace ptx {

__device__ __forceinline__ uint32_t shared_address(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

__device__ __forceinline__ void mbarrier_init(uint32_t barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

/* Makes initialised barriers visible to the cluster and to the copy engine. */
__device__ __forceinline__ void fence_mbarrier_init()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrives and says how many bytes copies will bring in this phase. */
__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint32_t barrier,
                                                          uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void mbarrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* Arrives at the barrier at the same place of block @rank of the cluster. Ordered within
 * the block alone: a release to the whole cluster is a fence that takes longer than the
 * products of a stage, and only says here that a stage has been read. */
__device__ __forceinline__ void mbarrier_arrive_cluster(uint32_t barrier, uint32_t rank)
{
    asm volatile("{.reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1; "
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];}" ::"r"(barrier),
                 "r"(rank)
                 : "memory");
}

/* Waits until the phase of that parity has ended. */
__device__ __forceinline__ void mbarrier_wait(uint32_t barrier, uint32_t parity)
{
    asm volatile("{.reg .pred done; "
                 "again: "
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; "
                 "@done bra ended; "
                 "bra again; "
                 "ended:}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* Whether it has ended already; does not wait. */
__device__ __forceinline__ bool mbarrier_has_ended(uint32_t barrier, uint32_t parity)
{
    uint32_t has_ended;
    asm volatile("{.reg .pred done; "
                 "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2; "
                 "selp.u32 %0, 1, 0, done;}"
                 : "=r"(has_ended)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return has_ended;
}

/* --- Clusters. */

__device__ __forceinline__ uint32_t cluster_block_rank()
{
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned; "
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

/* --- Parts of a block. */

/* The barrier @index (1 to 15) of @threads threads. */
__device__ __forceinline__ void named_barrier_sync(int index, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(index), "r"(threads) : "memory");
}

} // namespace ptx

#endif
