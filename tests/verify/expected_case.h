/* SPDX-License-Identifier: MIT */
/* A generated case of one part with the model's outputs and the oracle's word on them,
 * element by element. */
#ifndef ASSAY_TESTS_VERIFY_EXPECTED_CASE_H
#define ASSAY_TESTS_VERIFY_EXPECTED_CASE_H

#include "tests/verify/judged_case.h"
#include "verify/data/buffers.h"
#include "verify/operation/numerics.h"

#include <stdlib.h>

struct expected_case {
    _Alignas(16) char problem[ASSAY_MAX_PROBLEM_BYTES];
    struct assay_tensors tensors;
    struct assay_buffers buffers;
    int output;
    double *value, *bound; /* of tensor @output */
};

/* @numerics is the place in the operation's table. To be closed by the caller. */
static inline void open_expected(const char *text, int numerics, int output,
                                 struct expected_case *opened)
{
    const struct assay_case the_case = parsed(text);
    const struct assay_operation *const operation = the_case.operation;
    const void *const chosen = operation->numerics[numerics].numerics;
    struct assay_expected expected[ASSAY_MAX_TENSORS] = { { NULL, NULL } };
    struct assay_message message;
    ck_assert(operation->bind(&the_case, opened->problem, &message) == ASSAY_RAN);
    operation->shape(opened->problem, &opened->tensors);
    ck_assert(assay_buffers_open(&opened->buffers, &opened->tensors, &message) ==
              ASSAY_RAN);
    operation->fill(opened->problem, the_case.data, the_case.seed, &opened->tensors);
    ck_assert_int_eq(operation->parts(opened->problem), 1);
    const int64_t elements = assay_tensor_elements(&opened->tensors.item[output]);
    opened->output = output;
    opened->value = calloc((size_t)elements, sizeof(double));
    opened->bound = calloc((size_t)elements, sizeof(double));
    ck_assert(opened->value && opened->bound);
    expected[output] = (struct assay_expected){ opened->value, opened->bound };
    ck_assert(operation->model(opened->problem, chosen, &opened->tensors, 0) ==
              ASSAY_RAN);
    ck_assert(operation->oracle(opened->problem, chosen, &opened->tensors, 0, expected) ==
              ASSAY_RAN);
}

static inline void close_expected(struct expected_case *opened)
{
    free(opened->value);
    free(opened->bound);
    assay_buffers_close(&opened->buffers);
}

#endif
