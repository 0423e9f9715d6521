/* SPDX-License-Identifier: MIT */
/* Sentences are safe to print and whole; suggestions are near. */
#include "verify/case/message.h"

#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

START_TEST(every_status_has_its_own_name)
{
    for (int i = 0; i < ASSAY_STATUS_COUNT; i++) {
        const char *const name = assay_status_name((enum assay_status)i);
        ck_assert_ptr_nonnull(name);
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(name, assay_status_name((enum assay_status)j));
    }
    ck_assert_str_eq(assay_status_name(ASSAY_RAN), "ran");
    ck_assert_str_eq(assay_status_name(ASSAY_OUT_OF_MEMORY), "out of memory");
}
END_TEST

START_TEST(fail_formats_and_returns_the_status)
{
    struct assay_message message;
    ck_assert_int_eq(assay_fail(&message, ASSAY_HUNG, "%s=%d", "m", 7), ASSAY_HUNG);
    ck_assert_str_eq(message.text, "m=7");
}
END_TEST

START_TEST(fail_may_quote_the_message_it_writes)
{
    struct assay_message message;
    assay_fail(&message, ASSAY_REFUSED, "m is wrong");
    assay_fail(&message, ASSAY_REFUSED, "a.cases:3: %s", message.text);
    ck_assert_str_eq(message.text, "a.cases:3: m is wrong");
}
END_TEST

static const struct {
    const char *raw, *shown;
} outside_text[] = {
    { "plain ~", "plain ~" },
    { "a\nb\tc\rd\x1B[31m\x7F", "a?b?c?d?[31m?" },
    { "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x99\x82",
      "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x99\x82" },
    { "\xC2\xA0|\xC2\x80|\xC2\x9F", "\xC2\xA0|??|??" }, /* first legal; C1 controls */
    { "\xC0\xAF|\xE0\x80\xAF|\xF0\x80\x80\xAF", "??|???|????" }, /* overlong forms */
    { "\xC1\xBF|\xE0\x9F\xBF|\xF0\x8F\xBF\xBF", "??|???|????" },
    { "\xED\x9F\xBF|\xED\xA0\x80|\xED\xBF\xBF", "\xED\x9F\xBF|???|???" }, /* surrogates */
    { "\xF4\x8F\xBF\xBF|\xF4\x90\x80\x80",
      "\xF4\x8F\xBF\xBF|????" }, /* U+10FFFF, beyond */
    { "\xF5\x80\x80\x80|\xF8\x88\x80\x80\x80|\xFF", "????|?????|?" },
    { "\x80|\xBF", "?|?" },                       /* continuation bytes alone */
    { "\xC3|\xE2\x82|\xF0\x9F\x99", "?|??|???" }, /* cut off */
    { "\xE2\x82\xC3\xA9", "??\xC3\xA9" }, /* a whole character behind a broken one */
};

START_TEST(control_bytes_and_invalid_utf8_become_question_marks)
{
    struct assay_message message;
    for (size_t i = 0; i < sizeof(outside_text) / sizeof(outside_text[0]); i++) {
        assay_fail(&message, ASSAY_FAILED, "%s", outside_text[i].raw);
        ck_assert_str_eq(message.text, outside_text[i].shown);
    }
}
END_TEST

START_TEST(a_long_sentence_ends_in_dots_and_never_inside_a_character)
{
    enum { SIZE = sizeof(((struct assay_message *)0)->text) };
    struct assay_message message;
    for (int letters = SIZE - 8; letters < SIZE + 8; letters++) {
        char text[4 * SIZE];
        memset(text, 'x', (size_t)letters);
        memcpy(text + letters, "\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC",
               sizeof("\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC"));
        assay_fail(&message, ASSAY_FAILED, "%s", text);

        /* The longest beginning in whole characters that leaves room for the dots. */
        char expected[4 * SIZE];
        int kept = letters < SIZE - 4 ? letters : SIZE - 4;
        while (kept >= letters && kept + 3 <= SIZE - 4)
            kept += 3;
        snprintf(expected, sizeof(expected), "%.*s...", kept, text);
        ck_assert_str_eq(message.text, letters + 9 < SIZE ? text : expected);
    }
}
END_TEST

START_TEST(a_sentence_of_just_the_size_stays_whole)
{
    struct assay_message message;
    char text[sizeof(message.text) + 1] = { 0 };
    memset(text, 'y', sizeof(message.text) - 1);
    assay_fail(&message, ASSAY_FAILED, "%s", text);
    ck_assert_str_eq(message.text, text);

    text[sizeof(message.text) - 1] = 'y';
    assay_fail(&message, ASSAY_FAILED, "%s", text);
    ck_assert_uint_eq(strlen(message.text), sizeof(message.text) - 1);
    ck_assert_str_eq(message.text + sizeof(message.text) - 5, "y...");
}
END_TEST

static const char *const keys[] = { "m",         "n",      "k",        "recipe",
                                    "out",       "causal", "sms",      "h_q",
                                    "h_kv",      "topk",   "seed",     "data",
                                    "bits",      "unsafe", "masked_m", "deepgemm-1d2d",
                                    "promote_k", NULL };

static const struct {
    const char *word, *nearest;
} misspelt[] = {
    { "mm", "m" },           /* one letter too many */
    { "M", "m" },            /* upper case */
    { "recip", "recipe" },   /* dropped */
    { "reciepe", "recipe" }, /* inserted */
    { "rceipe", "recipe" },  /* swapped neighbours are one edit */
    { "rexipe", "recipe" },  /* replaced */
    { "RECIPE", "recipe" },
    { "sede", "seed" },              /* swapped, four letters: one edit allowed */
    { "deepgemm", "deepgemm-1d2d" }, /* the beginning of a name */
    { "deepgem-1d1d", "deepgemm-1d2d" },
    { "pro", "promote_k" },
    { "promot_kk", "promote_k" },
    { "masked", "masked_m" },
    { "h_k", "h_kv" }, /* the beginning wins over a replaced letter (h_q) */
    { "casual", "causal" },
    { "kn", "k" }, /* the beginning wins over the end (n) */
    { "r", NULL }, /* one letter is no beginning */
    { "q", NULL }, /* replacing all of a word is no misspelling */
    { "x", NULL },
    { "", NULL },
    { "sd", NULL }, /* two edits from four letters */
    { "sdee", NULL },
    { "elephant", NULL },
    { "rxcxpx", NULL }, /* three of six letters */
};

START_TEST(nearest_finds_misspelt_names_and_no_strangers)
{
    for (size_t i = 0; i < sizeof(misspelt) / sizeof(misspelt[0]); i++) {
        const char *const nearest = assay_nearest(misspelt[i].word, keys);
        if (misspelt[i].nearest)
            ck_assert_msg(nearest && strcmp(nearest, misspelt[i].nearest) == 0,
                          "'%s' gave '%s'", misspelt[i].word, nearest ? nearest : "none");
        else
            ck_assert_msg(!nearest, "'%s' gave '%s'", misspelt[i].word, nearest);
    }
}
END_TEST

START_TEST(nearest_takes_words_of_any_length_and_no_names)
{
    const char *const none[] = { NULL };
    ck_assert_ptr_null(assay_nearest("m", none));

    char word[5000];
    for (size_t letters = 0; letters < sizeof(word); letters += 1 + letters / 8) {
        memset(word, 'm', letters);
        word[letters] = '\0';
        const char *const nearest = assay_nearest(word, keys);
        ck_assert(letters == 1 || letters == 2 ? nearest == keys[0] : !nearest);
    }
}
END_TEST

int main(void)
{
    return run_tests("message",
                     (const TTest *const[]){
                         every_status_has_its_own_name,
                         fail_formats_and_returns_the_status,
                         fail_may_quote_the_message_it_writes,
                         control_bytes_and_invalid_utf8_become_question_marks,
                         a_long_sentence_ends_in_dots_and_never_inside_a_character,
                         a_sentence_of_just_the_size_stays_whole,
                         nearest_finds_misspelt_names_and_no_strangers,
                         nearest_takes_words_of_any_length_and_no_names,
                         NULL,
                     });
}
