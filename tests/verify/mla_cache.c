/* SPDX-License-Identifier: MIT */
/* Tests of the operation mla_cache_quantise as a whole: the bound against the model and
 * against caches that are wrong on purpose, what stays untouched, what is refused, and a
 * page that upstream quantised. */
#include "ref/kernel/mla_cache.h"

#include "ref/format/minifloat.h"
#include "tests/harness.h"
#include "tests/verify/drawn_cases.h"
#include "tests/verify/expected_case.h"
#include "verify/data/recording.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { X, CACHE };

static const char *const layouts[] = { "v32", "v32 scale=f32", "model1", "v41_fp8",
                                       "v41_fp4" };

/* --- the bound -------------------------------------------------------------------- */

START_TEST(power_of_two_scales_and_their_codes_have_bound_0)
{
    static const int rows[] = { 0, 2, 3 };
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++)
        for (int i = 0; i < 3 && kind != ASSAY_DATA_CANCEL; i++) {
            char text[128];
            struct expected_case opened;
            snprintf(text, sizeof(text),
                     "mla_cache_quantise kv=%s tokens=60 page_size=60 data=%s",
                     layouts[rows[i]], assay_data_kinds[kind].name);
            open_expected(text, 0, CACHE, &opened);
            int64_t loose = 0;
            const int64_t bytes = opened.tensors.item[CACHE].shape[1];
            for (int64_t j = 0; j < bytes; j++)
                loose += opened.bound[j] != 0;
            ck_assert_msg(loose == (rows[i] == 2 ? 60 : 0), "%s", text); /* pad bytes */
            close_expected(&opened);
        }
}
END_TEST

/* Scales of v32 in f32: the low byte may be one of the 2 to 5 that two roundings reach,
 * and multiplying by the reciprocal does reach the last of them. Twice the bound fails
 * both ways. */
START_TEST(bound_of_f32_scales_is_tight)
{
    static const char text[] = "mla_cache_quantise kv=v32 tokens=2000 page_size=2000 "
                               "scale=f32";
    double largest_ratio = 0, largest_bound = 0;
    struct expected_case opened;
    open_expected(text, 1, CACHE, &opened);
    const uint8_t *const bytes = opened.tensors.item[CACHE].data;
    for (int i = 0; i < 4 * 2000; i++) {
        const int64_t at = 656 * (int64_t)(i / 4) + 512 + 4 * (i % 4);
        /* Not the few whose low byte wraps. */
        if (opened.bound[at] < 1 || opened.bound[at + 1] > 0) continue;
        largest_ratio =
            fmax(largest_ratio, fabs(bytes[at] - opened.value[at]) / opened.bound[at]);
        largest_bound = fmax(largest_bound, opened.bound[at]);
    }
    close_expected(&opened);
    ck_assert_msg(largest_ratio >= 0.95 && largest_ratio <= 1, "%g", largest_ratio);
    ck_assert_msg(largest_bound >= 1.5 && largest_bound <= 2, "%g", largest_bound);
}
END_TEST

/* Codes of 400 tokens that have one byte, two and more. */
static void count_codes(const struct expected_case *opened, int64_t *single,
                        int64_t *pairs, int64_t *others)
{
    for (int token = 0; token < 400; token++)
        for (int i = 0; i < 512; i++) {
            const double bound = opened->bound[656 * token + i];
            *single += bound == 0;
            *pairs += bound == 0.5;
            *others += bound != 0 && bound != 0.5;
        }
}

/* Where amax / 448 is no power of two quotients of bf16 values are the middle of two
 * codes or at least 2^-18 of themselves away. */
START_TEST(codes_by_f32_scales_are_single_but_for_exact_middles)
{
    int64_t single = 0, pairs = 0, others = 0, differ = 0;
    struct expected_case opened;
    open_expected("mla_cache_quantise kv=v32 tokens=400 page_size=400 scale=f32", 0,
                  CACHE, &opened);
    count_codes(&opened, &single, &pairs, &others);
    ck_assert_int_gt(single, 400 * 512 * 9 / 10);
    ck_assert_int_gt(pairs, 20);
    ck_assert_int_eq(others, 0);
    for (int i = 0; i < 656 * 400; i++)
        differ += fabs(((uint8_t *)opened.tensors.item[CACHE].data)[i] -
                       opened.value[i]) == 0.5;
    ck_assert_int_ge(differ, pairs);
    close_expected(&opened);
}
END_TEST

/* Division by an exact scale leaves one byte; two roundings leave several. */
START_TEST(fp4_bytes_are_single_unless_the_payload_is_multiplied)
{
    int64_t outside = 0, differ = 0;
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++) {
        if (kind == ASSAY_DATA_CANCEL) continue;
        char text[160];
        snprintf(text, sizeof(text), "mla_cache_quantise kv=v41_fp4 tokens=90 data=%s",
                 assay_data_kinds[kind].name);
        struct assay_result result = result_of(text, "payload=times-inverse", NULL);
        ck_assert(kind == ASSAY_DATA_EXACT || result.model_max_error_over_bound == 0);
        ck_assert_int_eq(result.output[0].outside, result.output[0].differ);
        outside += result.output[0].outside;
        assay_result_close(&result);
        strcat(text, " as=payload=times-inverse");
        result = result_of(text, "flashmla-quant", NULL);
        ck_assert_int_eq(result.output[0].outside, 0);
        differ += result.output[0].differ;
        assay_result_close(&result);
    }
    ck_assert_int_gt(outside, 20);
    ck_assert_int_eq(outside, differ);
}
END_TEST

START_TEST(bound_holds_for_every_way_to_divide)
{
    static const char *const numerics[] = { "reciprocal=1", "payload=times-inverse",
                                            "reciprocal=1,payload=times-inverse" };
    int64_t differ = 0;
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++)
        for (int i = 0; i < 15 && kind != ASSAY_DATA_CANCEL; i++) {
            char text[200];
            snprintf(text, sizeof(text),
                     "mla_cache_quantise kv=%s tokens=30 data=%s seed=%d as=%s",
                     layouts[i % 5], assay_data_kinds[kind].name, i, numerics[i / 5]);
            struct assay_result result = result_of(text, "flashmla-quant", NULL);
            ck_assert_msg(result.output[0].outside == 0, "%s", text);
            ck_assert_msg(result.verdict != ASSAY_CONTRADICTION, "%s", text);
            differ += result.output[0].differ;
            assay_result_close(&result);
        }
    ck_assert_int_gt(differ, 0);
}
END_TEST

START_TEST(exact_data_never_rounds)
{
    static const char *const numerics[] = { "", "reciprocal=1", "payload=times-inverse",
                                            "floor=amax" };
    for (int i = 0; i < 20; i++) {
        char text[128];
        snprintf(text, sizeof(text), "mla_cache_quantise kv=%s tokens=70 data=exact",
                 layouts[i % 5]);
        struct assay_result result = result_of(text, numerics[i / 5], NULL);
        ck_assert_int_eq(result.output[0].differ + result.output[0].inexact, 0);
        ck_assert(result.output[0].has_exact && result.model_inexact == 0);
        ck_assert(result.output[0].max_error_over_bound == 0);
        assay_result_close(&result);
    }
}
END_TEST

/* --- wrong caches ----------------------------------------------------------------- */

static int64_t changed_byte;
static int changed_by;

static void change_byte(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const cache = assay_tensors_find(tensors, "k_cache");
    assay_tensor_set_bits(cache, changed_byte,
                          assay_tensor_bits(cache, changed_byte) ^ (uint32_t)changed_by);
}

/* A code, a scale, an element in bf16, and their places. */
START_TEST(a_byte_that_is_one_off_is_outside)
{
    static const struct {
        const char *kv;
        int byte, by;
        const char *place;
    } rows[] = {
        { "v32", 656 * 65 + 17, 1, "page 1, slot 1, code 17" },
        { "v32", 656 * 2 + 512 + 7, 0x80, "page 0, slot 2, scale 1" },
        { "v32", 656 + 655, 1, "page 0, slot 1, bf16 element 63" },
        { "v32 scale=f32", 656 * 2 + 512 + 4, 8, "page 0, slot 2, scale 1" },
        { "model1", 576 * 3 + 447, 1, "page 0, slot 3, code 447" },
        { "model1", 576 * 64 + 8 * 5 + 6, 1, "page 0, slot 5, scale 6" },
        { "model1", 576 + 448, 2, "page 0, slot 1, bf16 element 0" },
        { "v41_fp8", 528 * 4 + 511, 0x80, "page 0, slot 4, code 511" },
        { "v41_fp8", 528 * 4 + 527, 1, "page 0, slot 4, scale 15" },
        { "v41_fp4", 288 * 7 + 255, 1, "page 0, slot 7, code 510" },
        { "v41_fp4", 288 * 7 + 100, 16, "page 0, slot 7, code 200" },
        { "v41_fp4", 288 * 7 + 287, 1, "page 0, slot 7, scale 31" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[128];
        snprintf(text, sizeof(text), "mla_cache_quantise kv=%s tokens=70 page_padding=9",
                 rows[i].kv);
        changed_byte = rows[i].byte;
        changed_by = rows[i].by;
        struct assay_result result = result_of(text, "", change_byte);
        ck_assert_msg(result.verdict == ASSAY_OUTSIDE && result.output[0].outside == 1 &&
                          result.output[0].differ == 1,
                      "%s, byte %d", text, rows[i].byte);
        ck_assert_str_eq(result.output[0].worst.place.text, rows[i].place);
        assay_result_close(&result);
    }
}
END_TEST

/* Slots without a token and model1's pad byte. */
START_TEST(bytes_of_no_token_must_stay_as_they_are)
{
    static const struct {
        const char *kv;
        int byte;
        const char *place;
    } rows[] = {
        { "v32", 656 * 10, "page 0, slot 10, code 0" },
        { "model1", 576 * 64 + 8 * 3 + 7, "page 0, slot 3, padding" },
        { "model1", 576 * 64 + 8 * 10, "page 0, slot 10, scale 0" },
        { "v41_fp4", 288 * 63 + 287, "page 0, slot 63, scale 31" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[128];
        snprintf(text, sizeof(text), "mla_cache_quantise kv=%s tokens=10", rows[i].kv);
        changed_byte = rows[i].byte;
        changed_by = 0;
        struct assay_result result = result_of(text, "", change_byte);
        ck_assert_int_eq(result.verdict, ASSAY_EQUAL);
        assay_result_close(&result);
        changed_by = 1;
        result = result_of(text, "", change_byte);
        ck_assert_msg(result.verdict == ASSAY_OUTSIDE && result.output[0].differ == 1,
                      "%s", text);
        ck_assert_str_eq(result.output[0].worst.place.text, rows[i].place);
        assay_result_close(&result);
    }
}
END_TEST

/* transformers issue 47030: each token's payload by the scale before it was rounded. */
static void quantise_by_raw_scale(struct assay_mla_cache_tile *tile)
{
    assay_mla_cache_scale(tile);
    tile->divisor = fmaxf(tile->amax / 448.0f, 1e-4f);
}

static void requantise_by_raw_scale(const struct assay_tensors *tensors)
{
    const struct assay_mla_cache_problem problem = { ASSAY_MLA_V41_FP8, 20,   64,
                                                     528 * 64,          true, false };
    const struct assay_mla_cache_numerics raw = {
        .stage = { assay_mla_cache_amax, quantise_by_raw_scale, assay_mla_cache_payload }
    };
    assay_mla_cache_quantise_model(&problem, &raw, tensors, 0);
}

START_TEST(a_payload_by_the_raw_scale_is_outside)
{
    struct assay_result result =
        result_of("mla_cache_quantise kv=v41_fp8 tokens=20", "", requantise_by_raw_scale);
    ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
    ck_assert_int_gt(result.output[0].outside, 20 * 512 / 2);
    assay_result_close(&result);
}
END_TEST

START_TEST(knobs_change_bits_and_the_oracle_follows_what_they_mean)
{
    static const struct {
        const char *text, *knob;
    } rows[] = {
        { "mla_cache_quantise kv=v32 tokens=64 data=wide", "floor=amax" },
        { "mla_cache_quantise kv=v32 tokens=64 scale=f32 data=wide", "floor=amax" },
        { "mla_cache_quantise kv=v32 tokens=64 scale=f32", "reciprocal=1" },
        { "mla_cache_quantise kv=model1 tokens=64 data=special", "nan=ignored" },
        { "mla_cache_quantise kv=v41_fp4 tokens=64 data=special", "nan=ignored" },
        { "mla_cache_quantise kv=v41_fp4 tokens=64", "payload=times-inverse" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[160];
        struct assay_result result = result_of(rows[i].text, rows[i].knob, NULL);
        ck_assert_msg(result.output[0].differ > 0, "%s", rows[i].knob);
        assay_result_close(&result);
        snprintf(text, sizeof(text), "%s as=%s", rows[i].text, rows[i].knob);
        result = result_of(text, "", NULL);
        ck_assert_msg(result.verdict == ASSAY_BOUNDED, "%s", text);
        assay_result_close(&result);
    }
}
END_TEST

/* --- a page of upstream ----------------------------------------------------------- */

/* Keys that upstream's dequantiser made of a page, quantised again. Where a tile's
 * largest code is above 224, its scale and its codes must come back. */
START_TEST(a_page_of_upstream_comes_back)
{
    static uint8_t again[656 * 64];
    char path[512];
    struct assay_recording recording;
    struct assay_message message = { "" };
    struct assay_tensors tensors;
    _Alignas(16) char problem[ASSAY_MAX_PROBLEM_BYTES];
    snprintf(path, sizeof(path), "%s/recorded/flashmla_v32_page.safetensors.zst",
             corpus_folder());
    ck_assert_msg(assay_recording_open(&recording, path, &message) == ASSAY_RAN, "%s",
                  message.text);
    const struct assay_case *const the_case = &recording.cases[0];
    ck_assert(the_case->operation->bind(the_case, problem, &message) == ASSAY_RAN);
    the_case->operation->shape(problem, &tensors);
    ck_assert(assay_recording_bind(&recording, 0, &tensors, &message) == ASSAY_RAN);
    const uint8_t *const page = tensors.item[0].data;
    struct assay_tensors reversed = { .count = 2,
                                      .item = { tensors.item[1], tensors.item[0] } };
    reversed.item[X].name = "x";
    reversed.item[CACHE].data = again;
    const struct assay_operation *const quantise =
        assay_operation_find("mla_cache_quantise");
    ck_assert(quantise->model(problem, quantise->numerics[0].numerics, &reversed, 0) ==
              ASSAY_RAN);
    int tiles = 0;
    for (int token = 0; token < 64; token++)
        for (int i = 0; i < 4; i++) {
            const uint8_t *const codes = page + 656 * token + 128 * i;
            int largest = 0;
            for (int j = 0; j < 128; j++)
                largest = (codes[j] & 0x7F) > largest ? codes[j] & 0x7F : largest;
            if (largest <= 0x76 || largest == 0x7F) continue;
            tiles++;
            ck_assert_mem_eq(again + (codes - page), codes, 128);
            const int scale = 656 * token + 512 + 4 * i;
            ck_assert_mem_eq(again + scale, page + scale, 4);
        }
    for (int token = 0; token < 64; token++)
        ck_assert_mem_eq(again + 656 * token + 528, page + 656 * token + 528, 128);
    ck_assert_int_gt(tiles, 200);
    assay_recording_close(&recording);
}
END_TEST

/* --- cases ------------------------------------------------------------------------ */

START_TEST(random_cases_are_decisive_and_within_the_bound)
{
    expect_drawn_cases_to_pass("mla_cache_quantise", 200, 20000, 20000);
}
END_TEST

/* Generated inputs never change: frozen with data version 1. */
START_TEST(generated_inputs_are_the_same_everywhere)
{
    static const uint64_t frozen[ASSAY_GENERAL_DATA_KINDS][2] = {
        { 0x376327f202dc3ebe, 0xb3248059646c9706 },
        { 0x6d610e1917225cd5, 0xf150c4f5a8690857 },
        { 0xced42474172fa7b6, 0x7872c60dbf16c5c0 },
        { 0x6cfbf17b614d4e9e, 0xff02528f3212e49a },
        { 0, 0 },
        { 0x77ae58af6cace349, 0x2dbcc1f984bb95b0 },
        { 0xcbc5f8f7e9f25825, 0x9f7dcc33af0caf43 },
        { 0x8830732bc4bca0d8, 0xc08f463d459a36cd },
        { 0x5ceb3d8a0cb76c0f, 0x0719ed3e0ec0c5fb },
        { 0x46681651269a256e, 0x6f56f2e809cce524 },
        { 0x8fac6235d93f21a0, 0x55924e7392c5c259 },
        { 0xa759cb904d80f755, 0x331cef75758801ee }
    };
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++)
        for (int i = 0; i < 2 && kind != ASSAY_DATA_CANCEL; i++) {
            char text[128];
            struct expected_case opened;
            snprintf(text, sizeof(text),
                     "mla_cache_quantise kv=%s tokens=40 data=%s seed=7",
                     layouts[i ? 4 : 0], assay_data_kinds[kind].name);
            open_expected(text, 0, CACHE, &opened);
            const uint64_t hash = assay_inputs_hash(&opened.tensors);
            ck_assert_msg(hash == frozen[kind][i], "%s: 0x%016llx", text,
                          (unsigned long long)hash);
            close_expected(&opened);
        }
}
END_TEST

START_TEST(a_case_with_fewer_tokens_or_other_pages_keeps_its_values)
{
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++)
        for (int layout = 0; layout < 5 && kind != ASSAY_DATA_CANCEL; layout++) {
            struct expected_case opened[2];
            for (int i = 0; i < 2; i++) {
                char text[128];
                snprintf(text, sizeof(text),
                         "mla_cache_quantise kv=%s tokens=%d page_size=%d data=%s",
                         layouts[layout], i ? 5 : 33, i ? 7 : 40,
                         assay_data_kinds[kind].name);
                open_expected(text, 0, CACHE, &opened[i]);
            }
            const size_t bytes = (size_t)opened[1].tensors.item[X].shape[1] * 5 * 2;
            ck_assert_mem_eq(opened[0].tensors.item[X].data,
                             opened[1].tensors.item[X].data, bytes);
            close_expected(&opened[0]);
            close_expected(&opened[1]);
        }
}
END_TEST

START_TEST(what_makes_no_sense_is_refused_with_a_sentence)
{
    struct assay_case the_case =
        parsed("mla_cache_quantise kv=model1 tokens=4 scale=f32");
    _Alignas(16) char problem[ASSAY_MAX_PROBLEM_BYTES];
    struct assay_message message;
    ck_assert_int_eq(the_case.operation->bind(&the_case, problem, &message),
                     ASSAY_REFUSED);
    ck_assert_msg(strstr(message.text, "use kv=v32 or leave scale out"), "%s",
                  message.text);
    static const char *const lines[] = {
        "mla_cache_quantise kv=v32 tokens=0",
        "mla_cache_quantise kv=v32 tokens=1 page_size=0", "mla_cache_quantise tokens=1",
        "mla_cache_quantise kv=v32 tokens=1 data=cancel"
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        ck_assert_int_eq(assay_case_parse(lines[i], &the_case, &message), ASSAY_REFUSED);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        power_of_two_scales_and_their_codes_have_bound_0,
        bound_of_f32_scales_is_tight,
        codes_by_f32_scales_are_single_but_for_exact_middles,
        fp4_bytes_are_single_unless_the_payload_is_multiplied,
        bound_holds_for_every_way_to_divide,
        exact_data_never_rounds,
        a_byte_that_is_one_off_is_outside,
        bytes_of_no_token_must_stay_as_they_are,
        a_payload_by_the_raw_scale_is_outside,
        knobs_change_bits_and_the_oracle_follows_what_they_mean,
        a_page_of_upstream_comes_back,
        random_cases_are_decisive_and_within_the_bound,
        generated_inputs_are_the_same_everywhere,
        a_case_with_fewer_tokens_or_other_pages_keeps_its_values,
        what_makes_no_sense_is_refused_with_a_sentence,
        NULL,
    };
    return run_tests("mla_cache", tests);
}
