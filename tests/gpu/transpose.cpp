/* SPDX-License-Identifier: MIT */
/* gpu_transpose_* and gpu_scale_to_mn_major against what an index formula says, with guard
 * bytes around the output. Runs on the host (block_on_host.h), and on a GPU as
 *
 *     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -I . -I verify/plugin \
 *         -x cu tests/gpu/transpose.cpp gpu/transpose.cu gpu/scale_layout.cu -o transpose
 *
 * where the argument "time" prints GB/s, reads and writes, besides. */
#include "gpu/transpose.h"

#include "gpu/scale_layout.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

enum : int64_t { GUARD = 256 };
enum : uint8_t { POISON = 0xDB };

static int failures;

static void check(bool is_right, const char *what, int64_t first, int64_t second)
{
    if (is_right) return;
    failures++;
    std::printf("%s: wrong at %lld, %lld\n", what, (long long)first, (long long)second);
}

static uint8_t byte_at(int64_t i)
{
    return uint8_t(uint64_t(i) * 0x9E3779B97F4A7C15 >> 40);
}

/* What host and device see; NULL if there is none. */
static uint8_t *shared_memory(int64_t bytes)
{
    void *memory = nullptr;
#ifdef __CUDACC__
    if (cudaMallocManaged(&memory, size_t(bytes)) != cudaSuccess) return nullptr;
#else
    if (cudaMalloc(&memory, size_t(bytes)) != cudaSuccess) return nullptr;
#endif
    return static_cast<uint8_t *>(memory);
}

/* @size bytes between guards, @shift bytes behind a multiple of 256. */
struct memory {
    uint8_t *block, *data;
    int64_t size, bytes;

    memory(int64_t data_size, int64_t shift)
        : block(shared_memory(data_size + shift + 2 * GUARD)),
          data(block + GUARD + shift), size(data_size),
          bytes(data_size + shift + 2 * GUARD)
    {
        std::memset(block, POISON, size_t(bytes));
    }
    memory(const memory &) = delete;
    ~memory()
    {
        cudaFree(block);
    }
    void check_guards(const char *what) const
    {
        for (const uint8_t *byte = block; byte < block + bytes; byte++)
            if (byte < data || byte >= data + size)
                check(*byte == POISON, what, byte - data, size);
    }
};

static void check_call(cudaError_t error, const char *what)
{
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    check(error == cudaSuccess, what, error, 0);
}

static int64_t bytes_of(const std::vector<int64_t> &group_rows, int64_t columns)
{
    int64_t rows = 0;
    for (const int64_t of_group : group_rows)
        rows += of_group;
    return rows * columns;
}

static void check_transpose(const std::vector<int64_t> &group_rows, int64_t columns,
                            int64_t shift)
{
    const int64_t size = bytes_of(group_rows, columns);
    std::vector<int64_t> first_row = { 0 };
    const memory from(size, shift), to(size, 3 * shift);
    for (int64_t i = 0; i < size; i++)
        from.data[i] = byte_at(i);
    for (const int64_t rows : group_rows)
        first_row.push_back(first_row.back() + rows);
    const int64_t groups = int64_t(group_rows.size());
    check_call(groups == 1 ? gpu_transpose_bytes(from.data, group_rows[0], columns,
                                                 to.data, nullptr)
                           : gpu_transpose_groups(from.data, first_row.data(), groups,
                                                  columns, to.data, nullptr),
               "transpose's launch");
    for (size_t g = 0; g < group_rows.size(); g++)
        for (int64_t row = 0; row < group_rows[g]; row++)
            for (int64_t column = 0; column < columns; column++)
                check(to.data[first_row[g] * columns + column * group_rows[g] + row] ==
                          byte_at((first_row[g] + row) * columns + column),
                      "transpose", row, column);
    to.check_guards("transpose's guard");
}

static void check_scales(int64_t groups, int64_t rows, int64_t k_blocks)
{
    const int64_t apart = (rows + 3) / 4 * 4;
    const memory from(groups * rows * k_blocks * 4, 0),
        to(groups * k_blocks * apart * 4, 0);
    float *const given = reinterpret_cast<float *>(from.data);
    float *const found = reinterpret_cast<float *>(to.data);
    for (int64_t i = 0; i < groups * rows * k_blocks; i++)
        given[i] = float(i + 1);
    check_call(gpu_scale_to_mn_major(given, groups, rows, k_blocks, found, nullptr),
               "scales' launch");
    for (int64_t g = 0; g < groups; g++)
        for (int64_t k = 0; k < k_blocks; k++)
            for (int64_t row = 0; row < apart; row++) {
                const float wanted =
                    row < rows ? float((g * rows + row) * k_blocks + k + 1) : 0;
                check(found[(g * k_blocks + k) * apart + row] == wanted, "scales", k,
                      row);
            }
    to.check_guards("scales' guard");
}

#ifdef __CUDACC__
static void print_speed(int64_t rows, int64_t columns)
{
    enum : int { LAUNCHES = 20 };
    uint8_t *from = nullptr, *to = nullptr;
    float milliseconds = 0;
    cudaEvent_t start, end;
    check_call(cudaMalloc(&from, size_t(rows * columns)), "memory");
    check_call(cudaMalloc(&to, size_t(rows * columns)), "memory");
    check_call(cudaEventCreate(&start), "events");
    check_call(cudaEventCreate(&end), "events");
    for (int i = 0; i <= LAUNCHES; i++) {
        if (i == 1) check_call(cudaEventRecord(start), "events");
        const cudaError_t error = gpu_transpose_bytes(from, rows, columns, to, nullptr);
        check(error == cudaSuccess, "transpose's launch", error, i);
    }
    check_call(cudaEventRecord(end), "events");
    check_call(cudaEventElapsedTime(&milliseconds, start, end), "events");
    std::printf("%lld x %lld: %.0f GB/s\n", (long long)rows, (long long)columns,
                2e-6 * LAUNCHES * double(rows * columns) / milliseconds);
    cudaFree(from);
    cudaFree(to);
}
#endif

int main(int count, char **arguments)
{
    for (const int64_t rows : { 1, 4, 31, 127, 128, 129, 256, 300 })
        for (const int64_t columns : { 1, 3, 8, 128, 130, 256, 260 })
            check_transpose({ rows }, columns, rows % 3);
    check_transpose({ 0 }, 5, 0);
    check_transpose({ 5 }, 0, 0);
    check_transpose({ 128, 0, 384, 256 }, 256, 0);
    check_transpose({ 3, 0, 130, 1, 128 }, 129, 0);
    check_transpose({ 0, 0, 0 }, 128, 0);
    check_transpose(std::vector<int64_t>(150, 2), 7, 0);
    for (const int64_t rows : { 1, 4, 33, 127, 128 })
        for (const int64_t k_blocks : { 1, 7, 32, 56, 65 })
            for (const int64_t groups : { 1, 3 })
                check_scales(groups, rows, k_blocks);
    check_scales(0, 5, 5);
    check_scales(2, 0, 5);
    check_scales(2, 5, 0);
#ifdef __CUDACC__
    if (count > 1 && std::strcmp(arguments[1], "time") == 0) {
        print_speed(65536, 16384);
        print_speed(4096, 7168);
    }
#else
    (void)count, (void)arguments;
#endif
    std::printf("%d wrong\n", failures);
    return failures != 0;
}
