/* SPDX-License-Identifier: MIT */
#include "verify/check/difference.h"

#include "ref/format/minifloat.h"

#include <math.h>

static int64_t position(const struct assay_minifloat *format, uint32_t code)
{
    const int sign_bit = format->exponent_bits + format->mantissa_bits;
    const int64_t magnitude = code & ((1u << sign_bit) - 1);
    return code >> sign_bit & 1 ? -magnitude : magnitude;
}

uint64_t assay_ulps_between(enum assay_format format, uint32_t a, uint32_t b)
{
    const struct assay_minifloat *const codec = assay_minifloat(format);
    if (!codec) return a > b ? a - b : b - a;
    if (isnan(assay_minifloat_decode(codec, a)) ||
        isnan(assay_minifloat_decode(codec, b)))
        return UINT64_MAX;
    const int64_t distance = position(codec, a) - position(codec, b);
    return (uint64_t)(distance < 0 ? -distance : distance);
}

struct assay_difference assay_difference_at(const struct assay_trial *trial, int output,
                                            int64_t element, uint32_t reference)
{
    const struct assay_tensor *const candidate = &trial->candidate->item[output];
    struct assay_difference difference = {
        .index = element,
        .candidate = assay_tensor_bits(candidate, element),
        .reference = reference,
    };
    difference.ulps =
        assay_ulps_between(candidate->format, difference.candidate, reference);
    trial->operation->place(trial->problem, output, element, &difference.place);
    return difference;
}
