/* SPDX-License-Identifier: MIT */
/* As much of the CUDA runtime as assay_plugin_cuda.h and its tests need, on the host:
 * device memory is malloc's, a kernel runs at once and one thread after the other, a
 * graph is a list of what is to be run.
 *
 * A launch is written fake_launch(kernel, grid, block, shared, stream)(arguments...).
 * The environment variable FAKE_CUDA="FUNCTION CALL ERROR" lets the CALL-th call of that
 * function, counted from 1, fail with that number. Errors of kernels stay: whatever waits
 * for one or comes after it fails, too.
 *
 * FAKE_CUDA_MISALIGN="CALL BYTES" moves the CALL-th allocation of a run, counted from 1,
 * by so many bytes. FAKE_CUDA_RECORD names a file that fake_record adds its lines to. */
#ifndef ASSAY_TESTS_VERIFY_FAKE_CUDA_CUDA_RUNTIME_H
#define ASSAY_TESTS_VERIFY_FAKE_CUDA_CUDA_RUNTIME_H

#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__

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
    cudaErrorNotSupported = 801,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorUnknown = 999,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed = 2 };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16, cudaDevAttrL2CacheSize = 38 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

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

/* An allocation; it stays in the list when it is freed. */
struct fake_memory {
    unsigned char *block, *first; /* as allocated, and as returned */
    size_t bytes;
};

/* An odd number of multiprocessors; shared memory of a block as on sm_90. */
enum { FAKE_MULTIPROCESSORS = 131, FAKE_SHARED_BYTES = 49152, FAKE_MOST_SHARED = 232448 };

struct fake_device {
    int objects = 0; /* allocations, streams, events and graphs that are there */
    int calls = 0;   /* of the function that is to fail */
    std::vector<fake_memory> memory; /* of this run, in the order of their allocation */
    std::vector<std::pair<const void *, int>> shared_bytes; /* that a kernel may have */
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

/* A line for the test that set FAKE_CUDA_RECORD. */
__attribute__((format(printf, 1, 2))) inline void fake_record(const char *format, ...)
{
    const char *const path = std::getenv("FAKE_CUDA_RECORD");
    std::FILE *const file = path && *path ? std::fopen(path, "a") : nullptr;
    va_list values;
    if (!file) return;
    va_start(values, format);
    std::vfprintf(file, format, values);
    va_end(values);
    std::fputc('\n', file);
    std::fclose(file);
}

/* The allocation, counted from 1, that an address lies in; 0 for none. */
inline size_t fake_allocation(const void *address)
{
    const unsigned char *const at = static_cast<const unsigned char *>(address);
    for (size_t i = fake.memory.size(); i-- > 0;)
        if (at >= fake.memory[i].first &&
            at < fake.memory[i].first + fake.memory[i].bytes)
            return i + 1;
    return 0;
}

/* Where an address lies, as it is recorded: "3+4096" is in the third allocation. */
inline std::string fake_place(const void *address)
{
    const size_t found = fake_allocation(address);
    const uintptr_t first =
        found ? reinterpret_cast<uintptr_t>(fake.memory[found - 1].first) : 0;
    return std::to_string(found) + "+" +
           std::to_string(reinterpret_cast<uintptr_t>(address) - first);
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
    case cudaErrorNotSupported: return "cudaErrorNotSupported";
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

inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
    *value = attribute == cudaDevAttrL2CacheSize ? 1 << 20 : int(FAKE_MULTIPROCESSORS);
    return fake_begin("cudaDeviceGetAttribute");
}

inline cudaError_t cudaDeviceSynchronize()
{
    return fake_begin("cudaDeviceSynchronize");
}

/* Objects: counted, so that nothing is left. */

/* Bytes by which the environment wants the next allocation to be moved. */
inline size_t fake_misalignment()
{
    size_t call = 0, bytes = 0;
    const char *const wanted = std::getenv("FAKE_CUDA_MISALIGN");
    if (!wanted || std::sscanf(wanted, "%zu %zu", &call, &bytes) != 2) return 0;
    return call == fake.memory.size() + 1 ? bytes : 0;
}

inline cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    cudaError_t error = fake_begin("cudaMalloc");
    if (error == cudaSuccess && bytes > size_t(1) << 36)
        error = fake_failed(cudaErrorMemoryAllocation);
    *memory = nullptr;
    if (error != cudaSuccess) return error;
    const size_t moved = fake_misalignment();
    unsigned char *const block = static_cast<unsigned char *>(
        std::aligned_alloc(256, (bytes + moved + 255) & ~size_t(255)));
    if (block) fake.memory.push_back({ block, block + moved, bytes });
    *memory = block ? block + moved : nullptr;
    fake.objects += block != nullptr;
    return error;
}

inline cudaError_t cudaFree(void *memory)
{
    fake.objects -= memory != nullptr;
    for (fake_memory &one : fake.memory)
        if (one.block && one.first == memory) {
            std::free(one.block);
            one.block = nullptr;
            break;
        }
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
    if (fake.objects)
        std::printf("left behind: %d\n", fake.objects);
    else
        fake.memory.clear();
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

inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                                   cudaMemcpyKind, cudaStream_t)
{
    const cudaError_t error = fake_begin("cudaMemcpyAsync");
    if (error == cudaSuccess) std::memcpy(to, from, bytes);
    return error;
}

inline cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return fake_begin("cudaStreamSynchronize");
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
    fake_record("graph of %zu", graph->size());
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

/* Kernels with attributes: what they are given is recorded, and what a device refuses is
 * refused. They run once, not once a thread: such kernels are stand-ins themselves. */

struct cudaLaunchAttributeValue {
    struct {
        unsigned x, y, z;
    } clusterDim;
};
enum cudaLaunchAttributeID { cudaLaunchAttributeClusterDimension = 4 };
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};

inline cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute, int value)
{
    cudaError_t error = fake_begin("cudaFuncSetAttribute");
    if (error == cudaSuccess && (value < 0 || value > FAKE_MOST_SHARED))
        error = fake_failed(cudaErrorInvalidValue);
    if (error == cudaSuccess) fake.shared_bytes.push_back({ kernel, value });
    return error;
}

inline size_t fake_shared_bytes(const void *kernel)
{
    size_t bytes = FAKE_SHARED_BYTES;
    for (const auto &one : fake.shared_bytes)
        if (one.first == kernel) bytes = size_t(one.second);
    return bytes;
}

inline unsigned fake_cluster(const cudaLaunchConfig_t &launch)
{
    unsigned cluster = 1;
    for (unsigned i = 0; i < launch.numAttrs; i++)
        cluster = launch.attrs[i].val.clusterDim.x * launch.attrs[i].val.clusterDim.y *
                  launch.attrs[i].val.clusterDim.z;
    return cluster;
}

template <typename... Parameters, typename... Given>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *launch,
                               void (*kernel)(Parameters...), const Given &...values)
{
    const unsigned grid = launch->gridDim.x, block = launch->blockDim.x;
    const unsigned cluster = fake_cluster(*launch);
    const cudaError_t error = fake_begin("cudaLaunchKernelEx");
    fake_record("launch grid=%u block=%u cluster=%u shared=%zu", grid, block, cluster,
                launch->dynamicSmemBytes);
    if (error != cudaSuccess) return error;
    if (grid == 0 || block == 0 || block > 1024 || cluster == 0 || grid % cluster)
        return fake_failed(cudaErrorInvalidConfiguration);
    if (launch->dynamicSmemBytes >
        fake_shared_bytes(reinterpret_cast<const void *>(kernel)))
        return fake_failed(cudaErrorInvalidValue);
    fake_do(launch->stream, [kernel, values...] { kernel(values...); });
    return cudaSuccess;
}

#endif
