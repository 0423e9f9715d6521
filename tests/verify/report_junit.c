/* SPDX-License-Identifier: MIT */
/* JUnit XML is read back, checked against tests/verify/junit.xsd, and holds each fact in
 * the place where CI systems look for it. */
#include "tests/verify/reported.h"

#include <libxml/parser.h>
#include <libxml/xmlschemas.h>
#include <libxml/xpath.h>

/* The report of @count results; to be freed. */
__attribute__((noinline)) static char *junit_of(const struct assay_run_header *header,
                                                const struct assay_result *results,
                                                int count,
                                                const struct assay_summary *totals)
{
    char *text = NULL;
    size_t size;
    FILE *const file = open_memstream(&text, &size);
    void *const state = malloc(assay_report_junit.state_bytes);

    ck_assert_int_eq(assay_report_junit.begin(state, file, header), ASSAY_RAN);
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(assay_report_junit.result(state, &results[i]), ASSAY_RAN);
    ck_assert_int_eq(assay_report_junit.end(state, totals), ASSAY_RAN);
    assay_report_junit.close(state);
    fclose(file);
    free(state);
    return text;
}

/* 0 if the document keeps to the schema. */
static int schema_verdict(xmlDoc *document)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/../tests/verify/junit.xsd", corpus_folder());
    xmlSchemaParserCtxt *const parser = xmlSchemaNewParserCtxt(path);
    xmlSchema *const schema = xmlSchemaParse(parser);
    ck_assert_msg(schema != NULL, "no schema in %s", path);
    xmlSchemaValidCtxt *const validator = xmlSchemaNewValidCtxt(schema);
    const int verdict = xmlSchemaValidateDoc(validator, document);
    xmlSchemaFreeValidCtxt(validator);
    xmlSchemaFree(schema);
    xmlSchemaFreeParserCtxt(parser);
    return verdict;
}

/* Parses strictly and checks against the schema. */
static xmlDoc *document_of(char *text)
{
    xmlDoc *const document = xmlReadMemory(text, (int)strlen(text), "junit.xml", NULL,
                                           XML_PARSE_NONET | XML_PARSE_PEDANTIC);
    ck_assert_msg(document != NULL, "no XML:\n%s", text);
    ck_assert_msg(schema_verdict(document) == 0, "against the schema:\n%s", text);
    free(text);
    return document;
}

static const struct assay_summary ran_two = { .cases = 2 };

static xmlDoc *one(const struct assay_result *result)
{
    return document_of(junit_of(&plain_header, result, 1, &ran_two));
}

/* String value of an XPath expression; valid until the next call. */
static const char *at(xmlDoc *document, const char *expression)
{
    static char value[16384];
    xmlXPathContext *const context = xmlXPathNewContext(document);
    xmlXPathObject *const object = xmlXPathEvalExpression(BAD_CAST expression, context);
    ck_assert_msg(object != NULL, "no XPath: %s", expression);
    xmlChar *const text = xmlXPathCastToString(object);
    ck_assert_uint_lt(strlen((const char *)text), sizeof value);
    strcpy(value, (const char *)text);
    xmlFree(text);
    xmlXPathFreeObject(object);
    xmlXPathFreeContext(context);
    return value;
}

static void assert_at(xmlDoc *document, const char *expression, const char *expected)
{
    ck_assert_msg(strcmp(at(document, expression), expected) == 0,
                  "%s is \"%s\"\nnot \"%s\"", expression, at(document, expression),
                  expected);
}

static void assert_totals(xmlDoc *document, const char *tests, const char *failures,
                          const char *errors, const char *skipped)
{
    static const char *const levels[] = { "/testsuites", "/testsuites/testsuite" };
    char expression[80];
    const char *const names[] = { "tests", "failures", "errors", "skipped" };
    const char *const values[] = { tests, failures, errors, skipped };
    for (int level = 0; level < 2; level++)
        for (int i = 0; i < 4; i++) {
            snprintf(expression, sizeof expression, "%s/@%s", levels[level], names[i]);
            assert_at(document, expression, values[i]);
        }
    assert_at(document, "count(//testcase)", tests);
    assert_at(document, "count(//failure)", failures);
    assert_at(document, "count(//error)", errors);
    assert_at(document, "count(//skipped)", skipped);
}

START_TEST(a_passing_case_has_name_class_time_and_properties)
{
    struct assay_result result = passing_result();
    result.is_unverified_profile = true;
    result.remark = "ours: no upstream kernel";
    strcpy(result.explanation, "cublaslt-fast");
    xmlDoc *const document = one(&result);
    assert_totals(document, "1", "0", "0", "0");
    assert_at(document, "//testcase/@classname", "fp8_gemm_nt");
    assert_at(document, "//testcase/@name", "fp8_gemm_nt m=128 n=192 k=1024 seed=7");
    assert_at(document, "//testcase/@time", "0.250000");
    assert_at(document, "//testsuite/@time", "0.250000");
    assert_at(document, "count(//testcase/@file)", "0");
    assert_at(document, "//testcase//property[@name='verdict']/@value", "equal");
    assert_at(document, "//testcase//property[@name='numerics']/@value", "deepgemm-1d2d");
    assert_at(document, "//testcase//property[@name='explanation']/@value",
              "cublaslt-fast");
    assert_at(document, "//testcase//property[@name='error/bound']/@value", "0.4099");
    assert_at(document, "//testcase//property[@name='unverified_profile']/@value",
              "true");
    assert_at(document, "//testcase//property[@name='remark']/@value",
              "ours: no upstream kernel");
    xmlFreeDoc(document);
    assay_result_close(&result);
}
END_TEST

START_TEST(results_that_are_not_exact_are_counted_in_the_message)
{
    struct assay_result result = failing_result();
    result.model_inexact = 2;
    result.output[1].has_exact = true;
    result.output[1].inexact = 1;
    xmlDoc *const document = one(&result);
    assert_at(document, "//failure/@message",
              "outside; the model itself has 2 elements that are not exact; "
              "d: 3 of 24576 elements differ, 2 outside the bound; "
              "lse: 0 of 1 elements differ, 1 not exact");
    assert_at(document, "count(//property[@name='remark'])", "0");
    xmlFreeDoc(document);
    assay_result_close(&result);
}
END_TEST

START_TEST(findings_are_in_the_message_and_notes_are_properties)
{
    struct assay_result result = failing_result();
    result.output[0] = result.output[1];
    result.output_count = 1;
    add_findings(&result);
    strcpy(result.reference, "plugin:old.so");
    xmlDoc *const document = one(&result);
    assert_at(document, "//failure/@message",
              "outside; check repeat: run 4 of 10 gave other bits; "
              "check poison: 1 defined element was never written");
    assert_has(at(document, "//failure"), "  check repeat: run 4 of 10 gave other bits\n"
                                          "    the first of 17 elements, d at [2, 17], "
                                          "tile 0,0\n      candidate  0x3fa0  1.25\n");
    assert_at(document, "//testcase//property[@name='note']/@value",
              "check batch: some requests ? were run alone");
    assert_at(document, "count(//property[@name='note'])", "1");
    assert_at(document, "//testcase//property[@name='reference']/@value",
              "plugin:old.so");
    assert_at(document, "count(//property[@name='numerics'])", "0");
    assert_at(document, "//testcase//property[@name='checks']/@value",
              "bitwise bound repeat poison batch");
    xmlFreeDoc(document);
    assay_result_close(&result);
}
END_TEST

START_TEST(a_failure_is_typed_by_its_verdict_and_begins_with_the_repeat_line)
{
    struct assay_result result = failing_result();
    xmlDoc *const document = one(&result);
    assert_totals(document, "1", "1", "0", "0");
    assert_at(document, "//failure/@type", "outside");
    assert_at(document, "//failure/@message",
              "outside; d: 3 of 24576 elements differ, 2 outside the bound");
    const char *const text = at(document, "//failure");
    static const char repeat[] = "assay verify 'fp8_gemm_nt m=128 n=192 k=1024 seed=7'\n";
    ck_assert_int_eq(strncmp(text, repeat, strlen(repeat)), 0);
    assert_has(text, "worst bits at [127, 191], tile 1,2\n");
    assert_has(text, "candidate  0x3fa7  1.3046875\n");
    assert_has(text, "where: all in 2 different places\n");
    xmlFreeDoc(document);
    assay_result_close(&result);
}
END_TEST

static const struct {
    enum assay_verdict verdict;
    double model_ratio;
    const char *require, *explanation, *type, *message;
} verdicts_below[] = {
    { ASSAY_BOUNDED, 0.5, "equal", "", "bounded",
      "bounded, equal is required; d: 3 of 24576 elements differ, 0 outside the bound" },
    { ASSAY_EXPLAINED, -1, NULL, "cublaslt-fast", "explained",
      "explained; d: 3 of 24576 elements differ, 0 outside the bound; "
      "equals cublaslt-fast" },
    { ASSAY_CONTRADICTION, 1.5, NULL, "", "contradiction",
      "contradiction; the model itself is at 1.5 of the oracle's bound; "
      "d: 3 of 24576 elements differ, 0 outside the bound" },
    { ASSAY_NOT_JUDGED, -1, NULL, "", "not-judged",
      "not-judged; d: 3 of 24576 elements differ, 0 outside the bound" },
};

START_TEST(every_verdict_below_the_required_one_is_a_failure_of_its_type)
{
    for (size_t i = 0; i < sizeof verdicts_below / sizeof *verdicts_below; i++) {
        struct assay_result result = failing_result();
        const struct assay_run_header header = { .command = "verify",
                                                 .candidate = "oracle",
                                                 .require = verdicts_below[i].require };
        result.verdict = verdicts_below[i].verdict;
        result.model_max_error_over_bound = verdicts_below[i].model_ratio;
        strcpy(result.explanation, verdicts_below[i].explanation);
        result.output[0].outside = 0;
        xmlDoc *const document = document_of(junit_of(&header, &result, 1, &ran_two));
        assert_totals(document, "1", "1", "0", "0");
        assert_at(document, "//failure/@type", verdicts_below[i].type);
        assert_at(document, "//failure/@message", verdicts_below[i].message);
        assert_has(at(document, "//failure"),
                   "assay verify 'fp8_gemm_nt m=128 n=192 k=1024 seed=7' "
                   "--candidate oracle");
        assert_at(document, "/*/*/properties/property[@name='candidate']/@value",
                  "oracle");
        xmlFreeDoc(document);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(what_did_not_run_to_its_end_is_an_error_of_its_status)
{
    static const enum assay_status statuses[] = {
        ASSAY_REFUSED,       ASSAY_CRASHED,     ASSAY_HUNG,
        ASSAY_OUT_OF_MEMORY, ASSAY_DEVICE_LOST, ASSAY_FAILED,
    };
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        const struct assay_result result = broken_result(statuses[i], "signal 11");
        xmlDoc *const document = one(&result);
        assert_totals(document, "1", "0", "1", "0");
        assert_at(document, "//error/@type", assay_status_name(statuses[i]));
        assert_at(document, "//error/@message", "signal 11");
        assert_at(document, "//testcase//property[@name='status']/@value",
                  assay_status_name(statuses[i]));
        assert_has(at(document, "//error"),
                   "assay verify 'fp8_gemm_nt m=1 n=2 k=3 seed=1'\n");
        xmlFreeDoc(document);
    }
}
END_TEST

START_TEST(an_unsupported_case_is_skipped_with_its_reason)
{
    const struct assay_result results[] = {
        broken_result(ASSAY_UNSUPPORTED, "needs a GPU"),
        broken_result(ASSAY_UNSUPPORTED, ""),
    };
    xmlDoc *const document = document_of(junit_of(&plain_header, results, 2, &ran_two));
    assert_totals(document, "2", "0", "0", "2");
    assert_at(document, "//testcase[1]/skipped/@type", "unsupported");
    assert_at(document, "//testcase[1]/skipped/@message", "needs a GPU");
    assert_at(document, "//testcase[2]/skipped/@message", "unsupported");
    xmlFreeDoc(document);
}
END_TEST

START_TEST(an_indecisive_case_is_skipped_with_its_reason)
{
    struct assay_result result = passing_result();
    result.has_passed = result.is_decisive = false;
    xmlDoc *document = one(&result);
    assert_totals(document, "1", "0", "0", "1");
    assert_at(document, "//skipped/@type", "indecisive");
    assert_at(document, "//skipped/@message",
              "indecisive: all expected elements are one constant");
    xmlFreeDoc(document);

    result.verdict = ASSAY_NOT_JUDGED;
    document = one(&result);
    assert_at(document, "//skipped/@message",
              "indecisive: there was nothing to compare with");
    xmlFreeDoc(document);

    result.output[0].defined = result.output[1].defined = 0;
    document = one(&result);
    assert_at(document, "//skipped/@message",
              "indecisive: no element of the outputs is defined");
    xmlFreeDoc(document);
    assay_result_close(&result);
}
END_TEST

START_TEST(wrong_outputs_are_a_failure_even_where_evidence_is_thin)
{
    struct assay_result result = failing_result();
    result.is_decisive = false;
    xmlDoc *const document = one(&result);
    assert_totals(document, "1", "1", "0", "0");
    xmlFreeDoc(document);
    assay_result_close(&result);
}
END_TEST

START_TEST(a_run_of_nothing_holds_an_error)
{
    const struct assay_summary nothing = { .exit_code = 5 };
    xmlDoc *document = document_of(junit_of(&plain_header, NULL, 0, &nothing));
    assert_totals(document, "1", "0", "1", "0");
    assert_at(document, "//testcase/@name", "no case was selected");
    assert_at(document, "//error/@message", "no case was selected");
    xmlFreeDoc(document);

    const struct assay_summary all = { .cases = 1, .unsupported = 1, .exit_code = 5 };
    const struct assay_result result = broken_result(ASSAY_UNSUPPORTED, "needs a GPU");
    document = document_of(junit_of(&plain_header, &result, 1, &all));
    assert_totals(document, "2", "0", "1", "1");
    assert_at(document, "//error/@message", "all selected cases are unsupported");
    xmlFreeDoc(document);
}
END_TEST

START_TEST(repeated_lines_get_source_index_and_number)
{
    static const struct {
        const char *source, *line, *name;
    } cases[] = {
        { "", "op b=2", "op b=2" },
        { "", "op a=1", "op a=1" },
        { "x.st", "op a=1", "op a=1 (x.st case 0)" },
        { "x.st", "op c=3", "op c=3" },
        { "x.st", "op a=1", "op a=1 (x.st case 2)" },
        { "y.st", "op a=1", "op a=1 (y.st case 0)" },
        { "x.st", "op a=1", "op a=1 (x.st case 0) (2)" },
        { "", "op a=1", "op a=1 (2)" },
        { "", "op d=4", "op d=4" },
        { "", "op a=1", "op a=1 (3)" },
        { "", "op d=4", "op d=4 (2)" },
    };
    enum { COUNT = sizeof cases / sizeof *cases };
    struct assay_result results[COUNT];
    for (int i = 0; i < COUNT; i++) {
        results[i] = broken_result(ASSAY_UNSUPPORTED, "not here");
        strcpy(results[i].case_line, cases[i].line);
        strcpy(results[i].source, cases[i].source);
    }
    xmlDoc *const document =
        document_of(junit_of(&plain_header, results, COUNT, &ran_two));
    for (int i = 0; i < COUNT; i++) {
        char expression[64];
        snprintf(expression, sizeof expression, "//testcase[%d]/@name", i + 1);
        assert_at(document, expression, cases[i].name);
        snprintf(expression, sizeof expression, "string(//testcase[%d]/@file)", i + 1);
        assert_at(document, expression, cases[i].source);
    }
    xmlFreeDoc(document);
}
END_TEST

/* Every byte, and the well-formed characters that XML has not. */
START_TEST(hostile_text_stays_valid_xml)
{
    struct assay_result result = broken_result(
        ASSAY_CRASHED, "a\x1b[31m<b>&\"c\"\n]]>\xff\xef\xbf\xbe\xef\xbf\xbf");
    strcpy(result.source, "d\xc3\xa9j\xe0\xb4 vu\x01\xc2\x85'.safetensors");
    for (int byte = 1; byte < 256; byte++)
        result.case_line[byte - 1] = (char)byte;
    result.case_line[255] = '\0';
    xmlDoc *const document = one(&result);
    assert_at(document, "//error/@message", "a?[31m<b>&\"c\"?]]>???????");
    assert_at(document, "//testcase/@file",
              "d\xc3\xa9j?? vu??"
              "?'.safetensors");
    const char *const name = at(document, "//testcase/@name");
    ck_assert_uint_eq(strlen(name), 255);
    for (int byte = 1; byte < 256; byte++)
        ck_assert_int_eq(name[byte - 1], byte >= 32 && byte < 127 ? byte : '?');
    xmlFreeDoc(document);

    memset(result.case_line, '\xf0', sizeof result.case_line - 1);
    result.case_line[sizeof result.case_line - 1] = '\0';
    xmlFreeDoc(one(&result));
}
END_TEST

static void say_nothing(void *context, const char *format, ...)
{
    (void)context, (void)format;
}

START_TEST(the_schema_refuses_what_consumers_would_drop)
{
    static const char *const wrong[] = {
        "<testcase classname='c' time='0'/>",
        "<testcase classname='c' name='n'/>",
        "<testcase classname='c' name='n' time='0'/>"
        "<testcase classname='c' name='n' time='0'/>",
        "<testcase classname='c' name='n' time='nan'/>",
        "<testcase classname='c' name='n' time='0'><failure type='t'/></testcase>",
        "<testcase classname='c' name='n' time='0'><failure type='t' message='a&#10;b'/>"
        "</testcase>",
        "<testcase classname='c' name='n' time='0'><ok/></testcase>",
        "<testcase classname='c' name='n' time='0'><error type='t' message='m'/>"
        "<failure type='t' message='m'/></testcase>",
    };
    xmlSetGenericErrorFunc(NULL, say_nothing);
    static const char right[] = "<testcase classname='c' name='n' time='0'/>";
    for (size_t i = 0; i <= sizeof wrong / sizeof *wrong; i++) {
        const bool is_wrong = i < sizeof wrong / sizeof *wrong;
        char text[1024];
        snprintf(text, sizeof text,
                 "<testsuites tests='1' failures='0' errors='0' time='0'>"
                 "<testsuite name='s' tests='1' failures='0' errors='0' time='0'>%s"
                 "</testsuite></testsuites>",
                 is_wrong ? wrong[i] : right);
        xmlDoc *const document = xmlReadMemory(text, (int)strlen(text), "", NULL, 0);
        ck_assert_ptr_nonnull(document);
        ck_assert_msg((schema_verdict(document) != 0) == is_wrong, "%s", text);
        xmlFreeDoc(document);
    }
}
END_TEST

START_TEST(a_report_that_is_given_up_frees_what_it_holds)
{
    struct assay_result result = failing_result();
    char *text = NULL;
    size_t size;
    FILE *const file = open_memstream(&text, &size);
    void *const state = calloc(1, assay_report_junit.state_bytes);

    assay_report_junit.close(state);
    ck_assert_int_eq(assay_report_junit.begin(state, file, &plain_header), ASSAY_RAN);
    ck_assert_int_eq(assay_report_junit.result(state, &result), ASSAY_RAN);
    assay_report_junit.close(state);
    assay_report_junit.close(state);
    fclose(file);
    ck_assert_uint_eq(size, 0);
    free(text);
    free(state);
    assay_result_close(&result);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_passing_case_has_name_class_time_and_properties,
        results_that_are_not_exact_are_counted_in_the_message,
        findings_are_in_the_message_and_notes_are_properties,
        a_failure_is_typed_by_its_verdict_and_begins_with_the_repeat_line,
        every_verdict_below_the_required_one_is_a_failure_of_its_type,
        what_did_not_run_to_its_end_is_an_error_of_its_status,
        an_unsupported_case_is_skipped_with_its_reason,
        an_indecisive_case_is_skipped_with_its_reason,
        wrong_outputs_are_a_failure_even_where_evidence_is_thin,
        a_run_of_nothing_holds_an_error,
        repeated_lines_get_source_index_and_number,
        hostile_text_stays_valid_xml,
        the_schema_refuses_what_consumers_would_drop,
        a_report_that_is_given_up_frees_what_it_holds,
        NULL,
    };
    return run_tests("report_junit", tests);
}
