/* SPDX-License-Identifier: MIT */
#include "verify/identify/candidate.h"

enum assay_status assay_candidate_run(const struct assay_backend *backend, void *state,
                                      const struct assay_run_call *call,
                                      const struct assay_buffers *buffers,
                                      struct assay_message *message)
{
    struct assay_backend_claim claim;
    enum assay_status status = backend->claim(state, call, &claim, message);
    if (status != ASSAY_RAN) return status;
    assay_buffers_poison(call->tensors);
    status = backend->run(state, call, message);
    if (status == ASSAY_RAN && !assay_buffers_are_intact(buffers, call->tensors))
        return assay_fail(message, ASSAY_CRASHED, "backend %s wrote outside its tensors",
                          backend->scheme);
    return status;
}
