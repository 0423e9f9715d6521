/* SPDX-License-Identifier: MIT */
/* The relations between runs that the grouped GEMMs have. */
#ifndef ASSAY_VERIFY_OPERATION_FP8_GEMM_GROUPED_FP8_GEMM_GROUPED_PROPERTIES_H
#define ASSAY_VERIFY_OPERATION_FP8_GEMM_GROUPED_FP8_GEMM_GROUPED_PROPERTIES_H

#include "verify/operation/property.h"

extern const struct assay_property assay_m_grouped_properties[];
extern const struct assay_property assay_k_grouped_properties[];

#endif
