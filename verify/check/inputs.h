/* SPDX-License-Identifier: MIT */
/* From a case to inputs that a backend may be given: bound, shaped, filled or taken from
 * a recorded file, explicit elements put in, contents checked. */
#ifndef ASSAY_VERIFY_CHECK_INPUTS_H
#define ASSAY_VERIFY_CHECK_INPUTS_H

#include "verify/data/buffers.h"
#include "verify/data/recording.h"
#include "verify/operation/operation.h"

/* Binds the case to @problem (of ASSAY_MAX_PROBLEM_BYTES) and gives @tensors their shapes
 * and memory: inputs are those of case @index of @recording, or generated if that is
 * NULL; outputs hold poison. Refuses what the operation refuses: the case, and without
 * unsafe=1 inputs that no kernel may be given. @buffers, zeroed, may be closed whatever
 * happens. */
enum assay_status assay_inputs_open(const struct assay_case *the_case,
                                    struct assay_recording *recording, int index,
                                    void *problem, struct assay_tensors *tensors,
                                    struct assay_buffers *buffers,
                                    struct assay_message *message);

/* What the operation has to say about the contents: ASSAY_REFUSED when no kernel may be
 * given them. unsafe=1 lets them through. */
enum assay_status assay_inputs_check(const struct assay_case *the_case,
                                     const void *problem,
                                     const struct assay_tensors *tensors,
                                     struct assay_message *message);

/* The same for unsafe=1 as well: whether hooks that follow indices may be asked. */
bool assay_inputs_are_legal(const struct assay_operation *operation, const void *problem,
                            const struct assay_tensors *tensors);

#endif
