/* SPDX-License-Identifier: MIT */
/* Each fact of a result is in its JSON line, under its name, or absent on purpose. */
#include "tests/verify/reported.h"

#include <fenv.h>
#include <math.h>
#ifdef __SSE__
  #include <xmmintrin.h>
#endif

START_TEST(json_header_names_tool_run_and_environment)
{
    setenv("OMP_NUM_THREADS", "2", 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    const struct assay_run_header header = { .command = "verify",
                                             .candidate = "plugin:./k.so",
                                             .require = "equal" };
    char *const text = written("json", &header, NULL, NULL);
    json_t *const object = json_line(text, 0);
    const char *tool, *version, *candidate, *require, *command, *compiler, *blas, *mode;
    const char *omp_threads;
    int schema, threads;
    json_t *variables;

    ck_assert_int_eq(strncmp(text, "{\"type\":\"header\",\"schema\":1,", 28), 0);
    const int unpacked = json_unpack(
        object, "{s:i s:s s:s s:s s:s s:s s:{s:s s:s s:s s:i s:o}}", "schema", &schema,
        "tool", &tool, "version", &version, "command", &command, "candidate", &candidate,
        "require", &require, "environment", "compiler", &compiler, "blas", &blas,
        "float_mode", &mode, "threads", &threads, "variables", &variables);
    ck_assert_int_eq(unpacked, 0);
    ck_assert_str_eq(tool, "assay");
    ck_assert(version[0] >= '0' && version[0] <= '9');
    ck_assert_str_eq(command, "verify");
    ck_assert_str_eq(candidate, "plugin:./k.so");
    ck_assert_str_eq(require, "equal");
    assert_has(compiler, "."); /* a version */
    assert_has(blas, "OpenBLAS");
    ck_assert_str_eq(mode, "ieee");
    ck_assert_int_ge(threads, 1);
    ck_assert_int_eq(json_unpack(variables, "{s:s}", "OMP_NUM_THREADS", &omp_threads), 0);
    ck_assert_str_eq(omp_threads, "2");
    ck_assert_ptr_null(json_object_get(variables, "CUDA_VISIBLE_DEVICES"));
    json_decref(object);
    free(text);
}
END_TEST

static void assert_float_mode(const char *expected)
{
    char *const text = written("json", &plain_header, NULL, NULL);
    json_t *const object = json_line(text, 0);
    const json_t *const environment = json_object_get(object, "environment");
    ck_assert_str_eq(json_string_value(json_object_get(environment, "float_mode")),
                     expected);
    json_decref(object);
    free(text);
}

START_TEST(json_header_notices_a_changed_float_mode)
{
    fesetround(FE_UPWARD);
    assert_float_mode("directed rounding");
    fesetround(FE_TONEAREST);
#ifdef __SSE__
    const unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | _MM_FLUSH_ZERO_ON);
    assert_float_mode("flush to zero");
    _mm_setcsr(mode);
#endif
    assert_float_mode("ieee");
}
END_TEST

START_TEST(json_case_states_every_fact_of_a_failure)
{
    struct assay_result result = failing_result();
    json_t *const object = json_of(&result);
    assert_json(
        object,
        "{\"type\":\"case\",\"case\":\"fp8_gemm_nt m=128 n=192 k=1024 seed=7\","
        "\"operation\":\"fp8_gemm_nt\",\"status\":\"ran\",\"verdict\":\"outside\","
        "\"passed\":false,\"decisive\":true,\"numerics\":\"deepgemm-1d2d\","
        "\"outputs\":["
        "{\"name\":\"d\",\"format\":\"bf16\",\"shape\":[128,192],"
        "\"elements\":24576,\"defined\":24576,\"candidate_hash\":\"0x0123456789abcdef\","
        "\"differ\":3,\"touched\":1,\"max_ulp\":7,"
        "\"worst\":{\"index\":[127,191],\"candidate\":\"0x3fa7\","
        "\"reference\":\"0x3fa0\",\"candidate_value\":1.3046875,"
        "\"reference_value\":1.25,\"ulp\":7,\"place\":\"tile 1,2\"},"
        "\"differences\":[{\"index\":[0,5],\"candidate\":\"0x3fa0\","
        "\"reference\":\"0x3fa1\",\"candidate_value\":1.25,"
        "\"reference_value\":1.2578125,\"ulp\":1,\"place\":\"tile 0,0\"},"
        "{\"index\":[2,17],\"candidate\":\"0x7fc0\",\"reference\":\"0x3fa0\","
        "\"reference_value\":1.25,\"place\":\"tile 0,0\"},"
        "{\"index\":[127,191],\"candidate\":\"0x3fa7\",\"reference\":\"0x3fa0\","
        "\"candidate_value\":1.3046875,\"reference_value\":1.25,\"ulp\":7,"
        "\"place\":\"tile 1,2\"}],"
        "\"outside\":2,\"unclaimed\":1,\"max_error_over_bound\":12.5,"
        "\"bound_worst\":{\"index\":[127,191],\"bits\":\"0x3fa7\","
        "\"value\":1.2501,\"bound\":0.0625,\"place\":\"tile 1,2\"}},"
        "{\"name\":\"lse\",\"format\":\"f32\",\"shape\":[],\"elements\":1,"
        "\"defined\":1,\"candidate_hash\":\"0x0000000000000000\",\"differ\":0,\"max_"
        "ulp\":0}],"
        "\"input_hash\":\"0x00fedcba98765432\",\"seconds\":0.25}");
    json_decref(object);
    assay_result_close(&result);
}
END_TEST

START_TEST(json_states_the_optional_facts_when_they_apply)
{
    struct assay_result result = passing_result();
    strcpy(result.source, "corpus/recorded/a.safetensors");
    strcpy(result.explanation, "cublaslt-fast");
    result.is_unverified_profile = true;
    result.remark = "ours: no upstream kernel";
    result.model_inexact = 3;
    result.output[0].has_exact = result.output[1].has_exact = true;
    result.output[1].inexact = 1;
    result.output[1].inexact_worst =
        (struct assay_difference){ 0, 0x80000000, 0, 0, { "row 0" } };
    result.verdict = ASSAY_EXPLAINED;
    result.model_max_error_over_bound = 0.5;
    result.output[1].is_constant = true;
    json_t *const object = json_of(&result);

    assert_json(json_object_get(object, "source"), "\"corpus/recorded/a.safetensors\"");
    assert_json(json_object_get(object, "explanation"), "\"cublaslt-fast\"");
    assert_json(json_object_get(object, "unverified_profile"), "true");
    assert_json(json_object_get(object, "remark"), "\"ours: no upstream kernel\"");
    assert_json(json_object_get(object, "model_inexact"), "3");
    assert_json(json_object_get(object, "verdict"), "\"explained\"");
    assert_json(json_object_get(object, "passed"), "true");
    assert_json(json_object_get(object, "model_max_error_over_bound"), "0.5");
    const json_t *const outputs = json_object_get(object, "outputs");
    ck_assert_ptr_null(json_object_get(json_array_get(outputs, 0), "constant"));
    assert_json(json_object_get(json_array_get(outputs, 0), "inexact"), "0");
    ck_assert_ptr_null(json_object_get(json_array_get(outputs, 0), "inexact_worst"));
    assert_json(json_object_get(json_array_get(outputs, 1), "inexact"), "1");
    assert_json(json_object_get(json_array_get(outputs, 1), "inexact_worst"),
                "{\"index\": [], \"candidate\": \"0x80000000\", "
                "\"reference\": \"0x00000000\", \"candidate_value\": -0.0, "
                "\"reference_value\": 0.0, \"ulp\": 0, \"place\": \"row 0\"}");
    assert_json(json_object_get(json_array_get(outputs, 1), "constant"), "true");
    json_decref(object);
    assay_result_close(&result);
}
END_TEST

START_TEST(json_states_checks_and_findings)
{
    struct assay_result result = passing_result();
    add_findings(&result);
    strcpy(result.reference, "plugin:old.so");
    strcpy(result.printed, "hello");
    result.printed_bytes = 9000;
    json_t *const object = json_of(&result);
    assert_json(json_object_get(object, "checks"),
                "[\"bitwise\",\"bound\",\"repeat\",\"poison\",\"batch\"]");
    assert_json(json_object_get(object, "candidate_runs"), "31");
    assert_json(json_object_get(object, "reference"), "\"plugin:old.so\"");
    assert_json(json_object_get(object, "output"), "\"hello\"");
    assert_json(json_object_get(object, "output_bytes"), "9000");
    assert_json(json_object_get(object, "findings"),
                "[{\"check\":\"batch\",\"failure\":false,"
                "\"message\":\"some requests ? were run alone\"},"
                "{\"check\":\"repeat\",\"failure\":true,"
                "\"message\":\"run 4 of 10 gave other bits\",\"output\":\"d\","
                "\"format\":\"bf16\",\"shape\":[64,192],\"elements\":17,"
                "\"index\":[2,17],\"candidate\":\"0x3fa0\",\"reference\":\"0x3fa1\","
                "\"candidate_value\":1.25,\"reference_value\":1.2578125,\"ulp\":1,"
                "\"place\":\"tile 0,0\"},"
                "{\"check\":\"poison\",\"failure\":true,"
                "\"message\":\"1 defined element was never written\","
                "\"output\":\"lse\",\"format\":\"f32\",\"shape\":[],\"elements\":1,"
                "\"index\":[],\"candidate\":\"0xffc00000\",\"reference\":\"0x00000000\","
                "\"reference_value\":0.0}]");
    json_decref(object);
    assay_result_close(&result);
}
END_TEST

START_TEST(json_of_a_crash_has_its_message_and_no_hash)
{
    struct assay_result result = broken_result(ASSAY_CRASHED, "signal 11");
    json_t *const object = json_of(&result);
    assert_json(object, "{\"type\":\"case\",\"case\":\"fp8_gemm_nt m=1 n=2 k=3 seed=1\","
                        "\"status\":\"crashed\",\"verdict\":\"not-judged\","
                        "\"passed\":false,\"decisive\":false,\"message\":\"signal 11\","
                        "\"outputs\":[],\"seconds\":0.0}");
    json_decref(object);
}
END_TEST

START_TEST(json_writes_bits_of_what_is_no_number)
{
    struct assay_result result = failing_result();
    struct assay_output_result *const d = &result.output[0];
    d->difference[0] = (struct assay_difference){ 0, 0x7f80, 0xff80, 65280, { "" } };
    d->worst = (struct assay_difference){ 1, 0xffc1, 0x7fc0, UINT64_MAX, { "" } };
    d->max_ulps = UINT64_MAX;
    d->max_error_over_bound = (double)INFINITY;
    d->bound_worst_value = (double)NAN;
    d->bound_worst_bound = (double)INFINITY;
    json_t *const object = json_of(&result);
    const json_t *const output = json_array_get(json_object_get(object, "outputs"), 0);

    assert_json(json_object_get(output, "worst"),
                "{\"index\":[0,1],\"candidate\":\"0xffc1\",\"reference\":\"0x7fc0\"}");
    assert_json(json_array_get(json_object_get(output, "differences"), 0),
                "{\"index\":[0,0],\"candidate\":\"0x7f80\",\"reference\":\"0xff80\","
                "\"ulp\":65280}");
    assert_json(json_object_get(output, "bound_worst"),
                "{\"index\":[127,191],\"bits\":\"0x3fa7\","
                "\"value_bits\":\"0x7ff8000000000000\","
                "\"bound_bits\":\"0x7ff0000000000000\",\"place\":\"tile 1,2\"}");
    ck_assert_ptr_null(json_object_get(output, "max_ulp"));
    ck_assert_ptr_null(json_object_get(output, "max_error_over_bound"));
    assert_json(json_object_get(output, "max_error_over_bound_bits"),
                "\"0x7ff0000000000000\"");
    json_decref(object);
    assay_result_close(&result);
}
END_TEST

START_TEST(json_keeps_all_kept_differences)
{
    struct assay_result result = failing_result();
    struct assay_output_result *const d = &result.output[0];
    d->differ = 1000;
    d->difference_count = ASSAY_MAX_DIFFERENCES;
    for (int i = 0; i < ASSAY_MAX_DIFFERENCES; i++)
        d->difference[i] = (struct assay_difference){ .index = i, .candidate = 1 };
    json_t *const object = json_of(&result);
    const json_t *const differences = json_object_get(
        json_array_get(json_object_get(object, "outputs"), 0), "differences");
    ck_assert_uint_eq(json_array_size(differences), 256);
    assert_json(json_object_get(json_array_get(differences, 255), "index"), "[1,63]");
    json_decref(object);
    assay_result_close(&result);
}
END_TEST

START_TEST(json_summary_has_every_count)
{
    char *const text = written("json", &plain_header, NULL, &summary);
    json_t *const object = json_line(text, 1);
    assert_json(object,
                "{\"type\":\"summary\",\"cases\":12,\"passed\":9,\"failed\":1,"
                "\"indecisive\":1,\"unsupported\":1,\"broken\":2,\"contradictions\":3,"
                "\"verdicts\":{\"not-judged\":4,\"equal\":5,\"explained\":6,"
                "\"bounded\":7,\"outside\":8,\"contradiction\":3},"
                "\"elements_compared\":240000,\"elements_equal\":239983,"
                "\"max_error_over_bound\":0.75,\"exit_code\":4}");
    json_decref(object);
    free(text);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        json_header_names_tool_run_and_environment,
        json_header_notices_a_changed_float_mode,
        json_case_states_every_fact_of_a_failure,
        json_states_the_optional_facts_when_they_apply,
        json_states_checks_and_findings,
        json_of_a_crash_has_its_message_and_no_hash,
        json_writes_bits_of_what_is_no_number,
        json_keeps_all_kept_differences,
        json_summary_has_every_count,
        NULL,
    };
    return run_tests("report_json_lines", tests);
}
