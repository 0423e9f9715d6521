/* SPDX-License-Identifier: MIT */
/* The relations between runs that fp8_gemm_nt has. */
#ifndef ASSAY_VERIFY_OPERATION_FP8_GEMM_NT_FP8_GEMM_NT_PROPERTIES_H
#define ASSAY_VERIFY_OPERATION_FP8_GEMM_NT_FP8_GEMM_NT_PROPERTIES_H

#include "verify/operation/property.h"

extern const struct assay_property assay_fp8_gemm_nt_properties[];

#endif
