/* SPDX-License-Identifier: MIT */
/* Numerics as text, with numerics of the test's own. */
#include "verify/operation/numerics.h"

#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

struct probe_problem {
    bool is_wide;
};

static void stage_one(void) {}
static void stage_two(void) {}

struct probe_numerics {
    int unit, promote_k, order, hidden;
    void (*stage)(void);
};

enum { UNIT_SLOW = 3, UNIT_FAST = 9 };
static const struct assay_choice units[] = { { "slow", UNIT_SLOW, "" },
                                             { "fast", UNIT_FAST, "" },
                                             { 0 } };
static const struct assay_choice orders[] = { { "ascending", 0, "" },
                                              { "descending", 1, "" },
                                              { 0 } };
static const struct assay_knob knobs[] = {
    { "unit", "", offsetof(struct probe_numerics, unit), units, 0, 0 },
    { "promote_k", "", offsetof(struct probe_numerics, promote_k), NULL, -8, 4096 },
    { "order", "", offsetof(struct probe_numerics, order), orders, 0, 0 },
    { 0 },
};
static const struct probe_numerics plain = { UNIT_SLOW, 128, 0, 77, stage_one };
static const struct probe_numerics quick = { UNIT_FAST, 0, 1, 78, stage_two };
static const struct probe_numerics quick_again = { UNIT_FAST, 0, 1, 79, stage_one };
static const struct assay_named_numerics rows[] = {
    { "probe-plain", "", &plain },
    { "probe-quick", "", &quick },
    { "probe-alias", "", &quick_again },
    { 0 },
};

static const struct assay_named_numerics *choose_default(const void *problem)
{
    return ((const struct probe_problem *)problem)->is_wide ? &rows[1] : &rows[0];
}

static enum assay_status check_sense(const void *problem, const void *numerics,
                                     struct assay_message *message)
{
    (void)problem;
    const struct probe_numerics *const value = numerics;
    if (value->promote_k >= 0) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED, "promote_k makes no sense here");
}

static const struct assay_operation probe = {
    .name = "probe",
    .numerics = rows,
    .knobs = knobs,
    .problem_bytes = sizeof(struct probe_problem),
    .numerics_bytes = sizeof(struct probe_numerics),
    .default_numerics = choose_default,
    .check_numerics = check_sense,
};

static const struct probe_problem narrow = { false }, wide = { true };

static struct probe_numerics parsed(const struct probe_problem *problem, const char *text)
{
    struct probe_numerics numerics;
    struct assay_message message = { "" };
    memset(&numerics, 0xEE, sizeof(numerics));
    ck_assert_msg(assay_numerics_parse(&probe, problem, text, &numerics, &message) ==
                      ASSAY_RAN,
                  "%s", message.text);
    return numerics;
}

static void assert_are(struct probe_numerics numerics, int unit, int promote_k, int order,
                       const struct probe_numerics *row)
{
    ck_assert_int_eq(numerics.unit, unit);
    ck_assert_int_eq(numerics.promote_k, promote_k);
    ck_assert_int_eq(numerics.order, order);
    ck_assert_int_eq(numerics.hidden, row->hidden);
    ck_assert(numerics.stage == row->stage);
}

START_TEST(empty_text_means_the_default_of_the_problem)
{
    assert_are(parsed(&narrow, ""), UNIT_SLOW, 128, 0, &plain);
    assert_are(parsed(&wide, ""), UNIT_FAST, 0, 1, &quick);
}
END_TEST

START_TEST(a_name_means_its_row_with_its_stages)
{
    assert_are(parsed(&wide, "probe-plain"), UNIT_SLOW, 128, 0, &plain);
    assert_are(parsed(&narrow, "probe-quick"), UNIT_FAST, 0, 1, &quick);
    assert_are(parsed(&narrow, "probe-alias"), UNIT_FAST, 0, 1, &quick_again);
}
END_TEST

START_TEST(knobs_change_their_int_and_nothing_else)
{
    assert_are(parsed(&wide, "probe-plain,promote_k=4096"), UNIT_SLOW, 4096, 0, &plain);
    assert_are(parsed(&wide, "probe-plain,order=descending,unit=fast"), UNIT_FAST, 128, 1,
               &plain);
    assert_are(parsed(&narrow, "probe-quick,promote_k=0,order=ascending"), UNIT_FAST, 0,
               0, &quick);
}
END_TEST

START_TEST(knobs_alone_change_the_default)
{
    assert_are(parsed(&narrow, "promote_k=64"), UNIT_SLOW, 64, 0, &plain);
    assert_are(parsed(&wide, "promote_k=64,unit=slow"), UNIT_SLOW, 64, 1, &quick);
}
END_TEST

START_TEST(the_rows_themselves_stay_as_they_are)
{
    parsed(&narrow, "probe-plain,promote_k=1,unit=fast,order=descending");
    assert_are(plain, UNIT_SLOW, 128, 0, &plain);
}
END_TEST

static const struct {
    const char *text, *wrong, *right;
} refused[] = {
    { "probe-plane", "unknown numerics 'probe-plane' of probe", "mean 'probe-plain'?" },
    { "probe", "unknown numerics 'probe'", "did you mean 'probe-plain'?" },
    { "cutlass", "unknown numerics 'cutlass'", "probe-plain, probe-quick, probe-alias" },
    { "cutlass,order=ascending", "unknown numerics 'cutlass'", "probe-plain" },
    { ",order=ascending", "unknown numerics ''", "legal: probe-plain" },
    { "probe-plain,promotek=3", "unknown knob 'promotek' of probe", "mean 'promote_k'?" },
    { "promote=3", "unknown knob 'promote'", "did you mean 'promote_k'?" },
    { "hidden=3", "unknown knob 'hidden'", "legal: unit, promote_k, order" },
    { "=3", "unknown knob ''", "legal: unit, promote_k, order" },
    { "probe-plain,promote_k", "'promote_k' in numerics of probe", "knob=value" },
    { "probe-plain,", "'' in numerics of probe", "knob=value" },
    { "probe-plain,,order=ascending", "'' in numerics of probe", "knob=value" },
    { "order=ascending,probe-plain", "'probe-plain' in numerics of probe", "knob=value" },
    { "promote_k=", "promote_k= is not a decimal integer", "from -8 to 4096" },
    { "promote_k=4097", "promote_k=4097 is out of range", "from -8 to 4096" },
    { "promote_k=4294967296", "4294967296 is out of range", "from -8 to 4096" },
    { "promote_k=0x10", "promote_k=0x10 is not a decimal integer", "from -8 to 4096" },
    { "unit=3", "unit=3 is not a choice", "slow, fast" },
    { "unit=fats", "unit=fats is not a choice", "did you mean 'fast'?" },
    { "order=descending=1", "order=descending=1 is not", "ascending, descending" },
    { "promote_k=1,promote_k=1", "'promote_k' of probe is turned a second time", "once" },
    { "promote_k=-8", "promote_k makes no sense", "here" },
    { "probe-quick,promote_k=-1", "promote_k makes no sense", "here" },
};

START_TEST(bad_texts_are_refused_with_what_is_wrong_and_what_is_right)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct probe_numerics numerics;
        struct assay_message message = { "" };
        const enum assay_status status =
            assay_numerics_parse(&probe, &narrow, refused[i].text, &numerics, &message);
        ck_assert_msg(status == ASSAY_REFUSED, "accepted: %s", refused[i].text);
        ck_assert_msg(strstr(message.text, refused[i].wrong) &&
                          strstr(message.text, refused[i].right),
                      "'%s' gave: %s", refused[i].text, message.text);
    }
}
END_TEST

START_TEST(a_text_of_512_characters_is_refused)
{
    for (int letters = 511; letters <= 513; letters++) {
        char text[600];
        struct probe_numerics numerics;
        struct assay_message message = { "" };
        memset(text, 'z', sizeof(text));
        text[letters] = '\0';
        ck_assert_int_eq(assay_numerics_parse(&probe, &narrow, text, &numerics, &message),
                         ASSAY_REFUSED);
        ck_assert_ptr_nonnull(
            strstr(message.text, letters < 512 ? "unknown numerics" : "limit is 511"));
    }
}
END_TEST

static void assert_text(struct probe_numerics numerics, const char *expected)
{
    char text[ASSAY_MAX_NUMERICS_TEXT];
    assay_numerics_format(&probe, &numerics, text, sizeof(text));
    ck_assert_str_eq(text, expected);
}

START_TEST(format_names_the_first_row_with_these_knobs)
{
    assert_text(plain, "probe-plain");
    assert_text(quick, "probe-quick");
    assert_text(quick_again, "probe-quick");

    struct probe_numerics faulty = plain;
    faulty.stage = stage_two;
    faulty.hidden = 0;
    assert_text(faulty, "probe-plain");
}
END_TEST

START_TEST(format_adds_the_knobs_that_differ_from_the_nearest_row)
{
    assert_text((struct probe_numerics){ UNIT_SLOW, 64, 0, 0, NULL },
                "probe-plain,promote_k=64");
    assert_text((struct probe_numerics){ UNIT_FAST, 128, 1, 0, NULL },
                "probe-quick,promote_k=128");
    assert_text((struct probe_numerics){ UNIT_SLOW, 5, 1, 0, NULL },
                "probe-plain,promote_k=5,order=descending");
    assert_text((struct probe_numerics){ UNIT_FAST, -8, 0, 0, NULL },
                "probe-plain,unit=fast,promote_k=-8");
    /* A value that no choice has is shown all the same. */
    assert_text((struct probe_numerics){ 4, 128, 0, 0, NULL }, "probe-plain,unit=4");
}
END_TEST

START_TEST(parsing_what_format_wrote_gives_the_same_knobs)
{
    for (int i = 0; i < 2 * 2 * 4097; i++) {
        const struct probe_numerics numerics = { i & 1 ? UNIT_SLOW : UNIT_FAST, i >> 2,
                                                 i >> 1 & 1, 0, NULL };
        char text[ASSAY_MAX_NUMERICS_TEXT];
        assay_numerics_format(&probe, &numerics, text, sizeof(text));
        const struct probe_numerics again = parsed(i & 4 ? &narrow : &wide, text);
        ck_assert_int_eq(again.unit, numerics.unit);
        ck_assert_int_eq(again.promote_k, numerics.promote_k);
        ck_assert_int_eq(again.order, numerics.order);
    }
}
END_TEST

int main(void)
{
    return run_tests("numerics",
                     (const TTest *const[]){
                         empty_text_means_the_default_of_the_problem,
                         a_name_means_its_row_with_its_stages,
                         knobs_change_their_int_and_nothing_else,
                         knobs_alone_change_the_default,
                         the_rows_themselves_stay_as_they_are,
                         bad_texts_are_refused_with_what_is_wrong_and_what_is_right,
                         a_text_of_512_characters_is_refused,
                         format_names_the_first_row_with_these_knobs,
                         format_adds_the_knobs_that_differ_from_the_nearest_row,
                         parsing_what_format_wrote_gives_the_same_knobs,
                         NULL,
                     });
}
