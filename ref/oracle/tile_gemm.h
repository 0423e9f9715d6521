/* SPDX-License-Identifier: MIT */
/* Products of tiles of doubles. The order of the terms and whether they are fused is not
 * specified: exact where every product and partial sum is a double. */
#ifndef ASSAY_REF_ORACLE_TILE_GEMM_H
#define ASSAY_REF_ORACLE_TILE_GEMM_H

#include <stdbool.h>
#include <stdint.h>

enum { ASSAY_TILE_GEMM_COLUMNS = 64 };

/* product[i][j] = (is_added ? product[i][j] : 0) + sum over k of a[i][k] * b[k][j],
 * k < count. Rows of b and product have ASSAY_TILE_GEMM_COLUMNS elements. */
struct assay_tile_gemm {
    int64_t rows, count;
    const double *a;
    int64_t a_stride; /* elements from row to row */
    const double *b;
    bool is_added;
};

/* Needs AVX-512 (instruction_sets.h). */
void assay_tile_gemm_fast(const struct assay_tile_gemm *gemm, double *product);

/* Each product is added exactly, and the sum then rounded toward zero. Needs AVX-512. */
void assay_tile_gemm_toward_zero(const struct assay_tile_gemm *gemm, double *product);

/* The same as assay_tile_gemm_fast, through OpenBLAS: on any processor. */
void assay_tile_gemm_portable(const struct assay_tile_gemm *gemm, double *product);

#endif
