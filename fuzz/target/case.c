/* SPDX-License-Identifier: MIT */
/* Fuzzing target: a case line, up to where a case would take its memory. */
#include "fuzz/target/input.h"
#include "verify/data/buffers.h"
#include "verify/data/overrides.h"
#include "verify/operation/numerics.h"

static _Alignas(max_align_t) unsigned char problem[ASSAY_MAX_PROBLEM_BYTES];
static _Alignas(max_align_t) unsigned char numerics[ASSAY_MAX_NUMERICS_BYTES];

/* The canonical line is that of the case it gives. */
static void check_canonical(const struct assay_case *the_case)
{
    static struct assay_case again;
    char line[ASSAY_MAX_CASE_LINE], other[ASSAY_MAX_CASE_LINE];
    struct assay_message message = { "" };
    assay_case_format(the_case, line, sizeof(line));
    assert(assay_case_parse(line, &again, &message) == ASSAY_RAN);
    assay_case_format(&again, other, sizeof(other));
    assert(strcmp(line, other) == 0);
    assert(again.seed == the_case->seed && again.data == the_case->data &&
           again.operation == the_case->operation);
    assert(memcmp(again.value, the_case->value, sizeof(again.value)) == 0);
}

static void prepare(const struct assay_case *the_case)
{
    const struct assay_operation *const operation = the_case->operation;
    struct assay_message message = { "" };
    struct assay_tensors tensors = { .count = 0 };
    size_t bytes;
    enum assay_status status = operation->bind(the_case, problem, &message);
    check_answer(status, &message);
    if (status != ASSAY_RAN) return;
    operation->shape(problem, &tensors);
    check_answer(assay_overrides_check(the_case, &tensors, &message), &message);
    check_answer(assay_buffers_measure(&tensors, &bytes, &message), &message);
    status =
        assay_numerics_parse(operation, problem, the_case->numerics, numerics, &message);
    check_answer(status, &message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct assay_case the_case;
    struct assay_message message = { "" };
    char *const line = input_text(data, size);
    const enum assay_status status = assay_case_parse(line, &the_case, &message);
    check_answer(status, &message);
    if (status == ASSAY_RAN) {
        check_canonical(&the_case);
        prepare(&the_case);
    }
    free(line);
    return 0;
}
