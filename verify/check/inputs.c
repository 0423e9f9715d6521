/* SPDX-License-Identifier: MIT */
#include "verify/check/inputs.h"

#include "verify/data/overrides.h"

static enum assay_status bind_recorded(struct assay_recording *recording, int index,
                                       struct assay_tensors *tensors,
                                       struct assay_message *message)
{
    const enum assay_status status =
        assay_recording_bind(recording, index, tensors, message);
    for (int i = 0; i < tensors->count; i++)
        if (tensors->item[i].is_output) tensors->item[i].data = NULL;
    return status;
}

static enum assay_status check_contents(const struct assay_case *the_case,
                                        const void *problem,
                                        const struct assay_tensors *tensors,
                                        struct assay_message *message)
{
    const struct assay_operation *const operation = the_case->operation;
    if (!operation->check_inputs || the_case->is_unsafe) return ASSAY_RAN;
    return operation->check_inputs(problem, tensors, message);
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
    if (recording)
        status = bind_recorded(recording, index, tensors, message);
    else if (the_case->data == ASSAY_DATA_RECORDED)
        status = assay_fail(message, ASSAY_REFUSED,
                            "data=recorded needs the file that holds the inputs; give it "
                            "with --recorded");
    if (status == ASSAY_RAN) status = assay_buffers_open(buffers, tensors, message);
    if (status != ASSAY_RAN) return status;
    if (!recording) operation->fill(problem, the_case->data, the_case->seed, tensors);
    status = assay_overrides_apply(the_case, tensors, message);
    if (status != ASSAY_RAN) return status;
    return check_contents(the_case, problem, tensors, message);
}
