/* SPDX-License-Identifier: MIT */
/* The operands of one GEMM among those of a call, wherever they lie, and what relations
 * between two runs do to them. */
#ifndef ASSAY_VERIFY_OPERATION_FP8_GEMM_NT_FP8_GEMM_VIEW_H
#define ASSAY_VERIFY_OPERATION_FP8_GEMM_NT_FP8_GEMM_VIEW_H

#include "ref/tensor.h"

struct assay_gemm_view { /* windows on a run's tensors, of @rows by @columns outputs */
    struct assay_tensor a, b, c; /* [rows, k], [columns, k], [rows, columns] */
    struct assay_tensor sfa, sfb;
    bool has_c, has_packed_scales; /* packed: UE8M0 in words; otherwise f32 */
    int64_t rows, columns, k;
    int64_t gran_m, gran_n, gran_k; /* elements that one scale covers */
};

/* Scale blocks along K, and those that are whole. */
int64_t assay_gemm_blocks(const struct assay_gemm_view *view);
int64_t assay_gemm_whole_blocks(const struct assay_gemm_view *view);
/* f32 bits of the scale of row @row of a, or of b. */
uint32_t assay_gemm_scale(const struct assay_gemm_view *view, bool is_b, int64_t row,
                          int64_t block);

/* f32 bits times two. What has no double stays: infinities, NaN and numbers within a
 * factor of two of the largest. */
uint32_t assay_gemm_doubled(uint32_t f32_bits);
/* Bits of a format whose sign is its highest bit, sign flipped; NaN stays. */
uint32_t assay_gemm_negated(enum assay_format format, uint32_t bits);

/* --- changes in place -------------------------------------------------------------- */

/* Scales of a, and c, times two, as far as they have doubles. */
void assay_gemm_double(const struct assay_gemm_view *view);
/* Signs of b, and of c, flipped; NaN stays. */
void assay_gemm_negate(const struct assay_gemm_view *view);
/* Rows of a, with their scales, and of c in the opposite order. */
void assay_gemm_reverse_rows(const struct assay_gemm_view *view);
/* Columns of a and b in the opposite order inside each scale block. */
void assay_gemm_reverse_columns(const struct assay_gemm_view *view);
/* Whole scale blocks of a and b, with their scales, in the opposite order; a last one
 * that is not whole stays. */
void assay_gemm_reverse_blocks(const struct assay_gemm_view *view);
/* Anything else instead of the operands, scales and c. */
void assay_gemm_disturb(const struct assay_gemm_view *view);
/* Writes all of @to: the last rows of @from, and its b. */
void assay_gemm_take_rows(const struct assay_gemm_view *from,
                          const struct assay_gemm_view *to);

#endif
