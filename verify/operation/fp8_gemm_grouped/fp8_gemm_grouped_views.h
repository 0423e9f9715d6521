/* SPDX-License-Identifier: MIT */
/* The GEMMs inside a grouped one, and which of its operands matter. */
#ifndef ASSAY_VERIFY_OPERATION_FP8_GEMM_GROUPED_FP8_GEMM_GROUPED_VIEWS_H
#define ASSAY_VERIFY_OPERATION_FP8_GEMM_GROUPED_FP8_GEMM_GROUPED_VIEWS_H

#include "verify/operation/fp8_gemm_nt/fp8_gemm_relation.h"

extern const struct assay_gemm_views assay_grouped_views;

/* The group that row @row of d belongs to; -1: nobody's. Rows may have no columns. */
int assay_grouped_group_of_row(const struct assay_property_run *run, int64_t row);

/* Whether the sizes in memory are those of the case, and groups lie where it says:
 * recorded rows may be labelled otherwise. */
bool assay_grouped_is_as_said(const struct assay_property_run *run);

/* The hook `used` of the m-grouped GEMMs: rows of nobody with their scales, and b of
 * groups without rows with its scales, do not matter. */
void assay_m_grouped_used(const void *problem, const struct assay_tensors *tensors,
                          int input, uint8_t *is_used);

#endif
