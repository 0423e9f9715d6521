/* SPDX-License-Identifier: MIT */
/* Tiles of dot-adds on Hopper's units: with AVX-512 some 60 times as fast as one
 * assay_dot_add after the other, with AVX2 30 times. Exact: every output has the bits
 * that the chain of assay_dot_add gives, on every instruction set
 * (tests/unit/dot_tile.c), and equals recorded H200 outputs
 * (tests/unit/dot_tile_recorded.c).
 *
 * It is a second implementation, not a tuned copy. The portable kernel works in integers.
 * The vector kernels let the processor truncate: to start a sum at 2^p, p = 23 - F + E in
 * f32 or 52 - F + E in f64, makes its last bit worth 2^(E - F), so that a fused
 * multiply-add rounded toward zero adds a product's magnitude truncated at that bit. One
 * sum takes all magnitudes, another those of negative terms; the result is the first less
 * twice the second, which is exact. */
#ifndef ASSAY_REF_UNIT_DOT_TILE_H
#define ASSAY_REF_UNIT_DOT_TILE_H

#include "ref/unit/dot_add.h"

enum { ASSAY_DOT_TILE_MAX_ROWS = 64, ASSAY_DOT_TILE_MAX_COLUMNS = 64 };

/* accumulator[row, column] = chain of dot-adds over k of a[row, k] * b[column, k], in
 * ascending steps of profile->terms; the last step's missing codes are zeros. */
struct assay_dot_tile {
    const struct assay_dot_add *profile;
    enum assay_format format_a, format_b;
    int rows, columns; /* at most ASSAY_DOT_TILE_MAX_ROWS, _COLUMNS */
    int64_t k;
    const void *a, *b;                /* codes */
    int64_t a_stride[2], b_stride[2]; /* elements to the next row (b: column), next k */
    uint32_t *accumulator;            /* f32 bits, read and written */
    int64_t accumulator_stride;       /* elements to the next row */
};

/* Whether assay_dot_tile computes this unit on these operands: hopper-fp8 with e4m3 and
 * e5m2 in any mix, hopper-bf16 and hopper-f16, with align_bits and result_bits as
 * measured. */
bool assay_dot_tile_serves(const struct assay_dot_add *profile,
                           enum assay_format format_a, enum assay_format format_b);

/* Computes a tile that is served. Takes no heap and some 120 KiB of stack. Outputs whose
 * row of a or column of b has a NaN or infinity, or whose accumulator is not finite (for
 * FP8: nonzero and outside 2^-47 to 2^74), take assay_dot_add, so that data full of these
 * is slow. */
void assay_dot_tile(const struct assay_dot_tile *tile);

/* Names of the instruction sets, fastest first, whether this machine has them or not;
 * NULL ends them. */
const char *const *assay_dot_tile_instruction_sets(void);

/* The one in use: the fastest this machine has, unless one was chosen. */
const char *assay_dot_tile_instruction_set(void);

/* Chooses one for all later tiles of the process; NULL is the fastest again. False, and
 * nothing changes, if there is none of that name or this machine lacks it. To be called
 * while no tile is being computed. */
bool assay_dot_tile_choose(const char *instruction_set);

#endif
