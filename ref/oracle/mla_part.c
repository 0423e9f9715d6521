/* SPDX-License-Identifier: MIT */
/* Which rows of queries, keys and sinks belong to a part. */
#include "ref/oracle/mla_attention.h"

enum { ROWS = ASSAY_MLA_ORACLE_ROWS };

void assay_mla_dense_decode_part(const struct assay_mla_dense_decode_problem *problem,
                                 const struct assay_tensors *tensors, int64_t index,
                                 struct assay_mla_part *part)
{
    const int64_t request = index / problem->h_k, head = index % problem->h_k;
    const int64_t heads = problem->h_q / problem->h_k;
    const struct assay_tensor *const q = assay_tensors_find(tensors, "q");
    *part = (struct assay_mla_part){
        .q = q,
        .tokens = problem->s_q,
        .heads = heads,
        .q_offset = request * q->stride[0] + head * heads * q->stride[2],
        .token_stride = q->stride[1],
        .head_stride = q->stride[2],
        .is_causal = problem->is_causal,
        .softmax_scale = (double)problem->softmax_scale,
        .is_base_two = problem->is_base_two,
    };
    assay_mla_dense_decode_keys(problem, tensors, request, head, &part->keys);
    part->may_be_split = part->keys.blocks > 1;
}

static const float *sinks(const struct assay_tensors *tensors, bool has_sink,
                          int64_t first_head)
{
    if (!has_sink) return NULL;
    return (const float *)assay_tensors_find(tensors, "attn_sink")->data + first_head;
}

void assay_mla_sparse_decode_part(const struct assay_mla_sparse_decode_problem *problem,
                                  const struct assay_tensors *tensors, int64_t index,
                                  struct assay_mla_part *part)
{
    const int64_t tiles = problem->h_q / ROWS, row = index / tiles;
    const int64_t request = row / problem->s_q, token = row % problem->s_q;
    const int64_t first_head = index % tiles * ROWS;
    const struct assay_tensor *const q = assay_tensors_find(tensors, "q");
    *part = (struct assay_mla_part){
        .q = q,
        .tokens = 1,
        .heads = ROWS,
        .q_offset =
            request * q->stride[0] + token * q->stride[1] + first_head * q->stride[2],
        .head_stride = q->stride[2],
        .softmax_scale = (double)problem->softmax_scale,
        .sink = sinks(tensors, problem->has_sink, first_head),
        .is_base_two = problem->is_base_two,
    };
    assay_mla_sparse_decode_keys(problem, tensors, request, token, &part->keys);
    part->may_be_split = part->keys.blocks > 1;
}

void assay_mla_sparse_prefill_part(const struct assay_mla_sparse_prefill_problem *problem,
                                   const struct assay_tensors *tensors, int64_t index,
                                   struct assay_mla_part *part)
{
    const int64_t tiles = problem->h_q / ROWS, token = index / tiles;
    const int64_t first_head = index % tiles * ROWS;
    const struct assay_tensor *const q = assay_tensors_find(tensors, "q");
    *part = (struct assay_mla_part){
        .q = q,
        .tokens = 1,
        .heads = ROWS,
        .q_offset = token * q->stride[0] + first_head * q->stride[1],
        .head_stride = q->stride[1],
        .softmax_scale = (double)problem->softmax_scale,
        .sink = sinks(tensors, problem->has_sink, first_head),
        .is_base_two = problem->is_base_two,
    };
    assay_mla_sparse_prefill_keys(problem, tensors, token, &part->keys);
}
