/* SPDX-License-Identifier: MIT */
/* libassay_cuda.so: this project's Hopper kernels as a plugin like any other. */
#include "gpu/operation.h"

static const gpu_operation *const operations[] = {
    &gpu_fp8_gemm_nt,   &gpu_m_grouped_contiguous, &gpu_m_grouped_masked,
    &gpu_masked_replay, &gpu_k_grouped_nt,         &gpu_k_grouped_tn,
    &gpu_quantise,      &gpu_scale_layout,         &gpu_cublaslt,
};

static void asked_kernel(const assay_call *call, char *kernel, size_t bytes)
{
    if (!assay_plugin_setting(call->options, ',', "kernel", kernel, bytes))
        std::snprintf(kernel, bytes, "assay");
}

static const gpu_operation *find(const assay_call *call)
{
    char kernel[32];
    asked_kernel(call, kernel, sizeof(kernel));
    for (const gpu_operation *one : operations)
        if (strcmp(one->operation, call->operation) == 0 &&
            strcmp(one->kernel, kernel) == 0)
            return one;
    return nullptr;
}

static int claim(const assay_call *call, assay_claim *promise)
{
    const gpu_operation *const operation = find(call);
    char kernel[32];
    if (operation) return operation->claim(call, promise);
    asked_kernel(call, kernel, sizeof(kernel));
    return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                "kernel=%s does not do %s", kernel, call->operation);
}

static cudaError_t setup(assay_cuda::run &run)
{
    const gpu_operation *const operation = find(run.call);
    return operation->setup ? operation->setup(run) : cudaSuccess;
}

static cudaError_t launch(assay_cuda::run &run)
{
    return find(run.call)->launch(run);
}

extern "C" const assay_plugin *assay_plugin_v1(void)
{
    static const assay_plugin plugin =
        assay_cuda::plugin<launch, setup>("assay-cuda", "0.1.0", claim);
    return &plugin;
}
