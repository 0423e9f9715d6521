/* SPDX-License-Identifier: MIT */
/* What the operations on top of the GEMM kernels have in common. */
#ifndef ASSAY_GPU_GEMM_GEMM_OPERATION_H
#define ASSAY_GPU_GEMM_GEMM_OPERATION_H

#include "gpu/gemm/plan.h"
#include "gpu/operation.h"

namespace gemm {

/* What every GEMM here promises: the bits of @numerics in every run, and those of a row
 * whatever the other rows are. */
int promise(const assay_call *call, const problem &of, const char *numerics,
            assay_claim *claim);

/* Whether 1D2D's or 1D1D's operands and output are there; one sentence, if not. */
int check_form(const assay_call *call, scale_form form);

/* The operands of a call as they lie on the device; scales in the workspaces "mn_sfa"
 * and "mn_sfb", where those are. */
operands operands_of(const assay_cuda::run &run);

/* Scales that the kernel reads MN-major into a workspace: "mn_" and their name. */
cudaError_t arrange_scales(assay_cuda::run &run, const char *name, const char *arranged);

/* Builds the plan of a call and keeps it in run.state. */
cudaError_t keep_plan(assay_cuda::run &run, const problem &of, const operands &from,
                      const int64_t *group_k);
cudaError_t launch_kept(assay_cuda::run &run, const operands &now);

/* m_grouped.cu: claim and setup of the masked GEMM, for masked_replay.cu, too. */
int claim_masked(const assay_call *call, assay_claim *promise);
cudaError_t setup_masked(assay_cuda::run &run);

} // namespace gemm

#endif
