/* SPDX-License-Identifier: MIT */
/* The named numerics of fp8_gemm_nt, its knobs, and which of them fit which recipe. */
#include "ref/kernel/fp8_gemm_mx.h"
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt.h"

#include <stddef.h>

const struct assay_fp8_gemm_numerics assay_fp8_gemm_block_stored = {
    .promote_k = 128,
    .scale_form = ASSAY_SCALE_PRODUCT_FIRST,
    .promotion = ASSAY_PROMOTION_FUSED,
    .epilogue = ASSAY_EPILOGUE_STORE,
    .stage = { assay_fp8_gemm_chain, assay_fp8_gemm_promote, assay_fp8_gemm_finish },
};
const struct assay_fp8_gemm_numerics assay_fp8_gemm_block_reduced = {
    .promote_k = 128,
    .scale_form = ASSAY_SCALE_PRODUCT_FIRST,
    .promotion = ASSAY_PROMOTION_FUSED,
    .epilogue = ASSAY_EPILOGUE_REDUCE,
    .stage = { assay_fp8_gemm_chain, assay_fp8_gemm_promote, assay_fp8_gemm_finish },
};
static const struct assay_fp8_gemm_numerics tensor_promoted = {
    .promote_k = 128,
    .scale_form = ASSAY_SCALE_AT_END,
    .promotion = ASSAY_PROMOTION_SEPARATE,
    .stage = { assay_fp8_gemm_chain, assay_fp8_gemm_promote, assay_fp8_gemm_finish },
};
static const struct assay_fp8_gemm_numerics tensor_fast = {
    .promote_k = 0,
    .scale_form = ASSAY_SCALE_AT_END,
    .promotion = ASSAY_PROMOTION_SEPARATE,
    .stage = { assay_fp8_gemm_chain, assay_fp8_gemm_promote, assay_fp8_gemm_finish },
};
static const struct assay_fp8_gemm_numerics blackwell_mx = {
    .unit = ASSAY_FP8_UNIT_BLACKWELL,
    .promote_k = 0,
    .scale_form = ASSAY_SCALE_IN_OPERANDS,
    .stage = { assay_fp8_gemm_mx_chain, assay_fp8_gemm_mx_promote,
               assay_fp8_gemm_finish },
};

const struct assay_named_numerics assay_fp8_gemm_nt_numerics[] = {
    { "deepgemm-1d2d", "DeepGEMM sm_90 1D2D: chains of 128, fused promotion, stored",
      &assay_fp8_gemm_block_stored },
    { "deepgemm-1d1d", "DeepGEMM sm_90 1D1D: the same, then reduced onto d in f32",
      &assay_fp8_gemm_block_reduced },
    { "cublaslt-promoted", "cuBLASLt, fast accumulation off: chains of 128, plain adds",
      &tensor_promoted },
    { "cublaslt-fast", "cuBLASLt, fast accumulation: one chain over all of K",
      &tensor_fast },
    { "cublaslt-block", "cuBLASLt, block scales: as deepgemm-1d2d",
      &assay_fp8_gemm_block_stored },
    { "blackwell-mx", "sm_100 block-scaled MMA as published, unmeasured: one chain",
      &blackwell_mx },
    { NULL, NULL, NULL },
};

enum { ROW_1D2D, ROW_1D1D, ROW_PROMOTED, ROW_FAST, ROW_BLOCK, ROW_MX };

const struct assay_named_numerics *assay_fp8_gemm_nt_default_numerics(const void *problem)
{
    static const int row[] = { [ASSAY_RECIPE_1D2D] = ROW_1D2D,
                               [ASSAY_RECIPE_1D1D] = ROW_1D1D,
                               [ASSAY_RECIPE_TENSOR] = ROW_PROMOTED,
                               [ASSAY_RECIPE_MX] = ROW_MX };
    const struct assay_fp8_gemm_nt_problem *const gemm = problem;
    return &assay_fp8_gemm_nt_numerics[row[gemm->recipe]];
}

static const struct assay_choice units[] = {
    { "hopper-fp8", ASSAY_FP8_UNIT_HOPPER, "wgmma on sm_90" },
    { "hopper-mma-fp8", ASSAY_FP8_UNIT_HOPPER_MMA, "mma.sync on sm_90" },
    { "ada-fp8", ASSAY_FP8_UNIT_ADA, "mma.sync on sm_89, unmeasured" },
    { "blackwell-fp8", ASSAY_FP8_UNIT_BLACKWELL, "sm_100, unmeasured" },
    { NULL, 0, NULL },
};
static const struct assay_choice promotion_intervals[] = {
    { "never", 0, "one chain over all of K" },
    { "32", 32, NULL },
    { "64", 64, NULL },
    { "128", 128, "DeepGEMM, cuBLASLt" },
    { "256", 256, NULL },
    { "512", 512, NULL },
    { "1024", 1024, NULL },
    { "2048", 2048, NULL },
    { NULL, 0, NULL },
};
static const struct assay_choice k_orders[] = {
    { "ascending", ASSAY_K_ASCENDING, NULL },
    { "descending", ASSAY_K_DESCENDING, NULL },
    { NULL, 0, NULL },
};
static const struct assay_choice scale_forms[] = {
    { "product-first", ASSAY_SCALE_PRODUCT_FIRST, "s = rn(sfa * sfb)" },
    { "a-then-b", ASSAY_SCALE_A_THEN_B, "rn(block * sfa), then times sfb" },
    { "b-then-a", ASSAY_SCALE_B_THEN_A, "rn(block * sfb), then times sfa" },
    { "at-end", ASSAY_SCALE_AT_END,
      "fma(rn(sfa * sfb), final, c or 0); per-tensor scales only" },
    { "in-operands", ASSAY_SCALE_IN_OPERANDS,
      "exponents added before alignment; recipe mx only" },
    { NULL, 0, NULL },
};
static const struct assay_choice promotions[] = {
    { "fused", ASSAY_PROMOTION_FUSED, "fma(scale, block, final)" },
    { "separate", ASSAY_PROMOTION_SEPARATE, "rn(final + rn(scale * block))" },
    { NULL, 0, NULL },
};
static const struct assay_choice epilogues[] = {
    { "store", ASSAY_EPILOGUE_STORE, "d = final" },
    { "reduce", ASSAY_EPILOGUE_REDUCE, "d = rn(d + final), onto zeros without c" },
    { NULL, 0, NULL },
};
static const struct assay_choice out_roundings[] = {
    { "nearest-even", ASSAY_OUT_NEAREST_EVEN, NULL },
    { "toward-zero", ASSAY_OUT_TOWARD_ZERO, NULL },
    { NULL, 0, NULL },
};

#define AT(field) offsetof(struct assay_fp8_gemm_numerics, field)
const struct assay_knob assay_fp8_gemm_nt_knobs[] = {
    { "unit", "profile of the dot-add", AT(unit), units, 0, 0 },
    { "align_bits", "fraction bits kept when aligning; 0: the unit's", AT(align_bits),
      NULL, 0, 40 },
    { "result_bits", "mantissa bits of the accumulator; 0: the unit's", AT(result_bits),
      NULL, 0, 23 },
    { "promote_k", "K elements a chain of dot-adds", AT(promote_k), promotion_intervals,
      0, 0 },
    { "k_order", "order of chains and steps", AT(k_order), k_orders, 0, 0 },
    { "scale_form", "where the scales are multiplied", AT(scale_form), scale_forms, 0,
      0 },
    { "promotion", "how a chain joins the f32 sum", AT(promotion), promotions, 0, 0 },
    { "epilogue", "how the sum reaches d", AT(epilogue), epilogues, 0, 0 },
    { "out_rounding", "rounding to the output format", AT(out_rounding), out_roundings, 0,
      0 },
    { NULL, NULL, 0, NULL, 0, 0 },
};

static enum assay_status refuse_scales_in_operands(struct assay_message *message)
{
    return assay_fail(message, ASSAY_REFUSED,
                      "scale_form=in-operands needs scales that are exponents; use "
                      "recipe=mx or another scale form");
}

static enum assay_status check_mx_numerics(const struct assay_fp8_gemm_numerics *given,
                                           struct assay_message *message)
{
    if (given->scale_form != ASSAY_SCALE_IN_OPERANDS)
        return assay_fail(message, ASSAY_REFUSED,
                          "recipe=mx has its scales inside the products, so it needs "
                          "scale_form=in-operands; use as=blackwell-mx");
    if (given->unit != ASSAY_FP8_UNIT_BLACKWELL)
        return assay_fail(message, ASSAY_REFUSED,
                          "recipe=mx needs a unit that takes block scales; use "
                          "unit=blackwell-fp8");
    if (given->promote_k != 0)
        return assay_fail(message, ASSAY_REFUSED,
                          "recipe=mx is one chain over all of K; use promote_k=never, or "
                          "leave promote_k out");
    if (given->promotion != blackwell_mx.promotion)
        return assay_fail(message, ASSAY_REFUSED,
                          "promotion says how chains are added, but recipe=mx has one; "
                          "leave promotion out");
    if (given->epilogue != blackwell_mx.epilogue)
        return assay_fail(message, ASSAY_REFUSED,
                          "recipe=mx is stored; use epilogue=store, or leave epilogue "
                          "out");
    return ASSAY_RAN;
}

enum assay_status assay_fp8_gemm_check_block_numerics(const void *numerics,
                                                      int64_t gran_k,
                                                      struct assay_message *message)
{
    const struct assay_fp8_gemm_numerics *const given = numerics;
    if (given->scale_form == ASSAY_SCALE_AT_END)
        return assay_fail(message, ASSAY_REFUSED,
                          "scale_form=at-end needs one scale for each whole operand; "
                          "use recipe=tensor or another scale form");
    if (given->scale_form == ASSAY_SCALE_IN_OPERANDS)
        return refuse_scales_in_operands(message);
    if (given->promote_k == 0 || given->promote_k > gran_k)
        return assay_fail(message, ASSAY_REFUSED,
                          "scales change every %d of K, so promote_k must be 32, 64 or "
                          "128 with block scales",
                          (int)gran_k);
    return ASSAY_RAN;
}

/* Knobs turn ints only: the stages are those of the named numerics. */
static bool has_stages_of_mx(const struct assay_fp8_gemm_numerics *given)
{
    return given->stage.chain == blackwell_mx.stage.chain ||
           given->stage.promote == blackwell_mx.stage.promote;
}

static enum assay_status refuse_stages(bool is_mx, struct assay_message *message)
{
    return assay_fail(message, ASSAY_REFUSED, "%s",
                      is_mx ? "recipe=mx needs the stages of blackwell-mx; use "
                              "as=blackwell-mx, with knobs behind it"
                            : "the stages of blackwell-mx are those of recipe=mx; use "
                              "recipe=mx or other numerics");
}

enum assay_status assay_fp8_gemm_nt_check_numerics(const void *problem,
                                                   const void *numerics,
                                                   struct assay_message *message)
{
    const struct assay_fp8_gemm_nt_problem *const gemm = problem;
    const struct assay_fp8_gemm_numerics *const given = numerics;
    const bool is_mx = gemm->recipe == ASSAY_RECIPE_MX;
    if (is_mx != has_stages_of_mx(given) &&
        is_mx == (given->scale_form == ASSAY_SCALE_IN_OPERANDS))
        return refuse_stages(is_mx, message);
    if (is_mx) return check_mx_numerics(given, message);
    if (gemm->recipe != ASSAY_RECIPE_TENSOR)
        return assay_fp8_gemm_check_block_numerics(given, gemm->gemm.gran_k, message);
    return given->scale_form == ASSAY_SCALE_IN_OPERANDS
               ? refuse_scales_in_operands(message)
               : ASSAY_RAN;
}

bool assay_fp8_gemm_nt_is_measured(const void *numerics)
{
    const struct assay_fp8_gemm_numerics *const given = numerics;
    return assay_fp8_unit(given->unit)->is_measured && given->align_bits == 0 &&
           given->result_bits == 0;
}

void assay_fp8_gemm_settle_unit(const void *problem, void *numerics)
{
    struct assay_fp8_gemm_numerics *const settled = numerics;
    const struct assay_dot_add *const unit = assay_fp8_unit(settled->unit);
    (void)problem;
    if (settled->align_bits == unit->align_bits) settled->align_bits = 0;
    if (settled->result_bits == unit->result_bits) settled->result_bits = 0;
}

/* A sum that is added to c or scaled at the end ends in the same operation either way. */
void assay_fp8_gemm_nt_settle(const void *problem, void *numerics)
{
    const struct assay_fp8_gemm_nt_problem *const bound = problem;
    struct assay_fp8_gemm_numerics *const settled = numerics;
    assay_fp8_gemm_settle_unit(problem, numerics);
    if (bound->gemm.has_c || settled->scale_form == ASSAY_SCALE_AT_END)
        settled->epilogue = ASSAY_EPILOGUE_STORE;
}
