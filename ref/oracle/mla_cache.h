/* SPDX-License-Identifier: MIT */
/* FP8 and FP4 caches as mathematics: what the stored bytes mean, and scales and quotients
 * before anything is rounded to f32 or to a code. Own decoders and own byte addresses; it
 * shares nothing with the model.
 *
 * Exactness: products, powers of two, quotients by them, and the scales of v41_fp4 are
 * exact; other scales and quotients are rounded once, to double. */
#ifndef ASSAY_REF_ORACLE_MLA_CACHE_H
#define ASSAY_REF_ORACLE_MLA_CACHE_H

#include "ref/mla_cache_problem.h"

/* Bytes of a token, from the first of its page. Code i is the byte codes + i, or, two a
 * byte, half a byte of codes + i / 2; scale i is at scales + i * scale_bytes, bf16
 * element i at rope + 2 * i. */
struct assay_mla_cache_bytes {
    int coded, tile;               /* elements with codes, elements a scale */
    int codes_a_byte, scale_bytes; /* per byte; of one scale */
    int64_t codes, scales, rope;
};
struct assay_mla_cache_bytes
assay_mla_cache_bytes_of(const struct assay_mla_cache_problem *problem,
                         int64_t place_in_page);

/* The d_qk factors of a key, code[i] * scale[i] being the element; scale is 1 where the
 * element is kept in bf16. The product is exact in double. */
void assay_mla_cache_factors(const struct assay_mla_cache_problem *problem,
                             const struct assay_tensors *tensors, int64_t token,
                             double *code, double *scale);

/* Where quantisers differ in what they mean, not in how they round. All false is what
 * FlashMLA means. */
struct assay_mla_cache_rules {
    bool raises_amax; /* amax is at least 1e-4, not the scale */
    bool ignores_nan; /* amax is that of the other elements */
};

struct assay_mla_cache_quantised {  /* one token */
    double quotient[ASSAY_MLA_D_V]; /* x / scale; NaN where the code is that of NaN */
    double scale[32];               /* may be infinite or NaN */
    bool is_scale_exact[32];        /* known without rounding to f32 */
    uint16_t rope[64];
};
void assay_mla_cache_quantised_of(const struct assay_mla_cache_problem *problem,
                                  const struct assay_mla_cache_rules *rules,
                                  const struct assay_tensors *tensors, int64_t token,
                                  struct assay_mla_cache_quantised *quantised);

/* Value of the bf16 code nearest to @value, ties to even; may be infinite. */
double assay_mla_bf16_nearest(double value);

/* Code of the e4m3 or e2m1 value (by @format) nearest to @value, ties to even, at most
 * the largest, with the sign of zeros too; NaN gives 0x7F and 0. */
uint32_t assay_mla_code_nearest(enum assay_format format, double value);

#endif
