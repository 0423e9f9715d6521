/* SPDX-License-Identifier: MIT */
/* mla_combine: the splits of each request put together (FlashMLA's combine kernel). What
 * the files of this folder share. */
#ifndef ASSAY_VERIFY_OPERATION_MLA_COMBINE_MLA_COMBINE_H
#define ASSAY_VERIFY_OPERATION_MLA_COMBINE_MLA_COMBINE_H

#include "ref/mla_problem.h"
#include "verify/operation/operation.h"

extern const struct assay_operation assay_mla_combine;

/* Places of the tensors; an attn_sink comes last. */
enum {
    ASSAY_COMBINE_OACCUM,
    ASSAY_COMBINE_LSEACCUM,
    ASSAY_COMBINE_NUM_SPLITS,
    ASSAY_COMBINE_OUT,
    ASSAY_COMBINE_LSE,
    ASSAY_COMBINE_SINK,
};

struct assay_mla_combine_case {
    struct assay_mla_combine_problem problem; /* first: what the model gets */
    int64_t empty;                         /* share of splits without a key, a fraction */
    int32_t splits_count;                  /* of the list below; 1 serves all requests */
    int32_t splits[ASSAY_MAX_LIST_VALUES]; /* of each request */
};

/* mla_combine_data.c: the operation's hooks. */
void assay_mla_combine_fill(const void *problem, enum assay_data_kind kind, uint64_t seed,
                            const struct assay_tensors *tensors);
enum assay_status assay_mla_combine_check_inputs(const void *problem,
                                                 const struct assay_tensors *tensors,
                                                 struct assay_message *message);
bool assay_mla_combine_is_exact(const void *problem, enum assay_data_kind kind,
                                int output);

/* mla_combine_used.c */
void assay_mla_combine_used(const void *problem, const struct assay_tensors *tensors,
                            int input, uint8_t *is_used);

/* mla_combine_properties.c */
extern const struct assay_property assay_mla_combine_properties[];

/* mla_combine_features.c */
extern const struct assay_feature assay_mla_combine_features[];

#endif
