/* SPDX-License-Identifier: MIT */
/* Explicit elements of simpler values: one, powers of two, few bits of the mantissa. */
#include "fuzz/shrink/attempt.h"
#include "ref/format/minifloat.h"

#include <string.h>

enum { MAX_CODES = 64 };

/* Codes simpler than @code, the simplest first; returns their number. */
static int simpler_codes(const struct assay_minifloat *format, uint32_t code,
                         uint32_t codes[MAX_CODES])
{
    const int mantissa = format->mantissa_bits;
    const bool is_signed = format->specials != ASSAY_SPECIALS_SCALE;
    const uint32_t sign =
        is_signed ? UINT32_C(1) << (format->exponent_bits + mantissa) : 0;
    const uint32_t one = (uint32_t)format->bias << mantissa;
    int count = 0;
    codes[count++] = one;
    if (code & sign) codes[count++] = sign | one;
    if (assay_minifloat_unpack(format, code).kind == ASSAY_NAN)
        codes[count++] = format->canonical_nan;
    else
        for (int kept = 0; kept <= mantissa; kept++) {
            const uint32_t rounded = code >> (mantissa - kept) << (mantissa - kept);
            if (code & sign) codes[count++] = rounded & ~sign;
            codes[count++] = rounded;
        }
    for (int i = 0; i < count; i++)
        if (codes[i] == code) return i;
    return count;
}

static enum assay_format format_of(const struct assay_case *the_case, const char *name)
{
    union assay_problem_storage problem;
    struct assay_tensors tensors;
    struct assay_message ignored;
    if (the_case->operation->bind(the_case, &problem, &ignored) != ASSAY_RAN)
        return ASSAY_FORMAT_NONE;
    the_case->operation->shape(&problem, &tensors);
    const struct assay_tensor *const tensor = assay_tensors_find(&tensors, name);
    /* Cases hold words of tf32, not its codes. */
    return !tensor                        ? ASSAY_FORMAT_NONE
           : tensor->format == ASSAY_TF32 ? ASSAY_F32
                                          : tensor->format;
}

static void simplify(struct assay_shrinker *shrinker, int place)
{
    const struct assay_explicit_bits element = shrinker->best.explicit_bits[place];
    const struct assay_minifloat *const format =
        assay_minifloat(format_of(&shrinker->best, element.tensor));
    uint32_t codes[MAX_CODES];
    if (!format) return;
    const int count = simpler_codes(format, element.bits, codes);
    for (int i = 0; i < count; i++) {
        struct assay_case the_case = shrinker->best;
        the_case.explicit_bits[place].bits = codes[i];
        if (assay_shrinker_try_any(shrinker, &the_case) == ASSAY_ATTEMPT_TAKEN) return;
    }
}

void assay_shrink_values(struct assay_shrinker *shrinker)
{
    for (int i = 0; i < shrinker->best.explicit_bits_count; i++)
        simplify(shrinker, i);
}
