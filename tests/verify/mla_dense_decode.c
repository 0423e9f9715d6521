/* SPDX-License-Identifier: MIT */
/* Tests of the operation mla_dense_decode as a whole: its inputs, what it refuses, the
 * bound against the model, results without rounding. */
#include "verify/operation/mla_dense_decode/mla_dense_decode.h"

#include "ref/format/minifloat.h"
#include "tests/harness.h"
#include "tests/verify/drawn_cases.h"
#include "tests/verify/judged_case.h"
#include "tests/verify/shaped_case.h"

#include <math.h>
#include <stdlib.h>

enum { OUT, LSE, OUTPUTS, KINDS = ASSAY_DATA_NEEDLE + 1, D = ASSAY_DENSE_D_QK };

/* --- inputs ----------------------------------------------------------------------- */

static int32_t integer(const struct assay_tensors *tensors, int place, int64_t element)
{
    return (int32_t)assay_tensor_bits(&tensors->item[place], element);
}

/* Key of a request's token in the cache, through the table. */
static const uint16_t *key_of(const struct assay_tensors *tensors, int64_t request,
                              int64_t token, int64_t head)
{
    const struct assay_tensor *const cache = &tensors->item[ASSAY_DENSE_K_CACHE];
    const int64_t columns = tensors->item[ASSAY_DENSE_BLOCK_TABLE].shape[1];
    const int64_t page =
        integer(tensors, ASSAY_DENSE_BLOCK_TABLE, request * columns + token / 64);
    return (const uint16_t *)cache->data +
           ((page * 64 + token % 64) * cache->shape[2] + head) * D;
}

START_TEST(pages_are_shuffled_and_what_is_unused_is_a_trap)
{
    static const int64_t lengths[] = { 130, 0, 64, 1 };
    const struct assay_case the_case =
        parsed("mla_dense_decode b=4 h_q=2 h_k=2 s_k=130,0,64,1 pages=9 "
               "table_columns=5 seed=3");
    struct assay_tensors tensors;
    struct assay_buffers buffers;
    bool seen[9] = { false };
    int64_t in_use = 0, moved = 0;
    generate_case(&the_case, &tensors, &buffers);
    const uint16_t *const cache = tensors.item[ASSAY_DENSE_K_CACHE].data;
    for (int64_t request = 0; request < 4; request++) {
        ck_assert_int_eq(integer(&tensors, ASSAY_DENSE_CACHE_SEQLENS, request),
                         lengths[request]);
        for (int64_t column = 0; column < 5; column++) {
            const int32_t page =
                integer(&tensors, ASSAY_DENSE_BLOCK_TABLE, request * 5 + column);
            if (column * 64 >= lengths[request]) {
                ck_assert_int_eq(page, 2147480000);
                continue;
            }
            ck_assert(page >= 0 && page < 9 && !seen[page]);
            seen[page] = true;
            moved += page != in_use++;
            for (int64_t i = 0; i < 64 * 2 * D; i++) {
                const bool is_used = column * 64 + i / (2 * D) < lengths[request];
                ck_assert_int_eq(cache[page * 64 * 2 * D + i] == 0xFFFF, !is_used);
            }
        }
    }
    ck_assert_int_eq(in_use, 5);
    ck_assert_int_gt(moved, 0);
    for (int64_t page = 0; page < 9; page++)
        for (int64_t i = 0; i < 64 * 2 * D && !seen[page]; i++)
            ck_assert_uint_eq(cache[page * 64 * 2 * D + i], 0xFFFF);
    assay_buffers_close(&buffers);
}
END_TEST

/* Other sizes, other pages, another plan: the same request and token, the same key. */
START_TEST(a_smaller_case_keeps_the_values_it_shares)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (kind == ASSAY_DATA_NEEDLE) continue; /* which token wins is another */
        struct assay_buffers buffers[2];
        struct assay_tensors tensors[2];
        for (int i = 0; i < 2; i++) {
            char text[160];
            snprintf(text, sizeof(text), "mla_dense_decode %s data=%s seed=5",
                     i ? "b=2 h_q=2 h_k=1 s_q=2 s_k=1,64 pages=8"
                       : "b=3 h_q=8 h_k=2 s_q=2 s_k=64,128,4 table_columns=3 "
                         "plan=whole",
                     kind == ASSAY_DATA_EXACT ? "normal" : assay_data_kinds[kind].name);
            const struct assay_case the_case = parsed(text);
            generate_case(&the_case, &tensors[i], &buffers[i]);
        }
        const uint16_t *const large = tensors[0].item[ASSAY_DENSE_Q].data;
        const uint16_t *const small = tensors[1].item[ASSAY_DENSE_Q].data;
        for (int64_t request = 0; request < 2; request++) {
            for (int64_t row = 0; row < 4; row++) {
                const int64_t at = (request * 2 + row / 2) * 8 + row % 2;
                ck_assert(
                    memcmp(large + at * D, small + (request * 4 + row) * D, 2 * D) == 0);
            }
            for (int64_t token = 0; token < (request ? 64 : 1); token++)
                ck_assert(memcmp(key_of(&tensors[0], request, token, 0),
                                 key_of(&tensors[1], request, token, 0), 2 * D) == 0);
        }
        ck_assert(memcmp(key_of(&tensors[0], 1, 5, 0), key_of(&tensors[0], 1, 5, 1),
                         2 * D) != 0 ||
                  kind == ASSAY_DATA_TIES || kind == ASSAY_DATA_ZERO);
        assay_buffers_close(&buffers[0]);
        assay_buffers_close(&buffers[1]);
    }
}
END_TEST

/* Frozen with data version 1: generated inputs never change. */
START_TEST(generated_inputs_are_the_same_everywhere)
{
    static const uint64_t frozen[KINDS] = {
        0x3d86ef0db911ad34, 0xdf92edb5e3e67c32, 0x5eadf0904df6892d, 0x3a717a07195ad5f5,
        0xf31988bfafaccd0a, 0x57e84eb920cc906c, 0xf01a5dc4e8346305, 0xbba5c4db5f653f6f,
        0x40172a70b69ae999, 0xb283bc46772a661e, 0x910d12d22a51c7ca, 0xbc2ba0abf9cb06f9,
        0x787e0f645da24895
    };
    for (int kind = 0; kind < KINDS; kind++) {
        char text[160];
        struct assay_tensors tensors;
        struct assay_buffers buffers;
        snprintf(text, sizeof(text),
                 "mla_dense_decode b=3 h_q=4 h_k=2 s_q=1 s_k=128,0,32 plan=%s data=%s "
                 "seed=7",
                 kind == ASSAY_DATA_EXACT ? "blocks" : "random",
                 assay_data_kinds[kind].name);
        const struct assay_case the_case = parsed(text);
        generate_case(&the_case, &tensors, &buffers);
        const uint64_t hash = assay_inputs_hash(&tensors);
        ck_assert_msg(hash == frozen[kind], "data=%s: 0x%016llx",
                      assay_data_kinds[kind].name, (unsigned long long)hash);
        assay_buffers_close(&buffers);
    }
}
END_TEST

/* --- refusals --------------------------------------------------------------------- */

static void check_refusal(const char *text, const char *sentence)
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
    ck_assert_msg(strstr(result.message.text, sentence), "%s: %s", text,
                  result.message.text);
    assay_result_close(&result);
}

START_TEST(what_makes_no_sense_is_refused_with_a_sentence)
{
    static const struct {
        const char *rest, *sentence;
    } rows[] = {
        { "b=3 s_k=1,2", "s_k has 2 values for b=3" },
        { "b=1 s_k=1,2", "one a request, or one for all" },
        { "b=1 h_q=9 h_k=2 s_k=1", "h_q=9 is no multiple of h_k=2" },
        { "b=1 h_q=2 h_k=4 s_k=1", "h_q=2 is no multiple of h_k=4" },
        { "b=1 h_q=64 s_k=1 sms=161", "makes 161 parts of the machine" },
        { "b=1 h_q=64 s_k=1 sms=161 unsafe=1", "takes 160 at most" },
        { "b=1 s_k=1 softmax_scale=0.000693", "is not above 0.001" },
        { "b=1 s_k=1 softmax_scale=-0.1", "or unsafe=1" },
        { "b=1 s_k=1 softmax_scale=-0.1 data=needle unsafe=1", "data=needle promises" },
        { "b=2 s_k=65,1 pages=2", "pages=2 has no room" },
        { "b=2 s_k=65,1 pages=2", "use 0 or at least 3" },
        { "b=2 s_k=65,1 table_columns=1", "use 0 or at least 2" },
        { "b=2 s_k=64,3 data=exact", "but s_k of request 1 is 3" },
        { "b=1 s_k=2097152 data=exact", "use at most 1048576" },
        { "b=1 s_k=64 s_q=2 causal=1 data=exact", "use causal=0 or s_q=1" },
        { "b=1 s_k=512 sms=3 h_q=64 data=exact plan=blocks", "use plan=whole" },
        { "b=1 s_k=1 as=schedule=plain", "use row_sum=one-lane" },
        { "b=2 s_k=65,1 bits=cache_seqlens.1:ffffffff", "cache_seqlens[1] is -1" },
        { "b=2 s_k=65,1 bits=cache_seqlens.1:81", "room for 0 to 128 keys" },
        { "b=2 s_k=65,1 bits=cache_seqlens.1:2", "but s_k of the case says 1" },
        { "b=2 s_k=65,1 bits=block_table.0.1:6", "block_table[0, 1] is 6, but" },
        { "b=2 s_k=65,1 bits=block_table.1.0:ffffffff", "numbered 0 to 5" },
        { "b=2 s_k=65,1 bits=num_splits.1:3", "request 0" },
        { "b=2 s_k=65,640 bits=tile_scheduler_metadata.2.3:2", "in request 1" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[200];
        snprintf(text, sizeof(text), "mla_dense_decode %s", rows[i].rest);
        check_refusal(text, rows[i].sentence);
    }
}
END_TEST

static void check_runs(const char *text)
{
    struct assay_result result = result_of(text, "", NULL);
    ck_assert_msg(result.has_passed, "%s", text);
    assay_result_close(&result);
}

START_TEST(what_is_next_to_a_refusal_runs)
{
    check_runs("mla_dense_decode b=3 h_q=2 s_k=70");
    check_runs("mla_dense_decode b=2 h_q=1 s_k=65,1 pages=3 table_columns=2");
    check_runs("mla_dense_decode b=1 h_q=2 s_k=9 softmax_scale=0.000694");
    check_runs("mla_dense_decode b=1 h_q=64 s_k=70 sms=160 plan=blocks");
    check_runs("mla_dense_decode b=1 h_q=2 s_k=70 as=row_sum=one-lane,schedule=plain");
    check_runs("mla_dense_decode b=2 h_q=2 s_k=65,0 bits=block_table.1.0:ffffffff");
}
END_TEST

/* --- results ---------------------------------------------------------------------- */

/* The floors are more than half of what the model reaches, so that doubling the bound
 * fails here. */
START_TEST(bound_is_tight)
{
    static const struct {
        const char *rest;
        double out, lse;
    } rows[] = {
        { "data=normal", 0.95, 0.022 },
        { "data=uniform", 0.95, 0.016 },
        { "data=wide", 0.95, 0.047 },
        { "data=outlier", 0.95, 0.06 },
        { "data=cancel", 0.95, 0.004 },
        { "data=subnormal", 0.088, 0.024 },
        { "data=ties", 0.95, 0.045 },
        { "data=positive", 0.95, 0.13 },
        { "data=positive plan=whole", 0.95, 0.13 },
        { "data=positive plan=blocks", 0.95, 0.13 },
        { "data=positive format=f16", 0.27, 0.23 },
        { "data=outlier lse=base2", 0.95, 0.058 },
        { "data=positive s_q=2 causal=1", 0.95, 0.13 },
        { "data=outlier as=flash", 0.95, 0.013 },
        { "data=outlier as=naive", 0.95, 0.018 },
        { "data=outlier as=flashmla-sparse-decode", 0.95, 0.06 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[200];
        snprintf(text, sizeof(text), "mla_dense_decode b=2 h_q=64 s_k=700,900 seed=2 %s",
                 rows[i].rest);
        struct assay_result result = result_of(text, "", NULL);
        const double out = result.output[OUT].max_error_over_bound;
        const double lse = result.output[LSE].max_error_over_bound;
        ck_assert_msg(out >= rows[i].out && out <= 1, "%s: out %g", text, out);
        ck_assert_msg(lse >= rows[i].lse && lse <= 1, "%s: lse %g", text, lse);
        assay_result_close(&result);
    }
}
END_TEST

static void flip_every_out(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const out = &tensors->item[ASSAY_DENSE_OUT];
    for (int64_t i = 0; i < assay_tensor_elements(out); i++)
        assay_tensor_set_bits(out, i, assay_tensor_bits(out, i) ^ 1);
}

/* P in bf16 may cost the last bit of out; f32 and small scores almost never do. */
START_TEST(a_neighbouring_code_is_outside_of_a_fine_bound)
{
    struct assay_result result =
        result_of("mla_dense_decode b=2 h_q=16 s_k=30,9 softmax_scale=0.004 as=flash", "",
                  flip_every_out);
    const struct assay_output_result *const out = &result.output[OUT];
    ck_assert_msg(10 * out->outside > 9 * out->elements, "%lld", (long long)out->outside);
    assay_result_close(&result);
}
END_TEST

START_TEST(random_cases_are_decisive_and_within_the_bound)
{
    expect_drawn_cases_to_pass("mla_dense_decode", 300, 3e6, 30e6);
}
END_TEST

/* Whatever the numerics and the plan, what comes out is the oracle's value. */
START_TEST(exact_and_needle_data_give_the_oracles_out_to_the_bit)
{
    static const char *const shapes[] = {
        "b=3 h_q=4 s_k=256,0,64 plan=blocks data=exact",
        "b=2 h_q=65 s_k=256,128 plan=scheduler sms=4 data=exact",
        "b=2 h_q=6 h_k=2 s_q=3 s_k=512,2 plan=whole format=f16 data=exact",
        "b=3 h_q=4 s_k=256,0,77 plan=blocks data=needle",
        "b=2 h_q=6 h_k=2 s_q=3 s_k=400,2 causal=1 plan=random data=needle",
        "b=12 h_q=2 s_q=4 s_k=5 causal=1 data=needle",
        "b=2 h_q=65 s_k=200,129 format=f16 softmax_scale=0.5 data=needle",
    };
    static const char *const numerics[] = { "flashmla-dense", "flash", "naive",
                                            "flashmla-sparse-decode",
                                            "flashmla-sparse-prefill" };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (int j = 0; j < 5; j++) {
            char text[240];
            snprintf(text, sizeof(text), "mla_dense_decode %s seed=%zu as=%s", shapes[i],
                     i, numerics[j]);
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
    const struct assay_tensor *const out = &tensors->item[ASSAY_DENSE_OUT];
    const int64_t element = ((1 * 2 + 1) * 4 + 3) * 512 + 300;
    assay_tensor_set_bits(out, element, assay_tensor_bits(out, element) ^ 1);
}

static void flip_lse(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const lse = &tensors->item[ASSAY_DENSE_LSE];
    assay_tensor_set_bits(lse, (1 * 4 + 3) * 2 + 1, 0x40400000);
}

START_TEST(a_wrong_element_is_found_and_its_place_named)
{
    struct assay_result result =
        result_of("mla_dense_decode b=2 h_q=4 s_q=2 s_k=64,128 data=exact", "", flip_out);
    ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
    ck_assert_int_eq(result.output[OUT].inexact, 1);
    ck_assert_str_eq(result.output[OUT].worst.place.text,
                     "request 1, head 3, token 1, columns 256-511");
    assay_result_close(&result);
    result = result_of("mla_dense_decode b=2 h_q=4 s_q=2 s_k=64,128", "", flip_lse);
    ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
    ck_assert_int_eq(result.output[LSE].outside, 1);
    ck_assert_str_eq(result.output[LSE].worst.place.text, "request 1, head 3, token 1");
    assay_result_close(&result);
}
END_TEST

START_TEST(a_repeated_run_gives_the_same_bits)
{
    uint64_t hash[2][OUTPUTS + 1];
    for (int i = 0; i < 2; i++) {
        struct assay_result result = result_of(
            "mla_dense_decode b=4 h_q=70 s_k=300,5,0,64 plan=blocks seed=8", "", NULL);
        for (int output = 0; output < OUTPUTS; output++)
            hash[i][output] = result.output[output].candidate_hash;
        hash[i][OUTPUTS] = result.input_hash;
        assay_result_close(&result);
    }
    ck_assert(memcmp(hash[0], hash[1], sizeof(hash[0])) == 0);
}
END_TEST

static const char *replanned_case;

/* Computes the outputs again as if requests were split into as many blocks as can be. */
static void run_in_blocks(const struct assay_tensors *tensors)
{
    static struct assay_mla_dense_decode_case dense;
    static int32_t metadata[ASSAY_MLA_MAX_PARTS * ASSAY_PLAN_FIELDS], num_splits[8];
    const struct assay_case the_case = parsed(replanned_case);
    const struct assay_operation *const operation = the_case.operation;
    struct assay_message message;
    struct assay_tensors copy = *tensors;
    ck_assert(operation->bind(&the_case, &dense, &message) == ASSAY_RAN);
    copy.item[ASSAY_DENSE_METADATA].data = metadata;
    copy.item[ASSAY_DENSE_NUM_SPLITS].data = num_splits;
    const struct assay_mla_plan_problem plan =
        assay_mla_dense_plan_problem(&dense.problem);
    assay_mla_fill_plan(&plan, ASSAY_MLA_PLAN_BLOCKS, 1, &copy);
    ck_assert_int_gt(num_splits[1], 1);
    for (int64_t part = 0; part < operation->parts(&dense); part++)
        ck_assert(operation->model(&dense, operation->numerics[0].numerics, &copy,
                                   part) == ASSAY_RAN);
}

START_TEST(another_plan_changes_bits_within_the_bound)
{
    static const char *const kinds[] = { "normal", "positive", "wide", "cancel" };
    for (int i = 0; i < 4; i++) {
        char text[160];
        snprintf(text, sizeof(text),
                 "mla_dense_decode b=2 h_q=32 s_k=900,400 plan=whole data=%s seed=4",
                 kinds[i]);
        replanned_case = text;
        struct assay_result result = result_of(text, "", run_in_blocks);
        ck_assert_int_eq(result.verdict, ASSAY_BOUNDED);
        ck_assert_int_gt(result.output[OUT].differ, 0);
        ck_assert_int_gt(result.output[LSE].differ, 0);
        assay_result_close(&result);
    }
}
END_TEST

/* Explained: the named numerics differ in bits, and each is found again by its own. The
 * prefill kernel's differ only where both blocks of a later pair raise the maximum. */
START_TEST(numerics_differ_in_bits_and_explain_one_another)
{
    static const struct {
        const char *numerics;
        int heads;
    } rows[] = { { "flash", 4 },
                 { "naive", 4 },
                 { "flashmla-sparse-decode", 4 },
                 { "flashmla-sparse-prefill", 128 } };
    for (int i = 0; i < 4; i++) {
        char text[160];
        snprintf(
            text, sizeof(text),
            "mla_dense_decode b=1 h_q=%d s_k=600 plan=whole softmax_scale=0.02 seed=1",
            rows[i].heads);
        struct assay_result result = result_of(text, rows[i].numerics, NULL);
        ck_assert_msg(result.verdict == ASSAY_EXPLAINED, "%s: %d", rows[i].numerics,
                      (int)result.verdict);
        ck_assert_str_eq(result.explanation, rows[i].numerics);
        ck_assert_int_eq(result.output[OUT].outside + result.output[LSE].outside, 0);
        assay_result_close(&result);
    }
}
END_TEST

/* The model follows any plan; what it leaves out is no bug of the model. */
START_TEST(a_faulty_plan_is_judged_by_bits_only)
{
    struct assay_result result =
        result_of("mla_dense_decode b=2 h_q=3 s_k=65,640 unsafe=1 "
                  "bits=tile_scheduler_metadata.2.3:0",
                  "", NULL);
    ck_assert_int_eq(result.verdict, ASSAY_BOUNDED);
    ck_assert_int_eq(result.output[OUT].unclaimed, result.output[OUT].elements);
    ck_assert_int_eq(result.output[LSE].unclaimed, result.output[LSE].elements);
    assay_result_close(&result);
    result = result_of("mla_dense_decode b=2 h_q=3 s_k=65,640 unsafe=1", "", NULL);
    ck_assert_int_eq(result.output[OUT].unclaimed + result.output[LSE].unclaimed, 0);
    assay_result_close(&result);
}
END_TEST

START_TEST(requests_without_keys_are_constant_by_design)
{
    struct assay_result result =
        result_of("mla_dense_decode b=2 h_q=4 s_k=0 s_q=3 causal=1", "", NULL);
    ck_assert(result.has_passed && result.is_decisive);
    ck_assert(result.output[OUT].is_constant && result.output[LSE].is_constant);
    assay_result_close(&result);
}
END_TEST

START_TEST(f16_is_remarked_upon_and_bf16_is_not)
{
    struct assay_result result =
        result_of("mla_dense_decode b=1 h_q=1 s_k=5 format=f16", "", NULL);
    ck_assert_ptr_nonnull(result.remark);
    ck_assert_str_eq(result.remark, "unrecorded: no f16 output of this kernel exists");
    assay_result_close(&result);
    result = result_of("mla_dense_decode b=1 h_q=1 s_k=5", "", NULL);
    ck_assert_ptr_null(result.remark);
    ck_assert(!result.is_unverified_profile);
    assay_result_close(&result);
}
END_TEST

START_TEST(cost_counts_every_product_of_queries_keys_and_values)
{
    static struct assay_mla_dense_decode_case dense;
    const struct assay_case the_case =
        parsed("mla_dense_decode b=2 h_q=6 h_k=2 s_q=2 s_k=10,5");
    struct assay_message message;
    ck_assert(the_case.operation->bind(&the_case, &dense, &message) == ASSAY_RAN);
    ck_assert(the_case.operation->cost(&dense).multiply_adds == 12.0 * 15 * 1088);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        pages_are_shuffled_and_what_is_unused_is_a_trap,
        a_smaller_case_keeps_the_values_it_shares,
        generated_inputs_are_the_same_everywhere,
        what_makes_no_sense_is_refused_with_a_sentence,
        what_is_next_to_a_refusal_runs,
        bound_is_tight,
        a_neighbouring_code_is_outside_of_a_fine_bound,
        random_cases_are_decisive_and_within_the_bound,
        exact_and_needle_data_give_the_oracles_out_to_the_bit,
        a_wrong_element_is_found_and_its_place_named,
        a_repeated_run_gives_the_same_bits,
        another_plan_changes_bits_within_the_bound,
        numerics_differ_in_bits_and_explain_one_another,
        a_faulty_plan_is_judged_by_bits_only,
        requests_without_keys_are_constant_by_design,
        f16_is_remarked_upon_and_bf16_is_not,
        cost_counts_every_product_of_queries_keys_and_values,
        NULL,
    };
    return run_tests("mla_dense_decode", tests);
}
