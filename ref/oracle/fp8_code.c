/* SPDX-License-Identifier: MIT */
/* E4M3 as in OCP OFP8 1.0 (no infinity, one NaN magnitude), E5M2 as IEEE 754 would. */
#include "ref/oracle/fp8_code.h"

#include <assert.h>
#include <math.h>

static enum assay_fp8_kind e4m3_kind(unsigned code)
{
    return (code & 0x7f) == 0x7f ? ASSAY_FP8_NAN
           : code & 0x7f         ? ASSAY_FP8_FINITE
                                 : ASSAY_FP8_ZERO;
}

static enum assay_fp8_kind e5m2_kind(unsigned code)
{
    if ((code & 0x7f) > 0x7c) return ASSAY_FP8_NAN;
    if (code == 0x7c) return ASSAY_FP8_PLUS_INFINITY;
    if (code == 0xfc) return ASSAY_FP8_MINUS_INFINITY;
    return code & 0x7f ? ASSAY_FP8_FINITE : ASSAY_FP8_ZERO;
}

int assay_fp8_unit_exponent(enum assay_format format)
{
    return format == ASSAY_E4M3 ? -9 : -16;
}

int assay_fp8_smallest_exponent(enum assay_format format)
{
    return format == ASSAY_E4M3 ? -6 : -14;
}

static void fill_finite(struct assay_fp8_code *entry, unsigned code, int mantissa_bits,
                        int bias, float unit)
{
    const int field = (int)(code & 0x7f) >> mantissa_bits;
    const int implicit = field ? 1 << mantissa_bits : 0;
    const int significand = ((int)code & ((1 << mantissa_bits) - 1)) | implicit;
    entry->exponent = (field ? field : 1) - bias;
    entry->lsb = entry->exponent - mantissa_bits + __builtin_ctz((unsigned)significand);
    entry->units = (uint32_t)significand << (field ? field - 1 : 0);
    entry->value = (code & 0x80 ? -unit : unit) * (float)entry->units;
}

void assay_fp8_codes(enum assay_format format, struct assay_fp8_code table[256])
{
    assert(format == ASSAY_E4M3 || format == ASSAY_E5M2);
    const bool is_e4m3 = format == ASSAY_E4M3;
    const float unit = ldexpf(1, assay_fp8_unit_exponent(format));
    for (unsigned code = 0; code < 256; code++) {
        struct assay_fp8_code *const entry = &table[code];
        *entry =
            (struct assay_fp8_code){ .kind = is_e4m3 ? e4m3_kind(code) : e5m2_kind(code),
                                     .exponent = ASSAY_FP8_NO_EXPONENT,
                                     .lsb = ASSAY_FP8_NO_LSB };
        if (entry->kind != ASSAY_FP8_FINITE) continue;
        fill_finite(entry, code, is_e4m3 ? 3 : 2, is_e4m3 ? 7 : 15, unit);
    }
}
