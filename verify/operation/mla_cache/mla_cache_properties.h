/* SPDX-License-Identifier: MIT */
/* The relations between runs that quantising and dequantising a cache have, and which of
 * its bytes matter. */
#ifndef ASSAY_VERIFY_OPERATION_MLA_CACHE_MLA_CACHE_PROPERTIES_H
#define ASSAY_VERIFY_OPERATION_MLA_CACHE_MLA_CACHE_PROPERTIES_H

#include "verify/operation/property.h"

extern const struct assay_property assay_mla_cache_quantise_properties[];
extern const struct assay_property assay_mla_cache_dequantise_properties[];

/* The hook `used` of mla_cache_dequantise: bytes of no token do not matter. */
void assay_mla_cache_used(const void *problem, const struct assay_tensors *tensors,
                          int input, uint8_t *is_used);

#endif
