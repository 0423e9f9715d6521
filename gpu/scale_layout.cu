/* SPDX-License-Identifier: MIT */
/* The operation scale_layout, and the conversion before a GEMM: claims and launches. */
#include "gpu/operation.h"
#include "gpu/scale_layout.h"
#include "gpu/scale_layout_kernel.cuh"

enum : int64_t { MOST_BLOCKS_X = 0x7FFFFFFF, MOST_BLOCKS_YZ = 65535 };

using conversion = void (*)(gpu_scale_layout_arguments arguments);

namespace {

/* A prepared case. */
struct prepared {
    gpu_scale_layout_arguments arguments;
    conversion kernel;
};

} // namespace

static const char *const layouts[] = { "k_major", "mn_major", "packed_ue8m0" };

/* By from and to, in the order of gpu_scale_layout_form. */
static const conversion conversions[3][3] = {
    { nullptr, gpu_scale_convert<GPU_SCALE_K_MAJOR, GPU_SCALE_MN_MAJOR>,
      gpu_scale_convert<GPU_SCALE_K_MAJOR, GPU_SCALE_PACKED_UE8M0> },
    { gpu_scale_convert<GPU_SCALE_MN_MAJOR, GPU_SCALE_K_MAJOR>, nullptr,
      gpu_scale_convert<GPU_SCALE_MN_MAJOR, GPU_SCALE_PACKED_UE8M0> },
    { gpu_scale_convert<GPU_SCALE_PACKED_UE8M0, GPU_SCALE_K_MAJOR>,
      gpu_scale_convert<GPU_SCALE_PACKED_UE8M0, GPU_SCALE_MN_MAJOR>, nullptr },
};

/* The layout that the case's @key names; -1 for one that is not known here. */
static int layout_of(const assay_call *call, const char *key, int by_default)
{
    char value[32];
    if (!assay_plugin_setting(call->case_line, ' ', key, value, sizeof(value)))
        return by_default;
    for (int i = 0; i < 3; i++)
        if (strcmp(value, layouts[i]) == 0) return i;
    return -1;
}

static conversion conversion_of(const assay_call *call)
{
    const int from = layout_of(call, "from", GPU_SCALE_K_MAJOR);
    const int to = layout_of(call, "to", GPU_SCALE_MN_MAJOR);
    return from < 0 || to < 0 ? nullptr : conversions[from][to];
}

/* One word order is all there is. */
static bool asks_for_other_numerics(const assay_call *call)
{
    char value[32];
    return strstr(call->case_line, " as=") &&
           !(assay_plugin_setting(call->case_line, ' ', "as", value, sizeof(value)) &&
             strcmp(value, "deepgemm") == 0);
}

static int claim(const assay_call *call, assay_claim *claim)
{
    if (asks_for_other_numerics(call))
        return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                    "scale_layout moves scales as=deepgemm, without "
                                    "knobs, and the case asks for something else");
    if (!conversion_of(call))
        return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                    "scale_layout converts between k_major, mn_major and "
                                    "packed_ue8m0, and the case asks for something else");
    claim->numerics = "deepgemm";
    claim->is_deterministic = 1;
    claim->is_batch_invariant = 1;
    return ASSAY_PLUGIN_OK;
}

static gpu_scale_layout_side side_of(const assay_cuda::run &run, const char *name)
{
    const assay_plugin_tensor *const tensor = run.tensor(name);
    const bool has_groups = tensor->rank == 3;
    return { run.device<uint32_t>(name), has_groups ? tensor->stride[0] : 0,
             tensor->stride[has_groups ? 1 : 0] };
}

/* K blocks and rows as the f32 side of the case has them, or both; a packed tensor knows
 * its K blocks in words only. */
static gpu_scale_layout_arguments arguments_of(const assay_cuda::run &run)
{
    const int from = layout_of(run.call, "from", GPU_SCALE_K_MAJOR);
    const int to = layout_of(run.call, "to", GPU_SCALE_MN_MAJOR);
    const char *const unpacked = from == GPU_SCALE_PACKED_UE8M0 ? "out" : "sf";
    const int form = from == GPU_SCALE_PACKED_UE8M0 ? to : from;
    const assay_plugin_tensor *const scales = run.tensor(unpacked);
    const assay_plugin_tensor *const out = run.tensor("out");
    const int outer = scales->rank - 2, inner = scales->rank - 1;
    char gran_mn[8];
    const bool repeats = to == GPU_SCALE_PACKED_UE8M0 &&
                         assay_plugin_setting(run.call->case_line, ' ', "gran_mn",
                                              gran_mn, sizeof(gran_mn)) &&
                         strcmp(gran_mn, "128") == 0;
    const int64_t rows = out->shape[to == GPU_SCALE_K_MAJOR ? outer : inner];
    return { side_of(run, "sf"),
             side_of(run, "out"),
             scales->rank == 3 ? scales->shape[0] : 1,
             scales->shape[form == GPU_SCALE_K_MAJOR ? inner : outer],
             rows,
             rows,
             repeats ? 7 : 0 };
}

static cudaError_t convert(conversion kernel, const gpu_scale_layout_arguments &arguments,
                           cudaStream_t stream)
{
    const int64_t tile = GPU_SCALE_TILE, most = MOST_BLOCKS_YZ;
    const int64_t row_tiles = (arguments.written_rows + tile - 1) / tile;
    const int64_t k_tiles = (arguments.k_blocks + tile - 1) / tile;
    if (row_tiles == 0 || k_tiles == 0 || arguments.groups == 0) return cudaSuccess;
    if (row_tiles > MOST_BLOCKS_X) return cudaErrorInvalidValue;
    const dim3 grid(unsigned(row_tiles), unsigned(std::min(k_tiles, most)),
                    unsigned(std::min(arguments.groups, most)));
    const dim3 block(GPU_SCALE_TILE, GPU_SCALE_TILE_THREADS_Y);
    kernel<<<grid, block, 0, stream>>>(arguments);
    return cudaGetLastError();
}

static cudaError_t setup(assay_cuda::run &run)
{
    run.state = std::make_shared<prepared>(
        prepared{ arguments_of(run), conversion_of(run.call) });
    return cudaSuccess;
}

static cudaError_t launch(assay_cuda::run &run)
{
    const prepared &plan = *static_cast<const prepared *>(run.state.get());
    return convert(plan.kernel, plan.arguments, run.stream);
}

cudaError_t gpu_scale_to_mn_major(const float *from, int64_t groups, int64_t rows,
                                  int64_t k_blocks, float *to, cudaStream_t stream)
{
    const int64_t apart = gpu_aligned_rows(rows);
    /* The kernel does not write to what it reads. */
    uint32_t *const source = reinterpret_cast<uint32_t *>(const_cast<float *>(from));
    const gpu_scale_layout_arguments arguments = { { source, rows * k_blocks, k_blocks },
                                                   { reinterpret_cast<uint32_t *>(to),
                                                     k_blocks * apart, apart },
                                                   groups,
                                                   k_blocks,
                                                   rows,
                                                   apart,
                                                   0 };
    return convert(conversions[GPU_SCALE_K_MAJOR][GPU_SCALE_MN_MAJOR], arguments, stream);
}

const gpu_operation gpu_scale_layout = { "scale_layout", "assay", claim, setup, launch };
