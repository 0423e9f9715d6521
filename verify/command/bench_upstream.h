/* SPDX-License-Identifier: MIT */
/* What other people's libraries reached, beside the cases of a suite. A line
 *
 *     #: upstream cold=1237 hot=1295 gbps=844 vendor=928
 *
 * is for the case in the next line: TFLOP/s with a cold and with a hot cache, GB/s with a
 * cold one, and TFLOP/s of the GPU vendor's library with a cold cache, measured together
 * with the others; what is unknown is left out. */
#ifndef ASSAY_VERIFY_COMMAND_BENCH_UPSTREAM_H
#define ASSAY_VERIFY_COMMAND_BENCH_UPSTREAM_H

#include "verify/case/case.h"

struct assay_upstream;

struct assay_upstream_figure { /* 0: unknown */
    double cold, hot, cold_gb_per_s, vendor_cold;
};

/* Without figures; NULL when there is no memory. */
struct assay_upstream *assay_upstream_open(void);

/* Adds what the suite @path says. */
enum assay_status assay_upstream_read(struct assay_upstream *upstream, const char *path,
                                      struct assay_message *message);

/* For that case, whatever its seed; NULL: there is none. */
const struct assay_upstream_figure *
assay_upstream_find(const struct assay_upstream *upstream,
                    const struct assay_case *the_case);

void assay_upstream_close(struct assay_upstream *upstream);

#endif
