/* SPDX-License-Identifier: MIT */
/* Unevaluated sums of two doubles (Dekker 1971, Knuth 4.2.2): what the oracle adds with.
 * Needs round to nearest, and magnitudes between 2^-900 and 2^900. */
#ifndef ASSAY_REF_ORACLE_PAIR_H
#define ASSAY_REF_ORACLE_PAIR_H

#include <math.h>

struct assay_pair {
    double high, low; /* the value is high + low */
};

/* x + y, exactly; high is the rounded sum. */
static inline struct assay_pair assay_pair_sum(double x, double y)
{
    const double sum = x + y, from_y = sum - x;
    return (struct assay_pair){ sum, (x - (sum - from_y)) + (y - from_y) };
}

/* x * y, exactly; high is the rounded product. */
static inline struct assay_pair assay_pair_product(double x, double y)
{
    const double product = x * y;
    return (struct assay_pair){ product, fma(x, y, -product) };
}

/* x + y, within 2^-102 * (|x| + |y|); exact when the three low parts that meet (of x, of
 * y, of the sum of the high parts) have a sum that is a double, and so has each two of
 * them. */
static inline struct assay_pair assay_pair_add(struct assay_pair x, struct assay_pair y)
{
    const struct assay_pair high = assay_pair_sum(x.high, y.high);
    return assay_pair_sum(high.high, high.low + x.low + y.low);
}

#endif
