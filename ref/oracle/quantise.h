/* SPDX-License-Identifier: MIT */
/* Quantisation to e4m3 as mathematics: scales and quotients of the stored inputs before
 * anything is rounded to f32 or e4m3. It shares nothing with the model.
 *
 * Exactness: powers of two, and quotients by them, are exact; other scales and quotients
 * are rounded once, to double. */
#ifndef ASSAY_REF_ORACLE_QUANTISE_H
#define ASSAY_REF_ORACLE_QUANTISE_H

#include "ref/quantise_problem.h"

/* Where quantisers differ in what they mean, not in how they round. All false is what
 * DeepGEMM means, converting to e4m3 as Hopper does. */
struct assay_quantise_rules {
    bool by_raw_scale;    /* x is divided by the scale that was not rounded up yet */
    bool ignores_nan;     /* amax is that of the other elements */
    bool keeps_nan_scale; /* a NaN rounds up to NaN, not to 2^127 */
    bool overflow_is_nan; /* an infinite quotient is NaN, not 448 */
};

/* Fills @q with x / sf, an infinite quotient being what becomes of it, and @sf, of part
 * @part, row-major in their boxes. */
void assay_quantise_oracle_part(const struct assay_quantise_problem *problem,
                                const struct assay_quantise_rules *rules,
                                const struct assay_tensors *tensors, int64_t part,
                                double *q, double *sf);

/* Value of the e4m3 code nearest to @value, ties to even, at most 448 in magnitude. */
double assay_e4m3_nearest(double value);

#endif
