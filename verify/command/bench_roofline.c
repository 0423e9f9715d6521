/* SPDX-License-Identifier: MIT */
/* What one NVIDIA H200 can do at most. */
#include "verify/command/bench.h"

#include <string.h>

/* TFLOP/s of the dense tensor core formats as NVIDIA states them: FP8 for the GEMMs, bf16
 * for attention, which rounds its keys to that. Memory: what a large copy reaches. */
enum { FP8 = 1979, BF16 = 989, MEMORY_ALONE = 0 };
static const double memory_bytes_per_second = 4.3e12;

static const struct {
    const char *operation;
    int tflop_per_s;
} ceilings[] = {
    { "fp8_gemm_nt", FP8 },
    { "m_grouped_fp8_gemm_nt_contiguous", FP8 },
    { "m_grouped_fp8_gemm_nt_masked", FP8 },
    { "k_grouped_fp8_gemm_nt_contiguous", FP8 },
    { "k_grouped_fp8_gemm_tn_contiguous", FP8 },
    { "mla_dense_decode", BF16 },
    { "mla_sparse_decode", BF16 },
    { "mla_sparse_prefill", BF16 },
    { "quantise", MEMORY_ALONE },
    { "scale_layout", MEMORY_ALONE },
    { "mla_combine", MEMORY_ALONE },
    { "mla_cache_quantise", MEMORY_ALONE },
    { "mla_cache_dequantise", MEMORY_ALONE },
    { NULL, 0 },
};

double assay_roofline_seconds(const struct assay_operation *operation,
                              struct assay_cost cost)
{
    for (int i = 0; ceilings[i].operation; i++) {
        if (strcmp(ceilings[i].operation, operation->name) != 0) continue;
        const double peak = 1e12 * ceilings[i].tflop_per_s;
        const double computing = peak > 0 ? 2 * cost.multiply_adds / peak : 0;
        const double moving = cost.bytes / memory_bytes_per_second;
        return computing > moving ? computing : moving;
    }
    return 0;
}
