/* SPDX-License-Identifier: MIT */
/* The tensors of a case, shaped by its operation. */
#ifndef ASSAY_TESTS_VERIFY_SHAPED_CASE_H
#define ASSAY_TESTS_VERIFY_SHAPED_CASE_H

#include "verify/data/buffers.h"
#include "verify/data/overrides.h"
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

/* The same, with generated inputs in memory of their own. */
static inline void generate_case(const struct assay_case *the_case,
                                 struct assay_tensors *tensors,
                                 struct assay_buffers *buffers)
{
    static _Alignas(16) unsigned char problem[ASSAY_MAX_PROBLEM_BYTES];
    struct assay_message message = { "" };
    shape_case(the_case, tensors);
    ck_assert(the_case->operation->bind(the_case, problem, &message) == ASSAY_RAN);
    ck_assert(assay_buffers_open(buffers, tensors, &message) == ASSAY_RAN);
    the_case->operation->fill(problem, the_case->data, the_case->seed, tensors);
    ck_assert(assay_overrides_apply(the_case, tensors, &message) == ASSAY_RAN);
}

#endif
