/* SPDX-License-Identifier: MIT */
/* As much of the CUDA runtime as assay_plugin_cuda.h and its tests need, on the host:
 * device memory is malloc's, a kernel runs at once and one thread after the other, a
 * graph is a list of what is to be run.
 *
 * A launch is written fake_launch(kernel, grid, block, shared, stream)(arguments...).
 * The environment variable FAKE_CUDA="FUNCTION CALL ERROR" lets the CALL-th call of that
 * function, counted from 1, fail with that number. Errors of kernels stay: whatever waits
 * for one or comes after it fails, too. */
#ifndef ASSAY_TESTS_VERIFY_FAKE_CUDA_CUDA_RUNTIME_H
#define ASSAY_TESTS_VERIFY_FAKE_CUDA_CUDA_RUNTIME_H

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define __global__
#define __device__

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_size = 1, unsigned y_size = 1, unsigned z_size = 1)
        : x(x_size), y(y_size), z(z_size)
    {
    }
};
inline dim3 gridDim, blockDim, blockIdx, threadIdx;

/* The numbers and names of the real one. */
enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorDevicesUnavailable = 46,
    cudaErrorNoDevice = 100,
    cudaErrorECCUncorrectable = 214,
    cudaErrorNvlinkUncorrectable = 220,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchFailure = 719,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorUnknown = 999,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed = 2 };
enum cudaDeviceAttr { cudaDevAttrL2CacheSize = 38 };

using fake_work = std::vector<std::function<void()>>;
struct fake_stream {
    bool is_capturing = false;
    fake_work captured;
};
struct fake_event {
    double seconds = 0;
};
using cudaStream_t = fake_stream *;
using cudaEvent_t = fake_event *;
using cudaGraph_t = fake_work *;
using cudaGraphExec_t = fake_work *;

struct fake_device {
    int objects = 0; /* allocations, streams, events and graphs that are there */
    int calls = 0;   /* of the function that is to fail */
    cudaError_t last = cudaSuccess, of_kernels = cudaSuccess;
};
inline fake_device fake;

inline cudaError_t fake_failed(cudaError_t error)
{
    if (error != cudaSuccess) fake.last = error;
    return error;
}

/* What the environment wants to happen to this call. */
inline cudaError_t fake_fault(const char *function)
{
    char name[64] = "";
    int call = 0, error = 0;
    const char *const wanted = std::getenv("FAKE_CUDA");
    if (!wanted || std::sscanf(wanted, "%63s %d %d", name, &call, &error) != 3 ||
        std::strcmp(name, function) != 0 || ++fake.calls != call)
        return cudaSuccess;
    return static_cast<cudaError_t>(error);
}

inline cudaError_t fake_begin(const char *function)
{
    const cudaError_t error = fake_fault(function);
    return fake_failed(error != cudaSuccess ? error : fake.of_kernels);
}

inline void fake_do(cudaStream_t stream, std::function<void()> work)
{
    if (stream && stream->is_capturing)
        stream->captured.push_back(work);
    else
        work();
}

inline const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorDevicesUnavailable: return "cudaErrorDevicesUnavailable";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorECCUncorrectable: return "cudaErrorECCUncorrectable";
    case cudaErrorNvlinkUncorrectable: return "cudaErrorNvlinkUncorrectable";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorUnknown: return "cudaErrorUnknown";
    }
    return "unrecognized error code";
}

inline const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory" : "fake error";
}

inline cudaError_t cudaGetLastError()
{
    const cudaError_t error = fake.last;
    fake.last = fake.of_kernels;
    return error;
}

inline cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return fake_begin("cudaGetDevice");
}

inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int)
{
    *value = 1 << 20;
    return fake_begin("cudaDeviceGetAttribute");
}

inline cudaError_t cudaDeviceSynchronize()
{
    return fake_begin("cudaDeviceSynchronize");
}

/* Objects: counted, so that nothing is left. */

inline cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    cudaError_t error = fake_begin("cudaMalloc");
    if (error == cudaSuccess && bytes > size_t(1) << 36)
        error = fake_failed(cudaErrorMemoryAllocation);
    *memory = error == cudaSuccess ? std::aligned_alloc(256, (bytes + 255) & ~size_t(255))
                                   : nullptr;
    fake.objects += *memory != nullptr;
    return error;
}

inline cudaError_t cudaFree(void *memory)
{
    fake.objects -= memory != nullptr;
    std::free(memory);
    return fake_begin("cudaFree");
}

template <typename Object> cudaError_t fake_create(const char *function, Object **object)
{
    const cudaError_t error = fake_begin(function);
    *object = error == cudaSuccess ? new Object : nullptr;
    fake.objects += error == cudaSuccess;
    return error;
}

template <typename Object> cudaError_t fake_destroy(const char *function, Object *object)
{
    delete object;
    fake.objects--;
    return fake_begin(function);
}

/* The first call of a run: what is there by then was left by the one before. */
inline cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    if (fake.objects) std::printf("left behind: %d\n", fake.objects);
    return fake_create("cudaStreamCreate", stream);
}

inline cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return fake_destroy("cudaStreamDestroy", stream);
}

inline cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return fake_create("cudaEventCreate", event);
}

inline cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return fake_destroy("cudaEventDestroy", event);
}

/* Time. */

inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t)
{
    using namespace std::chrono;
    event->seconds = duration<double>(steady_clock::now().time_since_epoch()).count();
    return fake_begin("cudaEventRecord");
}

inline cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start,
                                        cudaEvent_t end)
{
    *milliseconds = float((end->seconds - start->seconds) * 1e3);
    return fake_begin("cudaEventElapsedTime");
}

/* Memory. */

inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
    const cudaError_t error = fake_begin("cudaMemcpy");
    if (error == cudaSuccess) std::memcpy(to, from, bytes);
    return error;
}

inline cudaError_t cudaMemset(void *memory, int byte, size_t bytes)
{
    const cudaError_t error = fake_begin("cudaMemset");
    if (error == cudaSuccess) std::memset(memory, byte, bytes);
    return error;
}

/* Says so: tests count them. */
inline cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t)
{
    const cudaError_t error = fake_begin("cudaMemsetAsync");
    if (error == cudaSuccess) std::memset(memory, byte, bytes);
    std::printf("flush of %zu bytes\n", bytes);
    return error;
}

/* Graphs. */

inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
    const cudaError_t error = fake_begin("cudaStreamBeginCapture");
    stream->is_capturing = error == cudaSuccess;
    return error;
}

inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    stream->is_capturing = false;
    const cudaError_t error = fake_create("cudaStreamEndCapture", graph);
    if (*graph) (*graph)->swap(stream->captured);
    stream->captured.clear();
    return error;
}

inline cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *ready,
                                                 cudaGraph_t graph, unsigned long long)
{
    const cudaError_t error = fake_create("cudaGraphInstantiateWithFlags", ready);
    if (*ready) **ready = *graph;
    return error;
}

inline cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return fake_destroy("cudaGraphDestroy", graph);
}

inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    return fake_destroy("cudaGraphExecDestroy", graph);
}

inline cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t)
{
    const cudaError_t error = fake_begin("cudaGraphLaunch");
    std::printf("graph of %zu\n", graph->size());
    if (error == cudaSuccess)
        for (const auto &work : *graph)
            work();
    return error;
}

/* Kernels. */

template <typename... Parameters> struct fake_launcher {
    void (*kernel)(Parameters...);
    dim3 grid, block;
    cudaStream_t stream;

    void run_block(Parameters... values) const
    {
        for (threadIdx.y = 0; threadIdx.y < block.y; threadIdx.y++)
            for (threadIdx.x = 0; threadIdx.x < block.x; threadIdx.x++)
                kernel(values...);
    }
    void operator()(Parameters... values) const
    {
        const auto self = *this;
        if (block.x * block.y > 1024 || grid.x * grid.y == 0) {
            fake_failed(cudaErrorInvalidValue);
            return;
        }
        fake_do(stream, [self, values...] {
            gridDim = self.grid, blockDim = self.block;
            const cudaError_t error = fake_fault("kernel");
            if (error != cudaSuccess) fake.of_kernels = error;
            if (fake.of_kernels != cudaSuccess) return;
            for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
                for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
                    self.run_block(values...);
        });
    }
};

template <typename... Parameters>
fake_launcher<Parameters...> fake_launch(void (*kernel)(Parameters...), dim3 grid,
                                         dim3 block, size_t, cudaStream_t stream)
{
    return { kernel, grid, block, stream };
}

#endif
