/* SPDX-License-Identifier: MIT */
/* Knobs and checks of numerics that the attention operations share. */
#ifndef ASSAY_VERIFY_OPERATION_MLA_NUMERICS_H
#define ASSAY_VERIFY_OPERATION_MLA_NUMERICS_H

#include "ref/kernel/mla_combine.h"
#include "verify/operation/operation.h"

/* Of struct assay_mla_numerics and of struct assay_mla_combine_numerics. */
extern const struct assay_knob assay_mla_knobs[], assay_mla_combine_knobs[];

/* Refuses knobs that contradict one another, whatever the problem: lanes under
 * schedule=plain, the tensor core's bits with unit=fma. Knobs without effect are let
 * through. */
enum assay_status assay_mla_check_numerics(const void *problem, const void *numerics,
                                           struct assay_message *message);

/* Hardware functions and units with the constants that were measured. */
bool assay_mla_is_measured(const void *numerics);

#endif
