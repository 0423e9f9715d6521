/* SPDX-License-Identifier: MIT */
/* AVX-512 takes rounding modes by instruction; blocks of 8 rows by 16 columns fill its
 * registers. OpenBLAS serves all other processors. */
#include "ref/oracle/tile_gemm.h"

#include <assert.h>
#include <cblas.h>

enum { COLUMNS = ASSAY_TILE_GEMM_COLUMNS };

void assay_tile_gemm_portable(const struct assay_tile_gemm *gemm, double *product)
{
    if (gemm->count == 0 && gemm->is_added) return;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)gemm->rows, COLUMNS,
                (int)gemm->count, 1, gemm->a, (int)gemm->a_stride, gemm->b, COLUMNS,
                gemm->is_added ? 1 : 0, product, COLUMNS);
}

#ifdef __x86_64__

  #include <immintrin.h>

  #ifndef __clang__
    #define UNROLLED _Pragma("GCC unroll 8")
  #elif __has_feature(address_sanitizer)
    #define UNROLLED // with a check of every access, clang 14 takes a minute for it
  #else
    #define UNROLLED _Pragma("clang loop unroll(full)")
  #endif
  #define AVX512 __attribute__((target("avx512f")))

enum { LANES = 8, BLOCK_ROWS = 8, BLOCK_VECTORS = 2, ROW_VECTORS = COLUMNS / LANES };
/* GCC's forms without a mask are macros at -O0 that pass -1: -Wconversion refuses. */
enum { ALL_LANES = 0xFF };

/* Constant but for @i and @j: one block, in registers. */
AVX512 __attribute__((always_inline)) static inline void
add_block(const struct assay_tile_gemm *gemm, int64_t i, int64_t j, const int rows,
          const int vectors, const bool is_toward_zero, double *product)
{
    __m512d sum[BLOCK_ROWS][ROW_VECTORS];
    const double *const a = gemm->a + i * gemm->a_stride;
    const int64_t stride = gemm->a_stride, count = gemm->count;
    product += i * COLUMNS + j;
    UNROLLED for (int row = 0; row < rows; row++)
        UNROLLED for (int v = 0; v < vectors; v++) sum[row][v] =
            gemm->is_added ? _mm512_loadu_pd(product + row * COLUMNS + v * LANES)
                           : _mm512_setzero_pd();
    const double *from = gemm->b + j;
    for (int64_t k = 0; k < count; k++, from += COLUMNS) {
        __m512d b[ROW_VECTORS];
        UNROLLED for (int v = 0; v < vectors; v++) b[v] =
            _mm512_loadu_pd(from + v * LANES);
        UNROLLED for (int row = 0; row < rows; row++)
        {
            const __m512d factor = _mm512_set1_pd(a[row * stride + k]);
            UNROLLED for (int v = 0; v < vectors; v++) sum[row][v] =
                is_toward_zero
                    ? _mm512_mask_fmadd_round_pd(factor, ALL_LANES, b[v], sum[row][v],
                                                 _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
                    : _mm512_fmadd_pd(factor, b[v], sum[row][v]);
        }
    }
    UNROLLED for (int row = 0; row < rows; row++)
        UNROLLED for (int v = 0; v < vectors; v++)
            _mm512_storeu_pd(product + row * COLUMNS + v * LANES, sum[row][v]);
}

AVX512 __attribute__((always_inline)) static inline void
add_blocks(const struct assay_tile_gemm *gemm, const bool is_toward_zero, double *product)
{
    int64_t i = 0;
    for (; i + BLOCK_ROWS <= gemm->rows; i += BLOCK_ROWS)
        for (int64_t j = 0; j < COLUMNS; j += BLOCK_VECTORS * LANES)
            add_block(gemm, i, j, BLOCK_ROWS, BLOCK_VECTORS, is_toward_zero, product);
    for (; i < gemm->rows; i++)
        add_block(gemm, i, 0, 1, ROW_VECTORS, is_toward_zero, product);
}

AVX512 void assay_tile_gemm_fast(const struct assay_tile_gemm *gemm, double *product)
{
    add_blocks(gemm, false, product);
}

AVX512 void assay_tile_gemm_toward_zero(const struct assay_tile_gemm *gemm,
                                        double *product)
{
    add_blocks(gemm, true, product);
}

#else

void assay_tile_gemm_fast(const struct assay_tile_gemm *gemm, double *product)
{
    assay_tile_gemm_portable(gemm, product);
}

void assay_tile_gemm_toward_zero(const struct assay_tile_gemm *gemm, double *product)
{
    (void)gemm;
    (void)product;
    assert(!"there is no AVX-512");
}

#endif
