/* SPDX-License-Identifier: MIT */
/* The relations between runs that quantise has. */
#ifndef ASSAY_VERIFY_OPERATION_QUANTISE_QUANTISE_PROPERTIES_H
#define ASSAY_VERIFY_OPERATION_QUANTISE_QUANTISE_PROPERTIES_H

#include "verify/operation/property.h"

extern const struct assay_property assay_quantise_properties[];

#endif
