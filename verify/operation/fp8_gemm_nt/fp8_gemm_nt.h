/* SPDX-License-Identifier: MIT */
/* fp8_gemm_nt: d = [c +] (sfa * a) (sfb * b)^T with FP8 operands (DeepGEMM's fp8_gemm_nt,
 * cuBLASLt's FP8 matmul). What the files of this folder share. */
#ifndef ASSAY_VERIFY_OPERATION_FP8_GEMM_NT_H
#define ASSAY_VERIFY_OPERATION_FP8_GEMM_NT_H

#include "ref/fp8_gemm_problem.h"
#include "ref/kernel/fp8_gemm.h"
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt_bound.h"
#include "verify/operation/operation.h"

enum assay_fp8_gemm_recipe {
    ASSAY_RECIPE_1D2D,   /* sfa 1 x 128, sfb 128 x 128 */
    ASSAY_RECIPE_1D1D,   /* sfa 1 x 128, sfb 1 x 128 */
    ASSAY_RECIPE_TENSOR, /* one scale each */
    ASSAY_RECIPE_MX,     /* packed UE8M0 scales, 1 x gran_k, inside the products */
};

struct assay_fp8_gemm_nt_problem {
    struct assay_fp8_gemm_problem gemm;
    enum assay_fp8_gemm_recipe recipe;
    enum assay_format a_format, b_format, out;
    int64_t a_stride, b_stride, d_stride; /* elements from row to row */
};

extern const struct assay_operation assay_fp8_gemm_nt;

/* fp8_gemm_nt_numerics.c */
extern const struct assay_named_numerics assay_fp8_gemm_nt_numerics[];
extern const struct assay_knob assay_fp8_gemm_nt_knobs[];
const struct assay_named_numerics *assay_fp8_gemm_nt_default_numerics(const void *);
enum assay_status assay_fp8_gemm_nt_check_numerics(const void *problem,
                                                   const void *numerics,
                                                   struct assay_message *);
bool assay_fp8_gemm_nt_is_measured(const void *numerics);

/* What all FP8 GEMMs with block scales have in common. */
extern const struct assay_fp8_gemm_numerics assay_fp8_gemm_block_stored;
extern const struct assay_fp8_gemm_numerics assay_fp8_gemm_block_reduced;
enum assay_status assay_fp8_gemm_check_block_numerics(const void *numerics,
                                                      int64_t gran_k,
                                                      struct assay_message *);
extern const struct assay_choice assay_fp8_gemm_operand_formats[];
extern const struct assay_choice assay_fp8_gemm_out_formats[];
/* The hook `settle`. Of the unit alone: bits that are its own anyway. */
void assay_fp8_gemm_nt_settle(const void *problem, void *numerics);
void assay_fp8_gemm_settle_unit(const void *problem, void *numerics);

/* For the hook `narrow`: so many rows and columns of d, taken from its corner. */
enum { ASSAY_FP8_GEMM_NARROW_M = 8, ASSAY_FP8_GEMM_NARROW_N = 16 };
static inline void assay_fp8_gemm_narrow(int64_t *extent, int64_t limit)
{
    if (*extent > limit) *extent = limit;
}
void assay_fp8_gemm_window(struct assay_tensors *windows, const char *name, int dimension,
                           int64_t extent);
struct assay_fp8_gemm_precision
assay_fp8_gemm_precision_of(const struct assay_fp8_gemm_numerics *numerics);
/* Of all operands, scales and outputs, each once and without row padding, as upstream
 * counts; labels and masks are not among them. */
double assay_fp8_gemm_bytes(const struct assay_tensors *tensors);

/* fp8_gemm_nt_data.c; @first_key numbers the first of the tensor's rows among all rows of
 * that name, so that groups can be told apart. Any strides. */
void assay_fp8_gemm_fill_operand(const struct assay_tensor *tensor,
                                 enum assay_data_kind kind, uint64_t seed,
                                 int64_t first_key);
void assay_fp8_gemm_fill_scale(const struct assay_tensor *tensor,
                               enum assay_data_kind kind, uint64_t seed,
                               int64_t first_key);
void assay_fp8_gemm_fill_c(const struct assay_tensor *tensor, enum assay_data_kind kind,
                           uint64_t seed, int64_t first_key);
void assay_fp8_gemm_nt_fill(const void *problem, enum assay_data_kind kind, uint64_t seed,
                            const struct assay_tensors *tensors);

/* fp8_gemm_nt_features.c */
extern const struct assay_feature assay_fp8_gemm_nt_features[];

#endif
