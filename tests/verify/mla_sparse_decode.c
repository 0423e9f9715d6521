/* SPDX-License-Identifier: MIT */
/* Tests of the operation mla_sparse_decode: what it refuses, kinds of data whose outputs
 * are known without any softmax, and verdicts. */
#include "tests/verify/mla_sparse_decode.h"

#include "tests/harness.h"
#include "tests/verify/drawn_cases.h"
#include "verify/operation/parts.h"

#include <limits.h>

/* --- refusals ---------------------------------------------------------------------- */

START_TEST(illegal_cases_are_refused_with_a_sentence)
{
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        { "kv=v32 b=1 topk=100", "topk=100 is no multiple of 64" },
        { "kv=v32 b=1 topk=100 unsafe=1", "topk=100 is no multiple of 64" },
        { "kv=v32 b=1 topk=64 topk_length=3", "topk_length is given, which kernels" },
        { "kv=v32 b=1 topk=64 extra_topk=64", "kv=v32 does not have" },
        { "kv=model1 b=1 topk=64 extra_topk=64 extra_kv=v41",
          "extra_kv differs from kv" },
        { "kv=model1 b=1 topk=64 extra_topk=64 extra_kv=v41_fp4", "extra_kv differs" },
        { "kv=v41 b=1 topk=64 extra_topk=64 extra_kv=model1", "extra_kv differs" },
        { "kv=model1 b=1 topk=64 extra_topk=70", "extra_topk=70 is no multiple of 64" },
        { "kv=model1 b=1 topk=64 extra_kv=model1", "extra_kv speaks of an extra cache" },
        { "kv=model1 b=1 topk=64 extra_pages=3", "extra_pages speaks of an extra cache" },
        { "kv=model1 b=1 topk=64 extra_topk_length=3", "give extra_topk" },
        { "kv=model1 b=3 topk=64 topk_length=3,4", "has 2 values for b=3" },
        { "kv=model1 b=1 topk=64 topk_length=65", "asks for 65 indices of request 0" },
        { "kv=model1 b=2 topk=64 extra_topk=64 extra_topk_length=0,65", "of request 1" },
        { "kv=model1 b=1 topk=64 scales=any", "only kv=v32 has" },
        { "kv=v32 b=1 topk=64 scales=any data=needle", "data=needle needs scales" },
        { "kv=v32 b=1 topk=64 scales=any plan=whole data=exact", "data=exact needs" },
        { "kv=v32 b=1 topk=64 data=exact", "use plan=whole" },
        { "kv=v32 b=1 topk=65600 plan=whole data=exact", "use 65536 at most" },
        { "kv=v32 b=1 topk=64 h_q=64 sms=161", "sms=161 gives 161 parts" },
        { "kv=v32 b=1 topk=64 page_padding=8", "page_padding=8 is no multiple of 16" },
        { "kv=v32 b=3 topk=64 pages=2", "pages=2 is too small" },
        { "kv=v32 b=1 topk=64 page_size=65536 pages=32768", "32-bit indices" },
        { "kv=v32 b=500 topk=64 s_q=100", "32-bit offsets" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static _Alignas(max_align_t) char problem[ASSAY_MAX_PROBLEM_BYTES];
        char text[256];
        struct assay_message message;
        snprintf(text, sizeof(text), "mla_sparse_decode %s", rows[i].text);
        const struct assay_case the_case = parsed(text);
        ck_assert_msg(the_case.operation->bind(&the_case, problem, &message) ==
                          ASSAY_REFUSED,
                      "%s", text);
        ck_assert_msg(strstr(message.text, rows[i].sentence), "%s: %s", text,
                      message.text);
    }
}
END_TEST

START_TEST(keys_without_a_meaning_are_refused_by_the_parser)
{
    static const char *const texts[] = {
        "kv=v41_fp4 b=1 topk=64",
        "kv=v32 b=1 topk=64 h_q=16",
        "kv=v32 b=1 topk=0",
        "kv=v32 b=513 topk=64",
        "b=1 topk=64",
        "kv=v32 b=1 topk=64 invalid=2",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char text[256];
        struct assay_case the_case;
        struct assay_message message;
        snprintf(text, sizeof(text), "mla_sparse_decode %s", texts[i]);
        ck_assert_msg(assay_case_parse(text, &the_case, &message) == ASSAY_REFUSED, "%s",
                      text);
    }
}
END_TEST

/* Status of a case that is run as users run it. */
static enum assay_status status_of(const char *text, struct assay_message *message)
{
    static char state[ASSAY_MAX_NUMERICS_TEXT];
    const struct assay_case the_case = parsed(text);
    const struct assay_trial_plan plan = { .candidate = model(),
                                           .candidate_state = state,
                                           .checks = assay_checks };
    struct assay_result result;
    assay_trial_run(&plan, &the_case, NULL, 0, &result);
    *message = result.message;
    const enum assay_status status = result.status;
    assay_result_close(&result);
    return status;
}

START_TEST(contents_no_kernel_may_get_are_refused_unless_unsafe)
{
    static const struct {
        const char *keys, *bits, *sentence;
    } rows[] = {
        { "kv=v32 b=2 h_q=64 topk=64", "indices.1.0.5:fffffff9",
          "indices[1, 0, 5] is -7, which is no slot of k_cache" },
        { "kv=v32 b=2 h_q=64 topk=64 pages=2", "indices.1.0.63:80",
          "indices[1, 0, 63] is 128" },
        { "kv=model1 b=2 h_q=64 topk=64 topk_length=9", "topk_length.1:ffffffff",
          "topk_length[1] is -1; use 0 to 64" },
        { "kv=model1 b=2 h_q=64 topk=64 topk_length=9", "topk_length.0:41",
          "topk_length[0] is 65" },
        { "kv=model1 b=2 h_q=64 topk=64 extra_topk=64 extra_topk_length=9",
          "extra_topk_length.0:41", "extra_topk_length[0] is 65" },
        { "kv=v32 b=2 h_q=64 topk=128", "num_splits.1:9", "request" },
        { "kv=v32 b=2 h_q=64 topk=128", "tile_scheduler_metadata.0.3:0", "request" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[400];
        struct assay_message message;
        snprintf(text, sizeof(text), "mla_sparse_decode %s", rows[i].keys);
        ck_assert_int_eq(status_of(text, &message), ASSAY_RAN);
        snprintf(text, sizeof(text), "mla_sparse_decode %s bits=%s", rows[i].keys,
                 rows[i].bits);
        ck_assert_msg(status_of(text, &message) == ASSAY_REFUSED, "%s", text);
        ck_assert_msg(strstr(message.text, rows[i].sentence), "%s: %s", text,
                      message.text);
        snprintf(text, sizeof(text), "mla_sparse_decode %s unsafe=1 bits=%s",
                 rows[i].keys, rows[i].bits);
        ck_assert_msg(status_of(text, &message) == ASSAY_RAN, "%s: %s", text,
                      message.text);
    }
}
END_TEST

START_TEST(indices_of_the_extra_cache_are_checked_against_it)
{
    static const struct {
        int32_t index, place;
        const char *sentence; /* NULL: there is nothing wrong */
    } rows[] = {
        { 191, 64 + 2, NULL },
        { -1, 64 + 2, NULL },
        { -2, 64 + 9, NULL }, /* behind the length */
        { 192, 64 + 2,
          "extra_indices_in_kvcache[0, 1, 2] is 192, which is no slot of extra_k_cache; "
          "use -1 or 0 to 191, or unsafe=1" },
        { INT_MIN, 64 + 8, "extra_indices_in_kvcache[0, 1, 8] is -2147483648" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static _Alignas(max_align_t) char problem[ASSAY_MAX_PROBLEM_BYTES];
        struct generated made;
        struct assay_message message;
        generate(&made, "mla_sparse_decode kv=v41 b=2 h_q=64 s_q=2 topk=64 extra_topk=64 "
                        "extra_kv=v41_fp4 extra_topk_length=9 extra_pages=3");
        const struct assay_tensor *const cache = tensor_of(&made, "extra_k_cache");
        const struct assay_operation *const operation = made.the_case.operation;
        memset(cache->data, 0, (size_t)assay_tensor_bytes(cache));
        ((int32_t *)tensor_of(&made, "extra_indices_in_kvcache")->data)[rows[i].place] =
            rows[i].index;
        ck_assert(operation->bind(&made.the_case, problem, &message) == ASSAY_RAN);
        const enum assay_status status =
            operation->check_inputs(problem, &made.tensors, &message);
        ck_assert_int_eq(status, rows[i].sentence ? ASSAY_REFUSED : ASSAY_RAN);
        if (rows[i].sentence) ck_assert(strstr(message.text, rows[i].sentence));
        assay_buffers_close(&made.buffers);
    }
}
END_TEST

/* The first slot that anybody attends to, and one that nobody does. */
static void find_slots(const struct generated *made, const char *name, int64_t slot[2])
{
    const struct assay_tensor *const indices = tensor_of(made, name);
    bool is_used[4096] = { false };
    slot[0] = -1;
    for (int64_t i = 0; i < assay_tensor_elements(indices); i++) {
        const int32_t index = ((const int32_t *)indices->data)[i];
        if (index < 0) continue;
        is_used[index] = true;
        if (slot[0] < 0) slot[0] = index;
    }
    for (slot[1] = 0; is_used[slot[1]];)
        slot[1]++;
}

static enum assay_status status_with_scale(const char *keys, const char *cache,
                                           int64_t page, int64_t byte, int width,
                                           uint32_t bits, struct assay_message *message)
{
    char text[600];
    int used = snprintf(text, sizeof(text), "mla_sparse_decode %s bits=", keys);
    for (int i = 0; i < width; i++)
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%s.%lld.%lld:%x",
                         i ? "," : "", cache, (long long)page, (long long)byte + i,
                         bits >> 8 * i & 0xFF);
    return status_of(text, message);
}

START_TEST(nan_scales_are_refused_where_somebody_attends)
{
    static const struct {
        const char *keys, *cache, *indices;
        int64_t record,
            scale; /* bytes from token to token, and of scale 1 from the first */
        int width;
        uint32_t nan, number;
    } rows[] = {
        { "kv=v32 b=1 h_q=64 topk=64", "k_cache", "indices", 656, 516, 4, 0xFF800001,
          0x7F800000 },
        { "kv=model1 b=1 h_q=64 topk=64", "k_cache", "indices", 8, 64 * 576 + 1, 1, 0xFF,
          0xFE },
        { "kv=v41 b=1 h_q=64 topk=64", "k_cache", "indices", 528, 513, 1, 0xFF, 0xFE },
        { "kv=v41 b=1 h_q=64 topk=64 extra_topk=64 extra_kv=v41_fp4", "extra_k_cache",
          "extra_indices_in_kvcache", 288, 257, 1, 0x7F, 0x7E },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[200];
        struct generated made;
        struct assay_message message;
        int64_t slot[2];
        snprintf(text, sizeof(text), "mla_sparse_decode %s", rows[i].keys);
        generate(&made, text);
        find_slots(&made, rows[i].indices, slot);
        assay_buffers_close(&made.buffers);
        for (int way = 0; way < 4; way++) {
            const int64_t at = slot[way & 1];
            const enum assay_status status =
                status_with_scale(rows[i].keys, rows[i].cache, at / 64,
                                  at % 64 * rows[i].record + rows[i].scale, rows[i].width,
                                  way & 2 ? rows[i].number : rows[i].nan, &message);
            ck_assert_msg(status == (way ? ASSAY_RAN : ASSAY_REFUSED), "%s, way %d: %s",
                          rows[i].keys, way, message.text);
            if (way == 0) ck_assert(strstr(message.text, "scale 1 of the token at slot"));
        }
    }
}
END_TEST

/* --- outputs that are known without a softmax -------------------------------------- */

static const char *const known_keys[] = {
    "kv=v32 b=2 h_q=64 s_q=2 topk=192 sink=1",
    "kv=v32 b=1 topk=64 invalid=0.4 page_size=53",
    "kv=model1 b=3 h_q=64 topk=128 topk_length=0,1,65 extra_topk=64 invalid=0.1",
    "kv=v41 b=2 h_q=64 topk=64 s_kv=37 extra_topk=128 extra_kv=v41_fp4 sink=1",
    "kv=v41 b=2 h_q=64 topk=64 topk_length=0 extra_topk=128 extra_kv=v41_fp4",
    "kv=model1 b=1 h_q=64 topk=320 softmax_scale=0.003",
};
enum { KNOWN = sizeof(known_keys) / sizeof(known_keys[0]) };

/* Runs the model on a generated case. */
static void compute(struct generated *made, const char *text)
{
    static _Alignas(max_align_t) char problem[ASSAY_MAX_PROBLEM_BYTES];
    struct assay_message message;
    generate(made, text);
    const struct assay_operation *const operation = made->the_case.operation;
    ck_assert(operation->bind(&made->the_case, problem, &message) == ASSAY_RAN);
    ck_assert(assay_run_model(operation, problem,
                              operation->default_numerics(problem)->numerics,
                              &made->tensors) == ASSAY_RAN);
}

static bool is_row(const uint16_t *out, const double *value)
{
    for (int i = 0; i < D_V; i++)
        if (bf16_value(out[i]) != value[i]) return false;
    return true;
}

START_TEST(a_needle_gives_its_v_row_to_the_bit)
{
    static const char *const plans[] = { "whole", "scheduler", "blocks", "random" };
    static double value[MAX_KEYS][D_V];
    for (int i = 0; i < KNOWN * 4; i++) {
        char text[300];
        struct generated made;
        snprintf(text, sizeof(text), "mla_sparse_decode %s plan=%s data=needle seed=%d",
                 known_keys[i / 4], plans[i % 4], i);
        compute(&made, text);
        const int64_t h_q = key_of(&made, "h_q");
        const uint16_t *out = tensor_of(&made, "out")->data;
        for (int64_t row = 0; row < key_of(&made, "b") * key_of(&made, "s_q"); row++) {
            const int count = attended_values(&made, row, value);
            int winner = 0;
            while (winner < count && !is_row(out, value[winner]))
                winner++;
            ck_assert_msg(winner < count || count == 0, "%s, row %lld", text,
                          (long long)row);
            for (int64_t head = 0; head < h_q; head++, out += D_V)
                ck_assert(count == 0 || is_row(out, value[winner]));
        }
        assay_buffers_close(&made.buffers);
    }
}
END_TEST

/* bf16 nearest to a double, ties to even; normal numbers and 0 only. */
static double rounded_to_bf16(double value)
{
    int exponent;
    if (value == 0) return 0;
    const double significand = frexp(value, &exponent);
    return ldexp(nearbyint(ldexp(significand, 8)), exponent - 8);
}

START_TEST(exact_data_gives_the_mean_of_v_rounded_once)
{
    static double value[MAX_KEYS][D_V];
    for (int i = 0; i < KNOWN; i++) {
        char text[300];
        struct generated made;
        snprintf(text, sizeof(text), "mla_sparse_decode %s plan=whole data=exact seed=%d",
                 known_keys[i], i);
        compute(&made, text);
        const uint16_t *out = tensor_of(&made, "out")->data;
        for (int64_t row = 0; row < key_of(&made, "b") * key_of(&made, "s_q"); row++) {
            const int count = attended_values(&made, row, value);
            ck_assert_int_eq(count & (count - 1), 0);
            for (int64_t at = 0; at < key_of(&made, "h_q") * D_V; at++, out++) {
                double sum = 0;
                for (int key = 0; key < count; key++)
                    sum += value[key][at % D_V];
                ck_assert(bf16_value(*out) == (count ? rounded_to_bf16(sum / count) : 0));
            }
        }
        assay_buffers_close(&made.buffers);
    }
}
END_TEST

/* --- verdicts ---------------------------------------------------------------------- */

static uint64_t out_hash(const char *text)
{
    struct generated made;
    compute(&made, text);
    const uint64_t hash = assay_tensor_hash(tensor_of(&made, "out")) * 31 +
                          assay_tensor_hash(tensor_of(&made, "lse"));
    assay_buffers_close(&made.buffers);
    return hash;
}

START_TEST(pages_padding_and_ignored_tables_change_no_output)
{
    static const char *const kvs[] = { "kv=v32 scales=any", "kv=model1 topk_length=70",
                                       "kv=v41 extra_topk=64 extra_kv=v41_fp4" };
    static const char *const ways[] = { "page_size=61", "page_size=2 page_padding=16",
                                        "pages=9", "tables=1" };
    for (int kv = 0; kv < 3; kv++) {
        char text[300];
        snprintf(text, sizeof(text),
                 "mla_sparse_decode b=2 h_q=64 topk=128 invalid=0.2 %s", kvs[kv]);
        const uint64_t hash = out_hash(text);
        for (int way = 0; way < 4; way++) {
            snprintf(text, sizeof(text),
                     "mla_sparse_decode b=2 h_q=64 topk=128 invalid=0.2 %s %s", kvs[kv],
                     ways[way]);
            ck_assert_msg(out_hash(text) == hash, "%s", text);
        }
    }
}
END_TEST

static int64_t flipped_element;

static void flip(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const out = assay_tensors_find(tensors, "out");
    assay_tensor_set_bits(out, flipped_element,
                          assay_tensor_bits(out, flipped_element) ^ 1);
}

START_TEST(one_wrong_bit_of_an_exact_output_is_outside)
{
    static const char *const kinds[] = { "exact", "needle" };
    for (int i = 0; i < 2; i++) {
        char text[200];
        snprintf(
            text, sizeof(text),
            "mla_sparse_decode kv=model1 b=2 s_q=2 h_q=64 topk=64 plan=whole data=%s",
            kinds[i]);
        struct assay_result result = result_of(text, "", NULL);
        ck_assert_int_eq(result.output[0].inexact, 0);
        ck_assert(result.output[0].has_exact && !result.output[1].has_exact);
        ck_assert(result.has_passed);
        assay_result_close(&result);
        flipped_element = ((1 * 2 + 1) * 64 + 7) * D_V + 300;
        result = result_of(text, "", flip);
        ck_assert_int_eq(result.verdict, ASSAY_OUTSIDE);
        ck_assert_int_eq(result.output[0].inexact, 1);
        ck_assert_int_eq(result.output[0].inexact_worst.index, flipped_element);
        ck_assert_str_eq(result.output[0].inexact_worst.place.text,
                         "request 1, token 1, head 7, columns 256-511");
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(v41_is_said_to_be_ours)
{
    struct assay_result result =
        result_of("mla_sparse_decode kv=v41 b=1 h_q=64 topk=64", "", NULL);
    ck_assert_str_eq(result.remark, "ours: no upstream sm_90 kernel");
    ck_assert(!result.is_unverified_profile);
    assay_result_close(&result);
    result = result_of("mla_sparse_decode kv=model1 b=1 h_q=64 topk=64", "", NULL);
    ck_assert_ptr_null(result.remark);
    assay_result_close(&result);
}
END_TEST

START_TEST(cases_without_a_key_are_constant_by_design)
{
    static const char *const texts[] = {
        "kv=v32 b=2 h_q=64 topk=64 invalid=1",
        "kv=model1 b=2 h_q=64 topk=64 topk_length=0",
        "kv=v41 b=1 h_q=64 topk=64 topk_length=0 extra_topk=64 extra_topk_length=0",
    };
    for (int i = 0; i < 3; i++) {
        char text[200];
        snprintf(text, sizeof(text), "mla_sparse_decode %s", texts[i]);
        struct assay_result result = result_of(text, "", NULL);
        ck_assert(result.output[0].is_constant && result.is_decisive &&
                  result.has_passed);
        assay_result_close(&result);
    }
}
END_TEST

/* Floors above half of what the model reaches: a doubled bound fails. */
START_TEST(bounds_are_tight)
{
    static const struct {
        const char *keys;
        double out, lse;
    } rows[] = {
        { "kv=v32 b=1 h_q=64 topk=64 scales=any data=positive", 0.9, 0.9 },
        { "kv=v32 b=1 h_q=64 topk=64 scales=any softmax_scale=0.000001", 0.25, 0.07 },
        { "kv=v32 b=1 h_q=64 topk=128 data=positive", 0.9, 0.03 },
        { "kv=model1 b=2 h_q=64 topk=128 sink=1 data=positive", 0.9, 0.03 },
        { "kv=v41 b=1 h_q=64 topk=64 extra_topk=64 extra_kv=v41_fp4 data=positive", 0.9,
          0.015 },
        { "kv=model1 b=2 h_q=64 topk=128 data=subnormal", 0.9, 0.02 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[200];
        snprintf(text, sizeof(text), "mla_sparse_decode %s", rows[i].keys);
        struct assay_result result = result_of(text, "", NULL);
        const double out = result.output[0].max_error_over_bound;
        const double lse = result.output[1].max_error_over_bound;
        ck_assert_msg(out >= rows[i].out && out <= 1, "%s: out %g", text, out);
        ck_assert_msg(lse >= rows[i].lse && lse <= 1, "%s: lse %g", text, lse);
        assay_result_close(&result);
    }
}
END_TEST

START_TEST(random_cases_are_decisive_and_within_the_bound)
{
    expect_drawn_cases_to_pass("mla_sparse_decode", 100, 1 << 24, 1 << 24);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        illegal_cases_are_refused_with_a_sentence,
        keys_without_a_meaning_are_refused_by_the_parser,
        contents_no_kernel_may_get_are_refused_unless_unsafe,
        indices_of_the_extra_cache_are_checked_against_it,
        nan_scales_are_refused_where_somebody_attends,
        a_needle_gives_its_v_row_to_the_bit,
        exact_data_gives_the_mean_of_v_rounded_once,
        pages_padding_and_ignored_tables_change_no_output,
        one_wrong_bit_of_an_exact_output_is_outside,
        v41_is_said_to_be_ours,
        cases_without_a_key_are_constant_by_design,
        bounds_are_tight,
        random_cases_are_decisive_and_within_the_bound,
        NULL,
    };
    return run_tests("mla_sparse_decode", tests);
}
