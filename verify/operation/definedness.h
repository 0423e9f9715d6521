/* SPDX-License-Identifier: MIT */
/* What the contract says about every element of an output, in one map. */
#ifndef ASSAY_VERIFY_OPERATION_DEFINEDNESS_H
#define ASSAY_VERIFY_OPERATION_DEFINEDNESS_H

#include "verify/operation/operation.h"

/* Makes @map: one enum assay_definedness a logical element of tensor @output, to be freed
 * by the caller; NULL when all are defined. ASSAY_RAN or ASSAY_OUT_OF_MEMORY. */
enum assay_status assay_definedness_map(const struct assay_operation *operation,
                                        const void *problem,
                                        const struct assay_tensors *tensors, int output,
                                        uint8_t **map);

/* What a map, or its absence, says about an element. */
static inline enum assay_definedness assay_definedness_at(const uint8_t *map,
                                                          int64_t element)
{
    return map ? (enum assay_definedness)map[element] : ASSAY_DEFINED;
}

#endif
