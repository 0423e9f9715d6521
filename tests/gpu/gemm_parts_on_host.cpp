/* SPDX-License-Identifier: MIT */
/* What gpu/plugin.cu and gpu/gemm want from the rest of gpu/, for tests of their host
 * code: operations that do nothing, and passes over memory that only record that they
 * were launched. */
#include "gpu/operation.h"
#include "gpu/scale_layout.h"
#include "gpu/transpose.h"

static int claim(const assay_call *call, assay_claim *)
{
    return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED, "not of this test");
}

extern const gpu_operation gpu_quantise = { "quantise", "assay", claim, nullptr,
                                            nullptr };
extern const gpu_operation gpu_scale_layout = { "scale_layout", "assay", claim, nullptr,
                                                nullptr };
extern const gpu_operation gpu_cublaslt = { "fp8_gemm_nt", "cublaslt", claim, nullptr,
                                            nullptr };

cudaError_t gpu_scale_to_mn_major(const float *from, int64_t groups, int64_t rows,
                                  int64_t k_blocks, float *to, cudaStream_t stream)
{
    fake_do(stream, [=] {
        fake_record("arrange %s %lld %lld %lld %s", fake_place(from).c_str(),
                    (long long)groups, (long long)rows, (long long)k_blocks,
                    fake_place(to).c_str());
    });
    return cudaSuccess;
}

cudaError_t gpu_transpose_groups(const uint8_t *from, const int64_t *first_row,
                                 int64_t groups, int64_t columns, uint8_t *to,
                                 cudaStream_t stream)
{
    const int64_t rows = first_row[groups];
    fake_do(stream, [=] {
        fake_record("transpose %s %lld %lld %s", fake_place(from).c_str(),
                    (long long)rows, (long long)columns, fake_place(to).c_str());
    });
    return cudaSuccess;
}
