/* SPDX-License-Identifier: MIT */
/* k_grouped_fp8_gemm_nt_contiguous and _tn_: d[g] = c[g] + a_g b_g^T, each group over its
 * own K. Tensor cores read FP8 along K only, so tn's operands are transposed into nt's
 * first. With the option prepass=0 that is done once, before the launches: the time is
 * then that of the GEMM alone. */
#include "gpu/gemm/gemm_operation.h"
#include "gpu/transpose.h"

static std::vector<int64_t> group_k_of(const assay_cuda::run &run)
{
    const int64_t groups = run.tensor("grouped_layout")->shape[0];
    const int32_t *const layout = run.host<int32_t>("grouped_layout");
    return std::vector<int64_t>(layout, layout + groups);
}

static bool is_tn(const assay_call *call)
{
    return assay_call_tensor(call, "a")->rank == 2;
}

static bool is_transposed_once(const assay_call *call)
{
    char value[8];
    return assay_plugin_setting(call->options, ',', "prepass", value, sizeof(value)) &&
           std::strcmp(value, "0") == 0;
}

static cudaError_t transpose(assay_cuda::run &run, const char *name, const char *turned)
{
    const std::vector<int64_t> group_k = group_k_of(run);
    std::vector<int64_t> first_row(1, 0);
    for (const int64_t k : group_k)
        first_row.push_back(first_row.back() + k);
    return gpu_transpose_groups(run.device<uint8_t>(name), first_row.data(),
                                (int64_t)group_k.size(), run.tensor(name)->shape[1],
                                run.device<uint8_t>(turned), run.stream);
}

static cudaError_t transpose_both(assay_cuda::run &run)
{
    const cudaError_t error = transpose(run, "a", "turned_a");
    return error == cudaSuccess ? transpose(run, "b", "turned_b") : error;
}

static cudaError_t open_prepass(assay_cuda::run &run)
{
    const assay_plugin_tensor *const a = run.tensor("a"), *const b = run.tensor("b");
    cudaError_t error = run.workspace("turned_a", (size_t)(a->shape[0] * a->shape[1]));
    if (error == cudaSuccess)
        error = run.workspace("turned_b", (size_t)(b->shape[0] * b->shape[1]));
    return error == cudaSuccess && is_transposed_once(run.call) ? transpose_both(run)
                                                                : error;
}

static gemm::operands operands_of(const assay_cuda::run &run)
{
    gemm::operands all = gemm::operands_of(run);
    if (is_tn(run.call)) {
        all.a = run.device<void>("turned_a");
        all.b = run.device<void>("turned_b");
    }
    return all;
}

/* Sizes come twice: on the host, where descriptors are made, and on the device. */
static cudaError_t check_sizes(assay_cuda::run &run, const gemm::problem &of)
{
    int64_t all = 0;
    const std::vector<int64_t> group_k = group_k_of(run);
    for (size_t g = 0; g < group_k.size(); all += group_k[g++])
        if (group_k[g] < 0 || group_k[g] % gemm::BLOCK_K)
            return run.refuse("group %zu has k=%lld, no multiple of 128", g,
                              (long long)group_k[g]);
    if (of.m == 0 || all == of.k) return cudaSuccess;
    return run.refuse("k is %lld in all groups together, and a holds %lld",
                      (long long)all, (long long)of.k);
}

static int claim(const assay_call *call, assay_claim *promise)
{
    const int result = gemm::check_form(call, gemm::SCALE_1D1D);
    if (result != ASSAY_PLUGIN_OK) return result;
    return gemm::promise(call, gemm::problem_of(call, gemm::K_GROUPED, gemm::SCALE_1D1D),
                         "deepgemm-1d1d", promise);
}

static cudaError_t setup(assay_cuda::run &run)
{
    const gemm::problem of =
        gemm::problem_of(run.call, gemm::K_GROUPED, gemm::SCALE_1D1D);
    cudaError_t error = check_sizes(run, of);
    if (error == cudaSuccess && is_tn(run.call)) error = open_prepass(run);
    if (error != cudaSuccess) return error;
    return gemm::keep_plan(run, of, operands_of(run), group_k_of(run).data());
}

static cudaError_t launch(assay_cuda::run &run)
{
    if (is_tn(run.call) && !is_transposed_once(run.call)) {
        const cudaError_t error = transpose_both(run);
        if (error != cudaSuccess) return error;
    }
    return gemm::launch_kept(run, operands_of(run));
}

extern const gpu_operation gpu_k_grouped_nt = { "k_grouped_fp8_gemm_nt_contiguous",
                                                "assay", claim, setup, launch };
extern const gpu_operation gpu_k_grouped_tn = { "k_grouped_fp8_gemm_tn_contiguous",
                                                "assay", claim, setup, launch };
