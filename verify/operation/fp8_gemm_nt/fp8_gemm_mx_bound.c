/* SPDX-License-Identifier: MIT */
/* The bound of fp8_gemm_nt with block scales inside the products.
 *
 * n nonzero products p, scales included; S their exact sum, A the sum of their magnitudes
 * with subnormal factors raised to the smallest normal; all p are multiples of the unit
 * u; e is the largest exponent that a product aligns by, a product's being 2^e' <= its
 * raised magnitude <= A. A dot-add truncates towards zero (terms, then the sum, where it
 * keeps multiples of 2^-149), which never takes a partial sum out of [-M, M] in any
 * order, with M = (A + |S|) / 2, since positive products sum to at most M, and negative
 * ones too. With E(x) = floor(log2 x), F = align_bits, m = result_bits:
 *     quantum of a step without accumulator: q1 = 2^(e - F),
 *     quantum of any step:                   q  = max(q1, 2^(max(E(M), -126) - F)),
 *                                            but q1 if it is the only step,
 *     quantum of a result:                   r  = max(2^(E(M) - m), 2^-149).
 * A product loses |p| mod its step's quantum, at most |p| mod q, q being a multiple of
 * it. Truncating a multiple of u to quantum x loses nothing if u >= x, else at most x -
 * u: call that loss(x). What remains are multiples of u again. An accumulator is a
 * multiple of 2^(its exponent - m) or of 2^-149: with F >= m it loses bits only where a
 * product has the largest exponent, at quantum q1, or where it is subnormal and F < 23,
 * at quantum s = 2^(-126 - F); with F < m at quantum q.
 *     F >= m: e_chain = sum of |p| mod q + (busy - 1) * loss(q1) + busy * loss(r)
 *                       + (F < 23: (steps - 1) * loss(s))
 *     F < m:  e_chain = sum of |p| mod q + (steps - 1) * loss(q) + busy * loss(r)
 * Busy steps are those with a nonzero product, at most n.
 *
 * Output: the chain is an f32; to bf16 half a unit in the last place at |value| + error,
 * a whole one toward zero; where nothing was rounded so far, the actual distance.
 *
 * The factor 1 + 2^-20 pays for the rounding of the bound and of the residues.
 *
 * The oracle's own error, at most 2^-53 of S and (groups + 1) * 2^-100 of A <= 2 M, is
 * less than 1/64 of an error that is not 0: if u < r that error is at least loss(r) >=
 * r / 2 >= 2^-25 M; else S is a multiple of u of at most 24 bits, hence a double. */
#include "verify/operation/fp8_gemm_nt/fp8_gemm_mx_bound.h"

#include "ref/oracle/fp8_gemm_mx.h"

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#define SLACK (1 + 0x1p-20)
/* Beyond it a result may have overflowed; a little below FLT_MAX for the bound's sake. */
#define OVERFLOW ((double)FLT_MAX * (1 - 0x1p-30))

enum { F32_MANTISSA_BITS = 23, F32_MINIMUM_EXPONENT = -126, F32_LSB = -149 };
enum { BF16_BITS = 8, TILE = ASSAY_FP8_GEMM_TILE_M * ASSAY_FP8_GEMM_TILE_N };

struct work {
    struct assay_fp8_gemm_mx_output output[TILE];
    int quantum[TILE]; /* exponent of q */
    double residue[TILE];
};

static int maximum(int a, int b)
{
    return a > b ? a : b;
}

static double loss(int quantum, int unit)
{
    return quantum > unit ? ldexp(1, quantum) - ldexp(1, unit) : 0;
}

/* M of the derivation. */
static double largest_sum(const struct assay_fp8_gemm_mx_output *output)
{
    return (output->magnitude + fabs(output->sum.high)) / 2;
}

static int64_t steps_of(const struct assay_fp8_gemm_problem *problem,
                        const struct assay_fp8_gemm_precision *precision)
{
    return (problem->k + precision->terms - 1) / precision->terms;
}

static int quantum_of(const struct assay_fp8_gemm_precision *precision, int64_t steps,
                      const struct assay_fp8_gemm_mx_output *output)
{
    if (output->nonzero == 0) return INT_MIN;
    const int sum = maximum(ilogb(largest_sum(output)), F32_MINIMUM_EXPONENT);
    const int largest = steps > 1 ? maximum(output->exponent, sum) : output->exponent;
    return largest - precision->align_bits;
}

/* e_chain; at least one product is not zero. */
static double chain_error(const struct assay_fp8_gemm_precision *precision, int64_t steps,
                          const struct assay_fp8_gemm_mx_output *output, int quantum,
                          double residue)
{
    const int align_bits = precision->align_bits;
    const int64_t busy = steps < output->nonzero ? steps : output->nonzero;
    const int result =
        maximum(ilogb(largest_sum(output)) - precision->result_bits, F32_LSB);
    const double error = residue + (double)busy * loss(result, output->unit);
    if (align_bits < precision->result_bits)
        return error + (double)(steps - 1) * loss(quantum, output->unit);
    const double subnormal = align_bits < F32_MANTISSA_BITS
                                 ? loss(F32_MINIMUM_EXPONENT - align_bits, output->unit)
                                 : 0;
    return error + (double)(steps - 1) * subnormal +
           (double)(busy - 1) * loss(output->exponent - align_bits, output->unit);
}

/* Distance of neighbours of bf16 at @magnitude. */
static double bf16_spacing(double magnitude)
{
    const int exponent = magnitude > 0 ? ilogb(magnitude) : F32_MINIMUM_EXPONENT;
    return ldexp(1, maximum(exponent, F32_MINIMUM_EXPONENT) - BF16_BITS + 1);
}

/* Conversion of @value, an f32, to bf16. */
static double converted(double value, bool rounds_toward_zero)
{
    const double quantum = bf16_spacing(fabs(value));
    const double steps = value / quantum;
    const double result = (rounds_toward_zero ? trunc(steps) : rint(steps)) * quantum;
    return fabs(result) >= 0x1p128 ? copysign((double)INFINITY, value) : result;
}

/* Adds the conversion to bf16; @value becomes infinite where the output certainly is. */
static double bf16_bound(double error, bool rounds_toward_zero, double *value)
{
    if (error == 0) {
        const double result = converted(*value, rounds_toward_zero);
        if (isfinite(result)) return fabs(result - *value);
        *value = result;
        return 0;
    }
    const double beyond = 0x1.ffp127; /* from here on to nearest is infinite */
    if (!rounds_toward_zero && fabs(*value) + error >= beyond) {
        if (fabs(*value) - error < beyond) return (double)INFINITY;
        *value = copysign((double)INFINITY, *value);
        return 0;
    }
    const double spacing = bf16_spacing(fabs(*value) + error);
    return error + (rounds_toward_zero ? spacing : spacing / 2);
}

static void finish(const struct assay_fp8_gemm_problem *problem,
                   const struct assay_fp8_gemm_precision *precision,
                   enum assay_format format, const struct work *work, int64_t at,
                   double *value, double *bound)
{
    const struct assay_fp8_gemm_mx_output *const output = &work->output[at];
    const int64_t steps = steps_of(problem, precision);
    *value = assay_fp8_gemm_mx_value(output);
    *bound = 0;
    if (isnan(*value)) return;
    if (largest_sum(output) > OVERFLOW) {
        *value = output->sum.high;
        *bound = (double)INFINITY;
        return;
    }
    if (isinf(*value) || output->nonzero == 0) return;

    double error =
        chain_error(precision, steps, output, work->quantum[at], work->residue[at]);
    if (error > 0) {
        const double groups = (double)assay_fp8_gemm_mx_groups(problem);
        error = error * SLACK + fabs(output->sum.low) +
                (groups + 1) * ASSAY_FP8_GEMM_MX_ORACLE_ERROR * output->magnitude;
    }
    *bound = format == ASSAY_F32
                 ? error
                 : bf16_bound(error, precision->rounds_toward_zero, value);
}

enum assay_status
assay_fp8_gemm_mx_expect(const struct assay_fp8_gemm_problem *problem,
                         const struct assay_fp8_gemm_precision *precision,
                         const struct assay_tensors *tensors, int64_t part,
                         const struct assay_expected *d)
{
    assert(precision->groups <= 1 && !precision->adds_accumulator_last);
    const struct assay_fp8_gemm_tile_range range =
        assay_fp8_gemm_part_range(problem, part);
    const int64_t outputs = range.rows * range.columns;
    const int64_t steps = steps_of(problem, precision);
    const enum assay_format format = assay_tensors_find(tensors, "d")->format;
    enum assay_status status = ASSAY_OUT_OF_MEMORY;
    struct work *const work = malloc(sizeof *work);
    struct assay_fp8_gemm_mx_oracle *const oracle =
        assay_fp8_gemm_mx_oracle_open(problem, tensors, part);
    if (!work || !oracle) goto done;

    assay_fp8_gemm_mx_oracle_sums(oracle, work->output);
    for (int64_t at = 0; at < outputs; at++)
        work->quantum[at] = quantum_of(precision, steps, &work->output[at]);
    assay_fp8_gemm_mx_oracle_residues(oracle, work->quantum, work->residue);
    for (int64_t at = 0; at < outputs; at++)
        finish(problem, precision, format, work, at, &d->value[at], &d->bound[at]);
    status = ASSAY_RAN;
done:
    assay_fp8_gemm_mx_oracle_close(oracle);
    free(work);
    return status;
}
