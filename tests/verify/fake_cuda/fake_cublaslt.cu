/* SPDX-License-Identifier: MIT */
/* A cuBLASLt that multiplies FP8 matrices on the host, in double, as NVIDIA's manual says
 * what its matmul means (section 3.1.4, "Narrow precision data types usage"), and says
 * what it was asked. It checks what the manual demands. The environment variable
 * FAKE_CUBLASLT="FUNCTION CALL STATUS" lets the CALL-th call of that function, counted
 * from 1, return that status; FAKE_CUBLASLT_VERSION is its version. */
#include <cmath>
#include <cublasLt.h>
#include <cuda_fp8.h>

struct fake_operation {
    std::int32_t trans_a = CUBLAS_OP_N, trans_b = CUBLAS_OP_N;
    std::int32_t a_mode = 0, b_mode = 0;
    std::int8_t is_fast = 0;
    const float *a_scales = nullptr, *b_scales = nullptr;
};
struct fake_layout {
    cudaDataType_t type;
    std::int64_t rows, columns, stride;
};
struct fake_preference {
    std::uint64_t bytes = 0;
    std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
};
struct cublasLtContext {
    int unused;
};

static int objects, calls;
enum : std::uint64_t { algorithm_mark = 0xA1607, workspace_bytes = 1000 };

static cublasStatus_t begin(const char *function)
{
    char name[64] = "";
    int call = 0, status = 0;
    const char *const wanted = std::getenv("FAKE_CUBLASLT");
    if (!wanted || std::sscanf(wanted, "%63s %d %d", name, &call, &status) != 3 ||
        std::strcmp(name, function) != 0 || ++calls != call)
        return CUBLAS_STATUS_SUCCESS;
    return static_cast<cublasStatus_t>(status);
}

template <typename Object, typename... Values>
static cublasStatus_t create(const char *function, Object **object, Values... values)
{
    const cublasStatus_t status = begin(function);
    *object = status == CUBLAS_STATUS_SUCCESS ? new Object{ values... } : nullptr;
    objects += *object != nullptr;
    return status;
}

template <typename Object> static cublasStatus_t destroy(Object *object)
{
    delete object;
    objects--;
    return CUBLAS_STATUS_SUCCESS;
}

template <typename Value>
static cublasStatus_t take(Value &to, const void *value, std::size_t bytes)
{
    if (bytes != sizeof(to)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

std::size_t cublasLtGetVersion()
{
    const char *const version = std::getenv("FAKE_CUBLASLT_VERSION");
    return version ? std::strtoull(version, nullptr, 10) : 130100;
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    }
    return "unknown";
}

/* Plans follow one another: what is there by then was left by the one before. */
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    if (objects) std::printf("left behind: %d\n", objects);
    return create("cublasLtCreate", handle, 0);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    const cublasStatus_t status = destroy(handle);
    if (objects) std::printf("left behind: %d\n", objects);
    return status;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *operation,
                                        cublasComputeType_t compute, cudaDataType_t scale)
{
    if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F)
        return CUBLAS_STATUS_INVALID_VALUE;
    return create("cublasLtMatmulDescCreate", operation);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation)
{
    return destroy(operation);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, std::size_t bytes)
{
    const cublasStatus_t status = begin("cublasLtMatmulDescSetAttribute");
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return take(operation->trans_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return take(operation->trans_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
        return take(operation->a_scales, value, bytes);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
        return take(operation->b_scales, value, bytes);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM: return take(operation->is_fast, value, bytes);
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE: return take(operation->a_mode, value, bytes);
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE: return take(operation->b_mode, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout,
                                          cudaDataType_t type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t stride)
{
    return create("cublasLtMatrixLayoutCreate", layout, type, std::int64_t(rows),
                  std::int64_t(columns), stride);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return destroy(layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    return create("cublasLtMatmulPreferenceCreate", preference);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return destroy(preference);
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                     cublasLtMatmulPreferenceAttributes_t attribute,
                                     const void *value, std::size_t bytes)
{
    const cublasStatus_t status = begin("cublasLtMatmulPreferenceSetAttribute");
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    return attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
               ? take(preference->bytes, value, bytes)
               : take(preference->reductions, value, bytes);
}

static int element_bytes(const fake_layout &layout)
{
    return layout.type == CUDA_R_32F ? 4 : layout.type == CUDA_R_16BF ? 2 : 1;
}

/* The "optimal requirements" that FP8 has to meet. */
static bool is_aligned(const fake_layout &layout)
{
    return layout.rows > 0 && layout.columns > 0 && layout.stride >= layout.rows &&
           layout.rows * element_bytes(layout) % 16 == 0 &&
           layout.stride * element_bytes(layout) % 16 == 0;
}

static bool is_legal(const fake_operation &operation, const fake_layout &a,
                     const fake_layout &b, const fake_layout &d)
{
    const bool has_blocks = operation.a_mode || operation.b_mode;
    const bool are_modes_legal =
        has_blocks ? operation.b_mode && operation.a_mode &&
                         operation.a_mode + operation.b_mode <
                             2 * CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F &&
                         a.columns % 4 == 0 && b.columns % 4 == 0
                   : true;
    return operation.trans_a == CUBLAS_OP_T && operation.trans_b == CUBLAS_OP_N &&
           are_modes_legal && element_bytes(a) == 1 && element_bytes(b) == 1 &&
           (a.type == CUDA_R_8F_E4M3 || b.type == CUDA_R_8F_E4M3) && is_aligned(a) &&
           is_aligned(b) && is_aligned(d) && a.rows == b.rows && d.rows == a.columns &&
           d.columns == b.columns && operation.a_scales && operation.b_scales;
}

cublasStatus_t
cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                               cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                               cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                               cublasLtMatmulPreference_t preference, int wanted,
                               cublasLtMatmulHeuristicResult_t results[], int *count)
{
    const cublasStatus_t status = begin("cublasLtMatmulAlgoGetHeuristic");
    *count = 0;
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (!is_legal(*operation, *a, *b, *d) || c != d || wanted != 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (preference->bytes < workspace_bytes) return CUBLAS_STATUS_NOT_SUPPORTED;
    results[0] = {};
    results[0].algo.data[0] = algorithm_mark;
    results[0].algo.data[1] = preference->reductions;
    results[0].workspaceSize = workspace_bytes;
    *count = begin("count") == CUBLAS_STATUS_SUCCESS;
    return CUBLAS_STATUS_SUCCESS;
}

/* E5M2 is the upper half of a half. */
static double value_of(cudaDataType_t type, std::uint8_t code)
{
    const int exponent = code >> 2 & 31, mantissa = code & 3;
    if (type == CUDA_R_8F_E4M3) return float(__nv_fp8_e4m3{ code });
    const double size = exponent == 31 ? (mantissa ? NAN : INFINITY)
                        : exponent     ? std::ldexp(4 + mantissa, exponent - 17)
                                       : std::ldexp(mantissa, -16);
    return code & 128 ? -size : size;
}

static double scale_of(const float *scales, std::int32_t mode, const fake_layout &operand,
                       std::int64_t column, std::int64_t k)
{
    const std::int64_t k_blocks = (operand.rows + 127) / 128;
    if (mode == CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F) return scales[0];
    if (mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F)
        return scales[k / 128 * operand.columns + column];
    return scales[column / 128 * ((k_blocks + 3) / 4 * 4) + k / 128];
}

struct fake_operand {
    fake_layout layout;
    const std::uint8_t *codes;
    const float *scales;
    std::int32_t mode;

    double at(std::int64_t k, std::int64_t column) const
    {
        return scale_of(scales, mode, layout, column, k) *
               value_of(layout.type, codes[column * layout.stride + k]);
    }
};

static void store(void *d, const fake_layout &layout, std::int64_t index, float value)
{
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    bits += 0x7FFF + (bits >> 16 & 1);
    if (layout.type == CUDA_R_32F)
        static_cast<float *>(d)[index] = value;
    else
        static_cast<std::uint16_t *>(d)[index] =
            std::isnan(value) ? 0x7FFF : std::uint16_t(bits >> 16);
}

static void multiply(const fake_operand &a, const fake_operand &b, void *d,
                     const fake_layout &layout)
{
    for (std::int64_t column = 0; column < layout.columns; column++)
        for (std::int64_t row = 0; row < layout.rows; row++) {
            double sum = 0;
            for (std::int64_t k = 0; k < a.layout.rows; k++)
                sum += a.at(k, row) * b.at(k, column);
            store(d, layout, column * layout.stride + row, float(sum));
        }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                              const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *, cublasLtMatrixLayout_t, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              std::size_t bytes, cudaStream_t stream)
{
    const cublasStatus_t status = begin("cublasLtMatmul");
    const fake_operand of_a = { *a_layout, static_cast<const std::uint8_t *>(a),
                                operation->a_scales, operation->a_mode };
    const fake_operand of_b = { *b_layout, static_cast<const std::uint8_t *>(b),
                                operation->b_scales, operation->b_mode };
    const fake_layout layout = *d_layout;
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (*static_cast<const float *>(alpha) != 1 ||
        *static_cast<const float *>(beta) != 0 || bytes < workspace_bytes ||
        algorithm->data[0] != algorithm_mark)
        return CUBLAS_STATUS_INVALID_VALUE;
    std::printf("matmul fast=%d modes=%d,%d reductions=%d\n", operation->is_fast,
                int(operation->a_mode), int(operation->b_mode), int(algorithm->data[1]));
    fake_do(stream, [of_a, of_b, d, layout, workspace] {
        std::memset(workspace, 0, workspace_bytes);
        multiply(of_a, of_b, d, layout);
    });
    return CUBLAS_STATUS_SUCCESS;
}
