/* SPDX-License-Identifier: MIT */
/* scale_layout: scale factors from one memory layout to another (DeepGEMM's
 * transform_sf_into_required_layout). What the files of this folder share. */
#ifndef ASSAY_VERIFY_OPERATION_SCALE_LAYOUT_SCALE_LAYOUT_H
#define ASSAY_VERIFY_OPERATION_SCALE_LAYOUT_SCALE_LAYOUT_H

#include "ref/scale_layout_problem.h"
#include "verify/operation/operation.h"

extern const struct assay_operation assay_scale_layout;

/* scale_layout_data.c */
bool assay_scale_layout_has_data(enum assay_data_kind kind);
/* Whether scales of that kind are powers of two of the normal range, which packing keeps;
 * the others have those when they are to be packed. */
bool assay_scale_layout_has_packable_data(enum assay_data_kind kind);
void assay_scale_layout_fill(const void *problem, enum assay_data_kind kind,
                             uint64_t seed, const struct assay_tensors *tensors);

/* scale_layout_features.c */
extern const struct assay_feature assay_scale_layout_features[];

#endif
