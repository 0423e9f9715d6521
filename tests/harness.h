/* SPDX-License-Identifier: MIT */
/* Runs a list of Check tests as one suite, reporting as the environment asks (TAP under
 * meson). */
#ifndef ASSAY_TESTS_HARNESS_H
#define ASSAY_TESTS_HARNESS_H

#include <check.h>
#include <stdlib.h>

/* An assertion that holds writes its place to a file, for the report of a crash after it.
 * A loop writes each of its places once: all of them took most of some tests' time. */
static inline void mark_place(const char *file, int line)
{
    static struct {
        const char *file;
        int line;
    } marked[8];
    static unsigned count;
    for (int i = 0; i < 8; i++)
        if (marked[i].line == line && marked[i].file == file) return;
    marked[count % 8].file = file;
    marked[count++ % 8].line = line;
    _mark_point(file, line);
}
#define _mark_point mark_place

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
