/* SPDX-License-Identifier: MIT */
/* The loop over the parts of a case: the only place with threads. Parts write disjoint
 * outputs, so the bits do not depend on the number of threads. */
#ifndef ASSAY_VERIFY_OPERATION_PARTS_H
#define ASSAY_VERIFY_OPERATION_PARTS_H

#include "verify/operation/operation.h"

/* Calls @work for every part; the first status other than ASSAY_RAN (by part number)
 * is returned, and no new part is begun after one. */
enum assay_status
assay_for_each_part(int64_t parts, enum assay_status (*work)(void *context, int64_t part),
                    void *context);

/* The same for the parts of a case: with one thread where it is too small to be worth
 * more. */
enum assay_status
assay_for_each_part_of(const struct assay_operation *operation, const void *problem,
                       enum assay_status (*work)(void *context, int64_t part),
                       void *context);

/* Runs the model over all parts: ASSAY_RAN or ASSAY_OUT_OF_MEMORY. */
enum assay_status assay_run_model(const struct assay_operation *operation,
                                  const void *problem, const void *numerics,
                                  const struct assay_tensors *tensors);

#endif
