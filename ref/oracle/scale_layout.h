/* SPDX-License-Identifier: MIT */
/* A change of scale layout as an index formula: which scale each output element holds. It
 * shares nothing with the model. Exact. */
#ifndef ASSAY_REF_ORACLE_SCALE_LAYOUT_H
#define ASSAY_REF_ORACLE_SCALE_LAYOUT_H

#include "ref/scale_layout_problem.h"

/* Fills @value with part @part of out, row-major in its box: values of f32 scales, packed
 * words as unsigned integers. */
void assay_scale_layout_oracle_part(const struct assay_scale_layout_problem *problem,
                                    bool is_high_first, const struct assay_tensors *,
                                    int64_t part, double *value);

#endif
