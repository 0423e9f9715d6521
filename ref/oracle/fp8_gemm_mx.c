/* SPDX-License-Identifier: MIT */
/* Products one by one, as integers.
 *
 * Why a stretch of K is exact: a factor is an integer below 2^32 in units of its format's
 * smallest subnormal, a product below 2^64, the sum of 128 of them below 2^71. Twice 53
 * bits hold that, so the pair it becomes is exact too. */
#include "ref/oracle/fp8_gemm_mx.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

enum { STRETCH = 128, SCALE_BIAS = 127, SCALE_NAN = 255 };

__extension__ typedef __int128 wide;

enum kind { ZERO, FINITE, INFINITE, NOT_A_NUMBER };

struct factor { /* one code of an operand */
    enum kind kind;
    bool is_negative;
    int64_t units; /* of the side's unit, signed */
    double padded; /* |value|, but at least the smallest normal */
    int exponent;  /* of padded */
    int lsb;       /* the value is an odd multiple of 2^lsb */
};

struct side { /* rows of a, or of b, that belong to the part */
    const struct assay_tensor *codes, *scales;
    int64_t first, count;
    int unit; /* exponent of the smallest subnormal */
    struct factor table[256];
};

struct assay_fp8_gemm_mx_oracle {
    const struct assay_fp8_gemm_problem *problem;
    struct side side[2];
};

/* A stretch of K inside one group, of one output. */
struct stretch {
    const struct side *a, *b;
    const unsigned char *a_codes, *b_codes; /* of its first element */
    int64_t count;
    bool is_nan; /* a scale is */
    int scale;   /* exponent of both scales */
};

/* OCP OFP8 1.0: e4m3 has one NaN magnitude and no infinity, e5m2 is as IEEE 754 has it;
 * OCP MX 1.0: every e2m1 code is finite, and the high bits of its byte mean nothing. */
static enum kind kind_of(enum assay_format format, unsigned magnitude)
{
    if (format == ASSAY_E4M3 && magnitude == 0x7f) return NOT_A_NUMBER;
    if (format == ASSAY_E5M2 && magnitude >= 0x7c)
        return magnitude == 0x7c ? INFINITE : NOT_A_NUMBER;
    return magnitude ? FINITE : ZERO;
}

static void fill_table(struct side *side, enum assay_format format)
{
    assert(format == ASSAY_E4M3 || format == ASSAY_E5M2 || format == ASSAY_E2M1);
    const int mantissa_bits = format == ASSAY_E4M3 ? 3 : format == ASSAY_E5M2 ? 2 : 1;
    const int bias = format == ASSAY_E4M3 ? 7 : format == ASSAY_E5M2 ? 15 : 1;
    const unsigned sign = format == ASSAY_E2M1 ? 0x08 : 0x80;
    const unsigned implicit_bit = 1u << mantissa_bits;
    side->unit = 1 - bias - mantissa_bits;
    for (unsigned code = 0; code < 256; code++) {
        const unsigned magnitude = code & (sign - 1), field = magnitude >> mantissa_bits;
        struct factor *const factor = &side->table[code];
        *factor = (struct factor){ .kind = kind_of(format, magnitude),
                                   .is_negative = code & sign };
        if (factor->kind != FINITE) continue;
        const unsigned fraction = magnitude & (implicit_bit - 1);
        const unsigned significand = field ? fraction | implicit_bit : fraction;
        const int64_t units = (int64_t)significand << (field ? field - 1 : 0);
        factor->units = factor->is_negative ? -units : units;
        factor->exponent = (int)(field ? field : 1) - bias;
        factor->padded =
            fmax(ldexp((double)units, side->unit), ldexp(1, factor->exponent));
        factor->lsb = __builtin_ctzll((uint64_t)units) + side->unit;
    }
}

static void open_side(struct side *side, const struct assay_tensor *codes,
                      const struct assay_tensor *scales, int64_t first, int64_t count)
{
    assert(codes && scales);
    side->codes = codes;
    side->scales = scales;
    side->first = first;
    side->count = count;
    fill_table(side, codes->format);
}

struct assay_fp8_gemm_mx_oracle *
assay_fp8_gemm_mx_oracle_open(const struct assay_fp8_gemm_problem *problem,
                              const struct assay_tensors *tensors, int64_t part)
{
    struct assay_fp8_gemm_mx_oracle *const oracle = malloc(sizeof *oracle);
    if (!oracle) return NULL;
    const struct assay_fp8_gemm_tile_range range =
        assay_fp8_gemm_part_range(problem, part);
    oracle->problem = problem;
    open_side(&oracle->side[0], assay_tensors_find(tensors, "a"),
              assay_tensors_find(tensors, "sfa"), range.m0, range.rows);
    open_side(&oracle->side[1], assay_tensors_find(tensors, "b"),
              assay_tensors_find(tensors, "sfb"), range.n0, range.columns);
    return oracle;
}

void assay_fp8_gemm_mx_oracle_close(struct assay_fp8_gemm_mx_oracle *oracle)
{
    free(oracle);
}

static unsigned scale_code(const struct side *side, int64_t row, int64_t group)
{
    const int64_t *const stride = side->scales->stride;
    const int64_t word = group / 4 * stride[0] + (side->first + row) * stride[1];
    return ((const unsigned char *)side->scales->data)[4 * word + group % 4];
}

static const unsigned char *codes_at(const struct side *side, int64_t row, int64_t k)
{
    const int64_t *const stride = side->codes->stride;
    return (const unsigned char *)side->codes->data + (side->first + row) * stride[0] +
           k * stride[1];
}

/* The stretch of output (i, j) that begins at @k; false at the end of K. */
static bool stretch_at(const struct assay_fp8_gemm_mx_oracle *oracle, int64_t i,
                       int64_t j, int64_t k, struct stretch *stretch)
{
    const struct side *const a = &oracle->side[0], *const b = &oracle->side[1];
    const int64_t gran_k = oracle->problem->gran_k, group = k / gran_k;
    const int64_t rest = oracle->problem->k - k, in_group = gran_k - k % gran_k;
    if (rest <= 0) return false;
    const unsigned scale_a = scale_code(a, i, group), scale_b = scale_code(b, j, group);
    *stretch = (struct stretch){
        .a = a,
        .b = b,
        .a_codes = codes_at(a, i, k),
        .b_codes = codes_at(b, j, k),
        .count = in_group < rest ? in_group : rest,
        .is_nan = scale_a == SCALE_NAN || scale_b == SCALE_NAN,
        .scale = (int)scale_a + (int)scale_b - 2 * SCALE_BIAS,
    };
    if (stretch->count > STRETCH) stretch->count = STRETCH;
    return true;
}

static unsigned special_product(const struct factor *a, const struct factor *b)
{
    if (a->kind == NOT_A_NUMBER || b->kind == NOT_A_NUMBER) return ASSAY_MX_NAN;
    if (a->kind == ZERO || b->kind == ZERO) return ASSAY_MX_NAN;
    return a->is_negative ^ b->is_negative ? ASSAY_MX_MINUS_INFINITY
                                           : ASSAY_MX_PLUS_INFINITY;
}

static struct assay_pair pair_of(wide sum, int scale)
{
    const double high = (double)sum, low = (double)(sum - (wide)high);
    return (struct assay_pair){ ldexp(high, scale), ldexp(low, scale) };
}

static void add_stretch(const struct stretch *stretch,
                        struct assay_fp8_gemm_mx_output *output)
{
    wide sum = 0;
    double magnitude = 0;
    int unit = INT_MAX, exponent = INT_MIN;
    for (int64_t k = 0; k < stretch->count; k++) {
        const struct factor *const a =
            &stretch->a->table[stretch->a_codes[k * stretch->a->codes->stride[1]]];
        const struct factor *const b =
            &stretch->b->table[stretch->b_codes[k * stretch->b->codes->stride[1]]];
        if (a->kind > FINITE || b->kind > FINITE) {
            output->special |= special_product(a, b);
            continue;
        }
        if (a->kind == ZERO || b->kind == ZERO) continue;
        sum += (wide)a->units * b->units;
        magnitude += a->padded * b->padded;
        if (a->lsb + b->lsb < unit) unit = a->lsb + b->lsb;
        if (a->exponent + b->exponent > exponent) exponent = a->exponent + b->exponent;
        output->nonzero++;
    }
    if (magnitude == 0) return;
    output->sum = assay_pair_add(
        output->sum, pair_of(sum, stretch->scale + stretch->a->unit + stretch->b->unit));
    output->magnitude += ldexp(magnitude, stretch->scale);
    unit += stretch->scale;
    exponent += stretch->scale;
    if (unit < output->unit) output->unit = unit;
    if (exponent > output->exponent) output->exponent = exponent;
}

static void add_output(const struct assay_fp8_gemm_mx_oracle *oracle, int64_t i,
                       int64_t j, struct assay_fp8_gemm_mx_output *output)
{
    struct stretch stretch;
    *output = (struct assay_fp8_gemm_mx_output){ .unit = INT_MAX, .exponent = INT_MIN };
    for (int64_t k = 0; stretch_at(oracle, i, j, k, &stretch); k += stretch.count) {
        if (stretch.is_nan)
            output->special |= ASSAY_MX_NAN;
        else
            add_stretch(&stretch, output);
    }
    /* Fewer than 2^22 additions, each rounded by 2^-53. */
    output->magnitude *= 1 + 0x1p-30;
}

void assay_fp8_gemm_mx_oracle_sums(const struct assay_fp8_gemm_mx_oracle *oracle,
                                   struct assay_fp8_gemm_mx_output *output)
{
    assert(oracle->problem->k <= 1 << 26);
    for (int64_t i = 0; i < oracle->side[0].count; i++)
        for (int64_t j = 0; j < oracle->side[1].count; j++)
            add_output(oracle, i, j, output++);
}

/* In units of the product's two formats. */
static double stretch_residue(const struct stretch *stretch, int bits)
{
    const uint64_t mask = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
    double residue = 0;
    for (int64_t k = 0; k < stretch->count; k++) {
        const int64_t a =
            stretch->a->table[stretch->a_codes[k * stretch->a->codes->stride[1]]].units;
        const int64_t b =
            stretch->b->table[stretch->b_codes[k * stretch->b->codes->stride[1]]].units;
        residue += (double)((uint64_t)llabs(a) * (uint64_t)llabs(b) & mask);
    }
    return residue;
}

static double output_residue(const struct assay_fp8_gemm_mx_oracle *oracle, int64_t i,
                             int64_t j, int exponent)
{
    struct stretch stretch;
    double residue = 0;
    for (int64_t k = 0; stretch_at(oracle, i, j, k, &stretch); k += stretch.count) {
        const int unit = stretch.scale + stretch.a->unit + stretch.b->unit;
        if (stretch.is_nan || exponent <= unit) continue;
        residue += ldexp(stretch_residue(&stretch, exponent - unit), unit);
    }
    return residue;
}

void assay_fp8_gemm_mx_oracle_residues(const struct assay_fp8_gemm_mx_oracle *oracle,
                                       const int *exponent, double *residue)
{
    for (int64_t i = 0; i < oracle->side[0].count; i++)
        for (int64_t j = 0; j < oracle->side[1].count; j++)
            *residue++ = output_residue(oracle, i, j, *exponent++);
}

double assay_fp8_gemm_mx_value(const struct assay_fp8_gemm_mx_output *output)
{
    const unsigned both = ASSAY_MX_PLUS_INFINITY | ASSAY_MX_MINUS_INFINITY;
    if (output->special & ASSAY_MX_NAN || (output->special & both) == both)
        return (double)NAN;
    if (!output->special) return output->sum.high;
    return output->special == ASSAY_MX_PLUS_INFINITY ? (double)INFINITY
                                                     : -(double)INFINITY;
}
