/* SPDX-License-Identifier: MIT */
/* Tests of the inputs that mla_sparse_decode generates. */
#include "tests/harness.h"
#include "tests/verify/mla_sparse_decode.h"

START_TEST(indices_name_different_slots_of_their_request_or_nobody)
{
    struct generated made;
    generate(&made,
             "mla_sparse_decode kv=model1 b=4 s_q=2 topk=192 s_kv=300 invalid=0.25 "
             "page_size=61 topk_length=192,100,0,65 seed=5");
    const int32_t *const indices = tensor_of(&made, "indices")->data;
    static const int lengths[] = { 192, 100, 0, 65 };
    int owner[61 * 23]; /* ceil(4 * 300 / 61) and 3 more pages */
    int positions = 0, invalid = 0, repeated = 0, garbage = 0;
    ck_assert_int_eq(tensor_of(&made, "k_cache")->shape[0], 23);
    memset(owner, -1, sizeof(owner));
    for (int row = 0; row < 8; row++) {
        bool is_named[61 * 23] = { false };
        int named = 0;
        for (int i = 0; i < 192; i++) {
            const int32_t slot = indices[row * 192 + i];
            if (i >= lengths[row / 2]) {
                garbage += slot < -1 || slot >= 61 * 23;
                continue;
            }
            positions++;
            invalid += slot == -1;
            if (slot == -1) continue;
            ck_assert(slot >= 0 && slot < 61 * 23);
            ck_assert(owner[slot] == -1 || owner[slot] == row / 2);
            owner[slot] = row / 2;
            repeated += is_named[slot];
            is_named[slot] = true;
            named++;
        }
        ck_assert(row > 0 || named > 0);
    }
    ck_assert_int_eq(positions, 2 * (192 + 100 + 65));
    ck_assert(invalid > 100 && invalid < 350);
    ck_assert(repeated > 5 && repeated < 60);
    ck_assert_int_eq(garbage, 8 * 192 - positions);
    assay_buffers_close(&made.buffers);
}
END_TEST

/* Sums over tokens of a hash of their bytes, so that place does not matter. */
static uint64_t tokens_hash(const struct reader *reader, int64_t tokens)
{
    const int64_t slots = reader->k_cache->shape[0] * reader->page_size;
    int64_t used = 0;
    uint64_t sum = 0;
    for (int64_t slot = 0; slot < slots; slot++) {
        unsigned char bytes[MAX_TOKEN_BYTES];
        const int count = gather_bytes(reader, slot, bytes);
        uint64_t hash = 0xCBF29CE484222325U;
        bool is_empty = true;
        for (int i = 0; i < count; i++) {
            is_empty &= bytes[i] == 0xFF;
            hash = (hash ^ bytes[i]) * 0x100000001B3U;
        }
        if (is_empty) continue;
        used++;
        sum += hash;
    }
    ck_assert_int_eq(used, tokens);
    return sum;
}

/* Unused slots are all NaN: just the tokens of the requests are not. */
START_TEST(tokens_depend_on_request_and_token_and_not_on_pages)
{
    static const char *const kvs[] = { "v32", "model1", "v41" };
    static const char *const layouts[] = { "", "page_size=61 page_padding=48",
                                           "page_size=2", "pages=20 h_q=64 topk=192" };
    for (int kv = 0; kv < 3; kv++) {
        uint64_t hash[4], smaller;
        char text[200];
        struct generated made;
        for (int i = 0; i < 4; i++) {
            snprintf(text, sizeof(text), "mla_sparse_decode kv=%s b=2 %s s_kv=150 %s",
                     kvs[kv], i < 3 ? "topk=128" : "", layouts[i]);
            generate(&made, text);
            const struct reader reader = reader_of(&made, false);
            hash[i] = tokens_hash(&reader, 300);
            ck_assert_uint_eq(hash[i], hash[0]);
            assay_buffers_close(&made.buffers);
        }
        snprintf(text, sizeof(text), "mla_sparse_decode kv=%s b=1 topk=64 s_kv=100",
                 kvs[kv]);
        generate(&made, text);
        struct reader reader = reader_of(&made, false);
        smaller = tokens_hash(&reader, 100);
        assay_buffers_close(&made.buffers);
        snprintf(text, sizeof(text), "mla_sparse_decode kv=%s b=1 topk=64 s_kv=101",
                 kvs[kv]);
        generate(&made, text);
        reader = reader_of(&made, false);
        const uint64_t added = tokens_hash(&reader, 101) - smaller;
        ck_assert(added != 0);
        assay_buffers_close(&made.buffers);
    }
}
END_TEST

START_TEST(fewer_heads_and_requests_keep_their_queries)
{
    enum { ROWS = 64 * 576 }; /* elements of 64 heads */
    struct generated large, small;
    generate(&large, "mla_sparse_decode kv=v32 b=2 s_q=2 topk=64");
    generate(&small, "mla_sparse_decode kv=v32 b=1 s_q=2 h_q=64 topk=64");
    const uint16_t *const many = tensor_of(&large, "q")->data;
    const uint16_t *const few = tensor_of(&small, "q")->data;
    for (int token = 0; token < 2; token++)
        ck_assert_mem_eq(many + 2 * token * ROWS, few + token * ROWS,
                         ROWS * sizeof(*few));
    for (int i = 1; i < 8; i++)
        ck_assert(memcmp(many, many + i * ROWS, ROWS * sizeof(*many)) != 0);
    assay_buffers_close(&large.buffers);
    assay_buffers_close(&small.buffers);
}
END_TEST

START_TEST(lengths_are_those_of_the_case)
{
    static const struct {
        const char *keys;
        int32_t length[3], extra[3];
    } rows[] = {
        { "topk_length=5 extra_topk_length=0,1,64", { 5, 5, 5 }, { 0, 1, 64 } },
        { "topk_length=64,0,7 extra_topk_length=9", { 64, 0, 7 }, { 9, 9, 9 } },
        { "topk_length=1,2,3 extra_topk_length=4,5,6", { 1, 2, 3 }, { 4, 5, 6 } },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[200];
        struct generated made;
        snprintf(text, sizeof(text),
                 "mla_sparse_decode kv=model1 b=3 topk=64 extra_topk=64 %s",
                 rows[i].keys);
        generate(&made, text);
        ck_assert_mem_eq(tensor_of(&made, "topk_length")->data, rows[i].length, 12);
        ck_assert_mem_eq(tensor_of(&made, "extra_topk_length")->data, rows[i].extra, 12);
        assay_buffers_close(&made.buffers);
    }
}
END_TEST

START_TEST(padding_and_pad_bytes_are_nan)
{
    struct generated made;
    generate(&made,
             "mla_sparse_decode kv=model1 b=1 topk=64 page_size=61 page_padding=32");
    const struct assay_tensor *const k_cache = tensor_of(&made, "k_cache");
    const unsigned char *const bytes = k_cache->data;
    ck_assert_int_eq(k_cache->shape[1], 61 * 584);
    ck_assert_int_eq(k_cache->stride[0], 61 * 584 + 8 + 32); /* to 16 bytes, and 32 */
    for (int64_t page = 0; page < k_cache->shape[0]; page++) {
        for (int64_t i = k_cache->shape[1]; i < k_cache->stride[0]; i++)
            ck_assert_uint_eq(bytes[page * k_cache->stride[0] + i], 0xFF);
        for (int64_t token = 0; token < 61; token++)
            ck_assert_uint_eq(bytes[page * k_cache->stride[0] + 61 * 576 + 8 * token + 7],
                              0xFF);
    }
    assay_buffers_close(&made.buffers);
}
END_TEST

/* Frozen with data version 1: generated inputs never change. */
START_TEST(generated_caches_are_the_same_everywhere)
{
    static const uint64_t frozen[ASSAY_DATA_RECORDED][2] = {
        { 0x4843f039491418a2, 0x76b54d174644351f }, /* normal */
        { 0xcf0e22ff9976adc2, 0x76b54d174644351f }, /* uniform */
        { 0xb331dec18f02a9a8, 0x76b54d174644351f }, /* wide */
        { 0xb04ea2040b170b17, 0x76b54d174644351f }, /* outlier */
        { 0xcda5603e5cbf7f3a, 0x76b54d174644351f }, /* cancel */
        { 0x783167790dcfe185, 0x76b54d174644351f }, /* subnormal */
        { 0x7e4a7cae11f51c5e, 0x76b54d174644351f }, /* special */
        { 0x3f63d7bd39701c87, 0x421a3d2c0d5a386e }, /* ties */
        { 0x1cf817bb83f3ed56, 0x76b54d174644351f }, /* positive */
        { 0x90dc9a899bef59e7, 0x77f273a8c84ae1e6 }, /* exact */
        { 0x8bb44733df0a6cd5, 0x76b54d174644351f }, /* runs */
        { 0xdec69d505223337a, 0x76b54d174644351f }, /* zero */
        { 0x93ac119429452385, 0x4859b3f7b67d58fb }, /* needle */
    };
    for (int kind = 0; kind < ASSAY_DATA_RECORDED; kind++) {
        char text[200];
        struct generated made;
        uint64_t hash[2] = { 0, 0 };
        static const char *const keys[] = {
            "kv=v32 b=2 topk=128 invalid=0.2", "kv=model1 b=2 topk=64 topk_length=9,64",
            "kv=v41 b=2 topk=64 s_kv=70 extra_topk=64 extra_kv=v41_fp4"
        };
        for (int i = 0; i < 3; i++) {
            snprintf(text, sizeof(text), "mla_sparse_decode %s plan=whole data=%s seed=7",
                     keys[i], assay_data_kinds[kind].name);
            generate(&made, text);
            hash[0] = hash[0] * 31 + assay_tensor_hash(tensor_of(&made, "k_cache"));
            hash[1] = hash[1] * 31 + assay_tensor_hash(tensor_of(&made, "indices"));
            if (i == 2)
                hash[0] =
                    hash[0] * 31 + assay_tensor_hash(tensor_of(&made, "extra_k_cache"));
            assay_buffers_close(&made.buffers);
        }
        ck_assert_msg(hash[0] == frozen[kind][0] && hash[1] == frozen[kind][1],
                      "{ 0x%016llx, 0x%016llx }, /* %s */", (unsigned long long)hash[0],
                      (unsigned long long)hash[1], assay_data_kinds[kind].name);
    }
}
END_TEST

START_TEST(ties_are_ties)
{
    static double value[MAX_KEYS][D_V];
    struct generated made;
    int ties = 0;
    generate(&made, "mla_sparse_decode kv=v32 b=1 topk=64 data=ties");
    const int count = attended_values(&made, 0, value);
    ck_assert_int_eq(count, 32);
    for (int i = 0; i < D_V; i++) {
        int exponent;
        double sum = 0;
        for (int key = 0; key < count; key++)
            sum += value[key][i];
        const double scaled = ldexp(frexp(sum, &exponent), 8);
        ties += scaled != floor(scaled) && 2 * scaled == floor(2 * scaled);
    }
    ck_assert_int_gt(ties, D_V / 4);
    assay_buffers_close(&made.buffers);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        indices_name_different_slots_of_their_request_or_nobody,
        tokens_depend_on_request_and_token_and_not_on_pages,
        fewer_heads_and_requests_keep_their_queries,
        lengths_are_those_of_the_case,
        padding_and_pad_bytes_are_nan,
        generated_caches_are_the_same_everywhere,
        ties_are_ties,
        NULL,
    };
    return run_tests("mla_sparse_decode_data", tests);
}
