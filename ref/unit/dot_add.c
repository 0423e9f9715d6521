/* SPDX-License-Identifier: MIT */
/* The dot-add in 64-bit integers, driven by the profile's constants alone. */
#include "ref/unit/dot_add.h"

#include "ref/format/minifloat.h"
#include "ref/unit/scalar.h"

#include <assert.h>
#include <string.h>

enum {
    F16_MINIMUM_EXPONENT = -14,
    F32_MANTISSA_BITS = 23,
    F32_MINIMUM_EXPONENT = -126,
    F32_BIAS = 127,
    F32_MINIMUM_QUANTUM = F32_MINIMUM_EXPONENT - F32_MANTISSA_BITS,
    PRODUCT_FRACTION_BITS = 2 * ASSAY_OPERAND_FRACTION_BITS,
    /* The largest term, at most 4 * 2^PRODUCT_FRACTION_BITS, moves up by so much. */
    HEADROOM = ASSAY_DOT_ADD_MAX_ALIGN_BITS - PRODUCT_FRACTION_BITS,
};

static const uint32_t nan_bits = 0x7FFFFFFF;
static const uint32_t sign_bit = 0x80000000;
static const uint32_t infinity_bits = 0x7F800000;
static const uint32_t mantissa_mask = 0x007FFFFF;

const struct assay_dot_add *assay_dot_add_find(const char *name)
{
    for (const struct assay_dot_add *row = assay_dot_adds; row->name; row++)
        if (strcmp(row->name, name) == 0) return row;
    return NULL;
}

/* The bits of a stored operand that are its code. */
static uint32_t code_bits(enum assay_format format, uint32_t stored)
{
    switch (format) {
    case ASSAY_TF32: return stored >> 13;
    case ASSAY_E2M1: return stored & 0xF;
    default: return stored;
    }
}

static bool accepts(const struct assay_dot_add *profile, enum assay_format format)
{
    for (int i = 0; i < 3; i++)
        if (profile->operands[i] == format) return format != ASSAY_FORMAT_NONE;
    return false;
}

struct assay_operand assay_operand_decode(const struct assay_dot_add *profile,
                                          enum assay_format format, uint32_t code)
{
    assert(accepts(profile, format));
    const struct assay_minifloat *const layout = assay_minifloat(format);
    const struct assay_unpacked value =
        assay_minifloat_unpack(layout, code_bits(format, code));
    const int32_t sign = value.is_negative ? -1 : 1;
    struct assay_operand operand = { 0, ASSAY_OPERAND_NO_ALIGNMENT,
                                     ASSAY_OPERAND_FINITE };

    if (value.kind == ASSAY_NAN) operand.special = ASSAY_OPERAND_NAN;
    if (value.kind == ASSAY_INFINITE) {
        operand.special = ASSAY_OPERAND_INFINITE;
        operand.significand = sign;
    }
    if (value.kind != ASSAY_FINITE) return operand;

    int32_t significand = (int32_t)value.significand
                          << (ASSAY_OPERAND_FRACTION_BITS - layout->mantissa_bits);
    int alignment = value.exponent + layout->mantissa_bits;
    if (profile->converts_to_f16)
        for (; significand < 1 << ASSAY_OPERAND_FRACTION_BITS &&
               alignment > F16_MINIMUM_EXPONENT;
             alignment--)
            significand *= 2;
    operand.significand = sign * significand;
    operand.alignment = (int16_t)alignment;
    return operand;
}

struct accumulator { /* significand * 2^(alignment - 23) */
    int32_t significand;
    int alignment;
    unsigned special;
};

static struct accumulator unpack_accumulator(uint32_t bits)
{
    const int field = (int)(bits >> F32_MANTISSA_BITS & 0xFF);
    const int32_t mantissa = (int32_t)(bits & mantissa_mask);
    const int32_t sign = bits & sign_bit ? -1 : 1;

    if (field == 0xFF)
        return (struct accumulator){ sign, ASSAY_OPERAND_NO_ALIGNMENT,
                                     mantissa ? ASSAY_OPERAND_NAN
                                              : ASSAY_OPERAND_INFINITE };
    if (field == 0 && mantissa == 0)
        return (struct accumulator){ 0, ASSAY_OPERAND_NO_ALIGNMENT,
                                     ASSAY_OPERAND_FINITE };
    const int32_t implicit = field ? 1 << F32_MANTISSA_BITS : 0;
    return (struct accumulator){ sign * (mantissa | implicit),
                                 (field ? field : 1) - F32_BIAS, ASSAY_OPERAND_FINITE };
}

static uint32_t add_specials(struct accumulator c, const struct assay_operand *a,
                             const struct assay_operand *b, int terms)
{
    if (c.special == ASSAY_OPERAND_NAN) return nan_bits;
    bool has_plus = c.special && c.significand > 0;
    bool has_minus = c.special && c.significand < 0;

    for (int k = 0; k < terms; k++) {
        const unsigned special = a[k].special | b[k].special;
        if (special == ASSAY_OPERAND_FINITE) continue;
        const int32_t product = a[k].significand * b[k].significand;
        if (special & ASSAY_OPERAND_NAN || product == 0) return nan_bits;
        has_plus |= product > 0;
        has_minus |= product < 0;
    }
    if (has_plus && has_minus) return nan_bits;
    return has_minus ? sign_bit | infinity_bits : infinity_bits;
}

/* significand * 2^exponent, truncated toward zero; exponent is at most HEADROOM. */
static inline int64_t align(int32_t significand, int exponent)
{
    const int shift = HEADROOM - exponent;
    /* sign is 0 or -1, so that (x ^ sign) - sign negates without a branch. */
    const int64_t sign = -(int64_t)(significand < 0);
    const uint64_t magnitude = (uint64_t)((significand ^ sign) - sign);
    const uint64_t aligned = magnitude << HEADROOM >> (shift < 63 ? shift : 63);
    return ((int64_t)aligned ^ sign) - sign;
}

/* sum * 2^unit as f32 with @result_bits mantissa bits, truncated toward zero. */
static uint32_t pack(int64_t sum, int unit, int result_bits)
{
    if (sum == 0) return 0;
    const uint32_t sign = sum < 0 ? sign_bit : 0;
    const uint64_t magnitude = (uint64_t)(sum < 0 ? -sum : sum);
    const int exponent = unit + 63 - __builtin_clzll(magnitude);
    if (exponent > F32_BIAS) return sign | infinity_bits;
    if (exponent < F32_MINIMUM_QUANTUM) return 0;

    const bool is_normal = exponent >= F32_MINIMUM_EXPONENT;
    const int f32_quantum =
        is_normal ? exponent - F32_MANTISSA_BITS : F32_MINIMUM_QUANTUM;
    const int finest = exponent - result_bits;
    const int quantum = finest > f32_quantum ? finest : f32_quantum;
    const uint64_t kept =
        quantum > unit ? magnitude >> (quantum - unit) : magnitude << (unit - quantum);
    const uint32_t significand = (uint32_t)(kept << (quantum - f32_quantum));

    /* The implicit bit of a normal significand adds the missing one to the exponent. */
    const int field = is_normal ? exponent - F32_MINIMUM_EXPONENT : 0;
    return sign | (((uint32_t)field << F32_MANTISSA_BITS) + significand);
}

static uint32_t add_group(const struct assay_dot_add *profile, uint32_t accumulator,
                          const struct assay_operand *a, const struct assay_operand *b,
                          int terms)
{
    const struct accumulator c = unpack_accumulator(accumulator);
    int32_t product[ASSAY_DOT_ADD_MAX_TERMS];
    int alignment[ASSAY_DOT_ADD_MAX_TERMS];
    int largest = c.alignment;
    unsigned special = c.special;

    for (int k = 0; k < terms; k++) {
        product[k] = a[k].significand * b[k].significand;
        alignment[k] = a[k].alignment + b[k].alignment;
        largest = alignment[k] > largest ? alignment[k] : largest;
        special |= (unsigned)(a[k].special | b[k].special);
    }
    if (special != ASSAY_OPERAND_FINITE) return add_specials(c, a, b, terms);

    const int unit = largest - profile->align_bits;
    int64_t sum = align(c.significand, c.alignment - F32_MANTISSA_BITS - unit);
    for (int k = 0; k < terms; k++)
        sum += align(product[k], alignment[k] - PRODUCT_FRACTION_BITS - unit);
    return pack(sum, unit, profile->result_bits);
}

static void deinterleave(struct assay_operand *to, const struct assay_operand *from,
                         int terms)
{
    for (int k = 0; k < terms; k++)
        to[k / 4 * 2 + k % 2 + (k % 4 < 2 ? 0 : terms / 2)] = from[k];
}

static uint32_t add_groups(const struct assay_dot_add *profile, uint32_t running,
                           const struct assay_operand *a, const struct assay_operand *b)
{
    const int terms = profile->terms / profile->groups;
    for (int first = 0; first < profile->terms; first += terms)
        running = add_group(profile, running, a + first, b + first, terms);
    return running;
}

static uint32_t add_interleaved(const struct assay_dot_add *profile, uint32_t running,
                                const struct assay_operand *a,
                                const struct assay_operand *b)
{
    struct assay_operand ordered_a[ASSAY_DOT_ADD_MAX_TERMS];
    struct assay_operand ordered_b[ASSAY_DOT_ADD_MAX_TERMS];
    deinterleave(ordered_a, a, profile->terms);
    deinterleave(ordered_b, b, profile->terms);
    return add_groups(profile, running, ordered_a, ordered_b);
}

uint32_t assay_dot_add(const struct assay_dot_add *profile, uint32_t accumulator,
                       const struct assay_operand *a, const struct assay_operand *b)
{
    assert(profile->terms <= ASSAY_DOT_ADD_MAX_TERMS);
    assert(profile->align_bits >= 1 &&
           profile->align_bits <= ASSAY_DOT_ADD_MAX_ALIGN_BITS);
    assert(profile->result_bits >= 1 && profile->result_bits <= F32_MANTISSA_BITS);

    const uint32_t start = profile->adds_accumulator_last ? 0 : accumulator;
    const uint32_t sum = profile->group_order == ASSAY_GROUPS_INTERLEAVED
                             ? add_interleaved(profile, start, a, b)
                             : add_groups(profile, start, a, b);
    if (!profile->adds_accumulator_last) return sum;
    return assay_f32_bits(
        assay_f32_add(assay_f32_from_bits(sum), assay_f32_from_bits(accumulator)));
}
