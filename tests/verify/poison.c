/* SPDX-License-Identifier: MIT */
/* Tests of check "poison": outputs that were never written, and memory that must not
 * matter. */
#include "ref/unit/scalar.h"
#include "tests/verify/rerun_backend.h"
#include "verify/data/buffers.h"

static const char dense[] = "fp8_gemm_nt m=6 n=8 k=160 out=f32 seed=5";
static const char padded[] = "fp8_gemm_nt m=6 n=8 k=160 a_stride=176 out=f32 seed=5";
static const char masked[] = "m_grouped_fp8_gemm_nt_masked groups=2 m_max=256 n=8 k=160 "
                             "masked_m=3,0 out=f32 seed=5";

static const struct assay_backend_claim deterministic = { .is_deterministic = true };
static const struct assay_backend_claim nothing = { .is_deterministic = false };

static struct assay_result run_check(const char *line,
                                     void (*before)(const struct assay_run_call *, int),
                                     void (*after)(const struct assay_run_call *, int))
{
    const struct assay_trial_plan plan = plan_of_check("poison");
    rerun_backend.claim = deterministic;
    rerun_backend.before = before;
    rerun_backend.after = after;
    return run_line(&plan, line);
}

static void check_failure(const struct assay_result *result, const char *sentence)
{
    ck_assert_int_eq(result->status, ASSAY_RAN);
    ck_assert_int_eq(result->verdict, ASSAY_OUTSIDE);
    ck_assert(!result->has_passed);
    ck_assert_int_eq(result->finding_count, 1);
    ck_assert(result->finding[0].is_failure);
    ck_assert_str_eq(result->finding[0].check, "poison");
    ck_assert_str_eq(result->finding[0].sentence, sentence);
    ck_assert_str_eq(result->finding[0].output, "d");
}

static const struct assay_tensor *tensor_a(const struct assay_run_call *call)
{
    return assay_tensors_find(call->tensors, "a");
}

START_TEST(the_model_writes_all_and_looks_at_no_padding)
{
    static const struct {
        const char *line;
        int runs;
    } rows[] = { { dense, 2 }, { padded, 3 }, { masked, 3 } };
    for (int i = 0; i < 3; i++) {
        struct assay_result result = run_check(rows[i].line, NULL, NULL);
        ck_assert_int_eq(result.status, ASSAY_RAN);
        ck_assert_int_eq(result.finding_count, 0);
        ck_assert_int_eq(result.candidate_runs, rows[i].runs);
        ck_assert_int_eq(rerun_backend.runs, rows[i].runs);
        ck_assert_uint_eq(result.checks, bit_of_check("poison"));
        assay_result_close(&result);
    }
}
END_TEST

/* --- outputs ------------------------------------------------------------------------ */

static int64_t left_from, left_count;
static unsigned char held[1 << 16];

static void remember(const struct assay_run_call *call, int run)
{
    (void)run;
    const struct assay_tensor *const d = tensor_d(call);
    ck_assert_int_le(assay_tensor_bytes(d), sizeof(held));
    memcpy(held, d->data, (size_t)assay_tensor_bytes(d));
}

static void put_back(const struct assay_run_call *call, int run)
{
    (void)run;
    memcpy((char *)tensor_d(call)->data + 4 * left_from, held + 4 * left_from,
           (size_t)left_count * 4);
}

START_TEST(elements_that_were_never_written_are_counted)
{
    static const struct {
        const char *line;
        int64_t from, count, unwritten; /* which the contract wants */
        const char *sentence;
    } rows[] = {
        { dense, 47, 1, 1, "1 defined element was never written" },
        { dense, 0, 1, 1, "1 defined element was never written" },
        { dense, 9, 16, 16, "16 defined elements were never written" },
        { dense, 0, 48, 48, "48 defined elements were never written" },
        /* Of 4096, the first 24 are defined. */
        { masked, 20, 1000, 4, "4 defined elements were never written" },
        { masked, 24, 4000, 0, NULL },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        left_from = rows[i].from;
        left_count = rows[i].count;
        struct assay_result result = run_check(rows[i].line, remember, put_back);
        if (rows[i].sentence) {
            check_failure(&result, rows[i].sentence);
            ck_assert_int_eq(result.finding[0].elements, rows[i].unwritten);
            ck_assert_int_eq(result.finding[0].worst.index, left_from);
        } else {
            ck_assert_int_eq(result.finding_count, 0);
        }
        assay_result_close(&result);
    }
}
END_TEST

/* A result that looks like poison is no poison. */
static void write_poison(const struct assay_run_call *call, int run)
{
    (void)run;
    memset((char *)tensor_d(call)->data + 40, ASSAY_BUFFER_POISON, 8);
    memset((char *)tensor_d(call)->data + 48, 0x5A, 8);
}

START_TEST(what_looks_like_poison_may_have_been_written)
{
    struct assay_trial_plan plan = plan_of_check("poison");
    plan.uses_oracle = false;
    rerun_backend.before = NULL;
    rerun_backend.after = write_poison;
    struct assay_result result = run_line(&plan, dense);
    ck_assert_int_eq(result.finding_count, 0);
    assay_result_close(&result);
}
END_TEST

static void add_what_was_there(const struct assay_run_call *call, int run)
{
    (void)run;
    const struct assay_tensor *const d = tensor_d(call);
    assay_tensor_set_bits(d, 30, assay_tensor_bits(d, 30) ^ held[30 * 4]);
    assay_tensor_set_bits(d, 31, assay_tensor_bits(d, 31) ^ held[31 * 4]);
}

START_TEST(what_outputs_held_before_must_not_matter)
{
    struct assay_result result = run_check(dense, remember, add_what_was_there);
    check_failure(&result, "what the outputs held before changes 2 elements");
    ck_assert_int_eq(result.finding[0].worst.index, 30);
    ck_assert_uint_eq(result.finding[0].worst.candidate ^
                          result.finding[0].worst.reference,
                      0xDB ^ 0x5A);
    assay_result_close(&result);
}
END_TEST

/* --- unused memory ------------------------------------------------------------------ */

/* Like a maximum over whole rows that passes NaN by: sees nothing but large numbers. */
static void see_large_padding(const struct assay_run_call *call, int run)
{
    (void)run;
    const uint8_t *const a = tensor_a(call)->data;
    for (int row = 1; row < 6; row++)
        if ((a[row * 176 + 175] & 0x7F) != 0x7F)
            assay_tensor_set_bits(tensor_d(call), row * 8 + 3,
                                  assay_tensor_bits(tensor_d(call), row * 8 + 3) ^ 1);
}

START_TEST(padding_that_leaks_in_where_nan_does_not_show_is_found)
{
    struct assay_result result = run_check(padded, NULL, see_large_padding);
    check_failure(&result, "what unused memory holds changes 5 elements");
    ck_assert_int_eq(result.finding[0].worst.index, 11);
    ck_assert_uint_eq(result.finding[0].worst.ulps, 1);
    assay_result_close(&result);
}
END_TEST

/* The inputs of the runs, as bytes. */
static uint8_t rows_of_a[4][6 * 176];

static void keep_a(const struct assay_run_call *call, int run)
{
    ck_assert_int_le(run, 3);
    ck_assert_int_eq(assay_tensor_bytes(tensor_a(call)), sizeof(rows_of_a[run]));
    memcpy(rows_of_a[run], tensor_a(call)->data, sizeof(rows_of_a[run]));
}

START_TEST(only_padding_is_changed_where_all_elements_are_used)
{
    struct assay_result result = run_check(padded, keep_a, NULL);
    ck_assert_mem_eq(rows_of_a[1], rows_of_a[2], sizeof(rows_of_a[1]));
    for (int i = 0; i < 6 * 176; i++) {
        const bool is_padding = i % 176 >= 160;
        ck_assert_int_eq(rows_of_a[3][i], is_padding ? 0x7E : rows_of_a[1][i]);
        ck_assert(!is_padding || rows_of_a[1][i] == 0xFF);
    }
    assay_result_close(&result);
}
END_TEST

/* A lie: the model does look at row 4 of a. */
static void row_4_is_unused(const void *problem, const struct assay_tensors *tensors,
                            int input, uint8_t *is_used)
{
    (void)problem;
    const struct assay_tensor *const tensor = &tensors->item[input];
    ck_assert(!tensor->is_output);
    for (int64_t i = 0; i < assay_tensor_elements(tensor); i++)
        is_used[i] = strcmp(tensor->name, "a") != 0 || i / 160 != 4;
}

static struct assay_result run_with_hook(const struct assay_backend_claim *claim)
{
    struct assay_operation operation = *assay_operation_find("fp8_gemm_nt");
    operation.used = row_4_is_unused;
    const struct assay_trial_plan plan = plan_of_check("poison");
    struct assay_case the_case = parsed_case(padded);
    the_case.operation = &operation;
    rerun_backend.claim = *claim;
    rerun_backend.before = keep_a;
    rerun_backend.after = NULL;
    return run_plan(&plan, &the_case, NULL);
}

START_TEST(elements_nobody_uses_are_changed_as_the_operation_says)
{
    struct assay_result result = run_with_hook(&deterministic);
    check_failure(&result, "what unused memory holds changes 8 elements");
    ck_assert_int_eq(result.finding[0].worst.index, 4 * 8);
    for (int i = 0; i < 6 * 176; i++)
        ck_assert_int_eq(rows_of_a[3][i],
                         i % 176 >= 160 || i / 176 == 4 ? 0x7E : rows_of_a[1][i]);
    assay_result_close(&result);
}
END_TEST

static void see_much_in_large_padding(const struct assay_run_call *call, int run)
{
    (void)run;
    const uint8_t *const a = tensor_a(call)->data;
    if (a[175] == 0x7E) assay_tensor_set_bits(tensor_d(call), 20, assay_f32_bits(1e6f));
}

START_TEST(where_bits_do_not_repeat_the_bound_decides)
{
    static void (*const leaks[])(const struct assay_run_call *,
                                 int) = { see_large_padding, see_much_in_large_padding };
    const struct assay_trial_plan plan = plan_of_check("poison");
    for (int i = 0; i < 2; i++) {
        rerun_backend.claim = nothing;
        rerun_backend.before = NULL;
        rerun_backend.after = leaks[i];
        struct assay_result result = run_line(&plan, padded);
        ck_assert_int_eq(result.finding_count, i);
        if (i) {
            check_failure(&result,
                          "what unused memory holds brings 1 element beyond the bound");
            ck_assert_int_eq(result.finding[0].worst.index, 20);
            ck_assert_uint_eq(result.finding[0].worst.candidate, assay_f32_bits(1e6f));
        }
        assay_result_close(&result);
    }
}
END_TEST

static void flip_in_fourth_run(const struct assay_run_call *call, int run)
{
    const struct assay_tensor *const d = tensor_d(call);
    if (run == 4) assay_tensor_set_bits(d, 40, assay_tensor_bits(d, 40) ^ 1);
    see_large_padding(call, run);
}

START_TEST(what_check_repeat_saw_decides_whether_bits_are_compared)
{
    static const struct {
        const struct assay_backend_claim *claim;
        void (*after)(const struct assay_run_call *, int);
        const char *last; /* of the findings */
    } rows[] = {
        { &nothing, see_large_padding, "what unused memory holds changes 5 elements" },
        { &nothing, flip_in_fourth_run,
          "run 2 of 8 on second inputs gave other bits in 1 element, all within the "
          "bound" },
        { &deterministic, flip_in_fourth_run,
          "run 2 of 8 on second inputs gave other bits in 1 element" },
    };
    const struct assay_check *const both[] = { check_called("repeat"),
                                               check_called("poison"), NULL };
    struct assay_trial_plan plan = plan_of_check("poison");
    plan.checks = both;
    rerun_backend.before = NULL;
    for (int i = 0; i < 3; i++) {
        rerun_backend.claim = *rows[i].claim;
        rerun_backend.after = rows[i].after;
        struct assay_result result = run_line(&plan, padded);
        ck_assert_int_eq(result.finding_count, 1);
        ck_assert_str_eq(result.finding[0].sentence, rows[i].last);
        assay_result_close(&result);
    }
}
END_TEST

static enum assay_status refuse(const void *problem, const struct assay_tensors *tensors,
                                struct assay_message *message)
{
    (void)problem, (void)tensors;
    return assay_fail(message, ASSAY_REFUSED, "never right");
}

static void ask_never(const void *problem, const struct assay_tensors *tensors, int input,
                      uint8_t *is_used)
{
    (void)problem, (void)tensors, (void)input, (void)is_used;
    ck_abort_msg("indices that are no indices were followed");
}

START_TEST(nobody_asks_what_unsafe_inputs_use)
{
    struct assay_operation operation = *assay_operation_find("fp8_gemm_nt");
    operation.check_inputs = refuse;
    operation.used = ask_never;
    const struct assay_trial_plan plan = plan_of_check("poison");
    struct assay_case the_case = parsed_case(padded);
    the_case.operation = &operation;
    the_case.is_unsafe = true;
    rerun_backend.before = rerun_backend.after = NULL;
    struct assay_result result = run_plan(&plan, &the_case, NULL);
    ck_assert_int_eq(result.status, ASSAY_RAN);
    ck_assert_int_eq(rerun_backend.runs, 3); /* the padding is known all the same */
    assay_result_close(&result);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_model_writes_all_and_looks_at_no_padding,
        elements_that_were_never_written_are_counted,
        what_looks_like_poison_may_have_been_written,
        what_outputs_held_before_must_not_matter,
        padding_that_leaks_in_where_nan_does_not_show_is_found,
        only_padding_is_changed_where_all_elements_are_used,
        elements_nobody_uses_are_changed_as_the_operation_says,
        where_bits_do_not_repeat_the_bound_decides,
        what_check_repeat_saw_decides_whether_bits_are_compared,
        nobody_asks_what_unsafe_inputs_use,
        NULL,
    };
    return run_tests("poison", tests);
}
