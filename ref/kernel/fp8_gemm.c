/* SPDX-License-Identifier: MIT */
/* The FP8 GEMM model: chains of dot-adds, promoted to f32 with their scales, finished to
 * the output format. Order and roundings are those of the named numerics. */
#include "ref/kernel/fp8_gemm.h"

#include "ref/format/minifloat.h"
#include "ref/unit/dot_tile.h"
#include "ref/unit/scalar.h"

#include <assert.h>
#include <string.h>

enum { TILE_M = ASSAY_FP8_GEMM_TILE_M, TILE_N = ASSAY_FP8_GEMM_TILE_N };

const struct assay_dot_add *assay_fp8_unit(int unit)
{
    static const char *const names[] = {
        [ASSAY_FP8_UNIT_HOPPER] = "hopper-fp8",
        [ASSAY_FP8_UNIT_HOPPER_MMA] = "hopper-mma-fp8",
        [ASSAY_FP8_UNIT_ADA] = "ada-fp8",
        [ASSAY_FP8_UNIT_BLACKWELL] = "blackwell-fp8",
    };
    return assay_dot_add_find(names[unit]);
}

struct assay_dot_add assay_fp8_gemm_unit(const struct assay_fp8_gemm_numerics *numerics)
{
    struct assay_dot_add unit = *assay_fp8_unit(numerics->unit);
    if (numerics->align_bits) unit.align_bits = numerics->align_bits;
    if (numerics->result_bits) unit.result_bits = numerics->result_bits;
    return unit;
}

/* Decodes columns [k0, k0 + terms) of @rows rows; what lies beyond @k_end reads as zero,
 * as the tensor map's fill does. */
static void decode_step(const struct assay_dot_add *unit,
                        const struct assay_tensor *tensor, int64_t row0, int64_t rows,
                        int64_t k0, int64_t k_end, struct assay_operand *operands)
{
    const uint8_t *const codes = tensor->data;
    const struct assay_operand zero = assay_operand_decode(unit, tensor->format, 0);
    for (int64_t row = 0; row < rows; row++) {
        const uint8_t *const from = codes + (row0 + row) * tensor->stride[0];
        struct assay_operand *const to = operands + row * unit->terms;
        for (int term = 0; term < unit->terms; term++)
            to[term] = k0 + term < k_end
                           ? assay_operand_decode(unit, tensor->format,
                                                  from[(k0 + term) * tensor->stride[1]])
                           : zero;
    }
}

/* Codes of the tile's first row at k0. */
static const uint8_t *first_code(const struct assay_tensor *tensor, int64_t row,
                                 int64_t k)
{
    return (const uint8_t *)tensor->data + row * tensor->stride[0] +
           k * tensor->stride[1];
}

static void fast_chain(struct assay_fp8_gemm_tile *tile)
{
    const struct assay_tensor *const a = tile->a, *const b = tile->b;
    const struct assay_dot_tile job = {
        .profile = &tile->unit,
        .format_a = a->format,
        .format_b = b->format,
        .rows = (int)tile->range.rows,
        .columns = (int)tile->range.columns,
        .k = tile->k_count,
        .a = first_code(a, tile->range.m0, tile->k0),
        .b = first_code(b, tile->range.n0, tile->k0),
        .a_stride = { a->stride[0], a->stride[1] },
        .b_stride = { b->stride[0], b->stride[1] },
        .accumulator = tile->accumulator,
        .accumulator_stride = TILE_N,
    };
    assay_dot_tile(&job);
}

void assay_fp8_gemm_chain(struct assay_fp8_gemm_tile *tile)
{
    const struct assay_dot_add *const unit = &tile->unit;
    const struct assay_fp8_gemm_tile_range *const range = &tile->range;
    struct assay_operand a[TILE_M * ASSAY_DOT_ADD_MAX_TERMS];
    struct assay_operand b[TILE_N * ASSAY_DOT_ADD_MAX_TERMS];
    const int64_t steps = (tile->k_count + unit->terms - 1) / unit->terms;

    for (int i = 0; i < TILE_M * TILE_N; i++)
        tile->accumulator[i] = 0;
    if (tile->numerics->k_order == ASSAY_K_ASCENDING &&
        assay_dot_tile_serves(unit, tile->a->format, tile->b->format)) {
        fast_chain(tile);
        return;
    }
    for (int64_t i = 0; i < steps; i++) {
        const bool ascends = tile->numerics->k_order == ASSAY_K_ASCENDING;
        const int64_t k = tile->k0 + (ascends ? i : steps - 1 - i) * unit->terms;
        const int64_t k_end = tile->k0 + tile->k_count;
        decode_step(unit, tile->a, range->m0, range->rows, k, k_end, a);
        decode_step(unit, tile->b, range->n0, range->columns, k, k_end, b);
        for (int64_t row = 0; row < range->rows; row++)
            for (int64_t column = 0; column < range->columns; column++) {
                uint32_t *const sum = &tile->accumulator[row * TILE_N + column];
                *sum = assay_dot_add(unit, *sum, a + row * unit->terms,
                                     b + column * unit->terms);
            }
    }
}

static float scale_at(const struct assay_tensor *scale, int64_t row, int64_t block)
{
    const float *const values = scale->data;
    return values[row * scale->stride[0] + block * scale->stride[1]];
}

/* One row: what each chain is multiplied with, and the chain as it enters the product. */
static void scale_row(int scale_form, float sfa, const float *sfb, int64_t columns,
                      float *block, float *scale)
{
    for (int64_t i = 0; i < columns; i++)
        switch (scale_form) {
        case ASSAY_SCALE_PRODUCT_FIRST: scale[i] = assay_f32_multiply(sfa, sfb[i]); break;
        case ASSAY_SCALE_A_THEN_B:
            block[i] = assay_f32_multiply(block[i], sfa);
            scale[i] = sfb[i];
            break;
        case ASSAY_SCALE_B_THEN_A:
            block[i] = assay_f32_multiply(block[i], sfb[i]);
            scale[i] = sfa;
            break;
        default: assert(scale_form == ASSAY_SCALE_AT_END); scale[i] = 1.0f;
        }
}

static void promote_row(int promotion, const float *scale, const float *block,
                        int64_t columns, float *final)
{
    if (promotion == ASSAY_PROMOTION_FUSED)
        for (int64_t i = 0; i < columns; i++)
            final[i] = assay_f32_fma(scale[i], block[i], final[i]);
    else
        for (int64_t i = 0; i < columns; i++)
            final[i] = assay_f32_add(final[i], assay_f32_multiply(scale[i], block[i]));
}

void assay_fp8_gemm_promote(struct assay_fp8_gemm_tile *tile)
{
    const struct assay_fp8_gemm_problem *const problem = tile->problem;
    const int64_t k_block = tile->k0 / problem->gran_k, columns = tile->range.columns;
    float sfb[TILE_N], block[TILE_N], scale[TILE_N];
    for (int64_t column = 0; column < columns; column++)
        sfb[column] =
            scale_at(tile->sfb, (tile->range.n0 + column) / problem->gran_n, k_block);
    for (int64_t row = 0; row < tile->range.rows; row++) {
        const int64_t sfa_row = (tile->range.m0 + row) / problem->gran_m;
        memcpy(block, &tile->accumulator[row * TILE_N], (size_t)columns * sizeof(float));
        scale_row(tile->numerics->scale_form, scale_at(tile->sfa, sfa_row, k_block), sfb,
                  columns, block, scale);
        promote_row(tile->numerics->promotion, scale, block, columns,
                    &tile->final[row * TILE_N]);
    }
}

static uint32_t rounded(const struct assay_fp8_gemm_numerics *numerics,
                        enum assay_format out, float value)
{
    const float canonical = assay_f32_canonical(value);
    if (out == ASSAY_F32) return assay_f32_bits(canonical);
    const bool is_nan = canonical != canonical;
    if (numerics->out_rounding == ASSAY_OUT_TOWARD_ZERO && !is_nan)
        return assay_f32_bits(canonical) >> 16;
    return assay_minifloat_encode_f32(assay_minifloat(out), canonical,
                                      ASSAY_OVERFLOW_SPECIAL);
}

/* What is added to c: with scales at the end the sum is scaled in the same operation. */
static float finished(const struct assay_fp8_gemm_tile *tile, int64_t element,
                      float final)
{
    const bool has_addend = tile->c || tile->numerics->epilogue == ASSAY_EPILOGUE_REDUCE;
    const float addend =
        tile->c ? assay_f32_from_bits(assay_tensor_bits(tile->c, element)) : 0.0f;
    if (tile->numerics->scale_form == ASSAY_SCALE_AT_END) {
        const float scale =
            assay_f32_multiply(scale_at(tile->sfa, 0, 0), scale_at(tile->sfb, 0, 0));
        return assay_f32_fma(scale, final, addend);
    }
    return has_addend ? assay_f32_add(addend, final) : final;
}

void assay_fp8_gemm_finish(struct assay_fp8_gemm_tile *tile)
{
    for (int64_t row = 0; row < tile->range.rows; row++)
        for (int64_t column = 0; column < tile->range.columns; column++) {
            const int64_t element =
                (tile->range.m0 + row) * tile->problem->n + tile->range.n0 + column;
            const float value =
                finished(tile, element, tile->final[row * TILE_N + column]);
            assay_tensor_set_bits(tile->d, element,
                                  rounded(tile->numerics, tile->d->format, value));
        }
}

static void copy_c(const struct assay_fp8_gemm_tile *tile)
{
    const struct assay_fp8_gemm_tile_range *const range = &tile->range;
    for (int64_t row = range->m0; row < range->m0 + range->rows; row++)
        for (int64_t column = range->n0; column < range->n0 + range->columns; column++) {
            const int64_t element = row * tile->problem->n + column;
            assay_tensor_set_bits(tile->d, element, assay_tensor_bits(tile->c, element));
        }
}

void assay_fp8_gemm_model(const struct assay_fp8_gemm_problem *problem,
                          const struct assay_fp8_gemm_numerics *numerics,
                          const struct assay_tensors *tensors, int64_t part)
{
    const int64_t chain_k = numerics->promote_k ? numerics->promote_k : problem->k;
    assert(problem->gran_k >= problem->k || problem->gran_k % chain_k == 0);
    assert(problem->gran_k >= problem->k || numerics->scale_form != ASSAY_SCALE_AT_END);

    struct assay_fp8_gemm_tile tile = {
        .problem = problem,
        .numerics = numerics,
        .unit = assay_fp8_gemm_unit(numerics),
        .a = assay_tensors_find(tensors, "a"),
        .b = assay_tensors_find(tensors, "b"),
        .sfa = assay_tensors_find(tensors, "sfa"),
        .sfb = assay_tensors_find(tensors, "sfb"),
        .c = problem->has_c ? assay_tensors_find(tensors, "c") : NULL,
        .d = assay_tensors_find(tensors, "d"),
        .range = assay_fp8_gemm_part_range(problem, part),
    };
    if (problem->k == 0 && tile.c && numerics->scale_form != ASSAY_SCALE_AT_END) {
        copy_c(&tile);
        return;
    }
    const int64_t chains = problem->k ? (problem->k + chain_k - 1) / chain_k : 0;
    for (int64_t i = 0; i < chains; i++) {
        const bool ascends = numerics->k_order == ASSAY_K_ASCENDING;
        tile.k0 = (ascends ? i : chains - 1 - i) * chain_k;
        tile.k_count = problem->k - tile.k0 < chain_k ? problem->k - tile.k0 : chain_k;
        numerics->stage.chain(&tile);
        numerics->stage.promote(&tile);
    }
    numerics->stage.finish(&tile);
}
