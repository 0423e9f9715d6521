/* SPDX-License-Identifier: MIT */
/* Narrow binary formats, described by data so that one codec serves all of them. Decoding
 * is exact, encoding correctly rounded. */
#ifndef ASSAY_REF_FORMAT_MINIFLOAT_H
#define ASSAY_REF_FORMAT_MINIFLOAT_H

#include "ref/tensor.h"

enum assay_specials {
    ASSAY_SPECIALS_IEEE,  /* all-ones exponent: infinity and NaN */
    ASSAY_SPECIALS_FN,    /* only all-ones exponent and mantissa: NaN; no infinity */
    ASSAY_SPECIALS_NONE,  /* every code is finite */
    ASSAY_SPECIALS_SCALE, /* no sign, no zero; all-ones exponent: NaN */
};

struct assay_minifloat {
    const char *name;
    enum assay_format format;
    int exponent_bits, mantissa_bits; /* the sign bit, where there is one, excluded */
    int bias;
    enum assay_specials specials;
    uint32_t largest_finite; /* code, without the sign */
    uint32_t canonical_nan;  /* what conversions write for a NaN; e2m1's is +6 */
};

/* The row of @format (e4m3, e5m2, e2m1, ue8m0, bf16, f16, tf32, f32); NULL for others.
 * A tf32 code is the f32 word shifted right by 13. */
const struct assay_minifloat *assay_minifloat(enum assay_format format);

/* A finite code is significand * 2^exponent, negated if is_negative. Subnormal codes are
 * not normalised: their exponent is that of the smallest normal, so that
 * exponent + mantissa_bits is the unbiased exponent the hardware aligns by. */
struct assay_unpacked {
    enum { ASSAY_ZERO, ASSAY_FINITE, ASSAY_INFINITE, ASSAY_NAN } kind;
    bool is_negative;
    uint32_t significand; /* 0 unless finite, as is exponent */
    int exponent;
};

/* Fields of @code, which must have no bits above the format's own (asserted). */
struct assay_unpacked assay_minifloat_unpack(const struct assay_minifloat *format,
                                             uint32_t code);

/* Value of @code; exact, because every value of these formats is a double. A NaN code
 * gives a quiet NaN without its payload. */
double assay_minifloat_decode(const struct assay_minifloat *format, uint32_t code);

enum assay_overflow {
    ASSAY_OVERFLOW_SATURATES, /* overflow and infinities give the largest finite code */
    ASSAY_OVERFLOW_SPECIAL,   /* they give infinity, NaN where there is none, and in
                                 e2m1, which has neither, the largest finite code */
};

/* Code of @value: correctly rounded from the double itself, ties to even, subnormals and
 * the sign kept (an e4m3 overflow to NaN keeps it too: 0x7F or 0xFF); NaN gives
 * canonical_nan. Rules as CUDA's cvt.rn[.satfinite], __nv_cvt_float_to_fp8 and
 * __nv_cvt_double_to_fp4 have them. For ue8m0 the rule is assay_ue8m0_encode's, with
 * 255 for values above 2^127 under ASSAY_OVERFLOW_SPECIAL. */
uint32_t assay_minifloat_encode(const struct assay_minifloat *format, double value,
                                enum assay_overflow overflow);
uint32_t assay_minifloat_encode_f32(const struct assay_minifloat *format, float value,
                                    enum assay_overflow overflow);

/* Smallest power of two not below |@value|, by the exponent bits (never by a float
 * logarithm): CUDA's __nv_cvt_float_to_e8m0 with cudaRoundPosInf and __NV_SATFINITE
 * (cvt.rp.satfinite.ue8m0x2.f32 where the hardware has it; Hopper has not). Zero and
 * anything up to 2^-127 give 0, above 2^127 and infinity 254, NaN 255. */
uint32_t assay_ue8m0_encode(float value);

#endif
