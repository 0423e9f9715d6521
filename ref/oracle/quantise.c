/* SPDX-License-Identifier: MIT */
/* 448 * x / amax in double arithmetic, where 448 * x is exact. */
#include "ref/oracle/quantise.h"

#include <math.h>
#include <string.h>

/* The f32 nearest to 1e-4. */
#define SMALLEST_AMAX (13743895 * 0x1p-37)

struct block {
    int64_t m0, rows, k0, columns;
    double amax;
    double divisor, scale;
};

static double x_at(const struct assay_tensor *x, int64_t row, int64_t column)
{
    const int64_t element = row * x->stride[0] + column * x->stride[1];
    const unsigned char *const data = x->data;
    uint32_t bits = 0;
    if (x->format == ASSAY_F32) {
        memcpy(&bits, data + 4 * element, 4);
    } else {
        uint16_t half;
        memcpy(&half, data + 2 * element, 2);
        bits = (uint32_t)half << 16;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double amax_of(const struct assay_quantise_rules *rules,
                      const struct assay_tensor *x, const struct block *block)
{
    double amax = SMALLEST_AMAX;
    for (int64_t i = 0; i < block->rows; i++)
        for (int64_t j = 0; j < block->columns; j++) {
            const double value = x_at(x, block->m0 + i, block->k0 + j);
            if (isnan(value) && !rules->ignores_nan) return (double)NAN;
            if (fabs(value) > amax) amax = fabs(value);
        }
    return amax;
}

/* Smallest power of two that is not below amax / 448. 448 is 7/8 of 2^9. */
static double power_of_two(const struct assay_quantise_rules *rules, double amax)
{
    if (isnan(amax) && rules->keeps_nan_scale) return (double)NAN;
    if (!isfinite(amax)) return 0x1p127;
    int exponent;
    const double fraction = frexp(amax, &exponent);
    return ldexp(1, fraction <= 0.875 ? exponent - 9 : exponent - 8);
}

static double quotient(const struct assay_quantise_rules *rules,
                       const struct block *block, double x)
{
    const double exact = block->divisor > 0 ? x / block->divisor : x * 448 / block->amax;
    if (!isinf(exact)) return exact;
    return rules->overflow_is_nan ? (double)NAN : copysign(448, exact);
}

/* A divisor of 0 stands for amax / 448. */
static void find_scale(const struct assay_quantise_problem *problem,
                       const struct assay_quantise_rules *rules, struct block *block)
{
    block->divisor = 0;
    block->scale = block->amax / 448;
    if (!problem->has_power_of_two_scale) return;
    block->scale = power_of_two(rules, block->amax);
    if (!rules->by_raw_scale) block->divisor = block->scale;
}

void assay_quantise_oracle_part(const struct assay_quantise_problem *problem,
                                const struct assay_quantise_rules *rules,
                                const struct assay_tensors *tensors, int64_t part,
                                double *q, double *sf)
{
    const struct assay_tensor *const x = assay_tensors_find(tensors, "x");
    const struct assay_quantise_range range = assay_quantise_part_range(problem, part);
    for (int64_t m = 0; m < range.rows; m += problem->gran_m)
        for (int64_t k = 0; k < range.columns; k += problem->gran_k) {
            struct block block = { .m0 = range.m0 + m, .k0 = range.k0 + k };
            block.rows =
                range.rows - m < problem->gran_m ? range.rows - m : problem->gran_m;
            block.columns =
                range.columns - k < problem->gran_k ? range.columns - k : problem->gran_k;
            block.amax = amax_of(rules, x, &block);
            find_scale(problem, rules, &block);
            *sf++ = block.scale;
            for (int64_t i = 0; i < block.rows; i++)
                for (int64_t j = 0; j < block.columns; j++)
                    q[(m + i) * range.columns + k + j] =
                        quotient(rules, &block, x_at(x, block.m0 + i, block.k0 + j));
        }
}

double assay_e4m3_nearest(double value)
{
    if (isnan(value)) return value;
    const int exponent = fabs(value) < 0x1p-6 ? -6 : ilogb(value);
    const double step = ldexp(1, exponent - 3);
    const double rounded = rint(value / step) * step;
    return fabs(rounded) > 448 ? copysign(448, value) : rounded;
}
