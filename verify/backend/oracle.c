/* SPDX-License-Identifier: MIT */
/* Backend "oracle": the mathematical function of the stored inputs, rounded once to the
 * output format. */
#include "ref/format/minifloat.h"
#include "verify/backend/backend.h"
#include "verify/operation/definedness.h"
#include "verify/operation/expectation.h"
#include "verify/operation/numerics.h"
#include "verify/operation/parts.h"

#include <stdlib.h>

extern const struct assay_backend assay_backend_oracle;

struct oracle_run {
    const struct assay_operation *operation;
    const void *problem, *numerics;
    const struct assay_tensors *tensors;
    uint8_t *map[ASSAY_MAX_TENSORS];
};

static enum assay_status open_oracle(const char *argument, void **state,
                                     struct assay_message *message)
{
    *state = NULL;
    return argument ? assay_fail(message, ASSAY_REFUSED,
                                 "backend oracle takes no argument, but got '%s'; "
                                 "write just 'oracle'",
                                 argument)
                    : ASSAY_RAN;
}

static enum assay_status claim(void *state, const struct assay_run_call *call,
                               struct assay_backend_claim *claim,
                               struct assay_message *message)
{
    (void)state, (void)call, (void)message;
    claim->has_numerics = false;
    return ASSAY_RAN;
}

uint32_t assay_oracle_bits(enum assay_format format, double value)
{
    const struct assay_minifloat *const codec = assay_minifloat(format);
    return codec ? assay_minifloat_encode(codec, value, ASSAY_OVERFLOW_SPECIAL)
                 : (uint32_t)value;
}

static void store(const struct assay_tensor *tensor, const struct assay_region *region,
                  const double *value, const uint8_t *map)
{
    for (struct assay_region_walk at = assay_region_begin(tensor, region);
         at.index < at.count; assay_region_next(&at))
        if (assay_definedness_at(map, at.element) == ASSAY_DEFINED)
            assay_tensor_set_bits(tensor, at.element,
                                  assay_oracle_bits(tensor->format, value[at.index]));
}

static enum assay_status oracle_part(void *context, int64_t part)
{
    const struct oracle_run *const run = context;
    struct assay_part_expectation expectation;
    enum assay_status status = assay_expect_part(
        run->operation, run->problem, run->numerics, run->tensors, part, &expectation);
    if (status == ASSAY_RAN)
        for (int i = 0; i < run->tensors->count; i++)
            if (run->tensors->item[i].is_output)
                store(&run->tensors->item[i], &expectation.region[i],
                      expectation.expected[i].value, run->map[i]);
    assay_part_expectation_close(&expectation);
    return status;
}

static enum assay_status run(void *state, const struct assay_run_call *call,
                             struct assay_message *message)
{
    (void)state;
    const struct assay_operation *const operation = call->the_case->operation;
    _Alignas(max_align_t) char numerics[ASSAY_MAX_NUMERICS_BYTES];
    enum assay_status status = assay_numerics_parse(
        operation, call->problem, call->the_case->numerics, numerics, message);
    if (status != ASSAY_RAN) return status;
    struct oracle_run run = {
        operation, call->problem, numerics, call->tensors, { NULL }
    };
    for (int i = 0; i < call->tensors->count && status == ASSAY_RAN; i++)
        if (call->tensors->item[i].is_output)
            status = assay_definedness_map(operation, call->problem, call->tensors, i,
                                           &run.map[i]);
    if (status == ASSAY_RAN)
        status = assay_for_each_part(operation->parts(call->problem), oracle_part, &run);
    for (int i = 0; i < ASSAY_MAX_TENSORS; i++)
        free(run.map[i]);
    return status == ASSAY_RAN
               ? status
               : assay_fail(message, status, "no memory for a part of the oracle");
}

static void close_oracle(void *state)
{
    (void)state;
}

const struct assay_backend assay_backend_oracle = {
    .scheme = "oracle",
    .argument = NULL,
    .summary = "the mathematics in FP64 or better, rounded once",
    .is_trusted = true,
    .open = open_oracle,
    .claim = claim,
    .run = run,
    .close = close_oracle,
};
