/* SPDX-License-Identifier: MIT */
/* Products of matrices of a tile, by the unit its numerics name. Exactness: that of the
 * unit. */
#ifndef ASSAY_REF_KERNEL_MLA_PRODUCT_H
#define ASSAY_REF_KERNEL_MLA_PRODUCT_H

#include "ref/kernel/mla_tile.h"

/* accumulator[row][column] += sum over k, ascending, of a[row][k] * b[column][k], for the
 * tile's rows and 64 columns; @k is a multiple of 16. */
struct assay_mla_product {
    int k;
    const uint16_t *a; /* codes of the tile's format */
    const float *kept; /* instead of codes: f32, which multiply by fma */
    int64_t a_stride;  /* elements to the next row */
    const uint16_t *b; /* codes */
    int64_t b_stride;  /* elements to the next column */
    uint32_t (*accumulator)[ASSAY_MLA_BLOCK]; /* f32 bits */
};

void assay_mla_add_product(const struct assay_mla_tile *tile,
                           const struct assay_mla_product *product);

#endif
