/* SPDX-License-Identifier: MIT */
/* The tensors of a case, shaped by its operation. */
#ifndef ASSAY_TESTS_VERIFY_SHAPED_CASE_H
#define ASSAY_TESTS_VERIFY_SHAPED_CASE_H

#include "verify/operation/operation.h"

#include <check.h>

static inline void shape_case(const struct assay_case *the_case,
                              struct assay_tensors *tensors)
{
    static _Alignas(16) unsigned char problem[ASSAY_MAX_PROBLEM_BYTES];
    struct assay_message message = { "" };
    tensors->count = 0;
    ck_assert_msg(the_case->operation->bind(the_case, problem, &message) == ASSAY_RAN,
                  "%s", message.text);
    the_case->operation->shape(problem, tensors);
}

#endif
