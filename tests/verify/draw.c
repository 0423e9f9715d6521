/* SPDX-License-Identifier: MIT */
/* Tables of features and the cases drawn from them: every class of every operation can be
 * had, for little, and the case is legal. */
#include "verify/operation/draw.h"

#include "tests/harness.h"
#include "verify/operation/numerics.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define BUDGET 2e6
enum { TUPLES = 3000 };

static bool is_legal(const struct assay_case *the_case, double *multiply_adds,
                     struct assay_message *message)
{
    const struct assay_operation *const operation = the_case->operation;
    union assay_problem_storage problem;
    union assay_numerics_storage numerics;
    if (operation->bind(the_case, &problem, message) != ASSAY_RAN ||
        assay_numerics_parse(operation, &problem, the_case->numerics, &numerics,
                             message) != ASSAY_RAN)
        return false;
    *multiply_adds = operation->cost(&problem).multiply_adds;
    return true;
}

static uint64_t tuple_of(const struct assay_operation *operation, int at)
{
    struct assay_stream stream;
    assay_stream_open(&stream, 5, operation->name, "tuple", at);
    const uint64_t high = assay_stream_next(&stream);
    return (high << 32 | assay_stream_next(&stream)) % assay_feature_tuples(operation);
}

static void draw(const struct assay_operation *operation, int at, double multiply_adds,
                 struct assay_case *the_case, int *classes)
{
    struct assay_stream stream;
    assay_stream_open(&stream, 7, operation->name, "draw", at);
    assay_draw_tuple(operation, tuple_of(operation, at), &stream, multiply_adds, the_case,
                     classes);
}

/* --- the tables ------------------------------------------------------------------- */

/* Whether @key is one of the keys of row @feature. */
static bool has_key(const struct assay_feature *feature, const char *key, size_t length)
{
    for (const char *at = feature->key; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, key, length) == 0 && (at[length] == ',' || !at[length]))
            return true;
    }
    return false;
}

static void check_keys_are_earlier(const struct assay_operation *operation, int feature)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    const struct assay_feature *const features = operation->features;
    const char *at = strpbrk(features[feature].classes, letters);
    while (at) {
        const size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz_0123456789");
        int row = 0;
        while (row < feature && !has_key(&features[row], at, length))
            row++;
        ck_assert_msg(row < feature, "%s: %s builds on %s", operation->name,
                      features[feature].key, at);
        at = strpbrk(at + length, letters);
    }
}

static const struct assay_parameter *parameter_of(const struct assay_operation *operation,
                                                  const char *key)
{
    const struct assay_parameter *row = operation->parameters;
    while (row->name && strcmp(row->name, key) != 0)
        row++;
    return row->name ? row : NULL;
}

START_TEST(rows_build_on_keys_of_earlier_rows_only)
{
    int with_terms = 0;
    for (int i = 0; assay_operations[i]; i++)
        for (int at = 0; at < assay_feature_count(assay_operations[i]); at++) {
            const char *const key = assay_operations[i]->features[at].key;
            const struct assay_parameter *const parameter =
                parameter_of(assay_operations[i], key);
            if (!parameter || parameter->choices) continue;
            check_keys_are_earlier(assay_operations[i], at);
            with_terms += strchr(assay_operations[i]->features[at].classes, '+') != NULL;
        }
    ck_assert_int_gt(with_terms, 5);
}
END_TEST

START_TEST(each_key_that_a_case_must_have_has_a_feature)
{
    for (int i = 0; assay_operations[i]; i++) {
        const struct assay_feature *const features = assay_operations[i]->features;
        const struct assay_parameter *row = assay_operations[i]->parameters;
        for (; row->name; row++) {
            int at = 0;
            while (features[at].key &&
                   !has_key(&features[at], row->name, strlen(row->name)))
                at++;
            ck_assert_msg(!row->is_required || features[at].key, "%s: no feature %s",
                          assay_operations[i]->name, row->name);
        }
    }
}
END_TEST

START_TEST(the_first_classes_together_are_a_small_legal_case)
{
    for (int i = 0; assay_operations[i]; i++) {
        struct assay_case the_case;
        struct assay_message message = { "" };
        double multiply_adds;
        assay_case_init(&the_case, assay_operations[i]);
        for (int at = 0; at < assay_feature_count(assay_operations[i]); at++)
            ck_assert(assay_feature_set(&the_case, at, 0, NULL));
        ck_assert_msg(is_legal(&the_case, &multiply_adds, &message), "%s", message.text);
        ck_assert_msg(multiply_adds < 1e7, "%s: %g", assay_operations[i]->name,
                      multiply_adds);
    }
}
END_TEST

/* --- classes ---------------------------------------------------------------------- */

/* What a budget of 2e6 excludes. */
static const char *const excluded[] = { "mla_dense_decode h_q,h_k=4|8|16,4", NULL };

static bool is_excluded(const char *text)
{
    for (int i = 0; excluded[i]; i++)
        if (strcmp(excluded[i], text) == 0) return true;
    return false;
}

static int check_classes(const struct assay_operation *operation)
{
    static int taken[ASSAY_MAX_FEATURES][64];
    const int count = assay_feature_count(operation);
    int missing = 0;
    memset(taken, 0, sizeof(taken));
    for (int at = 0; at < TUPLES; at++) {
        struct assay_case the_case;
        int classes[ASSAY_MAX_FEATURES];
        draw(operation, at, BUDGET, &the_case, classes);
        for (int i = 0; i < count; i++)
            taken[i][classes[i]]++;
    }
    for (int i = 0; i < count; i++)
        for (int at = 0; at < assay_feature_classes(operation, i); at++) {
            char text[256];
            snprintf(text, sizeof(text), "%s %s=%s", operation->name,
                     operation->features[i].key,
                     assay_feature_class(operation, i, at).text);
            if ((taken[i][at] == 0) == is_excluded(text)) continue;
            fprintf(stderr, "%s: taken %d times\n", text, taken[i][at]);
            missing++;
        }
    return missing;
}

START_TEST(three_thousand_cases_take_every_class_of_every_feature)
{
    int missing = 0;
    for (int i = 0; assay_operations[i]; i++)
        missing += check_classes(assay_operations[i]);
    ck_assert_int_eq(missing, 0);
}
END_TEST

/* Classes that are one value say which. */
START_TEST(a_case_has_the_classes_that_are_reported)
{
    int checked = 0;
    for (int i = 0; assay_operations[i]; i++)
        for (int at = 0; at < 200; at++) {
            const struct assay_operation *const operation = assay_operations[i];
            struct assay_case the_case;
            int classes[ASSAY_MAX_FEATURES];
            draw(operation, at, BUDGET, &the_case, classes);
            for (int row = 0; operation->features[row].key; row++) {
                struct assay_case wanted = the_case;
                const struct assay_class_text text =
                    assay_feature_class(operation, row, classes[row]);
                const struct assay_parameter *const parameter =
                    parameter_of(operation, operation->features[row].key);
                if (strpbrk(text.text, "|*,") || strstr(text.text, "..") ||
                    (parameter && parameter->is_list))
                    continue;
                ck_assert(assay_feature_set(&wanted, row, classes[row], NULL));
                ck_assert_mem_eq(wanted.value, the_case.value, sizeof(wanted.value));
                ck_assert_str_eq(wanted.numerics, the_case.numerics);
                ck_assert(wanted.data == the_case.data);
                checked++;
            }
        }
    ck_assert_int_gt(checked, 10000);
}
END_TEST

/* --- cases ------------------------------------------------------------------------ */

START_TEST(drawn_cases_are_legal_and_read_back_as_they_are)
{
    for (int i = 0; assay_operations[i]; i++)
        for (int at = 0; at < 400; at++) {
            struct assay_case the_case, again;
            struct assay_message message = { "" };
            char line[ASSAY_MAX_CASE_LINE], second[ASSAY_MAX_CASE_LINE];
            double multiply_adds;
            draw(assay_operations[i], at, at % 2 ? BUDGET : 1e4, &the_case, NULL);
            assay_case_format(&the_case, line, sizeof(line));
            ck_assert_msg(is_legal(&the_case, &multiply_adds, &message), "%s: %s", line,
                          message.text);
            ck_assert(assay_operation_takes(assay_operations[i], the_case.data));
            ck_assert(the_case.data != ASSAY_DATA_RECORDED);
            ck_assert_msg(assay_case_parse(line, &again, &message) == ASSAY_RAN, "%s: %s",
                          line, message.text);
            assay_case_format(&again, second, sizeof(second));
            ck_assert_str_eq(line, second);
            ck_assert_int_eq(again.list_values, the_case.list_values);
            ck_assert_mem_eq(again.list_value, the_case.list_value,
                             sizeof(again.list_value));
            ck_assert_mem_eq(again.value, the_case.value, sizeof(again.value));
        }
}
END_TEST

START_TEST(the_budget_is_kept_but_for_a_few_times_the_smallest_case)
{
    static const double budgets[] = { 0, 1e4, 1e5, 2e6, 3e7 };
    for (int i = 0; assay_operations[i]; i++) {
        double most[5] = { 0 };
        for (int at = 0; at < 1000; at++) {
            struct assay_case the_case;
            struct assay_message message;
            double cost;
            draw(assay_operations[i], at, budgets[at % 5], &the_case, NULL);
            ck_assert(is_legal(&the_case, &cost, &message));
            if (cost > most[at % 5]) most[at % 5] = cost;
        }
        for (int at = 1; at < 5; at++)
            ck_assert_msg(most[at] <= budgets[at] || most[at] <= 3e7, "%s: %g of %g",
                          assay_operations[i]->name, most[at], budgets[at]);
        if (strncmp(assay_operations[i]->name, "fp8_gemm", 8) != 0) continue;
        for (int at = 1; at < 5; at++)
            ck_assert(most[at] <= budgets[at] && most[at] > budgets[at] / 3);
    }
}
END_TEST

START_TEST(a_case_depends_on_tuple_stream_and_budget_alone)
{
    int differ = 0;
    for (int i = 0; assay_operations[i]; i++)
        for (int at = 0; at < 20; at++) {
            struct assay_case first, second, other;
            struct assay_stream stream;
            memset(&second, 0xA5, sizeof(second));
            draw(assay_operations[i], at, BUDGET, &first, NULL);
            draw(assay_operations[i], at, BUDGET, &second, NULL);
            char line[2][ASSAY_MAX_CASE_LINE];
            assay_case_format(&first, line[0], sizeof(line[0]));
            assay_case_format(&second, line[1], sizeof(line[1]));
            ck_assert_str_eq(line[0], line[1]);
            assay_stream_open(&stream, 8, assay_operations[i]->name, "draw", at);
            assay_draw_tuple(assay_operations[i], tuple_of(assay_operations[i], at),
                             &stream, BUDGET, &other, NULL);
            ck_assert(other.seed != first.seed);
            differ += memcmp(other.value, first.value, sizeof(other.value)) != 0;
        }
    ck_assert_int_gt(differ, 100);
}
END_TEST

START_TEST(the_digits_of_the_tuple_are_the_classes_where_all_are_legal)
{
    const struct assay_operation *const sfu = assay_operation_find("sfu");
    const uint64_t tuples = assay_feature_tuples(sfu);
    uint64_t expected = 1;
    for (int i = 0; i < assay_feature_count(sfu); i++)
        expected *= (uint64_t)assay_feature_classes(sfu, i);
    ck_assert_uint_eq(tuples, expected);
    for (uint64_t tuple = 0; tuple < tuples; tuple++) {
        struct assay_stream stream;
        struct assay_case the_case;
        int classes[ASSAY_MAX_FEATURES];
        uint64_t again = 0, weight = 1;
        assay_stream_open(&stream, 1, "sfu", "draw", (int64_t)tuple);
        assay_draw_tuple(sfu, tuple, &stream, BUDGET, &the_case, classes);
        for (int i = 0; i < assay_feature_count(sfu); i++) {
            again += weight * (uint64_t)classes[i];
            weight *= (uint64_t)assay_feature_classes(sfu, i);
        }
        ck_assert_uint_eq(again, tuple);
    }
}
END_TEST

START_TEST(a_drawn_tuple_takes_all_classes_as_well)
{
    const struct assay_operation *const wgmma = assay_operation_find("wgmma");
    int kinds = 0;
    for (int at = 0; at < 400; at++) {
        struct assay_stream stream;
        struct assay_case the_case;
        assay_stream_open(&stream, 2, "wgmma", "draw", at);
        assay_draw(wgmma, &stream, BUDGET, &the_case);
        kinds |= 1 << the_case.data;
    }
    const int wanted = ((1 << ASSAY_GENERAL_DATA_KINDS) - 1) & ~(1 << ASSAY_DATA_ZERO);
    ck_assert_int_eq(kinds, wanted);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        rows_build_on_keys_of_earlier_rows_only,
        each_key_that_a_case_must_have_has_a_feature,
        the_first_classes_together_are_a_small_legal_case,
        three_thousand_cases_take_every_class_of_every_feature,
        a_case_has_the_classes_that_are_reported,
        drawn_cases_are_legal_and_read_back_as_they_are,
        the_budget_is_kept_but_for_a_few_times_the_smallest_case,
        a_case_depends_on_tuple_stream_and_budget_alone,
        the_digits_of_the_tuple_are_the_classes_where_all_are_legal,
        a_drawn_tuple_takes_all_classes_as_well,
        NULL,
    };
    return run_tests("draw", tests);
}
