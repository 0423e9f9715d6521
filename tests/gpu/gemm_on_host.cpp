/* SPDX-License-Identifier: MIT */
/* gpu/gemm's host code without a GPU: its kernels record what they are given and compute
 * nothing. On top of tests/verify/fake_cuda; the compiler includes it before everything
 * else. The tables of kernels and their shapes are the real ones. */
#ifndef ASSAY_TESTS_GPU_GEMM_ON_HOST
#define ASSAY_TESTS_GPU_GEMM_ON_HOST

#include <cuda.h>
#include <cuda_runtime.h>

#define __forceinline__

/* Instead of gpu/ptx/wgmma.cuh and gpu/gemm/kernel.cuh. */
#define ASSAY_GPU_PTX_WGMMA_CUH
#define ASSAY_GPU_GEMM_KERNEL_CUH

namespace ptx {
enum operand_type { E4M3, E5M2 };
}

#include "gpu/gemm/shape.cuh"

namespace gemm {

inline void record_map(const char *name, int64_t group, const CUtensorMap &map)
{
    const std::string text = fake_map_text(map);
    if (!text.empty())
        fake_record("map %s %lld %s", name, (long long)group, text.c_str());
}

/* The numbers that a kernel reads of the layout; none of an address that is nobody's. */
inline std::string layout_text(const arguments &given)
{
    std::string text = fake_place(given.layout);
    if (given.kind != MASKED && given.kind != K_GROUPED) return text;
    for (int32_t g = 0; fake_allocation(given.layout) && g < given.groups; g++)
        text += (g ? "," : ":") + std::to_string(given.layout[g]);
    return text;
}

inline void record_arguments(const arguments &given)
{
    fake_record("arguments m=%d n=%d k_blocks=%d groups=%d band=%d cluster=%d "
                "d_is_f32=%d has_c=%d kind=%d d_stride=%lld d=%s sfb=%s layout=%s",
                given.m, given.n, given.k_blocks, given.groups, given.band, given.cluster,
                given.d_is_f32, given.has_c, given.kind, (long long)given.d_stride,
                fake_place(given.d_data).c_str(), fake_place(given.sfb_blocks).c_str(),
                layout_text(given).c_str());
    const struct {
        const char *name;
        const CUtensorMap &map;
    } maps[] = { { "a", given.a },     { "b", given.b }, { "sfa", given.sfa },
                 { "sfb", given.sfb }, { "c", given.c }, { "d", given.d } };
    for (const auto &one : maps)
        record_map(one.name, 0, one.map);
    for (int32_t g = 0; given.groups_maps && g < given.groups; g++) {
        record_map("group_a", g, given.groups_maps[g].a);
        record_map("group_b", g, given.groups_maps[g].b);
    }
}

/* Stands for the kernel of that shape. */
template <class shape> void fp8_gemm(const arguments given)
{
    fake_record("kernel %dx%d form=%d types=%d%d threads=%d", shape::block_m,
                shape::block_n, (int)shape::form, (int)shape::a_type, (int)shape::b_type,
                shape::threads);
    record_arguments(given);
}

} // namespace gemm

#endif
