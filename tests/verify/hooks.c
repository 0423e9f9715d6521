/* SPDX-License-Identifier: MIT */
/* What an operation may tell besides its outputs: inputs it refuses, a model without
 * memory, remarks, exact results. Operations and backends are wrong on purpose. */
#include "ref/unit/scalar.h"
#include "tests/harness.h"
#include "tests/verify/drawn_result.h"
#include "tests/verify/judged_case.h"
#include "verify/check/inputs.h"

#include <math.h>

static const char dense[] = "fp8_gemm_nt m=70 n=72 k=160 out=f32 seed=5";
static const char exact[] = "fp8_gemm_nt m=70 n=72 k=160 out=f32 data=exact seed=5";

static const struct assay_operation *gemm(void)
{
    return assay_operation_find("fp8_gemm_nt");
}

static const struct assay_backend *backend_called(const char *scheme)
{
    for (int i = 0; assay_backends[i]; i++)
        if (strcmp(assay_backends[i]->scheme, scheme) == 0) return assay_backends[i];
    ck_abort_msg("no backend %s", scheme);
    return NULL;
}

/* The case as one of @operation, on the backend; to be closed. */
static struct assay_result run_as(const struct assay_operation *operation,
                                  const struct assay_backend *backend, const char *line,
                                  struct assay_recording *recording)
{
    static char no_numerics[] = "";
    const struct assay_trial_plan plan = {
        .candidate = backend,
        .candidate_state = no_numerics,
        .uses_model = true,
        .uses_oracle = true,
        .checks = assay_checks,
    };
    struct assay_case the_case = recording ? recording->cases[0] : parsed(line);
    struct assay_result result;
    the_case.operation = operation;
    assay_trial_run(&plan, &the_case, recording, 0, &result);
    return result;
}

/* --- inputs ------------------------------------------------------------------------- */

static int checked;

/* No NaN in a. */
static enum assay_status refuse_nan(const void *problem,
                                    const struct assay_tensors *tensors,
                                    struct assay_message *message)
{
    (void)problem;
    const struct assay_tensor *const a = assay_tensors_find(tensors, "a");
    checked++;
    for (int64_t i = 0; i < assay_tensor_elements(a); i++)
        if ((assay_tensor_bits(a, i) & 0x7F) == 0x7F)
            return assay_fail(message, ASSAY_REFUSED, "a[%lld] is NaN; use numbers",
                              (long long)i);
    return ASSAY_RAN;
}

static enum assay_status refuse_all(const void *problem,
                                    const struct assay_tensors *tensors,
                                    struct assay_message *message)
{
    (void)problem;
    ck_assert_ptr_nonnull(assay_tensors_find(tensors, "a")->data);
    checked++;
    return assay_fail(message, ASSAY_REFUSED, "these inputs are never right");
}

START_TEST(contents_that_no_kernel_may_be_given_are_refused)
{
    static const struct {
        const char *more, *refusal;
    } rows[] = {
        { "", NULL },
        { " bits=a.1.2:7f", "a[162] is NaN; use numbers" },
        { " bits=a.1.2:7e", NULL },
        { " bits=a.69.159:ff", "a[11199] is NaN; use numbers" },
        { " data=special", " is NaN; use numbers" },
        { " bits=a.1.2:7f unsafe=1", NULL },
        { " data=special unsafe=1", NULL },
    };
    struct assay_operation strict = *gemm();
    strict.check_inputs = refuse_nan;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char line[200];
        snprintf(line, sizeof(line), "%s%s", dense, rows[i].more);
        struct assay_result result = run_as(&strict, backend_called("model"), line, NULL);
        ck_assert_int_eq(result.status, rows[i].refusal ? ASSAY_REFUSED : ASSAY_RAN);
        if (rows[i].refusal)
            ck_assert_ptr_nonnull(strstr(result.message.text, rows[i].refusal));
        assay_result_close(&result);
    }
}
END_TEST

static enum assay_status run_never(void *state, const struct assay_run_call *call,
                                   struct assay_message *message)
{
    (void)state, (void)call, (void)message;
    ck_abort_msg("a backend ran");
    return ASSAY_RAN;
}

START_TEST(refused_contents_reach_no_backend)
{
    const struct assay_backend never = { .scheme = "never",
                                         .claim = claim,
                                         .run = run_never };
    struct assay_operation strict = *gemm();
    strict.check_inputs = refuse_all;
    struct assay_result result = run_as(&strict, &never, dense, NULL);
    ck_assert_int_eq(result.status, ASSAY_REFUSED);
    ck_assert_str_eq(result.message.text, "these inputs are never right");
    assay_result_close(&result);
}
END_TEST

START_TEST(contents_of_recorded_inputs_are_checked_as_well)
{
    struct assay_recording recording;
    struct assay_message message;
    char path[4096];
    snprintf(path, sizeof(path), "%s/recorded/deepgemm_n192_normal.safetensors.zst",
             corpus_folder());
    ck_assert_msg(assay_recording_open(&recording, path, &message) == ASSAY_RAN, "%s",
                  message.text);
    for (int is_strict = 0; is_strict < 2; is_strict++) {
        struct assay_operation operation = *gemm();
        operation.check_inputs = is_strict ? refuse_all : refuse_nan;
        checked = 0;
        struct assay_result result =
            run_as(&operation, backend_called("model"), NULL, &recording);
        ck_assert_int_eq(result.status, is_strict ? ASSAY_REFUSED : ASSAY_RAN);
        ck_assert_int_eq(checked, 1);
        assay_result_close(&result);
    }
    /* Nobody knows whether a file holds what its line promises. */
    recording.cases[0].data = ASSAY_DATA_EXACT;
    struct assay_result result =
        run_as(gemm(), backend_called("oracle"), NULL, &recording);
    ck_assert(!result.output[0].has_exact);
    ck_assert_int_eq(result.verdict, ASSAY_BOUNDED);
    assay_result_close(&result);
    assay_recording_close(&recording);
}
END_TEST

START_TEST(inputs_for_bench_and_record_are_checked_the_same_way)
{
    union assay_problem_storage problem;
    struct assay_operation strict = *gemm();
    strict.check_inputs = refuse_nan;
    static const char *const more[] = { "", " bits=a.0.0:ff", " bits=a.0.0:ff unsafe=1" };
    for (int i = 0; i < 3; i++) {
        char line[200];
        struct assay_tensors tensors;
        struct assay_buffers buffers = { 0 };
        struct assay_message message = { "" };
        snprintf(line, sizeof(line), "%s%s", dense, more[i]);
        struct assay_case the_case = parsed(line);
        the_case.operation = &strict;
        ck_assert_int_eq(
            assay_inputs_open(&the_case, NULL, 0, &problem, &tensors, &buffers, &message),
            i == 1 ? ASSAY_REFUSED : ASSAY_RAN);
        ck_assert_int_eq(message.text[0] != '\0', i == 1);
        assay_buffers_close(&buffers);
    }
}
END_TEST

/* --- a model without memory --------------------------------------------------------- */

static int starved_part;

static enum assay_status starved(const void *problem, const void *numerics,
                                 const struct assay_tensors *tensors, int64_t part)
{
    if (part == starved_part) return ASSAY_OUT_OF_MEMORY;
    return gemm()->model(problem, numerics, tensors, part);
}

START_TEST(a_model_that_finds_no_memory_is_said_to_have_none)
{
    struct assay_operation operation = *gemm();
    operation.model = starved;
    static const char *const candidates[] = { "model", "oracle" };
    for (int i = 0; i < 2; i++)
        for (starved_part = 0; starved_part < 5; starved_part++) {
            struct assay_result result =
                run_as(&operation, backend_called(candidates[i]), dense, NULL);
            const bool is_starved = starved_part < 4; /* 70 x 72 has 4 tiles */
            ck_assert_int_eq(result.status, is_starved ? ASSAY_OUT_OF_MEMORY : ASSAY_RAN);
            ck_assert_str_eq(result.message.text,
                             is_starved ? "no memory for a part of the model" : "");
            ck_assert(!is_starved || !result.has_passed);
            assay_result_close(&result);
        }
}
END_TEST

static const void *reference_numerics;

/* Only the numerics that could explain a difference find no memory. */
static enum assay_status starved_explanation(const void *problem, const void *numerics,
                                             const struct assay_tensors *tensors,
                                             int64_t part)
{
    if (memcmp(numerics, reference_numerics, gemm()->numerics_bytes) != 0)
        return ASSAY_OUT_OF_MEMORY;
    return gemm()->model(problem, numerics, tensors, part);
}

START_TEST(an_explanation_without_memory_is_said_as_well)
{
    struct assay_operation operation = *gemm();
    operation.model = starved_explanation;
    reference_numerics = operation.numerics[0].numerics;
    struct assay_result result =
        run_as(&operation, backend_called("oracle"),
               "fp8_gemm_nt m=70 n=72 k=160 seed=5 as=deepgemm-1d2d", NULL);
    ck_assert_str_eq(operation.numerics[0].name, "deepgemm-1d2d");
    ck_assert_int_eq(result.status, ASSAY_OUT_OF_MEMORY);
    ck_assert_str_eq(result.message.text, "no memory for a part of the model");
    assay_result_close(&result);
}
END_TEST

/* --- remarks ------------------------------------------------------------------------ */

static const char *remark_on_first(const void *problem, const void *numerics)
{
    (void)problem;
    return memcmp(numerics, gemm()->numerics[0].numerics, gemm()->numerics_bytes) == 0
               ? "ours: no upstream kernel"
               : NULL;
}

START_TEST(a_remark_goes_with_the_numerics_it_is_about)
{
    struct assay_operation operation = *gemm();
    operation.remark = remark_on_first;
    static const char *const numerics[] = { "deepgemm-1d2d", "deepgemm-1d1d" };
    for (int i = 0; i < 2; i++) {
        char line[200];
        snprintf(line, sizeof(line), "%s as=%s", dense, numerics[i]);
        struct assay_result result =
            run_as(&operation, backend_called("model"), line, NULL);
        ck_assert_int_eq(result.status, ASSAY_RAN);
        if (i)
            ck_assert_ptr_null(result.remark);
        else
            ck_assert_str_eq(result.remark, "ours: no upstream kernel");
        assay_result_close(&result);
    }
}
END_TEST

/* --- exact results ------------------------------------------------------------------ */

static const struct assay_tensor *output(const struct assay_tensors *tensors)
{
    return assay_tensors_find(tensors, "d");
}

static void do_nothing(const struct assay_tensors *tensors)
{
    (void)tensors;
}

static int64_t negated; /* -1: none was a zero */

static void negate_a_zero(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const d = output(tensors);
    negated = -1;
    for (int64_t i = assay_tensor_elements(d) - 1; i >= 0; i--)
        if (assay_tensor_bits(d, i) == 0) negated = i;
    if (negated >= 0) assay_tensor_set_bits(d, negated, 0x80000000);
}

static void add_units(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const d = output(tensors);
    assay_tensor_set_bits(d, 20, assay_tensor_bits(d, 20) ^ 1);
    assay_tensor_set_bits(d, 4000, assay_tensor_bits(d, 4000) ^ 4);
    assay_tensor_set_bits(d, 5039, assay_tensor_bits(d, 5039) ^ 4);
}

START_TEST(exact_data_leave_one_answer_to_the_sign_of_zero)
{
    struct assay_result right = result_of(exact, "", do_nothing);
    ck_assert(right.output[0].has_exact && right.has_passed);
    ck_assert_int_eq(right.output[0].inexact, 0);
    ck_assert_int_eq(right.verdict, ASSAY_EQUAL);
    assay_result_close(&right);

    struct assay_result result = result_of(exact, "", negate_a_zero);
    const struct assay_output_result *const d = &result.output[0];
    ck_assert_int_ge(negated, 0);
    /* Within the bound, which knows one zero only. */
    ck_assert_int_eq(d->outside, 0);
    ck_assert_int_eq(d->inexact, 1);
    ck_assert_int_eq(d->inexact_worst.index, negated);
    ck_assert_uint_eq(d->inexact_worst.candidate, 0x80000000);
    ck_assert_uint_eq(d->inexact_worst.reference, 0);
    ck_assert_uint_eq(d->inexact_worst.ulps, 0);
    ck_assert_int_eq(result.model_inexact, 0);
    ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
    ck_assert(!result.has_passed);
    assay_result_close(&result);
}
END_TEST

START_TEST(what_may_hold_anything_need_not_be_exact)
{
    struct assay_result result =
        result_of("m_grouped_fp8_gemm_nt_masked groups=2 m_max=256 n=8 k=160 "
                  "masked_m=3,0 out=f32 data=exact seed=5",
                  "", do_nothing);
    ck_assert(result.output[0].has_exact);
    ck_assert_int_eq(result.output[0].defined, 24);
    ck_assert_int_eq(result.verdict, ASSAY_EQUAL);
    assay_result_close(&result);
}
END_TEST

START_TEST(the_worst_inexact_element_is_the_first_of_the_farthest)
{
    struct assay_result result = result_of(exact, "", add_units);
    const struct assay_output_result *const d = &result.output[0];
    ck_assert_int_eq(d->inexact, 3);
    ck_assert_int_eq(d->inexact_worst.index, 4000);
    ck_assert_uint_eq(d->inexact_worst.ulps, 4);
    ck_assert_str_eq(d->inexact_worst.place.text, "tile 0,0");
    ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
    assay_result_close(&result);
}
END_TEST

START_TEST(exactness_is_claimed_for_generated_exact_data_and_named_numerics_only)
{
    static const struct {
        const char *more;
        bool is_claimed;
    } rows[] = {
        { " data=exact", true },
        { " data=exact as=deepgemm-1d1d", true },
        { " data=exact as=deepgemm-1d2d,promote_k=64", false },
        { " data=exact bits=a.0.0:38", false },
        { " data=ties", false },
        { "", false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char line[200];
        snprintf(line, sizeof(line), "%s%s", dense, rows[i].more);
        struct assay_result result = result_of(line, "", do_nothing);
        ck_assert_msg(result.output[0].has_exact == rows[i].is_claimed, "%s", line);
        ck_assert_int_eq(result.verdict, ASSAY_EQUAL);
        assay_result_close(&result);
    }
    /* The claim is the operation's: without the hook there is none. */
    struct assay_operation silent = *gemm();
    silent.is_exact = NULL;
    struct assay_result result = run_as(&silent, backend_called("oracle"), exact, NULL);
    ck_assert(!result.output[0].has_exact);
    assay_result_close(&result);
}
END_TEST

static int64_t negated_by_model;

/* Negates the zeros of its last tile, which the bound does not see. */
static enum assay_status inexact_model(const void *problem, const void *numerics,
                                       const struct assay_tensors *tensors, int64_t part)
{
    const enum assay_status status = gemm()->model(problem, numerics, tensors, part);
    if (part != 3) return status;
    negated_by_model = 0;
    for (int64_t i = 64 * 72; i < 70 * 72; i++)
        if (i % 72 >= 64 && assay_tensor_bits(output(tensors), i) == 0) {
            assay_tensor_set_bits(output(tensors), i, 0x80000000);
            negated_by_model++;
        }
    return status;
}

START_TEST(a_model_that_is_not_exact_is_a_contradiction)
{
    struct assay_operation wrong = *gemm();
    wrong.model = inexact_model;
    static const char *const candidates[] = { "model", "oracle" };
    for (int i = 0; i < 2; i++) {
        struct assay_result result =
            run_as(&wrong, backend_called(candidates[i]), exact, NULL);
        ck_assert_int_eq(result.verdict, ASSAY_CONTRADICTION);
        ck_assert(!result.has_passed);
        ck_assert_int_gt(negated_by_model, 0);
        ck_assert_int_eq(result.model_inexact, i ? negated_by_model : 0);
        ck_assert_int_eq(result.output[0].inexact, i ? 0 : negated_by_model);
        ck_assert_int_eq(result.output[0].outside, 0);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(check_exact_alone_gives_bounded_or_outside)
{
    const struct assay_check *only[2] = { NULL, NULL };
    for (int i = 0; assay_checks[i]; i++)
        if (strcmp(assay_checks[i]->name, "exact") == 0) only[0] = assay_checks[i];
    static char no_numerics[] = "";
    const struct assay_backend vandal = { .scheme = "vandal",
                                          .claim = claim,
                                          .run = run };
    const struct assay_trial_plan plan = { .candidate = &vandal,
                                           .candidate_state = no_numerics,
                                           .uses_oracle = true,
                                           .checks = only };
    for (int i = 0; i < 3; i++) {
        const struct assay_case the_case = parsed(i == 2 ? dense : exact);
        struct assay_result result;
        vandalism = i == 1 ? add_units : do_nothing;
        assay_trial_run(&plan, &the_case, NULL, 0, &result);
        ck_assert_int_eq(result.verdict, i == 0   ? ASSAY_BOUNDED
                                         : i == 1 ? ASSAY_OUTSIDE
                                                  : ASSAY_NOT_JUDGED);
        ck_assert(result.has_passed == (i == 0));
        assay_result_close(&result);
    }
}
END_TEST

/* --- drawn cases -------------------------------------------------------------------- */

START_TEST(drawn_cases_have_data_that_their_operation_takes)
{
    for (int i = 0; assay_operations[i]; i++)
        for (int at = 0; at < 300; at++) {
            struct assay_case the_case;
            char line[ASSAY_MAX_CASE_LINE];
            draw_case(assay_operations[i]->name, 11, "case", at, 1 << 20, &the_case,
                      line);
            if (!assay_operation_takes(assay_operations[i], the_case.data) ||
                the_case.data == ASSAY_DATA_RECORDED)
                ck_abort_msg("%s draws data=%s", assay_operations[i]->name,
                             assay_data_kinds[the_case.data].name);
            const struct assay_case again = parsed(line);
            ck_assert_int_eq(again.data, the_case.data);
        }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        contents_that_no_kernel_may_be_given_are_refused,
        refused_contents_reach_no_backend,
        contents_of_recorded_inputs_are_checked_as_well,
        inputs_for_bench_and_record_are_checked_the_same_way,
        a_model_that_finds_no_memory_is_said_to_have_none,
        an_explanation_without_memory_is_said_as_well,
        a_remark_goes_with_the_numerics_it_is_about,
        exact_data_leave_one_answer_to_the_sign_of_zero,
        what_may_hold_anything_need_not_be_exact,
        the_worst_inexact_element_is_the_first_of_the_farthest,
        exactness_is_claimed_for_generated_exact_data_and_named_numerics_only,
        a_model_that_is_not_exact_is_a_contradiction,
        check_exact_alone_gives_bounded_or_outside,
        drawn_cases_have_data_that_their_operation_takes,
        NULL,
    };
    return run_tests("hooks", tests);
}
