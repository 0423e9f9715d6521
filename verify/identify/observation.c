/* SPDX-License-Identifier: MIT */
#include "verify/identify/observation.h"

#include "verify/operation/definedness.h"
#include "verify/operation/expectation.h"

#include <stdlib.h>

static bool is_judged(const struct assay_observation *observation, int output,
                      int64_t element)
{
    switch (assay_definedness_at(observation->map[output], element)) {
    case ASSAY_DEFINED: return true;
    case ASSAY_UNTOUCHED: return !observation->is_recording;
    default: return false;
    }
}

enum assay_status assay_observation_open(struct assay_observation *observation)
{
    const struct assay_tensors *const tensors = observation->tensors;
    enum assay_status status = ASSAY_RAN;
    observation->parts = observation->operation->parts(observation->problem);
    observation->judged = 0;
    for (int i = 0; i < ASSAY_MAX_TENSORS; i++)
        observation->map[i] = NULL;
    for (int i = 0; i < tensors->count && status == ASSAY_RAN; i++) {
        if (!tensors->item[i].is_output) continue;
        status = assay_definedness_map(observation->operation, observation->problem,
                                       tensors, i, &observation->map[i]);
        const int64_t elements = assay_tensor_elements(&tensors->item[i]);
        for (int64_t at = 0; at < elements && status == ASSAY_RAN; at++)
            observation->judged += is_judged(observation, i, at);
    }
    return status;
}

void assay_observation_close(struct assay_observation *observation)
{
    for (int i = 0; i < ASSAY_MAX_TENSORS; i++)
        free(observation->map[i]);
    *observation = (struct assay_observation){ 0 };
}

enum assay_status assay_scratch_open(const struct assay_observation *observation,
                                     struct assay_scratch *scratch)
{
    struct assay_message ignored;
    scratch->tensors = *observation->tensors;
    for (int i = 0; i < scratch->tensors.count; i++)
        if (scratch->tensors.item[i].is_output) {
            assay_tensor_set_dense(&scratch->tensors.item[i]);
            scratch->tensors.item[i].data = NULL;
        }
    const enum assay_status status =
        assay_buffers_open(&scratch->buffers, &scratch->tensors, &ignored);
    return status == ASSAY_RAN ? status : ASSAY_OUT_OF_MEMORY;
}

void assay_scratch_close(struct assay_scratch *scratch)
{
    assay_buffers_close(&scratch->buffers);
}

int64_t assay_judged_in_part(const struct assay_observation *observation, int64_t part)
{
    const struct assay_tensors *const tensors = observation->tensors;
    int64_t judged = 0;
    for (int i = 0; i < tensors->count; i++) {
        struct assay_region region;
        if (!tensors->item[i].is_output) continue;
        observation->operation->region(observation->problem, part, i, &region);
        for (struct assay_region_walk at = assay_region_begin(&tensors->item[i], &region);
             at.index < at.count; assay_region_next(&at))
            judged += is_judged(observation, i, at.element);
    }
    return judged;
}

/* FNV-1a, a byte at a time. */
static uint64_t absorb(uint64_t hash, uint32_t bits)
{
    for (int shift = 0; shift < 32; shift += 8)
        hash = (hash ^ (bits >> shift & 0xFF)) * UINT64_C(0x100000001B3);
    return hash;
}

static void compare_region(const struct assay_observation *observation,
                           const struct assay_tensors *computed, int64_t part, int output,
                           struct assay_part_comparison *comparison)
{
    const struct assay_tensor *const observed = &observation->tensors->item[output];
    struct assay_region region;
    observation->operation->region(observation->problem, part, output, &region);
    for (struct assay_region_walk at = assay_region_begin(observed, &region);
         at.index < at.count; assay_region_next(&at)) {
        if (!is_judged(observation, output, at.element)) continue;
        const uint32_t bits = assay_tensor_bits(&computed->item[output], at.element);
        comparison->elements++;
        comparison->equal += bits == assay_tensor_bits(observed, at.element);
        comparison->bits = absorb(comparison->bits, bits);
    }
}

enum assay_status assay_compare_part(const struct assay_observation *observation,
                                     const void *numerics, struct assay_scratch *scratch,
                                     int64_t part,
                                     struct assay_part_comparison *comparison)
{
    const enum assay_status status = observation->operation->model(
        observation->problem, numerics, &scratch->tensors, part);
    *comparison = (struct assay_part_comparison){ .bits = UINT64_C(0xCBF29CE484222325) };
    for (int i = 0; i < scratch->tensors.count && status == ASSAY_RAN; i++)
        if (scratch->tensors.item[i].is_output)
            compare_region(observation, &scratch->tensors, part, i, comparison);
    return status;
}
