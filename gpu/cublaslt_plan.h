/* SPDX-License-Identifier: MIT */
/* One FP8 matmul as cuBLASLt wants it described. Row-major d = a b^T is column-major
 * d^T = b a^T: cuBLASLt's A is b, transposed, its B is a. Of its algorithms the first
 * that the heuristic names is taken, for pointers aligned to 256 bytes. */
#ifndef ASSAY_GPU_CUBLASLT_PLAN_H
#define ASSAY_GPU_CUBLASLT_PLAN_H

#include "gpu/cublaslt_library.h"

#include <assay_plugin_cuda.h>

/* What has a scale: each operand; 128 of a row of a, and 128 x 128 of b; 128 of a row of
 * either. */
enum class cublaslt_scales { one, rows_by_blocks, rows_by_rows };

/* What the options say. */
struct cublaslt_settings {
    int is_fast, may_split_k;
};

/* A case as cuBLASLt has to be asked for it. */
struct cublaslt_problem {
    cublaslt_scales scales;
    cublaslt_settings options;
    uint64_t m, n, k;
    const assay_plugin_tensor *a, *b, *d;

    bool has_blocks() const
    {
        return scales != cublaslt_scales::one;
    }
};

/* All that one matmul needs. A call that fails leaves its name and what it returned. */
struct cublaslt_plan {
    const cublaslt_library &cublaslt;
    cublasLtHandle_t handle = nullptr;
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
    cublasLtMatmulPreference_t preference = nullptr;
    cublasLtMatmulHeuristicResult_t found = {};
    const char *call = "";
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;

    explicit cublaslt_plan(const cublaslt_library &library) : cublaslt(library) {}
    cublaslt_plan(const cublaslt_plan &) = delete;
    cublaslt_plan &operator=(const cublaslt_plan &) = delete;
    ~cublaslt_plan();

    bool open(const cublaslt_problem &asked, const float *sfa, const float *sfb);
    bool is_unsupported() const
    {
        return call == heuristic && status == CUBLAS_STATUS_NOT_SUPPORTED;
    }
    const char *status_name() const
    {
        return cublaslt.get_status_name(status);
    }

  private:
    enum : uint64_t { max_workspace_bytes = uint64_t(32) << 20 };
    static constexpr const char *heuristic = "cublasLtMatmulAlgoGetHeuristic";

    bool check(cublasStatus_t result, const char *called)
    {
        status = result;
        call = called;
        return status == CUBLAS_STATUS_SUCCESS;
    }
    template <typename Value>
    bool set(cublasLtMatmulDescAttributes_t attribute, const Value &value)
    {
        return check(cublaslt.operation_set(operation, attribute, &value, sizeof(value)),
                     "cublasLtMatmulDescSetAttribute");
    }
    template <typename Value>
    bool prefer(cublasLtMatmulPreferenceAttributes_t attribute, const Value &value)
    {
        return check(
            cublaslt.preference_set(preference, attribute, &value, sizeof(value)),
            "cublasLtMatmulPreferenceSetAttribute");
    }
    bool open_operation(const cublaslt_problem &asked, const float *sfa,
                        const float *sfb);
    bool open_layout(cublasLtMatrixLayout_t *layout, const assay_plugin_tensor &tensor);
    bool open_preference(const cublaslt_problem &asked);
    bool ask_heuristic();
};

inline cublaslt_plan::~cublaslt_plan()
{
    if (preference) cublaslt.preference_destroy(preference);
    if (d) cublaslt.layout_destroy(d);
    if (b) cublaslt.layout_destroy(b);
    if (a) cublaslt.layout_destroy(a);
    if (operation) cublaslt.operation_destroy(operation);
    if (handle) cublaslt.destroy(handle);
}

inline bool cublaslt_plan::open_operation(const cublaslt_problem &asked, const float *sfa,
                                          const float *sfb)
{
    const cublasOperation_t transposed = CUBLAS_OP_T, as_it_is = CUBLAS_OP_N;
    const int32_t rows = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
    const int32_t blocks = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
    const int8_t is_fast = (int8_t)asked.options.is_fast;
    bool is_right =
        check(cublaslt.operation_create(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
              "cublasLtMatmulDescCreate") &&
        set(CUBLASLT_MATMUL_DESC_TRANSA, transposed) &&
        set(CUBLASLT_MATMUL_DESC_TRANSB, as_it_is) &&
        set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, is_fast) &&
        set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, sfb) &&
        set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, sfa);
    if (is_right && asked.has_blocks())
        is_right = set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE,
                       asked.scales == cublaslt_scales::rows_by_rows ? rows : blocks) &&
                   set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, rows);
    return is_right;
}

inline cudaDataType_t cublaslt_type(const assay_plugin_tensor &tensor)
{
    switch (tensor.format) {
    case ASSAY_PLUGIN_E4M3: return CUDA_R_8F_E4M3;
    case ASSAY_PLUGIN_E5M2: return CUDA_R_8F_E5M2;
    case ASSAY_PLUGIN_BF16: return CUDA_R_16BF;
    default: return CUDA_R_32F;
    }
}

/* Rows of the tensor are columns there. */
inline bool cublaslt_plan::open_layout(cublasLtMatrixLayout_t *layout,
                                       const assay_plugin_tensor &tensor)
{
    return check(cublaslt.layout_create(layout, cublaslt_type(tensor),
                                        (uint64_t)tensor.shape[1],
                                        (uint64_t)tensor.shape[0], tensor.stride[0]),
                 "cublasLtMatrixLayoutCreate");
}

inline bool cublaslt_plan::open_preference(const cublaslt_problem &asked)
{
    const uint64_t bytes = max_workspace_bytes;
    const uint32_t reductions = asked.options.may_split_k
                                    ? CUBLASLT_REDUCTION_SCHEME_MASK
                                    : CUBLASLT_REDUCTION_SCHEME_NONE;
    return check(cublaslt.preference_create(&preference),
                 "cublasLtMatmulPreferenceCreate") &&
           prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes) &&
           prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
}

inline bool cublaslt_plan::ask_heuristic()
{
    int count = 0;
    if (!check(cublaslt.get_heuristic(handle, operation, b, a, d, d, preference, 1,
                                      &found, &count),
               heuristic))
        return false;
    return check(count > 0 ? found.state : CUBLAS_STATUS_NOT_SUPPORTED, heuristic);
}

inline bool cublaslt_plan::open(const cublaslt_problem &asked, const float *sfa,
                                const float *sfb)
{
    return check(cublaslt.create(&handle), "cublasLtCreate") &&
           open_operation(asked, sfa, sfb) && open_layout(&a, *asked.a) &&
           open_layout(&b, *asked.b) && open_layout(&d, *asked.d) &&
           open_preference(asked) && ask_heuristic();
}

#endif
