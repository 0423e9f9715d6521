/* SPDX-License-Identifier: MIT */
/* The GEMM with block scales inside its products as Blackwell's units are published to
 * compute it: one chain of dot-adds over all of K in which a scale's exponent joins those
 * of its operands before alignment. Modelled, and compared with no hardware. */
#ifndef ASSAY_REF_KERNEL_FP8_GEMM_MX_H
#define ASSAY_REF_KERNEL_FP8_GEMM_MX_H

#include "ref/fp8_gemm_mx_problem.h"
#include "ref/kernel/fp8_gemm.h"

/* Stages: accumulator = chain over the tile's K with scaled operands; final = the
 * accumulator. The last stage is assay_fp8_gemm_finish. */
void assay_fp8_gemm_mx_chain(struct assay_fp8_gemm_tile *tile);
void assay_fp8_gemm_mx_promote(struct assay_fp8_gemm_tile *tile);

/* Computes part @part of d. Of the numerics unit, align_bits, result_bits, k_order,
 * out_rounding and the stages count; the unit takes both formats and gran_k is a multiple
 * of its terms (asserted). */
void assay_fp8_gemm_mx_model(const struct assay_fp8_gemm_problem *problem,
                             const struct assay_fp8_gemm_numerics *numerics,
                             const struct assay_tensors *tensors, int64_t part);

#endif
