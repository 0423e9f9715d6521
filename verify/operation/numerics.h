/* SPDX-License-Identifier: MIT */
/* Numerics as text: "NAME[,knob=value...]". */
#ifndef ASSAY_VERIFY_OPERATION_NUMERICS_H
#define ASSAY_VERIFY_OPERATION_NUMERICS_H

#include "verify/operation/operation.h"

/* Fills @numerics (operation->numerics_bytes) from @text; empty text means the default of
 * the problem. Refuses unknown names and knobs, illegal values, and numerics that make no
 * sense for the problem. */
enum assay_status assay_numerics_parse(const struct assay_operation *operation,
                                       const void *problem, const char *text,
                                       void *numerics, struct assay_message *message);

/* Writes the name of the row that equals @numerics, or the nearest row followed by the
 * knobs that differ. */
void assay_numerics_format(const struct assay_operation *operation, const void *numerics,
                           char *text, size_t size);

#endif
