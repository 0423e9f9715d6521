/* SPDX-License-Identifier: MIT */
/* How long work takes: warm-ups that do not count, then the median of some repeats. */
#ifndef ASSAY_VERIFY_COMMAND_TIMING_H
#define ASSAY_VERIFY_COMMAND_TIMING_H

#include "verify/case/message.h"

enum { ASSAY_MAX_REPEATS = 1000 };

struct assay_timing {
    int warm_ups, repeats; /* 1 <= repeats <= ASSAY_MAX_REPEATS (asserted) */
};

/* Median wall-clock seconds of one call of @work, never 0; the mean of the middle two
 * when @repeats is even. Stops at the first status other than ASSAY_RAN. */
enum assay_status assay_median_seconds(const struct assay_timing *timing,
                                       enum assay_status (*work)(void *context),
                                       void *context, double *seconds);

/* Of @count >= 1 samples, which are sorted; the mean of the middle two. */
double assay_median(double *sample, int count);

#endif
