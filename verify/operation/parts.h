/* SPDX-License-Identifier: MIT */
/* The loops over the parts of a case and over the rows of an input: the only place with
 * threads. Parts and rows write disjoint memory, so the bits do not depend on the number
 * of threads. */
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

/* Calls @work, which makes up @elements elements of an input, for every row: with one
 * thread where there are too few elements to be worth more. */
void assay_for_each_row(int64_t rows, int64_t elements,
                        void (*work)(const void *context, int64_t row),
                        const void *context);

/* Runs the model over all parts: ASSAY_RAN or ASSAY_OUT_OF_MEMORY. */
enum assay_status assay_run_model(const struct assay_operation *operation,
                                  const void *problem, const void *numerics,
                                  const struct assay_tensors *tensors);

#endif
