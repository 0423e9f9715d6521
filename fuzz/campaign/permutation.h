/* SPDX-License-Identifier: MIT */
/* A permutation of the numbers below any size, of which single entries can be had: a
 * Feistel network over the next power of four, whose values beyond the size are sent
 * through it again. */
#ifndef ASSAY_FUZZ_CAMPAIGN_PERMUTATION_H
#define ASSAY_FUZZ_CAMPAIGN_PERMUTATION_H

#include <stdint.h>

enum { ASSAY_PERMUTATION_ROUNDS = 6 };

struct assay_permutation {
    uint64_t size;
    int half_bits;
    uint64_t key[ASSAY_PERMUTATION_ROUNDS];
};

/* The permutation of 0 to @size - 1 (at least one number) that seed, name and pass
 * give. */
struct assay_permutation assay_permutation_open(uint64_t size, uint64_t seed,
                                                const char *name, int64_t pass);

/* Entry @index, which has to be below the size (asserted). */
uint64_t assay_permutation_at(const struct assay_permutation *permutation,
                              uint64_t index);

#endif
