/* SPDX-License-Identifier: MIT */
/* Numerics as text: "NAME[,knob=value...]", or "knob=value,..." for the default ones with
 * some knobs turned. */
#ifndef ASSAY_VERIFY_OPERATION_NUMERICS_H
#define ASSAY_VERIFY_OPERATION_NUMERICS_H

#include "verify/operation/operation.h"

/* Fills @numerics (operation->numerics_bytes) from @text; empty text means the default of
 * the problem. Refuses unknown names and knobs, knobs turned twice, illegal values, and
 * numerics that make no sense for the problem. */
enum assay_status assay_numerics_parse(const struct assay_operation *operation,
                                       const void *problem, const char *text,
                                       void *numerics, struct assay_message *message);

/* Writes the name of the row that equals @numerics in all knobs, or the row that differs
 * in the fewest followed by the knobs that differ; the first of several. Stages are not
 * compared. @size must be enough (asserted): ASSAY_MAX_NUMERICS_TEXT is. */
void assay_numerics_format(const struct assay_operation *operation, const void *numerics,
                           char *text, size_t size);

#endif
