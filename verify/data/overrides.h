/* SPDX-License-Identifier: MIT */
/* Explicit values of a case line ("bits=a.0.3:7f") put into the generated inputs. */
#ifndef ASSAY_VERIFY_DATA_OVERRIDES_H
#define ASSAY_VERIFY_DATA_OVERRIDES_H

#include "ref/tensor.h"
#include "verify/case/case.h"

/* Refuses tensors that are no inputs of the case, indices outside, and too many bits;
 * needs shapes, no data. */
enum assay_status assay_overrides_check(const struct assay_case *the_case,
                                        const struct assay_tensors *tensors,
                                        struct assay_message *message);

/* Checks, then writes. */
enum assay_status assay_overrides_apply(const struct assay_case *the_case,
                                        const struct assay_tensors *tensors,
                                        struct assay_message *message);

#endif
