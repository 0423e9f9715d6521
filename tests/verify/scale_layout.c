/* SPDX-License-Identifier: MIT */
/* Tests of the operation scale_layout as a whole, and of the bound check on integers,
 * which its packed words are. */
#include "ref/layout/scale_layout.h"

#include "tests/harness.h"
#include "tests/verify/drawn_result.h"
#include "verify/check/trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct assay_case parsed(const char *text)
{
    struct assay_case the_case;
    struct assay_message message;
    ck_assert_msg(assay_case_parse(text, &the_case, &message) == ASSAY_RAN, "%s: %s",
                  text, message.text);
    return the_case;
}

static const struct assay_backend *model(void)
{
    for (int i = 0; assay_backends[i]; i++)
        if (strcmp(assay_backends[i]->scheme, "model") == 0) return assay_backends[i];
    ck_abort_msg("no backend model");
    return NULL;
}

/* A backend of the test: the model, then one bit of one element flipped. */
static int64_t flipped_element;
static uint32_t flipped_bit;

static enum assay_status claim(void *state, const struct assay_run_call *call,
                               struct assay_backend_claim *claim,
                               struct assay_message *message)
{
    (void)state, (void)call, (void)message;
    *claim = (struct assay_backend_claim){ .has_numerics = false };
    return ASSAY_RAN;
}

static enum assay_status run(void *state, const struct assay_run_call *call,
                             struct assay_message *message)
{
    const enum assay_status status = model()->run(state, call, message);
    const struct assay_tensor *const out = assay_tensors_find(call->tensors, "out");
    assay_tensor_set_bits(out, flipped_element,
                          assay_tensor_bits(out, flipped_element) ^ flipped_bit);
    return status;
}

static struct assay_result result_of(const char *text, const char *numerics,
                                     bool is_flipping)
{
    static char state[ASSAY_MAX_NUMERICS_TEXT];
    const struct assay_backend backend = { .scheme = "flipping",
                                           .claim = claim,
                                           .run = run };
    const struct assay_case the_case = parsed(text);
    const struct assay_trial_plan plan = {
        .candidate = is_flipping ? &backend : model(),
        .candidate_state = state,
        .uses_model = true,
        .uses_oracle = true,
        .checks = assay_checks,
    };
    struct assay_result result;
    snprintf(state, sizeof(state), "%s", numerics);
    assay_trial_run(&plan, &the_case, NULL, 0, &result);
    ck_assert_msg(result.status == ASSAY_RAN, "%s: %s", text, result.message.text);
    return result;
}

/* Integers are compared as unsigned: every bit counts, the sign of an int32 too. */
START_TEST(every_flipped_bit_of_a_packed_word_is_outside)
{
    static const char text[] = "scale_layout mn=7 k=1152 to=packed_ue8m0 data=wide";
    for (int bit = 0; bit < 32; bit++) {
        flipped_element = 13 + bit % 8;
        flipped_bit = 1u << bit;
        struct assay_result result = result_of(text, "", true);
        const struct assay_output_result *const out = &result.output[0];
        ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
        ck_assert_int_eq(out->outside, 1);
        ck_assert_int_eq(out->differ, 1);
        ck_assert_int_eq(out->bound_worst_index, flipped_element);
        ck_assert(out->bound_worst_bound == 0);
        ck_assert(out->bound_worst_value == (out->bound_worst_bits ^ flipped_bit));
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(untouched_words_are_equal_and_within_a_bound_of_0)
{
    flipped_element = 0;
    flipped_bit = 0;
    struct assay_result result = result_of(
        "scale_layout groups=3 mn=70 k=40000 to=packed_ue8m0 data=wide", "", true);
    ck_assert_int_eq(result.verdict, ASSAY_EQUAL);
    ck_assert(result.output[0].has_bound && result.output[0].has_bits);
    ck_assert(result.output[0].max_error_over_bound == 0);
    ck_assert(result.model_max_error_over_bound == 0);
    ck_assert_int_eq(result.output[0].unclaimed, 0);
    assay_result_close(&result);
}
END_TEST

START_TEST(every_flipped_bit_of_an_f32_scale_is_outside)
{
    for (int bit = 0; bit < 32; bit++) {
        flipped_element = 40;
        flipped_bit = 1u << bit;
        struct assay_result result = result_of("scale_layout mn=7 k=1152", "", true);
        ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
        ck_assert_int_eq(result.output[0].outside, 1);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(reversed_bytes_are_outside_unless_asked_for)
{
    struct assay_result result = result_of("scale_layout mn=5 k=512 to=packed_ue8m0",
                                           "byte_order=high-first", false);
    ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
    ck_assert_int_eq(result.output[0].differ, 5);
    assay_result_close(&result);
    result = result_of(
        "scale_layout mn=5 k=1152 from=packed_ue8m0 as=byte_order=high-first", "", false);
    ck_assert_int_eq(result.verdict, ASSAY_BOUNDED);
    assay_result_close(&result);
}
END_TEST

START_TEST(random_cases_are_decisive_and_within_the_bound)
{
    int conversions = 0, indecisive = 0;
    for (int i = 0; i < 300; i++) {
        struct assay_case the_case;
        char line[ASSAY_MAX_CASE_LINE];
        draw_case("scale_layout", 1, "case", i, i % 4 ? 30000 : 500000, &the_case, line);
        conversions |= 1 << (3 * assay_case_value(&the_case, "from") +
                             assay_case_value(&the_case, "to"));
        struct assay_result result = result_of(line, "", false);
        expect_drawn_result(&result, line, &indecisive);
        ck_assert(result.output[0].max_error_over_bound == 0);
        assay_result_close(&result);
    }
    ck_assert_int_le(indecisive, 30);
    ck_assert_int_eq(conversions, 0xEE); /* all but from a layout to itself */
}
END_TEST

START_TEST(illegal_combinations_are_refused_with_a_sentence)
{
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        { "scale_layout mn=4 k=64 to=k_major", "from and to are both k_major" },
        { "scale_layout mn=4 k=64 to=k_major unsafe=1", "from and to are both k_major" },
        { "scale_layout mn=4 k=64 gran_k=32", "need gran_k=128" },
        { "scale_layout mn=4 k=64 gran_mn=128", "use gran_mn=1, to=packed_ue8m0" },
        { "scale_layout mn=4 k=64 from=packed_ue8m0 gran_mn=128", "needs gran_mn=1" },
        { "scale_layout mn=4 k=64 data=ties", "data=ties says nothing about scales" },
        { "scale_layout mn=4 k=64 data=cancel", "says nothing about scales" },
        { "scale_layout mn=4 k=64 to=packed_ue8m0 data=special", "packer traps" },
        { "scale_layout mn=4 k=64 to=packed_ue8m0 data=subnormal", "packer traps" },
        { "scale_layout mn=4 k=64 to=packed_ue8m0 bits=sf.2.0:3f800001", "0x3f800001" },
        { "scale_layout mn=4 k=64 to=packed_ue8m0 bits=sf.2.0:bf800000", "0xbf800000" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct assay_case the_case = parsed(rows[i].text);
        _Alignas(max_align_t) char problem[ASSAY_MAX_PROBLEM_BYTES];
        struct assay_message message;
        ck_assert_msg(the_case.operation->bind(&the_case, problem, &message) ==
                          ASSAY_REFUSED,
                      "%s", rows[i].text);
        ck_assert_msg(strstr(message.text, rows[i].sentence), "%s", message.text);
    }
}
END_TEST

START_TEST(unsafe_lets_through_what_only_upstream_refuses)
{
    static const char *const texts[] = {
        "scale_layout mn=5 k=640 gran_k=32 unsafe=1",
        "scale_layout mn=300 k=640 gran_mn=128 unsafe=1",
        "scale_layout mn=64 k=640 to=packed_ue8m0 data=special unsafe=1",
        "scale_layout mn=64 k=640 to=packed_ue8m0 data=subnormal unsafe=1",
        "scale_layout mn=5 k=640 to=packed_ue8m0 bits=sf.2.0:bf800001 unsafe=1",
        "scale_layout mn=5 k=640 to=packed_ue8m0 bits=sf.2.0:40000000",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct assay_result result = result_of(texts[i], "", false);
        ck_assert_msg(result.has_passed, "%s", texts[i]);
        assay_result_close(&result);
    }
}
END_TEST

static struct assay_tensors filled(const char *text, struct assay_buffers *buffers)
{
    static union assay_problem_storage problem;
    const struct assay_case the_case = parsed(text);
    struct assay_message message;
    struct assay_tensors tensors;
    ck_assert(the_case.operation->bind(&the_case, &problem, &message) == ASSAY_RAN);
    the_case.operation->shape(&problem, &tensors);
    ck_assert(assay_buffers_open(buffers, &tensors, &message) == ASSAY_RAN);
    the_case.operation->fill(&problem, the_case.data, the_case.seed, &tensors);
    return tensors;
}

/* All layouts hold the same scales; a smaller case keeps what it shares. */
START_TEST(scales_depend_on_logical_coordinates_alone)
{
    static const char *const from[] = { "k_major", "mn_major", "packed_ue8m0" };
    struct assay_buffers buffers[4];
    struct assay_tensors tensors[4];
    for (int i = 0; i < 4; i++) {
        char text[160];
        snprintf(text, sizeof(text), "scale_layout groups=%d mn=%d k=%d from=%s to=%s",
                 i < 3 ? 3 : 2, i < 3 ? 70 : 5, i < 3 ? 1200 : 700, from[i % 3],
                 i % 3 == 1 ? "k_major" : "mn_major");
        tensors[i] = filled(text, &buffers[i]);
    }
    for (int64_t group = 0; group < 3; group++)
        for (int64_t row = 0; row < 70; row++)
            for (int64_t k = 0; k < 10; k++) {
                uint32_t scale[4];
                for (int i = 0; i < 3; i++)
                    scale[i] = assay_scale_load((enum assay_scale_layout)i,
                                                &tensors[i].item[0], group, row, k);
                ck_assert_uint_eq(scale[0], scale[1]);
                ck_assert_uint_eq(scale[0] >> 23, scale[2]);
                if (group >= 2 || row >= 5 || k >= 6) continue;
                scale[3] = assay_scale_load(ASSAY_SCALE_K_MAJOR, &tensors[3].item[0],
                                            group, row, k);
                ck_assert_uint_eq(scale[0], scale[3]);
            }
    for (int i = 0; i < 4; i++)
        assay_buffers_close(&buffers[i]);
}
END_TEST

START_TEST(padding_and_missing_blocks_of_inputs_hold_nan)
{
    struct assay_buffers buffers;
    const struct assay_tensors tensors =
        filled("scale_layout mn=5 k=1152 from=packed_ue8m0", &buffers);
    const uint32_t *const words = tensors.item[0].data;
    ck_assert_int_eq(assay_tensor_bytes(&tensors.item[0]), 3 * 8 * 4);
    for (int i = 0; i < 24; i++) {
        if (i % 8 >= 5)
            ck_assert_uint_eq(words[i], 0xFFFFFFFF);
        else
            ck_assert(words[i] != 0xFFFFFFFF);
        if (i >= 16) ck_assert_uint_eq(words[i] >> 8, 0xFFFFFF);
    }
    assay_buffers_close(&buffers);
}
END_TEST

/* Frozen with data version 1: generated inputs never change. */
START_TEST(generated_inputs_are_the_same_everywhere)
{
    static const uint64_t frozen[ASSAY_GENERAL_DATA_KINDS] = { 0xa2b42e97f7185483,
                                                               0x08bb9c497f81f70d,
                                                               0x42c40c4804ab662e,
                                                               0xd776402fe923c558,
                                                               0,
                                                               0xe7d20d4718cffd13,
                                                               0x645b7bdb1a9145c8,
                                                               0,
                                                               0x29dd79eb0fc6aa7e,
                                                               0x241a126d1a9c47bd,
                                                               0x885f600a79ceea44,
                                                               0x025dfbff1754fc1a };
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++) {
        if (kind == ASSAY_DATA_CANCEL || kind == ASSAY_DATA_TIES) continue;
        char text[128];
        struct assay_buffers buffers;
        snprintf(text, sizeof(text), "scale_layout groups=2 mn=70 k=1200 data=%s seed=7",
                 assay_data_kinds[kind].name);
        const struct assay_tensors tensors = filled(text, &buffers);
        const uint64_t hash = assay_inputs_hash(&tensors);
        ck_assert_msg(hash == frozen[kind], "data=%s: 0x%016llx",
                      assay_data_kinds[kind].name, (unsigned long long)hash);
        assay_buffers_close(&buffers);
    }
}
END_TEST

START_TEST(places_are_logical_coordinates)
{
    flipped_element = 2 * 9 * 7 + 3 * 7 + 5;
    flipped_bit = 1;
    struct assay_result result = result_of("scale_layout groups=3 mn=7 k=1152", "", true);
    ck_assert_str_eq(result.output[0].worst.place.text, "group 2, row 5, K block 3");
    assay_result_close(&result);
    flipped_element = 1 * 7 + 4;
    result = result_of("scale_layout mn=7 k=1152 to=packed_ue8m0", "", true);
    ck_assert_str_eq(result.output[0].worst.place.text, "group 0, row 4, K word 1");
    assay_result_close(&result);
    flipped_element = 4 * 9 + 8;
    result = result_of("scale_layout mn=7 k=1152 from=mn_major to=k_major", "", true);
    ck_assert_str_eq(result.output[0].worst.place.text, "group 0, row 4, K block 8");
    assay_result_close(&result);
}
END_TEST

START_TEST(one_repeated_word_is_constant_by_design)
{
    struct assay_result result =
        result_of("scale_layout mn=100 k=512 gran_mn=128 to=packed_ue8m0", "", false);
    ck_assert(result.output[0].is_constant && result.is_decisive);
    assay_result_close(&result);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_flipped_bit_of_a_packed_word_is_outside,
        untouched_words_are_equal_and_within_a_bound_of_0,
        every_flipped_bit_of_an_f32_scale_is_outside,
        reversed_bytes_are_outside_unless_asked_for,
        random_cases_are_decisive_and_within_the_bound,
        illegal_combinations_are_refused_with_a_sentence,
        unsafe_lets_through_what_only_upstream_refuses,
        scales_depend_on_logical_coordinates_alone,
        padding_and_missing_blocks_of_inputs_hold_nan,
        generated_inputs_are_the_same_everywhere,
        places_are_logical_coordinates,
        one_repeated_word_is_constant_by_design,
        NULL,
    };
    return run_tests("scale_layout", tests);
}
