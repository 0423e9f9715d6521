/* SPDX-License-Identifier: MIT */
/* mla_plan: which split of which request goes to which part of the machine (FlashMLA's
 * get_mla_metadata). What the files of this folder share. */
#ifndef ASSAY_VERIFY_OPERATION_MLA_PLAN_MLA_PLAN_H
#define ASSAY_VERIFY_OPERATION_MLA_PLAN_MLA_PLAN_H

#include "ref/mla_plan_problem.h"
#include "ref/mla_problem.h"
#include "verify/operation/operation.h"

extern const struct assay_operation assay_mla_plan;

/* Keys a request may have: totals then fit upstream's 32-bit integers. */
enum { ASSAY_MLA_PLAN_MAX_KEYS = 1 << 24 };

/* Lengths from the case: one serves all requests. */
struct assay_mla_plan_lengths {
    int32_t count, first; /* values, and where they begin in the case's list; 0: none */
};
struct assay_mla_plan_case {
    struct assay_mla_plan_problem problem; /* first: what the model gets */
    struct assay_mla_plan_lengths main;    /* cache_seqlens or topk_length */
    struct assay_mla_plan_lengths extra;   /* extra_topk_length */
    int32_t length[ASSAY_MAX_LIST_VALUES];
};

/* mla_plan_keys.c */
extern const struct assay_parameter assay_mla_plan_parameters[];
enum assay_status assay_mla_plan_bind(const struct assay_case *the_case, void *problem,
                                      struct assay_message *message);

/* mla_plan_data.c: the operation's hooks. */
void assay_mla_plan_fill(const void *problem, enum assay_data_kind kind, uint64_t seed,
                         const struct assay_tensors *tensors);
enum assay_status assay_mla_plan_check_lengths(const void *problem,
                                               const struct assay_tensors *tensors,
                                               struct assay_message *message);

/* mla_plan_properties.c */
extern const struct assay_property assay_mla_plan_properties[];

/* mla_plan_features.c */
extern const struct assay_feature assay_mla_plan_features[];

#endif
