/* SPDX-License-Identifier: MIT */
/* Sums are kept as integers of 640 bits in units of 2^-288, wide enough for every product
 * of the formats (2^-272 to 2^256) and 2^31 of them: nothing rounds until the end. */
#include "ref/oracle/unit.h"

#include "ref/oracle/rounding.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

enum { DIGITS = 20, DIGIT_BITS = 32, DIGIT_MASK_BITS = DIGIT_BITS - 1, UNIT = -288 };
enum { MAX_ELEMENTS = 32 };

/* --- codes ------------------------------------------------------------------------ */

struct layout { /* sign, exponent, mantissa */
    int exponent_bits, mantissa_bits, dropped_bits;
    bool has_infinity;
};

static struct layout layout_of(enum assay_format format)
{
    switch (format) {
    case ASSAY_E4M3: return (struct layout){ 4, 3, 0, false };
    case ASSAY_E5M2: return (struct layout){ 5, 2, 0, true };
    case ASSAY_F16: return (struct layout){ 5, 10, 0, true };
    case ASSAY_BF16: return (struct layout){ 8, 7, 0, true };
    case ASSAY_TF32: return (struct layout){ 8, 10, 13, true };
    default: assert(format == ASSAY_F32); return (struct layout){ 8, 23, 0, true };
    }
}

struct code { /* significand * 2^lsb, negated if is_negative; 0 unless finite */
    uint32_t significand; /* odd or 0 */
    int lsb, aligned;
    bool is_negative;
    enum { FINITE, INFINITE, NOT_A_NUMBER } kind;
};

static struct code decode(const struct layout *layout, uint32_t bits)
{
    const int width = layout->exponent_bits + layout->mantissa_bits;
    const int bias = (1 << (layout->exponent_bits - 1)) - 1;
    const uint32_t kept = bits >> layout->dropped_bits;
    const uint32_t fraction = kept & ((1u << layout->mantissa_bits) - 1);
    const uint32_t magnitude = kept & ((1u << width) - 1);
    const int field = (int)(magnitude >> layout->mantissa_bits);
    struct code code = { .lsb = ASSAY_UNIT_NO_LSB,
                         .aligned = ASSAY_UNIT_NO_EXPONENT,
                         .is_negative = kept >> width & 1 };
    if (layout->has_infinity && field == (1 << layout->exponent_bits) - 1) {
        code.kind = fraction ? NOT_A_NUMBER : INFINITE;
        return code;
    }
    if (!layout->has_infinity && magnitude == (1u << width) - 1) {
        code.kind = NOT_A_NUMBER;
        return code;
    }
    if (magnitude == 0) return code;
    const uint32_t significand =
        field ? fraction | 1u << layout->mantissa_bits : fraction;
    const int zeros = __builtin_ctz(significand);
    code.aligned = (field ? field : 1) - bias;
    code.significand = significand >> zeros;
    code.lsb = code.aligned - layout->mantissa_bits + zeros;
    return code;
}

/* --- exact sums ------------------------------------------------------------------- */

struct exact { /* sum of digit[i] * 2^(32 i + UNIT); digits may carry */
    uint64_t digit[DIGITS];
};

static void add(struct exact *sum, uint32_t significand, int lsb)
{
    const int position = lsb - UNIT;
    const uint64_t shifted = (uint64_t)significand << (position & DIGIT_MASK_BITS);
    uint64_t *const digit = &sum->digit[position / DIGIT_BITS];
    assert(position >= 0 && position / DIGIT_BITS < DIGITS - 1);
    digit[0] += (uint32_t)shifted;
    digit[1] += shifted >> DIGIT_BITS;
}

/* Digits of @x - @y without carries; false if that is negative. */
static bool subtract(const struct exact *x, const struct exact *y, uint32_t digit[DIGITS])
{
    int64_t carry = 0;
    for (int i = 0; i < DIGITS; i++) {
        const int64_t value = (int64_t)(x->digit[i] - y->digit[i]) + carry;
        digit[i] = (uint32_t)value;
        carry = (value - (int64_t)(uint32_t)value) / (INT64_C(1) << DIGIT_BITS);
    }
    return carry >= 0;
}

/* Three digits from the first that is not zero, the rest as one sticky bit: at least 65
 * bits, of which the conversion keeps 53, to nearest even. */
static double rounded(const uint32_t digit[DIGITS])
{
    int top = DIGITS - 1;
    while (top > 0 && digit[top] == 0)
        top--;
    wide bits = 0;
    for (int i = top; i > top - 3; i--)
        bits = bits << DIGIT_BITS | (i >= 0 ? digit[i] : 0);
    for (int i = top - 3; i >= 0; i--)
        bits |= digit[i] != 0;
    return ldexp((double)bits, (top - 2) * DIGIT_BITS + UNIT);
}

static double difference(const struct exact *x, const struct exact *y)
{
    uint32_t digit[DIGITS];
    if (subtract(x, y, digit)) return rounded(digit);
    subtract(y, x, digit);
    return -rounded(digit);
}

/* --- sums of products ------------------------------------------------------------- */

struct block {
    struct assay_tensor a, b, c;
    struct layout a_layout, b_layout;
    int64_t steps, rows, columns, elements;
    struct code *code[2]; /* of a and of b, of the step in hand */
};

static bool open_block(struct block *block, const struct assay_tensors *tensors,
                       int64_t index)
{
    block->a = assay_tensor_slice(assay_tensors_find(tensors, "a"), index);
    block->b = assay_tensor_slice(assay_tensors_find(tensors, "b"), index);
    block->c = assay_tensor_slice(assay_tensors_find(tensors, "c"), index);
    block->a_layout = layout_of(block->a.format);
    block->b_layout = layout_of(block->b.format);
    block->steps = block->a.shape[0];
    block->rows = block->a.shape[1];
    block->columns = block->b.shape[1];
    block->elements = block->a.shape[2];
    assert(block->elements <= MAX_ELEMENTS);
    for (int i = 0; i < 2; i++) {
        const int64_t rows = i ? block->columns : block->rows;
        block->code[i] = malloc((size_t)(rows * block->elements) * sizeof(struct code));
    }
    return block->code[0] && block->code[1];
}

static void close_block(struct block *block)
{
    free(block->code[0]);
    free(block->code[1]);
}

static void load(const struct assay_tensor *tensor, const struct layout *layout,
                 int64_t step, struct code *code)
{
    const struct assay_tensor slice = assay_tensor_slice(tensor, step);
    const int64_t elements = assay_tensor_elements(&slice);
    for (int64_t i = 0; i < elements; i++)
        code[i] = decode(layout, assay_tensor_bits(&slice, i));
}

static void load_step(struct block *block, int64_t step)
{
    load(&block->a, &block->a_layout, step, block->code[0]);
    load(&block->b, &block->b_layout, step, block->code[1]);
}

static unsigned infinity_of(bool is_negative)
{
    return is_negative ? ASSAY_UNIT_MINUS_INFINITY : ASSAY_UNIT_PLUS_INFINITY;
}

static unsigned special_product(const struct code *a, const struct code *b)
{
    if (a->kind == NOT_A_NUMBER || b->kind == NOT_A_NUMBER) return ASSAY_UNIT_NAN;
    const bool has_zero = (a->kind == FINITE && a->significand == 0) ||
                          (b->kind == FINITE && b->significand == 0);
    return has_zero ? ASSAY_UNIT_NAN : infinity_of(a->is_negative ^ b->is_negative);
}

static void start_sum(struct assay_dot_sum *sum, struct exact terms[2], uint32_t bits)
{
    const struct layout layout = layout_of(ASSAY_F32);
    const struct code c = decode(&layout, bits);
    *sum = (struct assay_dot_sum){ .lsb = c.lsb,
                                   .aligned = ASSAY_UNIT_NO_EXPONENT,
                                   .c_aligned = c.aligned };
    if (c.kind == NOT_A_NUMBER) sum->special = ASSAY_UNIT_NAN;
    if (c.kind == INFINITE) sum->special = infinity_of(c.is_negative);
    if (c.significand) add(&terms[c.is_negative], c.significand, c.lsb);
}

static void add_products(struct assay_dot_sum *sum, struct exact terms[2],
                         const struct code *a, const struct code *b, int64_t elements)
{
    for (int64_t k = 0; k < elements; k++) {
        if (a[k].kind != FINITE || b[k].kind != FINITE) {
            sum->special |= special_product(&a[k], &b[k]);
            continue;
        }
        const uint32_t significand = a[k].significand * b[k].significand;
        if (significand == 0) continue;
        const int lsb = a[k].lsb + b[k].lsb, aligned = a[k].aligned + b[k].aligned;
        add(&terms[a[k].is_negative ^ b[k].is_negative], significand, lsb);
        if (lsb < sum->lsb) sum->lsb = lsb;
        if (aligned > sum->aligned) sum->aligned = aligned;
        sum->products++;
    }
}

static void finish_sum(struct assay_dot_sum *sum, const struct exact terms[2])
{
    static const struct exact zero;
    sum->value = difference(&terms[0], &terms[1]);
    sum->positive = difference(&terms[0], &zero);
    sum->negative = difference(&terms[1], &zero);
}

bool assay_dot_sums(const struct assay_tensors *tensors, int64_t index,
                    struct assay_dot_sum *sum)
{
    struct block block;
    const bool is_open = open_block(&block, tensors, index);
    const int64_t outputs = block.rows * block.columns;
    struct exact(*const terms)[2] = calloc((size_t)outputs, sizeof(*terms));
    const bool has_memory = is_open && terms;
    for (int64_t i = 0; has_memory && i < outputs; i++)
        start_sum(&sum[i], terms[i], assay_tensor_bits(&block.c, i));
    for (int64_t step = 0; has_memory && step < block.steps; step++) {
        load_step(&block, step);
        for (int64_t i = 0; i < outputs; i++)
            add_products(
                &sum[i], terms[i], block.code[0] + i / block.columns * block.elements,
                block.code[1] + i % block.columns * block.elements, block.elements);
    }
    for (int64_t i = 0; has_memory && i < outputs; i++)
        finish_sum(&sum[i], terms[i]);
    free(terms);
    close_block(&block);
    return has_memory;
}

/* significand * 2^lsb modulo 2^exponent */
static double remainder_of(uint32_t significand, int lsb, int exponent)
{
    const int bits = exponent - lsb;
    if (bits <= 0) return 0;
    const uint32_t kept = bits < 32 ? significand & ((1u << bits) - 1) : significand;
    return kept * assay_exact_power(lsb);
}

static void add_residues(double residue[2], const struct code *a, const struct code *b,
                         int64_t elements, int exponent)
{
    for (int64_t k = 0; k < elements; k++) {
        const uint32_t significand = a[k].significand * b[k].significand;
        if (significand == 0) continue;
        residue[a[k].is_negative ^ b[k].is_negative] +=
            remainder_of(significand, a[k].lsb + b[k].lsb, exponent);
    }
}

bool assay_dot_residues(const struct assay_tensors *tensors, int64_t index, bool has_c,
                        const int *exponent, double (*residue)[2])
{
    const struct layout layout = layout_of(ASSAY_F32);
    struct block block;
    const bool has_memory = open_block(&block, tensors, index);
    const int64_t outputs = block.rows * block.columns;
    for (int64_t i = 0; has_memory && i < outputs; i++) {
        const struct code c = decode(&layout, assay_tensor_bits(&block.c, i));
        residue[i][0] = residue[i][1] = 0;
        if (has_c && c.significand)
            residue[i][c.is_negative] = remainder_of(c.significand, c.lsb, exponent[i]);
    }
    for (int64_t step = 0; has_memory && step < block.steps; step++) {
        load_step(&block, step);
        for (int64_t i = 0; i < outputs; i++)
            add_residues(residue[i], block.code[0] + i / block.columns * block.elements,
                         block.code[1] + i % block.columns * block.elements,
                         block.elements, exponent[i]);
    }
    close_block(&block);
    return has_memory;
}

/* --- functions -------------------------------------------------------------------- */

/* In long double, whose functions are good to 2^-62 (2^-52 where it is a double). */
static long double flushed(float x)
{
    return fpclassify(x) == FP_SUBNORMAL ? copysignl(0, (long double)x) : (long double)x;
}

double assay_exact_ex2(float x)
{
    return (double)exp2l(flushed(x));
}

double assay_exact_lg2(float x)
{
    return (double)log2l(flushed(x));
}

double assay_exact_rcp(float x)
{
    return (double)(1 / flushed(x));
}

double assay_exact_rsqrt(float x)
{
    return (double)(1 / sqrtl(flushed(x)));
}

/* --- conversions ------------------------------------------------------------------ */

double assay_exact_conversion(const struct assay_conversion *conversion, float x)
{
    const struct layout layout = layout_of(conversion->to);
    const int bias = (1 << (layout.exponent_bits - 1)) - 1, bits = layout.mantissa_bits;
    /* All ones in exponent and mantissa are a NaN without infinities, else the exponent
     * alone is special. */
    const double largest = layout.has_infinity ? ldexp(2 - ldexp(1, -bits), bias)
                                               : ldexp(2 - ldexp(1, 1 - bits), bias + 1);
    const double overflowed = conversion->saturates ? largest
                              : layout.has_infinity ? (double)INFINITY
                                                    : (double)NAN;
    if (isnan(x)) return (double)NAN;
    if (isinf(x)) return copysign(overflowed, (double)x);
    if (x == 0.0f) return (double)x;

    const int exponent = ilogb((double)x) < 1 - bias ? 1 - bias : ilogb((double)x);
    const double units = ldexp((double)x, bits - exponent);
    const double whole = conversion->truncates ? trunc(units) : rint(units);
    const double result = ldexp(whole, exponent - bits);
    if (fabs(result) <= largest) return copysign(result, (double)x);
    return copysign(conversion->truncates ? largest : overflowed, (double)x);
}
