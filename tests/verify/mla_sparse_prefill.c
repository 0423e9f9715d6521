/* SPDX-License-Identifier: MIT */
/* Tests of the operation mla_sparse_prefill as a whole: its inputs, what it refuses, the
 * bound against the model, results without rounding. */
#include "verify/operation/mla_sparse_prefill/mla_sparse_prefill.h"

#include "ref/format/minifloat.h"
#include "tests/harness.h"
#include "tests/verify/drawn_cases.h"
#include "tests/verify/judged_case.h"
#include "tests/verify/shaped_case.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

enum { OUT, MAX_LOGITS, LSE, OUTPUTS, KINDS = ASSAY_DATA_NEEDLE + 1 };

/* --- inputs ----------------------------------------------------------------------- */

static const struct assay_tensor *named(const struct assay_tensors *tensors,
                                        const char *name)
{
    const struct assay_tensor *const tensor = assay_tensors_find(tensors, name);
    ck_assert_msg(tensor, "%s", name);
    return tensor;
}

static struct assay_tensors generated(const char *text, struct assay_buffers *buffers)
{
    struct assay_tensors tensors;
    const struct assay_case the_case = parsed(text);
    generate_case(&the_case, &tensors, buffers);
    return tensors;
}

START_TEST(tensors_are_those_the_case_asks_for)
{
    static const struct {
        const char *rest, *names;
    } rows[] = {
        { "", "q kv indices out max_logits lse " },
        { "sink=1", "q kv indices attn_sink out max_logits lse " },
        { "topk_length=5", "q kv indices topk_length out max_logits lse " },
        { "topk_length=5,6 sink=1",
          "q kv indices topk_length attn_sink out max_logits lse " },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[160], names[160] = "";
        struct assay_tensors tensors;
        snprintf(text, sizeof(text), "mla_sparse_prefill s_q=2 s_kv=9 topk=128 %s",
                 rows[i].rest);
        const struct assay_case the_case = parsed(text);
        shape_case(&the_case, &tensors);
        for (int at = 0; at < tensors.count; at++) {
            strcat(names, tensors.item[at].name);
            strcat(names, " ");
            ck_assert_int_eq(tensors.item[at].is_output, at >= tensors.count - 3);
        }
        ck_assert_str_eq(names, rows[i].names);
    }
}
END_TEST

/* All seven kinds of index that no key has, about as many as asked for; keys that nobody
 * attends to are NaN, attended ones are not. */
START_TEST(indices_outside_and_keys_unattended_are_traps)
{
    static const int32_t outside[] = { INT_MIN, -123456,    -1,     200,
                                       114514,  2147480000, INT_MAX };
    struct assay_buffers buffers;
    const struct assay_tensors tensors =
        generated("mla_sparse_prefill s_q=20 h_q=64 s_kv=200 d_qk=512 topk=256 "
                  "invalid=0.4 topk_length=3 kv_stride=528 seed=4",
                  &buffers);
    const int32_t *const indices = named(&tensors, "indices")->data;
    const uint16_t *const kv = named(&tensors, "kv")->data;
    bool is_attended[200] = { false };
    int seen[7] = { 0 }, others = 0, lonely = 0, repeated = 0;
    for (int64_t token = 0; token < 20; token++) {
        int inside = 0, uses[200] = { 0 };
        ck_assert_uint_eq(assay_tensor_bits(named(&tensors, "topk_length"), token), 3);
        for (int64_t position = 0; position < 256; position++) {
            const int32_t index = indices[token * 256 + position];
            int which = 0;
            while (which < 7 && outside[which] != index)
                which++;
            if (which < 7) {
                seen[which]++;
                continue;
            }
            ck_assert(index >= 0 && index < 200);
            inside++;
            repeated += uses[index]++ > 0;
            if (position < 3) is_attended[index] = true;
        }
        ck_assert(token > 0 || inside > 0);
        lonely += inside == 0;
        others += inside;
    }
    for (int i = 0; i < 7; i++)
        ck_assert_int_gt(seen[i], 100);
    ck_assert(others > 1800 && others < 3300);
    ck_assert(lonely > 0 && lonely < 8);
    ck_assert_int_gt(repeated, 100);
    int attended = 0;
    for (int64_t token = 0; token < 200; token++) {
        attended += is_attended[token];
        for (int64_t i = 0; i < 528; i++)
            ck_assert_int_eq(kv[token * 528 + i] == 0xFFFF,
                             !is_attended[token] || i >= 512);
    }
    ck_assert(attended > 10 && attended < 60);
    assay_buffers_close(&buffers);
}
END_TEST

/* 114514 and the like may be keys. */
START_TEST(an_index_outside_is_outside_also_of_many_keys)
{
    struct assay_buffers buffers;
    const struct assay_tensors tensors =
        generated("mla_sparse_prefill s_q=2 h_q=64 s_kv=120000 d_qk=512 topk=128 "
                  "invalid=1 seed=4",
                  &buffers);
    const int32_t *const indices = named(&tensors, "indices")->data;
    for (int i = 0; i < 256; i++)
        ck_assert(indices[i] < 0 || indices[i] >= 120000);
    assay_buffers_close(&buffers);
}
END_TEST

START_TEST(every_row_of_needle_data_has_the_needle_among_those_that_count)
{
    struct assay_buffers buffers;
    const struct assay_tensors tensors =
        generated("mla_sparse_prefill s_q=30 h_q=64 s_kv=1000 d_qk=512 topk=128 "
                  "invalid=0.9 topk_length=7 data=needle seed=4",
                  &buffers);
    const int32_t *const indices = named(&tensors, "indices")->data;
    const int64_t needle = assay_mla_needle(4, 0, 1000);
    for (int token = 0; token < 30; token++) {
        int count = 0;
        for (int i = 0; i < 7; i++)
            count += indices[token * 128 + i] == needle;
        ck_assert_int_ge(count, 1);
    }
    assay_buffers_close(&buffers);
}
END_TEST

START_TEST(tied_rows_attend_to_as_many_even_as_odd_keys)
{
    struct assay_buffers buffers;
    const struct assay_tensors tensors =
        generated("mla_sparse_prefill s_q=4 h_q=64 s_kv=301 d_qk=512 topk=256 "
                  "data=ties seed=4",
                  &buffers);
    const int32_t *const indices = named(&tensors, "indices")->data;
    for (int i = 0; i < 4 * 256; i++)
        ck_assert_int_eq(indices[i] % 2, i % 2);
    assay_buffers_close(&buffers);
}
END_TEST

START_TEST(a_smaller_case_keeps_the_values_it_shares)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (kind == ASSAY_DATA_NEEDLE) continue; /* the last 8 elements are others */
        struct assay_buffers buffers[2];
        struct assay_tensors tensors[2];
        for (int i = 0; i < 2; i++) {
            char text[160];
            snprintf(text, sizeof(text), "mla_sparse_prefill %s data=%s seed=5",
                     i ? "s_q=2 h_q=64 s_kv=50 d_qk=512 topk=128"
                       : "s_q=5 h_q=128 s_kv=50 topk=256 kv_stride=600 sink=1",
                     assay_data_kinds[kind].name);
            tensors[i] = generated(text, &buffers[i]);
        }
        const uint16_t *const large = named(&tensors[0], "q")->data;
        const uint16_t *const small = named(&tensors[1], "q")->data;
        const uint16_t *const large_kv = named(&tensors[0], "kv")->data;
        const uint16_t *const small_kv = named(&tensors[1], "kv")->data;
        const int32_t *const large_indices = named(&tensors[0], "indices")->data;
        const int32_t *const small_indices = named(&tensors[1], "indices")->data;
        for (int64_t token = 0; token < 2; token++) {
            for (int64_t head = 0; head < 64; head++)
                ck_assert(memcmp(large + (token * 128 + head) * 576,
                                 small + (token * 64 + head) * 512, 2 * 512) == 0);
            ck_assert(memcmp(large_indices + token * 256, small_indices + token * 128,
                             4 * 128) == 0);
        }
        int64_t keys = 0;
        for (int64_t token = 0; token < 50; token++) {
            if (small_kv[token * 512] == 0xFFFF) continue;
            ck_assert(memcmp(large_kv + token * 600, small_kv + token * 512, 2 * 512) ==
                      0);
            keys++;
        }
        ck_assert_int_gt(keys, 40);
        assay_buffers_close(&buffers[0]);
        assay_buffers_close(&buffers[1]);
    }
}
END_TEST

/* Frozen with data version 1: generated inputs never change. */
START_TEST(generated_inputs_are_the_same_everywhere)
{
    static const uint64_t frozen[KINDS] = {
        0x96f208c90e27e720, 0xa42df758b7cd70ce, 0x6226cdd84b5445be, 0x9fb91117f3e8a6ce,
        0xa73986f4cc178efe, 0xfbdb90b4ae8df7c0, 0x39d0a5a51c2dd1fa, 0x3455ccb0b4f056fa,
        0x1712a4489043b943, 0x54a8f4fbde6a81fd, 0x9290ff0883232c4b, 0x240e541797880dfb,
        0x704183bc4ebd8601
    };
    for (int kind = 0; kind < KINDS; kind++) {
        char text[160];
        struct assay_buffers buffers;
        snprintf(text, sizeof(text),
                 "mla_sparse_prefill s_q=3 h_q=64 s_kv=150 topk=128 topk_length=64,0,128 "
                 "sink=1 invalid=%s data=%s seed=7",
                 kind == ASSAY_DATA_EXACT ? "0" : "0.2", assay_data_kinds[kind].name);
        const struct assay_tensors tensors = generated(text, &buffers);
        const uint64_t hash = assay_inputs_hash(&tensors);
        ck_assert_msg(hash == frozen[kind], "data=%s: 0x%016llx",
                      assay_data_kinds[kind].name, (unsigned long long)hash);
        assay_buffers_close(&buffers);
    }
}
END_TEST

/* --- refusals --------------------------------------------------------------------- */

START_TEST(what_makes_no_sense_is_refused_with_a_sentence)
{
    static const struct {
        const char *rest, *sentence;
    } rows[] = {
        { "topk=64", "topk=64 is no multiple of 128" },
        { "topk=129 unsafe=1", "topk=129 is no multiple of 128" },
        { "topk=128 topk_length=1,2", "topk_length has 2 values for s_q=3" },
        { "topk=128 topk_length=1,2,129", "129 indices of query token 2" },
        { "topk=128 kv_stride=568", "must be 0 or at least 576" },
        { "topk=128 kv_stride=577", "kv_stride=577 is no multiple of 8" },
        { "topk=128 softmax_scale=-0.1", "softmax_scale=-0.1 is negative" },
        { "topk=128 softmax_scale=-0.1 data=exact unsafe=1", "data=exact promises" },
        { "topk=128 invalid=0.1 data=exact", "use invalid=0" },
        { "topk=384 data=exact", "query token 0 has 384 of them; use another topk" },
        { "topk=128 topk_length=1,3,4 data=exact", "use another topk_length" },
        { "topk=2097152 data=exact", "use at most 1048576" },
        { "topk=128 topk_length=5 bits=topk_length.1:ffffffff", "topk_length[1] is -1" },
        { "topk=128 topk_length=5 bits=topk_length.2:81", "topk_length[2] is 129" },
        { "topk=128 as=unit=fma,align_bits=3", "use unit=tensor-core" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static char no_numerics[] = "";
        char text[200];
        snprintf(text, sizeof(text), "mla_sparse_prefill s_q=3 h_q=64 s_kv=9 %s",
                 rows[i].rest);
        const struct assay_case the_case = parsed(text);
        const struct assay_trial_plan plan = { .candidate = model(),
                                               .candidate_state = no_numerics,
                                               .uses_model = true,
                                               .checks = assay_checks };
        struct assay_result result;
        assay_trial_run(&plan, &the_case, NULL, 0, &result);
        ck_assert_msg(result.status == ASSAY_REFUSED, "%s", text);
        ck_assert_msg(strstr(result.message.text, rows[i].sentence), "%s: %s", text,
                      result.message.text);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(what_is_next_to_a_refusal_runs)
{
    static const char *const rests[] = {
        "topk=128 topk_length=0,1,128",
        "topk=128 kv_stride=584",
        "topk=128 kv_stride=577 unsafe=1",
        "topk=128 topk_length=1,4,128 data=exact",
        "topk=128 topk_length=5 bits=topk_length.2:80,topk_length.1:0",
    };
    for (size_t i = 0; i < sizeof(rests) / sizeof(rests[0]); i++) {
        char text[200];
        snprintf(text, sizeof(text), "mla_sparse_prefill s_q=3 h_q=64 s_kv=9 %s",
                 rests[i]);
        struct assay_result result = result_of(text, "", NULL);
        ck_assert_msg(result.has_passed, "%s", text);
        assay_result_close(&result);
    }
}
END_TEST

/* --- results ---------------------------------------------------------------------- */

/* The floors are more than half of what the model reaches, so that doubling the bound
 * fails here. */
START_TEST(bound_is_tight)
{
    static const struct {
        const char *rest;
        double floor[OUTPUTS];
    } rows[] = {
        { "data=normal", { 0.95, 0.074, 0.035 } },
        { "data=uniform", { 0.95, 0.065, 0.024 } },
        { "data=wide", { 0.95, 0.12, 0.071 } },
        { "data=outlier", { 0.95, 0.17, 0.091 } },
        { "data=cancel", { 0.95, 0.0071, 0.0059 } },
        { "data=subnormal", { 0.95, 0.077, 0.032 } },
        { "data=ties", { 0.95, 0, 0.0082 } },
        { "data=positive", { 0.95, 0.22, 0.16 } },
        { "data=positive d_qk=512", { 0.95, 0.2, 0.14 } },
        { "data=positive sink=1", { 0.95, 0.22, 0.16 } },
        { "data=positive topk_length=3", { 0.95, 0.2, 0.19 } },
        { "data=outlier lse=base2", { 0.95, 0.17, 0.094 } },
        { "data=outlier as=flash", { 0.95, 0.027, 0.019 } },
        { "data=outlier as=naive", { 0.95, 0.027, 0.023 } },
        { "data=outlier as=flashmla-sparse-decode", { 0.95, 0.18, 0.089 } },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[200];
        snprintf(text, sizeof(text),
                 "mla_sparse_prefill s_q=4 h_q=64 s_kv=512 topk=256 seed=5 %s",
                 rows[i].rest);
        struct assay_result result = result_of(text, "", NULL);
        for (int output = 0; output < OUTPUTS; output++) {
            const double ratio = result.output[output].max_error_over_bound;
            ck_assert_msg(ratio >= rows[i].floor[output] && ratio <= 1, "%s: %s %g", text,
                          result.output[output].name, ratio);
        }
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(random_cases_are_decisive_and_within_the_bound)
{
    expect_drawn_cases_to_pass("mla_sparse_prefill", 300, 9e6, 20e6);
}
END_TEST

START_TEST(exact_and_needle_data_give_the_oracles_out_to_the_bit)
{
    static const char *const shapes[] = {
        "h_q=64 s_kv=300 topk=256 topk_length=64,0,128 data=exact sink=1",
        "h_q=128 s_kv=40 d_qk=512 topk=128 data=exact",
        "h_q=64 s_kv=300 topk=384 topk_length=300,0,1 invalid=0.3 data=needle sink=1",
        "h_q=128 s_kv=40 d_qk=512 topk=128 softmax_scale=0.5 data=needle",
    };
    static const char *const numerics[] = { "flashmla-sparse-prefill", "flash", "naive",
                                            "flashmla-sparse-decode" };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (int j = 0; j < 4; j++) {
            char text[240];
            snprintf(text, sizeof(text), "mla_sparse_prefill s_q=3 %s seed=%zu as=%s",
                     shapes[i], i, numerics[j]);
            struct assay_result result = result_of(text, "", NULL);
            ck_assert_msg(result.output[OUT].has_exact, "%s", text);
            ck_assert_msg(result.output[OUT].inexact == 0 && result.has_passed,
                          "%s: %lld", text, (long long)result.output[OUT].inexact);
            ck_assert(!result.output[LSE].has_exact);
            ck_assert(!result.output[OUT].is_constant);
            assay_result_close(&result);
        }
}
END_TEST

static void flip_out(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const out = named(tensors, "out");
    const int64_t element = (1 * 128 + 77) * 512 + 255;
    assay_tensor_set_bits(out, element, assay_tensor_bits(out, element) ^ 1);
}

static void change_max_logits(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const max_logits = named(tensors, "max_logits");
    const uint32_t bits = assay_tensor_bits(max_logits, 128 + 77);
    assay_tensor_set_bits(max_logits, 128 + 77, bits + 4096);
}

START_TEST(a_wrong_element_is_found_and_its_place_named)
{
    struct assay_result result = result_of(
        "mla_sparse_prefill s_q=2 s_kv=300 topk=128 data=exact sink=1", "", flip_out);
    ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
    ck_assert_int_eq(result.output[OUT].inexact, 1);
    ck_assert_str_eq(result.output[OUT].worst.place.text,
                     "token 1, head 77, columns 0-255");
    assay_result_close(&result);
    result =
        result_of("mla_sparse_prefill s_q=2 s_kv=300 topk=128", "", change_max_logits);
    ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
    ck_assert_int_eq(result.output[MAX_LOGITS].outside, 1);
    ck_assert_int_eq(result.output[LSE].differ, 0);
    ck_assert_str_eq(result.output[MAX_LOGITS].worst.place.text, "token 1, head 77");
    assay_result_close(&result);
}
END_TEST

START_TEST(a_repeated_run_gives_the_same_bits)
{
    uint64_t hash[2][OUTPUTS + 1];
    for (int i = 0; i < 2; i++) {
        struct assay_result result = result_of(
            "mla_sparse_prefill s_q=4 s_kv=300 topk=256 topk_length=0,1,200,256 "
            "sink=1 invalid=0.2 seed=8",
            "", NULL);
        for (int output = 0; output < OUTPUTS; output++)
            hash[i][output] = result.output[output].candidate_hash;
        hash[i][OUTPUTS] = result.input_hash;
        assay_result_close(&result);
    }
    ck_assert(memcmp(hash[0], hash[1], sizeof(hash[0])) == 0);
}
END_TEST

START_TEST(numerics_differ_in_bits_and_explain_one_another)
{
    static const char *const numerics[] = { "flash", "naive", "flashmla-sparse-decode" };
    for (int i = 0; i < 3; i++) {
        struct assay_result result =
            result_of("mla_sparse_prefill s_q=1 h_q=64 s_kv=900 topk=256 sink=1 seed=4",
                      numerics[i], NULL);
        ck_assert_msg(result.verdict == ASSAY_EXPLAINED, "%s: %d", numerics[i],
                      (int)result.verdict);
        ck_assert_str_eq(result.explanation, numerics[i]);
        for (int output = 0; output < OUTPUTS; output++)
            ck_assert_int_eq(result.output[output].outside, 0);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(rows_without_keys_are_constant_by_design)
{
    static const char *const rests[] = { "topk_length=0", "topk_length=0,0 sink=1",
                                         "invalid=1" };
    for (int i = 0; i < 3; i++) {
        char text[160];
        snprintf(text, sizeof(text), "mla_sparse_prefill s_q=2 s_kv=9 topk=128 %s",
                 rests[i]);
        struct assay_result result = result_of(text, "", NULL);
        ck_assert_msg(result.has_passed && result.is_decisive, "%s", text);
        for (int output = 0; output < OUTPUTS; output++)
            ck_assert(result.output[output].is_constant);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(cost_counts_every_product_of_queries_keys_and_values)
{
    static struct assay_mla_sparse_prefill_case prefill;
    struct assay_message message;
    struct assay_case the_case =
        parsed("mla_sparse_prefill s_q=3 h_q=64 s_kv=9 topk=128 topk_length=1,2,128");
    ck_assert(the_case.operation->bind(&the_case, &prefill, &message) == ASSAY_RAN);
    ck_assert(the_case.operation->cost(&prefill).multiply_adds == 64.0 * 131 * 1088);
    the_case = parsed("mla_sparse_prefill s_q=3 d_qk=512 s_kv=9 topk=128");
    ck_assert(the_case.operation->bind(&the_case, &prefill, &message) == ASSAY_RAN);
    ck_assert(the_case.operation->cost(&prefill).multiply_adds == 128.0 * 384 * 1024);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        tensors_are_those_the_case_asks_for,
        indices_outside_and_keys_unattended_are_traps,
        an_index_outside_is_outside_also_of_many_keys,
        every_row_of_needle_data_has_the_needle_among_those_that_count,
        tied_rows_attend_to_as_many_even_as_odd_keys,
        a_smaller_case_keeps_the_values_it_shares,
        generated_inputs_are_the_same_everywhere,
        what_makes_no_sense_is_refused_with_a_sentence,
        what_is_next_to_a_refusal_runs,
        bound_is_tight,
        random_cases_are_decisive_and_within_the_bound,
        exact_and_needle_data_give_the_oracles_out_to_the_bit,
        a_wrong_element_is_found_and_its_place_named,
        a_repeated_run_gives_the_same_bits,
        numerics_differ_in_bits_and_explain_one_another,
        rows_without_keys_are_constant_by_design,
        cost_counts_every_product_of_queries_keys_and_values,
        NULL,
    };
    return run_tests("mla_sparse_prefill", tests);
}
