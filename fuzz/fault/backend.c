/* SPDX-License-Identifier: MIT */
/* Backend "fault:NAME": the model, with a planted fault in copies of its own. */
#include "fuzz/fault/fault.h"
#include "verify/data/buffers.h"
#include "verify/operation/numerics.h"
#include "verify/operation/parts.h"

#include <stdlib.h>
#include <string.h>

struct faulty {
    const struct assay_fault *fault;
    int64_t runs;
    float kept;
};

static enum assay_status open_fault(const char *argument, void **state,
                                    struct assay_message *message)
{
    const struct assay_fault *fault = NULL;
    if (!argument || !*argument)
        return assay_fail(message, ASSAY_REFUSED,
                          "backend fault needs a name; write fault:NAME with one of "
                          "`assay list faults`");
    const enum assay_status status = assay_fault_need(argument, &fault, message);
    if (status != ASSAY_RAN) return status;
    if (fault->kind == ASSAY_FAULT_VERIFIER)
        return assay_fail(message, ASSAY_REFUSED,
                          "fault '%s' is one of the verifier, not of a kernel; use "
                          "`assay selftest --fault %s`",
                          argument, argument);
    struct faulty *const faulty = calloc(1, sizeof(*faulty));
    if (!faulty)
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a backend");
    faulty->fault = fault;
    *state = faulty;
    return ASSAY_RAN;
}

static enum assay_status claim(void *state, const struct assay_run_call *call,
                               struct assay_backend_claim *claim,
                               struct assay_message *message)
{
    const struct faulty *const faulty = state;
    if (strcmp(faulty->fault->operation, call->the_case->operation->name) != 0)
        return assay_fail(message, ASSAY_UNSUPPORTED, "fault '%s' is one of %s only",
                          faulty->fault->name, faulty->fault->operation);
    claim->has_numerics = claim->is_deterministic = claim->is_batch_invariant = true;
    strcpy(claim->numerics, call->the_case->numerics);
    return ASSAY_RAN;
}

/* A run's own things. */
struct copies {
    union assay_problem_storage problem;
    union assay_numerics_storage numerics;
    struct assay_tensors tensors;
    struct assay_buffers buffers;
};

static enum assay_status copy_inputs(const struct assay_tensors *from,
                                     struct copies *copies, struct assay_message *message)
{
    for (int i = 0; i < from->count; i++)
        if (!from->item[i].is_output) copies->tensors.item[i].data = NULL;
    const enum assay_status status =
        assay_buffers_open(&copies->buffers, &copies->tensors, message);
    for (int i = 0; status == ASSAY_RAN && i < from->count; i++)
        if (!from->item[i].is_output)
            memcpy(copies->tensors.item[i].data, from->item[i].data,
                   (size_t)assay_tensor_bytes(&from->item[i]));
    return status;
}

static enum assay_status compute(struct faulty *faulty, const struct assay_run_call *call,
                                 struct copies *copies, struct assay_message *message)
{
    const struct assay_fault *const fault = faulty->fault;
    const struct assay_operation *const operation = call->the_case->operation;
    struct assay_fault_run run = { .the_case = call->the_case,
                                   .problem = &copies->problem,
                                   .numerics = &copies->numerics,
                                   .tensors = &copies->tensors,
                                   .runs = faulty->runs++,
                                   .launches = call->launches > 1 ? call->launches : 1,
                                   .kept = &faulty->kept };
    if (fault->before) fault->before(&run);
    if (fault->numerics) fault->numerics(run.numerics);
    if (assay_run_model(operation, run.problem, run.numerics, run.tensors) != ASSAY_RAN)
        return assay_fail(message, ASSAY_OUT_OF_MEMORY,
                          "no memory for a part of the model");
    if (fault->after) fault->after(&run);
    return ASSAY_RAN;
}

static enum assay_status run(void *state, const struct assay_run_call *call,
                             struct assay_message *message)
{
    struct faulty *const faulty = state;
    const struct assay_operation *const operation = call->the_case->operation;
    struct copies *const copies = calloc(1, sizeof(*copies));
    if (!copies) return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a run");
    memcpy(&copies->problem, call->problem, operation->problem_bytes);
    copies->tensors = *call->tensors;
    enum assay_status status = assay_numerics_parse(
        operation, call->problem, call->the_case->numerics, &copies->numerics, message);
    if (status == ASSAY_RAN && faulty->fault->before)
        status = copy_inputs(call->tensors, copies, message);
    if (status == ASSAY_RAN) status = compute(faulty, call, copies, message);
    assay_buffers_close(&copies->buffers);
    free(copies);
    return status;
}

const struct assay_backend assay_backend_fault = {
    .scheme = "fault",
    .argument = "NAME",
    .summary = "the model with a planted fault, to test verifiers",
    .is_trusted = true,
    .open = open_fault,
    .claim = claim,
    .run = run,
    .close = free,
};
