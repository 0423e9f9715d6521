/* SPDX-License-Identifier: MIT */
/* The operation quantise: claims and launches. */
#include "gpu/operation.h"
#include "gpu/quantise_kernel.cuh"

enum : int64_t { MOST_ROWS_OF_BLOCKS = 65535 };

namespace {

/* What a case asks for, beside its tensors. */
struct request {
    int gran;
    bool is_by_block, has_power_of_two_scale;
};

struct numerics {
    const char *name;
    bool is_reciprocal, overflow_is_nan;
};

/* A prepared case. */
struct prepared {
    gpu_quantise_arguments arguments;
    void (*kernel)(gpu_quantise_arguments arguments);
    dim3 grid, block;
};

} // namespace

static const numerics known[] = {
    { "deepgemm", false, false },
    { "deepgemm-reciprocal", true, false },
    { "pytorch-cuda", true, true },
};

static bool is_set(const assay_call *call, const char *key, const char *wanted)
{
    char value[16];
    return assay_plugin_setting(call->case_line, ' ', key, value, sizeof(value)) &&
           strcmp(value, wanted) == 0;
}

static request request_of(const assay_call *call)
{
    return { is_set(call, "gran_k", "32") ? 32 : 128,
             is_set(call, "granularity", "block"), is_set(call, "scale", "ue8m0") };
}

/* NULL if the case asks for what is not there. */
static const numerics *numerics_of(const assay_call *call)
{
    const char *const key = strstr(call->case_line, " as=");
    const char *const asked = key ? key + strlen(" as=") : known[0].name;
    const size_t length = strcspn(asked, " ");
    for (const numerics &one : known)
        if (strlen(one.name) == length && strncmp(one.name, asked, length) == 0)
            return &one;
    return nullptr;
}

static int claim(const assay_call *call, assay_claim *claim)
{
    const numerics *const found = numerics_of(call);
    if (!found)
        return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                    "quantise computes as=deepgemm, deepgemm-reciprocal "
                                    "and pytorch-cuda, without "
                                    "knobs, and the case asks for something else");
    claim->numerics = found->name;
    claim->is_deterministic = 1;
    claim->is_batch_invariant = !request_of(call).is_by_block;
    return ASSAY_PLUGIN_OK;
}

static gpu_quantise_arguments arguments_of(const assay_cuda::run &run)
{
    const assay_plugin_tensor *const x = run.tensor("x"), *const q = run.tensor("q");
    const request asked = request_of(run.call);
    const numerics *const rules = numerics_of(run.call);
    const int64_t chunk = GPU_QUANTISE_CHUNK;
    return {
        run.device<void>("x"),
        run.device<uint8_t>("q"),
        run.device<float>("sf"),
        x->shape[0],
        x->shape[1],
        (x->shape[1] + asked.gran - 1) / asked.gran,
        x->stride[0],
        q->stride[0],
        x->stride[0] * int64_t(assay_cuda::element_bytes(*x)) % int64_t(sizeof(uint4)) ==
            0,
        q->stride[0] % chunk == 0,
        asked.has_power_of_two_scale,
        rules->is_reciprocal,
        rules->overflow_is_nan,
    };
}

static unsigned rows_of_blocks(int64_t count)
{
    return unsigned(std::min(count, int64_t(MOST_ROWS_OF_BLOCKS)));
}

/* Threads beside each other until they cover a row, the others in further rows. */
static void plan_tokens(prepared *plan)
{
    enum : int64_t { LEAST_THREADS = 32 };
    const int64_t chunks =
        (plan->arguments.k + GPU_QUANTISE_CHUNK - 1) / GPU_QUANTISE_CHUNK;
    int64_t width = LEAST_THREADS;
    while (width < chunks && width < GPU_QUANTISE_THREADS)
        width *= 2;
    const int64_t height = GPU_QUANTISE_THREADS / width,
                  rows = height * GPU_QUANTISE_TOKEN_ROWS;
    plan->block = dim3(unsigned(width), unsigned(height));
    plan->grid = dim3(unsigned((chunks + width - 1) / width),
                      rows_of_blocks((plan->arguments.m + rows - 1) / rows));
}

static void plan_blocks(prepared *plan, int gran)
{
    const int64_t in_block = gran == 128 ? 1 : GPU_QUANTISE_THREADS / 32;
    plan->block = dim3(GPU_QUANTISE_THREADS);
    plan->grid = dim3(unsigned((plan->arguments.k_blocks + in_block - 1) / in_block),
                      rows_of_blocks((plan->arguments.m + gran - 1) / gran));
}

template <typename Element> static void plan_for(prepared *plan, const request &asked)
{
    if (asked.is_by_block) {
        plan->kernel = asked.gran == 128 ? gpu_quantise_blocks<Element, 128>
                                         : gpu_quantise_blocks<Element, 32>;
        plan_blocks(plan, asked.gran);
    } else {
        plan->kernel = asked.gran == 128 ? gpu_quantise_tokens<Element, 128>
                                         : gpu_quantise_tokens<Element, 32>;
        plan_tokens(plan);
    }
}

static cudaError_t setup(assay_cuda::run &run)
{
    const auto plan = std::make_shared<prepared>();
    const request asked = request_of(run.call);
    plan->arguments = arguments_of(run);
    if (run.tensor("x")->format == ASSAY_PLUGIN_F32)
        plan_for<uint32_t>(plan.get(), asked);
    else
        plan_for<uint16_t>(plan.get(), asked);
    run.state = plan;
    return cudaSuccess;
}

static cudaError_t launch(assay_cuda::run &run)
{
    const prepared &plan = *static_cast<const prepared *>(run.state.get());
    if (plan.arguments.m == 0 || plan.arguments.k == 0) return cudaSuccess;
    const auto kernel = plan.kernel;
    kernel<<<plan.grid, plan.block, 0, run.stream>>>(plan.arguments);
    return cudaGetLastError();
}

const gpu_operation gpu_quantise = { "quantise", "assay", claim, setup, launch };
