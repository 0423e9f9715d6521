/* SPDX-License-Identifier: MIT */
/* The tensor core's dot-add, d = c + sum over k of a[k] * b[k], as a profile of the
 * hardware plus one slow, exact algorithm. Modelled; every measured row equals H200
 * outputs to the bit (corpus/units/README.md). */
#ifndef ASSAY_REF_UNIT_DOT_ADD_H
#define ASSAY_REF_UNIT_DOT_ADD_H

#include "ref/tensor.h"

enum { ASSAY_DOT_ADD_MAX_TERMS = 64, ASSAY_DOT_ADD_MAX_ALIGN_BITS = 40 };

enum assay_group_order {
    ASSAY_GROUPS_CONSECUTIVE, /* group g adds k in [g * terms / groups, ...) */
    ASSAY_GROUPS_INTERLEAVED, /* two groups: k mod 4 in {0, 1}, then in {2, 3} */
};

struct assay_dot_add {             /* one unit of one architecture; constant */
    const char *name;              /* "hopper-fp8" */
    const char *instructions;      /* that it serves: "wgmma m64nNk32" */
    enum assay_format operands[3]; /* accepted, in any mix; ASSAY_FORMAT_NONE ends them */
    int terms;                     /* products an instruction adds: 32 */
    int groups;                    /* each group is one dot-add onto the running value */
    enum assay_group_order group_order;
    int align_bits;  /* F, 1..40: fraction bits kept below the largest exponent */
    int result_bits; /* m, 1..23: mantissa bits of the result */
    bool adds_accumulator_last; /* groups start from zero; then rn(sum + c) in f32 */
    bool converts_to_f16;       /* codes become f16 first: e4m3 subnormals turn normal */
    bool is_measured;           /* by this project; otherwise verdicts say unverified */
    const char *source;
};

/* Table of all profiles, closed by a row with a NULL name. */
extern const struct assay_dot_add assay_dot_adds[];

/* The profile of that name; NULL if there is none. */
const struct assay_dot_add *assay_dot_add_find(const char *name);

/* An operand code, decoded once for many uses. A finite one is
 * significand * 2^(alignment - 10) whatever its format. */
struct assay_operand {
    int32_t significand; /* |significand| < 2^11; 0 for zeros; the sign for infinities */
    int16_t alignment;   /* exponent in the search for the largest: the minimum for
                          * subnormals, ASSAY_OPERAND_NO_ALIGNMENT for zeros */
    uint16_t special;    /* an assay_operand_special */
};
enum assay_operand_special {
    ASSAY_OPERAND_FINITE = 0,
    ASSAY_OPERAND_INFINITE = 1,
    ASSAY_OPERAND_NAN = 2,
};
enum { ASSAY_OPERAND_FRACTION_BITS = 10, ASSAY_OPERAND_NO_ALIGNMENT = -16384 };

/* @format must be one of the profile's. A tf32 code is the whole f32 word; its low 13
 * bits are ignored, as are the high four of an e2m1 byte. */
struct assay_operand assay_operand_decode(const struct assay_dot_add *profile,
                                          enum assay_format format, uint32_t code);

/* One instruction's result for one output: @a and @b hold profile->terms operands,
 * @accumulator and the result are f32 bits. A first step with scale-d off is an
 * accumulator of 0. For each group:
 *
 *   1. a NaN, infinity * 0, or infinities of both signs give 0x7FFFFFFF; other
 *      infinities give that infinity;
 *   2. E = largest alignment of the nonzero terms (products, accumulator); a product's
 *      is the sum of its factors' and is not renormalised;
 *   3. each term is truncated to a multiple of 2^(E - align_bits), toward zero;
 *   4. the truncated terms are added exactly;
 *   5. the sum is truncated toward zero to result_bits below its leading bit, never
 *      below 2^-149; what truncates to zero is +0, an exponent above 127 infinity. */
uint32_t assay_dot_add(const struct assay_dot_add *profile, uint32_t accumulator,
                       const struct assay_operand *a, const struct assay_operand *b);

#endif
