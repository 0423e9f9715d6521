/* SPDX-License-Identifier: MIT */
/* The bound of wgmma.
 *
 * One output: terms t (c and the products), S their exact sum, P and N the magnitudes of
 * the sums of its positive and negative terms, M = max(P, N), every term a multiple of
 * the unit u. A dot-add truncates toward zero (each term, then the sum), which never
 * takes a partial sum out of [-N, P] whatever the order: |accumulator| <= M. With E(x) =
 * floor(log2 x), but at least -126, X the largest exponent a product aligns by:
 *     quantum of any dot-add    q = 2^(max(X, E(M)) - align_bits)
 *     quantum of a result       r = 2^(floor(log2 M) - result_bits), at least 2^-149.
 * With a single dot-add q is 2^(max(X, E(c)) - align_bits), and |S| + its loss stands for
 * M in r: what is never reached on the way can't be.
 *
 * A product loses |p| mod its dot-add's quantum, which divides q: at most |p| mod q. So
 * does c, which only the first dot-add meets as it was given. Positive terms lose
 * downward, negative ones upward: together at most residue = the larger of the two sums
 * of |t| mod q. Truncating any multiple of u to quantum x loses nothing if u >= x, else
 * at most x - u: call that loss(x). What remains are multiples of u again.
 *
 * An accumulator has result_bits below its exponent. With align_bits >= result_bits it
 * loses bits only to a larger product, hence at quantum 2^(X - align_bits), or when it is
 * subnormal, which aligns by -126: q2 = 2^(max(X, -126) - align_bits), otherwise q2 = q.
 *     error = residue + (active - 1) * loss(q2) + active * loss(r)
 * Active are the dot-adds that can lose bits: those with a nonzero product and the first,
 * if an accumulator alone survives a dot-add as it is (align_bits >= result_bits, and no
 * subnormal can have bits below 2^(-126 - align_bits)); else all.
 *
 * A unit that adds the accumulator last starts each instruction from zero: c is not
 * aligned, and each instruction adds half a unit in the last place of an f32 at M, itself
 * larger by as many roundings.
 *
 * A result is infinite from 2^128 on: certainly in a single dot-add when S is further
 * from there than the error, never while M stays below.
 *
 * The factor 1 + 2^-20 pays for the rounding of the bound, and for the oracle's: 2^-53 of
 * S, or nothing where S is a double. Where it is none, S has more than 53 bits above u,
 * so that loss(r) is at least 2^-24 of it. */
#include "ref/oracle/unit.h"
#include "verify/operation/unit/unit.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define SLACK (1 + 0x1p-20)
/* Beyond it a result may have overflowed; a little below FLT_MAX for the bound's sake. */
#define OVERFLOW ((double)FLT_MAX * (1 - 0x1p-30))

enum { F32_MANTISSA_BITS = 23, F32_LSB = -149, F32_MINIMUM_EXPONENT = -126 };

struct chain { /* of one output */
    const struct assay_wgmma_precision *precision;
    const struct assay_dot_sum *sum;
    double largest;   /* M */
    int64_t dot_adds; /* of the chain */
    bool is_single;   /* one dot-add, onto c */
};

static int maximum(int a, int b)
{
    return a > b ? a : b;
}

/* floor(log2 @x), F32_LSB for zero */
static int exponent_of(double x)
{
    return x > 0 ? ilogb(x) : F32_LSB;
}

static double loss(int quantum, int unit)
{
    return quantum > unit ? ldexp(1, quantum) - ldexp(1, unit) : 0;
}

/* To nearest: a tie loses half the quantum, whatever the unit. */
static double nearest_loss(int quantum, int unit)
{
    return quantum > unit ? ldexp(1, quantum - 1) : 0;
}

static struct chain chain_of(const struct assay_wgmma_precision *precision,
                             const struct assay_dot_sum *sum)
{
    const bool adds_last = precision->adds_accumulator_last;
    struct chain chain = {
        .precision = precision,
        .sum = sum,
        .largest = fmax(sum->positive, sum->negative),
        .dot_adds = precision->instructions * precision->groups,
    };
    if (adds_last) chain.largest *= 1 + (double)precision->instructions * 0x1p-23;
    chain.is_single = chain.dot_adds == 1 && !adds_last;
    return chain;
}

static int quantum_exponent(const struct chain *chain)
{
    const struct assay_dot_sum *const sum = chain->sum;
    const int accumulated =
        chain->is_single ? sum->c_aligned
                         : maximum(exponent_of(chain->largest), F32_MINIMUM_EXPONENT);
    return maximum(sum->aligned, accumulated) - chain->precision->align_bits;
}

static int64_t active_dot_adds(const struct chain *chain)
{
    const struct assay_wgmma_precision *const precision = chain->precision;
    const int subnormal = F32_MINIMUM_EXPONENT - precision->align_bits;
    const bool survives = precision->align_bits >= precision->result_bits &&
                          (subnormal <= F32_LSB || subnormal <= chain->sum->lsb);
    const int64_t active = chain->sum->products + 1;
    return survives && active < chain->dot_adds ? active : chain->dot_adds;
}

/* |computed - S|, @residue included. */
static double chain_error(const struct chain *chain, double residue)
{
    const struct assay_wgmma_precision *const precision = chain->precision;
    const struct assay_dot_sum *const sum = chain->sum;
    double reached = chain->largest;
    if (chain->is_single) reached = fmin(reached, fabs(sum->value) + residue * SLACK);
    const int exponent = exponent_of(reached);
    const double result =
        loss(maximum(exponent - precision->result_bits, F32_LSB), sum->lsb);
    const int alone =
        precision->align_bits >= precision->result_bits
            ? maximum(sum->aligned, F32_MINIMUM_EXPONENT) - precision->align_bits
            : quantum_exponent(chain);
    const double active = (double)active_dot_adds(chain);
    double error = residue + (active - 1) * loss(alone, sum->lsb) + active * result;
    if (precision->adds_accumulator_last)
        error += (double)precision->instructions *
                 nearest_loss(maximum(exponent - F32_MANTISSA_BITS, F32_LSB), sum->lsb);
    return error;
}

static void expect_special(const struct chain *chain, double *value, double *bound)
{
    const unsigned special = chain->sum->special;
    const unsigned both = ASSAY_UNIT_PLUS_INFINITY | ASSAY_UNIT_MINUS_INFINITY;
    *bound = 0;
    if (special & ASSAY_UNIT_NAN || (special & both) == both) {
        *value = (double)NAN;
        return;
    }
    /* Finite terms may overflow the other way before the infinity comes. */
    if (!chain->is_single && chain->largest > OVERFLOW) *bound = (double)INFINITY;
    *value = special == ASSAY_UNIT_PLUS_INFINITY ? (double)INFINITY : -(double)INFINITY;
    if (isinf(*bound)) *value = chain->sum->value;
}

static void expect_finite(const struct chain *chain, double residue, double *value,
                          double *bound)
{
    const double error = chain_error(chain, residue) * SLACK;
    const double exact = fabs(chain->sum->value);
    *value = chain->sum->value;
    *bound = error;
    if ((chain->is_single ? exact + error : chain->largest) <= OVERFLOW) return;
    *bound = (double)INFINITY;
    if (!chain->is_single || exact - error < 0x1p128) return;
    *value = copysign((double)INFINITY, *value);
    *bound = 0;
}

enum assay_status assay_wgmma_expect(const struct assay_wgmma_precision *precision,
                                     const struct assay_tensors *tensors, int64_t block,
                                     const struct assay_expected *d)
{
    const struct assay_tensor c =
        assay_tensor_slice(assay_tensors_find(tensors, "c"), block);
    const size_t outputs = (size_t)assay_tensor_elements(&c);
    enum assay_status status = ASSAY_OUT_OF_MEMORY;
    struct assay_dot_sum *const sum = malloc(outputs * sizeof(*sum));
    int *const quantum = malloc(outputs * sizeof(*quantum));
    double(*const residue)[2] = malloc(outputs * sizeof(*residue));
    if (!sum || !quantum || !residue || !assay_dot_sums(tensors, block, sum)) goto done;

    for (size_t i = 0; i < outputs; i++) {
        const struct chain chain = chain_of(precision, &sum[i]);
        quantum[i] = quantum_exponent(&chain);
    }
    if (!assay_dot_residues(tensors, block, !precision->adds_accumulator_last, quantum,
                            residue))
        goto done;
    for (size_t i = 0; i < outputs; i++) {
        const struct chain chain = chain_of(precision, &sum[i]);
        if (sum[i].special)
            expect_special(&chain, &d->value[i], &d->bound[i]);
        else
            expect_finite(&chain, fmax(residue[i][0], residue[i][1]), &d->value[i],
                          &d->bound[i]);
    }
    status = ASSAY_RAN;
done:
    free(sum);
    free(quantum);
    free(residue);
    return status;
}
