/* SPDX-License-Identifier: MIT */
/* Powers of two and whole numbers by the bits of doubles: what ldexp, ilogb and rint give
 * in the ranges named here, without a call for each element. */
#ifndef ASSAY_REF_ORACLE_ROUNDING_H
#define ASSAY_REF_ORACLE_ROUNDING_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* 2^exponent, for exponents of normal doubles */
static inline double assay_exact_power(int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof(power));
    return power;
}

/* floor(log2 |x|) of a normal double */
static inline int assay_exact_exponent(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return (int)(bits >> 52 & 2047) - 1023;
}

/* @x, |x| < 2^50, to the nearest whole number, ties to even, its sign kept: a sum between
 * 2^52 and 2^53 has no fraction. Needs round to nearest. */
static inline double assay_nearest_whole(double x)
{
    return copysign((x + 0x1.8p52) - 0x1.8p52, x);
}

#endif
