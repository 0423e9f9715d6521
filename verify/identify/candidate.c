/* SPDX-License-Identifier: MIT */
#include "verify/identify/candidate.h"

#include "verify/check/candidate.h"

enum assay_status assay_candidate_run(const struct assay_backend *backend, void *state,
                                      const struct assay_run_call *call,
                                      const struct assay_buffers *buffers,
                                      struct assay_message *message)
{
    struct assay_backend_claim claim;
    const enum assay_status status = backend->claim(state, call, &claim, message);
    if (status != ASSAY_RAN) return status;
    assay_buffers_poison(call->tensors);
    return assay_run_guarded(backend, state, call, buffers, message);
}
