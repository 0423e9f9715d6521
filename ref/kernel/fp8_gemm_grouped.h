/* SPDX-License-Identifier: MIT */
/* Grouped FP8 GEMMs as DeepGEMM's sm_90 kernels compute them: which rows of which group a
 * tile multiplies with what; the arithmetic is that of ref/kernel/fp8_gemm.h. Modelled:
 * equal to recorded m-grouped outputs of an H200; k-grouped is derived, not recorded. */
#ifndef ASSAY_REF_KERNEL_FP8_GEMM_GROUPED_H
#define ASSAY_REF_KERNEL_FP8_GEMM_GROUPED_H

#include "ref/fp8_gemm_grouped_problem.h"
#include "ref/kernel/fp8_gemm.h"

/* Computes part @part of d (a 64 x 64 tile of one group's rows). */
void assay_fp8_gemm_grouped_model(const struct assay_fp8_gemm_grouped_problem *problem,
                                  const struct assay_fp8_gemm_numerics *numerics,
                                  const struct assay_tensors *tensors, int64_t part);

#endif
