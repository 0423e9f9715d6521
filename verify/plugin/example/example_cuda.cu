/* SPDX-License-Identifier: MIT */
/* The plugin of ../plugin.md: fp8_gemm_nt with one scale an operand, slowly. */
#include <assay_plugin_cuda.h>
#include <cuda_fp8.h>

__global__ void gemm(const __nv_fp8_e4m3 *a, const __nv_fp8_e4m3 *b, float *d, int n,
                     int k, int a_stride, int b_stride, int d_stride, float scale)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column >= n) return;
    float sum = 0;
    for (int i = 0; i < k; i++)
        sum += float(a[(size_t)row * a_stride + i]) *
               float(b[(size_t)column * b_stride + i]);
    d[(size_t)row * d_stride + column] = scale * sum;
}

static cudaError_t launch(assay_cuda::run &run)
{
    const assay_plugin_tensor *const a = run.tensor("a"), *const b = run.tensor("b");
    const assay_plugin_tensor *const d = run.tensor("d");
    const int m = (int)d->shape[0], n = (int)d->shape[1], k = (int)a->shape[1];
    const float scale = *run.host<float>("sfa") * *run.host<float>("sfb");
    const dim3 grid((n + 127) / 128, m);
    if (m == 0 || n == 0) return cudaSuccess;
    gemm<<<grid, 128, 0, run.stream>>>(run.device<__nv_fp8_e4m3>("a"),
                                       run.device<__nv_fp8_e4m3>("b"),
                                       run.device<float>("d"), n, k, (int)a->stride[0],
                                       (int)b->stride[0], (int)d->stride[0], scale);
    return cudaGetLastError();
}

static int claim(const assay_call *call, assay_claim *promise)
{
    const assay_plugin_tensor *const a = assay_call_tensor(call, "a");
    const assay_plugin_tensor *const b = assay_call_tensor(call, "b");
    const assay_plugin_tensor *const d = assay_call_tensor(call, "d");
    const assay_plugin_tensor *const sfa = assay_call_tensor(call, "sfa");
    promise->is_deterministic = promise->is_batch_invariant = 1;
    if (strcmp(call->operation, "fp8_gemm_nt") == 0 && !assay_call_tensor(call, "c") &&
        sfa->shape[0] * sfa->shape[1] == 1 && a->format == ASSAY_PLUGIN_E4M3 &&
        b->format == ASSAY_PLUGIN_E4M3 && d->format == ASSAY_PLUGIN_F32)
        return ASSAY_PLUGIN_OK;
    return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                "dense e4m3 with one scale and f32 output only");
}

extern "C" const assay_plugin *assay_plugin_v1(void)
{
    static const assay_plugin plugin = assay_cuda::plugin<launch>("mine", "1", claim);
    return &plugin;
}
