/* SPDX-License-Identifier: MIT */
/* Geometric means over the cases of a group: an operation, and the recipe where it has
 * one. A group's line, for each candidate and cache, as JSON
 *
 *     {"type":"bench_group","group","candidate","cache","cases"[,"over_upstream",
 *      "least_over_upstream"][,"over_upstream_by_vendor"]
 *      [,"over_beside":[{"candidate","ratio"}...]]}
 *
 * over_upstream_by_vendor: ours over the vendor's library as measured here, over
 * upstream's over the same library as listed; cards and clocks cancel. The library is the
 * first candidate beside ours that names itself so ("cublaslt"). */
#ifndef ASSAY_VERIFY_COMMAND_BENCH_GROUPS_H
#define ASSAY_VERIFY_COMMAND_BENCH_GROUPS_H

#include "verify/command/bench.h"
#include "verify/command/bench_upstream.h"

struct assay_bench_groups;

/* "fp8_gemm_nt recipe=1d2d" */
void assay_bench_group_name(const struct assay_case *the_case,
                            char name[static ASSAY_MAX_GROUP_NAME]);

/* NULL when there is no memory. */
struct assay_bench_groups *assay_bench_groups_open(void);

/* Takes in a figure of the candidate that counts; those that are compared with nothing
 * are in no group. */
enum assay_status assay_bench_groups_add(struct assay_bench_groups *groups,
                                         const struct assay_measurement *measurement,
                                         const struct assay_upstream_figure *figure,
                                         struct assay_message *message);

/* Writes all groups to where the figures go. */
enum assay_status assay_bench_groups_write(const struct assay_bench_groups *groups,
                                           struct assay_bench_output *output,
                                           struct assay_message *message);

void assay_bench_groups_close(struct assay_bench_groups *groups);

#endif
