/* SPDX-License-Identifier: MIT */
/* Kernels that use shared memory, barriers and shuffles, run on the host: each thread of
 * a block is a context of its own, and runs until it has to wait for others. On top of
 * tests/verify/fake_cuda; one block after the other.
 *
 * A launch is written host_launch(kernel, grid, block, shared, stream)(arguments...). To
 * be included before any header with device code. Vector accesses must be aligned, and
 * threads that wait for each other for ever end the program. */
#ifndef ASSAY_TESTS_GPU_BLOCK_ON_HOST_H
#define ASSAY_TESTS_GPU_BLOCK_ON_HOST_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>
#include <memory>
#include <ucontext.h>

#define __shared__ static
#define __forceinline__
#define __grid_constant__
#define __launch_bounds__(threads)

using std::max;
using std::min;

struct alignas(8) uint2 {
    uint32_t x, y;
};
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};

/* --- Threads of one block. */

enum : unsigned { HOST_WARP = 32, HOST_STACK = 1u << 16 };

/* Where threads meet: the last one to come lets the others go. */
struct host_barrier {
    unsigned members, arrived, generation;
};

struct host_thread {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool is_done;
    uint32_t shown[2]; /* to the warp, by turns */
    unsigned turn;
};

struct host_block {
    std::vector<host_thread> threads;
    std::vector<host_barrier> warps;
    host_barrier all;
    ucontext_t scheduler;
    unsigned current, progress;
    std::function<void()> kernel;
};
inline host_block host;

inline void host_wait(host_barrier *barrier)
{
    const unsigned generation = barrier->generation;
    host.progress++;
    if (++barrier->arrived == barrier->members) {
        barrier->arrived = 0;
        barrier->generation++;
        return;
    }
    while (barrier->generation == generation)
        swapcontext(&host.threads[host.current].context, &host.scheduler);
}

inline void __syncthreads()
{
    host_wait(&host.all);
}

inline uint32_t __shfl_xor_sync(uint32_t, uint32_t value, int distance)
{
    host_thread &mine = host.threads[host.current];
    const unsigned turn = mine.turn++ % 2;
    mine.shown[turn] = value;
    host_wait(&host.warps[host.current / HOST_WARP]);
    return host.threads[host.current ^ unsigned(distance)].shown[turn];
}

inline void host_thread_begin()
{
    host.kernel();
    host.threads[host.current].is_done = true;
    host.progress++;
}

inline void host_open_block(unsigned threads)
{
    if (host.threads.size() != threads) host.threads = std::vector<host_thread>(threads);
    host.warps.assign((threads + HOST_WARP - 1) / HOST_WARP, { HOST_WARP, 0, 0 });
    host.all = { threads, 0, 0 };
    for (host_thread &one : host.threads) {
        if (!one.stack) one.stack.reset(new char[HOST_STACK]);
        one.is_done = false;
        one.turn = 0;
        getcontext(&one.context);
        one.context.uc_stack.ss_sp = one.stack.get();
        one.context.uc_stack.ss_size = HOST_STACK;
        one.context.uc_link = &host.scheduler;
        makecontext(&one.context, host_thread_begin, 0);
    }
}

inline void host_run_block(unsigned threads)
{
    host_open_block(threads);
    do {
        host.progress = 0;
        for (host.current = 0; host.current < threads; host.current++) {
            threadIdx.x = host.current % blockDim.x;
            threadIdx.y = host.current / blockDim.x % blockDim.y;
            threadIdx.z = host.current / blockDim.x / blockDim.y;
            if (!host.threads[host.current].is_done)
                swapcontext(&host.scheduler, &host.threads[host.current].context);
        }
    } while (host.progress > 0);
    for (const host_thread &one : host.threads)
        if (!one.is_done) {
            std::fprintf(stderr, "a thread waits for ever\n");
            std::abort();
        }
}

template <typename... Parameters> struct host_launcher {
    void (*kernel)(Parameters...);
    dim3 grid, block;

    void operator()(Parameters... values) const
    {
        const unsigned threads = block.x * block.y * block.z;
        if (threads == 0 || threads > 1024 || threads % HOST_WARP || grid.x == 0 ||
            grid.x > 0x7FFFFFFFu || grid.y == 0 || grid.y > 65535 || grid.z == 0 ||
            grid.z > 65535) {
            fake_failed(cudaErrorInvalidConfiguration);
            return;
        }
        host.kernel = [this, values...] { kernel(values...); };
        gridDim = grid, blockDim = block;
        for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
            for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
                for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
                    host_run_block(threads);
    }
};

template <typename... Parameters>
host_launcher<Parameters...> host_launch(void (*kernel)(Parameters...), dim3 grid,
                                         dim3 block, size_t, cudaStream_t)
{
    return { kernel, grid, block };
}

/* --- Intrinsics, by what the CUDA manual says of them. */

inline float __uint_as_float(uint32_t bits)
{
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

inline uint32_t __float_as_uint(float value)
{
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
}

inline float __fmul_rn(float a, float b)
{
    return a * b;
}

inline float __fdiv_rn(float a, float b)
{
    return a / b;
}

inline float __frcp_rn(float a)
{
    return 1 / a;
}

template <typename Value> Value __ldcs(const Value *from)
{
    if (reinterpret_cast<uintptr_t>(from) % sizeof(Value)) {
        std::fprintf(stderr, "a load of %zu bytes is not aligned\n", sizeof(Value));
        std::abort();
    }
    return *from;
}

inline uint32_t __vmaxu2(uint32_t a, uint32_t b)
{
    return max(a & 0xFFFF0000, b & 0xFFFF0000) | max(a & 0xFFFF, b & 0xFFFF);
}

inline uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t selector)
{
    const uint64_t bytes = uint64_t(b) << 32 | a;
    uint32_t result = 0;
    for (unsigned i = 0; i < 4; i++)
        result |= uint32_t(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
    return result;
}

/* --- gpu/ptx/convert.cuh. */

#define ASSAY_GPU_PTX_CONVERT_CUH
namespace ptx {

inline double e4m3_magnitude(uint32_t code)
{
    const int exponent = int(code >> 3), mantissa = int(code & 7);
    return exponent ? std::ldexp(8 + mantissa, exponent - 10) : std::ldexp(mantissa, -9);
}

inline uint32_t e4m3(float value)
{
    const double magnitude = std::fabs(double(value));
    uint32_t code = 0;
    if (std::isnan(value)) return 0x7F;
    while (code < 0x7E && e4m3_magnitude(code + 1) <= magnitude)
        code++;
    if (code < 0x7E) {
        const double above = e4m3_magnitude(code + 1) - magnitude;
        const double below = magnitude - e4m3_magnitude(code);
        code += above < below || (above == below && code % 2);
    }
    return std::signbit(value) ? code | 0x80 : code;
}

inline uint32_t e4m3x2(float low, float high)
{
    return e4m3(low) | e4m3(high) << 8;
}

} // namespace ptx

#endif
