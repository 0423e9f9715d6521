/* SPDX-License-Identifier: MIT */
/* The one-operand functions that corpus/units/unary_*.csv record, by their PTX names. */
#ifndef ASSAY_TESTS_UNIT_UNARY_FUNCTIONS_H
#define ASSAY_TESTS_UNIT_UNARY_FUNCTIONS_H

#include "ref/format/minifloat.h"
#include "ref/unit/scalar.h"
#include "ref/unit/special_function.h"

#include <string.h>

struct unary_function {
    const char *name;
    uint32_t (*special)(uint32_t bits); /* else a conversion to format */
    enum assay_format format;
    enum assay_overflow overflow;
};

/* tanh.approx.f32 is recorded too, but has no model. */
static const struct unary_function unary_functions[] = {
    { .name = "ex2.approx.ftz.f32", .special = assay_ex2_approx_ftz },
    { .name = "lg2.approx.ftz.f32", .special = assay_lg2_approx_ftz },
    { .name = "rcp.approx.ftz.f32", .special = assay_rcp_approx_ftz },
    { .name = "rsqrt.approx.ftz.f32", .special = assay_rsqrt_approx_ftz },
    { "cvt.rn.satfinite.e4m3.f32", NULL, ASSAY_E4M3, ASSAY_OVERFLOW_SATURATES },
    { "cvt.rn.satfinite.e5m2.f32", NULL, ASSAY_E5M2, ASSAY_OVERFLOW_SATURATES },
    { "cvt.rn.bf16.f32", NULL, ASSAY_BF16, ASSAY_OVERFLOW_SPECIAL },
    { "cvt.rn.f16.f32", NULL, ASSAY_F16, ASSAY_OVERFLOW_SPECIAL },
};

enum {
    UNARY_FUNCTIONS = sizeof(unary_functions) / sizeof(unary_functions[0]),
};

static inline uint32_t unary_apply(const struct unary_function *function, uint32_t bits)
{
    if (function->special) return function->special(bits);
    return assay_minifloat_encode_f32(assay_minifloat(function->format),
                                      assay_f32_from_bits(bits), function->overflow);
}

/* Position of the first @length characters of @name in the table, -1 if not there. */
static inline int unary_function_find(const char *name, size_t length)
{
    for (int i = 0; i < UNARY_FUNCTIONS; i++)
        if (strlen(unary_functions[i].name) == length &&
            memcmp(unary_functions[i].name, name, length) == 0)
            return i;
    return -1;
}

#endif
