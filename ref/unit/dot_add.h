/* SPDX-License-Identifier: MIT */
/* The tensor core's dot-add, d = c + sum over k of a[k] * b[k], as a profile of the
 * hardware plus one slow, exact algorithm. Modelled; every Hopper row equals recorded
 * H200 outputs to the bit (corpus/units/). */
#ifndef ASSAY_REF_UNIT_DOT_ADD_H
#define ASSAY_REF_UNIT_DOT_ADD_H

#include "ref/tensor.h"

enum { ASSAY_DOT_ADD_MAX_TERMS = 64 };

enum assay_group_order {
    ASSAY_GROUPS_CONSECUTIVE, /* group g adds k in [g * terms / groups, ...) */
    ASSAY_GROUPS_INTERLEAVED, /* two groups: k mod 4 in {0, 1}, then in {2, 3} */
};

struct assay_dot_add { /* one instruction of one architecture; constant */
    const char *name;  /* "hopper-fp8" */
    enum assay_format operands[3]; /* accepted; ASSAY_FORMAT_NONE ends a shorter list */
    int terms;                     /* products an instruction adds: 32 */
    int groups;                    /* each group is one dot-add onto the running value */
    enum assay_group_order group_order;
    int align_bits;             /* F: fraction bits kept below the largest exponent */
    int result_bits;            /* m: mantissa bits of the result */
    bool adds_accumulator_last; /* groups start from zero; then rn(sum + c) in f32 */
    bool normalises_subnormals; /* operands pass through a wider format first */
    bool is_measured;           /* by this project; otherwise verdicts say unverified */
    const char *source;
};

/* Table of all profiles, closed by a row with a NULL name. */
extern const struct assay_dot_add assay_dot_adds[];

/* The profile of that name; NULL if there is none. */
const struct assay_dot_add *assay_dot_add_find(const char *name);

/* An operand code, decoded once for many uses: value = significand * 2^exponent.
 * @alignment is the exponent that takes part in the search for the largest one. */
struct assay_operand {
    int32_t significand; /* signed; 0 for zero codes */
    int16_t alignment;   /* unbiased exponent (the minimum for subnormals) */
    uint8_t special;     /* 0 finite, else an assay_operand_special */
    uint8_t mantissa_bits;
};
enum assay_operand_special {
    ASSAY_OPERAND_NAN = 1,
    ASSAY_OPERAND_PLUS_INFINITY = 2,
    ASSAY_OPERAND_MINUS_INFINITY = 4,
};
struct assay_operand assay_operand_decode(const struct assay_dot_add *profile,
                                          enum assay_format format, uint32_t code);

/* One instruction: @a and @b hold profile->terms operands, @accumulator and the result
 * are f32 bits. A first step with scale-d off is an accumulator of 0. */
uint32_t assay_dot_add(const struct assay_dot_add *profile, uint32_t accumulator,
                       const struct assay_operand *a, const struct assay_operand *b);

#endif
