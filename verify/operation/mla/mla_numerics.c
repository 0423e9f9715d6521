/* SPDX-License-Identifier: MIT */
/* The knobs of the attention operations, and which of them go together. */
#include "verify/operation/mla/mla_numerics.h"

#include <stddef.h>

static const struct assay_choice units[] = {
    { "tensor-core", ASSAY_MLA_TENSOR_CORE, "wgmma on sm_90, by the operands' format" },
    { "fma", ASSAY_MLA_FMA, "one f32 fma after the other, dimensions ascending" },
    { NULL, 0, NULL },
};
static const struct assay_choice schedules[] = {
    { "one-chain", ASSAY_MLA_ONE_CHAIN, "a block after the other, both halves alike" },
    { "seesaw", ASSAY_MLA_SEESAW,
      "pairs of blocks, of which columns 256 and up take the "
      "second first" },
    { "plain", ASSAY_MLA_PLAIN, "online softmax, one key after the other" },
    { "materialised", ASSAY_MLA_MATERIALISED, "all scores, their maximum, the rest" },
    { NULL, 0, NULL },
};
static const struct assay_choice tile_orders[] = {
    { "ascending", ASSAY_MLA_TILES_ASCENDING, NULL },
    { "from-4", ASSAY_MLA_TILES_FROM_FOURTH, "4, 5 ... and then 0 to 3" },
    { NULL, 0, NULL },
};
static const struct assay_choice masks[] = { { "finite", ASSAY_MLA_MASK_FINITE, "-1e33" },
                                             { "infinite", ASSAY_MLA_MASK_INFINITE,
                                               NULL },
                                             { NULL, 0, NULL } };
static const struct assay_choice starts[] = {
    { "finite", ASSAY_MLA_START_FINITE, "-1e30" },
    { "infinite", ASSAY_MLA_START_INFINITE,
      "counted as 0 in differences while it lasts" },
    { NULL, 0, NULL },
};
static const struct assay_choice arguments[] = {
    { "fused", ASSAY_MLA_ARGUMENT_FUSED, "ex2(fma(s, c, -M))" },
    { "separate", ASSAY_MLA_ARGUMENT_SEPARATE, "ex2(rn(rn(s * c) - M))" },
    { NULL, 0, NULL },
};
static const struct assay_choice functions[] = {
    { "hardware", ASSAY_MLA_FUNCTIONS_HARDWARE, "the special-function unit" },
    { "rounded", ASSAY_MLA_FUNCTIONS_ROUNDED, "rounded to nearest" },
    { NULL, 0, NULL },
};
static const struct assay_choice row_sums[] = {
    { "pairs", ASSAY_MLA_SUM_PAIRS, "((0 + (p0 + p1)) + (p8 + p9)) ... a lane" },
    { "one-by-one", ASSAY_MLA_SUM_ONE_BY_ONE, "(((0 + p0) + p1) + p8) ... a lane" },
    { "one-lane", ASSAY_MLA_SUM_ONE_LANE, "keys ascending, no lanes" },
    { NULL, 0, NULL },
};
static const struct assay_choice p_roundings[] = {
    { "nearest", ASSAY_MLA_P_NEAREST_EVEN, "to the operands' format, ties to even" },
    { "toward-zero", ASSAY_MLA_P_TOWARD_ZERO, "to the operands' format" },
    { "kept", ASSAY_MLA_P_KEPT, "f32; p * v by f32 fma, keys ascending" },
    { NULL, 0, NULL },
};
static const struct assay_choice right_ps[] = {
    { "rescaled", ASSAY_MLA_RIGHT_P_RESCALED, "round(p * a1)" },
    { "as-left", ASSAY_MLA_RIGHT_P_AS_LEFT, "round(p), the products rescaled after" },
    { NULL, 0, NULL },
};
static const struct assay_choice right_factors[] = {
    { "product", ASSAY_MLA_RIGHT_PRODUCT, "rn(a1 * a0)" },
    { "ex2", ASSAY_MLA_RIGHT_EXPONENTIAL, "ex2(M before the pair - M1)" },
    { NULL, 0, NULL },
};
static const struct assay_choice odd_tails[] = {
    { "skipped", ASSAY_MLA_TAIL_SKIPPED, "a missing second block takes no part" },
    { "masked", ASSAY_MLA_TAIL_MASKED, "it runs, fully masked" },
    { NULL, 0, NULL },
};
static const struct assay_choice quotients[] = {
    { "reciprocal", ASSAY_MLA_RECIPROCAL, "rn(o * rcp(L))" },
    { "division", ASSAY_MLA_DIVISION, "rn(o / L)" },
    { NULL, 0, NULL },
};
static const struct assay_choice scale_constants[] = {
    { "double", ASSAY_MLA_SCALE_DOUBLE, "float(double(scale) * log2(e))" },
    { "single", ASSAY_MLA_SCALE_SINGLE, "rn(scale * float(log2(e)))" },
    { "float-constant", ASSAY_MLA_SCALE_FLOAT_CONSTANT,
      "float(double(scale) * double(float(log2(e))))" },
    { NULL, 0, NULL },
};
static const struct assay_choice dequantisations[] = {
    { "bf16-scale", ASSAY_MLA_SCALE_TO_BF16, "bf16(code * bf16(scale))" },
    { "f32-product", ASSAY_MLA_F32_PRODUCT, "bf16(rn(code * scale))" },
    { NULL, 0, NULL },
};
static const struct assay_choice lse_forms[] = {
    { "fused", ASSAY_MLA_LSE_FUSED, "fma(lg2(L), ln 2, rn(M * ln 2))" },
    { "separate", ASSAY_MLA_LSE_SEPARATE, "rn(rn(lg2(L) + M) * ln 2)" },
    { NULL, 0, NULL },
};
static const struct assay_choice sink_products[] = {
    { "separate", ASSAY_MLA_SINK_SEPARATE, "ex2(rn(rn(sink * log2(e)) - M))" },
    { "fused", ASSAY_MLA_SINK_FUSED, "ex2(fma(sink, log2(e), -M))" },
    { NULL, 0, NULL },
};
static const struct assay_choice nan_rows[] = {
    { "as-empty", ASSAY_MLA_NAN_AS_EMPTY, "divided by 1, lse infinity" },
    { "stays", ASSAY_MLA_NAN_STAYS, NULL },
    { NULL, 0, NULL },
};
static const struct assay_choice zero_weights[] = {
    { "kept", ASSAY_MLA_ZERO_WEIGHT_KEPT, "0 * NaN is NaN" },
    { "skipped", ASSAY_MLA_ZERO_WEIGHT_SKIPPED, NULL },
    { NULL, 0, NULL },
};

#define AT(field) offsetof(struct assay_mla_numerics, field)
const struct assay_knob assay_mla_knobs[] = {
    { "unit", "what multiplies", AT(unit), units, 0, 0 },
    { "align_bits", "fraction bits kept when aligning; 0: the unit's", AT(align_bits),
      NULL, 0, 40 },
    { "result_bits", "mantissa bits of the accumulator; 0: the unit's", AT(result_bits),
      NULL, 0, 23 },
    { "schedule", "in which order blocks are attended to", AT(schedule), schedules, 0,
      0 },
    { "tile_a", "order of 64-wide tiles of q * k, first blocks", AT(tile_order[0]),
      tile_orders, 0, 0 },
    { "tile_b", "the same, second blocks of a pair", AT(tile_order[1]), tile_orders, 0,
      0 },
    { "mask", "score of a key that is not attended", AT(mask), masks, 0, 0 },
    { "start", "what the running maximum M begins with", AT(start), starts, 0, 0 },
    { "argument", "argument of the exponential", AT(argument), arguments, 0, 0 },
    { "functions", "exponentials, logarithms and reciprocals", AT(functions), functions,
      0, 0 },
    { "row_sum", "order of the sum L of a row's p", AT(row_sum), row_sums, 0, 0 },
    { "p_rounding", "rounding of p before it meets v", AT(p_rounding), p_roundings, 0,
      0 },
    { "right_p", "the first block's p for columns 256 and up", AT(right_p), right_ps, 0,
      0 },
    { "right_factor", "what rescales columns 256 and up", AT(right_factor), right_factors,
      0, 0 },
    { "odd_tail", "a pair without a second block", AT(odd_tail), odd_tails, 0, 0 },
    { "quotient", "how the row is normalised", AT(quotient), quotients, 0, 0 },
    { "scale", "c = softmax_scale * log2(e)", AT(scale_constant), scale_constants, 0, 0 },
    { "dequantise", "rounding of f32 scales of cached keys", AT(dequantisation),
      dequantisations, 0, 0 },
    { "lse", "how the lse is made", AT(lse_form), lse_forms, 0, 0 },
    { "sink", "how the sink is weighed", AT(sink_product), sink_products, 0, 0 },
    { "nan", "rows whose L is NaN", AT(nan_row), nan_rows, 0, 0 },
    { "flush", "1: subnormals become zero, as under fast-math", AT(flush), NULL, 0, 1 },
    { "combine_functions", "exponentials and logarithms of combine",
      AT(combine.functions), functions, 0, 0 },
    { "combine_flush", "1: subnormals of combine become zero", AT(combine.flush), NULL, 0,
      1 },
    { "combine_sink", "how combine weighs the sink", AT(combine.sink_product),
      sink_products, 0, 0 },
    { "combine_lse", "how combine makes the lse", AT(combine.lse_form), lse_forms, 0, 0 },
    { "zero_weight", "splits of weight 0", AT(combine.zero_weight), zero_weights, 0, 0 },
    { NULL, NULL, 0, NULL, 0, 0 },
};

#undef AT
#define AT(field) offsetof(struct assay_mla_combine_numerics, field)
const struct assay_knob assay_mla_combine_knobs[] = {
    { "functions", "exponentials and logarithms of combine", AT(functions), functions, 0,
      0 },
    { "flush", "1: subnormals of combine become zero", AT(flush), NULL, 0, 1 },
    { "sink", "how combine weighs the sink", AT(sink_product), sink_products, 0, 0 },
    { "lse", "how combine makes the lse", AT(lse_form), lse_forms, 0, 0 },
    { "zero_weight", "splits of weight 0", AT(zero_weight), zero_weights, 0, 0 },
    { NULL, NULL, 0, NULL, 0, 0 },
};

enum assay_status assay_mla_check_numerics(const void *problem, const void *numerics,
                                           struct assay_message *message)
{
    (void)problem;
    const struct assay_mla_numerics *const given = numerics;
    if (given->schedule == ASSAY_MLA_PLAIN && given->row_sum != ASSAY_MLA_SUM_ONE_LANE)
        return assay_fail(message, ASSAY_REFUSED,
                          "schedule=plain adds one key after the other, so that a row "
                          "has no lanes; use row_sum=one-lane");
    if (given->unit == ASSAY_MLA_FMA && (given->align_bits || given->result_bits))
        return assay_fail(message, ASSAY_REFUSED,
                          "align_bits and result_bits are the tensor core's; leave them "
                          "out, or use unit=tensor-core");
    return ASSAY_RAN;
}

bool assay_mla_is_measured(const void *numerics)
{
    const struct assay_mla_numerics *const given = numerics;
    return given->unit == ASSAY_MLA_TENSOR_CORE && given->align_bits == 0 &&
           given->result_bits == 0 && given->functions == ASSAY_MLA_FUNCTIONS_HARDWARE &&
           given->combine.functions == ASSAY_MLA_FUNCTIONS_HARDWARE;
}
