/* SPDX-License-Identifier: MIT */
#include "gpu/gemm/fault.cuh"
#include "gpu/gemm/plan.h"
#include "gpu/gemm/tensor_map.h"

#include <vector>

namespace gemm {

static int64_t align(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static bool has_own_rows(kind kind)
{
    return kind == MASKED || kind == K_GROUPED;
}

/* K-major codes, in boxes of 128 of K. */
static matrix operand(const char *name, const void *data, int64_t rows, int64_t k,
                      int64_t stride, int box_rows)
{
    return {
        name, CU_TENSOR_MAP_DATA_TYPE_UINT8, data, rows, k, stride, box_rows, BLOCK_K,
        true
    };
}

static cudaError_t map_operands(assay_cuda::run &run, const problem &of, plan *made)
{
    const choice &chosen = made->chosen;
    const int a_box = chosen.kernel->block_m / chosen.cluster;
    const int64_t a_rows = of.m * (of.kind == MASKED ? of.groups : 1);
    const int64_t read_k = fault_is(made->given, FAULT_NO_TAIL_ZEROS)
                               ? std::min(align(of.k, BLOCK_K), of.a_stride)
                               : of.k;
    cudaError_t error = make_tensor_map(
        run, operand("a", made->from.a, a_rows, read_k, of.a_stride, a_box),
        &made->given.a);
    if (error == cudaSuccess)
        error = make_tensor_map(run,
                                operand("b", made->from.b, of.n * of.groups, of.k,
                                        of.b_stride, chosen.kernel->block_n),
                                &made->given.b);
    return error;
}

/* The maps of all groups, in device memory. */
static cudaError_t map_groups(assay_cuda::run &run, const problem &of,
                              const int64_t *group_k, plan *made)
{
    const choice &chosen = made->chosen;
    const int a_box = chosen.kernel->block_m / chosen.cluster;
    const size_t bytes = (size_t)of.groups * sizeof(group_maps);
    std::vector<group_maps> maps((size_t)of.groups);
    const uint8_t *a = (const uint8_t *)made->from.a, *b = (const uint8_t *)made->from.b;
    cudaError_t error = run.workspace("maps", bytes);
    for (int64_t g = 0; g < of.groups && error == cudaSuccess; g++) {
        const int64_t k = group_k[g];
        if (k == 0) continue;
        error = make_tensor_map(run, operand("a", a, of.m, k, k, a_box), &maps[g].a);
        if (error == cudaSuccess)
            error = make_tensor_map(
                run, operand("b", b, of.n, k, k, chosen.kernel->block_n), &maps[g].b);
        a += of.m * k;
        b += of.n * k;
    }
    made->given.groups_maps = run.device<group_maps>("maps");
    if (error != cudaSuccess) return error;
    return cudaMemcpy(run.device<void>("maps"), maps.data(), bytes,
                      cudaMemcpyHostToDevice);
}

static matrix scales(const char *name, const float *data, int64_t rows, int64_t blocks,
                     int box)
{
    return { name, CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
             data, blocks,
             rows, align(rows, 4) * 4,
             1,    box,
             false };
}

static cudaError_t map_scales(assay_cuda::run &run, const problem &of, plan *made)
{
    const configuration &kernel = *made->chosen.kernel;
    const int64_t blocks = align(of.k, BLOCK_K) / BLOCK_K;
    const int64_t a_groups = of.kind == MASKED ? of.groups : 1;
    cudaError_t error = make_tensor_map(
        run, scales("sfa", made->from.sfa, of.m, blocks * a_groups, kernel.block_m),
        &made->given.sfa);
    if (error == cudaSuccess && of.form == SCALE_1D1D)
        error = make_tensor_map(
            run, scales("sfb", made->from.sfb, of.n, blocks, kernel.block_n),
            &made->given.sfb);
    return error;
}

/* d, or c: boxes of 128 bytes. */
static matrix output(const char *name, const problem &of, const void *data,
                     int64_t stride, int box_rows)
{
    const bool is_f32 = of.form == SCALE_1D1D;
    const int64_t rows = of.m * (has_own_rows(of.kind) ? of.groups : 1);
    return { name,
             is_f32 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
             data,
             rows,
             of.n,
             stride * (is_f32 ? 4 : 2),
             box_rows,
             is_f32 ? 32 : 64,
             true };
}

static cudaError_t map_outputs(assay_cuda::run &run, const problem &of, plan *made)
{
    if (of.form == SCALE_1D2D && of.d_is_f32)
        return (uintptr_t)made->from.d % sizeof(float) == 0
                   ? cudaSuccess
                   : run.refuse("d lies at %p; it must be aligned to 4 bytes",
                                made->from.d);
    const cudaError_t error = make_tensor_map(
        run, output("d", of, made->from.d, of.d_stride, 64), &made->given.d);
    if (error != cudaSuccess || !made->from.c) return error;
    return make_tensor_map(
        run, output("c", of, made->from.c, of.n, made->chosen.kernel->block_m),
        &made->given.c);
}

static void describe(const problem &of, const operands &from, plan *made)
{
    arguments &given = made->given;
    given.sfb_blocks = from.sfb;
    given.layout = from.layout;
    given.d_data = from.d;
    given.d_stride = of.d_stride;
    given.m = (int32_t)of.m;
    given.n = (int32_t)of.n;
    given.k_blocks = (int32_t)(align(of.k, BLOCK_K) / BLOCK_K);
    given.groups = (int32_t)of.groups;
    given.band = made->chosen.band;
    given.cluster = made->chosen.cluster;
    given.d_is_f32 = of.d_is_f32;
    given.has_c = from.c != nullptr;
    given.kind = of.kind;
}

static cudaError_t make_maps(assay_cuda::run &run, const problem &of,
                             const int64_t *group_k, plan *made)
{
    cudaError_t error = map_outputs(run, of, made);
    if (of.k == 0 || error != cudaSuccess) return error; /* no operand is read */
    error = of.kind == K_GROUPED ? map_groups(run, of, group_k, made)
                                 : map_operands(run, of, made);
    return error == cudaSuccess ? map_scales(run, of, made) : error;
}

cudaError_t open_plan(assay_cuda::run &run, const problem &of, const operands &from,
                      const int64_t *group_k, plan *made)
{
    int device = 0;
    *made = {};
    made->from = from;
    made->has_work = of.m > 0 && of.n > 0 && of.groups > 0;
    if (!made->has_work) return cudaSuccess;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&made->multiprocessors,
                                       cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return error;
    if (!choose_asked(run.call, of, made->multiprocessors, &made->chosen))
        return run.refuse("no kernel has the tile and cluster that '%s' asks for",
                          run.call->options);
    describe(of, from, made);
    error = find_fault(run, &made->given.fault);
    if (error == cudaSuccess) error = make_maps(run, of, group_k, made);
    if (error != cudaSuccess) return error;
    const configuration &kernel = *made->chosen.kernel;
    return cudaFuncSetAttribute((const void *)kernel.kernel,
                                cudaFuncAttributeMaxDynamicSharedMemorySize,
                                kernel.shared_bytes);
}

static const char *stale(const operands &before, const operands &now)
{
    return before.a != now.a             ? "a"
           : before.sfa != now.sfa       ? "sfa"
           : before.b != now.b           ? "b"
           : before.sfb != now.sfb       ? "sfb"
           : before.c != now.c           ? "c"
           : before.d != now.d           ? "d"
           : before.layout != now.layout ? "the layout of the groups"
                                         : nullptr;
}

cudaError_t launch_plan(assay_cuda::run &run, const plan &made, const operands &now)
{
    const char *const name = stale(made.from, now);
    if (name)
        return run.refuse("the plan describes %s where it lay before: make a new one",
                          name);
    if (!made.has_work) return cudaSuccess;
    const configuration &kernel = *made.chosen.kernel;
    const int cluster = made.chosen.cluster;
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3((unsigned)(made.multiprocessors / cluster * cluster));
    launch.blockDim = dim3((unsigned)kernel.threads);
    launch.dynamicSmemBytes = (size_t)kernel.shared_bytes;
    launch.stream = run.stream;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = (unsigned)cluster;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    launch.attrs = &attribute;
    launch.numAttrs = 1;
    return cudaLaunchKernelEx(&launch, kernel.kernel, made.given);
}

} // namespace gemm
