/* SPDX-License-Identifier: MIT */
/* Fuzzing target: a suite. */
#include "fuzz/target/input.h"
#include "verify/case/case.h"

enum { REFUSED_CASE = 7 };

/* Takes a few cases and refuses the next, as a selection may. */
static enum assay_status visit(void *context, const struct assay_case *the_case,
                               struct assay_message *message)
{
    int *const count = context;
    assert(the_case->operation);
    if (++*count < REFUSED_CASE) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED, "not this one");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int count = 0;
    struct assay_message message = { "" };
    const enum assay_status status =
        assay_suite_read(input_file(data, size), visit, &count, &message);
    check_answer(status, &message);
    assert(status == ASSAY_RAN || status == ASSAY_REFUSED);
    assert(status == ASSAY_RAN ? count < REFUSED_CASE : count <= REFUSED_CASE);
    return 0;
}
