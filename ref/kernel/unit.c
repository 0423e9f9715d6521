/* SPDX-License-Identifier: MIT */
/* Chains of dot-adds, and the unary units element by element. */
#include "ref/kernel/unit.h"

#include "ref/format/minifloat.h"
#include "ref/unit/scalar.h"

#include <assert.h>
#include <math.h>

enum { ROWS = ASSAY_WGMMA_ROWS, MAX_COLUMNS = ASSAY_WGMMA_MAX_COLUMNS };
enum { MAX_PROFILES = 4 };

static bool takes(const struct assay_dot_add *profile, enum assay_format format)
{
    for (int i = 0; i < 3 && profile->operands[i] != ASSAY_FORMAT_NONE; i++)
        if (profile->operands[i] == format) return true;
    return false;
}

/* NULL if the unit takes no such operands. */
static const struct assay_dot_add *find_profile(int unit, enum assay_format a,
                                                enum assay_format b)
{
    static const char *const names[][MAX_PROFILES] = {
        [ASSAY_WGMMA_HOPPER] = { "hopper-fp8", "hopper-bf16", "hopper-f16",
                                 "hopper-tf32" },
        [ASSAY_WGMMA_HOPPER_MMA] = { "hopper-mma-fp8", "hopper-bf16", "hopper-f16",
                                     "hopper-tf32" },
        [ASSAY_WGMMA_ADA] = { "ada-fp8", "ada-bf16", "ada-f16" },
        [ASSAY_WGMMA_AMPERE] = { "ampere-bf16", "ampere-f16" },
        [ASSAY_WGMMA_BLACKWELL] = { "blackwell-fp8" },
        [ASSAY_WGMMA_VOLTA] = { "volta-f16" },
    };
    for (int i = 0; i < MAX_PROFILES && names[unit][i]; i++) {
        const struct assay_dot_add *const profile = assay_dot_add_find(names[unit][i]);
        if (takes(profile, a) && takes(profile, b)) return profile;
    }
    return NULL;
}

bool assay_wgmma_unit_takes(int unit, enum assay_format a, enum assay_format b)
{
    return find_profile(unit, a, b) != NULL;
}

struct assay_dot_add assay_wgmma_profile(const struct assay_wgmma_numerics *numerics,
                                         enum assay_format a, enum assay_format b)
{
    const struct assay_dot_add *const found = find_profile(numerics->unit, a, b);
    assert(found);
    struct assay_dot_add profile = *found;
    if (numerics->align_bits) profile.align_bits = numerics->align_bits;
    if (numerics->result_bits) profile.result_bits = numerics->result_bits;
    return profile;
}

static void decode(const struct assay_dot_add *profile, const struct assay_tensor *tensor,
                   struct assay_operand *operands)
{
    const int64_t elements = assay_tensor_elements(tensor);
    for (int64_t i = 0; i < elements; i++)
        operands[i] =
            assay_operand_decode(profile, tensor->format, assay_tensor_bits(tensor, i));
}

void assay_wgmma_step(struct assay_wgmma_block *block)
{
    struct assay_operand a[ROWS * ASSAY_WGMMA_STEP_BYTES];
    struct assay_operand b[MAX_COLUMNS * ASSAY_WGMMA_STEP_BYTES];
    const int elements = (int)block->a.shape[1], terms = block->profile.terms;
    assert(elements <= ASSAY_WGMMA_STEP_BYTES && elements % terms == 0);
    decode(&block->profile, &block->a, a);
    decode(&block->profile, &block->b, b);
    uint32_t *sum = block->accumulator;
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < block->columns; column++, sum++)
            for (int k = 0; k < elements; k += terms)
                *sum = assay_dot_add(&block->profile, *sum, a + row * elements + k,
                                     b + column * elements + k);
}

void assay_wgmma_model(const struct assay_wgmma_numerics *numerics,
                       const struct assay_tensors *tensors, int64_t index)
{
    const struct assay_tensor *const all_a = assay_tensors_find(tensors, "a");
    const struct assay_tensor a = assay_tensor_slice(all_a, index);
    const struct assay_tensor b =
        assay_tensor_slice(assay_tensors_find(tensors, "b"), index);
    const struct assay_tensor c =
        assay_tensor_slice(assay_tensors_find(tensors, "c"), index);
    const struct assay_tensor d =
        assay_tensor_slice(assay_tensors_find(tensors, "d"), index);
    const int64_t outputs = assay_tensor_elements(&d);
    struct assay_wgmma_block block = {
        .numerics = numerics,
        .profile = assay_wgmma_profile(numerics, a.format, b.format),
        .columns = (int)b.shape[1],
    };
    assert(a.shape[1] == ROWS && block.columns <= MAX_COLUMNS);
    for (int64_t i = 0; i < outputs; i++)
        block.accumulator[i] = assay_tensor_bits(&c, i);
    for (int64_t step = 0; step < a.shape[0]; step++) {
        block.a = assay_tensor_slice(&a, step);
        block.b = assay_tensor_slice(&b, step);
        numerics->stage.step(&block);
    }
    for (int64_t i = 0; i < outputs; i++)
        assay_tensor_set_bits(&d, i, block.accumulator[i]);
}

static double function_of(enum assay_sfu_function function, double x)
{
    switch (function) {
    case ASSAY_SFU_EX2: return exp2(x);
    case ASSAY_SFU_LG2: return log2(x);
    case ASSAY_SFU_RCP: return 1 / x;
    default: assert(function == ASSAY_SFU_RSQRT); return 1 / sqrt(x);
    }
}

static uint32_t rounded(enum assay_sfu_function function, uint32_t bits)
{
    const float x = assay_f32_flush(assay_f32_from_bits(bits));
    const float y = (float)function_of(function, (double)x);
    return assay_f32_bits(assay_f32_flush(assay_f32_canonical(y)));
}

void assay_sfu_model(const struct assay_sfu_numerics *numerics,
                     enum assay_sfu_function function,
                     const struct assay_tensors *tensors, int64_t first, int64_t count)
{
    const struct assay_tensor *const x = assay_tensors_find(tensors, "x");
    const struct assay_tensor *const y = assay_tensors_find(tensors, "y");
    for (int64_t i = first; i < first + count; i++) {
        const uint32_t bits = assay_tensor_bits(x, i);
        assay_tensor_set_bits(y, i,
                              numerics->rounding == ASSAY_SFU_ROUNDED
                                  ? rounded(function, bits)
                                  : numerics->stage[function](bits));
    }
}

bool assay_convert_saturates(const struct assay_convert_numerics *numerics,
                             enum assay_format to)
{
    const bool is_fp8 = to == ASSAY_E4M3 || to == ASSAY_E5M2;
    return numerics->overflow == ASSAY_CONVERT_AS_MEASURED
               ? is_fp8
               : numerics->overflow == ASSAY_CONVERT_SATURATES;
}

uint32_t assay_convert_encode(const struct assay_convert_numerics *numerics,
                              enum assay_format to, uint32_t bits)
{
    const struct assay_minifloat *const format = assay_minifloat(to);
    const float value = assay_f32_from_bits(bits);
    const bool is_finite = isfinite(value);
    const bool truncates = numerics->rounding == ASSAY_CONVERT_TOWARD_ZERO && is_finite;
    const bool saturates = truncates || assay_convert_saturates(numerics, to);
    const uint32_t code = assay_minifloat_encode_f32(
        format, value, saturates ? ASSAY_OVERFLOW_SATURATES : ASSAY_OVERFLOW_SPECIAL);
    const bool is_away = fabs(assay_minifloat_decode(format, code)) > fabs((double)value);
    return truncates && is_away ? code - 1 : code;
}

void assay_convert_model(const struct assay_convert_numerics *numerics,
                         const struct assay_tensors *tensors, int64_t first,
                         int64_t count)
{
    const struct assay_tensor *const x = assay_tensors_find(tensors, "x");
    const struct assay_tensor *const y = assay_tensors_find(tensors, "y");
    for (int64_t i = first; i < first + count; i++)
        assay_tensor_set_bits(
            y, i, numerics->stage.encode(numerics, y->format, assay_tensor_bits(x, i)));
}
