/* SPDX-License-Identifier: MIT */
/* Operands that fill an accumulator to its last bit and lose nothing in it. */
#ifndef ASSAY_VERIFY_OPERATION_FP8_GEMM_NT_FP8_GEMM_ACCUMULATOR_H
#define ASSAY_VERIFY_OPERATION_FP8_GEMM_NT_FP8_GEMM_ACCUMULATOR_H

#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt_bound.h"
#include "verify/operation/fp8_gemm_nt/fp8_gemm_view.h"

/* Writes all operands and scales, and c, of @view: integers under scales of 1 whose sums
 * a kernel of that precision class keeps exactly, in any order of the products inside a
 * chain and of the chains, and which one with a narrower accumulator, narrower aligned
 * products or longer chains cuts, in steps of at least 32 products from either end of K.
 * False, with anything written: K is too short for the formats' numbers to fill it. */
bool assay_gemm_fill_accumulator(const struct assay_gemm_view *view,
                                 const struct assay_fp8_gemm_precision *precision);

#endif
