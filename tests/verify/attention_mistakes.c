/* SPDX-License-Identifier: MIT */
/* Wrong attention kernels do not keep to the relations between two runs: without the
 * model's outputs beside them. */
#include "ref/kernel/mla_tile.h"
#include "ref/mla_plan_problem.h"
#include "tests/harness.h"
#include "tests/verify/related_case.h"

/* The run with copies of its inputs, to be spoiled. */
static struct related_run copy_of(const struct related_run *run)
{
    struct related_run copy = *run;
    for (int i = 0; i < copy.tensors.count; i++) {
        struct assay_tensor *const tensor = &copy.tensors.item[i];
        if (tensor->is_output) continue;
        const size_t bytes = (size_t)assay_tensor_bytes(tensor);
        tensor->data = malloc(bytes);
        memcpy(tensor->data, run->tensors.item[i].data, bytes);
    }
    return copy;
}

static void run_copy(struct related_run *copy)
{
    run_model(copy);
    for (int i = 0; i < copy->tensors.count; i++)
        if (!copy->tensors.item[i].is_output) free(copy->tensors.item[i].data);
}

static const struct assay_tensor *find(const struct related_run *run, const char *name)
{
    const struct assay_tensor *const tensor = assay_tensors_find(&run->tensors, name);
    ck_assert_msg(tensor != NULL, "%s", name);
    return tensor;
}

static void copy_elements(const struct assay_tensor *tensor, int64_t to, int64_t from,
                          int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        assay_tensor_set_bits(tensor, to + i, assay_tensor_bits(tensor, from + i));
}

/* The last elements of the first row of q are those of the next row. */
static void leak_a_row(const struct related_run *run)
{
    struct related_run copy = copy_of(run);
    const struct assay_tensor *const q = find(&copy, "q");
    const int64_t d_qk = q->shape[q->rank - 1];
    copy_elements(q, d_qk - 8, 2 * d_qk - 8, 8);
    run_copy(&copy);
}

/* ... those of the second request or token. */
static void leak_an_entry(const struct related_run *run)
{
    struct related_run copy = copy_of(run);
    const struct assay_tensor *const q = find(&copy, "q");
    copy_elements(q, 0, assay_tensor_elements(q) / q->shape[0], 8);
    run_copy(&copy);
}

static void leak_a_partial(const struct related_run *run)
{
    struct related_run copy = copy_of(run);
    const struct assay_tensor *const oaccum = find(&copy, "oaccum");
    copy_elements(oaccum, 0, assay_tensor_elements(oaccum) - ASSAY_MLA_D_V, 8);
    run_copy(&copy);
}

static void leak_a_partial_row(const struct related_run *run)
{
    struct related_run copy = copy_of(run);
    copy_elements(find(&copy, "oaccum"), 0, ASSAY_MLA_D_V, 8);
    run_copy(&copy);
}

static void take_the_next_page(const struct related_run *run)
{
    struct related_run copy = copy_of(run);
    const int64_t pages = find(&copy, "k_cache")->shape[0];
    const struct assay_tensor *const table = find(&copy, "block_table");
    for (int64_t i = 0; i < assay_tensor_elements(table); i++)
        if (assay_tensor_bits(table, i) < pages)
            assay_tensor_set_bits(table, i,
                                  (uint32_t)((assay_tensor_bits(table, i) + 1) % pages));
    run_copy(&copy);
}

/* One slot in eight is taken for the one before. */
static void take_another_slot(const struct related_run *run)
{
    struct related_run copy = copy_of(run);
    const struct assay_tensor *const indices = find(&copy, "indices");
    for (int64_t i = 0; i < assay_tensor_elements(indices); i++)
        if ((int32_t)assay_tensor_bits(indices, i) > 0 &&
            assay_tensor_bits(indices, i) % 8 == 6)
            assay_tensor_set_bits(indices, i, assay_tensor_bits(indices, i) - 1);
    run_copy(&copy);
}

/* -1 is page 0: the first key there is. */
static void take_padding_for_a_key(const struct related_run *run)
{
    struct related_run copy = copy_of(run);
    const struct assay_tensor *const indices = find(&copy, "indices");
    uint32_t key = UINT32_MAX;
    for (int64_t i = 0; key == UINT32_MAX; i++)
        key = assay_tensor_bits(indices, i);
    for (int64_t i = 0; i < assay_tensor_elements(indices); i++)
        if (assay_tensor_bits(indices, i) == UINT32_MAX)
            assay_tensor_set_bits(indices, i, key);
    run_copy(&copy);
}

static void forget_the_last_index(const struct related_run *run)
{
    struct related_run copy = copy_of(run);
    const struct assay_tensor *const indices = find(&copy, "indices");
    const int64_t topk = indices->shape[2];
    for (int64_t i = topk - 1; i < assay_tensor_elements(indices); i += topk)
        assay_tensor_set_bits(indices, i, UINT32_MAX);
    run_copy(&copy);
}

static void stop_at_padding(const struct related_run *run)
{
    struct related_run copy = copy_of(run);
    const struct assay_tensor *const indices = find(&copy, "indices");
    const int64_t topk = indices->shape[2];
    for (int64_t i = 1; i < assay_tensor_elements(indices); i++)
        if (i % topk && (int32_t)assay_tensor_bits(indices, i - 1) < 0)
            assay_tensor_set_bits(indices, i, UINT32_MAX);
    run_copy(&copy);
}

static void change_length(const struct related_run *run, int64_t request, int by)
{
    struct related_run copy = copy_of(run);
    const struct assay_tensor *const lengths = find(&copy, "cache_seqlens");
    assay_tensor_set_bits(lengths, request,
                          assay_tensor_bits(lengths, request) + (uint32_t)by);
    run_copy(&copy);
}

static void see_a_key_too_many(const struct related_run *run)
{
    change_length(run, 0, 1);
}

static void forget_a_key_of_the_last_request(const struct related_run *run)
{
    change_length(run, find(run, "cache_seqlens")->shape[0] - 1, -1);
}

/* A request of several splits ends with its first. */
static void lose_a_split(const struct related_run *run)
{
    const struct assay_tensor *const metadata = find(run, "tile_scheduler_metadata");
    const struct assay_tensor *const splits = find(run, "num_splits");
    if (assay_tensor_bits(splits, 1) > 1)
        change_length(run, 0,
                      64 * (int)assay_tensor_bits(metadata, ASSAY_PLAN_END_BLOCK) -
                          (int)assay_tensor_bits(find(run, "cache_seqlens"), 0));
    else
        run_model(run);
}

static void do_not_rescale(struct assay_mla_tile *tile, int side)
{
    assay_mla_weights(tile, side);
    for (int row = 0; row < ASSAY_MLA_ROWS; row++)
        tile->side[side].factor[row] = 1;
}

static void forget_to_rescale(const struct related_run *run)
{
    struct related_run copy = copy_of(run);
    struct assay_mla_numerics *const numerics = (void *)copy.numerics.bytes;
    numerics->stage.weights = do_not_rescale;
    run_copy(&copy);
}

static double value_at(const struct assay_tensor *tensor, int64_t element)
{
    return assay_minifloat_decode(assay_minifloat(tensor->format),
                                  assay_tensor_bits(tensor, element));
}

static void put(const struct assay_tensor *tensor, int64_t element, double value)
{
    assay_tensor_set_bits(tensor, element,
                          assay_minifloat_encode(assay_minifloat(tensor->format), value,
                                                 ASSAY_OVERFLOW_SPECIAL));
}

/* To multiples of 1/512, as integers would be. */
static void round_absolutely(const struct related_run *run)
{
    const struct assay_tensor *const out = find(run, "out");
    run_model(run);
    for (int64_t i = 0; i < assay_tensor_elements(out); i++)
        put(out, i, rint(value_at(out, i) * 512) / 512);
}

/* Small elements of the last 64 of q are taken for zero. */
static void flush_the_tail(const struct related_run *run)
{
    struct related_run copy = copy_of(run);
    const struct assay_tensor *const q = find(&copy, "q");
    const int64_t d_qk = q->shape[q->rank - 1];
    for (int64_t i = 0; i < assay_tensor_elements(q); i++)
        if (i % d_qk >= ASSAY_MLA_D_V && fabs(value_at(q, i)) < 0.25) put(q, i, 0);
    run_copy(&copy);
}

static void swap_columns(const struct related_run *run)
{
    const struct assay_tensor *const out = find(run, "out");
    run_model(run);
    for (int64_t i = 0; i < assay_tensor_elements(out); i += 2) {
        const uint32_t kept = assay_tensor_bits(out, i);
        copy_elements(out, i, i + 1, 1);
        assay_tensor_set_bits(out, i + 1, kept);
    }
}

/* What lies behind the lengths counts. */
static void ignore_lengths(const struct related_run *run)
{
    struct related_run copy = copy_of(run);
    const struct assay_tensor *const lengths = find(&copy, "topk_length");
    for (int64_t i = 0; i < lengths->shape[0]; i++)
        if (assay_tensor_bits(lengths, i) > 0)
            assay_tensor_set_bits(lengths, i, assay_tensor_bits(lengths, i) + 1);
    run_copy(&copy);
}

static void forget_the_last_split(const struct related_run *run)
{
    struct related_run copy = copy_of(run);
    const struct assay_tensor *const lse = find(&copy, "lseaccum");
    put(lse, assay_tensor_elements(lse) - 1, -HUGE_VAL);
    run_copy(&copy);
}

static void cut_off_logarithms(const struct related_run *run)
{
    struct related_run copy = copy_of(run);
    const struct assay_tensor *const lse = find(&copy, "lseaccum");
    for (int64_t i = 0; i < assay_tensor_elements(lse); i++)
        put(lse, i, fmin(value_at(lse, i), 4));
    run_copy(&copy);
}

/* Outputs of requests of one split are written from their partial ones. */
static void combine_single_splits(const struct related_run *run)
{
    const struct assay_tensor *const out = find(run, "out");
    const struct assay_tensor *const oaccum = find(run, "oaccum");
    const struct assay_tensor *const splits = find(run, "num_splits");
    const int64_t size = assay_tensor_elements(out) / out->shape[0];
    run_model(run);
    for (int64_t request = 0; request < out->shape[0]; request++) {
        const int64_t first = assay_tensor_bits(splits, request);
        if (assay_tensor_bits(splits, request + 1) - first != 1) continue;
        for (int64_t i = 0; i < size; i++)
            put(out, request * size + i, value_at(oaccum, first * size + i));
    }
}

static void count_full_blocks_twice(const struct related_run *run)
{
    const struct assay_tensor *const splits = find(run, "num_splits");
    run_model(run);
    if (assay_tensor_bits(find(run, "cache_seqlens"), 0) % 64 == 0)
        assay_tensor_set_bits(splits, 1, assay_tensor_bits(splits, 1) + 1);
}

#define DENSE   "mla_dense_decode b=2 h_q=4 s_q=2 s_k=200,70 sms=4 seed=1"
#define DECODE  "mla_sparse_decode kv=v32 b=2 h_q=64 topk=128 invalid=0.1 sms=4 seed=2"
#define LENGTHS "mla_sparse_decode kv=model1 b=2 h_q=64 topk=64 topk_length=50,9 sms=4"
#define PREFILL "mla_sparse_prefill s_q=2 h_q=64 s_kv=300 topk=128 invalid=0.1 seed=4"
#define COMBINE "mla_combine b=3 h_q=4 splits=3,1,2 seed=5"

static const struct {
    const char *line, *property;
    related_kernel *kernel;
    bool by_bits; /* of the first run; otherwise by the bound */
} wrong[] = {
    { DENSE, "constant_values", swap_columns, false },
    { DENSE, "moved_pages", take_the_next_page, false },
    { DENSE, "scaled_keys", round_absolutely, true },
    { DENSE, "scaled_tail", flush_the_tail, true },
    { DENSE, "unused_memory", see_a_key_too_many, true },
    { DENSE, "other_requests", leak_an_entry, true },
    { DENSE, "other_rows", leak_a_row, true },
    { DENSE, "rotated_requests", forget_a_key_of_the_last_request, true },
    { DENSE, "plan_whole", forget_to_rescale, false },
    { DENSE " plan=whole", "plan_blocks", lose_a_split, false },
    { DENSE " plan=whole", "plan_random", lose_a_split, false },
    { "mla_dense_decode b=2 h_q=4 s_k=800,70 sms=4 plan=whole seed=1", "plan_scheduler",
      lose_a_split, false },
    { DECODE, "constant_values", swap_columns, false },
    { DECODE, "reversed_indices", forget_to_rescale, false },
    { DECODE, "reversed_indices", forget_the_last_index, false },
    { DECODE, "moved_padding", take_padding_for_a_key, false },
    { DECODE, "padded_indices", take_padding_for_a_key, false },
    { DECODE " plan=whole", "longer_lists", take_padding_for_a_key, true },
    { DECODE, "moved_tokens", take_another_slot, false },
    { DECODE, "scaled_keys", round_absolutely, true },
    { DECODE, "scaled_tail", flush_the_tail, true },
    { LENGTHS, "unused_memory", ignore_lengths, true },
    { DECODE, "other_requests", leak_an_entry, true },
    { DECODE, "other_rows", leak_a_row, true },
    { DECODE, "rotated_requests", leak_an_entry, true },
    { DECODE, "plan_whole", forget_to_rescale, false },
    { PREFILL, "constant_values", swap_columns, false },
    { PREFILL, "reversed_indices", stop_at_padding, false },
    { PREFILL, "moved_padding", take_padding_for_a_key, false },
    { PREFILL, "padded_indices", take_padding_for_a_key, false },
    { PREFILL, "moved_keys", take_another_slot, false },
    { PREFILL, "scaled_keys", round_absolutely, true },
    { PREFILL, "scaled_tail", flush_the_tail, true },
    { PREFILL " topk_length=50,9", "unused_memory", ignore_lengths, true },
    { PREFILL, "other_tokens", leak_an_entry, true },
    { PREFILL, "other_rows", leak_a_row, true },
    { PREFILL, "longer_lists", take_padding_for_a_key, true },
    { PREFILL, "rotated_tokens", leak_an_entry, true },
    { COMBINE, "reversed_splits", forget_the_last_split, false },
    { COMBINE, "shifted_logarithms", cut_off_logarithms, false },
    { COMBINE, "doubled_partials", round_absolutely, true },
    { "mla_combine b=2 h_q=4 splits=3,2 seed=5", "other_requests", leak_a_partial, true },
    { COMBINE, "other_rows", leak_a_partial_row, true },
    { "mla_combine b=2 h_q=4 splits=3,2 seed=5", "rotated_requests",
      forget_the_last_split, true },
    { "mla_plan b=2 s_k=70,200 sms=6 seed=1", "rounded_lengths", count_full_blocks_twice,
      true },
};

START_TEST(wrong_kernels_do_not_keep_to_them)
{
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const struct related_verdict verdict =
            relate(wrong[i].line, wrong[i].property, wrong[i].kernel);
        ck_assert_msg(verdict.applies, "%s: %s", wrong[i].line, wrong[i].property);
        ck_assert_msg((wrong[i].by_bits ? verdict.wrong : verdict.outside) > 0,
                      "%s: %s misses kernel %d", wrong[i].line, wrong[i].property,
                      (int)i);
    }
    ck_assert(relate(COMBINE, "unused_memory", combine_single_splits).touched > 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { wrong_kernels_do_not_keep_to_them, NULL };
    return run_tests("attention_mistakes", tests);
}
