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

#include "ref/instruction_sets.h"
#include "ref/oracle/fp8_gemm.h"
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt_chain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UNSURE = 8 }; /* joins the set of enum assay_fp8_gemm_special */
enum { LINE = ASSAY_FP8_GEMM_COLUMNS };

struct factors {
    float value[LINE];
    double magnitude[LINE];
    int64_t unit[LINE], width[LINE];
    bool are_finite;
};

struct blocks { /* of one line of outputs */
    double error[LINE], largest[LINE];
    int64_t unit[LINE], width[LINE];
    int64_t is_finite[LINE]; /* scaled by these factors */
};

/* Of each output, the chains added so far, and how many of them can be nonzero. */
struct sums {
    double error[ASSAY_FP8_GEMM_TILE], largest[ASSAY_FP8_GEMM_TILE];
    double terms[ASSAY_FP8_GEMM_TILE];
    int64_t unit[ASSAY_FP8_GEMM_TILE], special[ASSAY_FP8_GEMM_TILE];
};

struct output { /* one of them; the block's width is not in use */
    struct assay_block sum;
    double terms;
    unsigned special;
};

struct work {
    struct sums sums;
    int quantum[ASSAY_FP8_GEMM_TILE]; /* exponent of q */
    double residue[ASSAY_FP8_GEMM_TILE];
};

static void fill_factors(struct factors *factors, const struct assay_fp8_gemm_side *side,
                         bool is_scaled)
{
    factors->are_finite = true;
    for (int i = 0; i < LINE; i++) {
        const struct assay_factor factor =
            assay_factor_of(is_scaled ? side->scale[i] : 1.0f);
        factors->value[i] = factor.value;
        factors->magnitude[i] = factor.magnitude;
        factors->unit[i] = factor.unit;
        factors->width[i] = factor.width;
        factors->are_finite &= isfinite(factor.value) != 0;
    }
}

static struct assay_factor factor_at(const struct factors *factors, int64_t i)
{
    return (struct assay_factor){ factors->value[i], factors->magnitude[i],
                                  factors->unit[i], factors->width[i] };
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
    if (finite < assay_double_power(ASSAY_F32_LSB)) return UNSURE;
    const bool is_negative = special ? special & ASSAY_ORACLE_MINUS_INFINITY : least < 0;
    return is_negative ^ !!signbit(a) ^ !!signbit(b) ? ASSAY_ORACLE_MINUS_INFINITY
                                                     : ASSAY_ORACLE_PLUS_INFINITY;
}

/* Fills line @i of @quantum. */
ASSAY_EACH_INSTRUCTION_SET
static void find_quanta(const struct assay_chains *chains,
                        const struct assay_fp8_gemm_oracle *oracle, int64_t i,
                        int *restrict quantum)
{
    const struct assay_fp8_gemm_side *const a = &oracle->side[0], *const b = a + 1;
    const double *const magnitude = oracle->magnitude + i * LINE;
    const double *const sum = oracle->sum + i * LINE;
    const double *const nonzero = oracle->nonzero + i * LINE;
    const struct assay_chains common = *chains;
    const int lsb = a->lsb[i], exponent = a->exponent[i];
    for (int j = 0; j < LINE; j++) {
        const struct assay_chain chain =
            assay_chain_of(&common, magnitude[j], sum[j], nonzero[j], lsb + b->lsb[j],
                           exponent + b->exponent[j]);
        const int64_t found = assay_quantum_exponent(&common, &chain);
        quantum[j] = (int)(nonzero[j] > 0 ? found : ASSAY_FP8_NO_EXPONENT);
    }
}

/* The chains of line @i; zeros where no product is nonzero. */
ASSAY_EACH_INSTRUCTION_SET
static void find_blocks(const struct assay_chains *chains,
                        const struct assay_fp8_gemm_oracle *oracle, int64_t i,
                        const double *restrict residue, struct blocks *restrict blocks)
{
    const struct assay_fp8_gemm_side *const a = &oracle->side[0], *const b = a + 1;
    const double *const magnitude = oracle->magnitude + i * LINE;
    const double *const sum = oracle->sum + i * LINE;
    const double *const nonzero = oracle->nonzero + i * LINE;
    const struct assay_chains common = *chains;
    const int lsb = a->lsb[i], exponent = a->exponent[i];
    for (int j = 0; j < LINE; j++) {
        const struct assay_chain chain =
            assay_chain_of(&common, magnitude[j], sum[j], nonzero[j], lsb + b->lsb[j],
                           exponent + b->exponent[j]);
        const struct assay_block block = assay_chain_block(&common, &chain, residue[j]);
        blocks->error[j] = nonzero[j] > 0 ? block.error : 0;
        blocks->largest[j] = nonzero[j] > 0 ? block.largest : 0;
        blocks->unit[j] = nonzero[j] > 0 ? block.unit : 0;
        blocks->width[j] = nonzero[j] > 0 ? block.width : 0;
        blocks->is_finite[j] = 1;
    }
}

/* Scales the line of chains and adds it to line @i of the sums. */
ASSAY_EACH_INSTRUCTION_SET
static void add_blocks(const struct blocks *restrict blocks, const struct assay_factor *a,
                       const struct factors *restrict b, int64_t i,
                       struct sums *restrict sums)
{
    const struct assay_factor row = *a;
    double *const restrict error = sums->error + i * LINE;
    double *const restrict largest = sums->largest + i * LINE;
    double *const restrict terms = sums->terms + i * LINE;
    int64_t *const restrict unit = sums->unit + i * LINE;
    int64_t *const restrict special = sums->special + i * LINE;
    for (int j = 0; j < LINE; j++) {
        const struct assay_block block = { blocks->error[j], blocks->largest[j],
                                           blocks->unit[j], blocks->width[j] };
        const struct assay_factor column = { 0, b->magnitude[j], b->unit[j],
                                             b->width[j] };
        const struct assay_block scaled = assay_scaled_block(&block, &row, &column);
        const bool is_finite = blocks->is_finite[j] != 0;
        const bool is_added =
            is_finite & (block.width > 0) & (row.magnitude > 0) & (column.magnitude > 0);
        const bool is_unsure = is_finite & assay_may_overflow(&block, &row, &column);
        special[j] |= is_unsure ? UNSURE : 0;
        unit[j] = is_added
                      ? terms[j] > 0 ? assay_minimum(unit[j], scaled.unit) : scaled.unit
                      : unit[j];
        error[j] += is_added ? scaled.error : 0;
        largest[j] += is_added ? scaled.largest : 0;
        terms[j] += is_added ? 1.0 : 0;
    }
}

/* Sets products of line @i that are not finite aside. */
static void set_aside(const struct assay_fp8_gemm_oracle *oracle,
                      const struct assay_factor *a, const struct factors *b, int64_t i,
                      struct blocks *blocks, struct sums *sums)
{
    for (int64_t j = 0; j < oracle->side[1].count; j++) {
        const int64_t at = i * LINE + j;
        const double sum = oracle->sum[at];
        const double least = fmax(fabs(sum) - blocks->error[j] * ASSAY_CHAIN_SLACK, 0);
        const unsigned special =
            scaled_special(oracle->special[at], oracle->nonzero[at] == 0,
                           copysign(least, sum), a->value, b->value[j]);
        sums->special[at] |= special;
        blocks->is_finite[j] = special == 0;
    }
}

static void add_range(const struct assay_fp8_gemm_precision *precision,
                      struct assay_fp8_gemm_oracle *oracle, int64_t k0, int64_t k_count,
                      struct work *work)
{
    struct factors a, b;
    struct blocks blocks;
    const struct assay_chains chains = assay_chains_of(precision, k_count);
    assay_fp8_gemm_oracle_range(oracle, k0, k_count);
    for (int64_t i = 0; i < oracle->side[0].count; i++)
        find_quanta(&chains, oracle, i, work->quantum + i * LINE);
    assay_fp8_gemm_oracle_residues(oracle, work->quantum, work->residue);

    fill_factors(&a, &oracle->side[0], !precision->is_scaled_at_end);
    fill_factors(&b, &oracle->side[1], !precision->is_scaled_at_end);
    for (int64_t i = 0; i < oracle->side[0].count; i++) {
        const struct assay_factor row = factor_at(&a, i);
        find_blocks(&chains, oracle, i, work->residue + i * LINE, &blocks);
        if (oracle->has_special || !a.are_finite || !b.are_finite)
            set_aside(oracle, &row, &b, i, &blocks, &work->sums);
        add_blocks(&blocks, &row, &b, i, &work->sums);
    }
}

/* Turns the added-up blocks into one: @exact is their exact sum's magnitude, or an upper
 * bound of it. */
static struct assay_block summed_block(const struct output *output, double exact)
{
    const struct assay_block *const sum = &output->sum;
    const double adds = output->terms - 1;
    if (output->terms == 0) return (struct assay_block){ 0 };
    double largest = fmin(sum->largest, (sum->largest + exact + sum->error) / 2);
    double rounding = 0;
    const bool is_exact = sum->unit >= ASSAY_F32_LSB &&
                          largest <= assay_double_power(sum->unit + ASSAY_F32_BITS);
    if (adds > 0 && !is_exact) {
        largest *= 1 + adds * 0x1p-23 + 0x1p-40;
        rounding = adds * assay_spacing(largest, ASSAY_F32_BITS) / 2;
    }
    return (struct assay_block){ .error = sum->error + rounding,
                                 .largest = largest,
                                 .unit = assay_maximum(sum->unit, ASSAY_F32_LSB),
                                 .width = ASSAY_F32_BITS };
}

static void add_c(struct assay_block *block, unsigned *special, float c, double exact)
{
    if (isnan(c)) *special |= ASSAY_ORACLE_NAN;
    if (isinf(c))
        *special |= c > 0 ? ASSAY_ORACLE_PLUS_INFINITY : ASSAY_ORACLE_MINUS_INFINITY;
    if (!isfinite(c) || c == 0.0f || block->largest == 0) return;
    const int64_t unit = assay_minimum(block->unit, assay_factor_of(c).unit);
    const double reached = exact + block->error;
    if (reached > assay_double_power(unit + ASSAY_F32_BITS))
        block->error += assay_spacing(reached * (1 + 0x1p-40), ASSAY_F32_BITS) / 2;
    block->unit = unit;
    block->largest += fabs((double)c);
}

/* Exact conversion of @value, which nothing was rounded to, to bf16. */
static double converted(double value, bool rounds_toward_zero)
{
    const double quantum = assay_spacing(fabs(value), ASSAY_BF16_BITS);
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
    const double reached = fabs(*value) + error * ASSAY_CHAIN_SLACK + own_error;
    if (reached > ASSAY_CHAIN_OVERFLOW) return (double)INFINITY;
    if (format == ASSAY_F32)
        return error == 0 ? 0 : error * ASSAY_CHAIN_SLACK + own_error;

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
    const double ulp = assay_spacing(reached, ASSAY_BF16_BITS);
    return error * ASSAY_CHAIN_SLACK + own_error + (rounds_toward_zero ? ulp : ulp / 2);
}

/* Without products there may be no kernel to multiply by the scales. */
static struct assay_block scaled_at_end(const struct assay_fp8_gemm_oracle *oracle,
                                        int64_t i, int64_t j, struct output *output)
{
    const struct assay_factor a = assay_factor_of(oracle->side[0].scale[i]);
    const struct assay_factor b = assay_factor_of(oracle->side[1].scale[j]);
    const struct assay_block sum = summed_block(output, output->sum.largest);
    output->special =
        scaled_special(output->special, output->terms == 0, 0, a.value, b.value);
    if (output->special && oracle->problem->k == 0) output->special = UNSURE;
    if (output->special) return (struct assay_block){ 0 };
    if (assay_may_overflow(&sum, &a, &b)) output->special = UNSURE;
    if (output->terms == 0 || a.magnitude == 0 || b.magnitude == 0)
        return (struct assay_block){ 0 };
    return assay_scaled_block(&sum, &a, &b);
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
                   int64_t i, int64_t j, struct output *output, double *value,
                   double *bound)
{
    struct assay_pair exact = assay_fp8_gemm_oracle_total(oracle, i, j);
    struct assay_block block = precision->is_scaled_at_end
                                   ? scaled_at_end(oracle, i, j, output)
                                   : summed_block(output, fabs(exact.high));
    if (block.largest > ASSAY_CHAIN_OVERFLOW) output->special |= UNSURE;

    const float c = (float)assay_fp8_gemm_oracle_c(oracle, i, j);
    if (isfinite(c)) exact = assay_fp8_gemm_oracle_sum(oracle, i, j);
    add_c(&block, &output->special, c, fabs(exact.high));

    const double own_error = fabs(exact.low) + (output->terms + 1) *
                                                   ASSAY_FP8_GEMM_ORACLE_ERROR *
                                                   block.largest;
    *value = exact.high;
    if (output->special)
        finish_special(output->special, value, bound);
    else
        *bound = output_bound(precision, format, block.error, own_error, value);
}

static struct output output_at(const struct sums *sums, int64_t at)
{
    return (struct output){ .sum = { .error = sums->error[at],
                                     .largest = sums->largest[at],
                                     .unit = sums->unit[at] },
                            .terms = sums->terms[at],
                            .special = (unsigned)sums->special[at] };
}

static void finish_all(const struct assay_fp8_gemm_precision *precision,
                       const struct assay_fp8_gemm_oracle *oracle,
                       enum assay_format format, const struct sums *sums,
                       const struct assay_expected *d)
{
    double *value = d->value, *bound = d->bound;
    for (int64_t i = 0; i < oracle->side[0].count; i++)
        for (int64_t j = 0; j < oracle->side[1].count; j++) {
            struct output output = output_at(sums, i * LINE + j);
            finish(precision, oracle, format, i, j, &output, value++, bound++);
        }
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
    finish_all(precision, oracle, format, &work->sums, d);
    status = ASSAY_RAN;
done:
    assay_fp8_gemm_oracle_close(oracle);
    free(work);
    return status;
}
