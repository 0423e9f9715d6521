/* SPDX-License-Identifier: MIT */
/* One operand of a part of an FP8 GEMM, a slice of k at a time: codes turned into the
 * factors of exact products, and what is known about them. */
#ifndef ASSAY_REF_ORACLE_FP8_GEMM_SIDE_H
#define ASSAY_REF_ORACLE_FP8_GEMM_SIDE_H

#include "ref/oracle/fp8_code.h"

enum {
    ASSAY_FP8_GEMM_SIDE = 64,     /* rows of a, or of b, in a part */
    ASSAY_FP8_GEMM_SLICE_K = 256, /* K elements in memory at a time */
    ASSAY_FP8_GEMM_SLICE = ASSAY_FP8_GEMM_SIDE * ASSAY_FP8_GEMM_SLICE_K,
};

/* What a code stands for as a factor. */
enum assay_fp8_reading {
    ASSAY_FP8_VALUE,
    ASSAY_FP8_MAGNITUDE,
    ASSAY_FP8_PADDED, /* magnitude, but at least the smallest normal; 0 for zero */
    /* The value is the sum of these two, one of them 0. Where not all of the values of a
     * format are 18-bit integers in one unit, each of these is: values of e5m2 from 2 on
     * are multiples of 2^-1 below 2^16, the others multiples of 2^-16 below 2. */
    ASSAY_FP8_LARGE_PART,
    ASSAY_FP8_SMALL_PART,
    /* And their magnitudes: */
    ASSAY_FP8_LARGE_MAGNITUDE,
    ASSAY_FP8_SMALL_MAGNITUDE,
};

/* Rows m of a, or n of b, that belong to the part; a slice of k of them. */
struct assay_fp8_gemm_side {
    const struct assay_tensor *codes, *scales;
    int64_t first, count, granularity; /* of m or n */
    int64_t row_stride, k_stride; /* of value and factor, which are zero beyond count */
    struct assay_fp8_code table[256];
    float value_of[256];
    uint64_t facts_of[256];

    _Alignas(64) double factor[ASSAY_FP8_GEMM_SLICE]; /* as read last */
    _Alignas(64) float value[ASSAY_FP8_GEMM_SLICE];
    uint32_t units[ASSAY_FP8_GEMM_SLICE]; /* rows of SLICE_K, 0 to whole words */
    uint64_t nonzero[ASSAY_FP8_GEMM_SIDE][ASSAY_FP8_GEMM_SLICE_K / 64];
    uint64_t slice_facts, facts[ASSAY_FP8_GEMM_SIDE]; /* of the slice, of each row */

    /* Facts about row @i over the whole range of k in hand. */
    float scale[ASSAY_FP8_GEMM_SIDE];
    int lsb[ASSAY_FP8_GEMM_SIDE];      /* every value is a multiple of 2^lsb */
    int exponent[ASSAY_FP8_GEMM_SIDE]; /* the largest that alignment can see */
    int width;                         /* values are integers below 2^width in one unit */
    bool are_scales_finite;
};

/* Takes rows [first, first + count) in hand. Neighbours in value and factor are of one k
 * (is_k_major) or of one row. */
void assay_fp8_gemm_side_open(struct assay_fp8_gemm_side *side,
                              const struct assay_tensor *codes,
                              const struct assay_tensor *scales, int64_t first,
                              int64_t count, int64_t granularity, bool is_k_major);

/* Begins a range of k that lies in block @k_block of the scales, ... */
void assay_fp8_gemm_side_start(struct assay_fp8_gemm_side *side, int64_t k_block);
/* ... loads a slice of it: fills value, nonzero and facts, ... */
void assay_fp8_gemm_side_load(struct assay_fp8_gemm_side *side, int64_t k0,
                              int64_t count);
/* ... and ends the range: fills lsb, exponent and width. */
void assay_fp8_gemm_side_finish(struct assay_fp8_gemm_side *side);

/* Fills factor with readings of the slice in memory. */
void assay_fp8_gemm_side_read(struct assay_fp8_gemm_side *side, int64_t count,
                              enum assay_fp8_reading reading);

/* Fills units from the codes. */
void assay_fp8_gemm_side_load_units(struct assay_fp8_gemm_side *side, int64_t k0,
                                    int64_t count);

/* Parts in use, and the exponent of the unit of the large (0) or the small (1) one. */
int assay_fp8_gemm_side_parts(const struct assay_fp8_gemm_side *side);
int assay_fp8_gemm_side_part_unit(const struct assay_fp8_gemm_side *side, int part);

unsigned assay_fp8_gemm_side_code(const struct assay_fp8_gemm_side *side, int64_t i,
                                  int64_t k);

/* Of the slice in memory. */
int assay_fp8_gemm_side_width(const struct assay_fp8_gemm_side *side);
bool assay_fp8_gemm_side_has_special(const struct assay_fp8_gemm_side *side);
bool assay_fp8_gemm_side_has_zero(const struct assay_fp8_gemm_side *side);
bool assay_fp8_gemm_side_may_have_subnormal(const struct assay_fp8_gemm_side *side);

#endif
