/* SPDX-License-Identifier: MIT */
/* Bytes transposed, on the device. A warp reads 128 bytes of each of four rows, turns
 * squares of 4 x 4 bytes in registers, and puts them into a tile of 128 x 128 in shared
 * memory, from where it writes 128 bytes of a column at a time. */
#ifndef ASSAY_GPU_TRANSPOSE_KERNEL_CUH
#define ASSAY_GPU_TRANSPOSE_KERNEL_CUH

#include <cstdint>

enum : int { GPU_TRANSPOSE_TILE = 128, GPU_TRANSPOSE_GROUPS = 64 };
/* Threads of a block: a warp in x. */
enum : int { GPU_TRANSPOSE_THREADS_X = 32, GPU_TRANSPOSE_THREADS_Y = 8 };

struct gpu_transpose_arguments {
    const uint8_t *from;
    uint8_t *to;
    int64_t columns;
    int64_t first_row[GPU_TRANSPOSE_GROUPS + 1]; /* of each group, and behind the last */
};

namespace transpose {

enum : int {
    TILE = GPU_TRANSPOSE_TILE,
    SQUARE = 4,
    SQUARES = TILE / SQUARE,
    STEP = GPU_TRANSPOSE_THREADS_Y,
    SQUARES_OF_THREAD = SQUARES / STEP
};

/* Four rows of a column a word. Word w of column c lies at w ^ (c / 4), so that neither
 * 32 neighbouring squares nor the words of a column share a bank. */
using tile = uint32_t[TILE][SQUARES];

struct square {
    uint32_t word[SQUARE];
};

__device__ __forceinline__ square transposed(const square &rows)
{
    const uint32_t low_first = __byte_perm(rows.word[0], rows.word[1], 0x5140);
    const uint32_t low_second = __byte_perm(rows.word[2], rows.word[3], 0x5140);
    const uint32_t high_first = __byte_perm(rows.word[0], rows.word[1], 0x7362);
    const uint32_t high_second = __byte_perm(rows.word[2], rows.word[3], 0x7362);
    return { { __byte_perm(low_first, low_second, 0x5410),
               __byte_perm(low_first, low_second, 0x7632),
               __byte_perm(high_first, high_second, 0x5410),
               __byte_perm(high_first, high_second, 0x7632) } };
}

/* A matrix in memory, and a tile's place in it. */
template <typename Byte> struct view {
    Byte *data;
    int64_t rows, columns;
    int64_t row, column;

    /* Whether the tile lies inside and all its rows begin at multiples of four bytes. */
    __device__ bool is_whole() const
    {
        return row + TILE <= rows && column + TILE <= columns && columns % SQUARE == 0 &&
               reinterpret_cast<uintptr_t>(data) % SQUARE == 0;
    }
};

/* Four bytes of a row; zero for those outside. */
__device__ __forceinline__ uint32_t load_part(const view<const uint8_t> &from,
                                              int64_t row, int64_t column)
{
    uint32_t word = 0;
    for (int i = 0; i < SQUARE; i++)
        if (row < from.rows && column + i < from.columns)
            word |= uint32_t(from.data[row * from.columns + column + i]) << 8 * i;
    return word;
}

__device__ __forceinline__ void put(tile &into, int which, const square &rows)
{
    const int lane = threadIdx.x;
    const square columns = transposed(rows);
#pragma unroll
    for (int i = 0; i < SQUARE; i++)
        into[SQUARE * lane + i][which ^ lane] = columns.word[i];
}

/* All loads before the first store. */
__device__ __forceinline__ void load_tile(const view<const uint8_t> &from, tile &into)
{
    const uint8_t *const place =
        from.data + (from.row + SQUARE * threadIdx.y) * from.columns + from.column;
    const uint32_t *const words = reinterpret_cast<const uint32_t *>(place) + threadIdx.x;
    const int64_t pitch = from.columns / SQUARE;
    square rows[SQUARES_OF_THREAD];
#pragma unroll
    for (int i = 0; i < SQUARES_OF_THREAD; i++)
#pragma unroll
        for (int j = 0; j < SQUARE; j++)
            rows[i].word[j] = __ldcs(words + (SQUARE * STEP * i + j) * pitch);
#pragma unroll
    for (int i = 0; i < SQUARES_OF_THREAD; i++)
        put(into, threadIdx.y + STEP * i, rows[i]);
}

__device__ __forceinline__ void load_edge(const view<const uint8_t> &from, tile &into)
{
    const int64_t column = from.column + SQUARE * threadIdx.x;
#pragma unroll 1
    for (int i = threadIdx.y; i < SQUARES; i += STEP) {
        square rows;
#pragma unroll
        for (int j = 0; j < SQUARE; j++)
            rows.word[j] = load_part(from, from.row + SQUARE * i + j, column);
        put(into, i, rows);
    }
}

/* Rows of @to are columns of the tile. */
__device__ __forceinline__ void store(const view<uint8_t> &to, const tile &from)
{
    const bool is_whole = to.is_whole();
    const int64_t column = to.column + SQUARE * threadIdx.x;
    for (int i = threadIdx.y; i < TILE; i += STEP) {
        const uint32_t word = from[i][threadIdx.x ^ (i / SQUARE)];
        const int64_t row = to.row + i;
        uint8_t *const place = to.data + row * to.columns + column;
        if (is_whole) {
            *reinterpret_cast<uint32_t *>(place) = word;
            continue;
        }
        for (int j = 0; j < SQUARE; j++)
            if (row < to.rows && column + j < to.columns)
                place[j] = uint8_t(word >> 8 * j);
    }
}

} // namespace transpose

/* The grid covers tiles of columns in x, all of them, tiles of a group's rows in y, and
 * groups in z, all of them. */
__global__
__launch_bounds__(GPU_TRANSPOSE_THREADS_X *GPU_TRANSPOSE_THREADS_Y) void gpu_transpose(
    const __grid_constant__ gpu_transpose_arguments arguments)
{
    __shared__ transpose::tile bytes;
    const int64_t first = arguments.first_row[blockIdx.z];
    const int64_t rows = arguments.first_row[blockIdx.z + 1] - first;
    const int64_t column = int64_t(blockIdx.x) * GPU_TRANSPOSE_TILE;
    const int64_t offset = first * arguments.columns;
    for (int64_t row = int64_t(blockIdx.y) * GPU_TRANSPOSE_TILE; row < rows;
         row += int64_t(gridDim.y) * GPU_TRANSPOSE_TILE) {
        const transpose::view<const uint8_t> from = { arguments.from + offset, rows,
                                                      arguments.columns, row, column };
        if (from.is_whole())
            transpose::load_tile(from, bytes);
        else
            transpose::load_edge(from, bytes);
        __syncthreads();
        transpose::store({ arguments.to + offset, arguments.columns, rows, column, row },
                         bytes);
        __syncthreads();
    }
}

#endif
