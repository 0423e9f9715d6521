/* SPDX-License-Identifier: MIT */
/* Backend "model[:NUMERICS]": the bit-faithful CPU model. Without NUMERICS it computes
 * what the case's as= says. */
#include "verify/backend/backend.h"
#include "verify/operation/numerics.h"
#include "verify/operation/parts.h"

#include <stdlib.h>
#include <string.h>

extern const struct assay_backend assay_backend_model;

static enum assay_status open_model(const char *argument, void **state,
                                    struct assay_message *message)
{
    if (argument && strlen(argument) >= ASSAY_MAX_NUMERICS_TEXT)
        return assay_fail(message, ASSAY_REFUSED,
                          "the numerics behind 'model:' are longer than %d characters",
                          ASSAY_MAX_NUMERICS_TEXT - 1);
    *state = strdup(argument ? argument : "");
    return *state ? ASSAY_RAN
                  : assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a backend");
}

static const char *numerics_text(const char *argument, const struct assay_run_call *call)
{
    return *argument ? argument : call->the_case->numerics;
}

static enum assay_status claim(void *state, const struct assay_run_call *call,
                               struct assay_backend_claim *claim,
                               struct assay_message *message)
{
    (void)message;
    claim->has_numerics = true;
    strcpy(claim->numerics, numerics_text(state, call));
    return ASSAY_RAN;
}

static enum assay_status run(void *state, const struct assay_run_call *call,
                             struct assay_message *message)
{
    const struct assay_operation *const operation = call->the_case->operation;
    _Alignas(max_align_t) char numerics[ASSAY_MAX_NUMERICS_BYTES];
    enum assay_status status = assay_numerics_parse(
        operation, call->problem, numerics_text(state, call), numerics, message);
    if (status != ASSAY_RAN) return status;
    status = assay_run_model(operation, call->problem, numerics, call->tensors);
    return status == ASSAY_RAN
               ? status
               : assay_fail(message, status, "no memory for a part of the model");
}

const struct assay_backend assay_backend_model = {
    .scheme = "model",
    .argument = "NUMERICS[,knob=value...]",
    .summary = "the CPU model of the hardware, to the bit",
    .is_trusted = true,
    .is_model = true,
    .open = open_model,
    .claim = claim,
    .run = run,
    .close = free,
};
