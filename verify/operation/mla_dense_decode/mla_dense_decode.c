/* SPDX-License-Identifier: MIT */
/* Descriptor of mla_dense_decode: its tensors, and who computes what of them. */
#include "verify/operation/mla_dense_decode/mla_dense_decode.h"

#include "ref/kernel/mla_dense_decode.h"
#include "verify/operation/mla/mla_bound.h"
#include "verify/operation/mla/mla_narrow.h"
#include "verify/operation/mla/mla_numerics.h"
#include "verify/operation/mla/mla_settle.h"

#include <stdio.h>

static const struct assay_named_numerics numerics[] = {
    { "flashmla-dense", "FlashMLA sm_90 dense decode: seesaw, finite masks",
      &assay_mla_flashmla_dense },
    { "flash", "textbook online softmax in f32, functions rounded to nearest",
      &assay_mla_flash },
    { "naive", "all scores of a row first, in f32, functions rounded to nearest",
      &assay_mla_naive },
    { "flashmla-sparse-decode", "FlashMLA sm_90 sparse decode: one block at a time",
      &assay_mla_flashmla_sparse_decode },
    { "flashmla-sparse-prefill", "FlashMLA sm_90 sparse prefill: seesaw, infinite masks",
      &assay_mla_flashmla_sparse_prefill },
    { NULL, NULL, NULL },
};

static const struct assay_named_numerics *default_numerics(const void *bound)
{
    (void)bound;
    return &numerics[0];
}

static void set_tensor(struct assay_tensors *tensors, int place, const char *name,
                       enum assay_format format, int rank,
                       const int64_t shape[ASSAY_MAX_RANK])
{
    struct assay_tensor *const tensor = &tensors->item[place];
    *tensor = (struct assay_tensor){ .name = name,
                                     .format = format,
                                     .rank = rank,
                                     .is_output = place >= ASSAY_DENSE_OUT };
    for (int i = 0; i < rank; i++)
        tensor->shape[i] = shape[i];
    assay_tensor_set_dense(tensor);
}

#define SHAPE(...) ((const int64_t[ASSAY_MAX_RANK]){ __VA_ARGS__ })

static void shape(const void *bound, struct assay_tensors *tensors)
{
    const struct assay_mla_dense_decode_problem *const problem =
        &((const struct assay_mla_dense_decode_case *)bound)->problem;
    const int64_t b = problem->b, s_q = problem->s_q, h_q = problem->h_q;
    const enum assay_format format = problem->format;
    tensors->count = ASSAY_DENSE_TENSORS;
    set_tensor(tensors, ASSAY_DENSE_Q, "q", format, 4,
               SHAPE(b, s_q, h_q, ASSAY_DENSE_D_QK));
    set_tensor(tensors, ASSAY_DENSE_K_CACHE, "k_cache", format, 4,
               SHAPE(problem->pages, ASSAY_MLA_BLOCK, problem->h_k, ASSAY_DENSE_D_QK));
    set_tensor(tensors, ASSAY_DENSE_BLOCK_TABLE, "block_table", ASSAY_I32, 2,
               SHAPE(b, problem->table_columns));
    set_tensor(tensors, ASSAY_DENSE_CACHE_SEQLENS, "cache_seqlens", ASSAY_I32, 1,
               SHAPE(b));
    set_tensor(tensors, ASSAY_DENSE_METADATA, "tile_scheduler_metadata", ASSAY_I32, 2,
               SHAPE(problem->num_sm_parts, ASSAY_PLAN_FIELDS));
    set_tensor(tensors, ASSAY_DENSE_NUM_SPLITS, "num_splits", ASSAY_I32, 1, SHAPE(b + 1));
    set_tensor(tensors, ASSAY_DENSE_OUT, "out", format, 4,
               SHAPE(b, s_q, h_q, ASSAY_MLA_D_V));
    set_tensor(tensors, ASSAY_DENSE_LSE, "lse", ASSAY_F32, 3, SHAPE(b, h_q, s_q));
}

static int64_t parts(const void *bound)
{
    return assay_mla_dense_decode_parts(bound);
}

static void region(const void *bound, int64_t part, int output,
                   struct assay_region *region)
{
    const struct assay_mla_dense_decode_problem *const problem = bound;
    const int64_t request = part / problem->h_k, group = problem->h_q / problem->h_k;
    const int64_t head = part % problem->h_k * group;
    if (output == ASSAY_DENSE_OUT)
        *region =
            (struct assay_region){ .start = { request, 0, head, 0 },
                                   .count = { 1, problem->s_q, group, ASSAY_MLA_D_V } };
    else
        *region = (struct assay_region){ .start = { request, head, 0 },
                                         .count = { 1, group, problem->s_q } };
}

static enum assay_status model(const void *bound, const void *given,
                               const struct assay_tensors *tensors, int64_t part)
{
    return assay_mla_dense_decode_model(bound, given, tensors, part)
               ? ASSAY_RAN
               : ASSAY_OUT_OF_MEMORY;
}

static void keep_last(struct assay_tensor *tensor, int dimension)
{
    const int64_t bytes = (int64_t)assay_format_bytes(tensor->format);
    const int64_t last = tensor->shape[dimension] - 1;
    tensor->data = (char *)tensor->data + last * tensor->stride[dimension] * bytes;
    tensor->shape[dimension] = 1;
}

/* One head of each KV head, of the last token: before it a causal mask may spare a tile
 * blocks that none of its rows see, so that rows depend on their company. */
static bool narrow(const void *bound, const struct assay_tensors *tensors, void *narrowed,
                   struct assay_tensors *windows)
{
    struct assay_mla_dense_decode_case *const few = narrowed;
    *few = *(const struct assay_mla_dense_decode_case *)bound;
    const int64_t group = few->problem.h_q / few->problem.h_k;
    if (group * few->problem.s_q == 1) return false;
    assay_mla_narrow_heads(assay_mla_decode_heads, group, tensors, windows);
    keep_last(&windows->item[ASSAY_DENSE_Q], 1);
    keep_last(&windows->item[ASSAY_DENSE_OUT], 1);
    keep_last(&windows->item[ASSAY_DENSE_LSE], 2);
    few->problem.h_q = few->problem.h_k;
    few->problem.s_q = 1;
    return true;
}

static void settle(const void *bound, void *given)
{
    const struct assay_mla_occasions occasions = {
        .format = ((const struct assay_mla_dense_decode_case *)bound)->problem.format,
        .has_splits = true,
    };
    assay_mla_settle(&occasions, given);
}

static enum assay_status oracle(const void *bound, const void *given,
                                const struct assay_tensors *tensors, int64_t part,
                                const struct assay_expected *expected)
{
    const struct assay_mla_dense_decode_problem *const problem = bound;
    const struct assay_mla_plan_problem plan = assay_mla_dense_plan_problem(problem);
    const enum assay_status status =
        assay_mla_dense_decode_expect(bound, given, tensors, part, expected);
    if (status == ASSAY_RAN && problem->is_unsafe)
        assay_mla_disclaim_faulty_plan(&plan, &assay_mla_dense_decode, bound, tensors,
                                       part, expected);
    return status;
}

static void place(const void *bound, int output, int64_t element,
                  struct assay_place *where)
{
    const struct assay_mla_dense_decode_problem *const problem = bound;
    const long long s_q = problem->s_q, h_q = problem->h_q;
    if (output == ASSAY_DENSE_LSE) {
        snprintf(where->text, sizeof(where->text), "request %lld, head %lld, token %lld",
                 (long long)element / s_q / h_q, (long long)element / s_q % h_q,
                 (long long)element % s_q);
        return;
    }
    const bool is_right = element % ASSAY_MLA_D_V >= ASSAY_MLA_D_V / 2;
    const long long row = element / ASSAY_MLA_D_V;
    snprintf(where->text, sizeof(where->text),
             "request %lld, head %lld, token %lld, columns %s", row / h_q / s_q,
             row % h_q, row / h_q % s_q, is_right ? "256-511" : "0-255");
}

static struct assay_cost cost(const void *bound)
{
    const struct assay_mla_dense_decode_case *const dense = bound;
    const struct assay_mla_dense_decode_problem *const problem = &dense->problem;
    const double rows = (double)(problem->s_q * problem->h_q);
    double keys = 0;
    for (int64_t i = 0; i < problem->b; i++)
        keys += dense->s_k[i];
    const double wide = ASSAY_DENSE_D_QK + ASSAY_MLA_D_V;
    return (struct assay_cost){
        .multiply_adds = rows * keys * wide,
        .bytes = 2 * (keys * (double)problem->h_k * ASSAY_DENSE_D_QK +
                      (double)problem->b * rows * wide),
    };
}

static const char *remark(const void *bound, const void *given)
{
    (void)given;
    const struct assay_mla_dense_decode_problem *const problem = bound;
    return problem->format == ASSAY_F16
               ? "unrecorded: no f16 output of this kernel exists"
               : NULL;
}

static bool is_constant_by_design(const void *bound)
{
    const struct assay_mla_dense_decode_case *const dense = bound;
    for (int64_t i = 0; i < dense->problem.b; i++)
        if (dense->s_k[i] > 0) return false;
    return true;
}

static bool is_exact(const void *bound, enum assay_data_kind kind, int output)
{
    (void)bound;
    return output == ASSAY_DENSE_OUT &&
           (kind == ASSAY_DATA_EXACT || kind == ASSAY_DATA_NEEDLE);
}

const struct assay_operation assay_mla_dense_decode = {
    .name = "mla_dense_decode",
    .summary = "attention to all keys of a request, in pages (FlashMLA dense decode)",
    .parameters = assay_mla_dense_decode_parameters,
    .numerics = numerics,
    .knobs = assay_mla_knobs,
    .properties = assay_mla_dense_decode_properties,
    .features = assay_mla_dense_decode_features,
    .campaign_scale = 2,
    .problem_bytes = sizeof(struct assay_mla_dense_decode_case),
    .numerics_bytes = sizeof(struct assay_mla_numerics),
    .data_kinds = (UINT32_C(1) << (ASSAY_DATA_NEEDLE + 1)) - 1,
    .bind = assay_mla_dense_decode_bind,
    .default_numerics = default_numerics,
    .check_numerics = assay_mla_check_numerics,
    .shape = shape,
    .fill = assay_mla_dense_decode_fill,
    .check_inputs = assay_mla_dense_decode_check_inputs,
    .parts = parts,
    .region = region,
    .used = assay_mla_dense_decode_used,
    .model = model,
    .narrow = narrow,
    .settle = settle,
    .oracle = oracle,
    .place = place,
    .cost = cost,
    .is_measured = assay_mla_is_measured,
    .remark = remark,
    .is_constant_by_design = is_constant_by_design,
    .is_exact = is_exact,
};
