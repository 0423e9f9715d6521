/* SPDX-License-Identifier: MIT */
#include "verify/command/timing.h"

#include "verify/data/clock.h"

#include <assert.h>
#include <stdlib.h>

static int by_size(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double assay_median(double *sample, int count)
{
    qsort(sample, (size_t)count, sizeof *sample, by_size);
    return (sample[(count - 1) / 2] + sample[count / 2]) / 2;
}

enum assay_status assay_median_seconds(const struct assay_timing *timing,
                                       enum assay_status (*work)(void *context),
                                       void *context, double *seconds)
{
    double sample[ASSAY_MAX_REPEATS];
    const int count = timing->repeats;

    assert(count >= 1 && count <= ASSAY_MAX_REPEATS);
    for (int i = -timing->warm_ups; i < count; i++) {
        const double start = assay_clock_seconds();
        const enum assay_status status = work(context);
        if (status != ASSAY_RAN) return status;
        if (i >= 0) sample[i] = assay_clock_seconds() - start;
    }
    const double median = assay_median(sample, count);
    /* The clock's resolution: a rate stays finite. */
    *seconds = median > 1e-9 ? median : 1e-9;
    return ASSAY_RAN;
}
