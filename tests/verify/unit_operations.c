/* SPDX-License-Identifier: MIT */
/* Tests of the operations wgmma, sfu and convert: bounds against the model, against other
 * orders and against outputs that are wrong on purpose; special values; data. */
#include "ref/kernel/unit.h"
#include "tests/harness.h"
#include "tests/verify/judged_case.h"
#include "tests/verify/shaped_case.h"
#include "verify/operation/expectation.h"
#include "verify/operation/numerics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- bounds ----------------------------------------------------------------------- */

/* The floors are more than half of what the model reaches, so that a bound twice as large
 * fails here. */
START_TEST(bounds_are_tight)
{
    static const struct {
        const char *text;
        double floor;
    } rows[] = {
        { "wgmma blocks=4 steps=1 data=positive", 0.9 },
        { "wgmma blocks=4 steps=1 a_format=e5m2 b_format=e5m2 data=positive", 0.9 },
        { "wgmma blocks=4 steps=1 a_format=bf16 b_format=bf16 data=positive", 0.8 },
        { "wgmma blocks=4 steps=1 a_format=f16 b_format=f16 data=positive", 0.9 },
        { "wgmma blocks=4 steps=1 a_format=tf32 b_format=tf32 data=positive", 0.9 },
        { "wgmma blocks=4 steps=2 data=positive", 0.6 },
        { "wgmma blocks=4 steps=8 data=positive", 0.4 },
        { "wgmma blocks=4 steps=1 data=wide", 0.8 },
        { "wgmma blocks=4 steps=1 data=subnormal", 0.9 },
        { "sfu function=ex2 count=300000 data=uniform", 0.9 },
        { "sfu function=lg2 count=300000 data=positive", 0.9 },
        { "sfu function=rcp count=300000", 0.9 },
        { "sfu function=rsqrt count=300000", 0.9 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct assay_result result = result_of(rows[i].text, "", NULL);
        const double reached = result.output[0].max_error_over_bound;
        ck_assert_msg(reached >= rows[i].floor && reached <= 1, "%s: %g", rows[i].text,
                      reached);
        ck_assert_int_eq(result.output[0].unclaimed, 0);
        assay_result_close(&result);
    }
}
END_TEST

/* Each unit's model against the bound of its own precision, for every kind of data. */
START_TEST(bound_holds_for_every_unit_and_width)
{
    static const struct {
        const char *format, *numerics;
    } rows[] = {
        { "e4m3", "hopper-mma" },
        { "e5m2", "unit=ada" },
        { "e4m3", "unit=blackwell" },
        { "e5m2", "align_bits=5" },
        { "e4m3", "result_bits=4" },
        { "e4m3", "align_bits=30,result_bits=23" },
        { "bf16", "unit=ampere" },
        { "f16", "unit=volta" },
        { "f16", "unit=ada" },
        { "bf16", "align_bits=9" },
        { "tf32", "align_bits=23" },
        { "tf32", "result_bits=10" },
        { "e5m2", "hopper-mma,align_bits=7,result_bits=9" },
    };
    int64_t differ = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++)
            for (int steps = 1; steps <= 4; steps += 3) {
                char text[256];
                snprintf(text, sizeof(text),
                         "wgmma blocks=1 steps=%d a_format=%s b_format=%s data=%s "
                         "seed=%zu as=%s",
                         steps, rows[i].format, rows[i].format,
                         assay_data_kinds[kind].name, i, rows[i].numerics);
                struct assay_result result = result_of(text, "", NULL);
                ck_assert_msg(result.verdict == ASSAY_BOUNDED, "%s: %s, %g", text,
                              assay_verdicts[result.verdict].name,
                              result.output[0].max_error_over_bound);
                assay_result_close(&result);
                result = result_of(text, "hopper-wgmma", NULL);
                differ += result.output[0].differ;
                assay_result_close(&result);
            }
    ck_assert_int_gt(differ, 0);
}
END_TEST

/* Copies the elements of K, over all steps of a block, in another order. */
static void permute_k(const struct assay_tensor *from, const struct assay_tensor *to)
{
    const int64_t steps = from->shape[1], rows = from->shape[2], k = from->shape[3];
    for (int64_t block = 0; block < from->shape[0]; block++)
        for (int64_t row = 0; row < rows; row++)
            for (int64_t i = 0; i < steps * k; i++) {
                const int64_t j = (i * 37 + 11) % (steps * k); /* K is a power of two */
                const int64_t first = block * steps * rows * k;
                assay_tensor_set_bits(
                    to, first + (j / k * rows + row) * k + j % k,
                    assay_tensor_bits(from, first + (i / k * rows + row) * k + i % k));
            }
}

/* The same function with its products in another order. */
static void reorder(const struct assay_tensors *tensors)
{
    static uint32_t a[64 * 64 * 32], b[64 * 64 * 32];
    static const struct assay_wgmma_numerics hopper = { .stage = { assay_wgmma_step } };
    struct assay_tensors other = *tensors;
    ck_assert_int_le(assay_tensor_bytes(&tensors->item[0]), (int64_t)sizeof(a));
    other.item[0].data = a;
    other.item[1].data = b;
    permute_k(&tensors->item[0], &other.item[0]);
    permute_k(&tensors->item[1], &other.item[1]);
    for (int64_t block = 0; block < tensors->item[0].shape[0]; block++)
        assay_wgmma_model(&hopper, &other, block);
}

START_TEST(bound_holds_for_other_orders_of_the_products)
{
    static const char *const formats[] = { "e4m3", "e5m2", "bf16", "f16", "tf32" };
    int64_t differ = 0;
    for (int i = 0; i < 5; i++)
        for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++) {
            char text[160];
            snprintf(text, sizeof(text),
                     "wgmma blocks=2 steps=8 a_format=%s b_format=%s data=%s seed=%d",
                     formats[i], formats[i], assay_data_kinds[kind].name, kind);
            struct assay_result result = result_of(text, "", reorder);
            ck_assert_msg(result.output[0].outside == 0, "%s: %g", text,
                          result.output[0].max_error_over_bound);
            differ += result.output[0].differ;
            if (kind == ASSAY_DATA_EXACT) ck_assert_int_eq(result.output[0].differ, 0);
            assay_result_close(&result);
        }
    ck_assert_int_gt(differ, 10000);
}
END_TEST

START_TEST(exact_data_leaves_no_room)
{
    static const char *const texts[] = {
        "wgmma blocks=2 steps=500 data=exact",
        "wgmma blocks=2 steps=5 a_format=e5m2 b_format=e4m3 data=exact",
        "wgmma blocks=2 steps=5 a_format=bf16 b_format=bf16 data=exact",
        "wgmma blocks=2 steps=5 a_format=f16 b_format=f16 data=exact",
        "wgmma blocks=2 steps=5 a_format=tf32 b_format=tf32 data=exact",
        "convert to=e4m3 count=1000 data=exact",
        "convert to=f16 count=1000 data=wide",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct assay_result result = result_of(texts[i], "", NULL);
        ck_assert_msg(result.output[0].max_error_over_bound == 0 &&
                          result.output[0].bound_worst_bound == 0,
                      "%s", texts[i]);
        ck_assert(!result.output[0].is_constant);
        assay_result_close(&result);
    }
}
END_TEST

/* One bit more than the unit of FP8 keeps changes each of them; f32 has no bit more. */
START_TEST(ties_lie_half_way_between_two_results)
{
    static const char *const formats[] = { "e4m3", "bf16" };
    static const char *const wider[] = { "result_bits=14", "align_bits=40" };
    for (int i = 0; i < 2; i++) {
        char text[128];
        snprintf(text, sizeof(text),
                 "wgmma blocks=2 steps=1 a_format=%s b_format=%s data=ties", formats[i],
                 formats[i]);
        struct assay_result result = result_of(text, wider[i], NULL);
        const struct assay_output_result *const d = &result.output[0];
        if (i == 0) ck_assert_int_eq(d->differ, d->elements);
        if (i == 1) ck_assert_int_eq(d->differ, 0);
        assay_result_close(&result);
    }
    struct assay_result result =
        result_of("convert to=bf16 count=3000 data=ties", "rounding=toward-zero", NULL);
    ck_assert_int_gt(result.output[0].differ, 1200);
    ck_assert_int_lt(result.output[0].differ, 1800);
    assay_result_close(&result);
}
END_TEST

/* --- what is outside -------------------------------------------------------------- */

static void raise_d_by_three_quanta(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const d = assay_tensors_find(tensors, "d");
    assay_tensor_set_bits(d, 100, assay_tensor_bits(d, 100) + (3 << 10));
}

static void raise_y_by_four(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const y = assay_tensors_find(tensors, "y");
    assay_tensor_set_bits(y, 100, assay_tensor_bits(y, 100) + 4);
}

static void raise_y_by_one(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const y = assay_tensors_find(tensors, "y");
    assay_tensor_set_bits(y, 100, assay_tensor_bits(y, 100) + 1);
}

static void forget_flushing(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const y = assay_tensors_find(tensors, "y");
    for (int64_t i = 0; i < assay_tensor_elements(y); i++)
        if (assay_tensor_bits(y, i) == 0) assay_tensor_set_bits(y, i, 0x00400000);
}

START_TEST(wrong_outputs_are_outside)
{
    static const struct {
        const char *text;
        void (*how)(const struct assay_tensors *tensors);
        int least;
    } rows[] = {
        { "wgmma blocks=1 steps=1 data=exact", raise_d_by_three_quanta, 1 },
        { "wgmma blocks=1 steps=1 data=cancel", raise_d_by_three_quanta, 1 },
        { "sfu function=ex2 count=200", raise_y_by_four, 1 },
        { "sfu function=rcp count=200", raise_y_by_four, 1 },
        { "sfu function=rsqrt count=200", raise_y_by_four, 1 },
        { "sfu function=ex2 count=2000 data=subnormal", forget_flushing, 100 },
        { "convert to=e4m3 count=200", raise_y_by_one, 1 },
        { "convert to=e5m2 count=200 data=ties", raise_y_by_one, 1 },
        { "convert to=bf16 count=200 data=wide", raise_y_by_one, 1 },
        { "convert to=f16 count=200 data=subnormal", raise_y_by_one, 1 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct assay_result result = result_of(rows[i].text, "", rows[i].how);
        ck_assert_msg(result.verdict == ASSAY_OUTSIDE, "%s", rows[i].text);
        ck_assert_int_ge(result.output[0].outside, rows[i].least);
        assay_result_close(&result);
    }
}
END_TEST

/* Knobs that mean another function: outside for the default, bounded for themselves. */
START_TEST(the_oracle_follows_conversions_that_mean_something_else)
{
    static const struct {
        const char *text, *numerics;
    } rows[] = {
        { "convert to=e4m3 count=1000 data=wide", "overflow=special" },
        { "convert to=bf16 count=1000 data=special", "overflow=saturates" },
        { "convert to=f16 count=1000", "rounding=toward-zero" },
        { "convert to=e5m2 count=1000 data=special", "rounding=toward-zero" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[160];
        struct assay_result result = result_of(rows[i].text, rows[i].numerics, NULL);
        ck_assert_msg(result.verdict == ASSAY_OUTSIDE, "%s", rows[i].text);
        assay_result_close(&result);
        snprintf(text, sizeof(text), "%s as=%s", rows[i].text, rows[i].numerics);
        result = result_of(text, "", NULL);
        ck_assert_msg(result.verdict == ASSAY_BOUNDED, "%s", text);
        ck_assert(result.is_unverified_profile);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(better_functions_than_the_units_are_within_its_accuracy)
{
    static const char *const functions[] = { "ex2", "lg2", "rcp", "rsqrt" };
    static const char *const kinds[] = { "normal", "wide", "special", "subnormal",
                                         "positive" };
    for (int i = 0; i < 4 * 5; i++) {
        char text[160];
        snprintf(text, sizeof(text), "sfu function=%s count=3000 data=%s seed=3",
                 functions[i / 5], kinds[i % 5]);
        struct assay_result result = result_of(text, "rounding=nearest-even", NULL);
        ck_assert_msg(result.verdict == ASSAY_BOUNDED || result.verdict == ASSAY_EQUAL,
                      "%s", text);
        if (i % 5 == 0) ck_assert_msg(result.output[0].differ > 0, "%s", text);
        assay_result_close(&result);
    }
}
END_TEST

/* --- special values --------------------------------------------------------------- */

/* What the oracle expects of element 0 of the only output. */
static void expect_first(const char *text, double *value, double *bound)
{
    static _Alignas(16) unsigned char problem[ASSAY_MAX_PROBLEM_BYTES];
    static _Alignas(16) unsigned char numerics[ASSAY_MAX_NUMERICS_BYTES];
    const struct assay_case the_case = parsed(text);
    struct assay_part_expectation expectation;
    struct assay_tensors tensors;
    struct assay_buffers buffers;
    struct assay_message message;
    generate_case(&the_case, &tensors, &buffers);
    ck_assert(the_case.operation->bind(&the_case, problem, &message) == ASSAY_RAN);
    ck_assert(assay_numerics_parse(the_case.operation, problem, the_case.numerics,
                                   numerics, &message) == ASSAY_RAN);
    ck_assert(assay_expect_part(the_case.operation, problem, numerics, &tensors, 0,
                                &expectation) == ASSAY_RAN);
    *value = expectation.expected[tensors.count - 1].value[0];
    *bound = expectation.expected[tensors.count - 1].bound[0];
    assay_part_expectation_close(&expectation);
    assay_buffers_close(&buffers);
}

START_TEST(special_values_of_functions_are_claimed_exactly)
{
    const double infinity = (double)INFINITY, nan = (double)NAN;
    const struct {
        const char *function;
        uint32_t x;
        double y;
    } rows[] = {
        { "ex2", 0x7FC00000, nan },         { "ex2", 0xFF800000, 0 },
        { "ex2", 0x43000000, infinity },    { "ex2", 0xC2FC0001, 0 },
        { "ex2", 0xC3160000, 0 },           { "lg2", 0x007FFFFF, -infinity },
        { "lg2", 0x80000001, -infinity },   { "lg2", 0xBF800000, nan },
        { "lg2", 0x7F800000, infinity },    { "rcp", 0x80000000, -infinity },
        { "rcp", 0x007FFFFF, infinity },    { "rcp", 0x7E800001, 0 },
        { "rcp", 0x7F7FFFFF, 0 },           { "rcp", 0xFF800000, 0 },
        { "rsqrt", 0x80000000, -infinity }, { "rsqrt", 0x7F800000, 0 },
        { "rsqrt", 0xFF800000, nan },       { "rsqrt", 0x00000001, infinity },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[128];
        double value, bound;
        snprintf(text, sizeof(text), "sfu function=%s count=1 bits=x.0:%08x",
                 rows[i].function, rows[i].x);
        expect_first(text, &value, &bound);
        const bool is_right = isnan(rows[i].y) ? isnan(value) : value == rows[i].y;
        ck_assert_msg(is_right && bound == 0, "%s: %a +- %a", text, value, bound);
    }
}
END_TEST

/* 2^-126 may just as well be flushed. */
START_TEST(the_smallest_normal_result_may_be_zero)
{
    static const char *const texts[] = { "sfu function=rcp count=1 bits=x.0:7e800000",
                                         "sfu function=ex2 count=1 bits=x.0:c2fc0000" };
    for (int i = 0; i < 2; i++) {
        double value, bound;
        expect_first(texts[i], &value, &bound);
        ck_assert(value == 0x1p-126 && bound == 0x1p-126);
    }
}
END_TEST

/* In one dot-add a product of 2^254 overflows for certain, in two it may meet its
 * opposite; nor is anything claimed of an infinity that a finite overflow may meet. */
START_TEST(overflow_of_a_chain_is_claimed_where_it_is_certain)
{
    const double infinity = (double)INFINITY;
    const struct {
        int steps;
        const char *bits;
        double value;
        bool is_claimed;
    } rows[] = {
        { 1, "a.0.0.0.0:7f00,b.0.0.0.0:7f00", infinity, true },
        { 1, "a.0.0.0.0:7f00,b.0.0.0.0:ff00", -infinity, true },
        { 1, "a.0.0.0.0:7f00,b.0.0.0.0:3f80,c.0.0.0:7f7fffff", infinity, true },
        { 1, "a.0.0.0.0:7f00,b.0.0.0.0:3f80,c.0.0.0:7effffff", 0, false },
        { 1, "a.0.0.0.0:7f00,b.0.0.0.0:3f80,c.0.0.0:7e800000", 0, true },
        { 2, "a.0.0.0.0:7f00,b.0.0.0.0:7f00", 0, false },
        { 1, "a.0.0.0.0:7f80,b.0.0.0.0:bf80", -infinity, true },
        { 2, "a.0.1.0.0:7f80,b.0.1.0.0:3f80", infinity, true },
        { 2, "a.0.0.0.0:7f00,b.0.0.0.0:ff00,a.0.1.0.0:7f80,b.0.1.0.0:3f80", 0, false },
        { 2, "a.0.0.0.0:7f80,b.0.0.0.0:3f80,c.0.0.0:ff800000", (double)NAN, true },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[256];
        double value, bound;
        snprintf(text, sizeof(text),
                 "wgmma blocks=1 steps=%d a_format=bf16 b_format=bf16 data=exact bits=%s",
                 rows[i].steps, rows[i].bits);
        expect_first(text, &value, &bound);
        ck_assert_msg(!isinf(bound) == rows[i].is_claimed, "%s: %g", text, bound);
        if (rows[i].is_claimed && rows[i].value != 0)
            ck_assert_msg(isnan(rows[i].value) ? isnan(value) : value == rows[i].value,
                          "%s: %g", text, value);
    }
}
END_TEST

/* --- data ------------------------------------------------------------------------- */

static void check_same(const struct assay_tensor *small, int64_t i,
                       const struct assay_tensor *large, int64_t j)
{
    ck_assert_uint_eq(assay_tensor_bits(small, i), assay_tensor_bits(large, j));
}

START_TEST(smaller_cases_keep_the_values_they_share)
{
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++) {
        char text[128];
        struct assay_tensors small, large;
        struct assay_buffers small_buffers, large_buffers;
        const char *const name = assay_data_kinds[kind].name;
        snprintf(text, sizeof(text), "wgmma blocks=3 steps=5 n=16 data=%s seed=5", name);
        struct assay_case the_case = parsed(text);
        generate_case(&the_case, &large, &large_buffers);
        snprintf(text, sizeof(text), "wgmma blocks=2 steps=2 data=%s seed=5", name);
        the_case = parsed(text);
        generate_case(&the_case, &small, &small_buffers);
        for (int64_t i = 0; i < 2 * 2 * 64 * 32; i++) /* block, step, row, element */
            check_same(&small.item[0], i, &large.item[0],
                       i / 4096 * 5 * 64 * 32 + i % 4096);
        for (int64_t i = 0; i < 2 * 2 * 8 * 32; i++)
            check_same(&small.item[1], i, &large.item[1],
                       (i / 512 * 5 + i / 256 % 2) * 16 * 32 + i % 256);
        for (int64_t i = 0; i < 2 * 64 * 8; i++)
            check_same(&small.item[2], i, &large.item[2], i / 8 * 16 + i % 8);
        assay_buffers_close(&small_buffers);
        assay_buffers_close(&large_buffers);
    }
}
END_TEST

/* A kind that differs from normal data in nothing would test nothing. */
START_TEST(kinds_of_data_are_told_apart)
{
    static const char *const cases[] = { "wgmma blocks=1 steps=2",
                                         "sfu function=ex2 count=500",
                                         "convert to=e4m3 count=500" };
    for (int i = 0; i < 3; i++) {
        uint64_t seen[ASSAY_DATA_KIND_COUNT];
        int count = 0;
        for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++) {
            char text[128];
            const bool is_refused = i > 0 && (kind == ASSAY_DATA_CANCEL ||
                                              (kind == ASSAY_DATA_TIES && i == 1));
            if (is_refused) continue;
            struct assay_tensors tensors;
            struct assay_buffers buffers;
            snprintf(text, sizeof(text), "%s data=%s", cases[i],
                     assay_data_kinds[kind].name);
            const struct assay_case the_case = parsed(text);
            generate_case(&the_case, &tensors, &buffers);
            seen[count++] = assay_inputs_hash(&tensors);
            assay_buffers_close(&buffers);
        }
        for (int a = 0; a < count; a++)
            for (int b = 0; b < a; b++)
                ck_assert_uint_ne(seen[a], seen[b]);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        bounds_are_tight,
        bound_holds_for_every_unit_and_width,
        bound_holds_for_other_orders_of_the_products,
        exact_data_leaves_no_room,
        ties_lie_half_way_between_two_results,
        wrong_outputs_are_outside,
        the_oracle_follows_conversions_that_mean_something_else,
        better_functions_than_the_units_are_within_its_accuracy,
        special_values_of_functions_are_claimed_exactly,
        the_smallest_normal_result_may_be_zero,
        overflow_of_a_chain_is_claimed_where_it_is_certain,
        smaller_cases_keep_the_values_they_share,
        kinds_of_data_are_told_apart,
        NULL,
    };
    return run_tests("unit_operations", tests);
}
