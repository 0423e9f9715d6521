/* SPDX-License-Identifier: MIT */
/* Random cases, and what their results must be: some of them prove nothing, because all
 * that is expected is one constant, or there is no output at all. */
#ifndef ASSAY_TESTS_VERIFY_DRAWN_RESULT_H
#define ASSAY_TESTS_VERIFY_DRAWN_RESULT_H

#include "verify/check/trial.h"
#include "verify/operation/draw.h"

#include <check.h>

/* Case @at of the named operation, and its line of ASSAY_MAX_CASE_LINE characters. */
static inline void draw_case(const char *name, uint64_t seed, const char *purpose, int at,
                             double multiply_adds, struct assay_case *the_case,
                             char *line)
{
    struct assay_stream stream;
    assay_stream_open(&stream, seed, name, purpose, at);
    assay_draw(assay_operation_find(name), &stream, multiply_adds, the_case);
    assay_case_format(the_case, line, ASSAY_MAX_CASE_LINE);
}

/* The case has passed, or would have if it had proved something; counts these. */
static inline void expect_drawn_result(const struct assay_result *result,
                                       const char *line, int *indecisive)
{
    const bool is_blind = !result->is_decisive && result->verdict != ASSAY_NOT_JUDGED &&
                          result->verdict <= ASSAY_BOUNDED;
    ck_assert_msg(result->has_passed || is_blind, "%s: %s", line,
                  assay_verdicts[result->verdict].name);
    *indecisive += is_blind;
}

#endif
