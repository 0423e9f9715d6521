/* SPDX-License-Identifier: MIT */
/* Random cases of an operation, as `assay list cases` draws them, judged one by one. */
#ifndef ASSAY_TESTS_VERIFY_DRAWN_CASES_H
#define ASSAY_TESTS_VERIFY_DRAWN_CASES_H

#include "tests/verify/drawn_result.h"
#include "tests/verify/judged_case.h"

/* @count cases of the named operation pass, and nine in ten prove something. Every
 * thirtieth may take @rare_multiply_adds, the others @multiply_adds. */
static inline void expect_drawn_cases_to_pass(const char *name, int count,
                                              double multiply_adds,
                                              double rare_multiply_adds)
{
    int indecisive = 0;
    for (int i = 0; i < count; i++) {
        struct assay_case the_case;
        char line[ASSAY_MAX_CASE_LINE];
        draw_case(name, 1, "case", i, i % 30 ? multiply_adds : rare_multiply_adds,
                  &the_case, line);
        struct assay_result result = result_of(line, "", NULL);
        expect_drawn_result(&result, line, &indecisive);
        assay_result_close(&result);
    }
    ck_assert_int_le(indecisive, count / 10);
}

#endif
