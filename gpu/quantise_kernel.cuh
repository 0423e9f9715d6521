/* SPDX-License-Identifier: MIT */
/* Quantisers to e4m3, on the device. A thread holds chunks of eight neighbouring elements
 * of a row in registers, one a row it does, so that x is read once. amax is a maximum of
 * bits: those of non-negative floats are ordered as the floats are, and a NaN's are
 * largest, which makes it win as torch.amax has it. */
#ifndef ASSAY_GPU_QUANTISE_KERNEL_CUH
#define ASSAY_GPU_QUANTISE_KERNEL_CUH

#include "gpu/ptx/convert.cuh"

#include <cstdint>

enum : int {
    GPU_QUANTISE_CHUNK = 8, /* elements */
    GPU_QUANTISE_THREADS = 256,
    GPU_QUANTISE_TOKEN_ROWS = 4 /* that a thread has at once */
};

struct gpu_quantise_arguments {
    const void *x;
    uint8_t *q;
    float *sf;
    int64_t m, k, k_blocks;
    int64_t x_stride, q_stride; /* elements from row to row */
    /* Whether every chunk of x begins at a multiple of 16 bytes, and of q at one of 8. */
    bool x_is_aligned, q_is_aligned;
    bool has_power_of_two_scale;
    bool is_reciprocal;   /* rn(amax * rn(1 / 448)) for rn(amax / 448) */
    bool overflow_is_nan; /* infinity becomes NaN, not 448 */
};

namespace quantise {

enum : uint32_t {
    MAGNITUDE = 0x7FFFFFFF,
    INFINITY_BITS = 0x7F800000,
    MANTISSA = 0x007FFFFF,
    MANTISSA_BITS = 23,
    SMALLEST_AMAX = 0x38D1B717, /* 1e-4, DeepGEMM's clamp */
    LARGEST_TIE = 0x43E80000,   /* 464, half way from 448 to what would be 480 */
    WHOLE_WARP = 0xFFFFFFFF
};

/* Eight elements as they lie in memory. @Element: uint16_t for bf16, uint32_t for f32. */
template <typename Element> struct chunk {
    enum : int { WORDS = GPU_QUANTISE_CHUNK * sizeof(Element) / 4 };
    uint32_t word[WORDS];
};

/* Where a chunk lies in its row: @count of its elements are inside. */
struct columns {
    int64_t first;
    int count;
};

__device__ __forceinline__ columns columns_from(int64_t first, int64_t k)
{
    const int64_t most = GPU_QUANTISE_CHUNK;
    return { first, int(max(min(k - first, most), int64_t(0))) };
}

template <typename Element>
__device__ __forceinline__ chunk<Element> load_whole(const Element *from)
{
    chunk<Element> loaded;
#pragma unroll
    for (int i = 0; i < chunk<Element>::WORDS / 4; i++) {
        const uint4 words = __ldcs(reinterpret_cast<const uint4 *>(from) + i);
        loaded.word[4 * i] = words.x;
        loaded.word[4 * i + 1] = words.y;
        loaded.word[4 * i + 2] = words.z;
        loaded.word[4 * i + 3] = words.w;
    }
    return loaded;
}

/* Zero, which changes no amax, where the row has ended. */
template <typename Element>
__device__ __forceinline__ chunk<Element> load_part(const Element *from, int count)
{
    enum : int { IN_WORD = 4 / sizeof(Element) };
    chunk<Element> loaded;
#pragma unroll
    for (int i = 0; i < chunk<Element>::WORDS; i++) {
        loaded.word[i] = 0;
#pragma unroll
        for (int j = 0; j < IN_WORD; j++)
            if (i * IN_WORD + j < count)
                loaded.word[i] |= uint32_t(from[i * IN_WORD + j]) << 16 * j;
    }
    return loaded;
}

/* Chunks of @rows rows, @step apart. Behind the last row of x the last one is read again:
 * it belongs to the same block, or to nobody. */
template <typename Element, int rows>
__device__ __forceinline__ void load(const gpu_quantise_arguments &arguments,
                                     chunk<Element> (&into)[rows], const columns &place,
                                     int64_t first_row, int64_t step)
{
    const Element *const x = static_cast<const Element *>(arguments.x) + place.first;
    const int64_t last_row = arguments.m - 1;
    if (arguments.x_is_aligned && place.count == GPU_QUANTISE_CHUNK) {
#pragma unroll
        for (int i = 0; i < rows; i++)
            into[i] =
                load_whole(x + min(first_row + i * step, last_row) * arguments.x_stride);
    } else {
#pragma unroll
        for (int i = 0; i < rows; i++)
            into[i] =
                load_part(x + min(first_row + i * step, last_row) * arguments.x_stride,
                          place.count);
    }
}

__device__ __forceinline__ uint32_t amax_bits(const chunk<uint32_t> &of)
{
    uint32_t amax = 0;
#pragma unroll
    for (int i = 0; i < chunk<uint32_t>::WORDS; i++)
        amax = max(amax, of.word[i] & MAGNITUDE);
    return amax;
}

/* Both halves of the words at once. */
__device__ __forceinline__ uint32_t amax_bits(const chunk<uint16_t> &of)
{
    uint32_t both = 0;
#pragma unroll
    for (int i = 0; i < chunk<uint16_t>::WORDS; i++)
        both = __vmaxu2(both, of.word[i] & 0x7FFF7FFF);
    return max(both << 16, both & 0xFFFF0000);
}

/* The largest of neighbouring @lanes, a power of two, in each of them. */
template <int lanes> __device__ __forceinline__ uint32_t largest_of_lanes(uint32_t value)
{
#pragma unroll
    for (int distance = 1; distance < lanes; distance *= 2)
        value = max(value, __shfl_xor_sync(WHOLE_WARP, value, distance));
    return value;
}

/* Up to the next power of two, from 2^-126 to 2^127, by the bits alone: a NaN, too. */
__device__ __forceinline__ uint32_t power_of_two_bits(uint32_t scale)
{
    const uint32_t code = (scale >> MANTISSA_BITS) + ((scale & MANTISSA) != 0);
    return min(max(code, 1u), 254u) << MANTISSA_BITS;
}

/* The scale that is stored. */
__device__ __forceinline__ float scale_of(const gpu_quantise_arguments &arguments,
                                          uint32_t amax)
{
    const uint32_t clamped = max(amax, uint32_t(SMALLEST_AMAX));
    const float value = __uint_as_float(clamped);
    const float quotient = arguments.is_reciprocal ? __fmul_rn(value, 1.0f / 448.0f)
                                                   : __fdiv_rn(value, 448.0f);
    const uint32_t raw =
        clamped > INFINITY_BITS ? uint32_t(MAGNITUDE) : __float_as_uint(quotient);
    return __uint_as_float(arguments.has_power_of_two_scale ? power_of_two_bits(raw)
                                                            : raw);
}

__device__ __forceinline__ float value_at(const chunk<uint32_t> &of, int element)
{
    return __uint_as_float(of.word[element]);
}

__device__ __forceinline__ float value_at(const chunk<uint16_t> &of, int element)
{
    const uint32_t word = of.word[element / 2];
    return __uint_as_float(element % 2 ? word & 0xFFFF0000 : word << 16);
}

__device__ __forceinline__ bool overflows(float value)
{
    return (__float_as_uint(value) & MAGNITUDE) > LARGEST_TIE;
}

/* Codes of elements @first to @first + 3. */
template <typename Element>
__device__ __forceinline__ uint32_t codes_of(const gpu_quantise_arguments &arguments,
                                             const chunk<Element> &of, int first,
                                             float inverse)
{
    float value[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        value[i] = __fmul_rn(value_at(of, first + i), inverse);
    uint32_t codes = ptx::e4m3x2(value[0], value[1]) | ptx::e4m3x2(value[2], value[3])
                                                           << 16;
    if (arguments.overflow_is_nan) {
        /* From 0x7E to 0x7F, the sign as it is; a NaN is that already. */
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (overflows(value[i])) codes |= 1u << 8 * i;
    }
    return codes;
}

template <typename Element>
__device__ __forceinline__ void store(const gpu_quantise_arguments &arguments,
                                      const chunk<Element> &of, const columns &place,
                                      int64_t row, float inverse)
{
    uint8_t *const q = arguments.q + row * arguments.q_stride + place.first;
    const uint2 codes = { codes_of(arguments, of, 0, inverse),
                          codes_of(arguments, of, 4, inverse) };
    if (arguments.q_is_aligned && place.count == GPU_QUANTISE_CHUNK) {
        *reinterpret_cast<uint2 *>(q) = codes;
        return;
    }
#pragma unroll
    for (int i = 0; i < GPU_QUANTISE_CHUNK; i++)
        if (i < place.count) q[i] = uint8_t((i < 4 ? codes.x : codes.y) >> 8 * (i % 4));
}

} // namespace quantise

/* A scale for 1 x @gran elements. Blocks of (X, 256 / X) threads, X a multiple of 32: a
 * warp lies in one row. */
template <typename Element, int gran>
__global__ __launch_bounds__(GPU_QUANTISE_THREADS) void gpu_quantise_tokens(
    const __grid_constant__ gpu_quantise_arguments arguments)
{
    enum : int { ROWS = GPU_QUANTISE_TOKEN_ROWS, LANES = gran / GPU_QUANTISE_CHUNK };
    const int64_t thread = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const quantise::columns place =
        quantise::columns_from(thread * GPU_QUANTISE_CHUNK, arguments.k);
    const int64_t step = blockDim.y, tile = step * ROWS;
    for (int64_t row0 = blockIdx.y * tile; row0 < arguments.m; row0 += gridDim.y * tile) {
        quantise::chunk<Element> chunks[ROWS];
        quantise::load(arguments, chunks, place, row0 + threadIdx.y, step);
        /* First, so that the shuffles of all rows are under way at once. */
        uint32_t amax[ROWS];
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            amax[i] = quantise::largest_of_lanes<LANES>(quantise::amax_bits(chunks[i]));
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const int64_t row = row0 + threadIdx.y + i * step;
            const float scale = quantise::scale_of(arguments, amax[i]);
            if (row >= arguments.m || place.count == 0) continue;
            quantise::store(arguments, chunks[i], place, row, __frcp_rn(scale));
            if (threadIdx.x % LANES == 0)
                arguments.sf[row * arguments.k_blocks + place.first / gran] = scale;
        }
    }
}

/* A scale for @gran x @gran elements: 256 threads for 128 x 128 of them, a warp for
 * 32 x 32. */
template <typename Element, int gran>
__global__ __launch_bounds__(GPU_QUANTISE_THREADS) void gpu_quantise_blocks(
    const __grid_constant__ gpu_quantise_arguments arguments)
{
    enum : int {
        THREADS = gran == 128 ? GPU_QUANTISE_THREADS : 32,
        LANES = gran / GPU_QUANTISE_CHUNK,
        STEP = THREADS / LANES, /* rows at once */
        ROWS = gran / STEP,
        WARPS = THREADS / 32
    };
    __shared__ uint32_t of_warps[WARPS];
    const int thread = threadIdx.x % THREADS;
    const int64_t k_block =
        int64_t(blockIdx.x) * (GPU_QUANTISE_THREADS / THREADS) + threadIdx.x / THREADS;
    const quantise::columns place = quantise::columns_from(
        k_block * gran + thread % LANES * GPU_QUANTISE_CHUNK, arguments.k);
    const int64_t row_blocks = (arguments.m + gran - 1) / gran;
    for (int64_t block = blockIdx.y; block < row_blocks; block += gridDim.y) {
        const int64_t first_row = block * gran + thread / LANES;
        quantise::chunk<Element> chunks[ROWS];
        quantise::load(arguments, chunks, place, first_row, STEP);
        uint32_t amax = 0;
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            amax = max(amax, quantise::amax_bits(chunks[i]));
        amax = quantise::largest_of_lanes<32>(amax);
        if (WARPS > 1) {
            if (thread % 32 == 0) of_warps[thread / 32] = amax;
            __syncthreads();
#pragma unroll
            for (int i = 0; i < WARPS; i++)
                amax = max(amax, of_warps[i]);
            __syncthreads();
        }
        const float scale = quantise::scale_of(arguments, amax);
        const float inverse = __frcp_rn(scale);
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (first_row + i * STEP < arguments.m && place.count > 0)
                quantise::store(arguments, chunks[i], place, first_row + i * STEP,
                                inverse);
        if (thread == 0 && place.count > 0)
            arguments.sf[block * arguments.k_blocks + k_block] = scale;
    }
}

#endif
