/* SPDX-License-Identifier: MIT */
/* Fuzzing target: numerics as text, "NAME[,knob=value...]", of the case on the line
 * before them. */
#include "verify/operation/numerics.h"

#include "fuzz/target/input.h"

static _Alignas(max_align_t) unsigned char problem[ASSAY_MAX_PROBLEM_BYTES];
static _Alignas(max_align_t) unsigned char numerics[ASSAY_MAX_NUMERICS_BYTES];

/* Their text gives the same numerics, whose text it is. */
static void check_canonical(const struct assay_operation *operation)
{
    char text[ASSAY_MAX_NUMERICS_TEXT], again[ASSAY_MAX_NUMERICS_TEXT];
    struct assay_message message = { "" };
    assay_numerics_format(operation, numerics, text, sizeof(text));
    memset(numerics, 0xA5, sizeof(numerics));
    const enum assay_status status =
        assay_numerics_parse(operation, problem, text, numerics, &message);
    assert(status == ASSAY_RAN);
    assay_numerics_format(operation, numerics, again, sizeof(again));
    assert(strcmp(text, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct assay_case the_case;
    struct assay_message message = { "" };
    char *const line = input_text(data, size), *const text = input_rest(line);
    enum assay_status status = assay_case_parse(line, &the_case, &message);
    if (status == ASSAY_RAN)
        status = the_case.operation->bind(&the_case, problem, &message);
    if (status == ASSAY_RAN)
        status =
            assay_numerics_parse(the_case.operation, problem, text, numerics, &message);
    check_answer(status, &message);
    if (status == ASSAY_RAN) check_canonical(the_case.operation);
    free(line);
    return 0;
}
