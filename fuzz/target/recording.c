/* SPDX-License-Identifier: MIT */
/* Fuzzing target: a recorded file, and its tensors bound to its cases. */
#include "verify/data/recording.h"

#include "fuzz/target/input.h"
#include "verify/operation/operation.h"

enum { MAX_CASES = 16 };

static _Alignas(max_align_t) unsigned char problem[ASSAY_MAX_PROBLEM_BYTES];

/* Each tensor lies aligned in memory of its own size, and may be looked at. */
static void check_tensors(const struct assay_operation *operation,
                          const struct assay_tensors *tensors)
{
    struct assay_message message = { "" };
    bool is_complete = true;
    for (int i = 0; i < tensors->count; i++) {
        const struct assay_tensor *const tensor = &tensors->item[i];
        is_complete &= tensor->data || assay_tensor_bytes(tensor) == 0;
        if (!tensor->data) continue;
        assert((uintptr_t)tensor->data % assay_format_bytes(tensor->format) == 0);
        touch(tensor->data, (size_t)assay_tensor_bytes(tensor));
    }
    if (is_complete && operation->check_inputs)
        check_answer(operation->check_inputs(problem, tensors, &message), &message);
}

static void bind_case(struct assay_recording *recording, int index)
{
    const struct assay_case *const the_case = &recording->cases[index];
    const struct assay_operation *const operation = the_case->operation;
    struct assay_message message = { "" };
    struct assay_tensors tensors = { .count = 0 };
    enum assay_status status = operation->bind(the_case, problem, &message);
    check_answer(status, &message);
    if (status != ASSAY_RAN) return;
    operation->shape(problem, &tensors);
    status = assay_recording_bind(recording, index, &tensors, &message);
    check_answer(status, &message);
    if (status == ASSAY_RAN) check_tensors(operation, &tensors);
    operation->shape(problem, &tensors);
    status = assay_recording_bind_inputs(recording, index, &tensors, &message);
    check_answer(status, &message);
    if (status == ASSAY_RAN) check_tensors(operation, &tensors);
}

/* "N/name" names a tensor of case N. */
static void check_names(const struct assay_recording *recording)
{
    for (int i = 0; i < recording->file.count; i++) {
        const char *const name = recording->file.entry[i].name;
        if (strchr(name, '/')) assert(strtoll(name, NULL, 10) < recording->count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct assay_recording recording;
    struct assay_message message = { "" };
    const enum assay_status status =
        assay_recording_open(&recording, input_file(data, size), &message);
    check_answer(status, &message);
    if (status == ASSAY_RAN) check_names(&recording);
    for (int i = 0; status == ASSAY_RAN && i < recording.count && i < MAX_CASES; i++)
        bind_case(&recording, i);
    assay_recording_close(&recording);
    return 0;
}
