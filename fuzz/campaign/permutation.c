/* SPDX-License-Identifier: MIT */
#include "fuzz/campaign/permutation.h"

#include "verify/data/stream.h"

#include <assert.h>

struct assay_permutation assay_permutation_open(uint64_t size, uint64_t seed,
                                                const char *name, int64_t pass)
{
    assert(size > 0);
    struct assay_permutation permutation = { .size = size, .half_bits = 1 };
    struct assay_stream stream;
    while (permutation.half_bits < 32 && size > UINT64_C(1) << 2 * permutation.half_bits)
        permutation.half_bits++;
    assay_stream_open(&stream, seed, name, "permutation", pass);
    for (int i = 0; i < ASSAY_PERMUTATION_ROUNDS; i++) {
        const uint64_t high = assay_stream_next(&stream);
        permutation.key[i] = high << 32 | assay_stream_next(&stream);
    }
    return permutation;
}

/* The finaliser of splitmix64. */
static uint64_t mixed(uint64_t value)
{
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

static uint64_t network(const struct assay_permutation *permutation, uint64_t value)
{
    const int bits = permutation->half_bits;
    const uint64_t mask = (UINT64_C(1) << bits) - 1;
    uint64_t left = value >> bits, right = value & mask;
    for (int i = 0; i < ASSAY_PERMUTATION_ROUNDS; i++) {
        const uint64_t next = (left ^ mixed(right + permutation->key[i])) & mask;
        left = right;
        right = next;
    }
    return left << bits | right;
}

uint64_t assay_permutation_at(const struct assay_permutation *permutation, uint64_t index)
{
    assert(index < permutation->size);
    do
        index = network(permutation, index);
    while (index >= permutation->size);
    return index;
}
