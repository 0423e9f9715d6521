/* SPDX-License-Identifier: MIT */
/* Between assay_dot_tile and its kernels, one row an instruction set: a tile on its way
 * through the steps. */
#ifndef ASSAY_REF_UNIT_DOT_TILE_KERNELS_H
#define ASSAY_REF_UNIT_DOT_TILE_KERNELS_H

#include "ref/unit/dot_tile.h"

enum {
    ASSAY_DOT_TILE_SIDE = 64,       /* rows and columns of the padded tile */
    ASSAY_DOT_TILE_STEP_BYTES = 32, /* 32 FP8 or 16 two-byte codes */
    ASSAY_DOT_TILE_PACKED_BYTES = 40 << 10,
};

/* A code's fields: sign | exponent | mantissa. */
struct assay_dot_tile_format {
    enum assay_format format;
    int bits, mantissa_bits, bias;
    uint32_t first_special; /* without the sign: this code and all above it */
};

/* The step's codes: ASSAY_DOT_TILE_STEP_BYTES a row, for the padded tile's rows. */
struct assay_dot_tile_side {
    const struct assay_dot_tile_format *format;
    const unsigned char *codes;
    int64_t row_bytes; /* from row to row */
    int rows;          /* in use */
    uint64_t specials; /* set of rows with a NaN or infinity so far; kernels add to it */
    _Alignas(64) unsigned char staged[ASSAY_DOT_TILE_SIDE * ASSAY_DOT_TILE_STEP_BYTES];
};

/* Rows and columns beyond the tile's own and codes beyond k are zeros. */
struct assay_dot_tile_work {
    struct assay_dot_tile_side a, b;
    int align_bits, result_bits;
    _Alignas(64) uint32_t accumulator[ASSAY_DOT_TILE_SIDE * ASSAY_DOT_TILE_SIDE];
    _Alignas(64) unsigned char packed[ASSAY_DOT_TILE_PACKED_BYTES]; /* the kernel's own */
};

/* Each adds the step that the sides show. An output is right while its row and column are
 * not special and its accumulator is in the range that dot_tile.h names; one that becomes
 * infinite stays infinite or NaN. */
struct assay_dot_tile_kernels {
    const char *instruction_set;
    bool (*is_supported)(void);
    /* Rows, as a bit set, with an accumulator that is not zero and whose bits without the
     * sign, times two, are not in [low, low + span]. */
    uint64_t (*rows_beyond)(const struct assay_dot_tile_work *work, uint32_t low,
                            uint32_t span);
    void (*add_fp8_step)(struct assay_dot_tile_work *work);
    void (*add_wide_step)(struct assay_dot_tile_work *work); /* bf16, f16 */
};

extern const struct assay_dot_tile_kernels assay_dot_tile_portable;
extern const struct assay_dot_tile_kernels assay_dot_tile_avx2;
extern const struct assay_dot_tile_kernels assay_dot_tile_avx512;

#endif
