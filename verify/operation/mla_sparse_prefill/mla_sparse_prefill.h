/* SPDX-License-Identifier: MIT */
/* mla_sparse_prefill: attention of each query token to the keys that it names. What the
 * files of this folder share. */
#ifndef ASSAY_VERIFY_OPERATION_MLA_SPARSE_PREFILL_H
#define ASSAY_VERIFY_OPERATION_MLA_SPARSE_PREFILL_H

#include "verify/operation/mla/mla_data.h"
#include "verify/operation/mla/mla_indices.h"

struct assay_mla_sparse_prefill_case {
    struct assay_mla_sparse_prefill_problem problem; /* first: the oracle sees only it */
    double invalid; /* of the indices are outside, about */
    enum assay_mla_index_pattern pattern;
    int32_t lengths; /* values of topk_length: 0, 1 for all tokens, or s_q */
    int32_t topk_length[ASSAY_MAX_LIST_VALUES];
};

/* Places of the tensors; those not present are left out, and the rest move up. */
struct assay_mla_sparse_prefill_places {
    int q, kv, indices, topk_length, attn_sink; /* -1: not present */
    int out, max_logits, lse, count;
};

extern const struct assay_operation assay_mla_sparse_prefill;

struct assay_mla_sparse_prefill_places
assay_mla_sparse_prefill_places(const struct assay_mla_sparse_prefill_problem *problem);

/* How many indices of query token @token count: its topk_length, or topk. */
static inline int64_t
assay_mla_sparse_prefill_length(const struct assay_mla_sparse_prefill_case *prefill,
                                int64_t token)
{
    if (prefill->lengths == 0) return prefill->problem.topk;
    return prefill->topk_length[prefill->lengths == 1 ? 0 : token];
}

/* mla_sparse_prefill_bind.c */
extern const struct assay_parameter assay_mla_sparse_prefill_parameters[];
enum assay_status assay_mla_sparse_prefill_bind(const struct assay_case *the_case,
                                                void *bound,
                                                struct assay_message *message);

/* mla_sparse_prefill_data.c */
void assay_mla_sparse_prefill_fill(const void *problem, enum assay_data_kind kind,
                                   uint64_t seed, const struct assay_tensors *tensors);
enum assay_status
assay_mla_sparse_prefill_check_inputs(const void *problem,
                                      const struct assay_tensors *tensors,
                                      struct assay_message *message);

/* mla_sparse_prefill_used.c */
/* Indices of the token that count, by the tensors. */
int64_t assay_mla_sparse_prefill_counted(const struct assay_tensors *tensors,
                                         int64_t token);
/* Calls @visit for each index that is attended, until it says false; returns what it said
 * last. */
bool assay_mla_sparse_prefill_visit(
    const struct assay_mla_sparse_prefill_problem *problem,
    const struct assay_tensors *tensors,
    bool (*visit)(void *context, int64_t token, int64_t position, int64_t key),
    void *context);
void assay_mla_sparse_prefill_used(const void *problem,
                                   const struct assay_tensors *tensors, int input,
                                   uint8_t *is_used);

/* mla_sparse_prefill_properties.c */
extern const struct assay_property assay_mla_sparse_prefill_properties[];

/* mla_sparse_prefill_features.c */
extern const struct assay_feature assay_mla_sparse_prefill_features[];

#endif
