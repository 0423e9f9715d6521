/* SPDX-License-Identifier: MIT */
/* How far from the exact value an FP8 GEMM of a precision class can be: a function of the
 * problem, the inputs and the class, valid for any order of the products inside a chain
 * and of the chains, and for any tiling. The derivation is in the .c file. */
#ifndef ASSAY_VERIFY_OPERATION_FP8_GEMM_NT_FP8_GEMM_NT_BOUND_H
#define ASSAY_VERIFY_OPERATION_FP8_GEMM_NT_FP8_GEMM_NT_BOUND_H

#include "ref/fp8_gemm_problem.h"
#include "verify/operation/operation.h"

/* What a bound may rely on. Not part of it: where scales enter as long as that is per
 * chain (product of the scales first, or one after the other), and whether scaling and
 * adding are one rounding or two. */
struct assay_fp8_gemm_precision {
    int terms;  /* products an instruction adds */
    int groups; /* in which it adds them, one after the other; 0 means 1 */
    int align_bits, result_bits;
    bool adds_accumulator_last; /* rn(sum of the products + accumulator) in f32 */
    int64_t chain_k;            /* products the unit accumulates; 0: all of K */
    bool is_scaled_at_end;      /* chains are added unscaled */
    bool rounds_toward_zero;    /* f32 to the output format; otherwise to nearest */
};

/* Fills value and bound of part @part, row-major in its tile.
 *
 * Where all roundings are known not to happen, or only that to the output format, the
 * bound is the distance of the one possible output. Where the output is certainly NaN or
 * infinite, so is the value, and the bound is 0. Where an intermediate may or may not
 * overflow, or a zero times infinity depends on rounding, the bound is INFINITY and the
 * value finite: nothing is claimed. Chains do not cross scale blocks.
 *
 * ASSAY_RAN, or ASSAY_OUT_OF_MEMORY. */
enum assay_status assay_fp8_gemm_expect(const struct assay_fp8_gemm_problem *problem,
                                        const struct assay_fp8_gemm_precision *precision,
                                        const struct assay_tensors *tensors, int64_t part,
                                        const struct assay_expected *d);

#endif
