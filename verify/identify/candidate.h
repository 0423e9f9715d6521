/* SPDX-License-Identifier: MIT */
/* One run of a backend whose outputs are to be explained. */
#ifndef ASSAY_VERIFY_IDENTIFY_CANDIDATE_H
#define ASSAY_VERIFY_IDENTIFY_CANDIDATE_H

#include "verify/backend/backend.h"
#include "verify/data/buffers.h"

/* Asks the backend for its claim, poisons the outputs, and runs the case. ASSAY_CRASHED
 * also when it wrote outside the tensors of @buffers. */
enum assay_status assay_candidate_run(const struct assay_backend *backend, void *state,
                                      const struct assay_run_call *call,
                                      const struct assay_buffers *buffers,
                                      struct assay_message *message);

#endif
