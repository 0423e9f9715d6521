/* SPDX-License-Identifier: MIT */
/* The table of operations: one row each. */
#include "verify/operation/fp8_gemm_grouped/fp8_gemm_grouped.h"
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt.h"
#include "verify/operation/mla_absorb/mla_absorb.h"
#include "verify/operation/mla_cache/mla_cache.h"
#include "verify/operation/mla_combine/mla_combine.h"
#include "verify/operation/mla_dense_decode/mla_dense_decode.h"
#include "verify/operation/mla_plan/mla_plan.h"
#include "verify/operation/mla_sparse_decode/mla_sparse_decode.h"
#include "verify/operation/mla_sparse_prefill/mla_sparse_prefill.h"
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
    &assay_mla_cache_quantise,
    &assay_mla_cache_dequantise,
    &assay_mla_dense_decode,
    &assay_mla_sparse_prefill,
    &assay_wgmma,
    &assay_sfu,
    &assay_convert,
    &assay_mla_plan,
    &assay_mla_combine,
    &assay_mla_sparse_decode,
    &assay_mla_absorb,
    NULL,
};

const struct assay_operation *assay_operation_find(const char *name)
{
    for (int i = 0; assay_operations[i]; i++)
        if (strcmp(assay_operations[i]->name, name) == 0) return assay_operations[i];
    return NULL;
}
