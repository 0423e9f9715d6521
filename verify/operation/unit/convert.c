/* SPDX-License-Identifier: MIT */
/* Descriptor of convert: f32 to a narrower format. The bound is zero: a conversion has
 * one right value, which the oracle finds by itself. */
#include "ref/oracle/unit.h"
#include "verify/operation/unit/unit.h"

#include <string.h>

enum { MAX_COUNT = 1 << 24 };

static const struct assay_choice from_formats[] = { { "f32", ASSAY_F32, NULL },
                                                    { NULL, 0, NULL } };
static const struct assay_choice to_formats[] = {
    { "e4m3", ASSAY_E4M3, "cvt.rn.satfinite.e4m3x2.f32" },
    { "e5m2", ASSAY_E5M2, "cvt.rn.satfinite.e5m2x2.f32" },
    { "bf16", ASSAY_BF16, "cvt.rn.bf16.f32" },
    { "f16", ASSAY_F16, "cvt.rn.f16.f32" },
    { NULL, 0, NULL },
};

static const struct assay_parameter parameters[] = {
    { .name = "from",
      .meaning = "format of x",
      .choices = from_formats,
      .default_value = ASSAY_F32 },
    { .name = "to",
      .meaning = "format of y",
      .choices = to_formats,
      .is_required = true },
    { .name = "count",
      .meaning = "elements of x and y",
      .minimum = 1,
      .maximum = MAX_COUNT,
      .is_required = true },
    { .name = NULL },
};

static const struct assay_convert_numerics hopper_cvt = {
    .stage = { assay_convert_encode },
};
static const struct assay_named_numerics numerics_table[] = {
    { "hopper-cvt", "cvt.rn on sm_90, to FP8 with satfinite", &hopper_cvt },
    { NULL, NULL, NULL },
};

static const struct assay_choice overflows[] = {
    { "measured", ASSAY_CONVERT_AS_MEASURED, "FP8 saturates, bf16 and f16 do not" },
    { "saturates", ASSAY_CONVERT_SATURATES, "to the largest finite code" },
    { "special", ASSAY_CONVERT_SPECIAL, "to infinity; e4m3, which has none, to NaN" },
    { NULL, 0, NULL },
};
static const struct assay_choice roundings[] = {
    { "nearest-even", ASSAY_CONVERT_NEAREST_EVEN, "cvt.rn" },
    { "toward-zero", ASSAY_CONVERT_TOWARD_ZERO, "cvt.rz" },
    { NULL, 0, NULL },
};

#define AT(field) offsetof(struct assay_convert_numerics, field)
static const struct assay_knob knobs[] = {
    { "overflow", "what is too large becomes", AT(overflow), overflows, 0, 0 },
    { "rounding", "which code is taken", AT(rounding), roundings, 0, 0 },
    { NULL, NULL, 0, NULL, 0, 0 },
};

static enum assay_status bind(const struct assay_case *the_case, void *bound,
                              struct assay_message *message)
{
    struct assay_unary_problem *const problem = bound;
    *problem = (struct assay_unary_problem){
        .count = assay_case_value(the_case, "count"),
        .to = (enum assay_format)assay_case_value(the_case, "to"),
    };
    if (!assay_convert_has_data(the_case->data))
        return assay_fail(message, ASSAY_REFUSED,
                          "data=%s is about sums, but convert forms none; use another "
                          "kind, such as normal",
                          assay_data_kinds[the_case->data].name);
    return ASSAY_RAN;
}

static const struct assay_named_numerics *default_numerics(const void *bound)
{
    (void)bound;
    return &numerics_table[0];
}

static enum assay_status check_numerics(const void *bound, const void *numerics,
                                        struct assay_message *message)
{
    (void)bound, (void)numerics, (void)message;
    return ASSAY_RAN;
}

static enum assay_status model(const void *bound, const void *numerics,
                               const struct assay_tensors *tensors, int64_t part)
{
    struct assay_region box;
    assay_unary_region(bound, part, ASSAY_UNARY_Y, &box);
    assay_convert_model(numerics, tensors, box.start[0], box.count[0]);
    return ASSAY_RAN;
}

static enum assay_status oracle(const void *bound, const void *numerics,
                                const struct assay_tensors *tensors, int64_t part,
                                const struct assay_expected *expected)
{
    const struct assay_unary_problem *const problem = bound;
    const struct assay_convert_numerics *const given = numerics;
    const struct assay_expected *const y = &expected[ASSAY_UNARY_Y];
    const struct assay_conversion conversion = {
        .to = problem->to,
        .saturates = assay_convert_saturates(given, problem->to),
        .truncates = given->rounding == ASSAY_CONVERT_TOWARD_ZERO,
    };
    struct assay_region box;
    assay_unary_region(bound, part, ASSAY_UNARY_Y, &box);
    for (int64_t i = 0; i < box.count[0]; i++) {
        const uint32_t bits =
            assay_tensor_bits(&tensors->item[ASSAY_UNARY_X], box.start[0] + i);
        float x;
        memcpy(&x, &bits, sizeof(x));
        y->value[i] = assay_exact_conversion(&conversion, x);
        y->bound[i] = 0;
    }
    return ASSAY_RAN;
}

static bool is_measured(const void *numerics)
{
    const struct assay_convert_numerics *const given = numerics;
    return given->overflow == ASSAY_CONVERT_AS_MEASURED &&
           given->rounding == ASSAY_CONVERT_NEAREST_EVEN;
}

const struct assay_operation assay_convert = {
    .name = "convert",
    .summary = "y = x in a narrower format",
    .parameters = parameters,
    .numerics = numerics_table,
    .knobs = knobs,
    .features = assay_convert_features,
    .problem_bytes = sizeof(struct assay_unary_problem),
    .numerics_bytes = sizeof(struct assay_convert_numerics),
    .bind = bind,
    .default_numerics = default_numerics,
    .check_numerics = check_numerics,
    .shape = assay_unary_shape,
    .fill = assay_convert_fill,
    .parts = assay_unary_parts,
    .region = assay_unary_region,
    .model = model,
    .oracle = oracle,
    .place = assay_unary_place,
    .cost = assay_unary_cost,
    .is_measured = is_measured,
    .is_constant_by_design = assay_unary_is_constant_by_design,
};
