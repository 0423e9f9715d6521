/* SPDX-License-Identifier: MIT */
/* Mistakes that kernels of this kind have had, planted on request: a build with
 * GPU_FAULTS takes one by the option fault=NAME, to see which checks notice. In every
 * other build the questions below are constants. gpu/NOTES.md has the outcome. */
#ifndef ASSAY_GPU_GEMM_FAULT_CUH
#define ASSAY_GPU_GEMM_FAULT_CUH

#include "gpu/gemm/arguments.h"

namespace gemm {

enum fault {
    FAULT_NONE,
    FAULT_NO_PROXY_FENCE,    /* the copy engine stores d before it is written */
    FAULT_NO_FULL_WAIT,      /* products of a stage before it has arrived */
    FAULT_EARLY_RELEASE,     /* a stage is given back before its products are done */
    FAULT_NO_STORE_WAIT,     /* the next tile overwrites what is being stored */
    FAULT_OFFSET_32_BITS,    /* of f32 outputs beyond 2 GiB */
    FAULT_SCALE_STAGE,       /* sfa of the stage before */
    FAULT_NO_TAIL_ZEROS,     /* the last block of K reads on into the next row */
    FAULT_WRONG_PEER,        /* a cluster's halves of a are exchanged */
    FAULT_STALE_DESCRIPTOR,  /* a group's a is read through the one before */
    FAULT_DROPPED_PROMOTION, /* two blocks of K in one chain */
};

#ifdef GPU_FAULTS
__host__ __device__ __forceinline__ bool fault_is(const arguments &given, fault which)
{
    return given.fault == which;
}
#else
__host__ __device__ __forceinline__ constexpr bool fault_is(const arguments &, fault)
{
    return false;
}
#endif

} // namespace gemm

#endif
