/* SPDX-License-Identifier: MIT */
/* Tests of the operation mla_plan as a whole: which fields are judged, which cases are
 * refused, and that model and oracle agree on random ones. */
#include "ref/mla_plan_problem.h"
#include "tests/harness.h"
#include "tests/verify/drawn_result.h"
#include "tests/verify/judged_case.h"

enum { METADATA, NUM_SPLITS };

static int64_t changed_element;
static int changed_output;

static void change(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const tensor = assay_tensors_find(
        tensors, changed_output == METADATA ? "tile_scheduler_metadata" : "num_splits");
    assay_tensor_set_bits(tensor, changed_element,
                          assay_tensor_bits(tensor, changed_element) ^ 1);
}

/* Parts 0 to 2 are busy, part 3 is idle. */
static const char small_case[] = "mla_plan b=3 s_k=130,64,1000 parts=4";

START_TEST(every_defined_field_is_judged_and_no_other)
{
    changed_output = METADATA;
    for (changed_element = 0; changed_element < 32; changed_element++) {
        const int64_t part = changed_element / 8, field = changed_element % 8;
        const bool is_defined =
            field != ASSAY_PLAN_PAD && (part < 3 || field <= ASSAY_PLAN_END_REQ);
        struct assay_result result = result_of(small_case, "", change);
        ck_assert_int_eq(result.verdict, is_defined ? ASSAY_OUTSIDE : ASSAY_EQUAL);
        ck_assert_int_eq(result.output[METADATA].defined, 23);
        ck_assert_int_eq(result.output[METADATA].outside, is_defined);
        ck_assert_int_eq(result.output[METADATA].unclaimed, 0);
        assay_result_close(&result);
    }
    changed_output = NUM_SPLITS;
    for (changed_element = 0; changed_element < 4; changed_element++) {
        struct assay_result result = result_of(small_case, "", change);
        ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
        ck_assert_int_eq(result.output[NUM_SPLITS].outside, 1);
        ck_assert_int_eq(result.output[NUM_SPLITS].differ, 1);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(places_name_the_part_and_the_field)
{
    changed_output = METADATA;
    changed_element = 8 * 2 + ASSAY_PLAN_BEGIN_SPLIT;
    struct assay_result result = result_of(small_case, "", change);
    ck_assert_str_eq(result.output[METADATA].worst.place.text, "part 2, begin_split");
    assay_result_close(&result);
    changed_output = NUM_SPLITS;
    changed_element = 2;
    result = result_of(small_case, "", change);
    ck_assert_str_eq(result.output[NUM_SPLITS].worst.place.text,
                     "splits up to request 1");
    assay_result_close(&result);
    changed_element = 0;
    result = result_of(small_case, "", change);
    ck_assert_str_eq(result.output[NUM_SPLITS].worst.place.text,
                     "splits before request 0");
    assay_result_close(&result);
}
END_TEST

START_TEST(another_overhead_or_block_size_is_outside_unless_asked_for)
{
    static const char *const knobs[] = { "overhead=3", "block_keys=128" };
    for (int i = 0; i < 2; i++) {
        char text[128];
        struct assay_result result = result_of(small_case, knobs[i], NULL);
        ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
        assay_result_close(&result);
        snprintf(text, sizeof(text), "%s as=%s", small_case, knobs[i]);
        result = result_of(text, "", NULL);
        ck_assert_int_eq(result.verdict, ASSAY_BOUNDED);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(the_overhead_of_the_case_is_what_the_knob_turns)
{
    struct assay_result result =
        result_of("mla_plan b=3 s_k=130,64,1000 parts=4 overhead=3", "overhead=5", NULL);
    ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
    assay_result_close(&result);
    result =
        result_of("mla_plan b=3 s_k=130,64,1000 parts=4 overhead=3", "overhead=3", NULL);
    ck_assert_int_ne(result.verdict, ASSAY_OUTSIDE);
    ck_assert(result.has_passed);
    assay_result_close(&result);
}
END_TEST

START_TEST(random_cases_are_decisive_and_model_and_oracle_agree)
{
    int kinds = 0, indecisive = 0;
    for (int i = 0; i < 600; i++) {
        struct assay_case the_case;
        char line[ASSAY_MAX_CASE_LINE];
        draw_case("mla_plan", 1, "case", i, 100000, &the_case, line);
        kinds |= 1 << (assay_case_value(&the_case, "attention") +
                       2 * (assay_case_value(&the_case, "extra_topk") > 0));
        struct assay_result result = result_of(line, "", NULL);
        expect_drawn_result(&result, line, &indecisive);
        ck_assert(result.output[METADATA].max_error_over_bound == 0);
        ck_assert(result.output[NUM_SPLITS].max_error_over_bound == 0);
        ck_assert_int_eq(result.output[METADATA].unclaimed, 0);
        assay_result_close(&result);
    }
    ck_assert_int_eq(indecisive, 0);
    ck_assert_int_eq(kinds, 1 | 2 | 8); /* dense, sparse, sparse with an extra cache */
}
END_TEST

START_TEST(illegal_cases_are_refused_with_a_sentence)
{
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        { "mla_plan b=2", "attention=dense needs s_k=" },
        { "mla_plan b=2 s_k=1,2,3", "s_k= has 3 values for 2 requests" },
        { "mla_plan b=2 s_k=1 topk=64", "attention=dense has no indices" },
        { "mla_plan b=2 s_k=1 extra_topk=64", "attention=dense has no indices" },
        { "mla_plan b=2 s_k=1 topk_length=4", "attention=dense has no indices" },
        { "mla_plan b=2 s_k=1 extra_topk_length=4", "attention=dense has no indices" },
        { "mla_plan b=2 s_k=1 h_q=9 h_k=2", "h_k=2 does not divide h_q=9" },
        { "mla_plan b=2 s_k=1 sms=161 h_q=1", "sms=161 gives 161 parts" },
        { "mla_plan attention=sparse b=2", "needs topk=" },
        { "mla_plan attention=sparse b=2 topk=64 s_k=3", "leave out s_k and h_k" },
        { "mla_plan attention=sparse b=2 topk=64 h_k=2", "leave out s_k and h_k" },
        { "mla_plan attention=sparse b=2 topk=64 h_q=16", "has h_q=16" },
        { "mla_plan attention=sparse b=2 topk=65", "multiples of 64" },
        { "mla_plan attention=sparse b=2 topk=64 extra_topk=1", "multiples of 64" },
        { "mla_plan attention=sparse b=2 topk=64 extra_topk_length=1", "extra_topk=" },
        { "mla_plan attention=sparse b=3 topk=64 topk_length=1,2", "topk_length= has 2" },
        { "mla_plan attention=sparse b=2 topk=64 extra_topk=64 extra_topk_length=1,2,3",
          "extra_topk_length= has 3 values" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct assay_case the_case = parsed(rows[i].text);
        _Alignas(max_align_t) char problem[ASSAY_MAX_PROBLEM_BYTES];
        struct assay_message message;
        ck_assert_msg(the_case.operation->bind(&the_case, problem, &message) ==
                          ASSAY_REFUSED,
                      "%s", rows[i].text);
        ck_assert_msg(strstr(message.text, rows[i].sentence), "%s", message.text);
    }
}
END_TEST

static struct assay_result result_without_assertion(const char *text)
{
    const struct assay_case the_case = parsed(text);
    static char state[ASSAY_MAX_NUMERICS_TEXT];
    const struct assay_trial_plan plan = { .candidate = model(),
                                           .candidate_state = state,
                                           .uses_oracle = true,
                                           .checks = assay_checks };
    struct assay_result result;
    assay_trial_run(&plan, &the_case, NULL, 0, &result);
    return result;
}

START_TEST(lengths_that_no_kernel_may_get_are_refused_unless_unsafe)
{
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        { "mla_plan b=2 s_k=5 bits=cache_seqlens.1:ffffffff",
          "cache_seqlens of request 1 is -1; it must be from 0 to 16777216" },
        { "mla_plan b=2 s_k=5 bits=cache_seqlens.0:01000001",
          "cache_seqlens of request 0 is 16777217" },
        { "mla_plan attention=sparse b=2 topk=64 topk_length=3,65",
          "topk_length of request 1 is 65; it must be from 0 to 64" },
        { "mla_plan attention=sparse b=2 topk=64 extra_topk=128 extra_topk_length=129",
          "extra_topk_length of request 0 is 129; it must be from 0 to 128" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[160];
        struct assay_result result = result_without_assertion(rows[i].text);
        ck_assert_int_eq(result.status, ASSAY_REFUSED);
        ck_assert_msg(strstr(result.message.text, rows[i].sentence), "%s",
                      result.message.text);
        assay_result_close(&result);
        snprintf(text, sizeof(text), "%s unsafe=1", rows[i].text);
        result = result_of(text, "", NULL);
        ck_assert(result.has_passed);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(lengths_lie_where_the_case_names_them)
{
    static const int32_t main_length[] = { 7, 7, 7 }, extra[] = { 1, 0, 64 };
    const struct assay_case the_case =
        parsed("mla_plan attention=sparse b=3 topk=64 topk_length=7 extra_topk=64 "
               "extra_topk_length=1,0,64");
    _Alignas(max_align_t) char problem[ASSAY_MAX_PROBLEM_BYTES];
    struct assay_message message;
    struct assay_tensors tensors;
    struct assay_buffers buffers;
    ck_assert(the_case.operation->bind(&the_case, problem, &message) == ASSAY_RAN);
    the_case.operation->shape(problem, &tensors);
    ck_assert(assay_buffers_open(&buffers, &tensors, &message) == ASSAY_RAN);
    the_case.operation->fill(problem, the_case.data, the_case.seed, &tensors);
    ck_assert_str_eq(tensors.item[0].name, "topk_length");
    ck_assert_mem_eq(tensors.item[0].data, main_length, sizeof(main_length));
    ck_assert_mem_eq(tensors.item[1].data, extra, sizeof(extra));
    assay_buffers_close(&buffers);
}
END_TEST

START_TEST(parts_are_counted_as_upstream_counts_them)
{
    static const struct {
        const char *text;
        int64_t parts;
    } rows[] = {
        { "mla_plan b=1 s_k=1", 66 },
        { "mla_plan b=1 s_k=1 s_q=2", 33 },
        { "mla_plan b=1 s_k=1 h_q=16", 132 },
        { "mla_plan b=1 s_k=1 h_q=18 h_k=2", 66 },
        { "mla_plan b=1 s_k=1 s_q=3 h_q=16", 132 },
        { "mla_plan b=1 s_k=1 s_q=400", 1 },
        { "mla_plan b=1 s_k=1 sms=1", 1 },
        { "mla_plan attention=sparse b=1 topk=64 h_q=64", 132 },
        { "mla_plan attention=sparse b=1 topk=64 h_q=64 s_q=2", 66 },
        { "mla_plan attention=sparse b=1 topk=64 s_q=2", 33 },
        { "mla_plan attention=sparse b=1 topk=64 s_q=200", 1 },
        { "mla_plan b=1 s_k=1 parts=160", 160 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct assay_result result = result_of(rows[i].text, "", NULL);
        ck_assert_msg(result.output[METADATA].elements == 8 * rows[i].parts, "%s",
                      rows[i].text);
        assay_result_close(&result);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_defined_field_is_judged_and_no_other,
        places_name_the_part_and_the_field,
        another_overhead_or_block_size_is_outside_unless_asked_for,
        the_overhead_of_the_case_is_what_the_knob_turns,
        random_cases_are_decisive_and_model_and_oracle_agree,
        illegal_cases_are_refused_with_a_sentence,
        lengths_that_no_kernel_may_get_are_refused_unless_unsafe,
        lengths_lie_where_the_case_names_them,
        parts_are_counted_as_upstream_counts_them,
        NULL,
    };
    return run_tests("mla_plan", tests);
}
