/* SPDX-License-Identifier: MIT */
/* Runs a list of Check tests as one suite, reporting as the environment asks (TAP under
 * meson). */
#ifndef ASSAY_TESTS_HARNESS_H
#define ASSAY_TESTS_HARNESS_H

#include <check.h>
#include <stdlib.h>

/* @tests ends with NULL. Returns the process's exit status. */
static inline int run_tests(const char *suite_name, const TTest *const *tests)
{
    Suite *const suite = suite_create(suite_name);
    TCase *const group = tcase_create(suite_name);
    tcase_set_timeout(group, 600);
    for (const TTest *const *test = tests; *test; test++)
        tcase_add_test(group, *test);
    suite_add_tcase(suite, group);

    SRunner *const runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The corpus folder: ASSAY_CORPUS, else "corpus" below the current folder. */
static inline const char *corpus_folder(void)
{
    const char *const folder = getenv("ASSAY_CORPUS");
    return folder ? folder : "corpus";
}

#endif
