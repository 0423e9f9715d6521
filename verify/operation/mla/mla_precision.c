/* SPDX-License-Identifier: MIT */
/* Accuracies of functions are those of sfu (verify/operation/unit/sfu.c says where they
 * come from), or those of rounding to nearest.
 *
 * Chains. p are the products, S their exact sum, A the sum of their padded magnitudes,
 * all p multiples of the unit u. Positive products sum to at most M = (A + |S|) / 2, so
 * do negative ones, and no partial sum in any order is larger; truncation only takes it
 * toward zero. A product aligns by an exponent of at most X = min(E(A), the operands'
 * largest exponents added), E(x) = floor(log2 x); an accumulator by at most E(M).
 * Quanta of a step's terms, of an accumulator beside a larger product, of a result:
 *     q  = 2^(max(X, E(M)) - align_bits)
 *     q1 = 2^(X - align_bits), or q if align_bits < result_bits
 *     r  = 2^(E(M) - result_bits), at least 2^-149
 * Products lose |p| mod their step's quantum, which divides q: at most |p| mod q.
 * Truncating a multiple of u to quantum x loses nothing if u >= x, else at most x - u:
 *     error = sum of |p| mod q + (steps - 1) * loss(q1) + steps * loss(r)
 * and a subnormal sum may be flushed where it is used.
 * By fma: a rounding to nearest a product, each half a unit in the last place of M at
 * most, or the flush of a subnormal; a subnormal factor is flushed too, and takes its
 * product along, below 2^-126 times the largest factor. */
#include "verify/operation/mla/mla_precision.h"

#include "ref/oracle/rounding.h"

#include <math.h>
#include <string.h>

enum { F32_BITS = 24, F32_LSB = -149, TERMS = 16, NO_EXPONENT = -5000 };

static const struct assay_mla_accuracy hardware = {
    .ex2 = 2.5 * 0x1p-24,
    .lg2_absolute = 2.625 * 0x1p-24,
    .lg2_relative = 2 * 0x1p-24,
    .rcp = 1.75 * 0x1p-24,
};
static const struct assay_mla_accuracy rounded = {
    .ex2 = 0x1p-24,
    .lg2_relative = 0x1p-24,
    .rcp = 0x1p-24,
};

struct assay_mla_accuracy assay_mla_accuracy_of(int functions)
{
    return functions == ASSAY_MLA_FUNCTIONS_HARDWARE ? hardware : rounded;
}

double assay_mla_lg2_error(const struct assay_mla_accuracy *accuracy, double log2_largest)
{
    return accuracy->lg2_absolute + accuracy->lg2_relative * log2_largest;
}

static void set_p(struct assay_mla_precision *precision, int p_rounding,
                  enum assay_format format)
{
    const bool is_f16 = format == ASSAY_F16;
    precision->is_p_nearest = p_rounding == ASSAY_MLA_P_NEAREST_EVEN;
    precision->p_exponent = is_f16 ? -14 : -126;
    if (p_rounding == ASSAY_MLA_P_KEPT) return;
    const double half = precision->is_p_nearest ? 0.5 : 1;
    precision->p_relative = half * (is_f16 ? 0x1p-10 : 0x1p-7);
    precision->p_absolute = is_f16 ? half * 0x1p-24 : 0;
}

struct assay_mla_precision assay_mla_precision_of(const struct assay_mla_numerics *given,
                                                  enum assay_format format)
{
    const bool is_fma = given->unit == ASSAY_MLA_FMA;
    const struct assay_dot_add *const unit =
        assay_dot_add_find(format == ASSAY_F16 ? "hopper-f16" : "hopper-bf16");
    struct assay_mla_precision precision = {
        .is_score_by_fma = is_fma,
        .is_value_by_fma = is_fma || given->p_rounding == ASSAY_MLA_P_KEPT ||
                           given->schedule == ASSAY_MLA_PLAIN,
        .align_bits = given->align_bits ? given->align_bits : unit->align_bits,
        .result_bits = given->result_bits ? given->result_bits : unit->result_bits,
        .attention = assay_mla_accuracy_of(given->functions),
        .combine = assay_mla_accuracy_of(given->combine.functions),
        .is_argument_fused = given->argument == ASSAY_MLA_ARGUMENT_FUSED,
        .is_mask_finite = given->mask == ASSAY_MLA_MASK_FINITE,
        .is_nan_empty = given->nan_row == ASSAY_MLA_NAN_AS_EMPTY,
        .is_zero_weight_skipped =
            given->combine.zero_weight == ASSAY_MLA_ZERO_WEIGHT_SKIPPED,
        .keys_per_raise = given->schedule == ASSAY_MLA_MATERIALISED ? 0
                          : given->schedule == ASSAY_MLA_PLAIN      ? 1
                                                                    : TERMS,
    };
    precision.quotient =
        ASSAY_MLA_HALF_ULP +
        (given->quotient == ASSAY_MLA_RECIPROCAL ? precision.attention.rcp : 0);
    set_p(&precision, given->p_rounding, format);
    return precision;
}

/* --- chains ----------------------------------------------------------------------- */

int assay_mla_exponent(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    const int field = (int)(bits >> 52 & 2047);
    return field ? field - 1023 : NO_EXPONENT;
}

static double power_of_two(int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static double loss(int quantum, int lsb)
{
    return quantum > lsb ? power_of_two(quantum) - power_of_two(lsb) : 0;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* M, and X. */
static double most_of(const struct assay_mla_chain *chain)
{
    return (chain->magnitude + fabs(chain->sum)) / 2 * (1 + 0x1p-40);
}

static int product_exponent(const struct assay_mla_chain *chain)
{
    const int in_total = assay_mla_exponent(chain->magnitude);
    return in_total < chain->exponent ? in_total : chain->exponent;
}

static int lsb_of(const struct assay_mla_chain *chain)
{
    return larger(chain->lsb, -1000);
}

int assay_mla_chain_quantum(const struct assay_mla_precision *precision,
                            const struct assay_mla_chain *chain)
{
    return larger(product_exponent(chain), assay_mla_exponent(most_of(chain))) -
           precision->align_bits;
}

double assay_mla_chain_residue(const struct assay_mla_precision *precision,
                               const struct assay_mla_chain *chain)
{
    return (double)chain->products *
           loss(assay_mla_chain_quantum(precision, chain), lsb_of(chain));
}

static double fma_error(const struct assay_mla_chain *chain)
{
    const double most = most_of(chain);
    const int quantum = larger(assay_mla_exponent(most) + 1 - F32_BITS, F32_LSB);
    /* To nearest: a tie loses half the quantum, whatever the unit. */
    const double rounding = quantum > lsb_of(chain) ? power_of_two(quantum - 1) : 0;
    const double result_lost = fmin(most, ASSAY_MLA_SMALLEST_NORMAL);
    const double factor_lost =
        fmin(most, ASSAY_MLA_SMALLEST_NORMAL * ldexp(2, chain->factor));
    return (double)chain->products * (rounding + result_lost + factor_lost);
}

double assay_mla_chain_error(const struct assay_mla_precision *precision,
                             const struct assay_mla_chain *chain)
{
    if (chain->magnitude == 0 || chain->products == 0) return 0;
    if (precision->is_score_by_fma) return fma_error(chain);
    const double steps = (double)((chain->products + TERMS - 1) / TERMS);
    const int lsb = lsb_of(chain);
    const int beside = precision->align_bits >= precision->result_bits
                           ? product_exponent(chain) - precision->align_bits
                           : assay_mla_chain_quantum(precision, chain);
    const int result =
        larger(assay_mla_exponent(most_of(chain)) - precision->result_bits, F32_LSB);
    return chain->residue + (steps - 1) * loss(beside, lsb) + steps * loss(result, lsb) +
           fmin(most_of(chain), ASSAY_MLA_SMALLEST_NORMAL);
}

/* --- outputs ---------------------------------------------------------------------- */

/* @value rounded to nearest, ties to even; may be infinite. */
static double nearest(enum assay_format format, double value)
{
    const bool is_f16 = format == ASSAY_F16;
    const int smallest = is_f16 ? -14 : -126, bits = is_f16 ? 10 : 7;
    if (!isfinite(value) || value == 0) return value;
    const int exponent = larger(assay_mla_exponent(value), smallest);
    const double quanta = value * power_of_two(bits - exponent);
    const double result = assay_nearest_whole(quanta) * power_of_two(exponent - bits);
    return fabs(result) >= (is_f16 ? 0x1p16 : 0x1p128) ? copysign((double)INFINITY, value)
                                                       : result;
}

double assay_mla_output_bound(enum assay_format format, double error, double *value)
{
    if (!(error < (double)INFINITY) || !isfinite(*value)) return (double)INFINITY;
    const double low = nearest(format, *value - error);
    const double high = nearest(format, *value + error);
    if (isinf(low) && low == high) {
        *value = low;
        return 0;
    }
    if (isinf(low) || isinf(high)) return (double)INFINITY;
    return fmax(fabs(low - *value), fabs(high - *value));
}
