/* SPDX-License-Identifier: MIT */
/* Results built by hand, reports of them as strings, and assertions on those; JSON is
 * read back with jansson. */
#ifndef ASSAY_TESTS_VERIFY_REPORTED_H
#define ASSAY_TESTS_VERIFY_REPORTED_H

#include "tests/harness.h"
#include "verify/check/trial.h"
#include "verify/report/report.h"

#include <jansson.h>
#include <string.h>

static const struct assay_operation operation = { .name = "fp8_gemm_nt" };
static const struct assay_run_header plain_header = { .command = "verify" };

/* Two outputs: d, bf16 [128, 192], differs in three elements of two tiles; lse, f32 [],
 * is equal. Values by hand: 0x3fa0 is 1.25, 0x3fa1 is 1.2578125, 0x7fc0 is NaN. */
static inline void build_output_d(struct assay_output_result *output)
{
    *output = (struct assay_output_result){
        .name = "d",
        .tensor = { .format = ASSAY_BF16, .rank = 2, .shape = { 128, 192 } },
        .elements = 24576,
        .defined = 24576,
        .candidate_hash = 0x0123456789abcdef,
        .has_bits = true,
        .differ = 3,
        .touched = 1,
        .max_ulps = 7,
        .difference_count = 3,
        .difference = {
            { 5, 0x3fa0, 0x3fa1, 1, { "tile 0,0" } },
            { 192 * 2 + 17, 0x7fc0, 0x3fa0, UINT64_MAX, { "tile 0,0" } },
            { 192 * 127 + 191, 0x3fa7, 0x3fa0, 7, { "tile 1,2" } },
        },
        .has_bound = true,
        .outside = 2,
        .unclaimed = 1,
        .max_error_over_bound = 12.5,
        .bound_worst_index = 192 * 127 + 191,
        .bound_worst_bits = 0x3fa7,
        .bound_worst_value = 1.2501,
        .bound_worst_bound = 0.0625,
        .bound_worst_place = { "tile 1,2" },
    };
    output->worst = output->difference[2];
}

static inline void build_output_lse(struct assay_output_result *output)
{
    *output = (struct assay_output_result){
        .name = "lse",
        .tensor = { .format = ASSAY_F32 },
        .elements = 1,
        .defined = 1,
        .has_bits = true,
        .bound_worst_index = -1,
    };
}

static inline struct assay_result failing_result(void)
{
    struct assay_result result = {
        .case_line = "fp8_gemm_nt m=128 n=192 k=1024 seed=7",
        .operation = &operation,
        .status = ASSAY_RAN,
        .verdict = ASSAY_OUTSIDE,
        .is_decisive = true,
        .numerics = "deepgemm-1d2d",
        .input_hash = 0x00fedcba98765432,
        .seconds = 0.25,
        .model_max_error_over_bound = -1,
        .output_count = 2,
        .output = calloc(2, sizeof(struct assay_output_result)),
    };
    ck_assert_ptr_nonnull(result.output);
    build_output_d(&result.output[0]);
    build_output_lse(&result.output[1]);
    return result;
}

static inline struct assay_result passing_result(void)
{
    struct assay_result result = failing_result();
    struct assay_output_result *const d = &result.output[0];
    result.verdict = ASSAY_EQUAL;
    result.has_passed = true;
    d->differ = d->touched = d->outside = d->unclaimed = 0;
    d->max_ulps = 0;
    d->difference_count = 0;
    d->max_error_over_bound = 0.4099;
    return result;
}

/* Bit of the check of that name, as result.checks has it. */
static inline uint32_t check_bit(const char *name)
{
    for (int i = 0; assay_checks[i]; i++)
        if (strcmp(assay_checks[i]->name, name) == 0) return UINT32_C(1) << i;
    ck_abort_msg("no check %s", name);
    return 0;
}

/* A note without an element, and two failures: of 17 elements of d, of one of lse. */
static inline void add_findings(struct assay_result *result)
{
    const struct assay_finding findings[] = {
        { .check = "batch", .sentence = "some requests \xff were run alone" },
        { .check = "repeat",
          .is_failure = true,
          .sentence = "run 4 of 10 gave other bits",
          .output = "d",
          .tensor = { .format = ASSAY_BF16, .rank = 2, .shape = { 64, 192 } },
          .elements = 17,
          .worst = { 192 * 2 + 17, 0x3fa0, 0x3fa1, 1, { "tile 0,0" } } },
        { .check = "poison",
          .is_failure = true,
          .sentence = "1 defined element was never written",
          .output = "lse",
          .tensor = { .format = ASSAY_F32 },
          .elements = 1,
          .worst = { 0, 0xffc00000, 0, UINT64_MAX, { "" } } },
    };
    memcpy(result->finding, findings, sizeof findings);
    result->finding_count = 3;
    result->candidate_runs = 31;
    result->checks = check_bit("bitwise") | check_bit("bound") | check_bit("repeat") |
                     check_bit("poison") | check_bit("batch");
}

static inline struct assay_result broken_result(enum assay_status status,
                                                const char *message)
{
    struct assay_result result = {
        .case_line = "fp8_gemm_nt m=1 n=2 k=3 seed=1",
        .status = status,
        .model_max_error_over_bound = -1,
    };
    snprintf(result.message.text, sizeof result.message.text, "%s", message);
    return result;
}

/* The whole report of one result (none if NULL); to be freed. */
__attribute__((noinline)) static char *written(const char *name,
                                               const struct assay_run_header *header,
                                               const struct assay_result *result,
                                               const struct assay_summary *summary)
{
    const struct assay_report *const report = assay_report_find(name);
    char *text = NULL;
    size_t size;
    FILE *const file = open_memstream(&text, &size);
    void *const state = malloc(report->state_bytes);

    ck_assert_int_eq(report->begin(state, file, header), ASSAY_RAN);
    if (result) ck_assert_int_eq(report->result(state, result), ASSAY_RAN);
    if (summary) ck_assert_int_eq(report->end(state, summary), ASSAY_RAN);
    fclose(file);
    free(state);
    ck_assert_uint_eq(strlen(text), size);
    return text;
}

static inline char *text_of(const struct assay_result *result)
{
    return written("text", &plain_header, result, NULL);
}

/* Line @number of a JSON report, parsed strictly. */
static inline json_t *json_line(const char *text, int number)
{
    for (; number > 0; number--)
        text = strchr(text, '\n') + 1;
    const size_t length = (size_t)(strchr(text, '\n') - text);
    json_error_t error;
    json_t *const object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(object != NULL, "%s in %.*s", error.text, (int)length, text);
    ck_assert(json_is_object(object));
    return object;
}

static inline json_t *json_of(const struct assay_result *result)
{
    char *const text = written("json", &plain_header, result, NULL);
    json_t *const object = json_line(text, 1);
    free(text);
    return object;
}

/* Whether the object is exactly what the JSON text says. */
static inline void assert_json(const json_t *object, const char *expected)
{
    json_t *const wanted = json_loads(expected, JSON_DECODE_ANY, NULL);
    char *const got = json_dumps(object, JSON_ENCODE_ANY);
    ck_assert_msg(wanted != NULL, "malformed expectation: %s", expected);
    ck_assert_msg(json_equal(object, wanted), "%s\nis not\n%s", got, expected);
    free(got);
    json_decref(wanted);
}

static inline void assert_has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "\"%s\" is not in:\n%s", part, text);
}

static inline void assert_lacks(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) == NULL, "\"%s\" is in:\n%s", part, text);
}

static const struct assay_summary summary = {
    .cases = 12,
    .passed = 9,
    .failed = 1,
    .indecisive = 1,
    .unsupported = 1,
    .broken = 2,
    .contradictions = 3,
    .verdicts = { 4, 5, 6, 7, 8, 3 },
    .elements_equal = 239983,
    .elements_compared = 240000,
    .max_error_over_bound = 0.75,
    .exit_code = 4,
};

#endif
