/* SPDX-License-Identifier: MIT */
#include "verify/operation/definedness.h"

#include "verify/operation/expectation.h"

#include <stdlib.h>

static enum assay_status add_part(const struct assay_operation *operation,
                                  const void *problem,
                                  const struct assay_tensors *tensors, int output,
                                  int64_t part, uint8_t *map)
{
    struct assay_region region;
    operation->region(problem, part, output, &region);
    struct assay_region_walk at = assay_region_begin(&tensors->item[output], &region);
    uint8_t *const definedness = malloc((size_t)at.count + 1);
    if (!definedness) return ASSAY_OUT_OF_MEMORY;
    operation->defined(problem, tensors, part, output, definedness);
    for (; at.index < at.count; assay_region_next(&at))
        map[at.element] = definedness[at.index];
    free(definedness);
    return ASSAY_RAN;
}

enum assay_status assay_definedness_map(const struct assay_operation *operation,
                                        const void *problem,
                                        const struct assay_tensors *tensors, int output,
                                        uint8_t **map)
{
    *map = NULL;
    if (!operation->defined) return ASSAY_RAN;
    const size_t elements = (size_t)assay_tensor_elements(&tensors->item[output]);
    *map = calloc(elements + 1, 1);
    enum assay_status status = *map ? ASSAY_RAN : ASSAY_OUT_OF_MEMORY;
    const int64_t parts = operation->parts(problem);
    for (int64_t part = 0; status == ASSAY_RAN && part < parts; part++)
        status = add_part(operation, problem, tensors, output, part, *map);
    return status;
}
