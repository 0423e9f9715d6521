/* SPDX-License-Identifier: MIT */
/* Random cases of an operation, as `assay list cases` draws them, judged one by one. */
#ifndef ASSAY_TESTS_VERIFY_DRAWN_CASES_H
#define ASSAY_TESTS_VERIFY_DRAWN_CASES_H

#include "tests/verify/judged_case.h"

/* @count cases of the named operation pass and prove something. Every thirtieth may take
 * @rare_multiply_adds, the others @multiply_adds. */
static inline void expect_drawn_cases_to_pass(const char *name, int count,
                                              double multiply_adds,
                                              double rare_multiply_adds)
{
    const struct assay_operation *const operation = assay_operation_find(name);
    for (int i = 0; i < count; i++) {
        struct assay_stream stream;
        struct assay_case the_case;
        char line[ASSAY_MAX_CASE_LINE];
        assay_stream_open(&stream, 1, name, "case", i);
        assay_case_init(&the_case, operation);
        operation->draw(&stream, i % 30 ? multiply_adds : rare_multiply_adds, &the_case);
        assay_case_format(&the_case, line, sizeof(line));
        struct assay_result result = result_of(line, "", NULL);
        ck_assert_msg(result.has_passed && result.is_decisive, "%s", line);
        assay_result_close(&result);
    }
}

#endif
