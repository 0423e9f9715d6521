/* SPDX-License-Identifier: MIT */
/* Fractions in case lines, and which kinds of data an operation takes. The operations are
 * the test's own; decimal text is checked against the C library's conversions. */
#include "tests/harness.h"
#include "verify/case/case.h"
#include "verify/operation/operation.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const int64_t unit = 1000000000000;

static const struct assay_parameter fraction_parameters[] = {
    { .name = "p", .maximum = unit, .is_fraction = true, .default_value = unit / 10 },
    { .name = "softmax_scale",
      .minimum = 1,
      .maximum = 2 * unit,
      .is_fraction = true,
      .is_required = true },
    { .name = "wide",
      .minimum = INT64_MIN + 1,
      .maximum = INT64_MAX,
      .is_fraction = true },
    { .name = "list", .maximum = 9 * unit, .is_fraction = true, .is_list = true },
    { 0 },
};
static const struct assay_operation fractions = { .name = "probe_fractions",
                                                  .parameters = fraction_parameters };

static const struct assay_parameter no_parameters[] = { { 0 } };
static const struct assay_operation attention = {
    .name = "probe_attention",
    .parameters = no_parameters,
    .data_kinds =
        1u << ASSAY_DATA_NORMAL | 1u << ASSAY_DATA_EXACT | 1u << ASSAY_DATA_NEEDLE,
};
static const struct assay_operation any = { .name = "probe_any",
                                            .parameters = no_parameters };

const struct assay_operation *const assay_operations[] = { &fractions, &attention, &any,
                                                           NULL };

const struct assay_operation *assay_operation_find(const char *name)
{
    for (int i = 0; assay_operations[i]; i++)
        if (strcmp(assay_operations[i]->name, name) == 0) return assay_operations[i];
    return NULL;
}

static struct assay_case parsed(const char *line)
{
    struct assay_case the_case;
    struct assay_message message = { "" };
    ck_assert_msg(assay_case_parse(line, &the_case, &message) == ASSAY_RAN, "%s: %s",
                  line, message.text);
    return the_case;
}

static void assert_refused(const char *line, const char *wrong, const char *right)
{
    struct assay_case the_case;
    struct assay_message message = { "" };
    ck_assert_msg(assay_case_parse(line, &the_case, &message) == ASSAY_REFUSED,
                  "accepted: %s", line);
    ck_assert_msg(strstr(message.text, wrong) && strstr(message.text, right),
                  "'%s' gave: %s", line, message.text);
}

#define P "probe_fractions softmax_scale=1 p="
#define W "probe_fractions softmax_scale=1 wide="

START_TEST(fractions_are_kept_exactly_and_written_without_trailing_zeros)
{
    static const struct {
        const char *text, *canonical;
        int64_t value;
    } rows[] = {
        { "0", "0", 0 },
        { "0.0", "0", 0 },
        { "1", "1", 1000000000000 },
        { "1.000000000000", "1", 1000000000000 },
        { "0.2", "0.2", 200000000000 },
        { "0.20", "0.2", 200000000000 },
        { "0.0416666679", "0.0416666679", 41666667900 },
        { "0.000000000001", "0.000000000001", 1 },
        { "0.999999999999", "0.999999999999", 999999999999 },
        { "0.100000000000", NULL, 100000000000 }, /* the default */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char line[100], expected[100], canonical[ASSAY_MAX_CASE_LINE];
        snprintf(line, sizeof(line), P "%s", rows[i].text);
        const struct assay_case the_case = parsed(line);
        ck_assert_int_eq(assay_case_value(&the_case, "p"), rows[i].value);
        snprintf(expected, sizeof(expected), "probe_fractions%s%s softmax_scale=1 seed=0",
                 rows[i].canonical ? " p=" : "",
                 rows[i].canonical ? rows[i].canonical : "");
        assay_case_format(&the_case, canonical, sizeof(canonical));
        ck_assert_str_eq(canonical, expected);
    }
}
END_TEST

START_TEST(fractions_may_be_negative_and_large_where_their_range_is)
{
    static const struct {
        const char *text;
        int64_t value;
    } rows[] = {
        { "-0.5", -500000000000 },
        { "-0.000000000001", -1 },
        { "-12.25", -12250000000000 },
        { "9223372.036854775807", INT64_MAX },
        { "-9223372.036854775807", -INT64_MAX },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char line[100], canonical[ASSAY_MAX_CASE_LINE];
        snprintf(line, sizeof(line), W "%s", rows[i].text);
        const struct assay_case the_case = parsed(line);
        ck_assert_int_eq(assay_case_value(&the_case, "wide"), rows[i].value);
        assay_case_format(&the_case, canonical, sizeof(canonical));
        ck_assert_msg(strstr(canonical, rows[i].text) != NULL, "%s", canonical);
    }
}
END_TEST

START_TEST(what_is_no_fraction_in_range_is_refused_with_what_is_legal)
{
    static const struct {
        const char *line, *wrong, *right;
    } rows[] = {
        { P "1.000000000001", "p=1.000000000001 is out of range", "from 0 to 1" },
        { P "2", "p=2 is out of range", "p takes a decimal fraction from 0 to 1" },
        { P "-0.1", "p=-0.1 is out of range", "from 0 to 1" },
        { P "99999999999999999999", "is out of range", "from 0 to 1" },
        { P "18446744.1", "is out of range", "from 0 to 1" },
        { W "9223372.036854775808", "is out of range", "to 9223372.036854775807" },
        { W "-9223372.036854775808", "is out of range", "from -9223372.036854775807" },
        { W "9999999", "is out of range", "to 9223372.036854775807" },
        { W "10000000", "is out of range", "to 9223372.036854775807" },
        { "probe_fractions softmax_scale=0", "softmax_scale=0 is out of range",
          "from 0.000000000001 to 2" },
        { "probe_fractions", "'softmax_scale' is missing",
          "softmax_scale takes a decimal fraction from 0.000000000001 to 2" },
        { P "0.1234567890125", "more than 12 decimals", "the nearest is 0.123456789013" },
        { P "0.1234567890124999", "more than 12 decimals", "is 0.123456789012" },
        { P "0.9999999999995", "more than 12 decimals", "the nearest is 1" },
        { P "0.0000000000000", "more than 12 decimals", "the nearest is 0" },
        { P "7.0000000000001", "more than 12 decimals", "the nearest is 1" },
        { W "-0.0000000000015", "more than 12 decimals", "is -0.000000000002" },
        { P ".5", "p=.5 is not a decimal fraction", "from 0 to 1" },
        { P "1.", "p=1. is not a decimal fraction", "from 0 to 1" },
        { P ".", "p=. is not a decimal fraction", "from 0 to 1" },
        { P "00.5", "p=00.5 is not a decimal fraction", "from 0 to 1" },
        { P "01", "p=01 is not a decimal fraction", "from 0 to 1" },
        { P "+0.5", "p=+0.5 is not a decimal fraction", "from 0 to 1" },
        { P "-0", "p=-0 is not a decimal fraction", "from 0 to 1" },
        { W "-0.0", "wide=-0.0 is not a decimal fraction", "from" },
        { W "--1", "wide=--1 is not a decimal fraction", "from" },
        { W "-", "wide=- is not a decimal fraction", "from" },
        { P "1e-3", "p=1e-3 is not a decimal fraction", "from 0 to 1" },
        { P "0.1e1", "p=0.1e1 is not a decimal fraction", "from 0 to 1" },
        { P "0.1.2", "p=0.1.2 is not a decimal fraction", "from 0 to 1" },
        { P "0,1", "p=0,1 is not a decimal fraction", "from 0 to 1" },
        { P "0.-1", "p=0.-1 is not a decimal fraction", "from 0 to 1" },
        { P "0x1", "p=0x1 is not a decimal fraction", "from 0 to 1" },
        { P "nan", "p=nan is not a decimal fraction", "from 0 to 1" },
        { P "0.12345678901234x", "is not a decimal fraction", "from 0 to 1" },
        { "probe_fractions softmax_scale=1 list=1,x", "list=x is not a decimal fraction",
          "from 0 to 9" },
        { "probe_fractions softmax_scale=1 list=1,9.5", "list=9.5 is out of range",
          "from 0 to 9" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_refused(rows[i].line, rows[i].wrong, rows[i].right);
}
END_TEST

START_TEST(lists_may_hold_fractions)
{
    char canonical[ASSAY_MAX_CASE_LINE];
    int count;
    const struct assay_case the_case =
        parsed("probe_fractions softmax_scale=1 list=0.50,3,0.000000000007");
    const int64_t *const values = assay_case_list(&the_case, "list", &count);
    ck_assert_int_eq(count, 3);
    ck_assert_int_eq(values[0], unit / 2);
    ck_assert_int_eq(values[1], 3 * unit);
    ck_assert_int_eq(values[2], 7);
    assay_case_format(&the_case, canonical, sizeof(canonical));
    ck_assert_str_eq(canonical, "probe_fractions softmax_scale=1 "
                                "list=0.5,3,0.000000000007 seed=0");
}
END_TEST

static uint64_t random_state = 88172645463325252U;

static uint64_t random_word(void)
{
    /* xorshift64, Marsaglia 2003. */
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

/* Decimal text by the C library: two integers, the zeros behind taken off. */
static void write_decimal(char *text, size_t size, int64_t value)
{
    const int64_t magnitude = value < 0 ? -value : value;
    snprintf(text, size, "%s%" PRId64 ".%012" PRId64, value < 0 ? "-" : "",
             magnitude / unit, magnitude % unit);
    size_t length = strlen(text);
    while (text[length - 1] == '0')
        text[--length] = '\0';
    if (text[length - 1] == '.') text[length - 1] = '\0';
}

START_TEST(random_fractions_survive_the_round_trip_and_are_rounded_once)
{
    for (int i = 0; i < 200000; i++) {
        /* All magnitudes, and values with few digits. */
        int64_t value = (int64_t)random_word() >> (1 + random_word() % 60);
        if (value == 0) continue;
        if (i & 1) value -= value % 1000000000;
        if (value == 0) continue;
        char text[64], line[128], expected[160], canonical[ASSAY_MAX_CASE_LINE];
        write_decimal(text, sizeof(text), value);
        snprintf(line, sizeof(line), W "%s", text);
        snprintf(expected, sizeof(expected), "%s seed=0", line);
        const struct assay_case the_case = parsed(line);
        if (assay_case_value(&the_case, "wide") != value)
            ck_abort_msg("%s: %" PRId64, line, assay_case_value(&the_case, "wide"));
        assay_case_format(&the_case, canonical, sizeof(canonical));
        if (strcmp(canonical, expected) != 0) ck_abort_msg("%s: %s", line, canonical);
        const bool fits_a_double = value >= -(1LL << 53) && value <= 1LL << 53;
        if (fits_a_double && assay_case_fraction(&the_case, "wide") != strtod(text, NULL))
            ck_abort_msg("%s: %a", text, assay_case_fraction(&the_case, "wide"));
    }
}
END_TEST

START_TEST(a_fraction_is_the_nearest_double)
{
    const struct assay_case the_case =
        parsed("probe_fractions p=0.2 softmax_scale=0.0416666679 wide=-0.3");
    ck_assert(assay_case_fraction(&the_case, "p") == 0.2);
    ck_assert(assay_case_fraction(&the_case, "softmax_scale") == 0.0416666679);
    ck_assert(assay_case_fraction(&the_case, "wide") == -0.3);
    /* 1 / 24 as a float, the scale of 576 elements, comes back from 10 digits. */
    ck_assert((float)assay_case_fraction(&the_case, "softmax_scale") == 1.0f / 24);
}
END_TEST

START_TEST(needle_is_for_operations_that_name_it)
{
    assert_refused("probe_any data=needle", "probe_any does not take data=needle",
                   "it takes normal, uniform, wide, outlier, cancel, subnormal, special, "
                   "ties, positive, exact, runs, zero, recorded");
    assert_refused("probe_attention data=wide", "probe_attention does not take data=wide",
                   "it takes normal, exact, needle, recorded");
    assert_refused("probe_attention data=needles", "data=needles is not a kind",
                   "did you mean 'needle'?");
    assert_refused("probe_attention data=gauss", "data=gauss is not a kind",
                   "; legal: normal, exact, needle, recorded");
    ck_assert_int_eq(parsed("probe_attention data=needle").data, ASSAY_DATA_NEEDLE);
    ck_assert_int_eq(parsed("probe_attention data=recorded").data, ASSAY_DATA_RECORDED);
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++) {
        char line[64];
        snprintf(line, sizeof(line), "probe_any data=%s", assay_data_kinds[kind].name);
        ck_assert_int_eq(parsed(line).data, kind);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        fractions_are_kept_exactly_and_written_without_trailing_zeros,
        fractions_may_be_negative_and_large_where_their_range_is,
        what_is_no_fraction_in_range_is_refused_with_what_is_legal,
        lists_may_hold_fractions,
        random_fractions_survive_the_round_trip_and_are_rounded_once,
        a_fraction_is_the_nearest_double,
        needle_is_for_operations_that_name_it,
        NULL,
    };
    return run_tests("case_fraction", tests);
}
