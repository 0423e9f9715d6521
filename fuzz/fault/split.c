/* SPDX-License-Identifier: MIT */
/* Faults of plans, of splits and of what puts them together. */
#include "fuzz/fault/fault.h"
#include "ref/kernel/mla_combine.h"
#include "ref/kernel/mla_plan.h"
#include "verify/operation/mla_combine/mla_combine.h"
#include "verify/operation/mla_dense_decode/mla_dense_decode.h"

#include <math.h>
#include <string.h>

#define COMBINE(run)    ((const struct assay_mla_combine_problem *)(run)->problem)
#define DENSE(run)      ((struct assay_mla_dense_decode_problem *)(run)->problem)
#define KNOBS(numerics) ((struct assay_mla_combine_numerics *)(numerics))

/* --- combine ---------------------------------------------------------------------- */

/* Elements of one split in lseaccum. */
static int64_t row_count(const struct assay_fault_run *run)
{
    return COMBINE(run)->s_q * COMBINE(run)->h_q;
}

static int32_t first_split(const struct assay_fault_run *run, int64_t request)
{
    return ((const int32_t *)assay_fault_tensor(run, "num_splits")->data)[request];
}

static void set_split(struct assay_fault_run *run, int64_t split, float lse)
{
    const int64_t rows = row_count(run);
    for (int64_t i = split * rows; i < (split + 1) * rows; i++)
        assay_fault_set_value(assay_fault_tensor(run, "lseaccum"), i, lse);
}

static void lose_last_split(struct assay_fault_run *run)
{
    for (int64_t i = 0; i < COMBINE(run)->b; i++)
        if (first_split(run, i + 1) - first_split(run, i) > 1)
            set_split(run, first_split(run, i + 1) - 1, -INFINITY);
}

static void change_lse(struct assay_fault_run *run, float (*change)(float))
{
    const struct assay_tensor *const lse = assay_fault_tensor(run, "lseaccum");
    const int64_t elements = assay_tensor_elements(lse);
    for (int64_t i = 0; i < elements; i++)
        assay_fault_set_value(lse, i, change(assay_fault_value(lse, i)));
}

static float as_natural(float lse)
{
    return lse * 0.693147181f;
}

static float zero(float lse)
{
    (void)lse;
    return 0;
}

static float empty_as_zero(float lse)
{
    return lse == -INFINITY ? 0 : lse;
}

static float empty_as_high(float lse)
{
    return lse == -INFINITY ? 60 : lse;
}

static void mix_bases(struct assay_fault_run *run)
{
    change_lse(run, as_natural);
}

static void weigh_alike(struct assay_fault_run *run)
{
    change_lse(run, zero);
}

static void read_empty_as_zero(struct assay_fault_run *run)
{
    change_lse(run, empty_as_zero);
}

static void let_empty_dominate(struct assay_fault_run *run)
{
    change_lse(run, empty_as_high);
}

/* lseaccum [split, s, h] is read as if it were [split, h, s]. */
static void swap_strides(struct assay_fault_run *run)
{
    uint32_t bits[ASSAY_FAULT_ELEMENTS];
    const struct assay_tensor *const lse = assay_fault_tensor(run, "lseaccum");
    const int64_t elements = assay_fault_read(lse, bits), rows = row_count(run);
    const int64_t tokens = COMBINE(run)->s_q, heads = COMBINE(run)->h_q;
    for (int64_t i = 0; i < elements; i++) {
        const int64_t split = i / rows, token = i % rows / heads, head = i % heads;
        assay_tensor_set_bits(lse, i, bits[split * rows + head * tokens + token]);
    }
}

/* Every request reads the splits of the first one. */
static void stay_at_first_request(struct assay_fault_run *run)
{
    const struct assay_tensor *const oaccum = assay_fault_tensor(run, "oaccum");
    const size_t bytes = (size_t)oaccum->stride[0] * sizeof(float);
    for (int64_t i = 1; i < COMBINE(run)->b; i++) {
        const int32_t first = first_split(run, i);
        const int32_t count = first_split(run, i + 1) - first;
        for (int32_t split = 0; split < count && split < first_split(run, 1); split++)
            memcpy((char *)oaccum->data + (size_t)(first + split) * bytes,
                   (char *)oaccum->data + (size_t)split * bytes, bytes);
    }
}

static void add_sink_per_split(struct assay_fault_run *run)
{
    if (!COMBINE(run)->has_sink || COMBINE(run)->b != 1) return;
    const struct assay_tensor *const sinks = assay_fault_tensor(run, "attn_sink");
    const float more = logf((float)first_split(run, 1));
    for (int64_t i = 0; i < COMBINE(run)->h_q; i++)
        assay_fault_set_value(sinks, i, assay_fault_value(sinks, i) + more);
}

static void drop_sink(struct assay_fault_run *run)
{
    if (!COMBINE(run)->has_sink) return;
    const struct assay_tensor *const sinks = assay_fault_tensor(run, "attn_sink");
    for (int64_t i = 0; i < COMBINE(run)->h_q; i++)
        assay_fault_set_value(sinks, i, -INFINITY);
}

/* Rows without any key: the difference of two infinities. */
static void leave_nan(struct assay_fault_run *run)
{
    const struct assay_tensor *const lse = assay_fault_tensor(run, "lse");
    const struct assay_tensor *const out = assay_fault_tensor(run, "out");
    const int64_t tokens = COMBINE(run)->s_q, heads = COMBINE(run)->h_q;
    for (int64_t i = 0; i < assay_tensor_elements(lse); i++) {
        const int64_t request = i / (heads * tokens), head = i / tokens % heads;
        const int64_t row = (request * tokens + i % tokens) * heads + head;
        if (assay_fault_value(lse, i) != INFINITY) continue;
        for (int64_t at = 0; at < ASSAY_MLA_D_V; at++)
            assay_fault_set_value(out, row * ASSAY_MLA_D_V + at, NAN);
    }
}

static void round_functions(void *numerics)
{
    KNOBS(numerics)->functions = ASSAY_MLA_FUNCTIONS_ROUNDED;
}

static void separate_sink(void *numerics)
{
    KNOBS(numerics)->sink_product = ASSAY_MLA_SINK_SEPARATE;
}

static void fuse_lse(void *numerics)
{
    KNOBS(numerics)->lse_form = ASSAY_MLA_LSE_FUSED;
}

/* --- plans ------------------------------------------------------------------------ */

static int32_t *record(const struct assay_fault_run *run, int64_t part)
{
    const struct assay_tensor *const records =
        assay_fault_tensor(run, "tile_scheduler_metadata");
    return (int32_t *)records->data + part * records->stride[0];
}

static int64_t part_count(const struct assay_fault_run *run)
{
    return assay_fault_tensor(run, "tile_scheduler_metadata")->shape[0];
}

/* The last part that has work ends a block early. */
static void end_early(struct assay_fault_run *run)
{
    const int32_t requests = (int32_t)assay_fault_tensor(run, "num_splits")->shape[0] - 1;
    for (int64_t part = part_count(run) - 1; part >= 0; part--) {
        int32_t *const held = record(run, part);
        const bool works =
            held[ASSAY_PLAN_BEGIN_REQ] >= 0 && held[ASSAY_PLAN_BEGIN_REQ] < requests;
        if (!works || held[ASSAY_PLAN_END_BLOCK] < 1) continue;
        held[ASSAY_PLAN_END_BLOCK]--;
        return;
    }
}

static void number_splits_from_one(struct assay_fault_run *run)
{
    const struct assay_tensor *const splits = assay_fault_tensor(run, "num_splits");
    for (int64_t i = 1; i < splits->shape[0]; i++)
        ((int32_t *)splits->data)[i]++;
}

static void leave_spare_parts(struct assay_fault_run *run)
{
    const int32_t requests = (int32_t)assay_fault_tensor(run, "num_splits")->shape[0] - 1;
    for (int64_t part = 0; part < part_count(run); part++)
        if (record(run, part)[ASSAY_PLAN_BEGIN_REQ] >= requests)
            record(run, part)[ASSAY_PLAN_BEGIN_REQ] = 0;
}

/* The plan that the lengths in reverse would have. */
static void plan_for_others(struct assay_fault_run *run)
{
    uint32_t bits[ASSAY_FAULT_ELEMENTS];
    const struct assay_tensor *const lengths = assay_fault_tensor(run, "cache_seqlens");
    const struct assay_mla_plan_problem plan = assay_mla_dense_plan_problem(DENSE(run));
    const struct assay_mla_plan_numerics numerics = { .block_keys = 64, .overhead = -1 };
    const int64_t count = assay_fault_read(lengths, bits);
    for (int64_t i = 0; i < count; i++)
        assay_tensor_set_bits(lengths, i, bits[count - 1 - i]);
    if (count > 0) assay_mla_plan_model(&plan, &numerics, run->tensors);
    for (int64_t i = 0; i < count; i++)
        assay_tensor_set_bits(lengths, i, bits[i]);
}

static void forget_overhead(void *numerics)
{
    ((struct assay_mla_plan_numerics *)numerics)->overhead = 0;
}

#define MERGE  "mla_combine b=2 s_q=2 h_q=8 splits=3,2 seed=6"
#define HOLES  "mla_combine b=2 s_q=2 h_q=16 splits=2,3 empty=0.5 seed=6"
#define SUNK   "mla_combine b=1 s_q=1 h_q=16 splits=4 sink=1 seed=6"
#define PLAN   "mla_plan b=3 h_q=16 s_k=65,300,1400 sms=8 seed=6"
#define SPLITS "mla_dense_decode b=2 h_q=16 s_k=300,70 sms=3 seed=6"

#define COMBINING(sort) .operation = "mla_combine", .kind = ASSAY_FAULT_##sort
#define PLANNING        .operation = "mla_plan", .kind = ASSAY_FAULT_FUNCTION
#define DECODING        .operation = "mla_dense_decode", .kind = ASSAY_FAULT_FUNCTION

const struct assay_fault assay_faults_split[] = {
    { "split-lost", "C31", "R54", "the last split of a request is not combined",
      COMBINING(FUNCTION), .cases = { MERGE }, .before = lose_last_split },
    { "split-base-mixed", "C29a", "R42",
      "logarithms of base 2 are taken for natural ones", COMBINING(FUNCTION),
      .cases = { MERGE }, .before = mix_bases },
    { "splits-weighed-alike", "C31", NULL, "the mean of the splits, without weights",
      COMBINING(FUNCTION), .cases = { MERGE }, .before = weigh_alike },
    { "split-strides-swapped", "C31a", "R54",
      "lseaccum is read with heads and tokens exchanged", COMBINING(FUNCTION),
      .cases = { MERGE }, .before = swap_strides },
    { "split-batch-stride-zero", "C31b", "R54",
      "all requests read the first one's splits", COMBINING(FUNCTION), .cases = { MERGE },
      .before = stay_at_first_request },
    { "empty-split-zero", "C30b", "R41", "a split without keys counts with lse 0",
      COMBINING(FUNCTION), .cases = { HOLES }, .before = read_empty_as_zero },
    { "empty-split-dominates", "C30d", "R41", "a split without keys outweighs all",
      COMBINING(FUNCTION), .cases = { HOLES }, .before = let_empty_dominate },
    { "empty-merge-nan", "C30a", "R41", "splits that are all empty merge to NaN",
      COMBINING(FUNCTION), .cases = { HOLES }, .after = leave_nan },
    { "sink-per-split", "C32a", "R46", "the sink is added once a split",
      COMBINING(FUNCTION), .cases = { SUNK }, .before = add_sink_per_split },
    { "combine-sink-dropped", "C32", "R46", "the sink is lost where there are splits",
      COMBINING(FUNCTION), .cases = { SUNK }, .before = drop_sink },
    { "combine-functions", "C37", NULL, "exponentials of splits correctly rounded",
      COMBINING(ROUNDING), .cases = { MERGE }, .numerics = round_functions },
    { "combine-sink-separate", "C32", NULL, "the sink's argument is rounded twice",
      COMBINING(ROUNDING),
      .cases = { "mla_combine b=4 h_q=64 splits=2 sink=1 format=f16 seed=3" },
      .numerics = separate_sink },
    { "combine-lse-fused", "C29", NULL, "lse of splits by a fused product",
      COMBINING(ROUNDING), .cases = { MERGE }, .numerics = fuse_lse },
    { "plan-ends-early", "C28c", "R52", "the last part ends one block early", PLANNING,
      .cases = { PLAN }, .after = end_early },
    { "plan-splits-from-one", "C28", "R52", "splits are counted from one", PLANNING,
      .cases = { PLAN }, .after = number_splits_from_one },
    { "plan-spare-parts", "C28b", "R52", "idle parts are not marked idle", PLANNING,
      .cases = { "mla_plan b=1 h_q=16 s_k=65 sms=8 seed=6" },
      .after = leave_spare_parts },
    { "plan-overhead", "C28", NULL, "requests cost nothing beside their blocks", PLANNING,
      .cases = { PLAN }, .numerics = forget_overhead },
    { "plan-stale", "C28a", "R52", "the plan is one for other lengths", DECODING,
      .cases = { SPLITS }, .before = plan_for_others },
    { "split-block-lost", "C28c", "R52", "the last part leaves out a block", DECODING,
      .cases = { SPLITS }, .before = end_early },
    { .name = NULL },
};
