/* SPDX-License-Identifier: MIT */
/* The oracle's own reading of FP8 codes. */
#ifndef ASSAY_REF_ORACLE_FP8_CODE_H
#define ASSAY_REF_ORACLE_FP8_CODE_H

#include "ref/tensor.h"

enum assay_fp8_kind {
    ASSAY_FP8_ZERO,
    ASSAY_FP8_FINITE, /* and not zero */
    ASSAY_FP8_PLUS_INFINITY,
    ASSAY_FP8_MINUS_INFINITY,
    ASSAY_FP8_NAN,
};

enum {
    ASSAY_FP8_NO_LSB = 1000,       /* lsb of what is not FINITE */
    ASSAY_FP8_NO_EXPONENT = -1000, /* exponent of what is not FINITE */
};

/* One code. Values are exact, and 0 for codes that are not FINITE. */
struct assay_fp8_code {
    enum assay_fp8_kind kind;
    float value;
    uint32_t units; /* |value| in the smallest subnormal: 2^-9 (e4m3), 2^-16 (e5m2) */
    int exponent;   /* floor(log2 |value|), but at least that of the smallest normal:
                     * what dot-add hardware aligns by */
    int lsb;        /* the value is an odd multiple of 2^lsb */
};

/* Fills the table of e4m3 or e5m2 (asserted). */
void assay_fp8_codes(enum assay_format format, struct assay_fp8_code table[256]);

/* Exponents of the smallest subnormal and of the smallest normal. */
int assay_fp8_unit_exponent(enum assay_format format);
int assay_fp8_smallest_exponent(enum assay_format format);

#endif
