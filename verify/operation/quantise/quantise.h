/* SPDX-License-Identifier: MIT */
/* quantise: x to e4m3 with one scale a block (DeepGEMM's per_token_cast_to_fp8 and
 * per_block_cast_to_fp8). What the files of this folder share. */
#ifndef ASSAY_VERIFY_OPERATION_QUANTISE_QUANTISE_H
#define ASSAY_VERIFY_OPERATION_QUANTISE_QUANTISE_H

#include "ref/quantise_problem.h"
#include "verify/operation/operation.h"

enum assay_quantise_granularity { ASSAY_QUANTISE_TOKEN, ASSAY_QUANTISE_BLOCK };

struct assay_quantise_case { /* the problem, and how its tensors lie in memory */
    struct assay_quantise_problem problem;
    enum assay_format x_format;
    int64_t x_stride, q_stride; /* elements from row to row */
};

/* Places of the tensors. */
enum { ASSAY_QUANTISE_X, ASSAY_QUANTISE_Q, ASSAY_QUANTISE_SF };

extern const struct assay_operation assay_quantise;

/* quantise_numerics.c */
extern const struct assay_named_numerics assay_quantise_numerics_table[];
extern const struct assay_knob assay_quantise_knobs[];

/* quantise_bound.c: value and bound of q and sf of part @part. */
void assay_quantise_expect(const struct assay_quantise_problem *problem,
                           const void *numerics, const struct assay_tensors *tensors,
                           int64_t part, const struct assay_expected *expected);

/* quantise_data.c */
bool assay_quantise_has_data(enum assay_data_kind kind);
void assay_quantise_fill(const void *problem, enum assay_data_kind kind, uint64_t seed,
                         const struct assay_tensors *tensors);

/* quantise_features.c */
extern const struct assay_feature assay_quantise_features[];

#endif
