/* SPDX-License-Identifier: MIT */
/* A row of the tables of kernels; using it instantiates the kernel. */
#ifndef ASSAY_GPU_GEMM_CONFIGURATION_ROW_CUH
#define ASSAY_GPU_GEMM_CONFIGURATION_ROW_CUH

#include "gpu/gemm/configuration.h"
#include "gpu/gemm/kernel.cuh"

namespace gemm {

template <class shape> constexpr configuration row()
{
    return { shape::block_m,
             shape::block_n,
             shape::threads,
             shape::shared_bytes,
             shape::form,
             shape::a_type == ptx::E5M2,
             shape::b_type == ptx::E5M2,
             fp8_gemm<shape> };
}

} // namespace gemm

#endif
