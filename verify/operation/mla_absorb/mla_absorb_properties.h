/* SPDX-License-Identifier: MIT */
/* The relations between runs that mla_absorb has. */
#ifndef ASSAY_VERIFY_OPERATION_MLA_ABSORB_MLA_ABSORB_PROPERTIES_H
#define ASSAY_VERIFY_OPERATION_MLA_ABSORB_MLA_ABSORB_PROPERTIES_H

#include "verify/operation/property.h"

extern const struct assay_property assay_mla_absorb_properties[];

#endif
