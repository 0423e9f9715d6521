/* SPDX-License-Identifier: MIT */
/* Bytes of a cache read one by one, and amax / 448 in double arithmetic. */
#include "ref/oracle/mla_cache.h"

#include "ref/oracle/rounding.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* The f32 nearest to 1e-4. */
#define SMALLEST (13743895 * 0x1p-37)

struct assay_mla_cache_bytes
assay_mla_cache_bytes_of(const struct assay_mla_cache_problem *problem,
                         int64_t place_in_page)
{
    const int64_t i = place_in_page, behind_records = problem->page_size * 576;
    switch (problem->kv) {
    case ASSAY_MLA_V32:
        return (struct assay_mla_cache_bytes){ 512,           128,          1, 4, 656 * i,
                                               656 * i + 512, 656 * i + 528 };
    case ASSAY_MLA_MODEL1:
        return (struct assay_mla_cache_bytes){
            448, 64, 1, 1, 576 * i, behind_records + 8 * i, 576 * i + 448
        };
    case ASSAY_MLA_V41_FP8:
        return (struct assay_mla_cache_bytes){ 512, 32, 1, 1, 528 * i, 528 * i + 512, 0 };
    case ASSAY_MLA_V41_FP4: break;
    }
    return (struct assay_mla_cache_bytes){ 512, 16, 2, 1, 288 * i, 288 * i + 256, 0 };
}

static double f32_value(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

static double e4m3_value(unsigned code)
{
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    double value =
        exponent ? (8 + mantissa) * assay_exact_power(exponent - 10) : mantissa * 0x1p-9;
    if (exponent == 15 && mantissa == 7) value = (double)NAN;
    return code & 0x80 ? -value : value;
}

static double e2m1_value(unsigned code)
{
    static const double magnitude[8] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };
    return code & 8 ? -magnitude[code & 7] : magnitude[code & 7];
}

static unsigned little_endian(const unsigned char *bytes, int count)
{
    unsigned bits = 0;
    for (int i = 0; i < count; i++)
        bits |= (unsigned)bytes[i] << 8 * i;
    return bits;
}

static double scale_value(enum assay_mla_kv kv, unsigned bits)
{
    if (kv == ASSAY_MLA_V32) return f32_value(bits);
    if (kv == ASSAY_MLA_V41_FP4) return e4m3_value(bits);
    return bits == 255 ? (double)NAN : ldexp(1, (int)bits - 127);
}

void assay_mla_cache_factors(const struct assay_mla_cache_problem *problem,
                             const struct assay_tensors *tensors, int64_t token,
                             double *code, double *scale)
{
    const struct assay_tensor *const k_cache = assay_tensors_find(tensors, "k_cache");
    const struct assay_mla_cache_bytes at =
        assay_mla_cache_bytes_of(problem, token % problem->page_size);
    const unsigned char *const page = (const unsigned char *)k_cache->data +
                                      token / problem->page_size * problem->page_stride;
    for (int i = 0; i < at.coded; i++) {
        const unsigned byte = page[at.codes + i / at.codes_a_byte];
        const unsigned nibble = i % 2 ? byte / 16 : byte % 16;
        const int64_t of_tile = at.scales + (int64_t)(i / at.tile) * at.scale_bytes;
        code[i] = at.codes_a_byte == 2 ? e2m1_value(nibble) : e4m3_value(byte);
        scale[i] =
            scale_value(problem->kv, little_endian(page + of_tile, at.scale_bytes));
    }
    for (int i = at.coded; i < assay_mla_d_qk(problem->kv); i++) {
        code[i] = f32_value(little_endian(page + at.rope + 2 * (i - at.coded), 2) << 16);
        scale[i] = 1;
    }
}

static double amax_of(const struct assay_mla_cache_rules *rules, const uint16_t *x,
                      int count)
{
    double amax = 0;
    for (int i = 0; i < count; i++) {
        const double value = f32_value((uint32_t)x[i] << 16);
        if (isnan(value) && !rules->ignores_nan) return value;
        if (fabs(value) > amax) amax = fabs(value);
    }
    return amax;
}

/* Smallest power of two not below value / 448, which is 7/8 of 2^9. */
static double power_above_448th(double value)
{
    int exponent;
    const double fraction = frexp(value, &exponent);
    return ldexp(1, fraction <= 0.875 ? exponent - 9 : exponent - 8);
}

/* The value of e4m3 nearest to amax / 6. 6 is 3 * 2: whether amax / 6 lies on, below or
 * above the middle of two codes is found without dividing. */
static double fp4_scale(double amax)
{
    if (!isfinite(amax)) return (double)NAN;
    if (amax >= 6 * 448.0) return 448;
    unsigned code = 1;
    while (code < 0x7E) {
        const double middle = (e4m3_value(code) + e4m3_value(code + 1)) / 2;
        if (amax < 6 * middle || (amax == 6 * middle && code % 2 == 0)) break;
        code++;
    }
    return e4m3_value(code);
}

/* Scale of a tile, and what 448 * x is divided by where the scale is none of the exact
 * ones. */
static double find_scale(const struct assay_mla_cache_problem *problem,
                         const struct assay_mla_cache_rules *rules, double *amax,
                         bool *is_exact)
{
    const bool is_raw = problem->kv == ASSAY_MLA_V32 && !problem->has_power_of_two_scale;
    const double floor_of_amax = rules->raises_amax ? SMALLEST : 448 * SMALLEST;
    *is_exact = true;
    if (problem->kv == ASSAY_MLA_V41_FP4) return fp4_scale(*amax);
    if (*amax < floor_of_amax) *amax = floor_of_amax;
    if (!isfinite(*amax)) return *amax;
    if (!is_raw) return power_above_448th(*amax);
    *is_exact = *amax == 448 * SMALLEST;
    return *amax / 448;
}

void assay_mla_cache_quantised_of(const struct assay_mla_cache_problem *problem,
                                  const struct assay_mla_cache_rules *rules,
                                  const struct assay_tensors *tensors, int64_t token,
                                  struct assay_mla_cache_quantised *quantised)
{
    const struct assay_tensor *const x = assay_tensors_find(tensors, "x");
    const uint16_t *const row = (const uint16_t *)x->data + token * x->stride[0];
    const struct assay_mla_cache_bytes at = assay_mla_cache_bytes_of(problem, 0);
    for (int first = 0, i = 0; first < at.coded; first += at.tile, i++) {
        double amax = amax_of(rules, row + first, at.tile);
        const double scale =
            find_scale(problem, rules, &amax, &quantised->is_scale_exact[i]);
        quantised->scale[i] = scale;
        for (int j = first; j < first + at.tile; j++) {
            const double value = f32_value((uint32_t)row[j] << 16);
            quantised->quotient[j] =
                quantised->is_scale_exact[i] ? value / scale : 448 * value / amax;
        }
    }
    memcpy(quantised->rope, row + at.coded,
           (size_t)(assay_mla_d_qk(problem->kv) - at.coded) * sizeof(row[0]));
}

/* The multiple of 2^-mantissa_bits of the value's power of two, nearest to it; of
 * 2^smallest - mantissa_bits below 2^smallest. */
static double nearest(double value, int mantissa_bits, int smallest)
{
    const bool is_below = fabs(value) < assay_exact_power(smallest);
    const int exponent = is_below ? smallest : assay_exact_exponent(value);
    const double steps = value * assay_exact_power(mantissa_bits - exponent);
    return assay_nearest_whole(steps) * assay_exact_power(exponent - mantissa_bits);
}

double assay_mla_bf16_nearest(double value)
{
    if (!isfinite(value)) return value;
    const double rounded = nearest(value, 7, -126);
    return fabs(rounded) >= 0x1p128 ? copysign((double)INFINITY, value) : rounded;
}

uint32_t assay_mla_code_nearest(enum assay_format format, double value)
{
    const bool is_e4m3 = format == ASSAY_E4M3;
    const uint32_t sign_bit = is_e4m3 ? 0x80 : 8;
    const double largest = is_e4m3 ? 448 : 6;
    assert(is_e4m3 || format == ASSAY_E2M1);
    if (isnan(value)) return is_e4m3 ? 0x7F : 0;
    const int mantissa_bits = is_e4m3 ? 3 : 1, smallest = is_e4m3 ? -6 : 0;
    const double cut = fmin(fabs(value), largest);
    const double rounded = fmin(nearest(cut, mantissa_bits, smallest), largest);
    const int exponent =
        rounded < assay_exact_power(smallest) ? smallest : assay_exact_exponent(rounded);
    /* Steps of 2^(exponent - mantissa_bits) below it; 2^mantissa_bits codes a binade. */
    const double steps = rounded * assay_exact_power(mantissa_bits - exponent);
    const uint32_t magnitude =
        (uint32_t)steps + ((uint32_t)(exponent - smallest) << mantissa_bits);
    return signbit(value) ? magnitude | sign_bit : magnitude;
}
