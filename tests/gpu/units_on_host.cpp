/* SPDX-License-Identifier: MIT */
/* The quantisers and scale layouts of gpu/ as a plugin that runs on the host. */
#include "gpu/operation.h"
#include "tests/gpu/block_on_host.h"

static const gpu_operation *find(const assay_call *call)
{
    for (const gpu_operation *one : { &gpu_quantise, &gpu_scale_layout })
        if (std::strcmp(one->operation, call->operation) == 0) return one;
    return nullptr;
}

static int claim(const assay_call *call, assay_claim *promise)
{
    const gpu_operation *const operation = find(call);
    if (operation) return operation->claim(call, promise);
    return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED, "not of this test");
}

static cudaError_t setup(assay_cuda::run &run)
{
    return find(run.call)->setup(run);
}

static cudaError_t launch(assay_cuda::run &run)
{
    return find(run.call)->launch(run);
}

extern "C" const assay_plugin *assay_plugin_v1(void)
{
    static const assay_plugin plugin =
        assay_cuda::plugin<launch, setup>("units-on-host", "1", claim);
    return &plugin;
}
