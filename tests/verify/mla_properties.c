/* SPDX-License-Identifier: MIT */
/* What holds to the bit whatever the values (FlashMLA 9241ae3 leaves no choice here):
 * powers of two pass through, masked blocks inside one split leave no trace, and a run
 * repeated is the same run. */
#include "ref/layout/mla_cache.h"
#include "tests/harness.h"
#include "tests/verify/judged_case.h"
#include "tests/verify/shaped_case.h"

enum { EXPONENT_ONE = 1 << 7 };

/* One case with its inputs, to be changed before it is run. */
struct attention {
    struct assay_case the_case;
    struct assay_tensors tensors;
    struct assay_buffers buffers;
};

static struct attention *open_attention(const char *line)
{
    struct attention *const attention = calloc(1, sizeof(*attention));
    attention->the_case = parsed(line);
    generate_case(&attention->the_case, &attention->tensors, &attention->buffers);
    return attention;
}

static void close_attention(struct attention *attention)
{
    assay_buffers_close(&attention->buffers);
    free(attention);
}

static const struct assay_tensor *tensor_of(const struct attention *attention,
                                            const char *name)
{
    const struct assay_tensor *const tensor =
        assay_tensors_find(&attention->tensors, name);
    ck_assert_msg(tensor != NULL, "%s is missing", name);
    return tensor;
}

static void run_model(struct attention *attention)
{
    static _Alignas(16) unsigned char problem[ASSAY_MAX_PROBLEM_BYTES];
    const struct assay_operation *const operation = attention->the_case.operation;
    struct assay_message message;
    ck_assert(operation->bind(&attention->the_case, problem, &message) == ASSAY_RAN);
    const void *const numerics = operation->default_numerics(problem)->numerics;
    assay_buffers_poison(&attention->tensors);
    for (int64_t part = 0; part < operation->parts(problem); part++)
        ck_assert(operation->model(problem, numerics, &attention->tensors, part) ==
                  ASSAY_RAN);
}

/* --- powers of two ------------------------------------------------------------------ */

/* The bf16 code times 2^steps; codes near the ends of the range become zero first, in
 * both cases alike. */
static uint32_t scaled(uint32_t code, int steps)
{
    const uint32_t exponent = code >> 7 & 0xFF;
    if (exponent < 8 || exponent > 247) return code & 0x8000;
    return code + (uint32_t)(steps * EXPONENT_ONE);
}

/* Zero times a power of two is what scaled() makes of tiny codes with 0 steps. */
static void scale_tensor(const struct assay_tensor *tensor, int steps)
{
    for (int64_t i = 0; i < assay_tensor_elements(tensor); i++) {
        const uint32_t code = assay_tensor_bits(tensor, i);
        const bool is_nan = (code & 0x7FFF) > 0x7F80;
        if (!is_nan) assay_tensor_set_bits(tensor, i, scaled(code, steps));
    }
}

/* Scales and RoPE of every token of a v32 cache times 2^steps. */
static void scale_v32(const struct assay_tensor *k_cache, int64_t page_size, int steps)
{
    const struct assay_mla_token_layout *const layout =
        &assay_mla_token_layouts[ASSAY_MLA_V32];
    for (int64_t slot = 0; slot < k_cache->shape[0] * page_size; slot++) {
        uint8_t *const page =
            (uint8_t *)k_cache->data + slot / page_size * k_cache->stride[0];
        struct assay_mla_token token;
        assay_mla_token_unpack(layout, page_size, slot % page_size, page, &token);
        if (token.code[0] == ASSAY_BUFFER_PADDING && token.scale[0] == UINT32_MAX)
            continue;
        for (int i = 0; i < layout->scales; i++)
            token.scale[i] += (uint32_t)steps << 23;
        for (int i = 0; i < layout->rope_dims; i++)
            token.rope[i] = (uint16_t)scaled(token.rope[i], steps);
        assay_mla_token_pack(layout, page_size, slot % page_size, &token, page);
    }
}

static void scale_keys(struct attention *attention, int steps)
{
    const bool is_v32 =
        strcmp(attention->the_case.operation->name, "mla_sparse_decode") == 0;
    const bool is_dense =
        strcmp(attention->the_case.operation->name, "mla_dense_decode") == 0;
    if (is_v32)
        scale_v32(tensor_of(attention, "k_cache"), 64, steps);
    else
        scale_tensor(tensor_of(attention, is_dense ? "k_cache" : "kv"), steps);
}

static void expect_same(const struct attention *a, const struct attention *b,
                        const char *name, int steps)
{
    const struct assay_tensor *const left = tensor_of(a, name);
    const struct assay_tensor *const right = tensor_of(b, name);
    int64_t nonzero = 0;
    ck_assert(assay_tensor_elements(left) == assay_tensor_elements(right));
    for (int64_t i = 0; i < assay_tensor_elements(left); i++) {
        const uint32_t code = assay_tensor_bits(left, i);
        const uint32_t wanted =
            code & 0x7FFF ? code + (uint32_t)(steps * EXPONENT_ONE) : code;
        nonzero += (code & 0x7FFF) != 0;
        if (assay_tensor_bits(right, i) != wanted)
            ck_abort_msg("%s: element %lld is %x, not %x", name, (long long)i,
                         assay_tensor_bits(right, i), wanted);
    }
    ck_assert(nonzero > assay_tensor_elements(left) / 2);
}

static const char *const scaled_lines[][2] = {
    { "mla_dense_decode b=3 h_q=32 s_q=2 s_k=70,200,1 causal=1 sms=6 seed=3 "
      "softmax_scale=0.0625",
      "mla_dense_decode b=3 h_q=32 s_q=2 s_k=70,200,1 causal=1 sms=6 seed=3 "
      "softmax_scale=0.125" },
    { "mla_sparse_prefill s_q=3 h_q=64 s_kv=300 topk=256 invalid=0.2 seed=4 "
      "softmax_scale=0.0625",
      "mla_sparse_prefill s_q=3 h_q=64 s_kv=300 topk=256 invalid=0.2 seed=4 "
      "softmax_scale=0.125" },
    { "mla_sparse_decode kv=v32 b=2 h_q=64 topk=192 sms=4 seed=5 "
      "softmax_scale=0.0625",
      "mla_sparse_decode kv=v32 b=2 h_q=64 topk=192 sms=4 seed=5 "
      "softmax_scale=0.125" },
};

START_TEST(half_the_query_at_twice_the_scale_is_the_same)
{
    for (int row = 0; row < 3; row++) {
        struct attention *const once = open_attention(scaled_lines[row][0]);
        struct attention *const twice = open_attention(scaled_lines[row][1]);
        scale_tensor(tensor_of(once, "q"), 0);
        scale_tensor(tensor_of(twice, "q"), -1);
        run_model(once);
        run_model(twice);
        expect_same(once, twice, "out", 0);
        expect_same(once, twice, "lse", 0);
        close_attention(once);
        close_attention(twice);
    }
}
END_TEST

START_TEST(keys_times_four_by_a_quarter_of_the_query_give_four_times_the_output)
{
    for (int row = 0; row < 3; row++) {
        struct attention *const one = open_attention(scaled_lines[row][0]);
        struct attention *const four = open_attention(scaled_lines[row][0]);
        scale_tensor(tensor_of(one, "q"), 0);
        scale_tensor(tensor_of(four, "q"), -2);
        scale_keys(one, 0);
        scale_keys(four, 2);
        run_model(one);
        run_model(four);
        expect_same(one, four, "out", 2);
        expect_same(one, four, "lse", 0);
        close_attention(one);
        close_attention(four);
    }
}
END_TEST

/* --- masked blocks ------------------------------------------------------------------ */

/* Rows of @from, indices of the longer list from @topk on set to -1. */
static void copy_indices(const struct assay_tensor *from, const struct assay_tensor *to)
{
    const int64_t rows = from->shape[0] * from->shape[1];
    const int64_t count = from->shape[2], longer = to->shape[2];
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < longer; i++)
            assay_tensor_set_bits(to, row * longer + i,
                                  i < count ? assay_tensor_bits(from, row * count + i)
                                            : UINT32_MAX);
}

static const char *const padded_lines[][3] = {
    { "mla_sparse_prefill s_q=3 h_q=64 s_kv=300 topk=128 invalid=0.2 sink=1 seed=4",
      "mla_sparse_prefill s_q=3 h_q=64 s_kv=300 topk=384 invalid=0.2 sink=1 seed=4",
      "max_logits" },
    { "mla_sparse_decode kv=v32 b=2 h_q=64 topk=128 s_kv=400 sink=1 plan=whole seed=5",
      "mla_sparse_decode kv=v32 b=2 h_q=64 topk=192 s_kv=400 sink=1 plan=whole seed=5",
      "out" },
    { "mla_sparse_decode kv=model1 b=2 h_q=64 topk=64 s_kv=400 plan=whole seed=6",
      "mla_sparse_decode kv=model1 b=2 h_q=64 topk=256 s_kv=400 plan=whole seed=6",
      "out" },
};

START_TEST(blocks_of_minus_one_inside_one_split_leave_no_trace)
{
    for (int row = 0; row < 3; row++) {
        struct attention *const plain = open_attention(padded_lines[row][0]);
        struct attention *const padded = open_attention(padded_lines[row][1]);
        copy_indices(tensor_of(plain, "indices"), tensor_of(padded, "indices"));
        run_model(plain);
        run_model(padded);
        ck_assert(assay_tensor_hash(tensor_of(plain, "out")) ==
                  assay_tensor_hash(tensor_of(padded, "out")));
        ck_assert(assay_tensor_hash(tensor_of(plain, "lse")) ==
                  assay_tensor_hash(tensor_of(padded, "lse")));
        ck_assert(assay_tensor_hash(tensor_of(plain, padded_lines[row][2])) ==
                  assay_tensor_hash(tensor_of(padded, padded_lines[row][2])));
        close_attention(plain);
        close_attention(padded);
    }
}
END_TEST

/* --- repeats ------------------------------------------------------------------------ */

static const char *const repeated_lines[] = {
    "mla_dense_decode b=4 h_q=17 s_q=3 s_k=0,1,300,64 causal=1 sms=9 seed=1",
    "mla_sparse_decode kv=model1 b=3 h_q=128 s_q=2 topk=128 topk_length=0,70,128 "
    "extra_topk=64 invalid=0.3 sink=1 sms=16 seed=2",
    "mla_sparse_prefill s_q=3 h_q=128 s_kv=200 d_qk=512 topk=128 invalid=0.3 sink=1 "
    "seed=3",
    "mla_combine b=3 s_q=2 h_q=64 splits=2,5,40 sink=1 seed=4",
};

START_TEST(a_repeated_run_has_the_same_bits_after_other_work)
{
    for (int row = 0; row < 4; row++) {
        const size_t count = sizeof(repeated_lines) / sizeof(repeated_lines[0]);
        struct attention *const attention = open_attention(repeated_lines[row]);
        struct attention *const other =
            open_attention(repeated_lines[((size_t)row + 1) % count]);
        run_model(attention);
        const uint64_t out = assay_tensor_hash(tensor_of(attention, "out"));
        const uint64_t lse = assay_tensor_hash(tensor_of(attention, "lse"));
        for (int repeat = 0; repeat < 3; repeat++) {
            run_model(other);
            run_model(attention);
            ck_assert(assay_tensor_hash(tensor_of(attention, "out")) == out);
            ck_assert(assay_tensor_hash(tensor_of(attention, "lse")) == lse);
        }
        close_attention(attention);
        close_attention(other);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        half_the_query_at_twice_the_scale_is_the_same,
        keys_times_four_by_a_quarter_of_the_query_give_four_times_the_output,
        blocks_of_minus_one_inside_one_split_leave_no_trace,
        a_repeated_run_has_the_same_bits_after_other_work,
        NULL,
    };
    return run_tests("mla_properties", tests);
}
