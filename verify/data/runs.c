/* SPDX-License-Identifier: MIT */
/* The modes of runs, in codes: those of one sign are in the order of their values. */
#include "verify/data/runs.h"

#include <assert.h>

enum { SPREAD = 16, F32_MANTISSA_BITS = 23, F32_BIAS = 127 };
enum scale_mode { POWERS, FULL, SMALLEST, LARGEST, SCALE_MODES };

void assay_runs_begin(struct assay_runs *runs, const struct assay_stream *stream)
{
    *runs = (struct assay_runs){ .stream = *stream };
}

struct assay_run_range assay_run_range(enum assay_format format, double largest,
                                       double ordinary)
{
    const struct assay_minifloat *const row = assay_minifloat(format);
    assert(row && row->specials != ASSAY_SPECIALS_SCALE && largest >= 0 && ordinary > 0);
    const uint32_t code = assay_minifloat_encode(row, largest, ASSAY_OVERFLOW_SATURATES);
    return (struct assay_run_range){ row, code ? code : row->largest_finite, ordinary };
}

/* The next element is of the current run, or the first of a new one. */
static void step(struct assay_runs *runs, uint32_t longest, uint32_t modes)
{
    if (runs->left == 0) {
        runs->left = 1 + assay_stream_next(&runs->stream) % longest;
        runs->mode = assay_stream_next(&runs->stream) % modes;
        runs->choice = assay_stream_next(&runs->stream);
    }
    runs->left--;
}

/* The exponent field that @draw chooses among those near the ordinary values. */
static uint32_t field_of(const struct assay_run_range *range, uint32_t draw)
{
    const int bits = range->format->mantissa_bits;
    const uint32_t ordinary = assay_minifloat_encode(range->format, range->ordinary,
                                                     ASSAY_OVERFLOW_SATURATES) >>
                              bits;
    const uint32_t top = range->largest >> bits;
    const uint32_t lowest = ordinary > SPREAD ? ordinary - SPREAD : 1;
    const uint32_t highest = ordinary + SPREAD < top ? ordinary + SPREAD : top;
    return lowest + draw % (highest - lowest + 1);
}

/* A code with the field and mantissa, one binade lower if that is too large. */
static uint32_t code_of(const struct assay_run_range *range, uint32_t field,
                        uint32_t mantissa)
{
    const int bits = range->format->mantissa_bits;
    const uint32_t code = field << bits | mantissa;
    return code > range->largest ? code - (1u << bits) : code;
}

static uint32_t ordinary_code(struct assay_runs *runs,
                              const struct assay_run_range *range, uint32_t sign)
{
    const uint32_t code = assay_minifloat_encode(
        range->format, range->ordinary * assay_stream_normal(&runs->stream),
        ASSAY_OVERFLOW_SATURATES);
    return (code & (sign - 1)) > range->largest ? range->largest | (code & sign) : code;
}

uint32_t assay_runs_next(struct assay_runs *runs, const struct assay_run_range *range)
{
    const struct assay_minifloat *const format = range->format;
    const uint32_t full = (1u << format->mantissa_bits) - 1;
    const uint32_t sign = 1u << (format->exponent_bits + format->mantissa_bits);
    step(runs, ASSAY_LONGEST_RUN, ASSAY_RUN_MODES);
    const uint32_t draw = assay_stream_next(&runs->stream);
    const uint32_t random_sign = draw >> 31 ? sign : 0;
    const uint32_t run_sign = runs->choice >> 31 ? sign : 0;
    const uint32_t run_value =
        code_of(range, field_of(range, runs->choice >> 24 & 63), runs->choice & full);
    switch ((enum assay_run_mode)runs->mode) {
    case ASSAY_RUN_ZEROS: return random_sign;
    case ASSAY_RUN_LARGEST: return run_sign | range->largest;
    case ASSAY_RUN_ALTERNATING: return (runs->left & 1 ? sign : 0) | run_value;
    case ASSAY_RUN_SMALLEST: return random_sign | (full + 1);
    case ASSAY_RUN_SUBNORMAL: return random_sign | (1 + (draw & 0x7FFFFFFF) % full);
    case ASSAY_RUN_POWERS_OF_TWO:
        return random_sign | field_of(range, draw & 0xFFFF) << format->mantissa_bits;
    case ASSAY_RUN_REPEATED: return run_sign | run_value;
    case ASSAY_RUN_FULL_MANTISSA:
        return random_sign | code_of(range, field_of(range, draw & 0xFFFF), full);
    default: return ordinary_code(runs, range, sign);
    }
}

struct assay_run_scale assay_runs_next_scale(struct assay_runs *runs,
                                             const struct assay_scale_range *range)
{
    const uint32_t full = (1u << F32_MANTISSA_BITS) - 1;
    assert(range->count > 0);
    step(runs, ASSAY_LONGEST_SCALE_RUN, SCALE_MODES);
    const uint32_t draw = assay_stream_next(&runs->stream) >> 8;
    const int usual = range->usual + (int)(draw % (uint32_t)range->count);
    switch ((enum scale_mode)runs->mode) {
    case SMALLEST: return (struct assay_run_scale){ range->smallest, 0 };
    case LARGEST: return (struct assay_run_scale){ range->largest, full };
    case FULL: return (struct assay_run_scale){ usual, full };
    default: return (struct assay_run_scale){ usual, 0 };
    }
}

uint32_t assay_run_scale_bits(struct assay_run_scale scale)
{
    assert(scale.exponent >= -149 && scale.exponent <= F32_BIAS);
    if (scale.exponent < 1 - F32_BIAS)
        return (1u << F32_MANTISSA_BITS | scale.mantissa) >>
               (1 - F32_BIAS - scale.exponent);
    return (uint32_t)(scale.exponent + F32_BIAS) << F32_MANTISSA_BITS | scale.mantissa;
}
