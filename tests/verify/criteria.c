/* SPDX-License-Identifier: MIT */
/* Tests of other people's pass rules. Expected answers are computed by hand from the
 * rules as their sources state them, on values that are exact in binary. */
#include "verify/check/criteria.h"

#include "tests/verify/reported.h"
#include "verify/check/trial.h"

#include <math.h>

static const double infinity = (double)INFINITY, nan_value = (double)NAN;

/* The row @name for a lone output of @operation. */
static const struct assay_criterion *row_of(const char *name, const char *operation_name,
                                            const char *output, enum assay_format format)
{
    const struct assay_tensors tensors = {
        1, { { .name = output, .format = format, .is_output = true } }
    };
    return assay_criterion_find(name, operation_name, &tensors, 0);
}

static struct assay_criterion_result compared(const struct assay_criterion *row,
                                              int count, const double *candidate,
                                              const double *reference)
{
    struct assay_criterion_tally tally = { 0 };
    ck_assert_ptr_nonnull(row);
    for (int i = 0; i < count; i++)
        assay_criterion_add(row, candidate[i], reference[i], &tally);
    return assay_criterion_conclude(row, &tally);
}

static bool passes(const struct assay_criterion *row, double candidate, double reference)
{
    return compared(row, 1, &candidate, &reference).passes;
}

/* Whether one element keeps the row's element rule, whatever its sums say. */
static bool keeps(const struct assay_criterion *row, double candidate, double reference)
{
    const struct assay_criterion_result result = compared(row, 1, &candidate, &reference);
    return result.beyond == 0 && result.specials == 0;
}

/* c = (1 + t) r gives 1 - 2 (1 + t) / (1 + (1 + t)^2) = t^2 / (2 + 2 t + t^2): the limit
 * 0.001 is at t = 0.045733..., 0.01 at 0.15266..., 0.02 at 0.22478... */
START_TEST(calc_diff_is_judged_at_its_limit)
{
    const struct assay_criterion *const row =
        row_of("deepgemm", "fp8_gemm_nt", "d", ASSAY_BF16);
    ck_assert(passes(row, 3 * 1.0457, 3));
    ck_assert(!passes(row, 3 * 1.0458, 3));
    /* Sums go over the whole output: two elements off by 5 % and two right ones leave
     * (0.05 * 0.05 * 2) / (2 * 1.05^2 + 2 + 4) = 0.00061. */
    const double candidate[] = { 1.05, 1.05, 1, 1 }, reference[] = { 1, 1, 1, 1 };
    const struct assay_criterion_result result = compared(row, 4, candidate, reference);
    ck_assert(result.passes);
    ck_assert_double_eq_tol(result.difference, 0.005 / 8.205, 1e-12);
    ck_assert_int_eq(result.elements, 4);
    /* One element that is wholly wrong hides among many. */
    struct assay_criterion_tally tally = { 0 };
    assay_criterion_add(row, -1, 1, &tally);
    for (int i = 0; i < 9999; i++)
        assay_criterion_add(row, 1, 1, &tally);
    ck_assert(assay_criterion_conclude(row, &tally).passes);
}
END_TEST

START_TEST(calc_diff_of_nothing_but_zeros_is_zero_and_of_nan_and_infinities_fails)
{
    const struct assay_criterion *const row =
        row_of("deepgemm", "k_grouped_fp8_gemm_tn_contiguous", "d", ASSAY_F32);
    ck_assert(passes(row, 0, 0));
    ck_assert(!passes(row, 1, 0));
    ck_assert(!passes(row, nan_value, 1));
    ck_assert(!passes(row, nan_value, nan_value));
    ck_assert(!passes(row, infinity, infinity));
    ck_assert(!passes(row, infinity, 1));
}
END_TEST

START_TEST(deepgemm_allows_more_the_more_operands_are_e2m1)
{
    static const struct {
        enum assay_format a, b;
        double limit;
    } rows[] = { { ASSAY_E4M3, ASSAY_E4M3, 1e-3 },
                 { ASSAY_E4M3, ASSAY_E2M1, 1e-2 },
                 { ASSAY_E2M1, ASSAY_E5M2, 1e-2 },
                 { ASSAY_E2M1, ASSAY_E2M1, 2e-2 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct assay_tensors tensors = {
            3,
            { { .name = "a", .format = rows[i].a },
              { .name = "b", .format = rows[i].b },
              { .name = "d", .format = ASSAY_BF16, .is_output = true } }
        };
        const struct assay_criterion *const row =
            assay_criterion_find("deepgemm", "fp8_gemm_nt", &tensors, 2);
        ck_assert_ptr_nonnull(row);
        ck_assert_double_eq(row->calc_diff_limit, rows[i].limit);
    }
}
END_TEST

/* error < 8e-4 or error / (|r| + 1e-6) < 2.01 / 128 = 0.015703125. At r = 1 the second
 * is the wider: up to 0.0157031407; at r = 2^-10 the first, as 0.0157 * 2^-10 < 8e-4. */
START_TEST(flashmla_takes_either_of_two_limits)
{
    const struct assay_criterion *const row =
        row_of("flashmla", "mla_dense_decode", "out", ASSAY_BF16);
    ck_assert(keeps(row, 1 + 0.015703, 1));
    ck_assert(keeps(row, 1 - 0.015703, 1));
    ck_assert(!keeps(row, 1 + 0.015704, 1));
    ck_assert(!keeps(row, 1 - 0.015704, 1));
    ck_assert(keeps(row, 0x1p-10 + 0.000799, 0x1p-10));
    ck_assert(!keeps(row, 0x1p-10 + 0.000801, 0x1p-10));
    ck_assert(!keeps(row, -1, 1));
    /* The limits are strict: an error of just 8e-4 breaks the first. */
    ck_assert(!keeps(row, 8e-4, 0));
    ck_assert(keeps(row, 7.9e-4, 0));
}
END_TEST

START_TEST(flashmla_has_limits_of_its_own_for_each_operation_and_output)
{
    static const struct {
        const char *operation_name, *output;
        double inside, outside; /* beside a reference of 1: relative * (1 + 1e-6) */
    } rows[] = {
        { "mla_dense_decode", "out", 0.015703, 0.015704 },
        { "mla_dense_decode", "lse", 0.00012222, 0.00012224 },
        { "mla_sparse_decode", "out", 0.015703, 0.015704 },
        { "mla_sparse_decode", "lse", 0.00012222, 0.00012224 },
        { "mla_sparse_prefill", "out", 0.023515, 0.023516 },
        { "mla_sparse_prefill", "lse", 3.0670e-5, 3.0671e-5 },
        { "mla_sparse_prefill", "max_logits", 3.0670e-5, 3.0671e-5 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct assay_criterion *const row =
            row_of("flashmla", rows[i].operation_name, rows[i].output, ASSAY_F32);
        ck_assert_msg(keeps(row, 1 + rows[i].inside, 1), "%zu", i);
        ck_assert_msg(!keeps(row, 1 + rows[i].outside, 1), "%zu", i);
    }
    /* Sparse decode allows 1e-3 where dense decode and prefill allow 8e-4. */
    ck_assert(keeps(row_of("flashmla", "mla_sparse_decode", "out", ASSAY_BF16), 9e-4, 0));
    ck_assert(
        !keeps(row_of("flashmla", "mla_sparse_prefill", "out", ASSAY_BF16), 9e-4, 0));
    ck_assert_ptr_null(row_of("flashmla", "mla_combine", "out", ASSAY_BF16));
    ck_assert_ptr_null(row_of("flashmla", "fp8_gemm_nt", "d", ASSAY_BF16));
}
END_TEST

/* With c = (1 + t) r the difference is about t^2 / 2: 5e-6 at t = 0.0031673, 7e-6 at
 * 0.0037487; single elements may be off by 0.0157. */
START_TEST(flashmla_also_asks_for_the_cosine)
{
    const struct assay_criterion *row =
        row_of("flashmla", "mla_sparse_decode", "out", ASSAY_BF16);
    ck_assert(passes(row, 1.00316, 1));
    ck_assert(!passes(row, 1.00318, 1));
    ck_assert(keeps(row, 1.00318, 1));
    row = row_of("flashmla", "mla_sparse_prefill", "out", ASSAY_BF16);
    ck_assert(passes(row, 1.00374, 1));
    ck_assert(!passes(row, 1.00376, 1));
    /* Not where the reference is next to nothing: (9e-7)^2 < 1e-12 < (1.1e-6)^2. */
    ck_assert(passes(row, 7e-4, 9e-7));
    ck_assert(!passes(row, 7e-4, 1.1e-6));
}
END_TEST

START_TEST(flashmla_wants_nan_and_infinities_in_the_same_places)
{
    const struct assay_criterion *const row =
        row_of("flashmla", "mla_dense_decode", "lse", ASSAY_F32);
    ck_assert(passes(row, nan_value, nan_value));
    ck_assert(passes(row, infinity, infinity));
    ck_assert(passes(row, -infinity, -infinity));
    ck_assert(!passes(row, infinity, -infinity));
    ck_assert(!passes(row, infinity, nan_value));
    ck_assert(!passes(row, infinity, 1));
    ck_assert(!passes(row, 1, infinity));
    ck_assert(!passes(row, nan_value, 1));
    ck_assert(!passes(row, 1, nan_value));
    const double finite = 1;
    const struct assay_criterion_result missing = compared(row, 1, &finite, &infinity);
    ck_assert_int_eq(missing.specials, 1);
    ck_assert_int_eq(missing.beyond, 0);
    /* They are left out of the sums. */
    const double candidate[] = { infinity, 2 }, reference[] = { infinity, 2 };
    ck_assert_double_eq(compared(row, 2, candidate, reference).difference, 0);
}
END_TEST

/* |c - r| <= atol + rtol |r|; at r = 8 that is 0.12801 for bf16, 0.00801 for f16 and
 * 2.04e-5 for f32. Exactly on the limit passes: with r = 0 it is atol itself. */
START_TEST(torch_has_defaults_by_format)
{
    const struct assay_criterion *const bf16 = row_of("torch", "any", "d", ASSAY_BF16);
    const struct assay_criterion *const f16 = row_of("torch", "any", "d", ASSAY_F16);
    const struct assay_criterion *const f32 = row_of("torch", "any", "d", ASSAY_F32);
    ck_assert(passes(bf16, 8.128, 8) && !passes(bf16, 8.12802, 8));
    ck_assert(passes(bf16, -8.128, -8) && !passes(bf16, -7.87198, -8));
    ck_assert(passes(f16, 8.008, 8) && !passes(f16, 8.00802, 8));
    ck_assert(passes(f32, 8.0000203, 8) && !passes(f32, 8.0000205, 8));
    ck_assert(passes(f32, 1e-5, 0) && !passes(f32, 1.0000001e-5, 0));
    ck_assert(passes(row_of("torch", "any", "d", ASSAY_I32), 7, 7));
    ck_assert(!passes(row_of("torch", "any", "d", ASSAY_I32), 7, 8));
    ck_assert(!passes(row_of("torch", "any", "d", ASSAY_U8), 254, 255));
    ck_assert_ptr_null(row_of("torch", "any", "d", ASSAY_E4M3));
}
END_TEST

START_TEST(torch_takes_equal_infinities_and_no_nan)
{
    const struct assay_criterion *const row = row_of("torch", "any", "d", ASSAY_F32);
    ck_assert(passes(row, infinity, infinity) && passes(row, -infinity, -infinity));
    ck_assert(!passes(row, -infinity, infinity));
    ck_assert(!passes(row, 1, infinity) && !passes(row, infinity, 1));
    ck_assert(!passes(row, nan_value, nan_value));
    ck_assert(!passes(row, nan_value, 1) && !passes(row, 1, nan_value));
}
END_TEST

/* error < 0.05 (|c| + |r|): r = 1 allows c < 1.05 / 0.95 = 1.10526 and c > 0.95 / 1.05 =
 * 0.90476; with a zero, or both below 1/256 together, error < 0.05 / 256 = 1.953e-4. */
START_TEST(cutlass_takes_a_share_of_both_values_and_a_floor_near_zero)
{
    const struct assay_criterion *const row =
        row_of("cutlass", "m_grouped_fp8_gemm_nt_masked", "d", ASSAY_BF16);
    ck_assert(passes(row, 1.1052, 1) && !passes(row, 1.1053, 1));
    ck_assert(passes(row, 0.9048, 1) && !passes(row, 0.9047, 1));
    ck_assert(!passes(row, -1, 1));
    ck_assert(passes(row, 0, 1.95e-4) && !passes(row, 0, 1.96e-4));
    ck_assert(passes(row, 1.95e-4, 0) && !passes(row, 1.96e-4, 0));
    ck_assert(!passes(row, 0, 100));
    ck_assert(passes(row, 1e-4, 2.9e-4)); /* below the floor: any sign, any ratio */
    ck_assert(passes(row, -9e-5, 1e-4));
    ck_assert(!passes(row, 1e-3, 1.2e-3));
    ck_assert(passes(row, 0.002, 0.0021)); /* sum 0.0041 is above 1/256 */
    ck_assert(!passes(row, 0.002, 0.0023));
    ck_assert(passes(row, 100.003, 100)); /* an error below 1/256 is no case of its own */
    ck_assert(passes(row, infinity, infinity) && !passes(row, infinity, 1));
    ck_assert(!passes(row, infinity, -infinity));
    ck_assert(!passes(row, nan_value, nan_value) && !passes(row, 1, nan_value));
}
END_TEST

/* Beyond only if error > 0.01 and error / (|r| + 1e-8) > 0.01. */
START_TEST(flashinfer_takes_either_limit_and_refuses_what_is_not_finite)
{
    const struct assay_criterion *const row = row_of("flashinfer", "any", "d", ASSAY_F32);
    ck_assert(passes(row, 0.0099, 0) && !passes(row, 0.0101, 0));
    ck_assert(passes(row, 0.01, 0)); /* on the limit */
    ck_assert(passes(row, 100.99, 100) && !passes(row, 101.01, 100));
    ck_assert(!passes(row, infinity, infinity) && !passes(row, nan_value, nan_value));
    ck_assert(!passes(row, nan_value, 1));
    /* As upstream: where only the reference is NaN or infinite, no comparison fails. */
    ck_assert(passes(row, 1, nan_value) && passes(row, 1, infinity));
}
END_TEST

START_TEST(shares_of_an_output_add_up)
{
    const struct assay_criterion *const row = row_of("torch", "any", "d", ASSAY_BF16);
    struct assay_criterion_tally first = { 0 }, second = { 0 };
    assay_criterion_add(row, 1, 2, &first);
    assay_criterion_add(row, 3, 3, &second);
    assay_criterion_add(row, 5, 6, &second);
    assay_criterion_merge(&second, &first);
    ck_assert_int_eq(first.elements, 3);
    ck_assert_int_eq(first.beyond, 2);
    ck_assert_double_eq(first.candidate_squares, 1 + 9 + 25);
    ck_assert_double_eq(first.products, 2 + 9 + 30);
    ck_assert_double_eq(first.reference_squares, 4 + 9 + 36);
}
END_TEST

START_TEST(every_row_has_a_source_a_rule_and_a_description)
{
    int names = 0;
    for (const struct assay_criterion *row = assay_criteria_table; row->name; row++) {
        char description[256];
        struct assay_text text = assay_text_open(description, sizeof description);
        assay_criterion_describe(row, &text);
        ck_assert(assay_text_fits(&text) && *description);
        ck_assert(row->source && *row->source);
        ck_assert(row->rule || row->calc_diff_limit > 0);
        /* Operations are spelled as the registry spells them. */
        char word[64];
        for (const char *rest = row->operations; rest && *rest;) {
            const size_t length = strcspn(rest, " ");
            snprintf(word, sizeof word, "%.*s", (int)length, rest);
            ck_assert_msg(assay_operation_find(word) != NULL, "no operation %s", word);
            rest += length + strspn(rest + length, " ");
        }
        names += row == assay_criteria_table || strcmp(row[-1].name, row->name) != 0;
    }
    ck_assert_int_eq(names, 5);
}
END_TEST

START_TEST(lists_of_criteria_are_read_and_what_is_none_is_refused)
{
    struct assay_criteria criteria;
    struct assay_message message;
    ck_assert_int_eq(assay_criteria_parse("torch,deepgemm,torch", &criteria, &message),
                     ASSAY_RAN);
    ck_assert_int_eq(criteria.count, 2);
    ck_assert_str_eq(criteria.name[0], "torch");
    ck_assert_str_eq(criteria.name[1], "deepgemm");
    static const char *const refused[] = {
        "", ",", "torch,", "torch,,cutlass", "Torch", "deepgem", "deepgemm torch", "all"
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        ck_assert_msg(assay_criteria_parse(refused[i], &criteria, &message) ==
                          ASSAY_REFUSED,
                      "%s", refused[i]);
    assay_criteria_parse("deepgem", &criteria, &message);
    ck_assert_str_eq(message.text, "--criteria names 'deepgem', which is no criterion; "
                                   "did you mean 'deepgemm'?");
    char *const long_name = malloc(100000);
    memset(long_name, 'x', 99999);
    long_name[99999] = '\0';
    ck_assert_int_eq(assay_criteria_parse(long_name, &criteria, &message), ASSAY_REFUSED);
    assert_has(message.text, "legal: deepgemm, flashmla, torch, cutlass, flashinfer");
    free(long_name);
}
END_TEST

static const struct assay_backend *backend_called(const char *scheme)
{
    for (int i = 0; assay_backends[i]; i++)
        if (strcmp(assay_backends[i]->scheme, scheme) == 0) return assay_backends[i];
    ck_abort_msg("no backend %s", scheme);
    return NULL;
}

/* The case on backend @scheme:@argument. */
static struct assay_result result_of(const char *line, const char *scheme,
                                     const char *argument, const char *criteria)
{
    struct assay_case the_case;
    struct assay_message message;
    struct assay_result result;
    struct assay_trial_plan plan = { .candidate = backend_called(scheme),
                                     .uses_model = true,
                                     .uses_oracle = true,
                                     .checks = assay_checks };
    ck_assert_int_eq(assay_case_parse(line, &the_case, &message), ASSAY_RAN);
    ck_assert_int_eq(assay_criteria_parse(criteria, &plan.criteria, &message), ASSAY_RAN);
    ck_assert_int_eq(plan.candidate->open(argument, &plan.candidate_state, &message),
                     ASSAY_RAN);
    assay_trial_run(&plan, &the_case, NULL, 0, &result);
    plan.candidate->close(plan.candidate_state);
    ck_assert_int_eq(result.status, ASSAY_RAN);
    return result;
}

static const char positive[] =
    "fp8_gemm_nt m=64 n=64 k=4096 recipe=tensor out=f32 data=positive seed=7";

START_TEST(a_wrong_promotion_interval_is_outside_our_bound_and_passes_elsewhere)
{
    struct assay_result result = result_of(positive, "model", "promote_k=512",
                                           "deepgemm,torch,cutlass,flashinfer");
    ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
    ck_assert(!result.has_passed);
    ck_assert_int_eq(result.output[0].outside, 64 * 64);
    ck_assert_int_eq(result.output[0].criterion_count, 4);
    ck_assert_int_eq(assay_result_opinion(&result, "deepgemm"), ASSAY_WOULD_PASS);
    ck_assert_int_eq(assay_result_opinion(&result, "cutlass"), ASSAY_WOULD_PASS);
    ck_assert_int_eq(assay_result_opinion(&result, "flashinfer"), ASSAY_WOULD_PASS);
    ck_assert_int_eq(assay_result_opinion(&result, "torch"), ASSAY_WOULD_FAIL);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(result.output[0].criterion[i].elements, 64 * 64);
    assay_result_close(&result);
}
END_TEST

START_TEST(criteria_change_nothing_else_in_a_result)
{
    for (int is_wrong = 0; is_wrong < 2; is_wrong++) {
        const char *const scheme = is_wrong ? "model" : "oracle";
        const char *const knob = is_wrong ? "promote_k=512" : NULL;
        struct assay_result with = result_of(positive, scheme, knob, "torch,deepgemm");
        struct assay_result without = result_of(positive, scheme, knob, "flashmla");
        ck_assert_int_eq(with.verdict, without.verdict);
        ck_assert_int_eq(with.has_passed, without.has_passed);
        ck_assert_int_eq(assay_result_opinion(&without, "flashmla"), ASSAY_NO_OPINION);
        ck_assert_int_eq(without.output[0].criterion_count, 0);
        with.criteria = without.criteria;
        with.output[0].criterion_count = 0;
        with.seconds = without.seconds;
        char *const text = text_of(&with), *const other = text_of(&without);
        ck_assert_str_eq(text, other);
        free(text);
        free(other);
        assay_result_close(&with);
        assay_result_close(&without);
    }
}
END_TEST

START_TEST(only_defined_elements_are_compared)
{
    struct assay_result result =
        result_of("m_grouped_fp8_gemm_nt_masked groups=2 m_max=256 n=8 k=160 "
                  "masked_m=3,0 seed=5",
                  "oracle", NULL, "deepgemm,torch");
    ck_assert_int_eq(result.output[0].criterion[0].elements, 24);
    ck_assert_int_eq(result.output[0].criterion[1].elements, 24);
    ck_assert_int_eq(assay_result_opinion(&result, "torch"), ASSAY_WOULD_PASS);
    assay_result_close(&result);
}
END_TEST

START_TEST(a_result_names_the_criteria_that_were_asked_for)
{
    struct assay_result result =
        result_of("fp8_gemm_nt m=2 n=8 k=16 seed=5", "oracle", NULL, "torch,flashmla");
    ck_assert_int_eq(result.criteria.count, 2);
    ck_assert_str_eq(result.criteria.name[0], "torch");
    ck_assert_str_eq(result.criteria.name[1], "flashmla"); /* without a rule for it */
    assay_result_close(&result);
}
END_TEST

START_TEST(one_output_that_breaks_a_rule_decides_for_all)
{
    struct assay_result result = failing_result();
    const struct assay_criterion *const row = row_of("torch", "any", "d", ASSAY_BF16);
    for (int i = 0; i < 2; i++)
        result.output[i].criterion[result.output[i].criterion_count++] =
            (struct assay_criterion_result){ .criterion = row, .passes = true };
    ck_assert_int_eq(assay_result_opinion(&result, "torch"), ASSAY_WOULD_PASS);
    result.output[1].criterion[0].passes = false;
    ck_assert_int_eq(assay_result_opinion(&result, "torch"), ASSAY_WOULD_FAIL);
    result.output[1].criterion[0].passes = true;
    result.output[0].criterion[0].passes = false;
    ck_assert_int_eq(assay_result_opinion(&result, "torch"), ASSAY_WOULD_FAIL);
    ck_assert_int_eq(assay_result_opinion(&result, "deepgemm"), ASSAY_NO_OPINION);
    assay_result_close(&result);
}
END_TEST

/* Adds to output d: deepgemm passes, torch has 12 elements beyond and a NaN. */
static void add_criteria(struct assay_result *result)
{
    struct assay_message message;
    struct assay_output_result *const d = &result->output[0];
    ck_assert_int_eq(
        assay_criteria_parse("deepgemm,torch,flashmla", &result->criteria, &message),
        ASSAY_RAN);
    d->criterion_count = 2;
    d->criterion[0] = (struct assay_criterion_result){
        .criterion = row_of("deepgemm", "fp8_gemm_nt", "d", ASSAY_BF16),
        .passes = true,
        .elements = 24576,
        .difference = 0.00025,
    };
    d->criterion[1] = (struct assay_criterion_result){
        .criterion = row_of("torch", "fp8_gemm_nt", "d", ASSAY_BF16),
        .elements = 24576,
        .beyond = 12,
        .specials = 1,
    };
}

START_TEST(the_text_says_what_each_would_say_and_that_it_does_not_count)
{
    struct assay_result result = failing_result();
    add_criteria(&result);
    char *text = text_of(&result);
    assert_has(text, "  no part of the verdict: deepgemm would pass, torch would fail, "
                     "flashmla has no rule\n"
                     "    deepgemm, d: calc_diff 0.00025, limit 0.001\n"
                     "    torch, d: 12 of 24576 elements break error <= 1e-05 + 0.016 "
                     "|oracle|; 1 NaN or infinite where it may not be\n");
    assert_has(text, " --criteria deepgemm,torch,flashmla\n");
    free(text);
    assay_result_close(&result);

    result = passing_result();
    add_criteria(&result);
    text = text_of(&result);
    assert_has(text, "; deepgemm would pass, torch would fail, flashmla has no rule   "
                     "fp8_gemm_nt m=128");
    assert_lacks(text, "calc_diff");
    free(text);
    assay_result_close(&result);
}
END_TEST

START_TEST(json_has_the_words_by_case_and_the_figures_by_output)
{
    struct assay_result result = failing_result();
    json_t *object = json_of(&result);
    ck_assert_ptr_null(json_object_get(object, "criteria"));
    json_decref(object);
    add_criteria(&result);
    object = json_of(&result);
    assert_json(json_object_get(object, "criteria"),
                "{\"deepgemm\": \"would pass\", \"torch\": \"would fail\", "
                "\"flashmla\": \"has no rule\"}");
    json_t *const outputs = json_object_get(object, "outputs");
    json_t *const rows = json_object_get(json_array_get(outputs, 0), "criteria");
    ck_assert_int_eq((int)json_array_size(rows), 2);
    for (size_t i = 0; i < 2; i++) {
        json_t *const row = json_array_get(rows, i);
        ck_assert_int_eq(json_object_del(row, "source"), 0);
        ck_assert_int_eq(json_object_del(row, "rule"), 0);
    }
    assert_json(rows, "[{\"name\": \"deepgemm\", \"would_pass\": true, "
                      "\"elements\": 24576, \"specials\": 0, \"difference\": 0.00025}, "
                      "{\"name\": \"torch\", \"would_pass\": false, "
                      "\"elements\": 24576, \"beyond\": 12, \"specials\": 1}]");
    ck_assert_ptr_null(json_object_get(json_array_get(outputs, 1), "criteria"));
    json_decref(object);
    assay_result_close(&result);
}
END_TEST

START_TEST(junit_has_a_property_for_each)
{
    struct assay_result result = passing_result();
    add_criteria(&result);
    char *const text = written("junit", &plain_header, &result, &summary);
    assert_has(text, "<property name=\"criteria/deepgemm\" value=\"would pass\"/>");
    assert_has(text, "<property name=\"criteria/torch\" value=\"would fail\"/>");
    assert_has(text, "<property name=\"criteria/flashmla\" value=\"has no rule\"/>");
    assert_lacks(text, "<failure");
    free(text);
    assay_result_close(&result);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        calc_diff_is_judged_at_its_limit,
        calc_diff_of_nothing_but_zeros_is_zero_and_of_nan_and_infinities_fails,
        deepgemm_allows_more_the_more_operands_are_e2m1,
        flashmla_takes_either_of_two_limits,
        flashmla_has_limits_of_its_own_for_each_operation_and_output,
        flashmla_also_asks_for_the_cosine,
        flashmla_wants_nan_and_infinities_in_the_same_places,
        torch_has_defaults_by_format,
        torch_takes_equal_infinities_and_no_nan,
        cutlass_takes_a_share_of_both_values_and_a_floor_near_zero,
        flashinfer_takes_either_limit_and_refuses_what_is_not_finite,
        shares_of_an_output_add_up,
        every_row_has_a_source_a_rule_and_a_description,
        lists_of_criteria_are_read_and_what_is_none_is_refused,
        a_wrong_promotion_interval_is_outside_our_bound_and_passes_elsewhere,
        criteria_change_nothing_else_in_a_result,
        only_defined_elements_are_compared,
        a_result_names_the_criteria_that_were_asked_for,
        one_output_that_breaks_a_rule_decides_for_all,
        the_text_says_what_each_would_say_and_that_it_does_not_count,
        json_has_the_words_by_case_and_the_figures_by_output,
        junit_has_a_property_for_each,
        NULL,
    };
    return run_tests("criteria", tests);
}
