/* SPDX-License-Identifier: MIT */
/* Descriptor of sfu, the functions of the special-function unit, and its bound.
 *
 * The unit's ex2, lg2, rcp and rsqrt (.approx.ftz.f32) are interpolations, so their bound
 * is an accuracy: |y - f(x)| <= absolute + relative * |f(x)|, the largest errors of the
 * model over all arguments, rounded up to quarters or eighths of 2^-24. The model equals
 * an H200 on all 2^32 of them (corpus/units/README.md). Largest, in 2^-24: ex2 2.447 of
 * the value; rcp 1.650, over all significands, on which alone it depends; rsqrt 2.092,
 * over all significands and both parities of the exponent; lg2, beyond the 2 of a
 * truncation to 24 bits, 2.566 absolutely.
 *
 * With flushing y is zero where |f(x)| is below 2^-126, either of both within the
 * relative accuracy of there; f(x) >= 2^128 is infinity (no argument gives less and
 * rounds there).
 *
 * The oracle's own error, 2^-52 of the value, is far below 1/64 of any bound. */
#include "ref/oracle/unit.h"
#include "ref/unit/special_function.h"
#include "verify/operation/unit/unit.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MAX_COUNT = 1 << 24 };

static const struct assay_choice functions[] = {
    { "ex2", ASSAY_SFU_EX2, "2^x" },
    { "lg2", ASSAY_SFU_LG2, "log2 x" },
    { "rcp", ASSAY_SFU_RCP, "1 / x" },
    { "rsqrt", ASSAY_SFU_RSQRT, "1 / sqrt x" },
    { NULL, 0, NULL },
};

static const struct {
    double (*exact)(float x);
    double relative, absolute;
} accuracies[ASSAY_SFU_FUNCTIONS] = {
    [ASSAY_SFU_EX2] = { assay_exact_ex2, 2.5 * 0x1p-24, 0 },
    [ASSAY_SFU_LG2] = { assay_exact_lg2, 2 * 0x1p-24, 2.625 * 0x1p-24 },
    [ASSAY_SFU_RCP] = { assay_exact_rcp, 1.75 * 0x1p-24, 0 },
    [ASSAY_SFU_RSQRT] = { assay_exact_rsqrt, 2.25 * 0x1p-24, 0 },
};

static const struct assay_parameter parameters[] = {
    { .name = "function",
      .meaning = "what is computed, as .approx.ftz.f32",
      .choices = functions,
      .is_required = true },
    { .name = "count",
      .meaning = "elements of x and y",
      .minimum = 1,
      .maximum = MAX_COUNT,
      .is_required = true },
    { .name = NULL },
};

static const struct assay_sfu_numerics hopper_sfu = {
    .stage = { assay_ex2_approx_ftz, assay_lg2_approx_ftz, assay_rcp_approx_ftz,
               assay_rsqrt_approx_ftz },
};
static const struct assay_named_numerics numerics_table[] = {
    { "hopper-sfu", "quadratic interpolation in integers, as on sm_90", &hopper_sfu },
    { NULL, NULL, NULL },
};
static const struct assay_choice roundings[] = {
    { "interpolated", ASSAY_SFU_INTERPOLATED, "as the unit" },
    { "nearest-even", ASSAY_SFU_ROUNDED, "through FP64, flushed as by the unit" },
    { NULL, 0, NULL },
};
static const struct assay_knob knobs[] = {
    { "rounding", "how good the functions are",
      offsetof(struct assay_sfu_numerics, rounding), roundings, 0, 0 },
    { NULL, NULL, 0, NULL, 0, 0 },
};

static enum assay_status bind(const struct assay_case *the_case, void *bound,
                              struct assay_message *message)
{
    struct assay_unary_problem *const problem = bound;
    *problem = (struct assay_unary_problem){
        .count = assay_case_value(the_case, "count"),
        .to = ASSAY_F32,
        .function = (enum assay_sfu_function)assay_case_value(the_case, "function"),
    };
    if (!assay_sfu_has_data(the_case->data))
        return assay_fail(message, ASSAY_REFUSED,
                          "data=%s is about products or ties, and sfu has neither; use "
                          "another kind, such as normal",
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
    const struct assay_unary_problem *const problem = bound;
    struct assay_region box;
    assay_unary_region(bound, part, ASSAY_UNARY_Y, &box);
    assay_sfu_model(numerics, problem->function, tensors, box.start[0], box.count[0]);
    return ASSAY_RAN;
}

static void expect(enum assay_sfu_function function, float x, double *value,
                   double *bound)
{
    const double exact = accuracies[function].exact(x), magnitude = fabs(exact);
    const double relative = accuracies[function].relative, smallest = (double)FLT_MIN;
    *value = exact;
    *bound = 0;
    if (isnan(exact) || isinf(exact)) return;
    if (magnitude >= 0x1p128) {
        *value = copysign((double)INFINITY, exact);
    } else if (accuracies[function].absolute == 0 &&
               magnitude < smallest * (1 - relative)) {
        *value = copysign(0, exact);
    } else {
        *bound = accuracies[function].absolute + relative * magnitude;
        if (accuracies[function].absolute == 0 && magnitude < smallest * (1 + relative))
            *bound = fmax(*bound, magnitude);
    }
}

static enum assay_status oracle(const void *bound, const void *numerics,
                                const struct assay_tensors *tensors, int64_t part,
                                const struct assay_expected *expected)
{
    (void)numerics;
    const struct assay_unary_problem *const problem = bound;
    const struct assay_expected *const y = &expected[ASSAY_UNARY_Y];
    struct assay_region box;
    assay_unary_region(bound, part, ASSAY_UNARY_Y, &box);
    for (int64_t i = 0; i < box.count[0]; i++) {
        const uint32_t bits =
            assay_tensor_bits(&tensors->item[ASSAY_UNARY_X], box.start[0] + i);
        float x;
        memcpy(&x, &bits, sizeof(x));
        expect(problem->function, x, &y->value[i], &y->bound[i]);
    }
    return ASSAY_RAN;
}

static bool is_measured(const void *numerics)
{
    return ((const struct assay_sfu_numerics *)numerics)->rounding ==
           ASSAY_SFU_INTERPOLATED;
}

const struct assay_operation assay_sfu = {
    .name = "sfu",
    .summary = "y = 2^x, log2 x, 1 / x or 1 / sqrt x, as the special-function unit",
    .parameters = parameters,
    .numerics = numerics_table,
    .knobs = knobs,
    .features = assay_sfu_features,
    .problem_bytes = sizeof(struct assay_unary_problem),
    .numerics_bytes = sizeof(struct assay_sfu_numerics),
    .bind = bind,
    .default_numerics = default_numerics,
    .check_numerics = check_numerics,
    .shape = assay_unary_shape,
    .fill = assay_sfu_fill,
    .parts = assay_unary_parts,
    .region = assay_unary_region,
    .model = model,
    .oracle = oracle,
    .place = assay_unary_place,
    .cost = assay_unary_cost,
    .is_measured = is_measured,
    .is_constant_by_design = assay_unary_is_constant_by_design,
};
