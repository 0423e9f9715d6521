/* SPDX-License-Identifier: MIT */
/* What people read about a case and a run, to the letter. */
#include "tests/verify/reported.h"

#include <fcntl.h>
#include <unistd.h>

START_TEST(a_passing_case_is_one_line_that_ends_with_the_case)
{
    struct assay_result result = passing_result();
    char *const text = text_of(&result);
    ck_assert_str_eq(text, "equal     d: 24576 elements, 0 differ; error/bound 0.41 | "
                           "lse: 1 element, 0 differ   "
                           "fp8_gemm_nt m=128 n=192 k=1024 seed=7\n");
    free(text);
    assay_result_close(&result);
}
END_TEST

START_TEST(a_pass_tells_what_weakens_it)
{
    struct assay_result result = passing_result();
    result.verdict = ASSAY_EXPLAINED;
    strcpy(result.explanation, "cublaslt-fast");
    result.is_unverified_profile = true;
    result.output[0].defined = 100;
    result.output[0].differ = 1;
    result.output[0].unclaimed = 4;
    char *const text = text_of(&result);
    ck_assert_str_eq(text, "explained d: 100 of 24576 elements defined, 1 differs; "
                           "error/bound 0.41; 4 without a bound | "
                           "lse: 1 element, 0 differ; equals cublaslt-fast; "
                           "unverified profile   "
                           "fp8_gemm_nt m=128 n=192 k=1024 seed=7\n");
    free(text);
    assay_result_close(&result);
}
END_TEST

START_TEST(a_failing_case_shows_where_what_and_how_to_repeat)
{
    struct assay_result result = failing_result();
    char *const text = text_of(&result);
    ck_assert_str_eq(
        text, "FAILED outside  fp8_gemm_nt m=128 n=192 k=1024 seed=7\n"
              "  d: 24576 elements, 3 differ; error/bound 12.5; 2 outside the bound; "
              "1 without a bound\n"
              "    worst bits at [127, 191], tile 1,2\n"
              "      candidate  0x3fa7  1.3046875\n"
              "      reference  0x3fa0  1.25\n"
              "      distance   7 units in the last place\n"
              "    all that differ:\n"
              "      index       candidate   reference   ulp         place\n"
              "      [0, 5]      0x3fa0      0x3fa1      1           tile 0,0\n"
              "      [2, 17]     0x7fc0      0x3fa0      NaN         tile 0,0\n"
              "      [127, 191]  0x3fa7      0x3fa0      7           tile 1,2\n"
              "    where: all in 2 different places\n"
              "    worst error/bound 12.5 at [127, 191], tile 1,2\n"
              "      candidate  0x3fa7  1.3046875\n"
              "      oracle             1.2501\n"
              "      bound              0.0625\n"
              "  lse: 1 element, 0 differ\n"
              "  reference numerics: deepgemm-1d2d\n"
              "  repeat: assay verify 'fp8_gemm_nt m=128 n=192 k=1024 seed=7'\n");
    free(text);
    assay_result_close(&result);
}
END_TEST

START_TEST(many_differences_are_listed_in_part_and_one_place_is_named)
{
    struct assay_result result = failing_result();
    struct assay_output_result *const d = &result.output[0];
    d->differ = 1000;
    d->difference_count = 40;
    d->worst.ulps = UINT64_MAX;
    strcpy(result.explanation, "cublaslt-fast");
    for (int i = 0; i < d->difference_count; i++)
        d->difference[i] =
            (struct assay_difference){ 192 + i, 0x1234, 0x1235, 1, { "tile 0,1" } };
    char *const text = text_of(&result);
    assert_has(text, "    the first 10 of 1000 that differ:\n");
    assert_has(text, "      [1, 9]  0x1234      0x1235      1           tile 0,1\n");
    assert_lacks(text, "[1, 10]");
    assert_has(text, "    where: the first 40 in one place, tile 0,1\n");
    assert_has(text, "      distance   none: one of them is NaN\n");
    assert_has(text, "  explanation: equals cublaslt-fast\n");
    free(text);
    assay_result_close(&result);
}
END_TEST

START_TEST(a_contradiction_and_an_unverified_profile_are_said)
{
    struct assay_result result = failing_result();
    result.verdict = ASSAY_CONTRADICTION;
    result.model_max_error_over_bound = 1.5;
    result.is_unverified_profile = true;
    char *const text = text_of(&result);
    assert_has(text, "FAILED contradiction  ");
    assert_has(text, "the model itself is at 1.5 of the oracle's bound");
    assert_has(text, "  unverified profile: ");
    free(text);
    assay_result_close(&result);
}
END_TEST

START_TEST(remarks_stand_beside_every_verdict)
{
    struct assay_result results[] = { passing_result(), failing_result() };
    for (int i = 0; i < 2; i++) {
        results[i].remark = "ours: no upstream\nkernel";
        char *const text = text_of(&results[i]);
        assert_has(text, i ? "  remark: ours: no upstream?kernel\n"
                           : "; ours: no upstream?kernel   fp8_gemm_nt m=128");
        free(text);
        assay_result_close(&results[i]);
    }
}
END_TEST

START_TEST(exact_results_and_those_that_are_not_are_told_apart)
{
    struct assay_result result = passing_result();
    result.output[0].has_exact = true;
    char *text = text_of(&result);
    assert_has(text, "d: 24576 elements, 0 differ; error/bound 0.41; exact | lse");
    free(text);

    result.has_passed = false;
    result.verdict = ASSAY_CONTRADICTION;
    result.model_inexact = 2;
    result.output[0].inexact = 1;
    result.output[0].inexact_worst =
        (struct assay_difference){ 193, 0x8000, 0, 0, { "tile 0,0" } };
    text = text_of(&result);
    assert_has(text, "error/bound 0.41; 1 not exact\n");
    assert_has(text, "    worst inexact bits at [1, 1], tile 0,0\n"
                     "      candidate  0x8000  -0\n"
                     "      oracle     0x0000  0\n"
                     "      distance   0 units in the last place\n");
    assert_has(text, "  contradiction: the model itself differs from exact results in 2 "
                     "elements; this is a defect of assay\n");
    free(text);
    assay_result_close(&result);
}
END_TEST

START_TEST(findings_show_what_was_done_and_the_first_element)
{
    struct assay_result result = failing_result();
    result.output[0] = result.output[1];
    result.output_count = 1;
    add_findings(&result);
    char *const text = text_of(&result);
    ck_assert_str_eq(text,
                     "FAILED outside  fp8_gemm_nt m=128 n=192 k=1024 seed=7\n"
                     "  lse: 1 element, 0 differ\n"
                     "  check repeat: run 4 of 10 gave other bits\n"
                     "    the first of 17 elements, d at [2, 17], tile 0,0\n"
                     "      candidate  0x3fa0  1.25\n"
                     "      expected   0x3fa1  1.2578125\n"
                     "      distance   1 unit in the last place\n"
                     "  check poison: 1 defined element was never written\n"
                     "    lse at []\n"
                     "      candidate  0xffc00000  NaN\n"
                     "      expected   0x00000000  0\n"
                     "      distance   none: one of them is NaN\n"
                     "  note: check batch: some requests ? were run alone\n"
                     "  reference numerics: deepgemm-1d2d\n"
                     "  repeat: assay verify 'fp8_gemm_nt m=128 n=192 k=1024 seed=7'\n");
    free(text);
    assay_result_close(&result);
}
END_TEST

START_TEST(an_element_that_nobody_wrote_has_nothing_beside_it)
{
    struct assay_result result = failing_result();
    add_findings(&result);
    result.finding[0] = result.finding[1];
    result.finding_count = 1;
    result.finding[0].worst.reference = result.finding[0].worst.candidate;
    char *const text = text_of(&result);
    assert_has(text, "d at [2, 17], tile 0,0\n"
                     "      candidate  0x3fa0  1.25\n"
                     "  reference numerics");
    free(text);
    assay_result_close(&result);
}
END_TEST

START_TEST(notes_stand_beside_a_pass_and_failures_do_not_count_as_indecisive)
{
    struct assay_result result = passing_result();
    add_findings(&result);
    result.finding_count = 1;
    result.output[0] = result.output[1];
    result.output_count = 1;
    char *text = text_of(&result);
    ck_assert_str_eq(text, "equal     lse: 1 element, 0 differ; note: check batch: some "
                           "requests ? were run alone   "
                           "fp8_gemm_nt m=128 n=192 k=1024 seed=7\n");
    free(text);

    result.has_passed = result.is_decisive = false;
    result.verdict = ASSAY_OUTSIDE;
    result.finding_count = 2;
    text = text_of(&result);
    assert_has(text, "FAILED outside  fp8_gemm_nt m=128");
    free(text);
    assay_result_close(&result);
}
END_TEST

START_TEST(another_backend_as_reference_is_named_and_repeated)
{
    const struct assay_run_header header = { .command = "verify",
                                             .candidate = "plugin:./k.so",
                                             .reference = "oracle,plugin:an old.so",
                                             .checks = "bound,repeat",
                                             .repeats = 3 };
    struct assay_result result = failing_result();
    strcpy(result.reference, "plugin:an old.so");
    char *text = written("text", &header, &result, NULL);
    assert_has(text, "\n  reference: plugin:an old.so\n");
    assert_lacks(text, "reference numerics");
    assert_has(text, "seed=7' --candidate plugin:./k.so "
                     "--reference 'oracle,plugin:an old.so' --check bound,repeat "
                     "--repeats 3\n");
    free(text);
    text = text_of(&result);
    assert_has(text, "seed=7'\n");
    free(text);
    result.has_passed = true;
    text = text_of(&result);
    assert_has(text, "lse: 1 element, 0 differ; reference plugin:an old.so   fp8_gemm");
    free(text);
    assay_result_close(&result);
}
END_TEST

START_TEST(the_summary_names_checks_that_ran_the_candidate_again)
{
    struct assay_result results[] = { passing_result(), passing_result() };
    results[0].checks = check_bit("bitwise") | check_bit("bound") | check_bit("exact");
    results[0].candidate_runs = 1;
    char *text = written("text", &plain_header, &results[0], &summary);
    assert_lacks(text, "checks:");
    free(text);
    results[0].checks = check_bit("exact") | check_bit("repeat") | check_bit("poison");
    results[1].checks = check_bit("bound") | check_bit("repeat");
    results[1].candidate_runs = 22;

    size_t size;
    FILE *const file = open_memstream(&text, &size);
    void *const state = malloc(assay_report_text.state_bytes);
    assay_report_text.begin(state, file, &plain_header);
    for (int i = 0; i < 2; i++)
        assay_report_text.result(state, &results[i]);
    assay_report_text.end(state, &summary);
    fclose(file);
    free(state);
    assert_has(text, " contradiction\n"
                     "checks: bound, exact, repeat, poison; 23 runs of the candidate\n"
                     "240000 elements");
    free(text);
    assay_result_close(&results[0]);
    assay_result_close(&results[1]);
}
END_TEST

static void assert_repeat(const char *candidate, const char *require, const char *source,
                          const char *line)
{
    const struct assay_run_header header = { .command = "verify",
                                             .candidate = candidate,
                                             .require = require };
    struct assay_result result = broken_result(ASSAY_HUNG, "no answer in 10 s");
    strcpy(result.source, source);
    char expected[200];
    snprintf(expected, sizeof expected, "  repeat: assay verify %s\n", line);
    char *const text = written("text", &header, &result, NULL);
    assert_has(text, expected);
    free(text);
}

START_TEST(repeat_lines_name_what_is_not_the_default)
{
    assert_repeat("model", NULL, "", "'fp8_gemm_nt m=1 n=2 k=3 seed=1'");
    assert_repeat("", "", "", "'fp8_gemm_nt m=1 n=2 k=3 seed=1'");
    assert_repeat("plugin:./k.so", "equal", "",
                  "'fp8_gemm_nt m=1 n=2 k=3 seed=1' --candidate plugin:./k.so "
                  "--require equal");
    assert_repeat("exec:./it's ok", NULL, "",
                  "'fp8_gemm_nt m=1 n=2 k=3 seed=1' --candidate 'exec:./it'\\''s ok'");
    assert_repeat(NULL, NULL, "a b.safetensors", "--recorded 'a b.safetensors'");
    assert_repeat("recorded:x/a.safetensors", NULL, "x/a.safetensors",
                  "--recorded x/a.safetensors");
    assert_repeat("model", NULL, "x/a.safetensors",
                  "--recorded x/a.safetensors --candidate model");
}
END_TEST

START_TEST(a_case_that_did_not_run_shows_its_message)
{
    struct assay_result result = broken_result(ASSAY_CRASHED, "signal 11");
    char *const crashed = text_of(&result);
    ck_assert_str_eq(crashed,
                     "FAILED crashed  fp8_gemm_nt m=1 n=2 k=3 seed=1\n"
                     "  signal 11\n"
                     "  repeat: assay verify 'fp8_gemm_nt m=1 n=2 k=3 seed=1'\n");
    free(crashed);

    result = broken_result(ASSAY_UNSUPPORTED, "k is no multiple of 128");
    char *const unsupported = text_of(&result);
    ck_assert_str_eq(unsupported, "unsupported  fp8_gemm_nt m=1 n=2 k=3 seed=1\n"
                                  "  k is no multiple of 128\n");
    free(unsupported);
}
END_TEST

START_TEST(a_case_that_proves_nothing_says_why)
{
    struct assay_result result = passing_result();
    result.has_passed = result.is_decisive = false;
    result.output[0].is_constant = true;
    char *text = text_of(&result);
    assert_has(text, "indecisive  fp8_gemm_nt m=128");
    assert_has(text, "all expected elements of d are the same constant\n");
    assert_lacks(text, "elements of lse");
    assert_lacks(text, "FAILED");
    free(text);

    result.output[0].defined = result.output[1].defined = 0;
    text = text_of(&result);
    assert_has(text, "no element of the outputs is defined\n");
    assert_lacks(text, "constant");
    free(text);

    result.output[0].defined = 1;
    result.is_decisive = true;
    result.verdict = ASSAY_NOT_JUDGED;
    text = text_of(&result);
    assert_has(text, "FAILED not-judged  ");
    assert_has(text, "there was nothing to compare with\n");
    assert_lacks(text, "constant");
    free(text);
    assay_result_close(&result);
}
END_TEST

START_TEST(a_recorded_file_is_named_once_for_its_cases)
{
    static const char *const sources[] = { "a.st", "a.st", "b.st", "" };
    const struct assay_report *const report = assay_report_find("text");
    char *text = NULL;
    size_t size;
    FILE *const file = open_memstream(&text, &size);
    void *const state = malloc(report->state_bytes);
    struct assay_result result = passing_result();

    report->begin(state, file, &plain_header);
    for (int i = 0; i < 4; i++) {
        strcpy(result.source, sources[i]);
        snprintf(result.case_line, sizeof result.case_line, "case%d", i);
        report->result(state, &result);
    }
    fclose(file);
    char *rest = text;
    static const char *const ends[] = { "a.st:", "case0", "case1",
                                        "b.st:", "case2", "case3" };
    for (int i = 0; i < 6; i++) {
        char *const line = strsep(&rest, "\n");
        ck_assert_str_eq(line + strlen(line) - 5, ends[i]);
    }
    ck_assert_str_eq(rest, "");
    free(text);
    free(state);
    assay_result_close(&result);
}
END_TEST

START_TEST(text_summary_counts_and_ends_with_one_word)
{
    struct assay_result result = passing_result();
    char *text = written("text", &plain_header, &result, &summary);
    assert_has(text, "\n\n12 cases: 9 passed, 1 failed, 1 indecisive, 1 unsupported, "
                     "2 broken\n"
                     "verdicts: 5 equal, 6 explained, 7 bounded, 8 outside, "
                     "3 contradiction\n"
                     "240000 elements compared bit for bit, 239983 equal; "
                     "largest error/bound 0.75\n"
                     "FAILED\n");
    free(text);
    assay_result_close(&result);

    const struct assay_summary one = { .cases = 1,
                                       .passed = 1,
                                       .verdicts = { 0, 1 },
                                       .elements_compared = 1,
                                       .elements_equal = 1 };
    text = written("text", &plain_header, NULL, &one);
    ck_assert_str_eq(text, "\n1 case: 1 passed, 0 failed, 0 indecisive, 0 unsupported\n"
                           "verdicts: 1 equal\n"
                           "1 element compared bit for bit, 1 equal\n"
                           "PASSED\n");
    free(text);
}
END_TEST

START_TEST(nothing_selected_never_reads_as_passed)
{
    for (int exit_code = 0; exit_code <= 5; exit_code += 5) {
        const struct assay_summary empty = { .exit_code = exit_code };
        char *const text = written("text", &plain_header, NULL, &empty);
        assert_has(text, "\nnothing was selected\n");
        assert_lacks(text, "PASSED");
        free(text);
    }
    const struct assay_summary bad_input = { .exit_code = 2 };
    char *const text = written("text", &plain_header, NULL, &bad_input);
    assert_has(text, "\nFAILED\n");
    free(text);
}
END_TEST

/* Whether a text report on a terminal is coloured. */
static bool is_coloured_on_terminal(void)
{
    const struct assay_report *const report = assay_report_find("text");
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert_int_ge(terminal, 0);
    ck_assert_int_eq(grantpt(terminal), 0);
    ck_assert_int_eq(unlockpt(terminal), 0);
    FILE *const file = fopen(ptsname(terminal), "w");
    ck_assert_ptr_nonnull(file);
    void *const state = malloc(report->state_bytes);
    const struct assay_summary passed = { .cases = 1, .passed = 1 };

    report->begin(state, file, &plain_header);
    ck_assert_int_eq(report->end(state, &passed), ASSAY_RAN);
    char text[512] = "";
    /* The kernel hands the text over in pieces, when it likes. */
    for (size_t filled = 0; !strstr(text, "PASSED");) {
        const ssize_t length = read(terminal, text + filled, sizeof text - 1 - filled);
        ck_assert_int_gt(length, 0);
        filled += (size_t)length;
    }
    for (size_t filled = strlen(text); text[filled - 1] != '\n'; filled = strlen(text))
        ck_assert_int_gt(read(terminal, text + filled, sizeof text - 1 - filled), 0);
    fclose(file);
    close(terminal);
    free(state);
    assert_has(text, "PASSED");
    return strstr(text, "\033[32mPASSED\033[0m") != NULL;
}

START_TEST(colours_are_for_willing_terminals_only)
{
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
    ck_assert(is_coloured_on_terminal());
    setenv("NO_COLOR", "1", 1);
    ck_assert(!is_coloured_on_terminal());
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    ck_assert(!is_coloured_on_terminal());
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_passing_case_is_one_line_that_ends_with_the_case,
        a_pass_tells_what_weakens_it,
        a_failing_case_shows_where_what_and_how_to_repeat,
        many_differences_are_listed_in_part_and_one_place_is_named,
        a_contradiction_and_an_unverified_profile_are_said,
        remarks_stand_beside_every_verdict,
        exact_results_and_those_that_are_not_are_told_apart,
        findings_show_what_was_done_and_the_first_element,
        an_element_that_nobody_wrote_has_nothing_beside_it,
        notes_stand_beside_a_pass_and_failures_do_not_count_as_indecisive,
        another_backend_as_reference_is_named_and_repeated,
        the_summary_names_checks_that_ran_the_candidate_again,
        repeat_lines_name_what_is_not_the_default,
        a_case_that_did_not_run_shows_its_message,
        a_case_that_proves_nothing_says_why,
        a_recorded_file_is_named_once_for_its_cases,
        text_summary_counts_and_ends_with_one_word,
        nothing_selected_never_reads_as_passed,
        colours_are_for_willing_terminals_only,
        NULL,
    };
    return run_tests("report_text", tests);
}
