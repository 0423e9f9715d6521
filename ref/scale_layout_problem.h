/* SPDX-License-Identifier: MIT */
/* What a change of scale layout is asked to do, without a word on how: the input that
 * model and oracle have in common.
 *
 * Logically there is one scale for each group, block of gran_mn rows and block of gran_k
 * elements of K: sf[group, row, k_group]. Three layouts hold them, R rows and K blocks:
 *
 *   k_major       f32 [R, K], row-major
 *   mn_major      f32 [K, R], rows align(R, 4) apart: what a tensor map can describe
 *   packed_ue8m0  i32 [ceil(K / 4), mn], rows align(mn, 4) apart: the exponents of four
 *                 blocks a word, the lowest block in the least significant byte; gran_mn
 *                 is always 1 here
 *
 * With groups > 0 a first dimension is added, without padding between groups.
 *
 * Tensors, by name: sf (in layout from), out (in layout to). */
#ifndef ASSAY_REF_SCALE_LAYOUT_PROBLEM_H
#define ASSAY_REF_SCALE_LAYOUT_PROBLEM_H

#include "ref/tensor.h"

enum assay_scale_layout {
    ASSAY_SCALE_K_MAJOR,
    ASSAY_SCALE_MN_MAJOR,
    ASSAY_SCALE_PACKED_UE8M0,
};

enum {
    ASSAY_SCALES_IN_WORD = 4,
    ASSAY_SCALE_ALIGNMENT = 4, /* elements of 4 bytes in the 16 that tensor maps demand */
    /* A part is one tile of the output, independent of all others. */
    ASSAY_SCALE_LAYOUT_TILE_ROWS = 64,
    ASSAY_SCALE_LAYOUT_TILE_K = 256, /* K blocks; whole words */
};

struct assay_scale_layout_problem {
    int64_t groups; /* 0: one, without a dimension of its own */
    int64_t mn, k;
    int64_t gran_mn, gran_k; /* elements a scale covers */
    enum assay_scale_layout from, to;
};

/* What part @part writes: rows of @to and K blocks. */
struct assay_scale_layout_range {
    int64_t group, row0, rows, k0, k_blocks;
};

static inline int64_t assay_scale_k_blocks(const struct assay_scale_layout_problem *p)
{
    return (p->k + p->gran_k - 1) / p->gran_k;
}

/* Rows of scales that a tensor in @layout has in each group. */
static inline int64_t assay_scale_rows(const struct assay_scale_layout_problem *p,
                                       enum assay_scale_layout layout)
{
    return layout == ASSAY_SCALE_PACKED_UE8M0 ? p->mn
                                              : (p->mn + p->gran_mn - 1) / p->gran_mn;
}

/* Tiles along rows, or along K. */
static inline int64_t assay_scale_tiles(int64_t extent, int64_t tile)
{
    return (extent + tile - 1) / tile;
}

static inline int64_t assay_scale_layout_parts(const struct assay_scale_layout_problem *p)
{
    return (p->groups ? p->groups : 1) *
           assay_scale_tiles(assay_scale_rows(p, p->to), ASSAY_SCALE_LAYOUT_TILE_ROWS) *
           assay_scale_tiles(assay_scale_k_blocks(p), ASSAY_SCALE_LAYOUT_TILE_K);
}

static inline struct assay_scale_layout_range
assay_scale_layout_part_range(const struct assay_scale_layout_problem *p, int64_t part)
{
    const int64_t rows = assay_scale_rows(p, p->to), k_blocks = assay_scale_k_blocks(p);
    const int64_t row_tiles = assay_scale_tiles(rows, ASSAY_SCALE_LAYOUT_TILE_ROWS);
    const int64_t k_tiles = assay_scale_tiles(k_blocks, ASSAY_SCALE_LAYOUT_TILE_K);
    const int64_t row0 = part / k_tiles % row_tiles * ASSAY_SCALE_LAYOUT_TILE_ROWS;
    const int64_t k0 = part % k_tiles * ASSAY_SCALE_LAYOUT_TILE_K;
    const int64_t rows_left = rows - row0, k_left = k_blocks - k0;
    return (struct assay_scale_layout_range){
        part / (k_tiles * row_tiles), row0,
        rows_left < ASSAY_SCALE_LAYOUT_TILE_ROWS ? rows_left
                                                 : ASSAY_SCALE_LAYOUT_TILE_ROWS,
        k0, k_left < ASSAY_SCALE_LAYOUT_TILE_K ? k_left : ASSAY_SCALE_LAYOUT_TILE_K
    };
}

#endif
