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
    double part[2]; /* their sum is the value: one of them is 0 */
    double padded;  /* |value|, but at least the smallest normal */
    uint32_t units; /* |value| in the smallest subnormal: 2^-9 (e4m3), 2^-16 (e5m2) */
    int exponent;   /* floor(log2 |padded|): what dot-add hardware aligns by */
    int lsb;        /* the value is an odd multiple of 2^lsb */
};

/* Fills the table of e4m3 or e5m2 (asserted) and returns the number of parts in use.
 * e4m3 has one part: multiples of 2^-9 below 2^9, that is 18-bit integers.
 * e5m2 has two, each a 17-bit integer in its own unit: values from 2 on are multiples of
 * 2^-1 below 2^16, the others multiples of 2^-16 below 2. */
int assay_fp8_codes(enum assay_format format, struct assay_fp8_code table[256]);

#endif
