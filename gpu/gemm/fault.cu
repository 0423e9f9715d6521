/* SPDX-License-Identifier: MIT */
#include "gpu/gemm/fault.cuh"
#include "gpu/gemm/plan.h"

namespace gemm {

#ifdef GPU_FAULTS
static const struct {
    const char *name;
    fault which;
} faults[] = {
    { "no-proxy-fence", FAULT_NO_PROXY_FENCE },
    { "no-full-wait", FAULT_NO_FULL_WAIT },
    { "early-release", FAULT_EARLY_RELEASE },
    { "no-store-wait", FAULT_NO_STORE_WAIT },
    { "offset-32-bits", FAULT_OFFSET_32_BITS },
    { "scale-stage", FAULT_SCALE_STAGE },
    { "no-tail-zeros", FAULT_NO_TAIL_ZEROS },
    { "wrong-peer", FAULT_WRONG_PEER },
    { "stale-descriptor", FAULT_STALE_DESCRIPTOR },
    { "dropped-promotion", FAULT_DROPPED_PROMOTION },
};

cudaError_t find_fault(assay_cuda::run &run, int32_t *found)
{
    char name[32];
    if (!assay_plugin_setting(run.call->options, ',', "fault", name, sizeof(name)))
        return cudaSuccess;
    for (const auto &one : faults)
        if (std::strcmp(one.name, name) == 0) *found = one.which;
    return *found ? cudaSuccess : run.refuse("no fault is called '%s'", name);
}
#else
cudaError_t find_fault(assay_cuda::run &, int32_t *)
{
    return cudaSuccess;
}
#endif

} // namespace gemm
