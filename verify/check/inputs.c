/* SPDX-License-Identifier: MIT */
#include "verify/check/inputs.h"

#include "verify/data/exchange.h"
#include "verify/data/overrides.h"

#include <string.h>

/* Whether the input is written before or by a run; the recording is not ours. */
static bool is_written(const struct assay_case *the_case,
                       const struct assay_tensor *tensor)
{
    bool is_named = assay_exchange_takes_plan(tensor);
    for (int i = 0; i < the_case->explicit_bits_count; i++)
        is_named |= strcmp(the_case->explicit_bits[i].tensor, tensor->name) == 0;
    return is_named;
}

static enum assay_status open_recorded(const struct assay_case *the_case,
                                       struct assay_recording *recording, int index,
                                       struct assay_tensors *tensors,
                                       struct assay_buffers *buffers,
                                       struct assay_message *message)
{
    enum assay_status status =
        assay_recording_bind_inputs(recording, index, tensors, message);
    const struct assay_tensors kept = *tensors;
    for (int i = 0; i < tensors->count; i++)
        if (kept.item[i].is_output || is_written(the_case, &kept.item[i]))
            tensors->item[i].data = NULL;
    if (status == ASSAY_RAN) status = assay_buffers_open(buffers, tensors, message);
    for (int i = 0; status == ASSAY_RAN && i < tensors->count; i++) {
        const struct assay_tensor *const tensor = &tensors->item[i];
        if (!tensor->is_output && tensor->data != kept.item[i].data)
            memcpy(tensor->data, kept.item[i].data, (size_t)assay_tensor_bytes(tensor));
    }
    return status;
}

static enum assay_status open_generated(const struct assay_case *the_case,
                                        const void *problem,
                                        struct assay_tensors *tensors,
                                        struct assay_buffers *buffers,
                                        struct assay_message *message)
{
    if (the_case->data == ASSAY_DATA_RECORDED)
        return assay_fail(message, ASSAY_REFUSED,
                          "data=recorded needs the file that holds the inputs; give it "
                          "with --recorded");
    const enum assay_status status = assay_buffers_open(buffers, tensors, message);
    if (status == ASSAY_RAN)
        the_case->operation->fill(problem, the_case->data, the_case->seed, tensors);
    return status;
}

enum assay_status assay_inputs_check(const struct assay_case *the_case,
                                     const void *problem,
                                     const struct assay_tensors *tensors,
                                     struct assay_message *message)
{
    const struct assay_operation *const operation = the_case->operation;
    if (!operation->check_inputs || the_case->is_unsafe) return ASSAY_RAN;
    return operation->check_inputs(problem, tensors, message);
}

bool assay_inputs_are_legal(const struct assay_operation *operation, const void *problem,
                            const struct assay_tensors *tensors)
{
    struct assay_message ignored;
    return !operation->check_inputs ||
           operation->check_inputs(problem, tensors, &ignored) == ASSAY_RAN;
}

enum assay_status assay_inputs_open(const struct assay_case *the_case,
                                    struct assay_recording *recording, int index,
                                    void *problem, struct assay_tensors *tensors,
                                    struct assay_buffers *buffers,
                                    struct assay_message *message)
{
    const struct assay_operation *const operation = the_case->operation;
    enum assay_status status = operation->bind(the_case, problem, message);
    if (status != ASSAY_RAN) return status;
    operation->shape(problem, tensors);
    status = recording
                 ? open_recorded(the_case, recording, index, tensors, buffers, message)
                 : open_generated(the_case, problem, tensors, buffers, message);
    if (status != ASSAY_RAN) return status;
    status = assay_overrides_apply(the_case, tensors, message);
    if (status != ASSAY_RAN) return status;
    return assay_inputs_check(the_case, problem, tensors, message);
}
