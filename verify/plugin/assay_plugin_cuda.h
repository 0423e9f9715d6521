/* SPDX-License-Identifier: MIT */
/* What a plugin for an NVIDIA GPU needs around its kernel, in C++17 for nvcc (CUDA 11.8
 * and later): copies of the tensors in guarded device memory, a stream, launches under
 * the clock, and a sentence for whatever fails. The plugin itself is then two functions:
 *
 *     static int claim(const assay_call *call, assay_claim *claim);
 *
 *     static cudaError_t launch(assay_cuda::run &run)
 *     {
 *         mine<<<grid, block, 0, run.stream>>>(run.device<float>("d"), ...);
 *         return cudaGetLastError();
 *     }
 *
 *     extern "C" const assay_plugin *assay_plugin_v1(void)
 *     {
 *         static const assay_plugin plugin =
 *             assay_cuda::plugin<launch>("mine", "1", claim);
 *         return &plugin;
 *     }
 *
 * Every tensor has an allocation of its own, and is uploaded as it is: inputs with the
 * NaN between their rows, outputs with their poison. Its bytes lie between two bands of
 * guard bytes. After the launches all bands must be as they were, and all inputs.
 *
 * Options in `plugin:FILE.so,option=value` that this header takes, beside your own:
 *
 *     guard=BYTES  width of a band (4096), rounded up to 256. 0 for compute-sanitizer:
 *                  allocations then end where tensors end
 *     inputs=0     does not compare the inputs after the launches: less to copy back
 *     graph=1      captures one launch into a CUDA graph and replays that
 *     cold=1       flushes the L2 cache before each launch; the time is then the median
 *                  of the launches times their number, not that of all together */
#ifndef ASSAY_PLUGIN_CUDA_H
#define ASSAY_PLUGIN_CUDA_H

#ifndef __cplusplus
  #error "assay_plugin_cuda.h is for C++; plain C has assay_plugin.h"
#endif

#include <algorithm>
#include <assay_plugin.h>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <exception>
#include <memory>
#include <new>
#include <vector>

namespace assay_cuda {

class run;

/* Enqueues the work of one launch on run.stream, without waiting for it. */
using launch_function = cudaError_t(run &run);
/* What is done once a case, before the first launch: plans, workspaces. */
using setup_function = cudaError_t(run &run);

/* Writes the sentence that goes with a result other than OK, which it returns. */
__attribute__((format(printf, 3, 4))) inline int
complain(const assay_call *call, int result, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    std::vsnprintf(call->why, (size_t)call->why_bytes, format, values);
    va_end(values);
    return result;
}

/* What a CUDA error means for the case. The kernel's own faults, which end its context
 * too, are failures; a device is lost when it went by itself. */
inline int result_of(cudaError_t error)
{
    switch (error) {
    case cudaSuccess: return ASSAY_PLUGIN_OK;
    case cudaErrorMemoryAllocation: return ASSAY_PLUGIN_OUT_OF_MEMORY;
    case cudaErrorDevicesUnavailable:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorUnknown: return ASSAY_PLUGIN_DEVICE_LOST;
    default: return ASSAY_PLUGIN_FAILED;
    }
}

inline int check(const assay_call *call, cudaError_t error, const char *where)
{
    if (error == cudaSuccess) return ASSAY_PLUGIN_OK;
    return complain(call, result_of(error), "%s: %s (%s)", where,
                    cudaGetErrorString(error), cudaGetErrorName(error));
}

/* Bytes of one element, and of a tensor with its row padding. */
inline size_t element_bytes(const assay_plugin_tensor &tensor)
{
    switch (tensor.format) {
    case ASSAY_PLUGIN_BF16:
    case ASSAY_PLUGIN_F16: return 2;
    case ASSAY_PLUGIN_TF32:
    case ASSAY_PLUGIN_F32:
    case ASSAY_PLUGIN_I32: return 4;
    default: return 1;
    }
}

inline size_t tensor_bytes(const assay_plugin_tensor &tensor)
{
    for (int32_t i = 0; i < tensor.rank; i++)
        if (tensor.shape[i] == 0) return 0;
    const int64_t elements = tensor.rank ? tensor.shape[0] * tensor.stride[0] : 1;
    return (size_t)elements * element_bytes(tensor);
}

/* Device memory between two bands of guard bytes. */
struct buffer {
    const char *name;
    const assay_plugin_tensor *tensor; /* NULL: a workspace */
    size_t bytes;
    unsigned char *block, *data; /* the allocation, and what lies behind the first band */

    const char *kind() const
    {
        return !tensor ? "workspace" : tensor->is_output ? "output" : "input";
    }
};

struct settings {
    size_t guard;
    bool compares_inputs, has_graph, is_cold;
};

/* One case, from prepare to release. */
class run {
  public:
    const assay_call *const call;
    cudaStream_t stream = nullptr; /* ordered with the default stream, too */
    std::shared_ptr<void> state;   /* anything of yours; goes with the run */

    run(const assay_call *case_call, launch_function *launch_once)
        : call(case_call), function(launch_once)
    {
    }
    run(const run &) = delete;
    run &operator=(const run &) = delete;
    ~run();

    /* The tensor of that name, and its elements on the host: NULL if there is none. */
    const assay_plugin_tensor *tensor(const char *name) const
    {
        return assay_call_tensor(call, name);
    }
    template <typename T> const T *host(const char *name) const
    {
        const assay_plugin_tensor *const found = tensor(name);
        return found ? static_cast<const T *>(found->data) : nullptr;
    }

    /* The tensor or workspace of that name on the device, aligned to 256 bytes; NULL if
     * there is none. */
    template <typename T> T *device(const char *name) const
    {
        for (const buffer &one : buffers)
            if (std::strcmp(one.name, name) == 0) return reinterpret_cast<T *>(one.data);
        return nullptr;
    }

    /* Device memory for intermediate results, guarded as tensors are; it holds poison in
     * the beginning. For a setup function; @name must stay. */
    cudaError_t workspace(const char *name, size_t bytes)
    {
        return allocate(name, nullptr, bytes);
    }

    /* For setup and launch functions: says in a sentence of their own why they cannot go
     * on, and returns the error to return. */
    __attribute__((format(printf, 2, 3))) cudaError_t refuse(const char *format, ...)
    {
        va_list values;
        va_start(values, format);
        std::vsnprintf(call->why, (size_t)call->why_bytes, format, values);
        va_end(values);
        has_refused = true;
        return cudaErrorInvalidValue;
    }

    /* What the plugin's functions do. */
    int open(setup_function *setup);
    int launch(int repeats, double *seconds);
    int fetch();

  private:
    enum : int { guard_byte = 0xA5, poison_byte = 0xDB };
    enum : size_t { alignment = 256, piece_bytes = size_t(1) << 24 };

    launch_function *const function;
    settings options = {};
    bool has_refused = false;
    std::vector<buffer> buffers;
    std::vector<unsigned char> piece; /* of device memory, to be looked at */
    cudaEvent_t start = nullptr, end = nullptr;
    cudaGraphExec_t graph = nullptr;
    void *flushed = nullptr; /* memory that fills the L2 cache */
    size_t flushed_bytes = 0;

    int check_work(cudaError_t error, const char *where) const
    {
        return error != cudaSuccess && has_refused ? int(ASSAY_PLUGIN_FAILED)
                                                   : check(call, error, where);
    }
    int read_options();
    int read_option(const char *key, long most, long *value);
    cudaError_t allocate(const char *name, const assay_plugin_tensor *tensor,
                         size_t bytes);
    int upload();
    cudaError_t call_once();
    cudaError_t capture();
    cudaError_t open_flush();
    cudaError_t enqueue();
    cudaError_t time_launches(int count, float *milliseconds);
    cudaError_t time_cold(int count, float *milliseconds);
    cudaError_t bring(const unsigned char *device, size_t bytes);
    int check_guards(const buffer &one);
    int check_input(const buffer &one);
};

inline run::~run()
{
    if (graph) cudaGraphExecDestroy(graph);
    if (flushed) cudaFree(flushed);
    for (const buffer &one : buffers)
        cudaFree(one.block);
    if (start) cudaEventDestroy(start);
    if (end) cudaEventDestroy(end);
    if (stream) cudaStreamDestroy(stream);
}

/* --- Options. */

inline int run::read_option(const char *key, long most, long *value)
{
    char text[32], *stop = text;
    if (!assay_plugin_setting(call->options, ',', key, text, sizeof(text)))
        return ASSAY_PLUGIN_OK;
    *value = std::strtol(text, &stop, 10);
    if (*text && !*stop && *value >= 0 && *value <= most) return ASSAY_PLUGIN_OK;
    return complain(call, ASSAY_PLUGIN_FAILED, "option %s=%s is no number from 0 to %ld",
                    key, text, most);
}

inline int run::read_options()
{
    long guard = 4096, inputs = 1, has_graph = 0, cold = 0;
    int result = read_option("guard", 1L << 30, &guard);
    if (result == ASSAY_PLUGIN_OK) result = read_option("inputs", 1, &inputs);
    if (result == ASSAY_PLUGIN_OK) result = read_option("graph", 1, &has_graph);
    if (result == ASSAY_PLUGIN_OK) result = read_option("cold", 1, &cold);
    options.guard = ((size_t)guard + alignment - 1) / alignment * alignment;
    options.compares_inputs = inputs != 0;
    options.has_graph = has_graph != 0;
    options.is_cold = cold != 0;
    return result;
}

/* --- Memory. */

inline cudaError_t run::allocate(const char *name, const assay_plugin_tensor *tensor,
                                 size_t bytes)
{
    const size_t whole = std::max(bytes + 2 * options.guard, size_t(1));
    void *block = nullptr;
    buffers.reserve(buffers.size() + 1);
    if (bytes > whole) return cudaErrorMemoryAllocation;
    cudaError_t error = cudaMalloc(&block, whole);
    if (error != cudaSuccess) return error;
    unsigned char *const first = static_cast<unsigned char *>(block);
    buffers.push_back({ name, tensor, bytes, first, first + options.guard });
    error = cudaMemset(block, guard_byte, whole);
    if (error == cudaSuccess && bytes > 0)
        error = cudaMemset(first + options.guard, poison_byte, bytes);
    return error;
}

inline int run::upload()
{
    char where[96];
    for (int32_t i = 0; i < call->tensor_count; i++) {
        const assay_plugin_tensor *const tensor = call->tensor[i];
        const size_t bytes = tensor_bytes(*tensor);
        std::snprintf(where, sizeof(where), "uploading %s (%zu bytes)", tensor->name,
                      bytes);
        cudaError_t error = allocate(tensor->name, tensor, bytes);
        if (error == cudaSuccess && bytes > 0)
            error = cudaMemcpy(buffers.back().data, tensor->data, bytes,
                               cudaMemcpyHostToDevice);
        if (error != cudaSuccess) return check(call, error, where);
    }
    return ASSAY_PLUGIN_OK;
}

inline int run::open(setup_function *setup)
{
    int result = read_options();
    if (result != ASSAY_PLUGIN_OK) return result;
    cudaError_t error = cudaStreamCreate(&stream);
    if (error == cudaSuccess) error = cudaEventCreate(&start);
    if (error == cudaSuccess) error = cudaEventCreate(&end);
    result = check(call, error, "opening a stream");
    if (result == ASSAY_PLUGIN_OK) result = upload();
    if (result != ASSAY_PLUGIN_OK) return result;
    error = setup ? setup(*this) : cudaSuccess;
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    return check_work(error, "setting up");
}

/* --- Launches. */

/* Errors that the function did not look at count, too. */
inline cudaError_t run::call_once()
{
    const cudaError_t error = function(*this);
    return error == cudaSuccess ? cudaGetLastError() : error;
}

inline cudaError_t run::capture()
{
    cudaGraph_t captured = nullptr;
    /* Relaxed: the first launch of a kernel may have to load it. */
    cudaError_t error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    if (error != cudaSuccess) return error;
    error = call_once();
    const cudaError_t ending = cudaStreamEndCapture(stream, &captured);
    if (error == cudaSuccess) error = ending;
    if (error == cudaSuccess) error = cudaGraphInstantiateWithFlags(&graph, captured, 0);
    if (captured) cudaGraphDestroy(captured);
    return error;
}

inline cudaError_t run::open_flush()
{
    int device = 0, cache = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device);
    flushed_bytes = 4 * std::max(size_t(cache), size_t(1) << 20);
    if (error == cudaSuccess) error = cudaMalloc(&flushed, flushed_bytes);
    return error;
}

inline cudaError_t run::enqueue()
{
    return graph ? cudaGraphLaunch(graph, stream) : call_once();
}

inline cudaError_t run::time_launches(int count, float *milliseconds)
{
    cudaError_t error = cudaEventRecord(start, stream);
    for (int i = 0; i < count && error == cudaSuccess; i++)
        error = enqueue();
    if (error == cudaSuccess) error = cudaEventRecord(end, stream);
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    if (error == cudaSuccess) error = cudaEventElapsedTime(milliseconds, start, end);
    return error;
}

/* The flush runs while the launch is being enqueued, so that the time is the GPU's. */
inline cudaError_t run::time_cold(int count, float *milliseconds)
{
    std::vector<float> samples((size_t)count);
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < count && error == cudaSuccess; i++) {
        error = cudaMemsetAsync(flushed, i & 0xFF, flushed_bytes, stream);
        if (error == cudaSuccess) error = time_launches(1, &samples[(size_t)i]);
    }
    const auto middle = samples.begin() + count / 2;
    std::nth_element(samples.begin(), middle, samples.end());
    *milliseconds = *middle * (float)count;
    return error;
}

inline int run::launch(int repeats, double *seconds)
{
    float milliseconds = 0;
    cudaError_t error = cudaSuccess;
    if (options.has_graph && !graph) error = capture();
    if (error != cudaSuccess) return check_work(error, "capturing a graph");
    if (options.is_cold && !flushed) error = open_flush();
    if (error == cudaSuccess)
        error = options.is_cold ? time_cold(repeats, &milliseconds)
                                : time_launches(repeats, &milliseconds);
    if (seconds) *seconds = milliseconds / 1e3;
    return check_work(error, "launching");
}

/* --- Afterwards. */

inline cudaError_t run::bring(const unsigned char *device, size_t bytes)
{
    piece.resize(std::max(piece.size(), bytes));
    return bytes ? cudaMemcpy(piece.data(), device, bytes, cudaMemcpyDeviceToHost)
                 : cudaSuccess;
}

inline int run::check_guards(const buffer &one)
{
    for (int side = 0; side < 2; side++) {
        const cudaError_t error =
            bring(side ? one.data + one.bytes : one.block, options.guard);
        if (error != cudaSuccess) return check(call, error, "reading guard bytes");
        size_t changed = 0, nearest = options.guard;
        for (size_t i = 0; i < options.guard; i++)
            if (piece[i] != guard_byte) {
                changed++;
                nearest = std::min(nearest, side ? i : options.guard - 1 - i);
            }
        if (changed)
            return complain(call, ASSAY_PLUGIN_FAILED,
                            "a launch wrote %s of %s %s: %zu bytes, the nearest at a "
                            "distance of %zu",
                            side ? "behind the end" : "before the beginning", one.kind(),
                            one.name, changed, nearest);
    }
    return ASSAY_PLUGIN_OK;
}

inline int run::check_input(const buffer &one)
{
    const unsigned char *const given =
        static_cast<const unsigned char *>(one.tensor->data);
    size_t changed = 0, first = one.bytes;
    for (size_t at = 0; at < one.bytes; at += piece_bytes) {
        const size_t bytes = std::min(one.bytes - at, size_t(piece_bytes));
        const cudaError_t error = bring(one.data + at, bytes);
        if (error != cudaSuccess) return check(call, error, "reading an input");
        if (std::memcmp(piece.data(), given + at, bytes) == 0) continue;
        for (size_t i = 0; i < bytes; i++)
            if (piece[i] != given[at + i]) {
                changed++;
                first = std::min(first, at + i);
            }
    }
    if (changed == 0) return ASSAY_PLUGIN_OK;
    return complain(call, ASSAY_PLUGIN_FAILED,
                    "a launch changed input %s: %zu of %zu bytes, the first at byte %zu",
                    one.name, changed, one.bytes, first);
}

inline int run::fetch()
{
    int result = ASSAY_PLUGIN_OK;
    for (const buffer &one : buffers)
        if (result == ASSAY_PLUGIN_OK) result = check_guards(one);
    for (const buffer &one : buffers) {
        const bool is_output = one.tensor && one.tensor->is_output;
        if (result != ASSAY_PLUGIN_OK) break;
        if (is_output && one.bytes > 0)
            result = check(
                call,
                cudaMemcpy(one.tensor->data, one.data, one.bytes, cudaMemcpyDeviceToHost),
                "fetching an output");
        else if (one.tensor && !is_output && options.compares_inputs)
            result = check_input(one);
    }
    return result;
}

/* --- The plugin's functions. */

/* Nothing may be thrown at the caller, which is C. */
template <typename Work> int without_exceptions(const assay_call *call, Work work)
{
    try {
        return work();
    } catch (const std::bad_alloc &) {
        return complain(call, ASSAY_PLUGIN_OUT_OF_MEMORY, "no host memory is left");
    } catch (const std::exception &thrown) {
        return complain(call, ASSAY_PLUGIN_FAILED, "an exception: %s", thrown.what());
    } catch (...) {
        return complain(call, ASSAY_PLUGIN_FAILED, "an exception of unknown type");
    }
}

template <launch_function *launch, setup_function *setup>
int prepare(const assay_call *call, void **state)
{
    return without_exceptions(call, [&] {
        std::unique_ptr<run> opened(new run(call, launch));
        const int result = opened->open(setup);
        if (result == ASSAY_PLUGIN_OK) *state = opened.release();
        return result;
    });
}

inline int launch(void *state, int repeats, double *seconds)
{
    run *const opened = static_cast<run *>(state);
    return without_exceptions(opened->call,
                              [&] { return opened->launch(repeats, seconds); });
}

inline int fetch(void *state)
{
    run *const opened = static_cast<run *>(state);
    return without_exceptions(opened->call, [&] { return opened->fetch(); });
}

inline void release(void *state)
{
    delete static_cast<run *>(state);
}

/* The table that assay_plugin_v1 points to. */
template <launch_function *launch_once, setup_function *setup = nullptr>
assay_plugin plugin(const char *name, const char *version,
                    int (*claim)(const assay_call *call, assay_claim *claim))
{
    return { ASSAY_PLUGIN_ABI,
             sizeof(assay_plugin),
             0,
             0,
             name,
             version,
             claim,
             prepare<launch_once, setup>,
             launch,
             fetch,
             release };
}

} // namespace assay_cuda

#endif
