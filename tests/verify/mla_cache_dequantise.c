/* SPDX-License-Identifier: MIT */
/* Tests of the operation mla_cache_dequantise as a whole: the bound against both forms
 * and against keys that are wrong on purpose, data kinds, what is refused, and a page
 * that upstream dequantised. */
#include "ref/format/minifloat.h"
#include "ref/kernel/mla_cache.h"
#include "tests/harness.h"
#include "tests/verify/drawn_cases.h"
#include "tests/verify/expected_case.h"
#include "verify/data/recording.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CACHE, KEY };

static const char *const layouts[] = { "v32", "v32 scale=f32", "model1", "v41_fp8",
                                       "v41_fp4" };
static const char form_f32[] = "flashmla-dequantise-f32";

static bool has_data(int layout, int kind)
{
    return kind != ASSAY_DATA_CANCEL && !(layout == 4 && kind == ASSAY_DATA_TIES);
}

/* --- the bound -------------------------------------------------------------------- */

START_TEST(scales_that_are_powers_of_two_have_bound_0_inside_the_range)
{
    static const int rows[] = { 0, 2, 3, 4 };
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++)
        for (int i = 0; i < 4 && kind != ASSAY_DATA_CANCEL; i++) {
            /* Special scales of v32 are odd f32 values. */
            if (!has_data(rows[i], kind) || (!rows[i] && kind == ASSAY_DATA_SPECIAL))
                continue;
            char text[128];
            struct expected_case opened;
            snprintf(text, sizeof(text),
                     "mla_cache_dequantise kv=%s tokens=40 page_size=40 data=%s",
                     layouts[rows[i]], assay_data_kinds[kind].name);
            open_expected(text, 0, KEY, &opened);
            int64_t loose = 0, wide = 0;
            const int64_t elements = assay_tensor_elements(&opened.tensors.item[KEY]);
            for (int64_t j = 0; j < elements; j++) {
                loose += opened.bound[j] != 0;
                wide += opened.bound[j] > 0x1p-134; /* half the smallest subnormal */
            }
            const bool leaves_range =
                rows[i] != 4 &&
                (kind == ASSAY_DATA_WIDE || kind == ASSAY_DATA_SUBNORMAL ||
                 kind == ASSAY_DATA_TIES || kind == ASSAY_DATA_SPECIAL ||
                 kind == ASSAY_DATA_RUNS);
            ck_assert_msg(wide == 0 && (loose == 0 || leaves_range), "%s", text);
            ck_assert_msg(loose > 0 || !leaves_range || kind == ASSAY_DATA_SPECIAL, "%s",
                          text);
            close_expected(&opened);
        }
}
END_TEST

static double half_unit(double value)
{
    int exponent;
    frexp(value, &exponent);
    return ldexp(1, exponent - 9);
}

/* Half a unit of the result and, where the scale is no bf16, |code| halves of one of the
 * scale: the bound is never more, and the model reaches nine tenths of it. */
START_TEST(bound_is_half_a_unit_a_rounding_and_the_model_comes_near_it)
{
    for (int form = 0; form < 2; form++) {
        struct expected_case opened;
        open_expected("mla_cache_dequantise kv=v32 tokens=500 page_size=500 scale=f32 "
                      "data=uniform",
                      form, KEY, &opened);
        const struct assay_tensor *const key = &opened.tensors.item[KEY];
        double reached = 0, of_most = 0;
        for (int64_t i = 0; i < 500 * 576; i++) {
            if (i % 576 >= 512) {
                ck_assert(opened.bound[i] == 0);
                continue;
            }
            struct assay_mla_token token;
            assay_mla_token_unpack(&assay_mla_token_layouts[0], 500, i / 576,
                                   opened.tensors.item[CACHE].data, &token);
            const double scale = assay_minifloat_decode(assay_minifloat(ASSAY_F32),
                                                        token.scale[i % 576 / 128]);
            const double code = fabs(opened.value[i]) / scale;
            const double high = fabs(opened.value[i]) + opened.bound[i];
            const double most =
                half_unit(high) + (form == 0 ? code * half_unit(scale) : high * 0x1p-24);
            const double got = assay_minifloat_decode(assay_minifloat(ASSAY_BF16),
                                                      assay_tensor_bits(key, i));
            if (opened.bound[i] > most) ck_abort_msg("element %d", (int)i);
            reached = fmax(reached, fabs(got - opened.value[i]) / most);
            of_most = fmax(of_most, opened.bound[i] / most);
        }
        close_expected(&opened);
        ck_assert_msg(reached >= 0.9 && of_most <= 1, "%g", reached);
    }
}
END_TEST

START_TEST(both_forms_are_within_the_kernels_bound)
{
    int64_t differ = 0;
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++)
        for (int layout = 0; layout < 5; layout++) {
            if (!has_data(layout, kind)) continue;
            char text[160];
            snprintf(text, sizeof(text), "mla_cache_dequantise kv=%s tokens=80 data=%s",
                     layouts[layout], assay_data_kinds[kind].name);
            /* A huge scale rounds to an infinity that the f32 product does not know. */
            const bool is_huge =
                layout <= 1 && (kind == ASSAY_DATA_WIDE || kind == ASSAY_DATA_SPECIAL);
            struct assay_result result = result_of(text, form_f32, NULL);
            ck_assert_msg(is_huge || result.output[0].outside == 0, "%s", text);
            ck_assert(layout == 1 || (layout == 0 && kind == ASSAY_DATA_SPECIAL) ||
                      result.output[0].differ == 0);
            ck_assert(result.model_max_error_over_bound <= 1);
            differ += result.output[0].differ;
            assay_result_close(&result);
        }
    ck_assert_int_gt(differ, 10000);
}
END_TEST

/* The other way: what scale-to-bf16 loses is too much for the product's bound. */
START_TEST(the_kernels_form_is_outside_the_bound_of_the_f32_product)
{
    struct assay_result result =
        result_of("mla_cache_dequantise kv=v32 tokens=20 scale=f32 as=dequantisation="
                  "f32-product",
                  "flashmla-dequantise", NULL);
    ck_assert(!result.has_passed && result.verdict == ASSAY_EXPLAINED);
    ck_assert_int_gt(result.output[0].outside, 20 * 512 / 10);
    ck_assert_int_eq(result.output[0].outside, result.output[0].differ);
    assay_result_close(&result);
}
END_TEST

static uint32_t lower_key;

static void take_the_lower_key(const struct assay_tensors *tensors)
{
    assay_tensor_set_bits(assay_tensors_find(tensors, "key"), 0, lower_key);
}

/* The code 1.125 times an f32 that is @steps of 2^-26 above the middle of two bf16 values
 * in [1, 2): whether the lower one is within the bound of the f32 product. */
static bool allows_the_lower_key(int steps)
{
    for (uint32_t middle = 321; middle < 512; middle += 2) {
        const uint32_t product = (middle << 18) + (uint32_t)steps; /* of 2^-26 */
        if (product % 9) continue;
        const uint32_t scale = (product / 9 & 0x7FFFFF) | 0x3F800000;
        char text[256];
        lower_key = 0x3F80 + (middle - 1) / 2 - 128;
        snprintf(text, sizeof(text),
                 "mla_cache_dequantise kv=v32 tokens=1 page_size=1 scale=f32 bits="
                 "k_cache.0.0:39,k_cache.0.512:%02x,k_cache.0.513:%02x,"
                 "k_cache.0.514:%02x,k_cache.0.515:%02x as=flashmla-dequantise-f32",
                 scale & 0xFF, scale >> 8 & 0xFF, scale >> 16 & 0xFF, scale >> 24);
        struct assay_result result = result_of(text, "", take_the_lower_key);
        const bool is_allowed = result.output[0].outside == 0;
        assay_result_close(&result);
        return is_allowed;
    }
    ck_abort_msg("no such product");
    return false;
}

/* Half a unit of f32 is 2^-24 there, 4 steps; with just 4 two ties to even decide. */
START_TEST(bound_of_the_f32_product_ends_half_a_unit_from_a_middle)
{
    for (int steps = 1; steps <= 12; steps++)
        if (steps != 4)
            ck_assert_msg(allows_the_lower_key(steps) == (steps < 4), "%d", steps);
}
END_TEST

START_TEST(a_scale_that_rounds_to_infinity_is_one_to_the_kernel)
{
    static const char text[] =
        "mla_cache_dequantise kv=v32 tokens=1 page_size=1 scale=f32 "
        "bits=k_cache.0.0:00,k_cache.0.1:01,k_cache.0.512:ff,"
        "k_cache.0.513:ff,k_cache.0.514:7f,k_cache.0.515:7f";
    for (int form = 0; form < 2; form++) {
        struct assay_result result = result_of(text, form ? form_f32 : "", NULL);
        ck_assert_int_eq(result.output[0].outside > 0, form);
        ck_assert(result.model_max_error_over_bound <= 1);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(exact_data_never_rounds)
{
    for (int i = 0; i < 10; i++) {
        char text[128];
        snprintf(text, sizeof(text), "mla_cache_dequantise kv=%s tokens=70 data=exact",
                 layouts[i % 5]);
        struct assay_result result = result_of(text, i / 5 ? form_f32 : "", NULL);
        ck_assert_int_eq(result.output[0].differ + result.output[0].inexact, 0);
        ck_assert(result.output[0].has_exact && result.model_inexact == 0);
        ck_assert(result.output[0].max_error_over_bound == 0);
        assay_result_close(&result);
    }
}
END_TEST

/* --- wrong keys ------------------------------------------------------------------- */

static int64_t changed_element;

static void change_key(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const key = assay_tensors_find(tensors, "key");
    assay_tensor_set_bits(key, changed_element,
                          assay_tensor_bits(key, changed_element) ^ 1);
}

START_TEST(a_neighbouring_key_is_outside_and_its_place_named)
{
    static const struct {
        const char *kv;
        int element;
        const char *place;
    } rows[] = {
        { "v32", 576 * 65 + 511, "page 1, slot 1, scale 3" },
        { "v32", 576 + 512, "page 0, slot 1, bf16 element 0" },
        { "model1", 512 * 9 + 447, "page 0, slot 9, scale 6" },
        { "model1", 512 * 9 + 511, "page 0, slot 9, bf16 element 63" },
        { "v41_fp8", 512 * 3 + 33, "page 0, slot 3, scale 1" },
        { "v41_fp4", 512 * 3 + 33, "page 0, slot 3, scale 2" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[128];
        snprintf(text, sizeof(text),
                 "mla_cache_dequantise kv=%s tokens=70 page_padding=9", rows[i].kv);
        changed_element = rows[i].element;
        struct assay_result result = result_of(text, "", change_key);
        ck_assert_msg(result.verdict == ASSAY_OUTSIDE && result.output[0].outside == 1,
                      "%s", text);
        ck_assert_str_eq(result.output[0].worst.place.text, rows[i].place);
        assay_result_close(&result);
    }
}
END_TEST

/* --- inputs ----------------------------------------------------------------------- */

static bool has_nan_scale(const struct expected_case *opened, int tokens)
{
    const struct assay_mla_cache_problem *const problem = (const void *)opened->problem;
    const struct assay_mla_token_layout *const layout =
        &assay_mla_token_layouts[problem->kv];
    for (int i = 0; i < tokens; i++) {
        struct assay_mla_token token;
        assay_mla_token_unpack(layout, tokens, i, opened->tensors.item[CACHE].data,
                               &token);
        for (int j = 0; j < layout->scales; j++)
            if (isnan(assay_minifloat_decode(assay_minifloat(layout->scale),
                                             token.scale[j])))
                return true;
    }
    return false;
}

START_TEST(scales_are_nan_in_unsafe_cases_only)
{
    for (int layout = 0; layout < 5; layout++)
        for (int is_unsafe = 0; is_unsafe < 2; is_unsafe++) {
            char text[160];
            struct expected_case opened;
            snprintf(text, sizeof(text),
                     "mla_cache_dequantise kv=%s tokens=200 page_size=200 data=special"
                     " unsafe=%d",
                     layouts[layout], is_unsafe);
            open_expected(text, 0, KEY, &opened);
            ck_assert_int_eq(has_nan_scale(&opened, 200), is_unsafe);
            close_expected(&opened);
        }
}
END_TEST

static struct assay_message refusal_of(const char *text)
{
    static char no_numerics[] = "";
    const struct assay_case the_case = parsed(text);
    const struct assay_trial_plan plan = { .candidate = model(),
                                           .candidate_state = no_numerics,
                                           .uses_model = true,
                                           .checks = assay_checks };
    struct assay_result result;
    assay_trial_run(&plan, &the_case, NULL, 0, &result);
    ck_assert_msg(result.status == ASSAY_REFUSED, "%s", text);
    const struct assay_message message = result.message;
    assay_result_close(&result);
    return message;
}

START_TEST(what_makes_no_sense_is_refused_with_a_sentence)
{
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        { "mla_cache_dequantise kv=v41_fp4 tokens=4 data=ties", "use another kind" },
        { "mla_cache_dequantise kv=v41_fp8 tokens=4 scale=f32", "use kv=v32" },
        { "mla_cache_dequantise kv=v41_fp8 tokens=66 bits=k_cache.1.1055:ff",
          "NaN for scale 15 of token 65" },
        { "mla_cache_dequantise kv=v41_fp4 tokens=2 bits=k_cache.0.256:7f",
          "NaN for scale 0 of token 0" },
        { "mla_cache_dequantise kv=model1 tokens=2 bits=k_cache.0.36878:ff",
          "NaN for scale 6 of token 1" },
        { "mla_cache_dequantise kv=v32 tokens=2 bits=k_cache.0.527:7f,k_cache.0.526:c0",
          "NaN for scale 3 of token 0" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct assay_message message = refusal_of(rows[i].text);
        ck_assert_msg(strstr(message.text, rows[i].sentence), "%s", message.text);
    }
    struct assay_result result = result_of(
        "mla_cache_dequantise kv=v41_fp8 tokens=66 bits=k_cache.1.1055:ff unsafe=1", "",
        NULL);
    ck_assert(result.has_passed);
    assay_result_close(&result);
}
END_TEST

START_TEST(v41_says_that_no_kernel_reads_it)
{
    for (int layout = 0; layout < 5; layout++) {
        char text[128];
        snprintf(text, sizeof(text), "mla_cache_dequantise kv=%s tokens=2",
                 layouts[layout]);
        struct assay_result result = result_of(text, "", NULL);
        ck_assert_int_eq(result.remark != NULL, layout >= 3);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(random_cases_are_decisive_and_within_the_bound)
{
    expect_drawn_cases_to_pass("mla_cache_dequantise", 200, 20000, 20000);
}
END_TEST

/* Generated inputs never change: frozen with data version 1. */
START_TEST(generated_inputs_are_the_same_everywhere)
{
    static const uint64_t frozen[ASSAY_GENERAL_DATA_KINDS][3] = {
        { 0xce73946414cf40bf, 0xe6d9aa90b5368ffc, 0xad635a05805a3e8e },
        { 0x7c2d86a008ea04a2, 0x727a671bc3563dfe, 0x0a143e1bff89dbd7 },
        { 0xcab00bc69f6aeffa, 0x1a3370007e6d230c, 0xf8e74bf2638f9b2e },
        { 0x91083d827fc02e77, 0x2af79fc6673486f5, 0x854d45b6a3faead0 },
        { 0, 0, 0 },
        { 0x7109d2085787bebc, 0x1340d906a4b37742, 0x4dbaed4de4fabe47 },
        { 0x8baea852e5f05a17, 0x67f38a0b3dcab3c6, 0xfdc79a5d06b4e998 },
        { 0x1408e545dcf58c4f, 0x60dc0f8951e6e194, 0 },
        { 0x74fc9c64788773ac, 0x546a7f1fc735c57e, 0xa650f6a0d2003da3 },
        { 0xf67be85215c8eaa7, 0x126b604c2094c7e3, 0x33a841198e8dc1d6 },
        { 0x69b245a859a4cd2c, 0x87dcac1e9c5e4697, 0x170b18b1e04f97c5 },
        { 0xf9070ff5b78aa139, 0xdf34a5e8ad549d52, 0x741372b31360078f }
    };
    static const int rows[3] = { 1, 2, 4 };
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++)
        for (int i = 0; i < 3; i++) {
            if (!has_data(rows[i], kind)) continue;
            char text[128];
            struct expected_case opened;
            snprintf(text, sizeof(text),
                     "mla_cache_dequantise kv=%s tokens=40 data=%s seed=7",
                     layouts[rows[i]], assay_data_kinds[kind].name);
            open_expected(text, 0, KEY, &opened);
            const uint64_t hash = assay_inputs_hash(&opened.tensors);
            ck_assert_msg(hash == frozen[kind][i], "%s: 0x%016llx", text,
                          (unsigned long long)hash);
            close_expected(&opened);
        }
}
END_TEST

START_TEST(a_case_with_fewer_tokens_or_other_pages_keeps_its_tokens)
{
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++)
        for (int layout = 0; layout < 5; layout++) {
            if (!has_data(layout, kind)) continue;
            struct expected_case opened[2];
            for (int i = 0; i < 2; i++) {
                char text[128];
                snprintf(text, sizeof(text),
                         "mla_cache_dequantise kv=%s tokens=%d page_size=%d data=%s",
                         layouts[layout], i ? 5 : 33, i ? 7 : 40,
                         assay_data_kinds[kind].name);
                open_expected(text, 0, KEY, &opened[i]);
            }
            const size_t bytes = (size_t)opened[1].tensors.item[KEY].shape[1] * 5 * 2;
            ck_assert_mem_eq(opened[0].tensors.item[KEY].data,
                             opened[1].tensors.item[KEY].data, bytes);
            close_expected(&opened[0]);
            close_expected(&opened[1]);
        }
}
END_TEST

/* --- a page of upstream ----------------------------------------------------------- */

/* Its scales are powers of two, so that both forms must give upstream's keys. */
START_TEST(a_page_of_upstream_is_equal_in_both_forms)
{
    char path[512];
    struct assay_recording recording;
    struct assay_message message = { "" };
    snprintf(path, sizeof(path), "%s/recorded/flashmla_v32_page.safetensors.zst",
             corpus_folder());
    ck_assert_msg(assay_recording_open(&recording, path, &message) == ASSAY_RAN, "%s",
                  message.text);
    ck_assert_int_eq(recording.count, 2);
    for (int form = 0; form < 2; form++) {
        const struct assay_case *const the_case = &recording.cases[form];
        const struct assay_operation *const operation = the_case->operation;
        _Alignas(16) char problem[ASSAY_MAX_PROBLEM_BYTES];
        static uint16_t key[64 * 576];
        struct assay_tensors tensors;
        ck_assert(operation->bind(the_case, problem, &message) == ASSAY_RAN);
        operation->shape(problem, &tensors);
        ck_assert(assay_recording_bind(&recording, form, &tensors, &message) ==
                  ASSAY_RAN);
        const void *const recorded = tensors.item[KEY].data;
        tensors.item[KEY].data = key;
        ck_assert(operation->model(problem, operation->numerics[form].numerics, &tensors,
                                   0) == ASSAY_RAN);
        ck_assert_mem_eq(key, recorded, sizeof(key));
    }
    assay_recording_close(&recording);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        scales_that_are_powers_of_two_have_bound_0_inside_the_range,
        bound_is_half_a_unit_a_rounding_and_the_model_comes_near_it,
        both_forms_are_within_the_kernels_bound,
        the_kernels_form_is_outside_the_bound_of_the_f32_product,
        bound_of_the_f32_product_ends_half_a_unit_from_a_middle,
        a_scale_that_rounds_to_infinity_is_one_to_the_kernel,
        exact_data_never_rounds,
        a_neighbouring_key_is_outside_and_its_place_named,
        scales_are_nan_in_unsafe_cases_only,
        what_makes_no_sense_is_refused_with_a_sentence,
        v41_says_that_no_kernel_reads_it,
        random_cases_are_decisive_and_within_the_bound,
        generated_inputs_are_the_same_everywhere,
        a_case_with_fewer_tokens_or_other_pages_keeps_its_tokens,
        a_page_of_upstream_is_equal_in_both_forms,
        NULL,
    };
    return run_tests("mla_cache_dequantise", tests);
}
