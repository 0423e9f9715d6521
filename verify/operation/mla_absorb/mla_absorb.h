/* SPDX-License-Identifier: MIT */
/* mla_absorb: latent attention from hidden states, absorbed or expanded (DeepSeek-V2,
 * arXiv 2405.04434). What the files of this folder share. */
#ifndef ASSAY_VERIFY_OPERATION_MLA_ABSORB_MLA_ABSORB_H
#define ASSAY_VERIFY_OPERATION_MLA_ABSORB_MLA_ABSORB_H

#include "ref/mla_absorb_problem.h"
#include "verify/operation/operation.h"

struct assay_mla_absorb_case { /* the problem, and the size of its weights */
    struct assay_mla_absorb_problem problem;
    int weight_exponent; /* generated weights are of the order of 2^weight_exponent */
};

extern const struct assay_operation assay_mla_absorb;

/* mla_absorb_numerics.c */
extern const struct assay_named_numerics assay_mla_absorb_numerics_table[];
extern const struct assay_knob assay_mla_absorb_knobs[];

/* mla_absorb_bound.c: values and bounds of o of head @head. ASSAY_RAN, or
 * ASSAY_OUT_OF_MEMORY. */
enum assay_status assay_mla_absorb_expect(const struct assay_mla_absorb_problem *problem,
                                          const void *numerics,
                                          const struct assay_tensors *tensors,
                                          int64_t head, const struct assay_expected *o);

/* mla_absorb_data.c */
enum {
    ASSAY_MLA_ABSORB_KINDS = 1 << ASSAY_DATA_NORMAL | 1 << ASSAY_DATA_UNIFORM |
                             1 << ASSAY_DATA_POSITIVE | 1 << ASSAY_DATA_EXACT |
                             1 << ASSAY_DATA_RUNS | 1 << ASSAY_DATA_ZERO,
    ASSAY_MLA_ABSORB_LARGEST_EXACT_N = 256,
};
void assay_mla_absorb_fill(const void *problem, enum assay_data_kind kind, uint64_t seed,
                           const struct assay_tensors *tensors);

/* mla_absorb_features.c */
extern const struct assay_feature assay_mla_absorb_features[];

#endif
