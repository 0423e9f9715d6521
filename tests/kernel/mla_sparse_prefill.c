/* SPDX-License-Identifier: MIT */
/* Sparse prefill against tiles whose keys this test gathers by itself: indices of every
 * kind, lengths, strides, sinks. */
#include "ref/kernel/mla_sparse_prefill.h"

#include "tests/kernel/key_list.h"

#include <limits.h>

enum {
    S_Q = 3,
    HEADS = 128,
    S_KV = 150,
    MAX_TOPK = 384,
    KV_STRIDE = 592,
    ROWS = S_Q * HEADS,
    OUT_STRIDE = D_V + 8
};
static const uint16_t nan_code = 0x7FFF;

static struct fixture {
    struct assay_mla_sparse_prefill_problem problem;
    struct assay_mla_numerics numerics;
    struct assay_tensors tensors;
    uint16_t q[ROWS * 576], kv[S_KV * KV_STRIDE];
    int32_t indices[S_Q * MAX_TOPK], topk_length[S_Q];
    float sink[HEADS];
    uint16_t out[ROWS * OUT_STRIDE];
    float max_logits[ROWS], lse[ROWS];
} fixture;

static struct assay_tensor *add(const char *name, enum assay_format format, void *data,
                                int rank, const int64_t *shape)
{
    struct assay_tensor *const tensor = &fixture.tensors.item[fixture.tensors.count++];
    *tensor = (struct assay_tensor){ .name = name, .format = format, .data = data };
    tensor->rank = rank;
    memcpy(tensor->shape, shape, (size_t)rank * sizeof(shape[0]));
    assay_tensor_set_dense(tensor);
    return tensor;
}

static void add_tensors(void)
{
    const struct assay_mla_sparse_prefill_problem *const p = &fixture.problem;
    const int64_t q[] = { S_Q, p->h_q, p->d_qk }, out[] = { S_Q, p->h_q, D_V };
    const int64_t kv[] = { S_KV, 1, p->d_qk }, indices[] = { S_Q, 1, p->topk };
    const int64_t rows[] = { S_Q, p->h_q }, heads[] = { p->h_q };
    fixture.tensors.count = 0;
    add("q", ASSAY_BF16, fixture.q, 3, q);
    struct assay_tensor *const keys = add("kv", ASSAY_BF16, fixture.kv, 3, kv);
    keys->stride[0] = keys->stride[1] = KV_STRIDE;
    add("indices", ASSAY_I32, fixture.indices, 3, indices);
    if (p->has_topk_length)
        add("topk_length", ASSAY_I32, fixture.topk_length, 1, indices);
    if (p->has_sink) add("attn_sink", ASSAY_F32, fixture.sink, 1, heads);
    struct assay_tensor *const output = add("out", ASSAY_BF16, fixture.out, 3, out);
    output->stride[1] = OUT_STRIDE;
    output->stride[0] = p->h_q * OUT_STRIDE;
    add("max_logits", ASSAY_F32, fixture.max_logits, 2, rows);
    add("lse", ASSAY_F32, fixture.lse, 2, rows);
}

/* A fifth of the indices is invalid, in every way there is. */
static void prepare(int64_t h_q, int64_t d_qk, int64_t topk)
{
    static const int32_t invalid[] = { INT_MIN, -123456, -1,         S_KV,
                                       114514,  1919810, 2147480000, INT_MAX };
    memset(&fixture, 0, sizeof(fixture));
    random_state = 70000;
    fixture.numerics = assay_mla_flashmla_sparse_prefill;
    fixture.problem = (struct assay_mla_sparse_prefill_problem){
        .s_q = S_Q,
        .h_q = h_q,
        .s_kv = S_KV,
        .d_qk = d_qk,
        .topk = topk,
        .kv_stride = KV_STRIDE,
        .softmax_scale = 1.0f / 24.0f,
    };
    draw_codes(fixture.q, ROWS * 576, 6.0f);
    for (int64_t i = 0; i < S_KV * KV_STRIDE; i++)
        fixture.kv[i] = i % KV_STRIDE < d_qk ? bf16_code(draw_uniform(1.0f)) : nan_code;
    for (int i = 0; i < S_Q * topk; i++)
        fixture.indices[i] = draw() % 5 ? (int32_t)(draw() % S_KV) : invalid[draw() % 8];
    for (int i = 0; i < HEADS; i++)
        fixture.sink[i] = draw_uniform(3.0f);
    memset(fixture.out, 0x5A, sizeof(fixture.out));
    add_tensors();
}

static void run(void)
{
    for (int64_t i = 0; i < assay_mla_sparse_prefill_parts(&fixture.problem); i++)
        ck_assert(assay_mla_sparse_prefill_model(&fixture.problem, &fixture.numerics,
                                                 &fixture.tensors, i));
}

/* --- expectation ------------------------------------------------------------------ */

static struct key_list list;
static struct results results;

/* As many keys as indices count, so that the number of blocks is the kernel's. */
static struct assay_mla_query gather(int token, int64_t first_head)
{
    const struct assay_mla_sparse_prefill_problem *const p = &fixture.problem;
    struct assay_mla_query query = {
        .numerics = &fixture.numerics,
        .format = ASSAY_BF16,
        .rows = 64,
        .d_qk = (int)p->d_qk,
        .softmax_scale = p->softmax_scale,
        .is_base_two = p->is_base_two,
        .sink = p->has_sink ? fixture.sink + first_head : NULL,
        .keys = { &list, load_from_list },
    };
    memset(&list, 0, sizeof(list));
    list.count = p->has_topk_length ? fixture.topk_length[token] : (int)p->topk;
    for (int key = 0; key < list.count; key++) {
        const int32_t index = fixture.indices[token * p->topk + key];
        if (index < 0 || index >= S_KV) continue;
        memcpy(list.key[key], fixture.kv + index * KV_STRIDE,
               (size_t)p->d_qk * sizeof(uint16_t));
        for (int row = 0; row < KEY_ROWS; row++)
            list.attended[row][key] = true;
    }
    for (int row = 0; row < 64; row++)
        query.q[row] = fixture.q + (token * p->h_q + first_head + row) * p->d_qk;
    return query;
}

static void run_and_assert(void)
{
    const int64_t h_q = fixture.problem.h_q;
    run();
    for (int token = 0; token < S_Q; token++)
        for (int64_t head = 0; head < h_q; head += 64) {
            const struct assay_mla_query query = gather(token, head);
            attend(&query, 0, blocks_of_list(&list), &results);
            for (int row = 0; row < 64; row++) {
                const int64_t at = token * h_q + head + row;
                const uint16_t *const out = fixture.out + at * OUT_STRIDE;
                ck_assert(same_bits(out, results.out[row], sizeof(results.out[row])));
                ck_assert_uint_eq(out[D_V], 0x5A5A);
                ck_assert_uint_eq(bits_of(fixture.lse[at]), bits_of(results.lse[row]));
                ck_assert_uint_eq(bits_of(fixture.max_logits[at]),
                                  bits_of(results.max_logits[row]));
            }
        }
}

/* --- tests ------------------------------------------------------------------------ */

START_TEST(tokens_attend_to_the_keys_their_valid_indices_name)
{
    for (int64_t h_q = 64; h_q <= 128; h_q += 64)
        for (int64_t d_qk = 512; d_qk <= 576; d_qk += 64) {
            prepare(h_q, d_qk, 128);
            run_and_assert();
        }
}
END_TEST

START_TEST(lengths_end_the_list_in_the_middle_of_a_pair)
{
    static const int32_t lengths[][S_Q] = { { 384, 300, 64 },
                                            { 1, 0, 129 },
                                            { 65, 63, 192 } };
    for (int i = 0; i < 3; i++) {
        prepare(64, 576, 384);
        fixture.problem.has_topk_length = fixture.problem.has_sink = true;
        memcpy(fixture.topk_length, lengths[i], sizeof(lengths[i]));
        add_tensors();
        run_and_assert();
    }
}
END_TEST

START_TEST(base_two_reaches_lse_and_max_logits)
{
    prepare(64, 512, 128);
    fixture.problem.is_base_two = true;
    run_and_assert();
}
END_TEST

START_TEST(a_token_without_valid_indices_has_out_0_lse_infinity_and_max_minus_infinity)
{
    prepare(64, 576, 128);
    fixture.problem.has_sink = true;
    add_tensors();
    for (int i = 0; i < 128; i++)
        fixture.indices[128 + i] = i % 2 ? -1 : S_KV;
    run_and_assert();
    for (int row = 64; row < 128; row++) {
        for (int column = 0; column < D_V; column++)
            ck_assert_uint_eq(fixture.out[row * OUT_STRIDE + column], 0);
        ck_assert(fixture.lse[row] == INFINITY && fixture.max_logits[row] == -INFINITY);
    }
}
END_TEST

START_TEST(what_lies_behind_a_length_is_never_looked_at)
{
    static uint16_t out[ROWS * OUT_STRIDE];
    for (int i = 0; i < 2; i++) {
        prepare(64, 576, 128);
        fixture.problem.has_topk_length = true;
        for (int token = 0; token < S_Q; token++) {
            fixture.topk_length[token] = 70 + token;
            for (int key = 70 + token; key < 128; key++)
                fixture.indices[token * 128 + key] = i ? key : -1;
        }
        add_tensors();
        run();
        if (i == 0) memcpy(out, fixture.out, sizeof(out));
    }
    ck_assert(same_bits(out, fixture.out, sizeof(out)));
}
END_TEST

START_TEST(a_heads_bits_do_not_depend_on_the_number_of_heads)
{
    static uint16_t out[S_Q * 64 * OUT_STRIDE], q[S_Q * 64 * 576];
    prepare(128, 576, 128);
    run();
    for (int token = 0; token < S_Q; token++) {
        memcpy(out + token * 64 * OUT_STRIDE,
               fixture.out + (token * 128 + 64) * OUT_STRIDE,
               64 * OUT_STRIDE * sizeof(out[0]));
        memcpy(q + token * 64 * 576, fixture.q + (token * 128 + 64) * 576,
               64 * 576 * sizeof(q[0]));
    }
    prepare(64, 576, 128);
    memcpy(fixture.q, q, sizeof(q));
    run();
    ck_assert(same_bits(out, fixture.out, sizeof(out)));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        tokens_attend_to_the_keys_their_valid_indices_name,
        lengths_end_the_list_in_the_middle_of_a_pair,
        base_two_reaches_lse_and_max_logits,
        a_token_without_valid_indices_has_out_0_lse_infinity_and_max_minus_infinity,
        what_lies_behind_a_length_is_never_looked_at,
        a_heads_bits_do_not_depend_on_the_number_of_heads,
        NULL,
    };
    return run_tests("mla_sparse_prefill", tests);
}
