/* SPDX-License-Identifier: MIT */
/* Tests of check "repeat": what the runs are given, and what becomes of the case when one
 * of them fails. */
#include "tests/verify/rerun_backend.h"
#include "verify/data/buffers.h"

static const char padded[] =
    "fp8_gemm_nt m=6 n=8 k=160 a_stride=176 out=f32 seed=5 bits=a.1.2:38";
enum { RUNS = 10, ALL_RUNS = 2 * RUNS - 2 };

static const struct assay_backend_claim deterministic = { .is_deterministic = true };

static struct assay_result run_check(const struct assay_backend_claim *claim)
{
    const struct assay_trial_plan plan = plan_of_check("repeat");
    rerun_backend.claim = *claim;
    return run_line(&plan, padded);
}

static void do_nothing(void)
{
    rerun_backend.before = rerun_backend.after = NULL;
    rerun_backend.status = NULL;
    rerun_backend.has_changed_inputs = false;
}

/* --- what the runs are given -------------------------------------------------------- */

static struct seen {
    int launches, poison, explicit_bits;
    uint64_t inputs;
    uint8_t a[6 * 176];
} seen[ALL_RUNS + 2];

static void look(const struct assay_run_call *call, int run)
{
    ck_assert_int_le(run, ALL_RUNS + 1);
    const unsigned char *const d = tensor_d(call)->data;
    const struct assay_tensor *const a = assay_tensors_find(call->tensors, "a");
    seen[run].launches = call->launches ? call->launches : 1;
    seen[run].poison = d[0];
    seen[run].explicit_bits = call->the_case->explicit_bits_count;
    for (int64_t i = 0; i < assay_tensor_bytes(tensor_d(call)); i++)
        ck_assert_int_eq(d[i], d[0]);
    seen[run].inputs = assay_inputs_hash(call->tensors);
    ck_assert_int_eq(assay_tensor_bytes(a), sizeof(seen[run].a));
    memcpy(seen[run].a, a->data, sizeof(seen[run].a));
}

START_TEST(runs_alternate_between_two_inputs_but_for_the_last_two)
{
    do_nothing();
    rerun_backend.before = look;
    struct assay_result result = run_check(&deterministic);
    ck_assert_int_eq(result.status, ASSAY_RAN);
    ck_assert_int_eq(result.finding_count, 0);
    ck_assert_int_eq(rerun_backend.runs, ALL_RUNS);
    ck_assert_int_eq(rerun_backend.claims, 1);
    ck_assert_int_eq(result.candidate_runs, ALL_RUNS);
    ck_assert_uint_eq(result.checks, bit_of_check("repeat"));
    ck_assert_uint_ne(seen[1].inputs, seen[2].inputs);
    for (int run = 3; run <= ALL_RUNS; run++) {
        const int like = run < ALL_RUNS ? run - 2 : run - 1;
        ck_assert_uint_eq(seen[run].inputs, seen[like].inputs);
        ck_assert_mem_eq(seen[run].a, seen[like].a, sizeof(seen[run].a));
    }
    /* The explicit element is there; the second inputs are others altogether. */
    ck_assert_int_eq(seen[3].a[176 + 2], 0x38);
    ck_assert(seen[3].explicit_bits == 1 && seen[2].explicit_bits == 0);
    int same = 0;
    for (int i = 0; i < 6 * 160; i++)
        same += seen[1].a[i / 160 * 176 + i % 160] == seen[2].a[i / 160 * 176 + i % 160];
    ck_assert_int_lt(same, 6 * 160 / 4);
    ck_assert_str_eq(result.warning, "about run 1");
    ck_assert_str_eq(result.printed, "1");
    assay_result_close(&result);
}
END_TEST

START_TEST(poison_and_launches_alternate_in_all_combinations)
{
    do_nothing();
    rerun_backend.before = look;
    struct assay_result result = run_check(&deterministic);
    int combinations[2][2] = { { 0, 0 }, { 0, 0 } }, second_poisons[2] = { 0, 0 };
    ck_assert(seen[1].poison == ASSAY_BUFFER_POISON && seen[1].launches == 1);
    for (int run = 1; run <= ALL_RUNS; run++) {
        ck_assert(seen[run].poison == ASSAY_BUFFER_POISON || seen[run].poison == 0x5A);
        const int is_other = seen[run].poison == 0x5A;
        if (run % 2 || run == ALL_RUNS)
            combinations[is_other][seen[run].launches > 1]++;
        else
            second_poisons[is_other]++;
    }
    for (int is_other = 0; is_other < 2; is_other++) {
        ck_assert_int_ge(second_poisons[is_other], 4);
        for (int is_several = 0; is_several < 2; is_several++)
            ck_assert_int_ge(combinations[is_other][is_several], 2);
    }
    /* Every second run on the trial's inputs. */
    ck_assert_int_eq(combinations[0][1] + combinations[1][1], RUNS / 2);
    assay_result_close(&result);
}
END_TEST

START_TEST(there_are_as_many_runs_as_were_asked_for)
{
    do_nothing();
    static const int repeats[] = { 2, 3, 7, 50 };
    for (int i = 0; i < 4; i++) {
        struct assay_trial_plan plan = plan_of_check("repeat");
        plan.repeats = repeats[i];
        struct assay_result result = run_line(&plan, padded);
        ck_assert_int_eq(rerun_backend.runs, 2 * repeats[i] - (repeats[i] > 2 ? 2 : 1));
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(second_inputs_are_of_the_same_kind)
{
    const struct assay_trial_plan plan = plan_of_check("repeat");
    do_nothing();
    rerun_backend.before = look;
    struct assay_result result = run_line(&plan, "fp8_gemm_nt m=6 n=8 k=160 a_stride=176 "
                                                 "out=f32 data=positive seed=5");
    ck_assert_mem_ne(seen[1].a, seen[2].a, sizeof(seen[1].a));
    for (int run = 1; run <= 2; run++)
        for (int i = 0; i < 6 * 176; i++)
            ck_assert(i % 176 >= 160 || seen[run].a[i] < 0x80);
    assay_result_close(&result);
}
END_TEST

START_TEST(second_inputs_are_normal_where_the_first_are_recorded)
{
    struct assay_recording recording;
    struct assay_message message;
    char path[4096];
    snprintf(path, sizeof(path), "%s/recorded/deepgemm_n192_normal.safetensors.zst",
             corpus_folder());
    ck_assert_msg(assay_recording_open(&recording, path, &message) == ASSAY_RAN, "%s",
                  message.text);
    struct assay_trial_plan plan = plan_of_check("repeat");
    plan.repeats = 2;
    do_nothing();
    recording.cases[0].data = ASSAY_DATA_RECORDED;
    struct assay_result result = run_plan(&plan, &recording.cases[0], &recording);
    ck_assert_int_eq(result.status, ASSAY_RAN);
    ck_assert_int_eq(rerun_backend.runs, 3);
    assay_result_close(&result);
    assay_recording_close(&recording);
}
END_TEST

static uint64_t legal_inputs; /* 0: not known yet */

static enum assay_status take_first_only(const void *problem,
                                         const struct assay_tensors *tensors,
                                         struct assay_message *message)
{
    (void)problem;
    const uint64_t inputs = assay_inputs_hash(tensors);
    if (!legal_inputs) legal_inputs = inputs;
    return inputs == legal_inputs ? ASSAY_RAN
                                  : assay_fail(message, ASSAY_REFUSED, "never right");
}

START_TEST(without_legal_second_inputs_the_runs_follow_each_other)
{
    struct assay_operation strict = *assay_operation_find("fp8_gemm_nt");
    strict.check_inputs = take_first_only;
    struct assay_case the_case = parsed_case(padded);
    the_case.operation = &strict;
    const struct assay_trial_plan plan = plan_of_check("repeat");
    do_nothing();
    rerun_backend.before = look;
    legal_inputs = 0;
    struct assay_result result = run_plan(&plan, &the_case, NULL);
    ck_assert_int_eq(result.status, ASSAY_RAN);
    ck_assert_int_eq(rerun_backend.runs, RUNS);
    for (int run = 2; run <= RUNS; run++)
        ck_assert_uint_eq(seen[run].inputs, seen[1].inputs);
    assay_result_close(&result);
}
END_TEST

/* As if recorded tensors were other than the line says: the bytes of one cannot be put
 * into the place of the other. */
static const char *line_of_second; /* bound in place of any line with another seed */

static enum assay_status bind_second_otherwise(const struct assay_case *the_case,
                                               void *problem,
                                               struct assay_message *message)
{
    const struct assay_case other = parsed_case(line_of_second);
    return assay_operation_find("fp8_gemm_nt")
        ->bind(the_case->seed == 5 ? the_case : &other, problem, message);
}

START_TEST(inputs_of_other_shapes_are_no_second_inputs)
{
    static const struct {
        const char *line;
        int runs;
    } rows[] = {
        { "fp8_gemm_nt m=6 n=8 k=160 a_stride=176 out=f32", ALL_RUNS },
        { "fp8_gemm_nt m=6 n=8 k=160 a_stride=192 out=f32", RUNS },
        { "fp8_gemm_nt m=7 n=8 k=160 a_stride=176 out=f32", RUNS },
        { "fp8_gemm_nt m=6 n=8 k=160 a_stride=176 out=bf16", RUNS },
    };
    struct assay_operation shifting = *assay_operation_find("fp8_gemm_nt");
    shifting.bind = bind_second_otherwise;
    const struct assay_trial_plan plan = plan_of_check("repeat");
    do_nothing();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        line_of_second = rows[i].line;
        struct assay_case the_case = parsed_case(padded);
        the_case.operation = &shifting;
        struct assay_result result = run_plan(&plan, &the_case, NULL);
        ck_assert_int_eq(result.status, ASSAY_RAN);
        ck_assert_int_eq(rerun_backend.runs, rows[i].runs);
        assay_result_close(&result);
    }
}
END_TEST

/* --- reruns that fail --------------------------------------------------------------- */

static enum assay_status failing_status;

static enum assay_status fail_fifth(const struct assay_run_call *call, int run)
{
    (void)call;
    return run == 5 ? failing_status : ASSAY_RAN;
}

START_TEST(a_rerun_that_fails_fails_the_case_and_says_which)
{
    do_nothing();
    rerun_backend.status = fail_fifth;
    failing_status = ASSAY_CRASHED;
    struct assay_result result = run_check(&deterministic);
    ck_assert_int_eq(result.status, ASSAY_CRASHED);
    ck_assert_str_eq(result.message.text,
                     "run 3 of 10 on the same inputs: broken on purpose");
    ck_assert_str_eq(result.warning, "about run 5");
    ck_assert_str_eq(result.printed, "5");
    ck_assert_int_eq(result.candidate_runs, 5);
    ck_assert(!result.has_passed);
    assay_result_close(&result);

    failing_status = ASSAY_UNSUPPORTED;
    result = run_check(&deterministic);
    ck_assert_int_eq(result.status, ASSAY_FAILED);
    ck_assert_ptr_nonnull(strstr(result.message.text, "does not do the case a second"));
    assay_result_close(&result);
}
END_TEST

static void write_behind_the_end(const struct assay_run_call *call, int run)
{
    if (run == 4) ((char *)tensor_d(call)->data)[6 * 8 * 4 + 7] = 0;
}

START_TEST(guards_are_watched_in_every_run)
{
    do_nothing();
    rerun_backend.after = write_behind_the_end;
    struct assay_result result = run_check(&deterministic);
    ck_assert_int_eq(result.status, ASSAY_CRASHED);
    ck_assert_str_eq(result.message.text,
                     "run 2 of 8 on second inputs: backend somebodys "
                     "wrote outside its tensors");
    assay_result_close(&result);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        runs_alternate_between_two_inputs_but_for_the_last_two,
        poison_and_launches_alternate_in_all_combinations,
        there_are_as_many_runs_as_were_asked_for,
        second_inputs_are_of_the_same_kind,
        second_inputs_are_normal_where_the_first_are_recorded,
        without_legal_second_inputs_the_runs_follow_each_other,
        inputs_of_other_shapes_are_no_second_inputs,
        a_rerun_that_fails_fails_the_case_and_says_which,
        guards_are_watched_in_every_run,
        NULL,
    };
    return run_tests("repeat", tests);
}
