/* SPDX-License-Identifier: MIT */
/* The quantiser model, block by block: every operation is one f32 rounding. */
#include "ref/kernel/quantise.h"

#include "ref/format/minifloat.h"
#include "ref/unit/scalar.h"

#include <assert.h>
#include <math.h>

enum { F32_MANTISSA_BITS = 23, SMALLEST_CODE = 1, LARGEST_CODE = 254 };
enum { MAGNITUDE = 0x7F, LARGEST_FINITE = 0x7E, MINUS_ZERO = 0x80 }; /* of e4m3 */

static const float smallest_amax = 1e-4f; /* DeepGEMM's clamp */
static const float largest_e4m3 = 448.0f;

static float x_at(const struct assay_quantise_block *block, int64_t row, int64_t column)
{
    const struct assay_tensor *const x = block->x;
    const int64_t element =
        (block->m0 + row) * x->stride[0] + (block->k0 + column) * x->stride[1];
    if (x->format == ASSAY_F32) return ((const float *)x->data)[element];
    return assay_f32_from_bits((uint32_t)((const uint16_t *)x->data)[element] << 16);
}

void assay_quantise_amax(struct assay_quantise_block *block)
{
    bool has_nan = false;
    float amax = 0.0f;
    for (int64_t row = 0; row < block->rows; row++)
        for (int64_t column = 0; column < block->columns; column++) {
            const float x = x_at(block, row, column);
            has_nan |= isnan(x);
            amax = assay_f32_maximum(amax, fabsf(x));
        }
    amax = assay_f32_maximum(amax, smallest_amax);
    const bool is_nan = has_nan && block->numerics->nan == ASSAY_AMAX_PROPAGATES_NAN;
    block->amax = is_nan ? assay_f32_canonical(NAN) : amax;
}

uint32_t assay_deepgemm_ceil(float value)
{
    const uint32_t magnitude = assay_f32_bits(value) & 0x7FFFFFFF;
    const uint32_t mantissa = magnitude & ((UINT32_C(1) << F32_MANTISSA_BITS) - 1);
    const uint32_t code = (magnitude >> F32_MANTISSA_BITS) + (mantissa != 0);
    if (code < SMALLEST_CODE) return SMALLEST_CODE;
    return code > LARGEST_CODE ? LARGEST_CODE : code;
}

static float power_of_two(const struct assay_quantise_numerics *numerics, float scale)
{
    const uint32_t code = numerics->ceil == ASSAY_CEIL_DEEPGEMM
                              ? assay_deepgemm_ceil(scale)
                              : assay_ue8m0_encode(scale);
    const double value = assay_minifloat_decode(assay_minifloat(ASSAY_UE8M0), code);
    return assay_f32_canonical((float)value);
}

void assay_quantise_scale(struct assay_quantise_block *block)
{
    const struct assay_quantise_numerics *const numerics = block->numerics;
    const float inverse = 1.0f / largest_e4m3;
    const float raw = numerics->reciprocal
                          ? assay_f32_multiply(block->amax, inverse)
                          : assay_f32_canonical(block->amax / largest_e4m3);
    block->scale =
        block->problem->has_power_of_two_scale ? power_of_two(numerics, raw) : raw;
    block->divisor =
        numerics->order == ASSAY_QUANTISE_BY_STORED_SCALE ? block->scale : raw;
}

static float magnitude_of(uint32_t code)
{
    return (float)assay_minifloat_decode(assay_minifloat(ASSAY_E4M3), code & MAGNITUDE);
}

/* Whether the value lies half way between a code and the next larger one in magnitude. */
static bool is_half_way_above(uint32_t code, float value)
{
    return (code & MAGNITUDE) < LARGEST_FINITE &&
           2 * fabsf(value) == magnitude_of(code) + magnitude_of(code + 1);
}

static uint32_t encode(const struct assay_quantise_numerics *numerics, float value)
{
    const enum assay_overflow overflow = numerics->overflow == ASSAY_E4M3_SATURATES
                                             ? ASSAY_OVERFLOW_SATURATES
                                             : ASSAY_OVERFLOW_SPECIAL;
    uint32_t code =
        assay_minifloat_encode_f32(assay_minifloat(ASSAY_E4M3), value, overflow);
    if (numerics->ties == ASSAY_E4M3_TIES_AWAY && is_half_way_above(code, value)) code++;
    if (numerics->zero == ASSAY_E4M3_ZERO_UNSIGNED && code == MINUS_ZERO) code = 0;
    return code;
}

void assay_quantise_payload(struct assay_quantise_block *block)
{
    const struct assay_quantise_numerics *const numerics = block->numerics;
    const float inverse = 1.0f / block->divisor;
    for (int64_t row = 0; row < block->rows; row++)
        for (int64_t column = 0; column < block->columns; column++) {
            const float x = x_at(block, row, column);
            const float value = numerics->payload == ASSAY_PAYLOAD_TIMES_INVERSE
                                    ? x * inverse
                                    : x / block->divisor;
            const int64_t element = (block->m0 + row) * block->q->stride[0] +
                                    (block->k0 + column) * block->q->stride[1];
            ((uint8_t *)block->q->data)[element] = (uint8_t)encode(numerics, value);
        }
}

static void run_block(const struct assay_quantise_problem *problem,
                      struct assay_quantise_block *block, int64_t i, int64_t j)
{
    const int64_t rows = problem->m - i * problem->gran_m;
    const int64_t columns = problem->k - j * problem->gran_k;
    block->m0 = i * problem->gran_m;
    block->k0 = j * problem->gran_k;
    block->rows = rows < problem->gran_m ? rows : problem->gran_m;
    block->columns = columns < problem->gran_k ? columns : problem->gran_k;
    block->numerics->stage.amax(block);
    block->numerics->stage.scale(block);
    block->numerics->stage.payload(block);
    const int64_t element = i * block->sf->stride[0] + j * block->sf->stride[1];
    ((float *)block->sf->data)[element] = block->scale;
}

void assay_quantise_model(const struct assay_quantise_problem *problem,
                          const struct assay_quantise_numerics *numerics,
                          const struct assay_tensors *tensors, int64_t part)
{
    const struct assay_quantise_range range = assay_quantise_part_range(problem, part);
    const struct assay_quantise_range blocks = assay_quantise_blocks(problem, &range);
    struct assay_quantise_block block = {
        .problem = problem,
        .numerics = numerics,
        .x = assay_tensors_find(tensors, "x"),
        .q = assay_tensors_find(tensors, "q"),
        .sf = assay_tensors_find(tensors, "sf"),
    };
    assert(ASSAY_QUANTISE_TILE_M % problem->gran_m == 0);
    assert(ASSAY_QUANTISE_TILE_K % problem->gran_k == 0);
    for (int64_t i = blocks.m0; i < blocks.m0 + blocks.rows; i++)
        for (int64_t j = blocks.k0; j < blocks.k0 + blocks.columns; j++)
            run_block(problem, &block, i, j);
}
