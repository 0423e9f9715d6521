/* SPDX-License-Identifier: MIT */
/* mla_sparse_decode: decode whose query tokens name their keys in an FP8 or FP4 cache.
 * What the files of this folder share. */
#ifndef ASSAY_VERIFY_OPERATION_MLA_SPARSE_DECODE_H
#define ASSAY_VERIFY_OPERATION_MLA_SPARSE_DECODE_H

#include "ref/layout/mla_cache.h"
#include "verify/operation/mla/mla_data.h"
#include "verify/operation/mla/mla_indices.h"

extern const struct assay_operation assay_mla_sparse_decode;

/* A list of one length a request; one value serves all. */
struct assay_mla_lengths {
    int count, first; /* place in the task's length */
};

/* What the case says about one of the two caches, beside the problem's own. */
struct assay_mla_token_pool {
    int64_t s_kv; /* tokens a request owns; the first of them are numbered 0 ... */
    struct assay_mla_lengths lengths;
};

struct assay_mla_sparse_decode_task {
    struct assay_mla_sparse_decode_problem problem; /* first: all that backends see */
    struct assay_mla_token_pool main, extra;
    enum assay_mla_plan_choice plan;
    enum assay_mla_index_pattern pattern; /* of all lists */
    int64_t invalid;                      /* of ASSAY_FRACTION_UNIT */
    bool has_any_scales;                  /* v32: scales that are no powers of two */
    int32_t length[ASSAY_MAX_LIST_VALUES];
};

/* Data kinds the generator has: all but recorded, which has none. */
#define ASSAY_MLA_SPARSE_DECODE_KINDS ((1u << ASSAY_DATA_RECORDED) - 1)

enum { ASSAY_MLA_EXTRA_SAME = -1 }; /* extra_kv: that of the main cache */

extern const struct assay_choice assay_mla_sparse_decode_kvs[];

/* The scheduler's view of the problem. */
struct assay_mla_plan_problem
assay_mla_sparse_decode_plan(const struct assay_mla_sparse_decode_problem *problem);

/* Length of request @request, topk where there is no list. */
int64_t assay_mla_task_length(const struct assay_mla_sparse_decode_task *task,
                              const struct assay_mla_cache *cache, int64_t request);

/* mla_sparse_decode_bind.c */
enum assay_status assay_mla_sparse_decode_bind(const struct assay_case *the_case,
                                               void *task, struct assay_message *message);

/* mla_sparse_decode_data.c */
void assay_mla_sparse_decode_fill(const void *task, enum assay_data_kind kind,
                                  uint64_t seed, const struct assay_tensors *tensors);

/* mla_sparse_decode_token.c */
struct assay_mla_token_source {
    enum assay_mla_kv kv;
    enum assay_data_kind kind;
    uint64_t seed;
    const char *tensor;  /* that names the stream */
    bool has_any_scales; /* v32 */
};
/* Token @token of request @request in logical form. Kinds mean what they do for
 * assay_mla_fill_vector, whose queries these keys belong to: with needle @is_needle says
 * which token wins; with special one of a request, assay_mla_is_special_token, has an
 * odd code or scale. */
void assay_mla_make_token(const struct assay_mla_token_source *source, int64_t request,
                          int64_t token, bool is_needle, struct assay_mla_token *made);
bool assay_mla_is_special_token(uint64_t seed, int64_t request, int64_t token);

/* mla_sparse_decode_check.c */
enum assay_status assay_mla_sparse_decode_check(const void *task,
                                                const struct assay_tensors *tensors,
                                                struct assay_message *message);

/* mla_sparse_decode_used.c */
struct assay_mla_pool_names { /* one of the caches and the tensors that belong to it */
    const struct assay_mla_cache *cache;
    const char *k_cache, *indices, *topk_length;
};
/* The main cache and the extra one, as far as there are; returns their number. */
int assay_mla_sparse_decode_pools(const void *task, struct assay_mla_pool_names pools[2]);
/* Indices of the request that count. */
int64_t assay_mla_pool_length(const struct assay_mla_pool_names *pool,
                              const struct assay_tensors *tensors, int64_t request);
/* Calls @visit for each attended index of each query token (row = request * s_q + token),
 * as often as it is repeated, until it says false; returns what it said last. Inputs have
 * to be legal. */
bool assay_mla_visit_attended(const void *task, const struct assay_tensors *tensors,
                              const struct assay_mla_pool_names *pool,
                              bool (*visit)(void *context, int64_t row, int64_t slot),
                              void *context);
void assay_mla_sparse_decode_used(const void *task, const struct assay_tensors *tensors,
                                  int input, uint8_t *is_used);

/* mla_sparse_decode_properties.c */
extern const struct assay_property assay_mla_sparse_decode_properties[];

/* mla_sparse_decode_lists.c: hooks of relations. */
bool assay_mla_sparse_decode_reverse(const struct assay_property_run *first,
                                     const struct assay_property_run *second);
bool assay_mla_sparse_decode_move_padding(const struct assay_property_run *first,
                                          const struct assay_property_run *second);
bool assay_mla_sparse_decode_derive_padded(const struct assay_property_run *first,
                                           struct assay_case *second);
bool assay_mla_sparse_decode_pad(const struct assay_property_run *first,
                                 const struct assay_property_run *second);
bool assay_mla_sparse_decode_expect_padded(const struct assay_property_run *first,
                                           const struct assay_property_run *second,
                                           int output, int64_t element, uint32_t *bits);

/* mla_sparse_decode_features.c */
extern const struct assay_feature assay_mla_sparse_decode_features[];

#endif
