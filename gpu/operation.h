/* SPDX-License-Identifier: MIT */
/* What libassay_cuda.so is made of: one row an operation and kernel, one file each. */
#ifndef ASSAY_GPU_OPERATION_H
#define ASSAY_GPU_OPERATION_H

#include <assay_plugin_cuda.h>

struct gpu_operation {
    const char *operation; /* as in `assay list operations` */
    const char *kernel;    /* chosen by the option kernel=; "assay" is the default */
    /* As assay_plugin's. What it lets through, the kernel computes to the last bit of
     * the numerics that it names; everything else gets one sentence. */
    int (*claim)(const assay_call *call, assay_claim *claim);
    /* Once a case: scales into the layout that the kernel reads, descriptors,
     * workspaces. NULL: nothing to do. */
    cudaError_t (*setup)(assay_cuda::run &run);
    /* Enqueues one launch on run.stream; may be captured into a graph. */
    cudaError_t (*launch)(assay_cuda::run &run);
};

/* fp8_gemm_nt.cu */
extern const gpu_operation gpu_fp8_gemm_nt;
/* m_grouped.cu */
extern const gpu_operation gpu_m_grouped_contiguous, gpu_m_grouped_masked;
/* masked_replay.cu: a graph replayed with other masks */
extern const gpu_operation gpu_masked_replay;
/* k_grouped.cu */
extern const gpu_operation gpu_k_grouped_nt, gpu_k_grouped_tn;
/* quantise.cu, scale_layout.cu */
extern const gpu_operation gpu_quantise, gpu_scale_layout;
/* cublaslt.cu: NVIDIA's kernel, for comparison */
extern const gpu_operation gpu_cublaslt;

#endif
