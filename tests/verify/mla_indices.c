/* SPDX-License-Identifier: MIT */
/* Tests of the patterns of indices= of both sparse operations, read from the tensors. */
#include "verify/operation/mla/mla_indices.h"

#include "tests/harness.h"
#include "tests/verify/mla_sparse_decode.h"
#include "verify/operation/mla/mla_data.h"

#include <stdlib.h>

enum { SCATTERED, ASCENDING, DESCENDING, REPEATED, EDGES, LAST, PATTERNS };
static const char *const names[PATTERNS] = { "scattered", "ascending", "descending",
                                             "repeated",  "edges",     "last" };

/* Decode: three requests of 300 tokens in pages of 61, two query tokens each. */
enum { ROWS = 6, TOPK = 128, TOKENS = 300, PAGE = 61, SLOTS = PAGE * 18, SEED = 5 };
static const int decode_length[3] = { 128, 100, 7 };

static int owner[SLOTS]; /* request * TOKENS + token; -1: nobody */

static void find_owners(const char *k_cache, int64_t slots)
{
    ck_assert_int_eq(slots, SLOTS);
    memset(owner, -1, sizeof(owner));
    for (int i = 0; i < 3 * TOKENS; i++)
        owner[assay_mla_shuffled(SEED, k_cache, SLOTS, i)] = i;
}

static void generate_decode(struct generated *made, int pattern, const char *rest)
{
    char text[250];
    snprintf(text, sizeof(text),
             "mla_sparse_decode kv=model1 b=3 h_q=64 s_q=2 topk=128 s_kv=300 "
             "page_size=61 topk_length=128,100,7 indices=%s seed=5 %s",
             names[pattern], rest);
    generate(made, text);
    find_owners("k_cache", tensor_of(made, "k_cache")->shape[0] * PAGE);
}

static int compare(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static bool is_in_order(const int32_t *index, int count, int direction)
{
    for (int i = 1; i < count; i++)
        if (direction * compare(&index[i - 1], &index[i]) > 0) return false;
    return true;
}

/* Valid indices of a list, in its order; returns their number. */
static int valid_of(const int32_t *index, int length, int64_t end, int32_t *valid)
{
    int count = 0;
    for (int i = 0; i < length; i++)
        if (index[i] >= 0 && index[i] < end) valid[count++] = index[i];
    return count;
}

static int distinct(const int32_t *valid, int count)
{
    int32_t sorted[2 * TOPK];
    int different = count > 0;
    memcpy(sorted, valid, (size_t)count * sizeof(*valid));
    qsort(sorted, (size_t)count, sizeof(*sorted), compare);
    for (int i = 1; i < count; i++)
        different += sorted[i] != sorted[i - 1];
    return different;
}

START_TEST(lists_of_decode_name_tokens_of_their_request_or_nobody)
{
    for (int pattern = 0; pattern < PATTERNS; pattern++) {
        struct generated made;
        int invalid = 0, all = 0;
        generate_decode(&made, pattern, "invalid=0.25");
        const int32_t *const index = tensor_of(&made, "indices")->data;
        for (int row = 0; row < ROWS; row++)
            for (int i = 0; i < TOPK; i++) {
                const int32_t slot = index[row * TOPK + i];
                if (i >= decode_length[row / 2]) {
                    ck_assert(slot != -1 && (slot < 0 || slot >= SLOTS));
                    continue;
                }
                all++;
                invalid += slot == -1;
                ck_assert(slot == -1 || (slot >= 0 && owner[slot] / TOKENS == row / 2));
            }
        ck_assert_msg(invalid > all / 5 && invalid < 4 * all / 5, "%s: %d of %d",
                      names[pattern], invalid, all);
        assay_buffers_close(&made.buffers);
    }
}
END_TEST

/* The indices of scattered lists, those of -1 where they were. */
START_TEST(sorted_lists_are_the_scattered_ones_in_order)
{
    struct generated made[3];
    for (int pattern = 0; pattern < 3; pattern++)
        generate_decode(&made[pattern], pattern, "invalid=0.25");
    for (int row = 0; row < ROWS; row++) {
        const int length = decode_length[row / 2];
        int32_t valid[3][TOPK];
        int count[3];
        for (int pattern = 0; pattern < 3; pattern++) {
            const int32_t *const index =
                (int32_t *)tensor_of(&made[pattern], "indices")->data + row * TOPK;
            const int32_t *const scattered =
                (int32_t *)tensor_of(&made[0], "indices")->data + row * TOPK;
            for (int i = 0; i < TOPK; i++)
                ck_assert(i < length ? (index[i] == -1) == (scattered[i] == -1)
                                     : index[i] == scattered[i]);
            count[pattern] = valid_of(index, length, SLOTS, valid[pattern]);
        }
        ck_assert(is_in_order(valid[ASCENDING], count[1], 1));
        ck_assert(is_in_order(valid[DESCENDING], count[2], -1));
        ck_assert(count[0] < 9 || !is_in_order(valid[SCATTERED], count[0], 1));
        for (int pattern = 0; pattern < 3; pattern++) {
            qsort(valid[pattern], (size_t)count[pattern], sizeof(int32_t), compare);
            ck_assert_int_eq(count[pattern], count[0]);
            ck_assert_mem_eq(valid[pattern], valid[0], (size_t)count[0] * 4);
        }
    }
    for (int pattern = 0; pattern < 3; pattern++)
        assay_buffers_close(&made[pattern].buffers);
}
END_TEST

START_TEST(repeated_lists_name_up_to_four_tokens_and_last_ones_one)
{
    struct generated repeated, last;
    generate_decode(&repeated, REPEATED, "");
    generate_decode(&last, LAST, "");
    for (int row = 0; row < ROWS; row++) {
        int32_t valid[TOPK];
        const int length = decode_length[row / 2];
        const int32_t *const few =
            (int32_t *)tensor_of(&repeated, "indices")->data + row * TOPK;
        const int32_t *const one =
            (int32_t *)tensor_of(&last, "indices")->data + row * TOPK;
        ck_assert_int_eq(valid_of(few, length, SLOTS, valid), length);
        const int different = distinct(valid, length);
        ck_assert(different <= 4 && (length < 50 ? different > 1 : different == 4));
        for (int i = 0; i < length; i++)
            ck_assert_int_eq(owner[one[i]] % TOKENS, TOKENS - 1);
    }
    /* Other rows repeat other tokens. */
    const int32_t *const index = tensor_of(&repeated, "indices")->data;
    int32_t both[2 * TOPK];
    memcpy(both, index, sizeof(both));
    ck_assert_int_gt(distinct(both, 2 * TOPK), 4);
    assay_buffers_close(&repeated.buffers);
    assay_buffers_close(&last.buffers);
}
END_TEST

START_TEST(edges_are_those_of_pages_and_requests)
{
    int at_place[PAGE] = { 0 }, first = 0, last = 0, all = 0;
    struct generated made;
    generate_decode(&made, EDGES, "");
    const int32_t *const index = tensor_of(&made, "indices")->data;
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < decode_length[row / 2]; i++) {
            const int32_t slot = index[row * TOPK + i];
            const int token = owner[slot] % TOKENS;
            all++;
            first += token == 0;
            last += token == TOKENS - 1;
            if (token > 0 && token < TOKENS - 1) at_place[slot % PAGE]++;
        }
    for (int place = 0; place < PAGE; place++)
        ck_assert((at_place[place] > all / 16) == (place < 2 || place >= PAGE - 2) &&
                  (at_place[place] == 0) == (place >= 2 && place < PAGE - 2));
    ck_assert(first > all / 16 && last > all / 16 && first + last < all / 2);
    assay_buffers_close(&made.buffers);
}
END_TEST

/* Pages of one, two, three slots, requests of one token, an extra cache. */
START_TEST(small_pages_and_requests_have_lists_of_every_pattern)
{
    static const char *const rests[] = {
        "kv=v32 b=2 s_kv=1 page_size=1",
        "kv=v32 b=3 s_kv=2 page_size=2",
        "kv=model1 b=2 s_kv=5 page_size=3 pages=4",
        "kv=v41 b=2 s_kv=70 extra_topk=64 extra_kv=v41_fp4 extra_s_kv=3",
    };
    for (int i = 0; i < 4; i++)
        for (int pattern = 0; pattern < PATTERNS; pattern++) {
            char text[250];
            snprintf(text, sizeof(text),
                     "mla_sparse_decode %s h_q=64 topk=64 indices=%s sms=1", rests[i],
                     names[pattern]);
            struct assay_result result = result_of(text, "", NULL);
            ck_assert_msg(result.has_passed && result.is_decisive, "%s", text);
            assay_result_close(&result);
        }
}
END_TEST

START_TEST(lists_may_be_all_invalid_with_every_pattern)
{
    static const char *const heads[] = {
        "mla_sparse_decode kv=model1 b=2 h_q=64 topk=64 extra_topk=64",
        "mla_sparse_prefill s_q=2 h_q=64 s_kv=100 topk=128",
    };
    for (int i = 0; i < 2; i++)
        for (int pattern = 0; pattern < PATTERNS; pattern++) {
            char text[200];
            int32_t valid[2 * TOPK];
            struct generated made;
            snprintf(text, sizeof(text), "%s invalid=1 indices=%s", heads[i],
                     names[pattern]);
            struct assay_result result = result_of(text, "", NULL);
            ck_assert_msg(result.has_passed && result.is_decisive, "%s", text);
            for (int output = 0; output < result.output_count; output++)
                ck_assert(result.output[output].is_constant);
            assay_result_close(&result);
            generate(&made, text);
            const struct assay_tensor *const indices = tensor_of(&made, "indices");
            ck_assert_int_eq(valid_of(indices->data, (int)assay_tensor_elements(indices),
                                      i ? 100 : INT64_MAX, valid),
                             0);
            assay_buffers_close(&made.buffers);
        }
}
END_TEST

/* --- prefill ---------------------------------------------------------------------- */

enum { KEYS = 200, TOKENS_OF_PREFILL = 4, LENGTH = 100 };

static void generate_prefill(struct generated *made, int pattern)
{
    char text[200];
    snprintf(text, sizeof(text),
             "mla_sparse_prefill s_q=4 h_q=64 s_kv=200 d_qk=512 topk=128 "
             "topk_length=100 invalid=0.25 indices=%s seed=5",
             names[pattern]);
    generate(made, text);
}

static bool is_edge(int32_t key)
{
    return key == 0 || key == KEYS - 1 || key % 64 <= 1 || key % 64 == 63;
}

START_TEST(lists_of_prefill_are_what_their_pattern_says)
{
    struct generated made[PATTERNS];
    int32_t valid[PATTERNS][TOPK];
    int count[PATTERNS], named[KEYS] = { 0 };
    for (int pattern = 0; pattern < PATTERNS; pattern++)
        generate_prefill(&made[pattern], pattern);
    const int32_t *const scattered = tensor_of(&made[0], "indices")->data;
    for (int token = 0; token < TOKENS_OF_PREFILL; token++) {
        for (int pattern = 0; pattern < PATTERNS; pattern++) {
            const int32_t *const index =
                (int32_t *)tensor_of(&made[pattern], "indices")->data + token * TOPK;
            count[pattern] = valid_of(index, LENGTH, KEYS, valid[pattern]);
            ck_assert_int_eq(count[pattern], count[0]);
            ck_assert(token > 0 || (count[0] > 50 && count[0] < 90));
            for (int i = 0; i < TOPK; i++) { /* what is outside is the same */
                const int32_t usual = scattered[token * TOPK + i];
                const bool is_valid = usual >= 0 && usual < KEYS;
                ck_assert(is_valid ? index[i] >= 0 && index[i] < KEYS
                                   : index[i] == usual);
            }
        }
        ck_assert(is_in_order(valid[ASCENDING], count[0], 1));
        ck_assert(is_in_order(valid[DESCENDING], count[0], -1));
        ck_assert(count[0] == 0 || distinct(valid[REPEATED], count[0]) == 4);
        for (int i = 0; i < count[0]; i++) {
            ck_assert(is_edge(valid[EDGES][i]));
            named[valid[EDGES][i]]++;
            ck_assert_int_eq(valid[LAST][i], KEYS - 1);
        }
        qsort(valid[SCATTERED], (size_t)count[0], sizeof(int32_t), compare);
        qsort(valid[DESCENDING], (size_t)count[0], sizeof(int32_t), compare);
        ck_assert_mem_eq(valid[SCATTERED], valid[ASCENDING], (size_t)count[0] * 4);
        ck_assert_mem_eq(valid[SCATTERED], valid[DESCENDING], (size_t)count[0] * 4);
    }
    for (int32_t key = 0; key < KEYS; key++)
        ck_assert_msg(is_edge(key) == (named[key] > 0), "key %d: %d", key, named[key]);
    for (int pattern = 0; pattern < PATTERNS; pattern++)
        assay_buffers_close(&made[pattern].buffers);
}
END_TEST

START_TEST(prefill_with_few_keys_has_lists_of_every_pattern)
{
    for (int s_kv = 1; s_kv < 6; s_kv++)
        for (int pattern = 0; pattern < PATTERNS; pattern++) {
            char text[200];
            snprintf(text, sizeof(text),
                     "mla_sparse_prefill s_q=2 h_q=64 s_kv=%d topk=128 indices=%s", s_kv,
                     names[pattern]);
            struct assay_result result = result_of(text, "", NULL);
            ck_assert_msg(result.has_passed && result.is_decisive, "%s", text);
            assay_result_close(&result);
        }
}
END_TEST

/* --- cases ------------------------------------------------------------------------ */

static const char *const operations[] = {
    "mla_sparse_decode kv=v32 b=2 h_q=64 topk=64 plan=whole",
    "mla_sparse_prefill s_q=2 h_q=64 s_kv=200 topk=128",
};

START_TEST(needle_and_ties_want_lists_of_their_own)
{
    for (int i = 0; i < 2; i++)
        for (int pattern = 0; pattern < PATTERNS; pattern++)
            for (int kind = 0; kind < ASSAY_DATA_RECORDED; kind++) {
                static _Alignas(16) char problem[ASSAY_MAX_PROBLEM_BYTES];
                char text[200], sentence[200];
                struct assay_message message;
                const char *const data = assay_data_kinds[kind].name;
                const bool is_refused =
                    pattern >= REPEATED &&
                    (kind == ASSAY_DATA_TIES || kind == ASSAY_DATA_NEEDLE);
                snprintf(text, sizeof(text), "%s data=%s indices=%s", operations[i], data,
                         names[pattern]);
                const struct assay_case the_case = parsed(text);
                ck_assert_int_eq(the_case.operation->bind(&the_case, problem, &message),
                                 is_refused ? ASSAY_REFUSED : ASSAY_RAN);
                if (!is_refused) continue;
                snprintf(sentence, sizeof(sentence),
                         "data=%s says itself which tokens are named, which indices=%s "
                         "does as well; use indices=scattered, ascending or descending",
                         data, names[pattern]);
                ck_assert_str_eq(message.text, sentence);
            }
}
END_TEST

/* Their promise holds with all patterns they may have. */
START_TEST(exact_and_needle_data_stay_exact)
{
    static const char *const kinds[] = { "exact", "needle" };
    for (int i = 0; i < 2; i++)
        for (int kind = 0; kind < 2; kind++)
            for (int pattern = 0; pattern < (kind ? REPEATED : PATTERNS); pattern++) {
                char text[200];
                snprintf(text, sizeof(text), "%s data=%s indices=%s", operations[i],
                         kinds[kind], names[pattern]);
                struct assay_result result = result_of(text, "", NULL);
                ck_assert_msg(result.has_passed && result.is_decisive, "%s", text);
                ck_assert_msg(result.model_inexact == 0, "%s", text);
                assay_result_close(&result);
            }
}
END_TEST

START_TEST(the_key_is_the_last_one_and_its_default_is_left_out)
{
    static const char *const rests[] = { "lse=base2 indices=last", "lse=base2" };
    for (int i = 0; i < 2; i++)
        for (int is_given = 0; is_given < 2; is_given++) {
            char text[200], line[ASSAY_MAX_CASE_LINE];
            snprintf(text, sizeof(text), "%s %s data=runs seed=1", operations[i],
                     rests[!is_given]);
            struct assay_case the_case = parsed(text);
            assay_case_format(&the_case, line, sizeof(line));
            ck_assert_str_eq(line, text);
            snprintf(text, sizeof(text), "%s indices=scattered seed=1", operations[i]);
            the_case = parsed(text);
            assay_case_format(&the_case, line, sizeof(line));
            ck_assert_ptr_null(strstr(line, "indices"));
        }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        lists_of_decode_name_tokens_of_their_request_or_nobody,
        sorted_lists_are_the_scattered_ones_in_order,
        repeated_lists_name_up_to_four_tokens_and_last_ones_one,
        edges_are_those_of_pages_and_requests,
        small_pages_and_requests_have_lists_of_every_pattern,
        lists_may_be_all_invalid_with_every_pattern,
        lists_of_prefill_are_what_their_pattern_says,
        prefill_with_few_keys_has_lists_of_every_pattern,
        needle_and_ties_want_lists_of_their_own,
        exact_and_needle_data_stay_exact,
        the_key_is_the_last_one_and_its_default_is_left_out,
        NULL,
    };
    return run_tests("mla_indices", tests);
}
