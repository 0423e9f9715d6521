/* SPDX-License-Identifier: MIT */
/* From a problem to a launch: tensor maps, the kernel, its grid. */
#ifndef ASSAY_GPU_GEMM_PLAN_H
#define ASSAY_GPU_GEMM_PLAN_H

#include "gpu/gemm/configuration.h"

namespace gemm {

/* Where the operands lie on the device. */
struct operands {
    const void *a, *b;
    const float *sfa; /* MN-major, rows align(m, 4) apart */
    const float *sfb; /* 1D1D: likewise; 1D2D: as in the case */
    const float *c;   /* NULL: none */
    void *d;
    const int32_t *layout;
};

/* The plan of one case: kept in run.state. */
struct plan {
    arguments given;
    operands from; /* what the tensor maps describe */
    choice chosen;
    int multiprocessors;
    bool has_work;
};

/* Builds a plan; problems get a sentence by run.refuse. K_GROUPED: @group_k on the host,
 * and the maps of the groups go into the workspace "maps". */
cudaError_t open_plan(assay_cuda::run &run, const problem &of, const operands &from,
                      const int64_t *group_k, plan *made);

/* Enqueues the kernel. A plan made for other operands is refused: its tensor maps are
 * stale. */
cudaError_t launch_plan(assay_cuda::run &run, const plan &made, const operands &now);

/* The planted fault that the option fault=NAME asks for; an unknown name is refused. A
 * build without faults leaves @found alone. */
cudaError_t find_fault(assay_cuda::run &run, int32_t *found);

} // namespace gemm

#endif
