/* SPDX-License-Identifier: MIT */
/* Tests of the operation quantise as a whole: the bound against the model and against
 * outputs that are wrong on purpose, the data kinds, what is refused. */
#include "ref/format/minifloat.h"
#include "tests/harness.h"
#include "tests/verify/drawn_cases.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { Q, SF, OUTPUTS };

/* The floors are more than half of what the model reaches, so that doubling the bound
 * fails here. Payloads reach it: where one code is possible it is its distance. */
START_TEST(bound_is_tight)
{
    static const struct {
        const char *text;
        double q, sf;
    } rows[] = {
        { "quantise m=200 k=600", 0.95, 0.3 },
        { "quantise m=200 k=600 x_format=f32", 0.95, 0.3 },
        { "quantise m=200 k=600 data=wide", 0.95, 0.3 },
        { "quantise m=700 k=600 granularity=block", 0.95, 0.2 },
        { "quantise m=200 k=600 as=deepgemm-reciprocal", 0.95, 0.6 },
        { "quantise m=200 k=600 scale=ue8m0", 0.95, 0 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct assay_result result = result_of(rows[i].text, "", NULL);
        const double q = result.output[Q].max_error_over_bound;
        const double sf = result.output[SF].max_error_over_bound;
        ck_assert_msg(q >= rows[i].q && q <= 1, "%s: q %g", rows[i].text, q);
        ck_assert_msg(sf >= rows[i].sf && sf <= 2 * rows[i].sf, "%s: sf %g", rows[i].text,
                      sf);
        ck_assert_int_eq(result.output[Q].unclaimed + result.output[SF].unclaimed, 0);
        assay_result_close(&result);
    }
}
END_TEST

/* Other ways to round the same function may differ in bits, never beyond the bound. */
START_TEST(bound_holds_for_every_way_to_divide)
{
    static const char *const numerics[] = { "reciprocal=1", "payload=divided",
                                            "reciprocal=1,payload=divided", "ceil=cuda" };
    int64_t differ = 0;
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++)
        for (int i = 0; i < 8 && kind != ASSAY_DATA_CANCEL; i++) {
            char text[128];
            snprintf(text, sizeof(text), "quantise m=40 k=400 data=%s%s%s seed=%d",
                     assay_data_kinds[kind].name, i & 1 ? " x_format=f32" : "",
                     i & 2 ? " granularity=block gran_k=32" : "", i);
            struct assay_result result = result_of(text, numerics[(kind + i) % 4], NULL);
            for (int output = 0; output < OUTPUTS; output++) {
                ck_assert_msg(result.output[output].outside == 0, "%s", text);
                differ += result.output[output].differ;
            }
            assay_result_close(&result);
        }
    ck_assert_int_gt(differ, 0);
}
END_TEST

/* Puts x next to the middle of two codes, @ulps from the nearest f32. */
static void fill_next_to_ties(const struct assay_tensor *x, int ulps)
{
    struct assay_stream stream;
    assay_stream_open(&stream, 1, "x", "next to ties", 0);
    float *const values = x->data;
    for (int64_t i = 0; i < x->shape[0]; i++) {
        const double amax = 1 + assay_stream_unit(&stream);
        const float largest = (float)amax;
        for (int64_t k = 0; k < x->shape[1]; k++) {
            const int tie = 17 + 2 * (int)(assay_stream_next(&stream) % 6);
            const double middle = tie * 16 * (double)largest / 448;
            uint32_t bits;
            values[i * x->stride[0] + k] = k ? (float)middle : largest;
            memcpy(&bits, &values[i * x->stride[0] + k], sizeof(bits));
            bits += k == 0 ? 0 : k % 2 ? (uint32_t)ulps : (uint32_t)-ulps;
            memcpy(&values[i * x->stride[0] + k], &bits, sizeof(bits));
        }
    }
}

struct next_to_ties {
    int64_t elements, model_outside, unlike_oracle, neighbours_outside;
};

/* What the bound says about the model's codes and about those beyond the tie. */
static struct next_to_ties judged_next_to_ties(int ulps)
{
    static double value[OUTPUTS + 1][128 * 128], bound[OUTPUTS + 1][128 * 128];
    static union assay_problem_storage problem;
    const struct assay_case the_case = parsed("quantise m=128 k=128 x_format=f32");
    const struct assay_operation *const operation = the_case.operation;
    const void *const numerics = operation->numerics[0].numerics;
    const struct assay_minifloat *const e4m3 = assay_minifloat(ASSAY_E4M3);
    struct assay_expected expected[OUTPUTS + 1];
    struct assay_message message;
    struct assay_buffers buffers;
    struct assay_tensors tensors;
    struct next_to_ties result = { 0 };
    ck_assert(operation->bind(&the_case, &problem, &message) == ASSAY_RAN);
    operation->shape(&problem, &tensors);
    ck_assert(assay_buffers_open(&buffers, &tensors, &message) == ASSAY_RAN);
    fill_next_to_ties(&tensors.item[0], ulps);
    for (int i = 0; i <= OUTPUTS; i++)
        expected[i] = (struct assay_expected){ value[i], bound[i] };
    ck_assert_int_eq(operation->parts(&problem), 1);
    ck_assert(operation->model(&problem, numerics, &tensors, 0) == ASSAY_RAN);
    ck_assert(operation->oracle(&problem, numerics, &tensors, 0, expected) == ASSAY_RAN);
    for (int64_t i = 0; i < 128 * 128; i++) {
        if (i % 128 == 0) continue;
        const uint32_t code = assay_tensor_bits(&tensors.item[1], i);
        const double v = value[1][i], limit = bound[1][i];
        const double q = assay_minifloat_decode(e4m3, code);
        const uint32_t own = assay_minifloat_encode(e4m3, v, ASSAY_OVERFLOW_SATURATES);
        const uint32_t beyond = assay_minifloat_decode(e4m3, own) < v ? own + 1 : own - 1;
        result.elements++;
        result.model_outside += fabs(q - v) > limit;
        result.unlike_oracle += code != own;
        result.neighbours_outside +=
            fabs(assay_minifloat_decode(e4m3, beyond) - v) > limit;
    }
    assay_buffers_close(&buffers);
    return result;
}

/* Up to 1.5 f32 units from a tie four roundings decide, and both codes are within the
 * bound; 10 units away they cannot, and only one is. */
START_TEST(bound_allows_what_four_roundings_can_do_next_to_a_tie_and_no_more)
{
    const struct next_to_ties near = judged_next_to_ties(0);
    const struct next_to_ties far = judged_next_to_ties(10);
    ck_assert_int_eq(near.model_outside + far.model_outside, 0);
    ck_assert_int_gt(near.unlike_oracle, near.elements / 20);
    ck_assert_int_eq(near.neighbours_outside, 0);
    ck_assert_int_eq(judged_next_to_ties(1).neighbours_outside, 0);
    ck_assert_int_eq(far.unlike_oracle, 0);
    ck_assert_int_eq(far.neighbours_outside, far.elements);
}
END_TEST

/* Powers of two, exact payloads: any way to divide gives the oracle's values. */
START_TEST(exact_data_never_rounds)
{
    static const char *const numerics[] = { "", "reciprocal=1", "payload=divided",
                                            "ceil=cuda" };
    for (int i = 0; i < 4; i++)
        for (int is_block = 0; is_block < 2; is_block++) {
            char text[128];
            snprintf(text, sizeof(text), "quantise m=150 k=300 data=exact%s%s",
                     is_block ? " granularity=block" : "", i & 1 ? " scale=ue8m0" : "");
            struct assay_result result = result_of(text, numerics[i], NULL);
            for (int output = 0; output < OUTPUTS; output++) {
                ck_assert(result.output[output].max_error_over_bound == 0);
                ck_assert(result.output[output].bound_worst_bound == 0);
                ck_assert(!result.output[output].is_constant);
                ck_assert_int_eq(result.output[output].differ, 0);
            }
            assay_result_close(&result);
        }
}
END_TEST

static void change_q(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const q = assay_tensors_find(tensors, "q");
    assay_tensor_set_bits(q, 77, assay_tensor_bits(q, 77) ^ 1);
}

static void change_sf(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const sf = assay_tensors_find(tensors, "sf");
    assay_tensor_set_bits(sf, 3, assay_tensor_bits(sf, 3) + 4);
}

static void double_sf(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const sf = assay_tensors_find(tensors, "sf");
    assay_tensor_set_bits(sf, 3, assay_tensor_bits(sf, 3) + (1 << 23));
}

static void round_half_away(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const q = assay_tensors_find(tensors, "q");
    for (int64_t i = 0; i < assay_tensor_elements(q); i++)
        if (i % 32) assay_tensor_set_bits(q, i, assay_tensor_bits(q, i) | 1);
}

START_TEST(a_neighbouring_code_or_scale_is_outside)
{
    static const struct {
        const char *text;
        void (*how)(const struct assay_tensors *tensors);
        int output;
    } rows[] = {
        { "quantise m=4 k=256 data=uniform", change_q, Q },
        { "quantise m=4 k=256 scale=ue8m0", change_q, Q },
        { "quantise m=4 k=256", change_sf, SF },
        { "quantise m=4 k=256 scale=ue8m0", double_sf, SF },
        { "quantise m=4 k=256 data=exact", change_sf, SF },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct assay_result result = result_of(rows[i].text, "", rows[i].how);
        ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
        ck_assert_int_eq(result.output[rows[i].output].outside, 1);
        ck_assert_int_eq(result.output[!rows[i].output].outside, 0);
        assay_result_close(&result);
    }
}
END_TEST

/* Half of all ties go down to the even code. Both neighbours are as near, so that only
 * bits tell. */
START_TEST(ties_tell_roundings_apart)
{
    struct assay_result result =
        result_of("quantise m=64 k=256 data=ties", "", round_half_away);
    const struct assay_output_result *const q = &result.output[Q];
    ck_assert_int_ge(q->differ, q->elements / 3);
    ck_assert_int_eq(result.output[SF].differ, 0);
    assay_result_close(&result);
}
END_TEST

/* transformers issue 47030: the sum of every block comes out up to twice too large. */
START_TEST(a_payload_by_the_raw_scale_is_outside)
{
    struct assay_result result =
        result_of("quantise m=20 k=256 scale=ue8m0", "order=raw-scale", NULL);
    ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
    ck_assert_int_eq(result.output[SF].differ, 0);
    ck_assert_int_gt(result.output[Q].outside, 20 * 256 / 2);
    assay_result_close(&result);

    result = result_of("quantise m=20 k=256 scale=ue8m0 as=order=raw-scale", "", NULL);
    ck_assert_int_eq(result.verdict, ASSAY_BOUNDED);
    assay_result_close(&result);
}
END_TEST

/* Where they mean something else the oracle follows; no contradiction. */
START_TEST(knobs_change_bits_and_the_oracle_follows_what_they_mean)
{
    static const struct {
        const char *text, *knob;
    } rows[] = {
        { "quantise m=64 k=256", "reciprocal=1" },
        { "quantise m=64 k=1024", "payload=divided" },
        { "quantise m=64 k=256 data=special", "nan=ignored" },
        { "quantise m=64 k=256 data=special scale=ue8m0", "ceil=cuda" },
        { "quantise m=256 k=256 data=special scale=ue8m0", "overflow=nan" },
        { "quantise m=64 k=256 scale=ue8m0", "order=raw-scale" },
        { "quantise m=4 k=256 data=ties seed=2", "ties=away" },
        { "quantise m=64 k=1024 data=wide", "zero=unsigned" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[160];
        struct assay_result result = result_of(rows[i].text, rows[i].knob, NULL);
        ck_assert_msg(result.output[Q].differ + result.output[SF].differ > 0, "%s",
                      rows[i].knob);
        assay_result_close(&result);
        snprintf(text, sizeof(text), "%s as=%s", rows[i].text, rows[i].knob);
        result = result_of(text, "", NULL);
        ck_assert_msg(result.verdict == ASSAY_BOUNDED, "%s", text);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(random_cases_are_decisive_and_within_the_bound)
{
    expect_drawn_cases_to_pass("quantise", 300, 100000, 2e6);
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

START_TEST(a_smaller_case_keeps_the_values_it_shares)
{
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++) {
        if (kind == ASSAY_DATA_CANCEL) continue;
        struct assay_buffers buffers[2];
        struct assay_tensors tensors[2];
        for (int i = 0; i < 2; i++) {
            char text[128];
            snprintf(text, sizeof(text), "quantise m=%d k=%d data=%s x_stride=%d",
                     i ? 5 : 133, i ? 130 : 300, assay_data_kinds[kind].name,
                     i ? 131 : 0);
            tensors[i] = filled(text, &buffers[i]);
        }
        for (int64_t at = 0; at < 5 * 130; at++)
            ck_assert_uint_eq(
                assay_tensor_bits(&tensors[1].item[0], at),
                assay_tensor_bits(&tensors[0].item[0], at / 130 * 300 + at % 130));
        assay_buffers_close(&buffers[0]);
        assay_buffers_close(&buffers[1]);
    }
}
END_TEST

/* Frozen with data version 1: generated inputs never change. */
START_TEST(generated_inputs_are_the_same_everywhere)
{
    static const uint64_t frozen[ASSAY_GENERAL_DATA_KINDS] = { 0xa26be065f0975fad,
                                                               0xb477905064f4373f,
                                                               0x2afad8f57c6090e8,
                                                               0x56b4623e743a688e,
                                                               0,
                                                               0x9d3e4d17bffad546,
                                                               0x319d967ded4a2152,
                                                               0x6d250e8c62fc0f6b,
                                                               0x5cf1c92ad006f2e3,
                                                               0x7f93ba669a1fd7c1,
                                                               0xe401aa2dfb94296d,
                                                               0xd4a22f633563ec27 };
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++) {
        if (kind == ASSAY_DATA_CANCEL) continue;
        char text[128];
        struct assay_buffers buffers;
        snprintf(text, sizeof(text), "quantise m=133 k=300 data=%s seed=7",
                 assay_data_kinds[kind].name);
        const struct assay_tensors tensors = filled(text, &buffers);
        const uint64_t hash = assay_inputs_hash(&tensors);
        ck_assert_msg(hash == frozen[kind], "data=%s: 0x%016llx",
                      assay_data_kinds[kind].name, (unsigned long long)hash);
        assay_buffers_close(&buffers);
    }
}
END_TEST

START_TEST(what_makes_no_sense_is_refused_with_a_sentence)
{
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        { "quantise m=4 k=64 data=cancel", "quantise forms none" },
        { "quantise m=4 k=64 x_stride=63", "x_stride=63 is shorter than a row" },
        { "quantise m=4 k=64 q_stride=1", "must be 0 or at least 64" },
        { "quantise m=4 k=64 as=order=raw-scale", "use scale=ue8m0" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static char no_numerics[] = "";
        const struct assay_case the_case = parsed(rows[i].text);
        const struct assay_trial_plan plan = { .candidate = model(),
                                               .candidate_state = no_numerics,
                                               .uses_model = true,
                                               .checks = assay_checks };
        struct assay_result result;
        assay_trial_run(&plan, &the_case, NULL, 0, &result);
        ck_assert_int_eq(result.status, ASSAY_REFUSED);
        ck_assert_msg(strstr(result.message.text, rows[i].sentence), "%s",
                      result.message.text);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(places_name_the_scale_of_an_element)
{
    struct assay_result result = result_of("quantise m=4 k=256", "", change_q);
    ck_assert_str_eq(result.output[Q].worst.place.text, "scale 0,0");
    assay_result_close(&result);
    result = result_of("quantise m=4 k=256", "", change_sf);
    ck_assert_str_eq(result.output[SF].worst.place.text, "scale 1,1");
    assay_result_close(&result);
    result = result_of("quantise m=33 k=70 granularity=block gran_k=32", "", change_q);
    ck_assert_str_eq(result.output[Q].worst.place.text, "scale 0,0");
    assay_result_close(&result);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        bound_is_tight,
        bound_holds_for_every_way_to_divide,
        bound_allows_what_four_roundings_can_do_next_to_a_tie_and_no_more,
        exact_data_never_rounds,
        a_neighbouring_code_or_scale_is_outside,
        ties_tell_roundings_apart,
        a_payload_by_the_raw_scale_is_outside,
        knobs_change_bits_and_the_oracle_follows_what_they_mean,
        random_cases_are_decisive_and_within_the_bound,
        a_smaller_case_keeps_the_values_it_shares,
        generated_inputs_are_the_same_everywhere,
        what_makes_no_sense_is_refused_with_a_sentence,
        places_name_the_scale_of_an_element,
        NULL,
    };
    return run_tests("quantise", tests);
}
