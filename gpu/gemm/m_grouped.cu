/* SPDX-License-Identifier: MIT */
/* m_grouped_fp8_gemm_nt_contiguous and _masked. The labels of rows, or the numbers of
 * rows that count, are read on the device in each launch: a graph can be replayed with
 * others, which masked_replay.cu does. */
#include "gpu/gemm/gemm_operation.h"

static int claim_kind(const assay_call *call, gemm::kind kind, assay_claim *promise)
{
    const int result = gemm::check_form(call, gemm::SCALE_1D2D);
    if (result != ASSAY_PLUGIN_OK) return result;
    return gemm::promise(call, gemm::problem_of(call, kind, gemm::SCALE_1D2D),
                         "deepgemm-1d2d", promise);
}

static cudaError_t setup_kind(assay_cuda::run &run, gemm::kind kind)
{
    gemm::problem of = gemm::problem_of(run.call, kind, gemm::SCALE_1D2D);
    const cudaError_t error = gemm::arrange_scales(run, "sfa", "mn_sfa");
    if (error != cudaSuccess) return error;
    /* What upstream's callers say as expected_m: it only guides the choice of a tile. */
    if (kind == gemm::MASKED) {
        of.valid_m = 0;
        for (int64_t g = 0; g < of.groups; g++)
            of.valid_m += run.host<int32_t>("masked_m")[g];
    }
    return gemm::keep_plan(run, of, gemm::operands_of(run), nullptr);
}

static int claim_contiguous(const assay_call *call, assay_claim *promise)
{
    return claim_kind(call, gemm::CONTIGUOUS, promise);
}

int gemm::claim_masked(const assay_call *call, assay_claim *promise)
{
    return claim_kind(call, gemm::MASKED, promise);
}

static cudaError_t setup_contiguous(assay_cuda::run &run)
{
    return setup_kind(run, gemm::CONTIGUOUS);
}

cudaError_t gemm::setup_masked(assay_cuda::run &run)
{
    return setup_kind(run, gemm::MASKED);
}

static cudaError_t launch(assay_cuda::run &run)
{
    return gemm::launch_kept(run, gemm::operands_of(run));
}

extern const gpu_operation gpu_m_grouped_contiguous = {
    "m_grouped_fp8_gemm_nt_contiguous", "assay", claim_contiguous, setup_contiguous,
    launch
};
extern const gpu_operation gpu_m_grouped_masked = { "m_grouped_fp8_gemm_nt_masked",
                                                    "assay", gemm::claim_masked,
                                                    gemm::setup_masked, launch };
