/* SPDX-License-Identifier: MIT */
/* What counts as caught, and what the clean model is asked. */
#include "fuzz/selftest/selftest.h"

#include "fuzz/fault/class.h"
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct assay_fault_outcome *run(struct assay_selftest *selftest,
                                       const struct assay_fault *fault)
{
    static struct assay_fault_outcome outcome;
    ck_assert_msg(assay_selftest_run(selftest, fault, &outcome) == ASSAY_RAN, "%s",
                  selftest->message.text);
    return &outcome;
}

static const struct assay_kill *kill_of(const struct assay_selftest *selftest,
                                        const struct assay_fault_outcome *outcome,
                                        const char *column)
{
    for (int i = 0; i < selftest->column_count; i++)
        if (strcmp(selftest->column[i].name, column) == 0) return &outcome->kill[i];
    ck_abort_msg("no column %s", column);
}

static struct assay_fault row(const char *name)
{
    const struct assay_fault *const fault = assay_fault_find(name);
    ck_assert_msg(fault, "%s", name);
    return *fault;
}

START_TEST(all_checks_guards_and_criteria_are_columns)
{
    struct assay_selftest selftest = { 0 };
    const struct assay_fault_outcome none = { 0 };
    assay_selftest_open(&selftest);
    for (int i = 0; assay_checks[i]; i++)
        kill_of(&selftest, &none, assay_checks[i]->name);
    for (int i = 0; assay_criteria_table[i].name; i++)
        kill_of(&selftest, &none, assay_criteria_table[i].name);
    kill_of(&selftest, &none, "guards");
    assay_selftest_close(&selftest);
}
END_TEST

START_TEST(a_fault_of_a_function_is_caught_by_more_than_its_bits)
{
    struct assay_selftest selftest = { 0 };
    assay_selftest_open(&selftest);
    const struct assay_fault fault = row("c-twice");
    const struct assay_fault_outcome *const outcome = run(&selftest, &fault);
    ck_assert(outcome->is_caught);
    ck_assert_int_eq(kill_of(&selftest, outcome, "bitwise")->cases, 1);
    ck_assert_int_eq(kill_of(&selftest, outcome, "bound")->cases, 1);
    ck_assert_int_gt(kill_of(&selftest, outcome, "exact")->cases, 0);
    ck_assert_int_eq(kill_of(&selftest, outcome, "guards")->cases, 0);
    ck_assert_int_eq(kill_of(&selftest, outcome, "flashmla")->chances, 0);
    ck_assert_int_gt(selftest.clean_cases, 0);
    ck_assert_int_eq(selftest.alarms, 0);
    assay_selftest_close(&selftest);
}
END_TEST

START_TEST(bits_alone_do_not_catch_a_fault_of_a_function)
{
    struct assay_selftest selftest = { .cases = 3 };
    assay_selftest_open(&selftest);
    struct assay_fault fault = row("promote-separately");
    ck_assert(run(&selftest, &fault)->is_caught);
    fault.kind = ASSAY_FAULT_FUNCTION;
    const struct assay_fault_outcome *const outcome = run(&selftest, &fault);
    ck_assert(!outcome->is_caught);
    ck_assert_str_eq(outcome->remark, "only bitwise and criteria see it");
    ck_assert_int_eq(outcome->cases, 3);
    assay_selftest_close(&selftest);
}
END_TEST

/* Its limit for f32 is narrower than what the unit's accumulator keeps. */
START_TEST(a_criterion_that_rejects_the_model_finds_no_fault)
{
    struct assay_selftest selftest = { .cases = 1 };
    assay_selftest_open(&selftest);
    const struct assay_fault fault = row("promote-separately");
    const struct assay_fault_outcome *const outcome = run(&selftest, &fault);
    ck_assert_int_eq(kill_of(&selftest, outcome, "torch")->chances, 0);
    ck_assert_int_eq(kill_of(&selftest, outcome, "torch")->cases, 0);
    for (int i = 0; i < selftest.column_count; i++)
        if (strcmp(selftest.column[i].name, "torch") == 0)
            ck_assert_int_eq(selftest.clean_rejected[i], 1);
    assay_selftest_close(&selftest);
}
END_TEST

START_TEST(checks_that_a_row_names_have_to_see_it)
{
    struct assay_selftest selftest = { .cases = 2 };
    assay_selftest_open(&selftest);
    struct assay_fault fault = row("promote-separately");
    fault.must_catch = "bitwise poison";
    const struct assay_fault_outcome *const outcome = run(&selftest, &fault);
    ck_assert(!outcome->is_caught);
    ck_assert_str_eq(outcome->remark, "poison does not see it; ");
    assay_selftest_close(&selftest);
}
END_TEST

START_TEST(a_rounding_is_named_where_its_bits_are_found)
{
    struct assay_selftest selftest = { .cases = 2 };
    assay_selftest_open(&selftest);
    const struct assay_fault fault = row("promote-separately");
    const struct assay_fault_outcome *const outcome = run(&selftest, &fault);
    ck_assert(outcome->is_caught);
    ck_assert_int_eq(kill_of(&selftest, outcome, "identify")->cases, 1);
    ck_assert_int_eq(kill_of(&selftest, outcome, "identify")->chances, 1);
    const struct assay_fault function = row("c-twice");
    ck_assert_int_eq(kill_of(&selftest, run(&selftest, &function), "identify")->chances,
                     0);
    assay_selftest_close(&selftest);
}
END_TEST

/* identify then answers as truly as before, but not with what the row says. */
START_TEST(another_name_than_the_rows_own_is_none)
{
    struct assay_selftest selftest = { .cases = 1 };
    assay_selftest_open(&selftest);
    struct assay_fault fault = row("promote-separately");
    fault.numerics = row("k-descending").numerics;
    const struct assay_fault_outcome *const outcome = run(&selftest, &fault);
    ck_assert(!outcome->is_caught);
    ck_assert_str_eq(outcome->remark, "identify does not name it; ");
    ck_assert_int_eq(kill_of(&selftest, outcome, "identify")->chances, 1);
    ck_assert_int_eq(kill_of(&selftest, outcome, "identify")->cases, 0);
    assay_selftest_close(&selftest);
}
END_TEST

START_TEST(a_rounding_behind_every_knob_has_no_name)
{
    struct assay_selftest selftest = { .cases = 1 };
    assay_selftest_open(&selftest);
    struct assay_fault fault = row("c-onto-bf16");
    fault.kind = ASSAY_FAULT_ROUNDING;
    fault.must_catch = NULL;
    const struct assay_fault_outcome *const outcome = run(&selftest, &fault);
    ck_assert(!outcome->is_caught);
    ck_assert_str_eq(outcome->remark, "identify does not name it; ");
    ck_assert_int_eq(kill_of(&selftest, outcome, "bitwise")->cases, 1);
    assay_selftest_close(&selftest);
}
END_TEST

START_TEST(every_class_has_a_name_and_faults)
{
    int faults[ASSAY_FAULT_CLASSES] = { 0 };
    for (int i = 0; assay_fault_at(i); i++)
        faults[assay_fault_class_of(assay_fault_at(i))]++;
    for (int i = 0; i < ASSAY_FAULT_CLASSES; i++) {
        char id[16];
        snprintf(id, sizeof(id), "C%02d", i + 1);
        ck_assert_str_eq(assay_fault_classes[i].id, id);
        ck_assert_msg(faults[i] > 0, "%s", assay_fault_classes[i].name);
    }
    const struct assay_fault fault = row("promote-512");
    ck_assert_str_eq(assay_fault_classes[assay_fault_class_of(&fault)].name,
                     "accumulator and promotion");
}
END_TEST

START_TEST(a_fault_without_effect_survives)
{
    struct assay_selftest selftest = { .cases = 2 };
    assay_selftest_open(&selftest);
    struct assay_fault fault = row("c-twice");
    fault.cases[0] = "fp8_gemm_nt m=4 n=8 k=128 seed=1"; /* no c */
    const struct assay_fault_outcome *const outcome = run(&selftest, &fault);
    ck_assert(!outcome->is_caught);
    ck_assert_str_eq(outcome->remark, "nothing sees it");
    ck_assert_str_eq(outcome->case_line, "");
    assay_selftest_close(&selftest);
}
END_TEST

START_TEST(writing_outside_is_found_by_the_guards)
{
    struct assay_selftest selftest = { .cases = 1 };
    assay_selftest_open(&selftest);
    const struct assay_fault fault = row("writes-past-end");
    const struct assay_fault_outcome *const outcome = run(&selftest, &fault);
    ck_assert(outcome->is_caught);
    ck_assert_int_eq(kill_of(&selftest, outcome, "guards")->cases, 1);
    assay_selftest_close(&selftest);
}
END_TEST

/* --- verifiers -------------------------------------------------------------------- */

static void change_nothing(struct assay_fault_verifier *verifier)
{
    (void)verifier;
}

START_TEST(a_verifier_without_a_fault_survives_the_meta_test)
{
    struct assay_selftest selftest = { 0 };
    assay_selftest_open(&selftest);
    struct assay_fault fault = row("bound-too-wide");
    ck_assert(run(&selftest, &fault)->is_caught);
    fault.verifier = change_nothing;
    const struct assay_fault_outcome *const outcome = run(&selftest, &fault);
    ck_assert(!outcome->is_caught);
    ck_assert_str_eq(outcome->remark, "the broken verifier judges as the sound one does");
    assay_selftest_close(&selftest);
}
END_TEST

START_TEST(the_meta_test_finds_every_fault_of_the_verifier)
{
    struct assay_selftest selftest = { 0 };
    const struct assay_fault *fault;
    int faults = 0;
    assay_selftest_open(&selftest);
    for (int i = 0; (fault = assay_fault_at(i)); i++) {
        if (fault->kind != ASSAY_FAULT_VERIFIER) continue;
        const struct assay_fault_outcome *const outcome = run(&selftest, fault);
        ck_assert_msg(outcome->is_caught, "%s: %s", fault->name, outcome->remark);
        faults++;
    }
    ck_assert_int_ge(faults, 10);
    ck_assert_msg(selftest.alarms == 0, "%s", selftest.alarm);
    assay_selftest_close(&selftest);
}
END_TEST

START_TEST(blind_checks_are_named)
{
    struct assay_selftest selftest = { 0 };
    assay_selftest_open(&selftest);
    const struct assay_fault fault = row("bits-nearly-equal");
    ck_assert_str_eq(run(&selftest, &fault)->remark, "bitwise blind to scale-a-then-b");
    assay_selftest_close(&selftest);
}
END_TEST

static enum assay_status wrong_oracle(const void *problem, const void *numerics,
                                      const struct assay_tensors *tensors, int64_t part,
                                      const struct assay_expected *expected)
{
    const struct assay_operation *const sound = assay_operation_find("fp8_gemm_nt");
    const enum assay_status status =
        sound->oracle(problem, numerics, tensors, part, expected);
    const int place = (int)(assay_tensors_find(tensors, "d") - tensors->item);
    expected[place].value[0] += 1e6;
    return status;
}

START_TEST(false_alarms_are_counted_once_a_case)
{
    struct assay_selftest selftest = { 0 };
    struct assay_operation broken = *assay_operation_find("fp8_gemm_nt");
    struct assay_case the_case;
    struct assay_message message;
    uint32_t rejected;
    assay_selftest_open(&selftest);
    ck_assert_int_eq(
        assay_case_parse("fp8_gemm_nt m=4 n=8 k=128 seed=1", &the_case, &message),
        ASSAY_RAN);
    broken.oracle = wrong_oracle;
    the_case.operation = &broken;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(assay_selftest_clean(&selftest, &the_case, &rejected),
                         ASSAY_RAN);
    ck_assert_int_eq(selftest.clean_cases, 1);
    ck_assert_int_eq(selftest.alarms, 1);
    ck_assert_ptr_nonnull(strstr(selftest.alarm, "called wrong by bound"));
    ck_assert_ptr_nonnull(strstr(selftest.alarm, "m=4 n=8 k=128 seed=1"));
    assay_selftest_close(&selftest);
}
END_TEST

START_TEST(cases_are_the_same_ones_every_time)
{
    static struct assay_case one, other;
    const struct assay_fault fault = row("c-twice");
    char line[ASSAY_MAX_CASE_LINE], again[ASSAY_MAX_CASE_LINE];
    for (int i = 0; i < 12; i++) {
        ck_assert(assay_selftest_case(&fault, i, &one));
        ck_assert(assay_selftest_case(&fault, i, &other));
        assay_case_format(&one, line, sizeof(line));
        assay_case_format(&other, again, sizeof(again));
        ck_assert_str_eq(line, again);
        ck_assert_str_eq(one.operation->name, fault.operation);
        if (i == 0)
            ck_assert_str_eq(line, "fp8_gemm_nt m=20 n=24 k=256 recipe=1d1d out=f32 c=1 "
                                   "seed=3");
        if (i == 1) ck_assert_int_eq(one.data, ASSAY_DATA_EXACT);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        all_checks_guards_and_criteria_are_columns,
        a_fault_of_a_function_is_caught_by_more_than_its_bits,
        bits_alone_do_not_catch_a_fault_of_a_function,
        a_criterion_that_rejects_the_model_finds_no_fault,
        checks_that_a_row_names_have_to_see_it,
        a_rounding_is_named_where_its_bits_are_found,
        another_name_than_the_rows_own_is_none,
        a_rounding_behind_every_knob_has_no_name,
        every_class_has_a_name_and_faults,
        a_fault_without_effect_survives,
        writing_outside_is_found_by_the_guards,
        a_verifier_without_a_fault_survives_the_meta_test,
        the_meta_test_finds_every_fault_of_the_verifier,
        blind_checks_are_named,
        false_alarms_are_counted_once_a_case,
        cases_are_the_same_ones_every_time,
        NULL,
    };
    return run_tests("selftest", tests);
}
