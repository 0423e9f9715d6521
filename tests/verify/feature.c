/* SPDX-License-Identifier: MIT */
/* What the text of a feature's classes means, on an operation of the test. */
#include "verify/operation/feature.h"

#include "tests/harness.h"
#include "verify/operation/draw.h"

#include <check.h>
#include <string.h>

/* An operation of the test: 2 of its keys are illegal together. */
static const struct assay_choice shapes[] = { { "flat", 3, NULL },
                                              { "round", 5, NULL },
                                              { NULL, 0, NULL } };
static const struct assay_parameter parameters[] = {
    { .name = "n", .maximum = 100, .is_required = true },
    { .name = "k", .minimum = -50, .maximum = 50 },
    { .name = "share", .maximum = ASSAY_FRACTION_UNIT, .is_fraction = true },
    { .name = "shape", .choices = shapes, .default_value = 5 },
    { .name = "list", .maximum = 1000, .is_list = true },
    { .name = NULL },
};

static enum assay_status bind(const struct assay_case *the_case, void *problem,
                              struct assay_message *message)
{
    (void)problem;
    if (assay_case_value(the_case, "shape") == 3 && assay_case_value(the_case, "n") > 50)
        return assay_fail(message, ASSAY_REFUSED, "too large to be flat");
    return ASSAY_RAN;
}

static const struct assay_named_numerics numerics[] = { { "usual", "", "" },
                                                        { "odd", "", "" },
                                                        { NULL, NULL, NULL } };
static const struct assay_knob knobs[] = { { NULL, NULL, 0, NULL, 0, 0 } };

static const struct assay_named_numerics *default_numerics(const void *problem)
{
    (void)problem;
    return numerics;
}

static enum assay_status check_numerics(const void *problem, const void *given,
                                        struct assay_message *message)
{
    (void)problem, (void)given, (void)message;
    return ASSAY_RAN;
}

static void shape(const void *problem, struct assay_tensors *tensors)
{
    (void)problem;
    tensors->count = 0;
}

static struct assay_cost cost(const void *problem)
{
    (void)problem;
    return (struct assay_cost){ 0, 0 };
}

static struct assay_operation operation_with(const struct assay_feature *features)
{
    return (struct assay_operation){ .name = "test",
                                     .parameters = parameters,
                                     .features = features,
                                     .numerics = numerics,
                                     .knobs = knobs,
                                     .bind = bind,
                                     .default_numerics = default_numerics,
                                     .check_numerics = check_numerics,
                                     .shape = shape,
                                     .cost = cost };
}

enum { DRAWS = 400 };

/* How often each value comes in DRAWS draws of the last feature's class. */
static void count_values(const struct assay_feature *features, int feature_class,
                         int64_t lowest, int *counts, int values)
{
    const struct assay_operation operation = operation_with(features);
    const int last = assay_feature_count(&operation) - 1;
    struct assay_stream stream;
    assay_stream_open(&stream, 1, "counts", "draw", 0);
    memset(counts, 0, (size_t)values * sizeof(*counts));
    for (int i = 0; i < DRAWS; i++) {
        struct assay_case the_case;
        assay_case_init(&the_case, &operation);
        for (int at = 0; at < last; at++)
            ck_assert(assay_feature_set(&the_case, at, 0, &stream));
        ck_assert(assay_feature_set(&the_case, last, feature_class, &stream));
        const int64_t value = assay_case_value(&the_case, features[last].key) - lowest;
        ck_assert_msg(value >= 0 && value < values, "%lld", (long long)value);
        counts[value]++;
    }
}

START_TEST(ranges_steps_and_alternatives_are_drawn_evenly)
{
    static const struct assay_feature features[] = { { "n", "3..6 8|2|2|2 10..22/4" },
                                                     { NULL, NULL } };
    static const int expected[3][14] = { { 1, 1, 1, 1 },
                                         { 3, 0, 0, 0, 0, 0, 1 },
                                         { 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1 } };
    static const int64_t lowest[] = { 3, 2, 10 };
    for (int i = 0; i < 3; i++) {
        int counts[14];
        count_values(features, i, lowest[i], counts, 14);
        for (int at = 0; at < 14; at++) {
            const int mean = expected[i][at] * DRAWS / 4;
            ck_assert_msg(counts[at] >= mean * 3 / 4 && counts[at] <= mean * 5 / 4,
                          "class %d, value %d: %d times", i, at, counts[at]);
        }
    }
}
END_TEST

START_TEST(terms_build_on_the_values_of_earlier_keys)
{
    static const struct assay_feature features[] = { { "n", "20" },
                                                     { "k", "n n-1..n+1 -7 n-25" },
                                                     { NULL, NULL } };
    int counts[3];
    count_values(features, 1, 19, counts, 3);
    ck_assert(counts[0] > 90 && counts[1] > 90 && counts[2] > 90);
    count_values(features, 2, -7, counts, 1);
    count_values(features, 3, -5, counts, 1);
    ck_assert_int_eq(counts[0], DRAWS);
}
END_TEST

START_TEST(values_out_of_range_are_no_values)
{
    static const struct assay_feature features[] = { { "n", "90" },
                                                     { "k", "n n-1..n-2 n-40" },
                                                     { NULL, NULL } };
    const struct assay_operation operation = operation_with(features);
    struct assay_case the_case;
    assay_case_init(&the_case, &operation);
    ck_assert(assay_feature_set(&the_case, 0, 0, NULL));
    ck_assert(!assay_feature_set(&the_case, 1, 0, NULL)); /* above the maximum */
    ck_assert(!assay_feature_set(&the_case, 1, 1, NULL)); /* empty */
    ck_assert(assay_feature_set(&the_case, 1, 2, NULL));
    ck_assert_int_eq(assay_case_value(&the_case, "k"), 50);
}
END_TEST

START_TEST(lists_have_as_many_values_as_asked_for_each_drawn_for_itself)
{
    static const struct assay_feature features[] = { { "n", "30" },
                                                     { "list", "1..1000*n - 7 0|n*2..4" },
                                                     { NULL, NULL } };
    const struct assay_operation operation = operation_with(features);
    struct assay_stream stream;
    struct assay_case the_case;
    int count, distinct = 0, counts[5] = { 0 };
    assay_stream_open(&stream, 1, "lists", "draw", 0);
    assay_case_init(&the_case, &operation);
    ck_assert(assay_feature_set(&the_case, 0, 0, &stream));
    ck_assert(assay_feature_set(&the_case, 1, 0, &stream));
    const int64_t *list = assay_case_list(&the_case, "list", &count);
    ck_assert_int_eq(count, 30);
    for (int i = 1; i < count; i++)
        distinct += list[i] != list[0];
    ck_assert_int_gt(distinct, 20);
    ck_assert(assay_feature_set(&the_case, 1, 1, &stream));
    assay_case_list(&the_case, "list", &count);
    ck_assert_int_eq(count, 0);
    ck_assert(assay_feature_set(&the_case, 1, 2, &stream));
    list = assay_case_list(&the_case, "list", &count);
    ck_assert(count == 1 && list[0] == 7);
    for (int i = 0; i < 60; i++) {
        ck_assert(assay_feature_set(&the_case, 1, 3, &stream));
        list = assay_case_list(&the_case, "list", &count);
        ck_assert(count >= 2 && count <= 4 && (list[1] == 0 || list[1] == 30));
        counts[count]++;
    }
    ck_assert(counts[2] > 8 && counts[3] > 8 && counts[4] > 8);
}
END_TEST

START_TEST(names_defaults_fractions_and_joint_keys_are_understood)
{
    static const struct assay_feature features[] = {
        { "n,shape,share", "4,flat,0.25 9|9,-,0.1..0.5/0.1" },
        { "data", "cancel|cancel normal" },
        { "as", "*" },
        { "shape", "*" },
        { "unsafe", "0 1" },
        { NULL, NULL },
    };
    const struct assay_operation operation = operation_with(features);
    struct assay_case the_case;
    struct assay_stream stream;
    assay_stream_open(&stream, 1, "names", "draw", 0);
    assay_case_init(&the_case, &operation);
    ck_assert(assay_feature_set(&the_case, 0, 0, &stream));
    ck_assert_int_eq(assay_case_value(&the_case, "n"), 4);
    ck_assert_int_eq(assay_case_value(&the_case, "shape"), 3);
    ck_assert_int_eq(assay_case_value(&the_case, "share"), ASSAY_FRACTION_UNIT / 4);
    ck_assert(assay_feature_set(&the_case, 0, 1, &stream));
    ck_assert_int_eq(assay_case_value(&the_case, "n"), 9);
    ck_assert_int_eq(assay_case_value(&the_case, "shape"), 5);
    ck_assert_int_eq(assay_case_value(&the_case, "share") % (ASSAY_FRACTION_UNIT / 10),
                     0);
    ck_assert(assay_feature_set(&the_case, 1, 0, &stream));
    ck_assert(the_case.data == ASSAY_DATA_CANCEL);
    ck_assert_int_eq(assay_feature_classes(&operation, 2), 3);
    ck_assert_str_eq(assay_feature_class(&operation, 2, 0).text, "-");
    ck_assert(assay_feature_set(&the_case, 2, 2, &stream));
    ck_assert_str_eq(the_case.numerics, "odd");
    ck_assert(assay_feature_set(&the_case, 2, 0, &stream));
    ck_assert_str_eq(the_case.numerics, "");
    ck_assert_int_eq(assay_feature_classes(&operation, 3), 2);
    ck_assert(assay_feature_set(&the_case, 3, 0, &stream));
    ck_assert_int_eq(assay_case_value(&the_case, "shape"), 3);
    ck_assert(assay_feature_set(&the_case, 4, 1, &stream) && the_case.is_unsafe);
}
END_TEST

START_TEST(a_star_of_data_stands_for_the_kinds_that_the_operation_takes)
{
    static const struct assay_feature features[] = { { "data", "*" }, { NULL, NULL } };
    struct assay_operation operation = operation_with(features);
    operation.data_kinds = 1u << ASSAY_DATA_TIES | 1u << ASSAY_DATA_ZERO |
                           1u << ASSAY_DATA_NEEDLE | 1u << ASSAY_DATA_WIDE;
    ck_assert_int_eq(assay_feature_classes(&operation, 0), 3);
    ck_assert_str_eq(assay_feature_class(&operation, 0, 0).text, "wide");
    ck_assert_str_eq(assay_feature_class(&operation, 0, 1).text, "ties");
    ck_assert_str_eq(assay_feature_class(&operation, 0, 2).text, "needle");
}
END_TEST

/* 60 is too large to be flat, and for k. */
START_TEST(an_illegal_class_gives_way_to_the_next_one)
{
    static const struct assay_feature features[] = { { "n", "1 60" },
                                                     { "shape", "round flat" },
                                                     { "k", "9 n 2 3" },
                                                     { "list", "1*n 2*n" },
                                                     { NULL, NULL } };
    const struct assay_operation operation = operation_with(features);
    ck_assert_uint_eq(assay_feature_tuples(&operation), 32);
    for (int tuple = 0; tuple < 32; tuple++) {
        struct assay_stream stream;
        struct assay_case the_case;
        int classes[ASSAY_MAX_FEATURES], count;
        const int is_large = tuple % 2, is_flat = tuple / 2 % 2 && !is_large;
        const int wanted = tuple / 4 % 4, of_k = is_large && wanted == 1 ? 2 : wanted;
        const int64_t values[] = { 9, 1, 2, 3 };
        assay_stream_open(&stream, 1, "test", "draw", tuple);
        assay_draw_tuple(&operation, (uint64_t)tuple, &stream, 0, &the_case, classes);
        ck_assert(classes[0] == is_large && classes[1] == is_flat);
        ck_assert(classes[2] == of_k && classes[3] == tuple / 16);
        ck_assert_int_eq(assay_case_value(&the_case, "n"), is_large ? 60 : 1);
        ck_assert_int_eq(assay_case_value(&the_case, "shape"), is_flat ? 3 : 5);
        ck_assert_int_eq(assay_case_value(&the_case, "k"), values[of_k]);
        const int64_t *const list = assay_case_list(&the_case, "list", &count);
        ck_assert(list[0] == tuple / 16 + 1 && count == (is_large ? 60 : 1));
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        ranges_steps_and_alternatives_are_drawn_evenly,
        terms_build_on_the_values_of_earlier_keys,
        values_out_of_range_are_no_values,
        lists_have_as_many_values_as_asked_for_each_drawn_for_itself,
        names_defaults_fractions_and_joint_keys_are_understood,
        a_star_of_data_stands_for_the_kinds_that_the_operation_takes,
        an_illegal_class_gives_way_to_the_next_one,
        NULL,
    };
    return run_tests("feature", tests);
}
