/* SPDX-License-Identifier: MIT */
/* fp8_gemm_nt with recipe=mx: the model against a second reading of its rules, and that
 * the data are what they promise. */
#include "tests/verify/mx_rules.h"

/* --- the model ---------------------------------------------------------------------- */

enum result_class { ZERO, SUBNORMAL, NORMAL, INFINITE, NOT_A_NUMBER, CLASSES };
static int64_t seen[CLASSES];

static void count_class(double value)
{
    seen[isnan(value)             ? NOT_A_NUMBER
         : isinf(value)           ? INFINITE
         : value == 0             ? ZERO
         : fabs(value) < 0x1p-126 ? SUBNORMAL
                                  : NORMAL]++;
}

static void compare_with_the_rules(struct fixture *fixture)
{
    const struct assay_fp8_gemm_problem *const gemm = &fixture->problem.gemm;
    const struct assay_fp8_gemm_numerics *const numerics = &fixture->numerics;
    const struct assay_fp8_gemm_precision blackwell = { .align_bits = 25,
                                                        .result_bits = 23 };
    const bool is_descending = numerics->k_order == ASSAY_K_DESCENDING;
    const int64_t steps = (gemm->k + TERMS - 1) / TERMS;
    int64_t order[MOST_K], count = 0;
    for (int64_t i = 0; i < steps; i++)
        for (int64_t k = (is_descending ? steps - 1 - i : i) * TERMS, end = k + TERMS;
             k < end && k < gemm->k; k++)
            order[count++] = k;
    /* A short step is the last of ascending K only. */
    if (is_descending) ck_assert_int_eq(gemm->k % TERMS, 0);

    run_model(fixture);
    for (int64_t at = 0; at < gemm->m * gemm->n; at++) {
        const double value =
            chain(fixture, &blackwell, at / gemm->n, at % gemm->n, order);
        const uint32_t expected = converted(
            value, fixture->problem.out, numerics->out_rounding == ASSAY_OUT_TOWARD_ZERO);
        const uint32_t found = assay_tensor_bits(tensor_of(fixture, "d"), at);
        count_class(value);
        ck_assert_msg(found == expected, "element %d: %08x instead of %08x (%a)", (int)at,
                      found, expected, value);
    }
}

START_TEST(model_equals_the_rules_for_every_kind_of_data)
{
    char text[256];
    state = 1;
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < 240; i++) {
        static const char *const knobs[] = { "", " as=out_rounding=toward-zero",
                                             " as=blackwell-mx,k_order=descending" };
        struct fixture fixture;
        const int64_t k = i % 3 == 2 ? 32 * below(16) : 16 * below(30);
        drawn_case(text, sizeof text,
                   (enum assay_data_kind)(i % ASSAY_GENERAL_DATA_KINDS), k, knobs[i % 3]);
        open_fixture(&fixture, text);
        compare_with_the_rules(&fixture);
        close_fixture(&fixture);
    }
    for (int i = 0; i < CLASSES; i++)
        ck_assert_msg(seen[i] >= (i == INFINITE ? 5 : 20), "class %d: %d", i,
                      (int)seen[i]);
}
END_TEST

START_TEST(model_equals_the_rules_whatever_the_scales)
{
    static const int centres[][2] = { { 0, 0 }, { 40, 50 }, { 160, 190 }, { 1, 225 } };
    char text[256];
    state = 2;
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < 240; i++) {
        struct fixture fixture;
        drawn_case(text, sizeof text, i % 8 ? ASSAY_DATA_WIDE : ASSAY_DATA_SPECIAL,
                   16 * below(20), "");
        open_fixture(&fixture, text);
        fill_scales(&fixture, "sfa", centres[i % 4][0]);
        fill_scales(&fixture, "sfb", centres[i % 4][1]);
        compare_with_the_rules(&fixture);
        close_fixture(&fixture);
    }
    for (int i = 0; i < CLASSES; i++)
        ck_assert_msg(seen[i] >= 100, "class %d: %d", i, (int)seen[i]);
}
END_TEST

static void fill_words(const struct fixture *fixture, const char *name, uint32_t word)
{
    const struct assay_tensor *const scales = tensor_of(fixture, name);
    for (int64_t i = 0; i < assay_tensor_elements(scales); i++)
        assay_tensor_set_bits(scales, i, word);
}

START_TEST(scales_of_one_give_the_bits_of_an_unscaled_chain)
{
    static const enum assay_data_kind kinds[] = { ASSAY_DATA_NORMAL, ASSAY_DATA_WIDE,
                                                  ASSAY_DATA_CANCEL, ASSAY_DATA_SPECIAL };
    for (int i = 0; i < 16; i++) {
        char rest[128], text[256];
        struct fixture mx, plain;
        snprintf(rest, sizeof rest,
                 "m=70 n=72 k=528 out=f32 a_format=%s b_format=%s "
                 "data=%s",
                 formats[i % 2], formats[i / 2 % 2], assay_data_kinds[kinds[i / 4]].name);
        snprintf(text, sizeof text, "fp8_gemm_nt recipe=mx gran_k=%d %s",
                 i % 3 ? 32 : 128, rest);
        open_fixture(&mx, text);
        snprintf(text, sizeof text,
                 "fp8_gemm_nt recipe=tensor as=cublaslt-fast,unit=blackwell-fp8 %s",
                 rest);
        open_fixture(&plain, text);
        fill_words(&mx, "sfa", 0x7f7f7f7f);
        fill_words(&mx, "sfb", 0x7f7f7f7f);
        fill_words(&plain, "sfa", 0x3f800000);
        fill_words(&plain, "sfb", 0x3f800000);
        run_model(&mx);
        run_model(&plain);
        ck_assert_uint_eq(assay_tensor_hash(tensor_of(&mx, "a")),
                          assay_tensor_hash(tensor_of(&plain, "a")));
        for (int64_t at = 0; at < 70 * 72; at++)
            ck_assert_uint_eq(assay_tensor_bits(tensor_of(&mx, "d"), at),
                              assay_tensor_bits(tensor_of(&plain, "d"), at));
        close_fixture(&mx);
        close_fixture(&plain);
    }
}
END_TEST

/* --- data, knobs, layout ------------------------------------------------------------ */

START_TEST(ties_tell_roundings_apart_in_every_mix_of_formats)
{
    for (int i = 0; i < 9; i++) {
        char text[256];
        snprintf(
            text, sizeof text,
            "fp8_gemm_nt m=64 n=64 k=256 recipe=mx data=ties a_format=%s b_format=%s",
            formats[i % 3], formats[i / 3]);
        struct assay_result result = result_of(text, "out_rounding=toward-zero");
        const struct assay_output_result *const d = &result.output[0];
        ck_assert_int_ge(d->differ, 64 * 64 / 4);
        ck_assert_int_le(d->differ, 64 * 64 * 3 / 4);
        ck_assert_int_eq((int64_t)d->max_ulps, 1);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(knobs_that_apply_change_bits)
{
    static const char text[] = "fp8_gemm_nt m=64 n=64 k=1024 recipe=mx out=f32 gran_k=32";
    static const char *const knobs[] = { "align_bits=24", "align_bits=13",
                                         "result_bits=22", "k_order=descending" };
    for (size_t i = 0; i < sizeof(knobs) / sizeof(knobs[0]); i++) {
        struct assay_result result = result_of(text, knobs[i]);
        ck_assert_msg(result.output[0].differ > 0, "%s", knobs[i]);
        assay_result_close(&result);
    }
    struct assay_result result = result_of(text, "promote_k=never,align_bits=25");
    ck_assert_int_eq(result.output[0].differ, 0);
    assay_result_close(&result);
}
END_TEST

static unsigned scale_byte(const struct fixture *fixture, const char *name, int64_t row,
                           int64_t group)
{
    const struct assay_tensor *const scales = tensor_of(fixture, name);
    return assay_tensor_bits(scales, group / 4 * scales->shape[1] + row) >>
               group % 4 * 8 &
           0xff;
}

START_TEST(packed_scales_have_upstream_s_shape_and_no_stray_bytes)
{
    struct fixture fixture;
    open_fixture(&fixture, "fp8_gemm_nt m=5 n=8 k=208 recipe=mx gran_k=32 seed=4");
    const struct assay_tensor *const sfa = tensor_of(&fixture, "sfa");
    ck_assert(sfa->format == ASSAY_I32 && sfa->shape[0] == 2 && sfa->shape[1] == 5 &&
              sfa->stride[0] == 8 && sfa->stride[1] == 1);
    for (int64_t row = 0; row < 5; row++)
        for (int64_t group = 0; group < 8; group++)
            ck_assert_msg((scale_byte(&fixture, "sfa", row, group) == 0) == (group == 7),
                          "row %d, group %d", (int)row, (int)group);
    close_fixture(&fixture);
}
END_TEST

START_TEST(a_smaller_case_keeps_the_values_it_shares)
{
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++) {
        struct fixture fixture[2];
        for (int i = 0; i < 2; i++) {
            char text[256];
            snprintf(text, sizeof text,
                     "fp8_gemm_nt m=%d n=%d k=%d recipe=mx gran_k=32 a_format=e2m1 "
                     "data=%s seed=7",
                     i ? 5 : 33, i ? 16 : 40, i ? 80 : 400, assay_data_kinds[kind].name);
            open_fixture(&fixture[i], text);
        }
        for (int64_t row = 0; row < 5; row++) {
            for (int64_t k = 0; k < 80; k++)
                ck_assert_uint_eq(
                    assay_tensor_bits(tensor_of(&fixture[1], "a"), row * 80 + k),
                    assay_tensor_bits(tensor_of(&fixture[0], "a"), row * 400 + k));
            for (int64_t group = 0; group < 3; group++)
                ck_assert_uint_eq(scale_byte(&fixture[1], "sfb", row, group),
                                  scale_byte(&fixture[0], "sfb", row, group));
        }
        close_fixture(&fixture[0]);
        close_fixture(&fixture[1]);
    }
}
END_TEST

/* Frozen with data version 1: generated inputs never change. */
START_TEST(generated_inputs_are_the_same_everywhere)
{
    static const uint64_t frozen[ASSAY_GENERAL_DATA_KINDS] = {
        0x753a66c2d9e648e6, 0xa359b01a5d394be1, 0x8af4d9cc56046cbb, 0xdee7eb00268a34fb,
        0xd99654e7f0b48d35, 0x0243136d7c213db9, 0xe935ea48e042911e, 0x106c3f2e6edf3463,
        0x19e76b9ddd06a505, 0x6176fc3b6e9e7562, 0xaa291853589daa09, 0xa724e190aba3f3a2,
    };
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++) {
        char text[256];
        struct fixture fixture;
        snprintf(text, sizeof text,
                 "fp8_gemm_nt m=33 n=40 k=400 recipe=mx gran_k=32 b_format=e2m1 data=%s "
                 "seed=7",
                 assay_data_kinds[kind].name);
        open_fixture(&fixture, text);
        ck_assert_msg(assay_inputs_hash(&fixture.tensors) == frozen[kind],
                      "data=%s: 0x%016llx", assay_data_kinds[kind].name,
                      (unsigned long long)assay_inputs_hash(&fixture.tensors));
        close_fixture(&fixture);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        model_equals_the_rules_for_every_kind_of_data,
        model_equals_the_rules_whatever_the_scales,
        scales_of_one_give_the_bits_of_an_unscaled_chain,
        ties_tell_roundings_apart_in_every_mix_of_formats,
        knobs_that_apply_change_bits,
        packed_scales_have_upstream_s_shape_and_no_stray_bytes,
        a_smaller_case_keeps_the_values_it_shares,
        generated_inputs_are_the_same_everywhere,
        NULL,
    };
    return run_tests("fp8_gemm_mx", tests);
}
