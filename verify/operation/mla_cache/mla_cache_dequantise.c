/* SPDX-License-Identifier: MIT */
/* Descriptor of mla_cache_dequantise, its numerics and its knob. */
#include "ref/format/minifloat.h"
#include "ref/kernel/mla_attention.h"
#include "verify/operation/mla_cache/mla_cache.h"
#include "verify/operation/mla_cache/mla_cache_properties.h"

#include <math.h>
#include <stdio.h>

static const struct assay_mla_dequantise_numerics kernel = { ASSAY_MLA_SCALE_TO_BF16 };
static const struct assay_mla_dequantise_numerics reference = { ASSAY_MLA_F32_PRODUCT };

static const struct assay_named_numerics numerics_table[] = {
    { "flashmla-dequantise", "FlashMLA's decode kernel: bf16(code * bf16(scale))",
      &kernel },
    { "flashmla-dequantise-f32", "its tests/quant.py: bf16(rn(code * scale))",
      &reference },
    { NULL, NULL, NULL },
};
static const struct assay_choice forms[] = {
    { "scale-to-bf16", ASSAY_MLA_SCALE_TO_BF16, "bf16(code * bf16(scale))" },
    { "f32-product", ASSAY_MLA_F32_PRODUCT, "bf16(rn(code * scale))" },
    { NULL, 0, NULL },
};
static const struct assay_knob knobs[] = {
    { "dequantisation", "what is rounded before the product",
      offsetof(struct assay_mla_dequantise_numerics, dequantisation), forms, 0, 0 },
    { NULL, NULL, 0, NULL, 0, 0 },
};

static enum assay_status bind(const struct assay_case *the_case, void *bound,
                              struct assay_message *message)
{
    const struct assay_mla_cache_problem *const problem = bound;
    const enum assay_status status = assay_mla_cache_bind(the_case, bound, message);
    if (status != ASSAY_RAN) return status;
    if (problem->kv == ASSAY_MLA_V41_FP4 && the_case->data == ASSAY_DATA_TIES)
        return assay_fail(
            message, ASSAY_REFUSED,
            "data=ties means products half way between two bf16 values, but "
            "those of kv=v41_fp4 are exact; use another kind or layout");
    return ASSAY_RAN;
}

static const struct assay_named_numerics *default_numerics(const void *problem)
{
    (void)problem;
    return &numerics_table[0];
}

static enum assay_status check_numerics(const void *problem, const void *numerics,
                                        struct assay_message *message)
{
    (void)problem, (void)numerics, (void)message;
    return ASSAY_RAN;
}

static void shape(const void *problem, struct assay_tensors *tensors)
{
    tensors->count = 2;
    tensors->item[ASSAY_MLA_CACHE_INPUT] = assay_mla_cache_tensor(problem);
    tensors->item[ASSAY_MLA_CACHE_OUTPUT] = assay_mla_keys_tensor(problem, "key");
    tensors->item[ASSAY_MLA_CACHE_OUTPUT].is_output = true;
}

static enum assay_status check_inputs(const void *bound,
                                      const struct assay_tensors *tensors,
                                      struct assay_message *message)
{
    const struct assay_mla_cache_problem *const problem = bound;
    const struct assay_mla_token_layout *const layout =
        &assay_mla_token_layouts[problem->kv];
    const struct assay_tensor *const k_cache = &tensors->item[ASSAY_MLA_CACHE_INPUT];
    for (int64_t i = 0; i < problem->tokens; i++) {
        const uint8_t *const page =
            (const uint8_t *)k_cache->data + i / problem->page_size * k_cache->stride[0];
        struct assay_mla_token token;
        assay_mla_token_unpack(layout, problem->page_size, i % problem->page_size, page,
                               &token);
        for (int j = 0; j < layout->scales; j++)
            if (isnan(assay_minifloat_decode(assay_minifloat(layout->scale),
                                             token.scale[j])))
                return assay_fail(message, ASSAY_REFUSED,
                                  "k_cache has NaN for scale %d of token %lld; scales "
                                  "must be numbers, or unsafe=1 lets it through",
                                  j, (long long)i);
    }
    return ASSAY_RAN;
}

static void region(const void *bound, int64_t part, int output,
                   struct assay_region *region)
{
    (void)output;
    const struct assay_mla_cache_problem *const problem = bound;
    *region = (struct assay_region){
        .start = { part * problem->page_size, 0 },
        .count = { assay_mla_cache_tokens(problem, part), assay_mla_d_qk(problem->kv) },
    };
}

static enum assay_status model(const void *problem, const void *numerics,
                               const struct assay_tensors *tensors, int64_t part)
{
    const struct assay_mla_dequantise_numerics *const given = numerics;
    assay_mla_cache_dequantise_model(problem, given->dequantisation, tensors, part);
    return ASSAY_RAN;
}

static void place(const void *bound, int output, int64_t element,
                  struct assay_place *where)
{
    (void)output;
    const struct assay_mla_cache_problem *const problem = bound;
    const struct assay_mla_token_layout *const layout =
        &assay_mla_token_layouts[problem->kv];
    const int64_t token = element / layout->d_qk, column = element % layout->d_qk;
    const bool is_coded = column < layout->coded_dims;
    snprintf(where->text, sizeof(where->text), "page %lld, slot %lld, %s %lld",
             (long long)(token / problem->page_size),
             (long long)(token % problem->page_size), is_coded ? "scale" : "bf16 element",
             (long long)(is_coded ? column / layout->scale_dims
                                  : column - layout->coded_dims));
}

/* Conversions and mul.bf16x2 were. */
static bool is_measured(const void *numerics)
{
    (void)numerics;
    return true;
}

static const char *remark(const void *bound, const void *numerics)
{
    (void)numerics;
    const struct assay_mla_cache_problem *const problem = bound;
    const bool is_ours =
        problem->kv == ASSAY_MLA_V41_FP8 || problem->kv == ASSAY_MLA_V41_FP4;
    return is_ours ? "v41: no upstream sm_90 kernel reads it" : NULL;
}

const struct assay_operation assay_mla_cache_dequantise = {
    .name = "mla_cache_dequantise",
    .summary = "an FP8 or FP4 cache in pages to bf16 keys",
    .parameters = assay_mla_cache_parameters,
    .numerics = numerics_table,
    .knobs = knobs,
    .properties = assay_mla_cache_dequantise_properties,
    .features = assay_mla_cache_dequantise_features,
    .problem_bytes = sizeof(struct assay_mla_cache_problem),
    .numerics_bytes = sizeof(struct assay_mla_dequantise_numerics),
    .data_kinds = ASSAY_MLA_CACHE_KINDS,
    .bind = bind,
    .default_numerics = default_numerics,
    .check_numerics = check_numerics,
    .shape = shape,
    .fill = assay_mla_cache_fill,
    .check_inputs = check_inputs,
    .parts = assay_mla_cache_parts,
    .region = region,
    .used = assay_mla_cache_used,
    .model = model,
    .oracle = assay_mla_cache_dequantise_expect,
    .place = place,
    .cost = assay_mla_cache_cost,
    .is_measured = is_measured,
    .remark = remark,
    .is_constant_by_design = assay_mla_cache_is_constant_by_design,
    .is_exact = assay_mla_cache_is_exact,
};
