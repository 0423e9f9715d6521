/* SPDX-License-Identifier: MIT */
/* How far from the exact value a GEMM with block scales inside its products can be: valid
 * for any order of the products in one chain over all of K, and for any tiling. The
 * derivation is in the .c file. */
#ifndef ASSAY_VERIFY_OPERATION_FP8_GEMM_NT_FP8_GEMM_MX_BOUND_H
#define ASSAY_VERIFY_OPERATION_FP8_GEMM_NT_FP8_GEMM_MX_BOUND_H

#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt_bound.h"

/* Fills value and bound of part @part, row-major in its tile. Of the class terms,
 * align_bits, result_bits and rounds_toward_zero count; the unit adds the products of an
 * instruction and the accumulator at once (asserted).
 *
 * Where nothing is rounded, or only to the output format, the bound is the distance of
 * the one possible output. Where the output is certainly NaN or infinite, so is the
 * value, and the bound is 0. Where a sum may overflow on the way, the bound is INFINITY
 * and the value finite: nothing is claimed.
 *
 * ASSAY_RAN, or ASSAY_OUT_OF_MEMORY. */
enum assay_status
assay_fp8_gemm_mx_expect(const struct assay_fp8_gemm_problem *problem,
                         const struct assay_fp8_gemm_precision *precision,
                         const struct assay_tensors *tensors, int64_t part,
                         const struct assay_expected *d);

#endif
