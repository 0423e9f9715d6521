/* SPDX-License-Identifier: MIT */
/* Scales from one memory layout to another, on the device: tiles of 32 rows and 32 K
 * blocks through shared memory, as f32 bits, so that both sides are contiguous whatever
 * the layouts. */
#ifndef ASSAY_GPU_SCALE_LAYOUT_KERNEL_CUH
#define ASSAY_GPU_SCALE_LAYOUT_KERNEL_CUH

#include <cstdint>

enum gpu_scale_layout_form {
    GPU_SCALE_K_MAJOR,     /* f32 [rows][k_blocks] */
    GPU_SCALE_MN_MAJOR,    /* f32 [k_blocks][rows] */
    GPU_SCALE_PACKED_UE8M0 /* four exponents a word, [ceil(k_blocks / 4)][rows] */
};

enum : int { GPU_SCALE_TILE = 32, GPU_SCALE_TILE_THREADS_Y = 8 };

struct gpu_scale_layout_side {
    uint32_t *data;
    int64_t group_stride, stride; /* in words of four bytes; of the outer dimension */
};

struct gpu_scale_layout_arguments {
    gpu_scale_layout_side from, to;
    int64_t groups, k_blocks;
    int64_t rows;         /* of the output */
    int64_t written_rows; /* that many and more: zeros for those beyond */
    int repeat_shift;     /* 2^that rows of the output have the same row of the input */
};

namespace scale_layout {

enum : int {
    TILE = GPU_SCALE_TILE,
    STEP = GPU_SCALE_TILE_THREADS_Y,
    IN_WORD = 4,
    MANTISSA_BITS = 23
};
static_assert(STEP * IN_WORD == TILE, "a thread has one word of a tile");

/* One column more, so that neither rows nor columns share a bank. */
using tile = uint32_t[TILE][TILE + 1]; /* [K block][row] */

struct origin {
    int64_t group, row, k_block;
};

/* Code 0 is the subnormal 2^-127; 255 is NaN. */
__device__ __forceinline__ uint32_t unpacked(uint32_t code)
{
    if (code == 0) return 0x00400000;
    return code == 255 ? 0x7FFFFFFFu : code << MANTISSA_BITS;
}

/* Zero for what lies outside. */
template <gpu_scale_layout_form form>
__device__ void load(const gpu_scale_layout_arguments &arguments, const origin &at,
                     tile &into)
{
    const gpu_scale_layout_side &from = arguments.from;
    const uint32_t *const data = from.data + at.group * from.group_stride;
    const int x = threadIdx.x, y = threadIdx.y;
    for (int i = 0; i < IN_WORD; i++) {
        const bool is_k_major = form == GPU_SCALE_K_MAJOR;
        const int column = is_k_major ? y + STEP * i : x;
        const int block = is_k_major                       ? x
                          : form == GPU_SCALE_PACKED_UE8M0 ? IN_WORD * y + i
                                                           : y + STEP * i;
        const int64_t k_block = at.k_block + block;
        const int64_t row = (at.row + column) >> arguments.repeat_shift;
        uint32_t scale = 0;
        if (at.row + column < arguments.rows && k_block < arguments.k_blocks) {
            if (is_k_major)
                scale = data[row * from.stride + k_block];
            else if (form == GPU_SCALE_MN_MAJOR)
                scale = data[k_block * from.stride + row];
            else
                scale =
                    unpacked(data[k_block / IN_WORD * from.stride + row] >> 8 * i & 255);
        }
        into[block][column] = scale;
    }
}

/* The exponents of four K blocks of a row. */
__device__ __forceinline__ uint32_t packed(const tile &scales, int first, int column)
{
    uint32_t word = 0;
    for (int i = 0; i < IN_WORD; i++)
        word |= (scales[first + i][column] >> MANTISSA_BITS & 255) << 8 * i;
    return word;
}

template <gpu_scale_layout_form form>
__device__ void store(const gpu_scale_layout_arguments &arguments, const origin &at,
                      const tile &scales)
{
    const gpu_scale_layout_side &to = arguments.to;
    uint32_t *const data = to.data + at.group * to.group_stride;
    const int x = threadIdx.x, y = threadIdx.y;
    for (int i = 0; i < (form == GPU_SCALE_PACKED_UE8M0 ? 1 : IN_WORD); i++) {
        const bool is_k_major = form == GPU_SCALE_K_MAJOR;
        const int column = is_k_major ? y + STEP * i : x;
        const int block = is_k_major                       ? x
                          : form == GPU_SCALE_PACKED_UE8M0 ? IN_WORD * y
                                                           : y + STEP * i;
        const int64_t row = at.row + column, k_block = at.k_block + block;
        if (row >= arguments.written_rows || k_block >= arguments.k_blocks) continue;
        if (is_k_major)
            data[row * to.stride + k_block] = scales[block][column];
        else if (form == GPU_SCALE_MN_MAJOR)
            data[k_block * to.stride + row] = scales[block][column];
        else
            data[k_block / IN_WORD * to.stride + row] = packed(scales, block, column);
    }
}

} // namespace scale_layout

/* Blocks of (32, 8) threads; the grid covers row tiles in x, all of them, K tiles in y
 * and groups in z. */
template <gpu_scale_layout_form from, gpu_scale_layout_form to>
__global__
__launch_bounds__(GPU_SCALE_TILE *GPU_SCALE_TILE_THREADS_Y) void gpu_scale_convert(
    const __grid_constant__ gpu_scale_layout_arguments arguments)
{
    __shared__ scale_layout::tile scales;
    const int64_t row = int64_t(blockIdx.x) * GPU_SCALE_TILE;
    for (int64_t group = blockIdx.z; group < arguments.groups; group += gridDim.z)
        for (int64_t k_block = int64_t(blockIdx.y) * GPU_SCALE_TILE;
             k_block < arguments.k_blocks;
             k_block += int64_t(gridDim.y) * GPU_SCALE_TILE) {
            const scale_layout::origin at = { group, row, k_block };
            scale_layout::load<from>(arguments, at, scales);
            __syncthreads();
            scale_layout::store<to>(arguments, at, scales);
            __syncthreads();
        }
}

#endif
