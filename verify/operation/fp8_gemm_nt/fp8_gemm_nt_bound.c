/* SPDX-License-Identifier: MIT */
/* The bound of fp8_gemm_nt.
 *
 * Chain. n nonzero products p of codes, S their exact sum, A the sum of their magnitudes
 * with subnormal factors raised to the smallest normal, all p multiples of the unit u.
 * Positive products sum to at most M = (A + |S|) / 2 in magnitude, so do negative ones.
 * A dot-add truncates towards zero (terms, then the sum), which never takes a partial sum
 * out of [-M, M] in any order: |accumulator| <= M. A product aligns by an exponent e with
 * 2^e <= its padded magnitude <= A, and e <= largest exponent of the row of a + that of
 * the row of b. With E(x) = floor(log2 x):
 *     quantum of a step without accumulator: q1 = 2^(min(E(A), that sum) - align_bits),
 *     quantum of any step:                   q  = max(q1, 2^(E(M) - align_bits)),
 *     quantum of a result:                   r  = 2^(E(M) - result_bits).
 * With a single step q = q1. A product loses |p| mod its step's quantum, which is at most
 * |p| mod q, q being a multiple of it. Truncating any multiple of u to quantum x loses
 * nothing if u >= x, else at most x - u: call that loss(x). What remains are multiples of
 * u again. An accumulator is a multiple of 2^(its exponent - result_bits):
 * with align_bits >= result_bits it loses bits only where a product has the largest
 * exponent, hence at quantum q1.
 *     e_chain = sum of |p| mod q + (steps - 1) * loss(q1 or q) + steps * loss(r)
 * Steps without a nonzero product lose nothing, save an accumulator with align_bits <
 * result_bits. A unit that adds the accumulator last rounds each sum but the first once
 * more, to nearest.
 *
 * Scaling, B the computed chain, |B| <= min(M, |S| + e_chain): at most two roundings in
 * any of sfa * sfb * B, (sfa * B) * sfb, (sfb * B) * sfa, each by 2^-24 of the result or,
 * below 2^-126, by 2^-150; none where the significands' widths fit 24 bits together, one
 * where one scale is a power of two. A result that is a multiple of 2^-149 does not
 * suffer from the subnormal range.
 *
 * Adding t scaled chains: t - 1 roundings (fma(s, B, 0) is the second rounding above), of
 * partial sums that are at most G = (sum of largest chains + |value| + error) / 2 as
 * above, each half a unit in the last place of G; none where all chains are multiples of
 * a unit and G <= 2^24 units. The same for c, which may also be added in one rounding
 * with a product.
 *
 * Output: half a unit in the last place of the output format at |value| + error, a whole
 * one toward zero; where nothing was rounded so far, the actual distance.
 *
 * The factor 1 + 2^-20 pays for second-order terms and for the rounding of the bound.
 *
 * The oracle's own error, at most 2^-53 of the value (0 where that is a double) and
 * 2^-100 * (t + 1) of the largest chains, is less than 1/64 of a bound that is not 0. A
 * rounding to f32 counts 2^-25 of G or more, and |value| <= 2 G. If only chains lost
 * bits, either their sum is less than 2^25 units, hence a double, and the bound at least
 * one; or it is one chain of more than result_bits bits, and loss(r) above 2^-26 of
 * it. */
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt_bound.h"

#include "ref/oracle/fp8_gemm.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLACK (1 + 0x1p-20)
/* Beyond it a result may have overflowed; a little below FLT_MAX for the bound's sake. */
#define OVERFLOW ((double)FLT_MAX * (1 - 0x1p-30))

enum { F32_BITS = 24, BF16_BITS = 8, F32_LSB = -149, F32_MINIMUM_EXPONENT = -126 };
enum { UNSURE = 8 }; /* joins the set of enum assay_fp8_gemm_special */

struct factor { /* a scale: an integer of width bits, times 2^unit */
    float value;
    double magnitude;
    int unit, width;
};

struct block { /* a computed f32: |computed - exact| <= error, |computed| <= largest */
    double error, largest;
    int unit, width; /* a multiple of 2^unit, of width bits */
};

struct output { /* chains added so far; the block's width is not in use */
    struct block sum;
    int64_t terms; /* chains that can be nonzero */
    unsigned special;
};

struct chain { /* one range of k of one output */
    const struct assay_fp8_gemm_precision *precision;
    int64_t instructions, steps, nonzero; /* dot-adds in steps, products */
    double magnitude, sum, largest;       /* A, |S|, M of the derivation */
    int unit;                             /* exponent of u */
    int aligned;                          /* largest exponent a product can align by */
};

struct work {
    struct output output[ASSAY_FP8_GEMM_TILE];
    int quantum[ASSAY_FP8_GEMM_TILE]; /* exponent of q */
    double residue[ASSAY_FP8_GEMM_TILE];
};

static int minimum(int a, int b)
{
    return a < b ? a : b;
}

static int maximum(int a, int b)
{
    return a > b ? a : b;
}

/* floor(log2 @x), for normal @x > 0 */
static int exponent_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (int)(bits >> 52 & 0x7ff) - 1023;
}

/* For exponents of normal doubles. */
static double power_of_two(int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double loss(double quantum, double unit)
{
    return quantum > unit ? quantum - unit : 0;
}

/* Distance of neighbours at @magnitude in a format of f32's range and @bits bits. */
static double spacing(double magnitude, int bits)
{
    const int exponent = magnitude > 0 ? exponent_of(magnitude) : F32_MINIMUM_EXPONENT;
    return power_of_two(maximum(exponent, F32_MINIMUM_EXPONENT) - bits + 1);
}

static struct factor factor_of(float value)
{
    struct factor factor = { .value = value,
                             .magnitude = fabs((double)value),
                             .width = 1 };
    if (!isfinite(value) || value == 0.0f) return factor;
    int exponent;
    const double fraction = frexp(factor.magnitude, &exponent);
    const unsigned significand = (unsigned)ldexp(fraction, F32_BITS);
    const int zeros = __builtin_ctz(significand);
    factor.unit = exponent - F32_BITS + zeros;
    factor.width = F32_BITS - zeros;
    return factor;
}

/* Of output @at, in row @i and column @j of the tile; at least one product not zero. */
static struct chain chain_at(const struct assay_fp8_gemm_precision *precision,
                             const struct assay_fp8_gemm_oracle *oracle, int64_t i,
                             int64_t j, int64_t at)
{
    const struct assay_fp8_gemm_side *const a = &oracle->side[0], *const b = a + 1;
    const int64_t instructions =
        (oracle->k_count + precision->terms - 1) / precision->terms;
    struct chain chain = {
        .precision = precision,
        .instructions = instructions,
        .steps = instructions * maximum(precision->groups, 1),
        .nonzero = oracle->nonzero[at],
        .magnitude = oracle->magnitude[at],
        .sum = fabs(oracle->sum[at].high),
        .unit = a->lsb[i] + b->lsb[j],
    };
    chain.largest = (chain.magnitude + chain.sum) / 2;
    if (precision->adds_accumulator_last)
        chain.largest *= 1 + (double)chain.steps * 0x1p-23;
    chain.aligned =
        minimum(a->exponent[i] + b->exponent[j], exponent_of(chain.magnitude));
    return chain;
}

static int quantum_exponent(const struct chain *chain)
{
    const int accumulated = exponent_of(chain->largest);
    const int largest =
        chain->steps > 1 ? maximum(chain->aligned, accumulated) : chain->aligned;
    return largest - chain->precision->align_bits;
}

/* @residue is the sum of |p| mod q. */
static struct block chain_block(const struct chain *chain, double residue)
{
    const struct assay_fp8_gemm_precision *const precision = chain->precision;
    const double unit = power_of_two(chain->unit);
    const int exponent = exponent_of(chain->largest);
    const double first = loss(power_of_two(chain->aligned - precision->align_bits), unit);
    const double any = loss(power_of_two(quantum_exponent(chain)), unit);
    const double result = loss(power_of_two(exponent - precision->result_bits), unit);
    const double nearest = loss(power_of_two(exponent - F32_BITS + 1), unit) / 2;

    const int64_t nonzero = chain->nonzero;
    const int64_t steps = chain->steps < nonzero ? chain->steps : nonzero;
    double error = residue + (double)steps * result;
    error += precision->align_bits >= precision->result_bits
                 ? (double)(steps - 1) * first
                 : (double)(chain->steps - 1) * any;
    if (precision->adds_accumulator_last) {
        const int64_t sums =
            chain->instructions < nonzero ? chain->instructions : nonzero;
        error += (double)(sums - 1) * nearest;
    }

    const double reached = fmin(chain->largest, chain->sum + error);
    const int width =
        precision->adds_accumulator_last ? F32_BITS : precision->result_bits + 1;
    const int fits = exponent_of(reached) - chain->unit + 1;
    return (struct block){ error, reached, chain->unit,
                           minimum(width, maximum(fits, 1)) };
}

static int product_width(int a, int b)
{
    return a == 1 ? b : b == 1 ? a : a + b;
}

/* The block times both finite scales. */
static struct block scaled_block(const struct block *block, const struct factor *a,
                                 const struct factor *b)
{
    const double scale = a->magnitude * b->magnitude, exact = scale * block->largest;
    const int width = product_width(product_width(a->width, b->width), block->width);
    const int roundings = width <= F32_BITS ? 0 : a->width == 1 || b->width == 1 ? 1 : 2;
    const int unit = a->unit + b->unit + block->unit;
    const double vanishing = (a->unit + b->unit < F32_LSB ? block->largest : 0) +
                             (a->unit + block->unit < F32_LSB ? b->magnitude : 0) +
                             (b->unit + block->unit < F32_LSB ? a->magnitude : 0) +
                             (unit < F32_LSB ? 1 : 0);
    const double rounding = roundings * 0x1p-24 * exact + 0x1p-150 * vanishing;
    return (struct block){ .error = scale * block->error + rounding,
                           .largest = exact + rounding * SLACK,
                           .unit = unit,
                           .width = F32_BITS };
}

/* Whether a step of scaling the block, in some form, may overflow. */
static bool may_overflow(const struct block *block, const struct factor *a,
                         const struct factor *b)
{
    const double factor = fmax(a->magnitude, b->magnitude);
    const double scale = a->magnitude * b->magnitude;
    return fmax(scale, block->largest * fmax(factor, scale)) > OVERFLOW;
}

static bool is_nan(unsigned special)
{
    const unsigned both = ASSAY_ORACLE_PLUS_INFINITY | ASSAY_ORACLE_MINUS_INFINITY;
    return special & ASSAY_ORACLE_NAN || (special & both) == both;
}

/* What becomes of a sum times both scales where not all are finite: 0 if they are.
 * @special is the sum's set. A finite sum is certainly zero, or has the sign and at least
 * the magnitude of @least, of which 0 says nothing. */
static unsigned scaled_special(unsigned special, bool is_zero, double least, float a,
                               float b)
{
    const bool is_scale_infinite = isinf(a) || isinf(b);
    if (isnan(a) || isnan(b) || is_nan(special)) return ASSAY_ORACLE_NAN;
    if (is_scale_infinite && (a == 0.0f || b == 0.0f)) return ASSAY_ORACLE_NAN;
    if (!special && !is_scale_infinite) return 0;
    if (!special && is_zero) return ASSAY_ORACLE_NAN;
    if (special && (a == 0.0f || b == 0.0f)) return ASSAY_ORACLE_NAN;

    /* A product that may round to zero before it meets infinity decides nothing. */
    const double finite_a = isinf(a) ? 1 : (double)a, finite_b = isinf(b) ? 1 : (double)b;
    const double finite = fabs(finite_a * finite_b * (special ? 1 : least));
    if (finite < power_of_two(F32_LSB)) return UNSURE;
    const bool is_negative = special ? special & ASSAY_ORACLE_MINUS_INFINITY : least < 0;
    return is_negative ^ !!signbit(a) ^ !!signbit(b) ? ASSAY_ORACLE_MINUS_INFINITY
                                                     : ASSAY_ORACLE_PLUS_INFINITY;
}

static void add_block(struct output *output, const struct block *block)
{
    struct block *const sum = &output->sum;
    sum->unit = output->terms ? minimum(sum->unit, block->unit) : block->unit;
    sum->error += block->error;
    sum->largest += block->largest;
    output->terms++;
}

static void add_chain(const struct assay_fp8_gemm_precision *precision,
                      const struct assay_fp8_gemm_oracle *oracle, int64_t i, int64_t j,
                      const struct factor *a, const struct factor *b, double residue,
                      struct output *output)
{
    const int64_t at = i * oracle->side[1].count + j;
    const bool is_zero = oracle->nonzero[at] == 0;
    struct block block = { 0 };
    double least = 0;
    if (!is_zero) {
        const struct chain chain = chain_at(precision, oracle, i, j, at);
        block = chain_block(&chain, residue);
        const double sum = oracle->sum[at].high;
        least = copysign(fmax(fabs(sum) - block.error * SLACK, 0), sum);
    }
    const unsigned special =
        scaled_special(oracle->special[at], is_zero, least, a->value, b->value);
    output->special |= special;
    if (special) return;
    if (may_overflow(&block, a, b)) output->special |= UNSURE;
    if (is_zero || a->magnitude == 0 || b->magnitude == 0) return;
    block = scaled_block(&block, a, b);
    add_block(output, &block);
}

static void find_residues(const struct assay_fp8_gemm_precision *precision,
                          struct assay_fp8_gemm_oracle *oracle, struct work *work)
{
    for (int64_t i = 0, at = 0; i < oracle->side[0].count; i++)
        for (int64_t j = 0; j < oracle->side[1].count; j++, at++) {
            work->quantum[at] = ASSAY_FP8_NO_EXPONENT;
            if (oracle->nonzero[at] == 0) continue;
            const struct chain chain = chain_at(precision, oracle, i, j, at);
            work->quantum[at] = quantum_exponent(&chain);
        }
    assay_fp8_gemm_oracle_residues(oracle, work->quantum, work->residue);
}

static void add_range(const struct assay_fp8_gemm_precision *precision,
                      struct assay_fp8_gemm_oracle *oracle, int64_t k0, int64_t k_count,
                      struct work *work)
{
    struct factor scale[2][ASSAY_FP8_GEMM_TILE_M];
    assay_fp8_gemm_oracle_range(oracle, k0, k_count);
    find_residues(precision, oracle, work);
    for (int side = 0; side < 2; side++)
        for (int64_t i = 0; i < oracle->side[side].count; i++)
            scale[side][i] = factor_of(
                precision->is_scaled_at_end ? 1.0f : oracle->side[side].scale[i]);
    for (int64_t i = 0, at = 0; i < oracle->side[0].count; i++)
        for (int64_t j = 0; j < oracle->side[1].count; j++, at++)
            add_chain(precision, oracle, i, j, &scale[0][i], &scale[1][j],
                      work->residue[at], &work->output[at]);
}

/* Turns the added-up blocks into one: @exact is their exact sum's magnitude, or an upper
 * bound of it. */
static struct block summed_block(const struct output *output, double exact)
{
    const struct block *const sum = &output->sum;
    const double adds = (double)(output->terms - 1);
    if (output->terms == 0) return (struct block){ 0 };
    double largest = fmin(sum->largest, (sum->largest + exact + sum->error) / 2);
    double rounding = 0;
    const bool is_exact =
        sum->unit >= F32_LSB && largest <= power_of_two(sum->unit + F32_BITS);
    if (adds > 0 && !is_exact) {
        largest *= 1 + adds * 0x1p-23 + 0x1p-40;
        rounding = adds * spacing(largest, F32_BITS) / 2;
    }
    return (struct block){ .error = sum->error + rounding,
                           .largest = largest,
                           .unit = maximum(sum->unit, F32_LSB),
                           .width = F32_BITS };
}

static void add_c(struct block *block, unsigned *special, float c, double exact)
{
    if (isnan(c)) *special |= ASSAY_ORACLE_NAN;
    if (isinf(c))
        *special |= c > 0 ? ASSAY_ORACLE_PLUS_INFINITY : ASSAY_ORACLE_MINUS_INFINITY;
    if (!isfinite(c) || c == 0.0f || block->largest == 0) return;
    const int unit = minimum(block->unit, factor_of(c).unit);
    const double reached = exact + block->error;
    if (reached > power_of_two(unit + F32_BITS))
        block->error += spacing(reached * (1 + 0x1p-40), F32_BITS) / 2;
    block->unit = unit;
    block->largest += fabs((double)c);
}

/* Exact conversion of @value, which nothing was rounded to, to bf16. */
static double converted(double value, bool rounds_toward_zero)
{
    const double quantum = spacing(fabs(value), BF16_BITS);
    const double steps = value / quantum;
    const double result = (rounds_toward_zero ? trunc(steps) : rint(steps)) * quantum;
    return fabs(result) >= 0x1p128 ? copysign((double)INFINITY, value) : result;
}

/* Bound of a finite output; @value becomes infinite where the output certainly is. */
static double output_bound(const struct assay_fp8_gemm_precision *precision,
                           enum assay_format format, double error, double own_error,
                           double *value)
{
    const bool rounds_toward_zero = precision->rounds_toward_zero;
    const double reached = fabs(*value) + error * SLACK + own_error;
    if (reached > OVERFLOW) return (double)INFINITY;
    if (format == ASSAY_F32) return error == 0 ? 0 : error * SLACK + own_error;

    const double beyond = 0x1.ffp127; /* from here on to nearest is infinite */
    if (error == 0) {
        const double result = converted(*value, rounds_toward_zero);
        if (isfinite(result)) return fabs(result - *value);
        *value = result;
        return 0;
    }
    if (!rounds_toward_zero && reached >= beyond) {
        if (2 * fabs(*value) - reached < beyond) return (double)INFINITY;
        *value = copysign((double)INFINITY, *value);
        return 0;
    }
    const double ulp = spacing(reached, BF16_BITS);
    return error * SLACK + own_error + (rounds_toward_zero ? ulp : ulp / 2);
}

/* Without products there may be no kernel to multiply by the scales. */
static struct block scaled_at_end(const struct assay_fp8_gemm_oracle *oracle, int64_t at,
                                  struct output *output)
{
    const int64_t columns = oracle->side[1].count;
    const struct factor a = factor_of(oracle->side[0].scale[at / columns]);
    const struct factor b = factor_of(oracle->side[1].scale[at % columns]);
    const struct block sum = summed_block(output, output->sum.largest);
    output->special =
        scaled_special(output->special, output->terms == 0, 0, a.value, b.value);
    if (output->special && oracle->problem->k == 0) output->special = UNSURE;
    if (output->special) return (struct block){ 0 };
    if (may_overflow(&sum, &a, &b)) output->special = UNSURE;
    if (output->terms == 0 || a.magnitude == 0 || b.magnitude == 0)
        return (struct block){ 0 };
    return scaled_block(&sum, &a, &b);
}

static void finish_special(unsigned special, double *value, double *bound)
{
    *bound = 0;
    if (is_nan(special)) {
        *value = (double)NAN;
    } else if (special & UNSURE) {
        *bound = (double)INFINITY;
    } else {
        const bool is_negative = special & ASSAY_ORACLE_MINUS_INFINITY;
        *value = is_negative ? -(double)INFINITY : (double)INFINITY;
    }
}

static void finish(const struct assay_fp8_gemm_precision *precision,
                   const struct assay_fp8_gemm_oracle *oracle, enum assay_format format,
                   int64_t at, struct output *output, double *value, double *bound)
{
    struct block block = precision->is_scaled_at_end
                             ? scaled_at_end(oracle, at, output)
                             : summed_block(output, fabs(oracle->total[at].high));
    if (block.largest > OVERFLOW) output->special |= UNSURE;

    const float c = (float)assay_fp8_gemm_oracle_c(oracle, at);
    const struct assay_pair exact =
        isfinite(c) ? assay_fp8_gemm_oracle_sum(oracle, at) : oracle->total[at];
    add_c(&block, &output->special, c, fabs(exact.high));

    const double own_error = fabs(exact.low) + (double)(output->terms + 1) *
                                                   ASSAY_FP8_GEMM_ORACLE_ERROR *
                                                   block.largest;
    *value = exact.high;
    if (output->special)
        finish_special(output->special, value, bound);
    else
        *bound = output_bound(precision, format, block.error, own_error, value);
}

enum assay_status assay_fp8_gemm_expect(const struct assay_fp8_gemm_problem *problem,
                                        const struct assay_fp8_gemm_precision *precision,
                                        const struct assay_tensors *tensors, int64_t part,
                                        const struct assay_expected *d)
{
    enum assay_status status = ASSAY_OUT_OF_MEMORY;
    const enum assay_format format = assay_tensors_find(tensors, "d")->format;
    struct work *const work = calloc(1, sizeof *work);
    struct assay_fp8_gemm_oracle *const oracle =
        assay_fp8_gemm_oracle_open(problem, tensors, part);
    if (!work || !oracle) goto done;

    const int64_t chain_k = precision->chain_k ? precision->chain_k : problem->k;
    for (int64_t k0 = 0, count = 0; k0 < problem->k; k0 += count) {
        const int64_t in_block = problem->gran_k - k0 % problem->gran_k;
        const int64_t rest = in_block < problem->k - k0 ? in_block : problem->k - k0;
        count = chain_k < rest ? chain_k : rest;
        add_range(precision, oracle, k0, count, work);
    }
    for (int64_t at = 0; at < oracle->outputs; at++)
        finish(precision, oracle, format, at, &work->output[at], &d->value[at],
               &d->bound[at]);
    status = ASSAY_RAN;
done:
    assay_fp8_gemm_oracle_close(oracle);
    free(work);
    return status;
}
