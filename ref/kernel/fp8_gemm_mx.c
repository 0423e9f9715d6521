/* SPDX-License-Identifier: MIT */
/* The chain with scaled operands. Source: DeepGEMM's sm_100 1D1D kernel gives scales to
 * the block-scaled MMA and accumulates all of K in tensor memory. */
#include "ref/kernel/fp8_gemm_mx.h"

#include "ref/layout/scale_layout.h"
#include "ref/unit/scalar.h"

#include <assert.h>

enum { TILE_M = ASSAY_FP8_GEMM_TILE_M, TILE_N = ASSAY_FP8_GEMM_TILE_N };
enum { SCALE_BIAS = 127, SCALE_NAN = 255 };

static const struct assay_operand zero = { 0, ASSAY_OPERAND_NO_ALIGNMENT,
                                           ASSAY_OPERAND_FINITE };

static struct assay_operand scaled(struct assay_operand operand, uint32_t scale)
{
    if (scale == SCALE_NAN)
        operand.special = ASSAY_OPERAND_NAN;
    else if (operand.alignment != ASSAY_OPERAND_NO_ALIGNMENT)
        operand.alignment = (int16_t)(operand.alignment + (int)scale - SCALE_BIAS);
    return operand;
}

/* Columns [k0, k0 + terms) of @rows rows, all in one K group; what lies beyond the tile's
 * K reads as zero. */
static void decode_step(const struct assay_fp8_gemm_tile *tile,
                        const struct assay_tensor *codes,
                        const struct assay_tensor *scales, int64_t row0, int64_t rows,
                        int64_t k0, struct assay_operand *operands)
{
    const struct assay_dot_add *const unit = &tile->unit;
    const int64_t rest = tile->k0 + tile->k_count - k0;
    const int64_t count = rest < unit->terms ? rest : unit->terms;
    for (int64_t row = row0; row < row0 + rows; row++, operands += unit->terms) {
        const uint8_t *const from =
            (const uint8_t *)codes->data + row * codes->stride[0] + k0 * codes->stride[1];
        const uint32_t scale = assay_scale_load(ASSAY_SCALE_PACKED_UE8M0, scales, 0, row,
                                                k0 / tile->problem->gran_k);
        for (int64_t term = 0; term < unit->terms; term++)
            operands[term] =
                term < count ? scaled(assay_operand_decode(unit, codes->format,
                                                           from[term * codes->stride[1]]),
                                      scale)
                             : zero;
    }
}

static void add_step(struct assay_fp8_gemm_tile *tile, const struct assay_operand *a,
                     const struct assay_operand *b)
{
    const int terms = tile->unit.terms;
    for (int64_t row = 0; row < tile->range.rows; row++)
        for (int64_t column = 0; column < tile->range.columns; column++) {
            uint32_t *const sum = &tile->accumulator[row * TILE_N + column];
            *sum = assay_dot_add(&tile->unit, *sum, a + row * terms, b + column * terms);
        }
}

void assay_fp8_gemm_mx_chain(struct assay_fp8_gemm_tile *tile)
{
    const struct assay_fp8_gemm_tile_range *const range = &tile->range;
    const int terms = tile->unit.terms;
    struct assay_operand a[TILE_M * ASSAY_DOT_ADD_MAX_TERMS];
    struct assay_operand b[TILE_N * ASSAY_DOT_ADD_MAX_TERMS];
    const int64_t steps = (tile->k_count + terms - 1) / terms;

    for (int i = 0; i < TILE_M * TILE_N; i++)
        tile->accumulator[i] = 0;
    for (int64_t i = 0; i < steps; i++) {
        const bool ascends = tile->numerics->k_order == ASSAY_K_ASCENDING;
        const int64_t k = tile->k0 + (ascends ? i : steps - 1 - i) * terms;
        decode_step(tile, tile->a, tile->sfa, range->m0, range->rows, k, a);
        decode_step(tile, tile->b, tile->sfb, range->n0, range->columns, k, b);
        add_step(tile, a, b);
    }
}

void assay_fp8_gemm_mx_promote(struct assay_fp8_gemm_tile *tile)
{
    for (int i = 0; i < TILE_M * TILE_N; i++)
        tile->final[i] = assay_f32_from_bits(tile->accumulator[i]);
}

void assay_fp8_gemm_mx_model(const struct assay_fp8_gemm_problem *problem,
                             const struct assay_fp8_gemm_numerics *numerics,
                             const struct assay_tensors *tensors, int64_t part)
{
    struct assay_fp8_gemm_tile tile = {
        .problem = problem,
        .numerics = numerics,
        .unit = assay_fp8_gemm_unit(numerics),
        .a = assay_tensors_find(tensors, "a"),
        .b = assay_tensors_find(tensors, "b"),
        .sfa = assay_tensors_find(tensors, "sfa"),
        .sfb = assay_tensors_find(tensors, "sfb"),
        .d = assay_tensors_find(tensors, "d"),
        .range = assay_fp8_gemm_part_range(problem, part),
        .k_count = problem->k,
    };
    assert(numerics->scale_form == ASSAY_SCALE_IN_OPERANDS && !problem->has_c);
    assert(problem->gran_m == 1 && problem->gran_n == 1);
    assert(problem->gran_k % tile.unit.terms == 0);
    numerics->stage.chain(&tile);
    numerics->stage.promote(&tile);
    numerics->stage.finish(&tile);
}
