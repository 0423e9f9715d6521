/* SPDX-License-Identifier: MIT */
/* The bounds of the cache operations.
 *
 * Dequantisation. code * s is exact as a double. Rounding to bf16 is monotonic, so the
 * key lies between bf16(v - d) and bf16(v + d), d being what was lost before it: the
 * bound is the larger distance of these two from v. It is 0 where the product is a bf16
 * value and d is 0, as with all scales that are powers of two, unless the product leaves
 * the format's range. d is
 *
 *   of scale-to-bf16   |code| times half a unit of bf16 at s; 0 if s is a bf16 value.
 *                      It pays for f32-product as well, whose d is less. A scale that
 *                      rounds to infinity is one.
 *   of f32-product     half a unit of f32 at v; 0 if v is an f32 value
 *
 * Quantisation. Bytes are compared as integers. A byte may be any between those of the
 * smallest and of the largest result that f32 arithmetic can give; mostly that is one.
 * With u = 2^-24:
 *
 *   Scales. Powers of two have no error, whichever way amax is divided and rounded up, by
 *   exponent bits or by ceil(log2) in f32: amax is a bf16, so unless amax / 448 is a
 *   power of two it is 2^-8 of itself away from any (tested for every amax). 1e-4 is an
 *   f32. In e4m3 the nearest to amax / 6 is the same when amax / 6 or amax * rn(1 / 6) is
 *   rounded to f32 first, since a middle t of two codes is amax / 6 exactly, and then
 *   both are t, or it is 2^-8 of itself away (tested likewise). Any other f32 scale: one
 *   rounding (division) or two (rn(1 / 448), product): 2 u of s. Of the bytes of an f32
 *   those above the first that can differ are the same, those below it can be anything.
 *
 *   Codes. By a power of two x / s is exact in f32, or so small that the code is zero.
 *   Otherwise the quotient has the scale's two roundings, none if s is exact, and its own
 *   one, none if s is exact and the quotient an f32 (the middle of two codes often is);
 *   or two, of 1 / s and of the product, with payload=times-inverse. Two codes of e2m1
 *   share a byte: where both of one are possible, the byte may lie anywhere between.
 *
 * The factor 1 + 2^-20 pays for second-order terms and for the oracle's own rounding. */
#include "ref/kernel/mla_attention.h"
#include "ref/oracle/mla_cache.h"
#include "verify/operation/mla_cache/mla_cache.h"

#include <math.h>
#include <string.h>

#define ROUNDING (0x1p-24 * (1 + 0x1p-20))

/* --- dequantisation --------------------------------------------------------------- */

static double bf16_half_unit(double value)
{
    const int exponent = fabs(value) < 0x1p-126 ? -126 : ilogb(value);
    return ldexp(1, exponent - 8);
}

static double f32_half_unit(double value)
{
    const int exponent = fabs(value) < 0x1p-126 ? -126 : ilogb(value);
    return ldexp(1, exponent - 24);
}

/* Value and bound of code * scale; @scale may become infinite. */
static void expect_product(int dequantisation, double code, double scale, double *value,
                           double *bound)
{
    const bool is_product = dequantisation == ASSAY_MLA_F32_PRODUCT;
    double lost = 0;
    if (!is_product && isfinite(scale)) {
        const double rounded = assay_mla_bf16_nearest(scale);
        if (isfinite(rounded) && rounded != scale)
            lost = fabs(code) * bf16_half_unit(scale);
        if (isinf(rounded)) scale = rounded;
    }
    *value = code * scale;
    *bound = 0;
    if (!isfinite(*value)) return;
    if (is_product && (double)(float)*value != *value) lost = f32_half_unit(*value);
    const double low = assay_mla_bf16_nearest(*value - lost);
    const double high = assay_mla_bf16_nearest(*value + lost);
    if (isinf(low) && isinf(high))
        *value = low;
    else
        *bound = fmax(fabs(low - *value), fabs(high - *value));
}

enum assay_status assay_mla_cache_dequantise_expect(const void *bound_problem,
                                                    const void *numerics,
                                                    const struct assay_tensors *tensors,
                                                    int64_t part,
                                                    const struct assay_expected *expected)
{
    const struct assay_mla_cache_problem *const problem = bound_problem;
    const struct assay_mla_dequantise_numerics *const given = numerics;
    const int64_t d_qk = assay_mla_d_qk(problem->kv);
    for (int64_t i = 0; i < assay_mla_cache_tokens(problem, part); i++) {
        double code[ASSAY_MLA_MAX_D_QK], scale[ASSAY_MLA_MAX_D_QK];
        assay_mla_cache_factors(problem, tensors, part * problem->page_size + i, code,
                                scale);
        for (int64_t j = 0; j < d_qk; j++)
            expect_product(given->dequantisation, code[j], scale[j],
                           &expected[ASSAY_MLA_CACHE_OUTPUT].value[i * d_qk + j],
                           &expected[ASSAY_MLA_CACHE_OUTPUT].bound[i * d_qk + j]);
    }
    return ASSAY_RAN;
}

/* --- quantisation ----------------------------------------------------------------- */

static void put_range(const struct assay_expected *page, int64_t byte, uint32_t a,
                      uint32_t b)
{
    page->value[byte] = ((double)a + (double)b) / 2;
    page->bound[byte] = fabs((double)a - (double)b) / 2;
}

static bool is_power_of_two(double scale)
{
    int exponent;
    return isfinite(scale) && frexp(scale, &exponent) == 0.5;
}

static uint32_t f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* The smallest or largest f32 within @error of a scale. */
static uint32_t f32_within(double scale, double error)
{
    const double limit = scale * (1 + error);
    float value = (float)limit;
    if (error < 0 && (double)value < limit) value = nextafterf(value, INFINITY);
    if (error > 0 && (double)value > limit) value = nextafterf(value, 0.0f);
    return f32_bits(value);
}

static void expect_f32_scale(const struct assay_expected *page, int64_t byte,
                             double scale, bool is_exact)
{
    const bool is_free = isfinite(scale) && !is_exact && !is_power_of_two(scale);
    const uint32_t exact = isnan(scale) ? 0x7FFFFFFF : f32_bits((float)scale);
    const uint32_t low = is_free ? f32_within(scale, -2 * ROUNDING) : exact;
    const uint32_t high = is_free ? f32_within(scale, 2 * ROUNDING) : exact;
    bool is_same_above = true;
    for (int i = 3; i >= 0; i--) {
        const uint32_t a = low >> 8 * i & 0xFF, b = high >> 8 * i & 0xFF;
        if (is_same_above)
            put_range(page, byte + i, a, b);
        else
            put_range(page, byte + i, 0, 0xFF);
        is_same_above = is_same_above && a == b;
    }
}

static void expect_scale(const struct assay_mla_cache_problem *problem,
                         const struct assay_expected *page, int64_t byte, double scale,
                         bool is_exact)
{
    uint32_t code = 0xFF; /* ue8m0 has no other name for infinity */
    if (problem->kv == ASSAY_MLA_V32) {
        expect_f32_scale(page, byte, scale, is_exact);
        return;
    }
    if (problem->kv == ASSAY_MLA_V41_FP4)
        code = assay_mla_code_nearest(ASSAY_E4M3, scale);
    else if (isfinite(scale))
        code = (uint32_t)(ilogb(scale) + 127);
    put_range(page, byte, code, code);
}

struct code_range {
    uint32_t low, high;
};

static int roundings_of(bool is_by_inverse, double quotient, double scale,
                        bool is_scale_exact)
{
    if (is_power_of_two(scale)) return 0;
    if (!is_scale_exact) return is_by_inverse ? 4 : 3;
    if (is_by_inverse) return 2;
    return (double)(float)quotient != quotient;
}

static struct code_range codes_of(enum assay_format format, double quotient,
                                  int roundings)
{
    const double error = roundings * ROUNDING;
    return (struct code_range){
        assay_mla_code_nearest(format, quotient * (1 - error)),
        assay_mla_code_nearest(format, quotient * (1 + error)),
    };
}

static void expect_codes(bool is_by_inverse,
                         const struct assay_mla_cache_quantised *token,
                         const struct assay_mla_cache_bytes *at,
                         const struct assay_expected *page)
{
    const enum assay_format format = at->codes_a_byte == 2 ? ASSAY_E2M1 : ASSAY_E4M3;
    for (int i = 0; i < at->coded; i += at->codes_a_byte) {
        struct code_range byte = { 0, 0 };
        for (int j = 0; j < at->codes_a_byte; j++) {
            const int tile = (i + j) / at->tile;
            const double quotient = token->quotient[i + j];
            const int roundings = roundings_of(
                is_by_inverse, quotient, token->scale[tile], token->is_scale_exact[tile]);
            const struct code_range code = codes_of(format, quotient, roundings);
            byte.low |= code.low << 4 * j;
            byte.high |= code.high << 4 * j;
        }
        put_range(page, at->codes + i / at->codes_a_byte, byte.low, byte.high);
    }
}

static void expect_rest(const struct assay_mla_cache_problem *problem,
                        const struct assay_mla_cache_quantised *token,
                        const struct assay_mla_cache_bytes *at,
                        const struct assay_expected *page)
{
    for (int i = 0; i < at->coded / at->tile; i++)
        expect_scale(problem, page, at->scales + (int64_t)i * at->scale_bytes,
                     token->scale[i], token->is_scale_exact[i]);
    for (int i = 0; i < assay_mla_d_qk(problem->kv) - at->coded; i++)
        for (int j = 0; j < 2; j++) {
            const uint32_t byte = token->rope[i] >> 8 * j & 0xFF;
            put_range(page, at->rope + 2 * (int64_t)i + j, byte, byte);
        }
}

enum assay_status assay_mla_cache_quantise_expect(const void *bound_problem,
                                                  const void *numerics,
                                                  const struct assay_tensors *tensors,
                                                  int64_t part,
                                                  const struct assay_expected *expected)
{
    const struct assay_mla_cache_problem *const problem = bound_problem;
    const struct assay_mla_cache_numerics *const given = numerics;
    const struct assay_mla_cache_rules rules = {
        .raises_amax = given->floor == ASSAY_MLA_FLOOR_AMAX,
        .ignores_nan = given->nan == ASSAY_MLA_AMAX_IGNORES_NAN,
    };
    const struct assay_expected *const page = &expected[ASSAY_MLA_CACHE_OUTPUT];
    const int64_t bytes = tensors->item[ASSAY_MLA_CACHE_OUTPUT].shape[1];
    for (int64_t i = 0; i < bytes; i++) /* what belongs to no token is not asked for */
        put_range(page, i, 0, 0xFF);
    for (int64_t i = 0; i < assay_mla_cache_tokens(problem, part); i++) {
        const struct assay_mla_cache_bytes at = assay_mla_cache_bytes_of(problem, i);
        struct assay_mla_cache_quantised token;
        assay_mla_cache_quantised_of(problem, &rules, tensors,
                                     part * problem->page_size + i, &token);
        expect_codes(given->payload == ASSAY_MLA_PAYLOAD_TIMES_INVERSE, &token, &at,
                     page);
        expect_rest(problem, &token, &at, page);
    }
    return ASSAY_RAN;
}
