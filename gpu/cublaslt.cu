/* SPDX-License-Identifier: MIT */
/* kernel=cublaslt: NVIDIA's FP8 matmul, to be verified and timed as ours are.
 *
 * Options:
 *
 *     library=PATH  libcublasLt.so to open, instead of libcublasLt.so.13 or .12 from
 *                   where the loader looks (LD_LIBRARY_PATH)
 *     fast=0|1      with one scale an operand: fast accumulation, one chain over all of K
 *                   (numerics cublaslt-fast), or a promotion every 128 of K
 *                   (cublaslt-promoted). Left out, it is 1 in cases with
 *                   as=cublaslt-fast, else 0
 *     split_k=0|1   1: the heuristic may choose an algorithm that splits K, as it does
 *                   for most callers. How that one adds up the parts is not known, so
 *                   that no numerics are claimed (0)
 *
 * Block scales are cuBLASLt's modes VEC128_32F for a and BLK128x128_32F for b, numerics
 * cublaslt-block; or, with recipe=1d1d, VEC128_32F for both, which multiplies by one
 * scale after the other, as `assay identify` found on an H200. */
#include "gpu/cublaslt_plan.h"
#include "gpu/operation.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

/* Of cuBLASLt: the first with scales of blocks. */
enum : size_t { block_scale_version = 120900 };

/* --- What is claimed. */

static int read_switch(const assay_call *call, const char *key, int *value)
{
    char text[32];
    if (!assay_plugin_setting(call->options, ',', key, text, sizeof(text)))
        return ASSAY_PLUGIN_OK;
    *value = text[0] - '0';
    if ((*value == 0 || *value == 1) && !text[1]) return ASSAY_PLUGIN_OK;
    return assay_cuda::complain(call, ASSAY_PLUGIN_FAILED,
                                "option %s=%s is neither 0 nor 1", key, text);
}

static int read_settings(const assay_call *call, cublaslt_settings *asked)
{
    char numerics[128];
    assay_plugin_setting(call->case_line, ' ', "as", numerics, sizeof(numerics));
    *asked = { strncmp(numerics, "cublaslt-fast", 13) == 0, 0 };
    const int result = read_switch(call, "fast", &asked->is_fast);
    return result != ASSAY_PLUGIN_OK ? result
                                     : read_switch(call, "split_k", &asked->may_split_k);
}

static bool is_one(const assay_plugin_tensor &scales)
{
    return scales.shape[0] == 1 && scales.shape[1] == 1;
}

/* Shapes tell the recipes apart: where 1d2d has a single scale on either side, so that
 * it looks like recipe=tensor, both mean the same. */
static cublaslt_problem problem_of(const assay_call *call, const cublaslt_settings &asked)
{
    const assay_plugin_tensor *const a = assay_call_tensor(call, "a");
    const assay_plugin_tensor *const b = assay_call_tensor(call, "b");
    const assay_plugin_tensor &sfb = *assay_call_tensor(call, "sfb");
    const bool is_tensor = is_one(*assay_call_tensor(call, "sfa")) && is_one(sfb);
    return { is_tensor                     ? cublaslt_scales::one
             : sfb.shape[0] == b->shape[0] ? cublaslt_scales::rows_by_rows
                                           : cublaslt_scales::rows_by_blocks,
             asked,
             (uint64_t)a->shape[0],
             (uint64_t)b->shape[0],
             (uint64_t)a->shape[1],
             a,
             b,
             assay_call_tensor(call, "d") };
}

static int check_formats(const assay_call *call, const cublaslt_problem &asked)
{
    const int32_t a = asked.a->format, b = asked.b->format;
    const bool are_eight_bits = (a == ASSAY_PLUGIN_E4M3 || a == ASSAY_PLUGIN_E5M2) &&
                                (b == ASSAY_PLUGIN_E4M3 || b == ASSAY_PLUGIN_E5M2);
    if (assay_call_tensor(call, "c"))
        return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                    "kernel=cublaslt adds no c; leave out c=1");
    if (assay_call_tensor(call, "sfa")->format != ASSAY_PLUGIN_F32 || !are_eight_bits)
        return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                    "kernel=cublaslt does e4m3 and e5m2 with f32 scales, "
                                    "not recipe=mx");
    if (a == ASSAY_PLUGIN_E5M2 && b == ASSAY_PLUGIN_E5M2)
        return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                    "cuBLASLt does not multiply e5m2 by e5m2; one of a "
                                    "and b must be e4m3");
    if (asked.has_blocks() && asked.options.is_fast)
        return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                    "fast accumulation is asked for, and goes with "
                                    "recipe=tensor only");
    return ASSAY_PLUGIN_OK;
}

static int check_multiple(const assay_call *call, const char *what, uint64_t value,
                          unsigned factor)
{
    if (value % factor == 0) return ASSAY_PLUGIN_OK;
    return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                "%s is %llu, and cuBLASLt wants a multiple of %u here",
                                what, (unsigned long long)value, factor);
}

/* What NVIDIA documents for FP8: whatever lies along memory takes multiples of 16 bytes;
 * block scales want m and n to be multiples of 4, too. */
static int check_sizes(const assay_call *call, const cublaslt_problem &asked)
{
    const unsigned d_factor = 16 / (unsigned)assay_cuda::element_bytes(*asked.d);
    int result = ASSAY_PLUGIN_OK;
    if (asked.m == 0 || asked.n == 0 || asked.k == 0)
        return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                    "cuBLASLt takes no empty matrices; m, n and k must "
                                    "be positive");
    const struct {
        const char *name;
        uint64_t value;
        unsigned factor;
    } wanted[] = { { "k", asked.k, 16 },
                   { "n", asked.n, d_factor },
                   { "a_stride", (uint64_t)asked.a->stride[0], 16 },
                   { "b_stride", (uint64_t)asked.b->stride[0], 16 },
                   { "d_stride", (uint64_t)asked.d->stride[0], d_factor },
                   { "m", asked.m, asked.has_blocks() ? 4u : 1u } };
    for (const auto &one : wanted)
        if (result == ASSAY_PLUGIN_OK)
            result = check_multiple(call, one.name, one.value, one.factor);
    return result;
}

/* The library of the option library=; NULL when it cannot be opened, as @why says. */
static const cublaslt_library *opened_library(const assay_call *call, std::string *why)
{
    static cublaslt_library library;
    static std::string opened = "none yet", problem;
    char path[4096];
    assay_plugin_setting(call->options, ',', "library", path, sizeof(path));
    if (opened != path) library.open(opened = path, &problem);
    *why = problem;
    return problem.empty() ? &library : nullptr;
}

/* Only the heuristic knows what there are kernels for, and it looks at no data. */
static int ask_library(const assay_call *call, const cublaslt_problem &asked)
{
    alignas(256) static const float no_scale = 1; /* an address like a tensor's */
    std::string why;
    const cublaslt_library *const library = opened_library(call, &why);
    if (!library)
        return assay_cuda::complain(call, ASSAY_PLUGIN_FAILED,
                                    "cuBLASLt cannot be opened: %s; give library=PATH or "
                                    "set LD_LIBRARY_PATH",
                                    why.c_str());
    const size_t version = library->get_version();
    if (asked.has_blocks() && version < block_scale_version)
        return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                    "cuBLASLt %zu is older than %zu, the first with "
                                    "block scales",
                                    version, size_t(block_scale_version));
    cublaslt_plan probe(*library);
    if (probe.open(asked, &no_scale, &no_scale)) return ASSAY_PLUGIN_OK;
    if (probe.is_unsupported())
        return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                    "the heuristic of cuBLASLt %zu has no algorithm for "
                                    "this case",
                                    version);
    return assay_cuda::complain(call, ASSAY_PLUGIN_FAILED, "%s: %s", probe.call,
                                probe.status_name());
}

static const char *numerics_of(const cublaslt_problem &wanted)
{
    switch (wanted.scales) {
    case cublaslt_scales::rows_by_rows: return "cublaslt-block,scale_form=a-then-b";
    case cublaslt_scales::one:
        return wanted.options.is_fast ? "cublaslt-fast" : "cublaslt-promoted";
    default: return "cublaslt-block";
    }
}

static int claim(const assay_call *call, assay_claim *promise)
{
    cublaslt_settings asked;
    int result = read_settings(call, &asked);
    if (result != ASSAY_PLUGIN_OK) return result;
    const cublaslt_problem wanted = problem_of(call, asked);
    result = check_formats(call, wanted);
    if (result == ASSAY_PLUGIN_OK) result = check_sizes(call, wanted);
    if (result == ASSAY_PLUGIN_OK) result = ask_library(call, wanted);
    if (result != ASSAY_PLUGIN_OK || asked.may_split_k) return result;
    promise->is_deterministic = promise->is_batch_invariant = 1;
    promise->numerics = numerics_of(wanted);
    return ASSAY_PLUGIN_OK;
}

/* --- What is done. */

static const char sfa_workspace[] = "sfa for cuBLASLt";
static const char sfb_workspace[] = "sfb for cuBLASLt";
static const char matmul_workspace[] = "of cuBLASLt";

static cudaError_t upload(assay_cuda::run &run, const char *name,
                          const std::vector<float> &scales)
{
    const size_t bytes = scales.size() * sizeof(float);
    const cudaError_t error = run.workspace(name, bytes);
    return error != cudaSuccess ? error
                                : cudaMemcpy(run.device<float>(name), scales.data(),
                                             bytes, cudaMemcpyHostToDevice);
}

/* VEC128_32F: the scales of a block of K lie together, one a row of the operand. */
static cudaError_t upload_rows(assay_cuda::run &run, const char *tensor, const char *name)
{
    const assay_plugin_tensor &scales = *run.tensor(tensor);
    const float *const from = run.host<float>(tensor);
    const int64_t rows = scales.shape[0], k_blocks = scales.shape[1];
    std::vector<float> laid_out((size_t)(rows * k_blocks));
    for (int64_t row = 0; row < rows; row++)
        for (int64_t block = 0; block < k_blocks; block++)
            laid_out[(size_t)(block * rows + row)] =
                from[row * scales.stride[0] + block * scales.stride[1]];
    return upload(run, name, laid_out);
}

/* BLK128x128_32F: the scales of 128 rows lie together, one a block of K, then up to three
 * that nothing is said about: NaN, so that a kernel that minds them is found. */
static cudaError_t upload_blocks(assay_cuda::run &run, const char *tensor,
                                 const char *name)
{
    const assay_plugin_tensor &scales = *run.tensor(tensor);
    const float *const from = run.host<float>(tensor);
    const int64_t row_blocks = scales.shape[0], k_blocks = scales.shape[1];
    const int64_t pitch = (k_blocks + 3) / 4 * 4;
    std::vector<float> laid_out((size_t)(row_blocks * pitch),
                                std::numeric_limits<float>::quiet_NaN());
    for (int64_t row = 0; row < row_blocks; row++)
        for (int64_t block = 0; block < k_blocks; block++)
            laid_out[(size_t)(row * pitch + block)] =
                from[row * scales.stride[0] + block * scales.stride[1]];
    return upload(run, name, laid_out);
}

static cudaError_t upload_scales(assay_cuda::run &run, const cublaslt_problem &asked)
{
    if (!asked.has_blocks()) return cudaSuccess;
    const cudaError_t error = upload_rows(run, "sfa", sfa_workspace);
    if (error != cudaSuccess) return error;
    return asked.scales == cublaslt_scales::rows_by_rows
               ? upload_rows(run, "sfb", sfb_workspace)
               : upload_blocks(run, "sfb", sfb_workspace);
}

static cudaError_t setup(assay_cuda::run &run)
{
    cublaslt_settings asked;
    std::string why;
    const cublaslt_library *const library = opened_library(run.call, &why);
    if (!library || read_settings(run.call, &asked) != ASSAY_PLUGIN_OK)
        return run.refuse("kernel=cublaslt is set up for a case that it did not claim");
    const cublaslt_problem wanted = problem_of(run.call, asked);
    const cudaError_t error = upload_scales(run, wanted);
    if (error != cudaSuccess) return error;
    const std::shared_ptr<cublaslt_plan> ready =
        std::make_shared<cublaslt_plan>(*library);
    run.state = ready;
    const bool is_block = wanted.has_blocks();
    if (!ready->open(wanted, run.device<float>(is_block ? sfa_workspace : "sfa"),
                     run.device<float>(is_block ? sfb_workspace : "sfb")))
        return run.refuse("%s: %s", ready->call, ready->status_name());
    return run.workspace(matmul_workspace, ready->found.workspaceSize);
}

static cudaError_t launch(assay_cuda::run &run)
{
    const cublaslt_plan &ready = *static_cast<const cublaslt_plan *>(run.state.get());
    const float alpha = 1, beta = 0;
    float *const d = run.device<float>("d");
    const cublasStatus_t status = ready.cublaslt.matmul(
        ready.handle, ready.operation, &alpha, run.device<void>("b"), ready.b,
        run.device<void>("a"), ready.a, &beta, d, ready.d, d, ready.d, &ready.found.algo,
        run.device<void>(matmul_workspace), ready.found.workspaceSize, run.stream);
    if (status == CUBLAS_STATUS_SUCCESS) return cudaSuccess;
    return run.refuse("cublasLtMatmul: %s", ready.cublaslt.get_status_name(status));
}

const gpu_operation gpu_cublaslt = { "fp8_gemm_nt", "cublaslt", claim, setup, launch };
