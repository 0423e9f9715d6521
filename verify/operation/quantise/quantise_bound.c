/* SPDX-License-Identifier: MIT */
/* The bound of quantise.
 *
 * Let s = amax / 448 and v = x / s be exact, u = 2^-24 half a unit of f32 at 1.
 *
 * A power-of-two scale has no error. amax is an f32, so unless it is 448 * 2^e it is at
 * least 2^-23 / 1.75 of itself away: s is 2^e, or at least (1 + 1.14 u) 2^e, which rounds
 * to more than 2^e, or at most (1 - 1.14 u) 2^e, which rounds to 2^e at most. The same
 * holds for rn(amax * rn(1 / 448)), as rn(1 / 448) is 0.75 u too large. Rounded up to a
 * power of two all of these are what s is (tested for all significands of f32). x / 2^e
 * is exact in f32, or below 2^-126, where e4m3 makes zero of it. An f32 scale that
 * happens to be a power of two is as exact, whichever way it is found.
 *
 * Any other scale: one rounding (division) or two (rn(1 / 448), product): 2 u of s.
 * The quotient: the scale's two, one of 1 / s and one of the product, or fewer, when x is
 * divided by s or multiplied by 448 / amax: d = 4 u of |v|, and 2^-149 where f32 is
 * subnormal. Rounding to e4m3 is monotonic, so q lies between e4m3(v - d) and
 * e4m3(v + d): the bound is the larger distance of these two from v. In all but a few
 * elements both are the same code, and no other is allowed.
 *
 * The factor 1 + 2^-20 pays for second-order terms and for the oracle's own roundings, at
 * most 2^-52 of s and v. They are less than 1/64 of a bound that is not 0: that of sf is
 * 2^-23 of it; that of q is the distance of v from some code c or more, and
 * 448 x - c * amax is 0 or above 2^-29 of 448 |x|. */
#include "ref/kernel/quantise.h"
#include "ref/oracle/quantise.h"
#include "verify/operation/quantise/quantise.h"

#include <math.h>

#define SLACK          (1 + 0x1p-20)
#define SCALE_ERROR    (2 * 0x1p-24 * SLACK)
#define QUOTIENT_ERROR (4 * 0x1p-24 * SLACK)

static bool is_power_of_two(double scale)
{
    int exponent;
    return isfinite(scale) && frexp(scale, &exponent) == 0.5;
}

static double scale_bound(double scale)
{
    return is_power_of_two(scale) || !isfinite(scale) ? 0 : scale * SCALE_ERROR;
}

static double payload_bound(double quotient, bool is_exact)
{
    if (isnan(quotient)) return 0;
    const double error = is_exact ? 0 : fabs(quotient) * QUOTIENT_ERROR + 0x1p-149;
    return fmax(fabs(assay_e4m3_nearest(quotient - error) - quotient),
                fabs(assay_e4m3_nearest(quotient + error) - quotient));
}

void assay_quantise_expect(const struct assay_quantise_problem *problem,
                           const void *numerics, const struct assay_tensors *tensors,
                           int64_t part, const struct assay_expected *expected)
{
    const struct assay_quantise_numerics *const given = numerics;
    const struct assay_quantise_rules rules = {
        .by_raw_scale = given->order == ASSAY_QUANTISE_BY_RAW_SCALE,
        .ignores_nan = given->nan == ASSAY_AMAX_IGNORES_NAN,
        .keeps_nan_scale = given->ceil == ASSAY_CEIL_CUDA,
        .overflow_is_nan = given->overflow == ASSAY_E4M3_OVERFLOW_IS_NAN,
    };
    const struct assay_quantise_range range = assay_quantise_part_range(problem, part);
    const struct assay_quantise_range blocks = assay_quantise_blocks(problem, &range);
    const struct assay_expected *const q = &expected[ASSAY_QUANTISE_Q];
    const struct assay_expected *const sf = &expected[ASSAY_QUANTISE_SF];
    assay_quantise_oracle_part(problem, &rules, tensors, part, q->value, sf->value);
    for (int64_t i = 0; i < blocks.rows * blocks.columns; i++)
        sf->bound[i] = scale_bound(sf->value[i]);
    for (int64_t i = 0, at = 0; i < range.rows; i++)
        for (int64_t j = 0; j < range.columns; j++, at++) {
            const double scale =
                sf->value[i / problem->gran_m * blocks.columns + j / problem->gran_k];
            q->bound[at] = payload_bound(q->value[at],
                                         is_power_of_two(scale) && !rules.by_raw_scale);
        }
}
