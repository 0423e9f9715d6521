/* SPDX-License-Identifier: MIT */
/* The masked GEMM as a server runs it: captured once into a CUDA graph, then replayed
 * with masks that change on the device. kernel=replay launches it with no rows at all,
 * with all rows, with two other masks, and last with the case's own, which is what the
 * case is judged by. A row must have the same bits in each replay that it counts in, and
 * rows beyond a mask's last tile stay as they were; anything else is a failure. */
#include "gpu/gemm/gemm_operation.h"

#include <algorithm>

namespace {

enum : int { MASKS = 5, ALL = 1, ROWS_OF_A_TILE = 128 };

struct replay {
    cudaGraphExec_t graph = nullptr;
    std::vector<int32_t> mask[MASKS];
    std::vector<uint8_t> fresh, d[MASKS];

    ~replay()
    {
        if (graph) cudaGraphExecDestroy(graph);
    }
};

/* run.state keeps the plan; this goes with it. */
struct kept {
    std::shared_ptr<void> plan;
    replay own;
};

} // namespace

static void draw_masks(const assay_cuda::run &run, replay *made)
{
    const assay_plugin_tensor *const d = run.tensor("d");
    const int32_t *const own = run.host<int32_t>("masked_m");
    const int32_t groups = (int32_t)d->shape[0], m = (int32_t)d->shape[1];
    for (int32_t g = 0; g < groups; g++) {
        const int32_t rows[MASKS] = { 0, m, own[groups - 1 - g], (own[g] + 1) / 2,
                                      own[g] };
        for (int i = 0; i < MASKS; i++)
            made->mask[i].push_back(rows[i]);
    }
}

static cudaError_t launch_plan(assay_cuda::run &run, const kept &all)
{
    const std::shared_ptr<void> before = run.state;
    run.state = all.plan;
    const cudaError_t error = gemm::launch_kept(run, gemm::operands_of(run));
    run.state = before;
    return error;
}

/* Captured while the mask is all zeros: nothing of it may be baked into the graph. */
static cudaError_t capture(assay_cuda::run &run, kept *all)
{
    cudaGraph_t captured = nullptr;
    cudaError_t error =
        cudaMemset(run.device<void>("masked_m"), 0, all->own.mask[0].size() * 4);
    if (error == cudaSuccess)
        error = cudaStreamBeginCapture(run.stream, cudaStreamCaptureModeRelaxed);
    if (error != cudaSuccess) return error;
    error = launch_plan(run, *all);
    const cudaError_t ending = cudaStreamEndCapture(run.stream, &captured);
    if (error == cudaSuccess) error = ending;
    if (error == cudaSuccess)
        error = cudaGraphInstantiateWithFlags(&all->own.graph, captured, 0);
    if (captured) cudaGraphDestroy(captured);
    return error;
}

static cudaError_t setup(assay_cuda::run &run)
{
    const auto all = std::make_shared<kept>();
    cudaError_t error = gemm::setup_masked(run);
    if (error != cudaSuccess) return error;
    all->plan = run.state;
    draw_masks(run, &all->own);
    all->own.fresh.resize(assay_cuda::tensor_bytes(*run.tensor("d")));
    if (!all->own.fresh.empty())
        error = cudaMemcpy(all->own.fresh.data(), run.device<void>("d"),
                           all->own.fresh.size(), cudaMemcpyDeviceToHost);
    if (error == cudaSuccess) error = capture(run, all.get());
    run.state = all;
    return error;
}

static cudaError_t replay_once(assay_cuda::run &run, replay *own, int which)
{
    const std::vector<int32_t> &mask = own->mask[which];
    const size_t bytes = own->fresh.size();
    own->d[which].resize(bytes);
    cudaError_t error =
        cudaMemcpyAsync(run.device<void>("masked_m"), mask.data(), mask.size() * 4,
                        cudaMemcpyHostToDevice, run.stream);
    if (error == cudaSuccess && bytes)
        error = cudaMemcpyAsync(run.device<void>("d"), own->fresh.data(), bytes,
                                cudaMemcpyHostToDevice, run.stream);
    if (error == cudaSuccess) error = cudaGraphLaunch(own->graph, run.stream);
    if (error == cudaSuccess && bytes)
        error = cudaMemcpyAsync(own->d[which].data(), run.device<void>("d"), bytes,
                                cudaMemcpyDeviceToHost, run.stream);
    return error == cudaSuccess ? cudaStreamSynchronize(run.stream) : error;
}

/* Against all rows where it counts, against what was there where no tile reaches. */
static cudaError_t compare(assay_cuda::run &run, const replay &own, int which)
{
    const assay_plugin_tensor *const d = run.tensor("d");
    const size_t element = assay_cuda::element_bytes(*d);
    const size_t used = (size_t)d->shape[2] * element,
                 row = (size_t)d->stride[1] * element;
    for (int64_t g = 0; g < d->shape[0]; g++)
        for (int64_t i = 0; i < d->shape[1]; i++) {
            const int32_t rows = own.mask[which][(size_t)g];
            const bool counts = i < rows;
            const int64_t touched =
                (rows + ROWS_OF_A_TILE - 1) / ROWS_OF_A_TILE * ROWS_OF_A_TILE;
            if (!counts && i < touched) continue;
            const size_t place = (size_t)(g * d->shape[1] + i) * row;
            const uint8_t *const wanted =
                (counts ? own.d[ALL] : own.fresh).data() + place;
            if (std::equal(wanted, wanted + used, own.d[which].data() + place)) continue;
            return run.refuse(
                "replay %d of %d: row %lld of group %lld, of which %d count, "
                "%s",
                which + 1, MASKS, (long long)i, (long long)g, rows,
                counts ? "has other bits than with all rows" : "was written");
        }
    return cudaSuccess;
}

static cudaError_t launch(assay_cuda::run &run)
{
    replay &own = static_cast<kept *>(run.state.get())->own;
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < MASKS && error == cudaSuccess; i++)
        error = replay_once(run, &own, i);
    for (int i = 0; i < MASKS && error == cudaSuccess; i++)
        error = compare(run, own, i);
    return error;
}

extern const gpu_operation gpu_masked_replay = { "m_grouped_fp8_gemm_nt_masked", "replay",
                                                 gemm::claim_masked, setup, launch };
