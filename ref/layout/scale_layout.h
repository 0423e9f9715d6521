/* SPDX-License-Identifier: MIT */
/* The memory layouts of scale factors, and the conversions between them. Exact: scales
 * are moved, never rounded. Layouts as DeepGEMM's kernels read and write them. */
#ifndef ASSAY_REF_LAYOUT_SCALE_LAYOUT_H
#define ASSAY_REF_LAYOUT_SCALE_LAYOUT_H

#include "ref/scale_layout_problem.h"

enum assay_scale_byte_order {
    ASSAY_SCALE_LOW_FIRST, /* the lowest K block in the least significant byte */
    ASSAY_SCALE_HIGH_FIRST,
};

struct assay_scale_layout_numerics { /* ints, so that a knob is an offset */
    int byte_order;                  /* in packed words */
};

/* Name ("sf", "out"), format, shape and strides of a tensor in @layout; no data. */
struct assay_tensor
assay_scale_layout_tensor(const struct assay_scale_layout_problem *problem,
                          enum assay_scale_layout layout, const char *name);

/* The scale at logical coordinates: f32 bits, or a UE8M0 code from a packed layout. The
 * group is 0 in a tensor without a dimension for it. Bytes of packed words are in
 * low-first order. */
uint32_t assay_scale_load(enum assay_scale_layout layout,
                          const struct assay_tensor *tensor, int64_t group, int64_t row,
                          int64_t k_block);

/* Writes it and nothing else: row padding and the other bytes of a word stay. */
void assay_scale_store(enum assay_scale_layout layout, const struct assay_tensor *tensor,
                       int64_t group, int64_t row, int64_t k_block, uint32_t scale);

/* Whether UE8M0 holds a scale's f32 bits without loss as far as DeepGEMM's packer looks:
 * no sign and no mantissa bits. It traps on others. It lets zero pass, which becomes code
 * 0, 2^-127, and infinity, which becomes code 255, NaN. */
bool assay_scale_is_packable(uint32_t f32_bits);

/* f32 bits of a UE8M0 code: code 0 is the subnormal 2^-127, code 255 is 0x7FFFFFFF. */
uint32_t assay_scale_unpacked(uint32_t code);

/* Writes part @part of out. Packing takes the exponent field of any scale, repeats rows
 * gran_mn times and writes 0 for K blocks that a last word lacks; unpacking ignores what
 * those bytes hold. Row padding is neither read nor written. */
void assay_scale_layout_model(const struct assay_scale_layout_problem *problem,
                              const struct assay_scale_layout_numerics *numerics,
                              const struct assay_tensors *tensors, int64_t part);

#endif
