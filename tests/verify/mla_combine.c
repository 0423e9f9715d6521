/* SPDX-License-Identifier: MIT */
/* Tests of the operation mla_combine as a whole: what is judged, what is refused, and
 * what the generated splits hold. */
#include "ref/mla_problem.h"
#include "tests/harness.h"
#include "tests/verify/drawn_result.h"
#include "tests/verify/judged_case.h"

#include <math.h>

enum { OUT, LSE }; /* of the results */

static const char *changed_tensor;
static int64_t changed_element;

static void change(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const tensor = assay_tensors_find(tensors, changed_tensor);
    assay_tensor_set_bits(tensor, changed_element,
                          assay_tensor_bits(tensor, changed_element) ^ 1);
}

static void clear_requests_of_one_split(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const num_splits =
        assay_tensors_find(tensors, "num_splits");
    const struct assay_tensor *const out = assay_tensors_find(tensors, "out");
    for (int64_t i = 0; i + 1 < num_splits->shape[0]; i++) {
        const struct assay_tensor own = assay_tensor_slice(out, i);
        if (assay_tensor_bits(num_splits, i + 1) - assay_tensor_bits(num_splits, i) != 1)
            continue;
        for (int64_t at = 0; at < assay_tensor_elements(&own); at++)
            assay_tensor_set_bits(&own, at, 0);
    }
}

START_TEST(requests_of_one_split_must_be_left_as_they_are)
{
    static const char text[] = "mla_combine b=3 splits=2,1,3 h_q=2";
    struct assay_result result = result_of(text, "", clear_requests_of_one_split);
    ck_assert_int_eq(result.output[OUT].defined, 2 * 2 * 512);
    ck_assert_int_eq(result.output[OUT].differ, 2 * 512);
    ck_assert_int_ne(result.verdict, ASSAY_EQUAL);
    assay_result_close(&result);
    result = result_of(text, "", NULL);
    ck_assert_int_eq(result.output[LSE].defined, 2 * 2);
    ck_assert(result.has_passed);
    assay_result_close(&result);
    result = result_of("mla_combine b=2 splits=1 h_q=2", "", NULL);
    ck_assert(!result.is_decisive);
    assay_result_close(&result);
}
END_TEST

START_TEST(places_are_logical_coordinates)
{
    static const char text[] = "mla_combine b=3 s_q=2 splits=2 h_q=5";
    changed_tensor = "out";
    changed_element = ((2 * 2 + 1) * 5 + 3) * 512 + 77;
    struct assay_result result = result_of(text, "", change);
    ck_assert_int_eq(result.output[OUT].differ, 1);
    ck_assert_str_eq(result.output[OUT].worst.place.text,
                     "request 2, token 1, head 3, column 77");
    assay_result_close(&result);
    changed_tensor = "lse";
    changed_element = (2 * 5 + 3) * 2 + 1;
    result = result_of(text, "", change);
    ck_assert_int_eq(result.output[LSE].differ, 1);
    ck_assert_str_eq(result.output[LSE].worst.place.text, "request 2, token 1, head 3");
    assay_result_close(&result);
}
END_TEST

START_TEST(data_without_rounding_leave_one_right_answer)
{
    static const char *const cases[] = {
        "mla_combine b=4 splits=2,3,32,160 h_q=3 data=exact",
        "mla_combine b=4 splits=2,3,33,64 h_q=3 data=exact sink=1 format=f16",
        "mla_combine b=4 splits=2,3,33,64 h_q=3 data=ties",
        "mla_combine b=4 splits=2,3,33,64 h_q=3 data=ties format=f16",
    };
    static const char *const numerics[] = { "", "as=exact-functions" };
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++) {
            char text[160];
            snprintf(text, sizeof(text), "%s %s", cases[i], numerics[j]);
            struct assay_result result = result_of(text, "", NULL);
            ck_assert_msg(result.has_passed && result.output[OUT].has_exact, "%s", text);
            ck_assert_int_eq(result.output[OUT].inexact, 0);
            ck_assert(!result.output[LSE].has_exact);
            ck_assert(!result.output[OUT].is_constant);
            assay_result_close(&result);
            changed_tensor = "out";
            changed_element = 100 * (i + 1);
            result = result_of(text, "", change);
            ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
            ck_assert_int_eq(result.output[OUT].inexact, 1);
            assay_result_close(&result);
        }
    struct assay_result result =
        result_of("mla_combine b=2 splits=5 h_q=30 data=ties sink=1", "", NULL);
    ck_assert(!result.output[OUT].has_exact && result.has_passed);
    assay_result_close(&result);
}
END_TEST

START_TEST(exact_functions_and_knobs_give_other_bits_within_the_bound)
{
    static const char *const numerics[] = { "exact-functions", "lse=fused" };
    for (int i = 0; i < 2; i++) {
        struct assay_result result = result_of(
            "mla_combine b=2 splits=7,40 h_q=64 sink=1 format=f16", numerics[i], NULL);
        ck_assert_int_gt(result.output[LSE].differ, 0);
        ck_assert_int_eq(result.output[LSE].outside + result.output[OUT].outside, 0);
        ck_assert_int_le(result.verdict, ASSAY_BOUNDED);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(random_cases_are_decisive_and_within_the_bound)
{
    int kinds = 0, forms = 0, indecisive = 0;
    for (int i = 0; i < 150; i++) {
        struct assay_case the_case;
        char line[ASSAY_MAX_CASE_LINE];
        draw_case("mla_combine", 1, "case", i, i % 3 ? 100000 : 1e6, &the_case, line);
        kinds |= 1 << the_case.data;
        forms |= 1 << (assay_case_value(&the_case, "sink") +
                       2 * (assay_case_value(&the_case, "format") == ASSAY_F16) +
                       4 * (assay_case_value(&the_case, "empty") > 0));
        struct assay_result result = result_of(line, "", NULL);
        expect_drawn_result(&result, line, &indecisive);
        assay_result_close(&result);
    }
    ck_assert_int_le(indecisive, 15);
    ck_assert_int_eq(kinds,
                     ((1 << ASSAY_GENERAL_DATA_KINDS) - 1) & ~(1 << ASSAY_DATA_ZERO));
    ck_assert_int_eq(forms, 0xFF);
}
END_TEST

START_TEST(splits_without_keys_are_constant_by_design_only_if_all_are)
{
    struct assay_result result =
        result_of("mla_combine b=2 splits=3 h_q=8 empty=1 sink=1", "", NULL);
    ck_assert(result.output[OUT].is_constant && result.output[LSE].is_constant);
    ck_assert(result.is_decisive && result.has_passed);
    assay_result_close(&result);
    result = result_of("mla_combine b=2 splits=3 h_q=8 empty=0.5 sink=1", "", NULL);
    ck_assert(!result.output[OUT].is_constant && result.has_passed);
    assay_result_close(&result);
}
END_TEST

/* --- refusals --------------------------------------------------------------------- */

static struct assay_result refused(const char *text)
{
    const struct assay_case the_case = parsed(text);
    static char state[ASSAY_MAX_NUMERICS_TEXT];
    const struct assay_trial_plan plan = { .candidate = model(),
                                           .candidate_state = state,
                                           .checks = assay_checks };
    struct assay_result result;
    assay_trial_run(&plan, &the_case, NULL, 0, &result);
    ck_assert_msg(result.status == ASSAY_REFUSED, "%s", text);
    return result;
}

START_TEST(illegal_cases_are_refused_with_a_sentence)
{
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        { "mla_combine b=2 splits=1,2,3", "splits= has 3 values for 2 requests" },
        { "mla_combine b=2 splits=3 data=exact empty=0.5", "data=exact itself says" },
        { "mla_combine b=2 splits=3 data=ties empty=0.000000000001", "data=ties itself" },
        { "mla_combine b=512 splits=160 h_q=128", "upstream's 32-bit indices" },
        { "mla_combine b=2 splits=2 h_q=1 bits=num_splits.0:1",
          "num_splits begins with 1; it must begin with 0" },
        { "mla_combine b=2 splits=2 h_q=1 bits=num_splits.0:80000000",
          "num_splits begins with -2147483648" },
        { "mla_combine b=2 splits=2 h_q=1 bits=num_splits.1:5",
          "num_splits give request 1 the splits from 5 to below 4" },
        { "mla_combine b=2 splits=2 h_q=1 bits=num_splits.1:0",
          "num_splits give request 0 the splits from 0 to below 0" },
        { "mla_combine b=2 splits=2 h_q=1 bits=num_splits.1:ffffffff",
          "num_splits give request 0 the splits from 0 to below -1" },
        { "mla_combine b=2 splits=90 h_q=1 bits=num_splits.1:a1", "1 to 160 of them" },
        { "mla_combine b=2 splits=2 h_q=1 bits=num_splits.2:3",
          "num_splits end with 3; they must count all 4 splits" },
        { "mla_combine b=2 s_q=2 splits=2 h_q=3 bits=lseaccum.1.1.2:7f800001",
          "lseaccum of split 1, token 1, head 2 is NaN" },
        { "mla_combine b=2 splits=2 h_q=3 bits=lseaccum.3.0.2:7f800000",
          "lseaccum of split 3, token 0, head 2 is +infinity" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct assay_result result = refused(rows[i].text);
        ck_assert_msg(strstr(result.message.text, rows[i].sentence), "%s",
                      result.message.text);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(unsafe_cases_run_whatever_num_splits_say)
{
    static const char *const texts[] = {
        "mla_combine b=3 splits=2,1,2 h_q=1 bits=num_splits.1:7fffffff unsafe=1",
        "mla_combine b=3 splits=2,1,2 h_q=1 bits=num_splits.1:80000000 unsafe=1",
        "mla_combine b=3 splits=2 h_q=1 bits=num_splits.3:7 unsafe=1",
        "mla_combine b=3 splits=2 h_q=2 bits=lseaccum.1.0.1:7fc00000 unsafe=1",
        "mla_combine b=3 splits=2 h_q=2 bits=lseaccum.1.0.1:7f800000 unsafe=1",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct assay_result result = result_of(texts[i], "", NULL);
        ck_assert_msg(result.has_passed, "%s", texts[i]);
        assay_result_close(&result);
    }
}
END_TEST

/* --- data ------------------------------------------------------------------------- */

static struct assay_tensors filled(const char *text, struct assay_buffers *buffers)
{
    _Alignas(max_align_t) char problem[ASSAY_MAX_PROBLEM_BYTES];
    const struct assay_case the_case = parsed(text);
    struct assay_message message;
    struct assay_tensors tensors;
    ck_assert(the_case.operation->bind(&the_case, problem, &message) == ASSAY_RAN);
    the_case.operation->shape(problem, &tensors);
    ck_assert(assay_buffers_open(buffers, &tensors, &message) == ASSAY_RAN);
    the_case.operation->fill(problem, the_case.data, the_case.seed, &tensors);
    return tensors;
}

static const float *row_at(const struct assay_tensors *tensors, const char *name,
                           int64_t split, int64_t token, int64_t head)
{
    const struct assay_tensor *const tensor = assay_tensors_find(tensors, name);
    return (const float *)tensor->data + split * tensor->stride[0] +
           token * tensor->stride[1] + head * tensor->stride[2];
}

/* Request 1 keeps its values when requests, tokens, heads and splits come and go. */
START_TEST(splits_depend_on_logical_coordinates_alone)
{
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++) {
        char text[160];
        struct assay_buffers buffers[2];
        struct assay_tensors large, small;
        const bool is_set = kind == ASSAY_DATA_EXACT || kind == ASSAY_DATA_TIES;
        const char *const empty = is_set ? "" : "empty=0.3";
        snprintf(text, sizeof(text),
                 "mla_combine b=3 s_q=2 splits=5,4,2 h_q=5 data=%s %s",
                 assay_data_kinds[kind].name, empty);
        large = filled(text, &buffers[0]);
        snprintf(text, sizeof(text), "mla_combine b=2 splits=1,%d h_q=3 data=%s %s",
                 is_set ? 4 : 3, assay_data_kinds[kind].name, empty);
        small = filled(text, &buffers[1]);
        for (int64_t split = 0; split < 3; split++)
            for (int64_t head = 0; head < 3; head++) {
                ck_assert_mem_eq(row_at(&large, "oaccum", 5 + split, 0, head),
                                 row_at(&small, "oaccum", 1 + split, 0, head),
                                 512 * sizeof(float));
                ck_assert_mem_eq(row_at(&large, "lseaccum", 5 + split, 0, head),
                                 row_at(&small, "lseaccum", 1 + split, 0, head),
                                 sizeof(float));
            }
        assay_buffers_close(&buffers[0]);
        assay_buffers_close(&buffers[1]);
    }
}
END_TEST

START_TEST(as_many_rows_are_empty_as_the_case_says)
{
    struct assay_buffers buffers;
    const struct assay_tensors tensors =
        filled("mla_combine b=4 splits=20 h_q=64 empty=0.25", &buffers);
    int64_t empty = 0;
    for (int64_t split = 0; split < 80; split++)
        for (int64_t head = 0; head < 64; head++) {
            const float *const partial = row_at(&tensors, "oaccum", split, 0, head);
            const float lse = *row_at(&tensors, "lseaccum", split, 0, head);
            const bool is_empty = lse == -INFINITY;
            empty += is_empty;
            ck_assert_int_eq(is_empty, partial[0] == 0 && partial[511] == 0);
        }
    ck_assert_int_gt(empty, 1100); /* of 5120: 1280 +- 6 standard deviations of 31 */
    ck_assert_int_lt(empty, 1460);
    assay_buffers_close(&buffers);
}
END_TEST

/* Frozen with data version 1: generated inputs never change. */
START_TEST(generated_inputs_are_the_same_everywhere)
{
    static const uint64_t frozen[ASSAY_GENERAL_DATA_KINDS] = {
        0x877052a1c3a94285, 0xea188560984bfb5c, 0xc2513263cf45b2fb, 0x0003ba5436e4e8e1,
        0x33546222a719ff24, 0xe37249a889ab48b3, 0x9a36e846ea86f1b8, 0xdfec5ceeb4db16b4,
        0x359d10de76788f84, 0x18684bc6e0c2cd27, 0x2be38029bf33d4b9, 0xe9569e51076b009d
    };
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++) {
        char text[128];
        struct assay_buffers buffers;
        snprintf(text, sizeof(text),
                 "mla_combine b=3 s_q=2 splits=5,1,40 h_q=3 data=%s sink=1 seed=7",
                 assay_data_kinds[kind].name);
        const struct assay_tensors tensors = filled(text, &buffers);
        const uint64_t hash = assay_inputs_hash(&tensors);
        ck_assert_msg(hash == frozen[kind], "data=%s: 0x%016llx",
                      assay_data_kinds[kind].name, (unsigned long long)hash);
        assay_buffers_close(&buffers);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        requests_of_one_split_must_be_left_as_they_are,
        places_are_logical_coordinates,
        data_without_rounding_leave_one_right_answer,
        exact_functions_and_knobs_give_other_bits_within_the_bound,
        random_cases_are_decisive_and_within_the_bound,
        splits_without_keys_are_constant_by_design_only_if_all_are,
        illegal_cases_are_refused_with_a_sentence,
        unsafe_cases_run_whatever_num_splits_say,
        splits_depend_on_logical_coordinates_alone,
        as_many_rows_are_empty_as_the_case_says,
        generated_inputs_are_the_same_everywhere,
        NULL,
    };
    return run_tests("mla_combine", tests);
}
