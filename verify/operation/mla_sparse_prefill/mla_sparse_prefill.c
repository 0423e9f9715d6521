/* SPDX-License-Identifier: MIT */
/* Descriptor of mla_sparse_prefill: its tensors, and who computes what of them. */
#include "verify/operation/mla_sparse_prefill/mla_sparse_prefill.h"

#include "ref/kernel/mla_sparse_prefill.h"
#include "verify/operation/mla/mla_bound.h"
#include "verify/operation/mla/mla_narrow.h"
#include "verify/operation/mla/mla_numerics.h"
#include "verify/operation/mla/mla_settle.h"

#include <math.h>
#include <stdio.h>

static const struct assay_named_numerics numerics[] = {
    { "flashmla-sparse-prefill", "FlashMLA sm_90 sparse prefill: seesaw, infinite masks",
      &assay_mla_flashmla_sparse_prefill },
    { "flash", "textbook online softmax in f32, functions rounded to nearest",
      &assay_mla_flash },
    { "naive", "all scores of a row first, in f32, functions rounded to nearest",
      &assay_mla_naive },
    { "flashmla-sparse-decode", "FlashMLA sm_90 sparse decode: one block at a time",
      &assay_mla_flashmla_sparse_decode },
    { NULL, NULL, NULL },
};

static const struct assay_named_numerics *default_numerics(const void *bound)
{
    (void)bound;
    return &numerics[0];
}

struct assay_mla_sparse_prefill_places
assay_mla_sparse_prefill_places(const struct assay_mla_sparse_prefill_problem *problem)
{
    const int topk_length = 3, attn_sink = topk_length + problem->has_topk_length;
    const int out = attn_sink + problem->has_sink;
    return (struct assay_mla_sparse_prefill_places){
        .q = 0,
        .kv = 1,
        .indices = 2,
        .topk_length = problem->has_topk_length ? topk_length : -1,
        .attn_sink = problem->has_sink ? attn_sink : -1,
        .out = out,
        .max_logits = out + 1,
        .lse = out + 2,
        .count = out + 3,
    };
}

static void set_tensor(struct assay_tensors *tensors, int place, const char *name,
                       enum assay_format format, int rank,
                       const int64_t shape[ASSAY_MAX_RANK])
{
    if (place < 0) return;
    struct assay_tensor *const tensor = &tensors->item[place];
    *tensor = (struct assay_tensor){ .name = name, .format = format, .rank = rank };
    for (int i = 0; i < rank; i++)
        tensor->shape[i] = shape[i];
    assay_tensor_set_dense(tensor);
}

#define SHAPE(...) ((const int64_t[ASSAY_MAX_RANK]){ __VA_ARGS__ })

static void shape(const void *bound, struct assay_tensors *tensors)
{
    const struct assay_mla_sparse_prefill_problem *const problem = bound;
    const struct assay_mla_sparse_prefill_places place =
        assay_mla_sparse_prefill_places(problem);
    const int64_t s_q = problem->s_q, h_q = problem->h_q, d_qk = problem->d_qk;
    tensors->count = place.count;
    set_tensor(tensors, place.q, "q", ASSAY_BF16, 3, SHAPE(s_q, h_q, d_qk));
    set_tensor(tensors, place.kv, "kv", ASSAY_BF16, 3, SHAPE(problem->s_kv, 1, d_qk));
    set_tensor(tensors, place.indices, "indices", ASSAY_I32, 3,
               SHAPE(s_q, 1, problem->topk));
    set_tensor(tensors, place.topk_length, "topk_length", ASSAY_I32, 1, SHAPE(s_q));
    set_tensor(tensors, place.attn_sink, "attn_sink", ASSAY_F32, 1, SHAPE(h_q));
    set_tensor(tensors, place.out, "out", ASSAY_BF16, 3, SHAPE(s_q, h_q, ASSAY_MLA_D_V));
    set_tensor(tensors, place.max_logits, "max_logits", ASSAY_F32, 2, SHAPE(s_q, h_q));
    set_tensor(tensors, place.lse, "lse", ASSAY_F32, 2, SHAPE(s_q, h_q));
    tensors->item[place.kv].stride[0] = problem->kv_stride;
    for (int i = place.out; i < place.count; i++)
        tensors->item[i].is_output = true;
}

static int64_t parts(const void *bound)
{
    return assay_mla_sparse_prefill_parts(bound);
}

static void region(const void *bound, int64_t part, int output,
                   struct assay_region *region)
{
    const struct assay_mla_sparse_prefill_problem *const problem = bound;
    const int64_t tiles = assay_mla_head_tiles(problem->h_q);
    const int64_t head = part % tiles * ASSAY_MLA_ROWS;
    const bool is_out = output == assay_mla_sparse_prefill_places(problem).out;
    *region = (struct assay_region){
        .start = { part / tiles, head, 0 },
        .count = { 1, assay_mla_tile_heads(problem->h_q, head),
                   is_out ? ASSAY_MLA_D_V : 0 },
    };
}

static enum assay_status model(const void *bound, const void *given,
                               const struct assay_tensors *tensors, int64_t part)
{
    return assay_mla_sparse_prefill_model(bound, given, tensors, part)
               ? ASSAY_RAN
               : ASSAY_OUT_OF_MEMORY;
}

/* One head of each token. */
static bool narrow(const void *bound, const struct assay_tensors *tensors, void *narrowed,
                   struct assay_tensors *windows)
{
    struct assay_mla_sparse_prefill_problem *const few = narrowed;
    *few = *(const struct assay_mla_sparse_prefill_problem *)bound;
    assay_mla_narrow_heads(assay_mla_prefill_heads, few->h_q, tensors, windows);
    few->h_q = 1;
    return true;
}

static void settle(const void *bound, void *given)
{
    const struct assay_mla_occasions occasions = {
        .format = ASSAY_BF16,
        .has_sink = ((const struct assay_mla_sparse_prefill_problem *)bound)->has_sink,
    };
    assay_mla_settle(&occasions, given);
}

static void place(const void *bound, int output, int64_t element,
                  struct assay_place *where)
{
    const struct assay_mla_sparse_prefill_problem *const problem = bound;
    const bool is_out = output == assay_mla_sparse_prefill_places(problem).out;
    const long long row = is_out ? element / ASSAY_MLA_D_V : element;
    const bool is_right = element % ASSAY_MLA_D_V >= ASSAY_MLA_D_V / 2;
    snprintf(where->text, sizeof(where->text), "token %lld, head %lld%s",
             row / problem->h_q, row % problem->h_q,
             !is_out    ? ""
             : is_right ? ", columns 256-511"
                        : ", columns 0-255");
}

/* Bytes: a token that lists name counts once, and as many are named as are to be
 * expected. */
static struct assay_cost cost(const void *bound)
{
    const struct assay_mla_sparse_prefill_case *const prefill = bound;
    const struct assay_mla_sparse_prefill_problem *const problem = &prefill->problem;
    const double wide = (double)problem->d_qk + ASSAY_MLA_D_V;
    const double rows = (double)problem->s_q * (double)problem->h_q;
    double keys = 0;
    for (int64_t token = 0; token < problem->s_q; token++)
        keys += (double)assay_mla_sparse_prefill_length(prefill, token);
    const double all = (double)problem->s_kv, s_q = (double)problem->s_q;
    const double share = keys < all * s_q ? keys / (all * s_q) : 1;
    const double named = all * (1 - pow(1 - share, s_q));
    return (struct assay_cost){
        .multiply_adds = (double)problem->h_q * keys * wide,
        .bytes = 2 * (named * (double)problem->d_qk + rows * wide) + 4 * keys,
    };
}

static bool is_constant_by_design(const void *bound)
{
    const struct assay_mla_sparse_prefill_case *const prefill = bound;
    const int64_t s_q = prefill->problem.s_q;
    if (prefill->invalid >= 1) return true;
    for (int64_t token = 0; token < s_q; token++)
        if (assay_mla_sparse_prefill_length(prefill, token) > 0) return false;
    return true;
}

static bool is_exact(const void *bound, enum assay_data_kind kind, int output)
{
    return output == assay_mla_sparse_prefill_places(bound).out &&
           (kind == ASSAY_DATA_EXACT || kind == ASSAY_DATA_NEEDLE);
}

const struct assay_operation assay_mla_sparse_prefill = {
    .name = "mla_sparse_prefill",
    .summary = "attention to the keys each token names (FlashMLA sparse prefill)",
    .parameters = assay_mla_sparse_prefill_parameters,
    .numerics = numerics,
    .knobs = assay_mla_knobs,
    .properties = assay_mla_sparse_prefill_properties,
    .features = assay_mla_sparse_prefill_features,
    .problem_bytes = sizeof(struct assay_mla_sparse_prefill_case),
    .numerics_bytes = sizeof(struct assay_mla_numerics),
    .data_kinds = (UINT32_C(1) << (ASSAY_DATA_NEEDLE + 1)) - 1,
    .bind = assay_mla_sparse_prefill_bind,
    .default_numerics = default_numerics,
    .check_numerics = assay_mla_check_numerics,
    .shape = shape,
    .fill = assay_mla_sparse_prefill_fill,
    .check_inputs = assay_mla_sparse_prefill_check_inputs,
    .parts = parts,
    .region = region,
    .used = assay_mla_sparse_prefill_used,
    .model = model,
    .narrow = narrow,
    .settle = settle,
    .oracle = assay_mla_sparse_prefill_expect,
    .place = place,
    .cost = cost,
    .is_measured = assay_mla_is_measured,
    .is_constant_by_design = is_constant_by_design,
    .is_exact = is_exact,
};
