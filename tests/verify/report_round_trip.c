/* SPDX-License-Identifier: MIT */
/* A result that is written as JSON and read back is the same in all reports, byte for
 * byte; what is no such line is refused. */
#include "tests/verify/reported_trial.h"
#include "verify/backend/backend.h"
#include "verify/report/json_read.h"
#include "verify/report/json_result.h"

#include <glob.h>
#include <math.h>

static const struct assay_run_header full_header = { .command = "verify",
                                                     .candidate = "plugin:./k.so",
                                                     .require = "equal" };

static char *line_of(const struct assay_result *result)
{
    char *line = NULL;
    size_t size;
    FILE *const file = open_memstream(&line, &size);
    ck_assert_int_eq(assay_json_result_write(file, result), ASSAY_RAN);
    fclose(file);
    ck_assert_uint_eq(strlen(line), size);
    ck_assert_ptr_eq(strchr(line, '\n'), line + size - 1);
    return line;
}

static struct assay_result read_back(const char *line)
{
    struct assay_result result;
    struct assay_message message;
    const enum assay_status status = assay_json_result_read(line, &result, &message);
    ck_assert_msg(status == ASSAY_RAN, "%s\n%s", message.text, line);
    return result;
}

static void assert_same_reports(const struct assay_result *a,
                                const struct assay_result *b)
{
    static const struct assay_run_header *const headers[] = { &plain_header,
                                                              &full_header };
    for (int i = 0; i < 2; i++)
        for (int report = 0; assay_reports[report]; report++) {
            const char *const name = assay_reports[report]->name;
            char *const of_a = written(name, headers[i], a, &summary);
            char *const of_b = written(name, headers[i], b, &summary);
            ck_assert_msg(strcmp(of_a, of_b) == 0, "%s:\n%s\nis not\n%s", name, of_b,
                          of_a);
            free(of_a);
            free(of_b);
        }
}

static void assert_round_trip(const struct assay_result *result)
{
    char *const line = line_of(result);
    struct assay_result back = read_back(line);
    char *const again = line_of(&back);
    ck_assert_str_eq(again, line);
    assert_same_reports(result, &back);
    free(line);
    free(again);
    assay_result_close(&back);
    assay_result_close(&back);
}

START_TEST(results_built_by_hand_come_back)
{
    struct assay_result results[] = {
        failing_result(),
        passing_result(),
        broken_result(ASSAY_CRASHED, "killed by SIGSEGV"),
        broken_result(ASSAY_REFUSED, ""),
    };
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        assert_round_trip(&results[i]);
        assay_result_close(&results[i]);
    }
}
END_TEST

START_TEST(every_status_and_verdict_comes_back)
{
    struct assay_result result = failing_result();
    for (int verdict = 0; verdict < ASSAY_VERDICT_COUNT; verdict++) {
        result.verdict = (enum assay_verdict)verdict;
        assert_round_trip(&result);
    }
    for (int status = 0; status < ASSAY_STATUS_COUNT; status++) {
        result.status = (enum assay_status)status;
        assert_round_trip(&result);
    }
    assay_result_close(&result);
}
END_TEST

START_TEST(optional_facts_come_back)
{
    struct assay_result result = failing_result();
    struct assay_output_result *const d = &result.output[0], *const lse = &d[1];
    result.is_unverified_profile = true;
    result.remark = "ours: no upstream kernel";
    result.model_inexact = 3;
    result.model_max_error_over_bound = 0.1;
    strcpy(result.explanation, "cublaslt-fast");
    strcpy(result.warning, "the kernel changed the rounding mode");
    strcpy(result.reference, "plugin:it's old.so");
    strcpy(result.printed, "a line\n\ttab \x1b[31m \xc3\xa9 \xff\n\nend");
    result.printed_bytes = 123456;
    d->has_exact = lse->has_exact = true;
    lse->inexact = 1;
    lse->inexact_worst = (struct assay_difference){ 0, 0x80000000, 0, 0, { "row 0" } };
    d->is_constant = true;
    d->defined = 24000;
    assert_round_trip(&result);
    char *const line = line_of(&result);
    struct assay_result back = read_back(line);
    ck_assert(back.model_max_error_over_bound == 0.1);
    free(line);
    assay_result_close(&back);
    assay_result_close(&result);
}
END_TEST

START_TEST(reals_come_back_to_the_bit)
{
    static const double reals[] = {
        0.1,    -0.0,   0x1p-1074,        0x1.fffffffffffffp1023,
        1e22,   3,      (double)INFINITY, -(double)INFINITY,
        1 / 3., 12.5e-9
    };
    struct assay_result result = failing_result();
    struct assay_output_result *const d = &result.output[0];
    for (size_t i = 0; i <= sizeof reals / sizeof *reals; i++) {
        const bool is_nan = i == sizeof reals / sizeof *reals;
        const double real = is_nan ? -(double)NAN : reals[i];
        d->bound_worst_value = d->bound_worst_bound = d->max_error_over_bound = real;
        result.model_max_error_over_bound = real;
        result.seconds = fabs(real) < 1e9 ? fabs(real) : 1;
        char *const line = line_of(&result);
        struct assay_result back = read_back(line);
        ck_assert_mem_eq(&back.output[0].bound_worst_value, &real, sizeof real);
        ck_assert_mem_eq(&back.output[0].bound_worst_bound, &real, sizeof real);
        ck_assert_mem_eq(&back.output[0].max_error_over_bound, &real, sizeof real);
        free(line);
        assay_result_close(&back);
        assert_round_trip(&result);
    }
    assay_result_close(&result);
}
END_TEST

START_TEST(texts_that_are_not_printable_repeat_the_same_case)
{
    struct assay_result result = broken_result(ASSAY_HUNG, "a\x1b[31m\"b\\\n\xff\x7f");
    strcpy(result.source, "d\xc3\xa9j\xe0\xb4 vu\n\xc2\x9bx'.safetensors");
    strcpy(result.reference, "plugin:\xff.so");
    for (int byte = 1; byte < 256; byte++)
        result.case_line[byte - 1] = (char)byte;
    assert_round_trip(&result);
    *result.source = '\0'; /* the repeat line then holds the case's */
    assert_round_trip(&result);
    memset(result.case_line, '\xf0', sizeof result.case_line - 1);
    memset(result.source, 'x', sizeof result.source - 1);
    memset(result.printed, '\xe2', sizeof result.printed - 1);
    memset(result.message.text, '"', sizeof result.message.text - 1);
    assert_round_trip(&result);
}
END_TEST

START_TEST(checks_and_findings_come_back)
{
    struct assay_result result = failing_result();
    int count = 0;
    while (assay_checks[count])
        count++;
    result.candidate_runs = 31;
    for (int i = 0; i < count; i++) {
        result.checks = UINT32_C(1) << i;
        result.finding_count = i % 2;
        result.finding[0] = (struct assay_finding){
            .check = assay_checks[i]->name,
            .is_failure = i % 3 == 0,
            .sentence = "run 4 of 10 gave other bits in 17 elements",
        };
        assert_round_trip(&result);
    }
    result.checks = (UINT32_C(1) << count) - 1;
    result.finding_count = ASSAY_MAX_FINDINGS;
    for (int i = 0; i < ASSAY_MAX_FINDINGS; i++)
        result.finding[i] = (struct assay_finding){
            .check = assay_checks[i % count]->name,
            .is_failure = i % 2,
            .sentence = "property masked_rows: 17 elements are not what follows",
            .output = i % 4 ? "lse" : NULL,
            .tensor = { .format = i % 5 ? ASSAY_F32 : ASSAY_I32,
                        .rank = 3,
                        .shape = { 2, 1, 16 } },
            .elements = 17 + i,
            .worst = { i, 0xffc00000, 0x3f800000, i % 3 ? UINT64_MAX : 5, { "row 1" } },
        };
    memset(result.finding[0].sentence, 's', sizeof result.finding[0].sentence - 1);
    assert_round_trip(&result);
    assay_result_close(&result);
}
END_TEST

static const char dense[] = "fp8_gemm_nt m=70 n=72 k=160 out=f32 seed=5";

START_TEST(real_results_of_every_kind_come_back)
{
    static const enum assay_status statuses[TRIAL_WAYS] = {
        [TRIAL_OF_OVERRUN] = ASSAY_CRASHED,
        [TRIAL_OF_UNSUPPORTED] = ASSAY_UNSUPPORTED,
        [TRIAL_OF_CRASH] = ASSAY_CRASHED,
    };
    static const enum assay_verdict verdicts[TRIAL_WAYS] = {
        [TRIAL_OF_MODEL] = ASSAY_BOUNDED,         [TRIAL_OF_ORACLE] = ASSAY_BOUNDED,
        [TRIAL_OF_FLIPPED_BITS] = ASSAY_OUTSIDE,  [TRIAL_OF_NAN] = ASSAY_OUTSIDE,
        [TRIAL_OF_CHANGING_BITS] = ASSAY_OUTSIDE,
    };
    for (int way = 0; way < TRIAL_WAYS; way++) {
        struct assay_result result = result_of_line(dense, (enum trial_way)way);
        ck_assert_int_eq(result.status, statuses[way]);
        ck_assert_int_eq(result.verdict, verdicts[way]);
        ck_assert(way != TRIAL_OF_CHANGING_BITS || result.finding_count > 0);
        assert_round_trip(&result);
        assay_result_close(&result);
    }
}
END_TEST

static enum assay_status try_in_turn(void *context, const struct assay_case *the_case,
                                     struct assay_message *message)
{
    int *const count = context;
    union assay_problem_storage problem;
    ck_assert_int_eq(the_case->operation->bind(the_case, &problem, message), ASSAY_RAN);
    const bool is_large = the_case->operation->cost(&problem).multiply_adds > 5e6;
    if (is_large || *count >= 2 * TRIAL_WAYS) return ASSAY_RAN;
    struct assay_result result =
        result_of_trial(the_case, (enum trial_way)(*count % TRIAL_WAYS), false);
    assert_round_trip(&result);
    assay_result_close(&result);
    ++*count;
    return ASSAY_RAN;
}

/* The first small cases of every suite of the corpus, by all candidates in turn. */
START_TEST(real_results_of_every_operation_come_back)
{
    char pattern[4096];
    struct assay_message message;
    glob_t suites;
    int total = 0;
    snprintf(pattern, sizeof pattern, "%s/suites/*.cases", corpus_folder());
    ck_assert_int_eq(glob(pattern, 0, NULL, &suites), 0);
    ck_assert_uint_gt(suites.gl_pathc, 8);
    for (size_t i = 0; i < suites.gl_pathc; i++) {
        int count = 0;
        const enum assay_status status =
            assay_suite_read(suites.gl_pathv[i], try_in_turn, &count, &message);
        ck_assert_msg(status == ASSAY_RAN, "%s", message.text);
        /* That one is for benchmarks: it has no small cases. */
        if (!strstr(suites.gl_pathv[i], "targets.cases")) ck_assert_int_gt(count, 0);
        total += count;
    }
    ck_assert_int_gt(total, 10 * TRIAL_WAYS);
    globfree(&suites);
}
END_TEST

START_TEST(the_example_of_a_flipped_bit_comes_back)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/examples/flipped_bit.safetensors.zst",
             corpus_folder());
    struct assay_recording recording;
    struct assay_message message;
    struct assay_result result;
    ck_assert_int_eq(assay_recording_open(&recording, path, &message), ASSAY_RAN);
    struct assay_trial_plan plan = trial_plan(true);
    char *text = NULL;
    ck_assert_int_gt(asprintf(&text, "recorded:%s", path), 0);
    ck_assert_int_eq(
        assay_backend_open(text, NULL, &plan.candidate, &plan.candidate_state, &message),
        ASSAY_RAN);
    assay_trial_run(&plan, &recording.cases[0], &recording, 0, &result);
    ck_assert_int_eq(result.output[0].differ, 1);
    assert_round_trip(&result);
    plan.candidate->close(plan.candidate_state);
    assay_result_close(&result);
    assay_recording_close(&recording);
    free(text);
}
END_TEST

START_TEST(all_256_differences_come_back)
{
    struct assay_result result = result_of_line(dense, TRIAL_OF_FLIPPED_BITS);
    ck_assert_int_eq(result.output[0].difference_count, 256);
    ck_assert_int_eq(result.output[0].differ, 70 * 72);
    char *const line = line_of(&result);
    struct assay_result back = read_back(line);
    ck_assert_int_eq(back.output[0].difference_count, 256);
    ck_assert_int_eq(back.output[0].difference[255].index, 255);
    free(line);
    assay_result_close(&back);
    assay_result_close(&result);
}
END_TEST

static const char by_hand[] =
    "{\"type\":\"case\",\"number\":17,\"case\":\"quantise x=1\","
    "\"operation\":\"fp8_gemm_nt\",\"status\":\"ran\",\"verdict\":\"outside\","
    "\"passed\":false,\"decisive\":true,\"new\":{\"er\":[1,{\"a\":null}]},"
    "\"numerics\":\"deepgemm-1d2d\",\"candidate_runs\":12,\"checks\":[\"bound\"],"
    "\"criteria\":{\"torch\":\"would fail\",\"deepgemm\":\"has no rule\"},"
    "\"findings\":[{\"check\":\"bound\",\"failure\":true,\"message\":\"why\","
    "\"output\":\"sf\",\"format\":\"u8\",\"shape\":[4,5],\"elements\":2,"
    "\"index\":[3,1],\"candidate\":\"0x0a\",\"reference\":\"0x10\",\"ulp\":6}],"
    "\"outputs\":[{\"name\":\"d\",\"format\":\"bf16\",\"shape\":[2,3,4],"
    "\"elements\":24,\"defined\":20,\"candidate_hash\":\"0x0123456789abcdef\","
    "\"differ\":1,\"worst\":{\"index\":[1,2,3],\"candidate\":\"0x7fc0\","
    "\"reference\":\"0x3fa0\",\"place\":\"tile 1,2\"},\"differences\":[],"
    "\"outside\":1,\"unclaimed\":2,\"max_error_over_bound_bits\":\"0x7ff0000000000000\","
    "\"bound_worst\":{\"index\":[0,1,0],\"bits\":\"0x0001\",\"value\":1,"
    "\"bound\":0.5}}],\"input_hash\":\"0x00fedcba98765432\",\"seconds\":0.25}";

START_TEST(a_line_by_hand_is_read_as_it_says)
{
    struct assay_result result = read_back(by_hand);
    const struct assay_output_result *const d = &result.output[0];
    const struct assay_finding *const finding = &result.finding[0];
    ck_assert_str_eq(result.case_line, "quantise x=1");
    ck_assert_ptr_eq(result.operation, assay_operation_find("fp8_gemm_nt"));
    ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
    ck_assert(result.is_decisive && !result.has_passed && !result.is_unverified_profile);
    ck_assert_int_eq(result.candidate_runs, 12);
    ck_assert_str_eq(assay_checks[1]->name, "bound");
    ck_assert_uint_eq(result.checks, 2);
    ck_assert_int_eq(result.criteria.count, 2);
    ck_assert_str_eq(result.criteria.name[0], "torch");
    ck_assert_str_eq(result.criteria.name[1], "deepgemm");
    ck_assert_int_eq(result.finding_count, 1);
    ck_assert(finding->is_failure);
    ck_assert_int_eq(finding->worst.index, 16);
    ck_assert_uint_eq(finding->worst.candidate, 10);
    ck_assert_uint_eq(finding->worst.ulps, 6);
    ck_assert_int_eq(result.output_count, 1);
    ck_assert_int_eq(d->worst.index, 23);
    ck_assert_uint_eq(d->worst.candidate, 0x7fc0);
    ck_assert(d->worst.ulps == UINT64_MAX && d->max_ulps == UINT64_MAX);
    ck_assert(d->has_bits && d->has_bound && !d->has_exact);
    ck_assert(isinf(d->max_error_over_bound));
    ck_assert_int_eq(d->bound_worst_index, 4);
    ck_assert(d->bound_worst_value == 1 && d->bound_worst_bound == 0.5);
    ck_assert_uint_eq(d->candidate_hash, UINT64_C(0x0123456789abcdef));
    ck_assert_uint_eq(result.input_hash, UINT64_C(0x00fedcba98765432));
    ck_assert(result.model_max_error_over_bound == -1 && result.seconds == 0.25);
    assay_result_close(&result);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        results_built_by_hand_come_back,
        every_status_and_verdict_comes_back,
        optional_facts_come_back,
        reals_come_back_to_the_bit,
        texts_that_are_not_printable_repeat_the_same_case,
        checks_and_findings_come_back,
        real_results_of_every_kind_come_back,
        real_results_of_every_operation_come_back,
        the_example_of_a_flipped_bit_comes_back,
        all_256_differences_come_back,
        a_line_by_hand_is_read_as_it_says,
        NULL,
    };
    return run_tests("report_round_trip", tests);
}
