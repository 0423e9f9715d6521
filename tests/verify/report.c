/* SPDX-License-Identifier: MIT */
/* The registry of reports, the table of verdicts, and what all reports have in common. */
#include "tests/verify/reported.h"

START_TEST(reports_are_found_by_their_unique_names)
{
    int count = 0;
    for (; assay_reports[count]; count++) {
        ck_assert_ptr_eq(assay_report_find(assay_reports[count]->name),
                         assay_reports[count]);
        ck_assert(*assay_reports[count]->summary);
    }
    ck_assert_int_eq(count, 3);
    ck_assert_ptr_null(assay_report_find("xml"));
    ck_assert_ptr_null(assay_report_find(""));
}
END_TEST

START_TEST(every_verdict_has_a_name_and_a_meaning_of_its_own)
{
    static const char *const names[] = { "not-judged", "equal",   "explained",
                                         "bounded",    "outside", "contradiction" };
    ck_assert_int_eq(ASSAY_VERDICT_COUNT, 6);
    for (int i = 0; i < ASSAY_VERDICT_COUNT; i++) {
        ck_assert_str_eq(assay_verdicts[i].name, names[i]);
        ck_assert(*assay_verdicts[i].meaning);
    }
}
END_TEST

START_TEST(closing_a_result_empties_it_and_may_be_repeated)
{
    struct assay_result result = failing_result();
    assay_result_close(&result);
    ck_assert_ptr_null(result.output);
    ck_assert_int_eq(result.output_count, 0);
    assay_result_close(&result);
}
END_TEST

/* @bytes, of which the first is no ASCII, against jansson's strict decoder. */
static void assert_character_as_jansson_has_it(const unsigned char *bytes, size_t count)
{
    char text[8] = { 0 };
    memcpy(text, bytes, count);
    size_t expected = 0;
    for (size_t length = 2; length <= count && expected == 0; length++) {
        json_t *const string = json_stringn(text, length);
        if (string) expected = length;
        json_decref(string);
    }
    if (bytes[0] == 0xc2 && bytes[1] < 0xa0) expected = 0; /* C1 controls */
    ck_assert_msg(assay_report_character(text) == expected, "%02x %02x %02x %02x",
                  bytes[0], bytes[1], bytes[2], bytes[3]);
}

START_TEST(printable_characters_are_the_well_formed_ones_but_for_controls)
{
    for (int byte = 0; byte < 128; byte++) {
        const char text[2] = { (char)byte, '\0' };
        ck_assert_uint_eq(assay_report_character(text), byte >= 32 && byte < 127);
    }
    static const unsigned char follow[] = { 0x01, 0x41, 0x7f, 0x80, 0x8f, 0x90,
                                            0x9f, 0xa0, 0xbf, 0xc0, 0xed, 0xff };
    enum { FOLLOW = sizeof follow };
    for (int first = 128; first < 256; first++)
        for (int second = 1; second < 256; second++)
            for (int i = 0; i < FOLLOW * FOLLOW; i++) {
                const unsigned char bytes[4] = { (unsigned char)first,
                                                 (unsigned char)second,
                                                 follow[i / FOLLOW], follow[i % FOLLOW] };
                if ((first < 0xe0 && i > 0) || (first < 0xf0 && i % FOLLOW)) continue;
                assert_character_as_jansson_has_it(bytes, 4);
            }
    ck_assert_uint_eq(assay_report_character("\xe2\x82"), 0); /* cut off */
}
END_TEST

/* Codes whose values follow from the formats' definitions. */
static const struct {
    enum assay_format format;
    uint32_t bits;
    const char *hexadecimal, *json, *text;
} decoded[] = {
    { ASSAY_E4M3, 0x7e, "0x7e", "448.0", "448" },
    { ASSAY_E5M2, 0xfb, "0xfb", "-57344.0", "-57344" },
    { ASSAY_BF16, 0x8000, "0x8000", "-0.0", "-0" },
    { ASSAY_F16, 0x3c01, "0x3c01", "1.0009765625", "1.000976562" },
    { ASSAY_F32, 0x3f8ccccd, "0x3f8ccccd", "1.10000002384185791015625", "1.100000024" },
    { ASSAY_TF32, 0x3f800001, "0x3f800001", "1.00000011920928955078125", "1.000000119" },
    { ASSAY_U8, 0xff, "0xff", "255", "255" },
    { ASSAY_I32, 0xffffffff, "0xffffffff", "-1", "-1" },
    { ASSAY_I32, 0x7fffffff, "0x7fffffff", "2147483647", "2147483647" },
};

START_TEST(elements_of_every_format_are_written_as_bits_and_value)
{
    for (size_t i = 0; i < sizeof decoded / sizeof *decoded; i++) {
        struct assay_result result = failing_result();
        struct assay_output_result *const d = &result.output[0];
        d->tensor.format = decoded[i].format;
        d->worst.candidate = decoded[i].bits;
        d->worst.reference = d->bound_worst_bits = 0;
        d->difference[0] = d->worst;
        d->difference_count = 1;

        json_t *const object = json_of(&result);
        const json_t *const worst = json_object_get(
            json_array_get(json_object_get(object, "outputs"), 0), "worst");
        assert_json(json_object_get(worst, "candidate_value"), decoded[i].json);
        ck_assert_str_eq(json_string_value(json_object_get(worst, "candidate")),
                         decoded[i].hexadecimal);
        json_decref(object);

        char line[80];
        snprintf(line, sizeof line, "candidate  %s  %s\n", decoded[i].hexadecimal,
                 decoded[i].text);
        char *const text = text_of(&result);
        assert_has(text, line);
        free(text);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(hostile_text_stays_one_valid_line_in_both_reports)
{
    struct assay_result result = broken_result(ASSAY_REFUSED, "a\x1b[31m\"b\\\n\xff\x7f");
    strcpy(result.source, "d\xc3\xa9j\xe0\xb4 vu\n\xc2\x9bx'.safetensors");
    memset(result.case_line, 0xf0, sizeof result.case_line - 1);
    char *const json = written("json", &plain_header, &result, NULL);
    json_t *const object = json_line(json, 1);

    ck_assert_str_eq(strchr(strchr(json, '\n') + 1, '\n'), "\n");
    ck_assert_str_eq(json_string_value(json_object_get(object, "message")),
                     "a?[31m\"b\\???");
    ck_assert_str_eq(json_string_value(json_object_get(object, "source")),
                     "d\xc3\xa9j?? vu???x'.safetensors");
    ck_assert_uint_eq(json_string_length(json_object_get(object, "case")),
                      ASSAY_MAX_CASE_LINE - 1);
    json_decref(object);
    free(json);

    char *const text = text_of(&result);
    assert_has(text, "\n  a?[31m\"b\\???\n");
    assert_has(text, "d\xc3\xa9j?? vu???x'.safetensors:\n");
    assert_has(text, "--recorded $'d\\303\\251j\\340\\264 vu\\012\\302\\233x\\047"
                     ".safetensors'\n");
    ck_assert_ptr_null(strchr(text, '\x1b'));
    free(text);
}
END_TEST

START_TEST(a_full_device_is_a_failure_of_every_report)
{
    struct assay_result result = failing_result();
    for (const struct assay_report *const *report = assay_reports; *report; report++) {
        FILE *const file = fopen("/dev/full", "w");
        void *const state = malloc((*report)->state_bytes);
        (*report)->begin(state, file, &plain_header);
        const bool writes_in_end = (*report)->close != NULL;
        ck_assert_int_eq((*report)->result(state, &result),
                         writes_in_end ? ASSAY_RAN : ASSAY_FAILED);
        ck_assert_int_eq((*report)->end(state, &summary), ASSAY_FAILED);
        if (writes_in_end) (*report)->close(state);
        fclose(file);
        free(state);
    }
    assay_result_close(&result);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        reports_are_found_by_their_unique_names,
        every_verdict_has_a_name_and_a_meaning_of_its_own,
        closing_a_result_empties_it_and_may_be_repeated,
        printable_characters_are_the_well_formed_ones_but_for_controls,
        elements_of_every_format_are_written_as_bits_and_value,
        hostile_text_stays_one_valid_line_in_both_reports,
        a_full_device_is_a_failure_of_every_report,
        NULL,
    };
    return run_tests("report", tests);
}
