/* SPDX-License-Identifier: MIT */
/* The table of operations: one row each. */
#include "verify/operation/fp8_gemm_grouped/fp8_gemm_grouped.h"
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt.h"
#include "verify/operation/operation.h"
#include "verify/operation/quantise/quantise.h"
#include "verify/operation/scale_layout/scale_layout.h"
#include "verify/operation/unit/unit.h"

#include <string.h>

const struct assay_operation *const assay_operations[] = {
    &assay_fp8_gemm_nt,
    &assay_m_grouped_fp8_gemm_nt_contiguous,
    &assay_m_grouped_fp8_gemm_nt_masked,
    &assay_k_grouped_fp8_gemm_nt_contiguous,
    &assay_k_grouped_fp8_gemm_tn_contiguous,
    &assay_quantise,
    &assay_scale_layout,
    &assay_wgmma,
    &assay_sfu,
    &assay_convert,
    NULL,
};

const struct assay_operation *assay_operation_find(const char *name)
{
    for (int i = 0; assay_operations[i]; i++)
        if (strcmp(assay_operations[i]->name, name) == 0) return assay_operations[i];
    return NULL;
}
