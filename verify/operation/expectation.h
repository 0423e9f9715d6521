/* SPDX-License-Identifier: MIT */
/* The oracle's word on one part, with the memory it needs, and the walk over the elements
 * of a region. */
#ifndef ASSAY_VERIFY_OPERATION_EXPECTATION_H
#define ASSAY_VERIFY_OPERATION_EXPECTATION_H

#include "verify/operation/operation.h"

/* Visits a region in row-major order: @index counts inside it, @element is the logical
 * row-major index in the tensor. */
struct assay_region_walk {
    const struct assay_tensor *tensor;
    const struct assay_region *region;
    int64_t index, count, element;
    int64_t left; /* elements of the innermost run, this one counted */
};
struct assay_region_walk assay_region_begin(const struct assay_tensor *tensor,
                                            const struct assay_region *region);
void assay_region_next(struct assay_region_walk *walk);
/* To the first element behind the innermost run. */
void assay_region_next_run(struct assay_region_walk *walk);

struct assay_part_expectation { /* one entry a tensor; those of inputs unused */
    struct assay_region region[ASSAY_MAX_TENSORS];
    struct assay_expected expected[ASSAY_MAX_TENSORS];
};

/* Asks the oracle for part @part. To be closed whatever the status. */
enum assay_status assay_expect_part(const struct assay_operation *operation,
                                    const void *problem, const void *numerics,
                                    const struct assay_tensors *tensors, int64_t part,
                                    struct assay_part_expectation *expectation);
void assay_part_expectation_close(struct assay_part_expectation *expectation);

#endif
