/* SPDX-License-Identifier: MIT */
#include "gpu/gemm/gemm_operation.h"
#include "gpu/scale_layout.h"

namespace gemm {

int promise(const assay_call *call, const problem &of, const char *numerics,
            assay_claim *claim)
{
    claim->is_deterministic = claim->is_batch_invariant = 1;
    claim->numerics = numerics;
    const int result = check(call, of);
    choice chosen;
    if (result != ASSAY_PLUGIN_OK || choose_asked(call, of, 1, &chosen)) return result;
    return assay_cuda::complain(
        call, ASSAY_PLUGIN_UNSUPPORTED,
        "no kernel for such operands has the tile and the cluster "
        "that '%s' asks for",
        call->options);
}

int check_form(const assay_call *call, scale_form form)
{
    const bool is_f32 = assay_call_tensor(call, "d")->format == ASSAY_PLUGIN_F32;
    if (form == SCALE_1D1D && !is_f32)
        return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                    "with a scale a row of b, d is f32 alone");
    if (form == SCALE_1D2D && assay_call_tensor(call, "c"))
        return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                    "with a scale a block of b, nothing accumulates "
                                    "onto c");
    return ASSAY_PLUGIN_OK;
}

operands operands_of(const assay_cuda::run &run)
{
    const float *const sfa = run.device<float>("mn_sfa");
    const float *const sfb = run.device<float>("mn_sfb");
    operands all = {};
    all.a = run.device<void>("a");
    all.b = run.device<void>("b");
    all.sfa = sfa ? sfa : run.device<float>("sfa");
    all.sfb = sfb ? sfb : run.device<float>("sfb");
    all.c = run.device<float>("c");
    all.d = run.device<void>("d");
    for (const char *name : { "m_indices", "masked_m", "grouped_layout" })
        if (const int32_t *const layout = run.device<int32_t>(name)) all.layout = layout;
    return all;
}

cudaError_t arrange_scales(assay_cuda::run &run, const char *name, const char *arranged)
{
    const assay_plugin_tensor *const scales = run.tensor(name);
    const int64_t rows = scales->shape[scales->rank - 2];
    const int64_t blocks = scales->shape[scales->rank - 1];
    const int64_t groups = scales->rank == 3 ? scales->shape[0] : 1;
    const int64_t elements = groups * blocks * gpu_aligned_rows(rows);
    const cudaError_t error = run.workspace(arranged, (size_t)elements * sizeof(float));
    if (error != cudaSuccess || elements == 0) return error;
    return gpu_scale_to_mn_major(run.device<float>(name), groups, rows, blocks,
                                 run.device<float>(arranged), run.stream);
}

cudaError_t keep_plan(assay_cuda::run &run, const problem &of, const operands &from,
                      const int64_t *group_k)
{
    const auto made = std::make_shared<plan>();
    const cudaError_t error = open_plan(run, of, from, group_k, made.get());
    run.state = made;
    return error;
}

cudaError_t launch_kept(assay_cuda::run &run, const operands &now)
{
    return launch_plan(run, *std::static_pointer_cast<plan>(run.state), now);
}

} // namespace gemm
