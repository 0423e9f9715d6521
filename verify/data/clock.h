/* SPDX-License-Identifier: MIT */
/* The clock by which everything is timed. */
#ifndef ASSAY_VERIFY_DATA_CLOCK_H
#define ASSAY_VERIFY_DATA_CLOCK_H

/* Seconds of the monotonic clock, from some point in the past. */
double assay_clock_seconds(void);

#endif
