/* SPDX-License-Identifier: MIT */
/* mla_dense_decode: attention of a few query tokens a request to all keys below the
 * request's length, in pages. What the files of this folder share. */
#ifndef ASSAY_VERIFY_OPERATION_MLA_DENSE_DECODE_H
#define ASSAY_VERIFY_OPERATION_MLA_DENSE_DECODE_H

#include "verify/operation/mla/mla_data.h"

enum { ASSAY_DENSE_D_QK = 576, ASSAY_DENSE_UNUSED_PAGE = 2147480000 };

struct assay_mla_dense_decode_case {
    struct assay_mla_dense_decode_problem problem; /* first: the oracle sees only it */
    enum assay_mla_plan_choice plan;
    int32_t s_k[ASSAY_MLA_MAX_REQUESTS]; /* length of each request */
};

/* Places of the tensors. */
enum {
    ASSAY_DENSE_Q,
    ASSAY_DENSE_K_CACHE,
    ASSAY_DENSE_BLOCK_TABLE,
    ASSAY_DENSE_CACHE_SEQLENS,
    ASSAY_DENSE_METADATA,
    ASSAY_DENSE_NUM_SPLITS,
    ASSAY_DENSE_OUT,
    ASSAY_DENSE_LSE,
    ASSAY_DENSE_TENSORS
};

extern const struct assay_operation assay_mla_dense_decode;

static inline int64_t assay_mla_dense_pages(int64_t length)
{
    return (length + ASSAY_MLA_BLOCK - 1) / ASSAY_MLA_BLOCK;
}

struct assay_mla_plan_problem
assay_mla_dense_plan_problem(const struct assay_mla_dense_decode_problem *problem);

/* mla_dense_decode_bind.c */
extern const struct assay_parameter assay_mla_dense_decode_parameters[];
enum assay_status assay_mla_dense_decode_bind(const struct assay_case *the_case,
                                              void *bound, struct assay_message *message);

/* mla_dense_decode_exact.c: refuses cases whose data=exact or data=needle would not keep
 * their promise; @seed makes random plans. */
enum assay_status
assay_mla_dense_check_exact(const struct assay_mla_dense_decode_case *dense,
                            enum assay_data_kind kind, uint64_t seed,
                            struct assay_message *message);

/* mla_dense_decode_data.c */
void assay_mla_dense_decode_fill(const void *problem, enum assay_data_kind kind,
                                 uint64_t seed, const struct assay_tensors *tensors);
enum assay_status assay_mla_dense_decode_check_inputs(const void *problem,
                                                      const struct assay_tensors *tensors,
                                                      struct assay_message *message);

/* mla_dense_decode_used.c */
void assay_mla_dense_decode_used(const void *problem, const struct assay_tensors *tensors,
                                 int input, uint8_t *is_used);

/* mla_dense_decode_properties.c */
extern const struct assay_property assay_mla_dense_decode_properties[];

/* mla_dense_decode_features.c */
extern const struct assay_feature assay_mla_dense_decode_features[];

#endif
