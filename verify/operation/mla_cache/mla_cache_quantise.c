/* SPDX-License-Identifier: MIT */
/* Descriptor of mla_cache_quantise, its numerics and its knobs. */
#include "verify/operation/mla_cache/mla_cache.h"
#include "verify/operation/mla_cache/mla_cache_properties.h"

#include <stdio.h>
#include <string.h>

#define STAGES                                                                           \
  {                                                                                      \
    assay_mla_cache_amax, assay_mla_cache_scale, assay_mla_cache_payload                 \
  }

static const struct assay_mla_cache_numerics divided = { .stage = STAGES };
static const struct assay_mla_cache_numerics multiplied = { .reciprocal = 1,
                                                            .stage = STAGES };

static const struct assay_named_numerics numerics_table[] = {
    { "flashmla-quant", "FlashMLA's tests/quant.py: rn(amax / 448), rn(x / scale)",
      &divided },
    { "flashmla-quant-cuda",
      "the same with rn(amax * rn(1 / 448)), as PyTorch divides by a constant in CUDA",
      &multiplied },
    { NULL, NULL, NULL },
};

static const struct assay_choice payloads[] = {
    { "divided", ASSAY_MLA_PAYLOAD_DIVIDED, "rn(x / scale)" },
    { "times-inverse", ASSAY_MLA_PAYLOAD_TIMES_INVERSE, "rn(x * rn(1 / scale))" },
    { NULL, 0, NULL },
};
static const struct assay_choice floors[] = {
    { "scale", ASSAY_MLA_FLOOR_SCALE, "max(amax / 448, 1e-4)" },
    { "amax", ASSAY_MLA_FLOOR_AMAX, "max(amax, 1e-4) / 448, as DeepGEMM's quantisers" },
    { NULL, 0, NULL },
};
static const struct assay_choice nans[] = {
    { "propagates", ASSAY_MLA_AMAX_PROPAGATES_NAN, "torch.max" },
    { "ignored", ASSAY_MLA_AMAX_IGNORES_NAN, "fmaxf" },
    { NULL, 0, NULL },
};

#define AT(field) offsetof(struct assay_mla_cache_numerics, field)
static const struct assay_knob knobs[] = {
    { "reciprocal", "1: amax is multiplied by rn(1 / 448), of v41_fp4 rn(1 / 6)",
      AT(reciprocal), NULL, 0, 1 },
    { "payload", "how the payload is divided", AT(payload), payloads, 0, 0 },
    { "floor", "what is at least 1e-4 (not v41_fp4)", AT(floor), floors, 0, 0 },
    { "nan", "what a NaN in a tile does to amax", AT(nan), nans, 0, 0 },
    { NULL, NULL, 0, NULL, 0, 0 },
};

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
    tensors->item[ASSAY_MLA_CACHE_INPUT] = assay_mla_keys_tensor(problem, "x");
    tensors->item[ASSAY_MLA_CACHE_OUTPUT] = assay_mla_cache_tensor(problem);
    tensors->item[ASSAY_MLA_CACHE_OUTPUT].is_output = true;
}

static void region(const void *problem, int64_t part, int output,
                   struct assay_region *region)
{
    (void)output;
    *region = (struct assay_region){
        .start = { part, 0 },
        .count = { 1, assay_mla_cache_tensor(problem).shape[1] },
    };
}

/* Bytes of the codes, scales and bf16 elements of a token. */
static void token_bytes(const struct assay_mla_token_layout *layout, int64_t bytes[3])
{
    bytes[0] = layout->coded_dims / layout->codes_per_byte;
    bytes[1] = layout->scales * (int64_t)assay_format_bytes(layout->scale);
    bytes[2] = layout->rope_dims * 2;
}

static void defined(const void *bound, const struct assay_tensors *tensors, int64_t part,
                    int output, uint8_t *definedness)
{
    const struct assay_mla_cache_problem *const problem = bound;
    const struct assay_mla_token_layout *const layout =
        &assay_mla_token_layouts[problem->kv];
    int64_t bytes[3];
    token_bytes(layout, bytes);
    memset(definedness, ASSAY_UNTOUCHED, (size_t)tensors->item[output].shape[1]);
    for (int64_t i = 0; i < assay_mla_cache_tokens(problem, part); i++) {
        const struct assay_mla_token_place at =
            assay_mla_place(layout, problem->page_size, i);
        memset(definedness + at.codes, ASSAY_DEFINED, (size_t)bytes[0]);
        memset(definedness + at.scales, ASSAY_DEFINED, (size_t)bytes[1]);
        if (layout->rope_dims)
            memset(definedness + at.rope, ASSAY_DEFINED, (size_t)bytes[2]);
    }
}

static enum assay_status model(const void *problem, const void *numerics,
                               const struct assay_tensors *tensors, int64_t part)
{
    assay_mla_cache_quantise_model(problem, numerics, tensors, part);
    return ASSAY_RAN;
}

/* The slot whose record, or whose record of scales, has the byte. */
static int64_t slot_of(const struct assay_mla_token_layout *layout, int64_t page_size,
                       int64_t byte)
{
    const int64_t records = page_size * layout->record_bytes;
    return byte < records ? byte / layout->record_bytes
                          : (byte - records) / layout->scale_record_bytes;
}

static void place(const void *bound, int output, int64_t element,
                  struct assay_place *where)
{
    (void)output;
    static const char *const names[3] = { "code", "scale", "bf16 element" };
    const struct assay_mla_cache_problem *const problem = bound;
    const struct assay_mla_token_layout *const layout =
        &assay_mla_token_layouts[problem->kv];
    const int64_t page_bytes = assay_mla_cache_tensor(problem).shape[1];
    const int64_t page = element / page_bytes, byte = element % page_bytes;
    const int64_t slot = slot_of(layout, problem->page_size, byte);
    const struct assay_mla_token_place at =
        assay_mla_place(layout, problem->page_size, slot);
    const int64_t first[3] = { at.codes, at.scales, at.rope };
    const int64_t size[3] = { 1, (int64_t)assay_format_bytes(layout->scale), 2 };
    int64_t bytes[3];
    token_bytes(layout, bytes);
    for (int i = 0; i < 3; i++)
        if (byte >= first[i] && byte < first[i] + bytes[i]) {
            const int64_t index = (byte - first[i]) / size[i];
            snprintf(where->text, sizeof(where->text), "page %lld, slot %lld, %s %lld",
                     (long long)page, (long long)slot, names[i],
                     (long long)(i ? index : index * layout->codes_per_byte));
            return;
        }
    snprintf(where->text, sizeof(where->text), "page %lld, slot %lld, padding",
             (long long)page, (long long)slot);
}

/* Arithmetic of f32 and the conversion to e4m3 were. */
static bool is_measured(const void *numerics)
{
    (void)numerics;
    return true;
}

const struct assay_operation assay_mla_cache_quantise = {
    .name = "mla_cache_quantise",
    .summary = "bf16 keys to an FP8 or FP4 cache in pages",
    .parameters = assay_mla_cache_parameters,
    .numerics = numerics_table,
    .knobs = knobs,
    .properties = assay_mla_cache_quantise_properties,
    .features = assay_mla_cache_quantise_features,
    .problem_bytes = sizeof(struct assay_mla_cache_problem),
    .numerics_bytes = sizeof(struct assay_mla_cache_numerics),
    .data_kinds = ASSAY_MLA_CACHE_KINDS,
    .bind = assay_mla_cache_bind,
    .default_numerics = default_numerics,
    .check_numerics = check_numerics,
    .shape = shape,
    .fill = assay_mla_cache_fill_x,
    .parts = assay_mla_cache_parts,
    .region = region,
    .defined = defined,
    .model = model,
    .oracle = assay_mla_cache_quantise_expect,
    .place = place,
    .cost = assay_mla_cache_cost,
    .is_measured = is_measured,
    .is_constant_by_design = assay_mla_cache_is_constant_by_design,
    .is_exact = assay_mla_cache_is_exact,
};
