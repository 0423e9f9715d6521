/* SPDX-License-Identifier: MIT */
#include "verify/operation/expectation.h"

#include <stdlib.h>

static int64_t element_at(const struct assay_region_walk *walk)
{
    int64_t index = walk->index, element = 0, scale = 1;
    for (int i = walk->tensor->rank - 1; i >= 0; i--) {
        const int64_t count = walk->region->count[i];
        element += (walk->region->start[i] + index % count) * scale;
        index /= count;
        scale *= walk->tensor->shape[i];
    }
    return element;
}

static int64_t run_length(const struct assay_region_walk *walk)
{
    const int rank = walk->tensor->rank;
    return rank ? walk->region->count[rank - 1] : 1;
}

struct assay_region_walk assay_region_begin(const struct assay_tensor *tensor,
                                            const struct assay_region *region)
{
    struct assay_region_walk walk = { .tensor = tensor, .region = region, .count = 1 };
    for (int i = 0; i < tensor->rank; i++)
        walk.count *= region->count[i];
    if (walk.count) walk.element = element_at(&walk);
    walk.left = run_length(&walk);
    return walk;
}

void assay_region_next(struct assay_region_walk *walk)
{
    if (++walk->index >= walk->count) return;
    walk->element++;
    if (--walk->left > 0) return;
    walk->element = element_at(walk);
    walk->left = run_length(walk);
}

void assay_region_next_run(struct assay_region_walk *walk)
{
    walk->index += walk->left - 1;
    walk->left = 1;
    assay_region_next(walk);
}

enum assay_status assay_expect_part(const struct assay_operation *operation,
                                    const void *problem, const void *numerics,
                                    const struct assay_tensors *tensors, int64_t part,
                                    struct assay_part_expectation *expectation)
{
    *expectation = (struct assay_part_expectation){ 0 };
    for (int i = 0; i < tensors->count; i++) {
        if (!tensors->item[i].is_output) continue;
        struct assay_region *const region = &expectation->region[i];
        operation->region(problem, part, i, region);
        const size_t count = (size_t)assay_region_begin(&tensors->item[i], region).count;
        struct assay_expected *const expected = &expectation->expected[i];
        expected->value = calloc(2 * count + 1, sizeof(double));
        if (!expected->value) return ASSAY_OUT_OF_MEMORY;
        expected->bound = expected->value + count;
    }
    return operation->oracle(problem, numerics, tensors, part, expectation->expected);
}

void assay_part_expectation_close(struct assay_part_expectation *expectation)
{
    for (int i = 0; i < ASSAY_MAX_TENSORS; i++)
        free(expectation->expected[i].value);
}
