/* SPDX-License-Identifier: MIT */
/* fp8_gemm_nt, recipes 1d2d and 1d1d: equal to DeepGEMM's kernels to the bit. */
#include "gpu/gemm/gemm_operation.h"

static bool has_recipe(const assay_call *call, const char *wanted)
{
    char recipe[16];
    if (!assay_plugin_setting(call->case_line, ' ', "recipe", recipe, sizeof(recipe)))
        std::snprintf(recipe, sizeof(recipe), "1d2d");
    return std::strcmp(recipe, wanted) == 0;
}

static gemm::scale_form form_of(const assay_call *call)
{
    return has_recipe(call, "1d1d") ? gemm::SCALE_1D1D : gemm::SCALE_1D2D;
}

static int claim(const assay_call *call, assay_claim *promise)
{
    if (!has_recipe(call, "1d2d") && !has_recipe(call, "1d1d"))
        return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                    "recipes 1d2d and 1d1d only");
    const gemm::scale_form form = form_of(call);
    const int result = gemm::check_form(call, form);
    if (result != ASSAY_PLUGIN_OK) return result;
    return gemm::promise(call, gemm::problem_of(call, gemm::DENSE, form),
                         form == gemm::SCALE_1D1D ? "deepgemm-1d1d" : "deepgemm-1d2d",
                         promise);
}

static cudaError_t setup(assay_cuda::run &run)
{
    const gemm::scale_form form = form_of(run.call);
    const gemm::problem of = gemm::problem_of(run.call, gemm::DENSE, form);
    cudaError_t error = gemm::arrange_scales(run, "sfa", "mn_sfa");
    if (error == cudaSuccess && form == gemm::SCALE_1D1D)
        error = gemm::arrange_scales(run, "sfb", "mn_sfb");
    if (error != cudaSuccess) return error;
    return gemm::keep_plan(run, of, gemm::operands_of(run), nullptr);
}

static cudaError_t launch(assay_cuda::run &run)
{
    return gemm::launch_kept(run, gemm::operands_of(run));
}

extern const gpu_operation gpu_fp8_gemm_nt = { "fp8_gemm_nt", "assay", claim, setup,
                                               launch };
