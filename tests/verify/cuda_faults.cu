/* SPDX-License-Identifier: MIT */
/* A plugin made with assay_plugin_cuda.h that is wrong on request: fp8_gemm_nt with one
 * scale an operand, sums in a workspace first. For nvcc; tests without CUDA translate the
 * launches for fake_cuda/. Options:
 *
 *     poke=NAME,at=N   changes the byte N of that tensor or workspace after each launch;
 *                      negative: before its beginning, end+N: behind its end
 *     fail=WHAT        memory, throw, no-memory, blocks, address, unwritten,
 *                      refuse-setup, refuse-launch
 *     rows=M           only in cases of so many rows */
#include <assay_plugin_cuda.h>
#include <cuda_fp8.h>
#include <stdexcept>

__global__ void sum_up(const __nv_fp8_e4m3 *a, const __nv_fp8_e4m3 *b, float *sums, int n,
                       int k, int a_stride, int b_stride)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column >= n) return;
    float sum = 0;
    for (int i = 0; i < k; i++)
        sum += float(a[(size_t)row * a_stride + i]) *
               float(b[(size_t)column * b_stride + i]);
    sums[(size_t)row * n + column] = sum;
}

__global__ void scale_all(const float *sums, float *d, int n, int d_stride,
                          const float *sfa, const float *sfb)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column < n)
        d[(size_t)row * d_stride + column] = *sfa * *sfb * sums[(size_t)row * n + column];
}

__global__ void change(unsigned char *byte)
{
    *byte ^= 1;
}

static bool is_asked(const assay_cuda::run &run, const char *what)
{
    char text[32], rows[32];
    const int64_t m = run.tensor("d")->shape[0];
    if (assay_plugin_setting(run.call->options, ',', "rows", rows, sizeof(rows)) &&
        atoll(rows) != m)
        return false;
    return assay_plugin_setting(run.call->options, ',', "fail", text, sizeof(text)) &&
           strcmp(text, what) == 0;
}

static cudaError_t poke(const assay_cuda::run &run)
{
    char name[32], at[32], rows[32];
    const char *const options = run.call->options;
    const assay_plugin_tensor *const d = run.tensor("d");
    if (!assay_plugin_setting(options, ',', "poke", name, sizeof(name)) ||
        !assay_plugin_setting(options, ',', "at", at, sizeof(at)) ||
        (assay_plugin_setting(options, ',', "rows", rows, sizeof(rows)) &&
         atoll(rows) != d->shape[0]))
        return cudaSuccess;
    const assay_plugin_tensor *const tensor = run.tensor(name);
    const size_t end = tensor ? assay_cuda::tensor_bytes(*tensor)
                              : (size_t)(d->shape[0] * d->shape[1]) * sizeof(float);
    const bool is_behind = strncmp(at, "end+", 4) == 0;
    unsigned char *const first = run.device<unsigned char>(name);
    change<<<1, 1, 0, run.stream>>>(is_behind ? first + end + atoll(at + 4)
                                              : first + atoll(at));
    return cudaGetLastError();
}

static cudaError_t setup(assay_cuda::run &run)
{
    const assay_plugin_tensor *const d = run.tensor("d");
    const size_t bytes = (size_t)(d->shape[0] * d->shape[1]) * sizeof(float);
    if (is_asked(run, "memory")) return run.workspace("sums", size_t(1) << 46);
    if (is_asked(run, "no-memory")) throw std::bad_alloc();
    if (is_asked(run, "refuse-setup"))
        return run.refuse("sums of %zu bytes are too large", bytes);
    return run.workspace("sums", bytes);
}

static cudaError_t launch(assay_cuda::run &run)
{
    const assay_plugin_tensor *const a = run.tensor("a"), *const b = run.tensor("b");
    const assay_plugin_tensor *const d = run.tensor("d");
    const int m = (int)d->shape[0] - is_asked(run, "unwritten"), n = (int)d->shape[1];
    const dim3 grid((n + 127) / 128, m);
    float *const sums = run.device<float>("sums");
    if (is_asked(run, "throw")) throw std::runtime_error("no plan for that shape");
    if (is_asked(run, "refuse-launch")) return run.refuse("no plan for %d columns", n);
    sum_up<<<grid, is_asked(run, "blocks") ? 4096 : 128, 0, run.stream>>>(
        run.device<__nv_fp8_e4m3>("a"), run.device<__nv_fp8_e4m3>("b"), sums, n,
        (int)a->shape[1], (int)a->stride[0], (int)b->stride[0]);
    scale_all<<<grid, 128, 0, run.stream>>>(
        is_asked(run, "address") ? nullptr : sums, run.device<float>("d"), n,
        (int)d->stride[0], run.device<float>("sfa"), run.device<float>("sfb"));
    return poke(run);
}

static int claim(const assay_call *call, assay_claim *promise)
{
    const assay_plugin_tensor *const sfa = assay_call_tensor(call, "sfa");
    promise->is_deterministic = promise->is_batch_invariant = 1;
    if (strcmp(call->operation, "fp8_gemm_nt") == 0 && !assay_call_tensor(call, "c") &&
        sfa->shape[0] * sfa->shape[1] == 1 &&
        assay_call_tensor(call, "a")->format == ASSAY_PLUGIN_E4M3 &&
        assay_call_tensor(call, "b")->format == ASSAY_PLUGIN_E4M3 &&
        assay_call_tensor(call, "d")->format == ASSAY_PLUGIN_F32)
        return ASSAY_PLUGIN_OK;
    return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                "dense e4m3 with one scale and f32 output only");
}

extern "C" const assay_plugin *assay_plugin_v1(void)
{
    static const assay_plugin plugin =
        assay_cuda::plugin<launch, setup>("faults", "1", claim);
    return &plugin;
}
