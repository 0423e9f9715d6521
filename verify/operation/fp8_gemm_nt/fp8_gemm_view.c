/* SPDX-License-Identifier: MIT */
/* What relations do to the operands of one GEMM. */
#include "verify/operation/fp8_gemm_nt/fp8_gemm_view.h"

#include "ref/format/minifloat.h"
#include "ref/layout/scale_layout.h"

#include <math.h>

enum { F32_FRACTION = 23 };

uint32_t assay_gemm_doubled(uint32_t f32_bits)
{
    const uint32_t exponent = f32_bits >> F32_FRACTION & 0xFF;
    if (exponent >= 254) return f32_bits;
    if (exponent) return f32_bits + (UINT32_C(1) << F32_FRACTION);
    return (f32_bits & 0x80000000) | f32_bits << 1;
}

uint32_t assay_gemm_negated(enum assay_format format, uint32_t bits)
{
    const struct assay_minifloat *const codec = assay_minifloat(format);
    const uint32_t sign = UINT32_C(1) << (codec->exponent_bits + codec->mantissa_bits);
    const double value = assay_minifloat_decode(codec, bits & (sign | (sign - 1)));
    return isnan(value) ? bits : bits ^ sign;
}

/* --- scales ------------------------------------------------------------------------ */

enum side { SIDE_A, SIDE_B };

int64_t assay_gemm_blocks(const struct assay_gemm_view *view)
{
    return view->has_packed_scales ? (view->k + view->gran_k - 1) / view->gran_k
                                   : view->sfa.shape[1];
}

static int64_t scale_element(const struct assay_gemm_view *view, enum side side,
                             int64_t row, int64_t block)
{
    const int64_t granularity = side == SIDE_A ? view->gran_m : view->gran_n;
    const struct assay_tensor *const scales = side == SIDE_A ? &view->sfa : &view->sfb;
    return row / granularity * scales->shape[1] + block;
}

/* f32 bits, or a UE8M0 code. */
static uint32_t scale_at(const struct assay_gemm_view *view, enum side side, int64_t row,
                         int64_t block)
{
    const struct assay_tensor *const scales = side == SIDE_A ? &view->sfa : &view->sfb;
    return view->has_packed_scales
               ? assay_scale_load(ASSAY_SCALE_PACKED_UE8M0, scales, 0, row, block)
               : assay_tensor_bits(scales, scale_element(view, side, row, block));
}

static void set_scale(const struct assay_gemm_view *view, enum side side, int64_t row,
                      int64_t block, uint32_t scale)
{
    const struct assay_tensor *const scales = side == SIDE_A ? &view->sfa : &view->sfb;
    if (view->has_packed_scales)
        assay_scale_store(ASSAY_SCALE_PACKED_UE8M0, scales, 0, row, block, scale);
    else
        assay_tensor_set_bits(scales, scale_element(view, side, row, block), scale);
}

uint32_t assay_gemm_scale(const struct assay_gemm_view *view, bool is_b, int64_t row,
                          int64_t block)
{
    const uint32_t scale = scale_at(view, is_b ? SIDE_B : SIDE_A, row, block);
    return view->has_packed_scales ? assay_scale_unpacked(scale) : scale;
}

/* Rows of operand codes that have scales of their own, one for each of these steps. */
static int64_t scale_step(const struct assay_gemm_view *view, enum side side)
{
    return side == SIDE_A ? view->gran_m : view->gran_n;
}

static uint32_t doubled_code(uint32_t ue8m0)
{
    return ue8m0 < 254 ? ue8m0 + 1 : ue8m0;
}

/* No power of two, so that it does not pass through divisions and maxima unseen. */
static uint32_t nearly_doubled(uint32_t f32_bits)
{
    return assay_gemm_doubled(f32_bits) ^ UINT32_C(1) << (F32_FRACTION - 2);
}

static void change_scales(const struct assay_gemm_view *view, enum side side,
                          uint32_t (*change)(uint32_t scale))
{
    const int64_t rows = side == SIDE_A ? view->rows : view->columns;
    for (int64_t row = 0; row < rows; row += scale_step(view, side))
        for (int64_t block = 0; block < assay_gemm_blocks(view); block++)
            set_scale(view, side, row, block, change(scale_at(view, side, row, block)));
}

/* --- changes ----------------------------------------------------------------------- */

void assay_gemm_double(const struct assay_gemm_view *view)
{
    change_scales(view, SIDE_A,
                  view->has_packed_scales ? doubled_code : assay_gemm_doubled);
    for (int64_t i = 0; view->has_c && i < view->rows * view->columns; i++)
        assay_tensor_set_bits(&view->c, i,
                              assay_gemm_doubled(assay_tensor_bits(&view->c, i)));
}

void assay_gemm_negate(const struct assay_gemm_view *view)
{
    for (int64_t i = 0; i < view->columns * view->k; i++)
        assay_tensor_set_bits(
            &view->b, i,
            assay_gemm_negated(view->b.format, assay_tensor_bits(&view->b, i)));
    for (int64_t i = 0; view->has_c && i < view->rows * view->columns; i++)
        assay_tensor_set_bits(
            &view->c, i, assay_gemm_negated(ASSAY_F32, assay_tensor_bits(&view->c, i)));
}

static void swap_elements(const struct assay_tensor *tensor, int64_t x, int64_t y)
{
    const uint32_t kept = assay_tensor_bits(tensor, x);
    assay_tensor_set_bits(tensor, x, assay_tensor_bits(tensor, y));
    assay_tensor_set_bits(tensor, y, kept);
}

static void swap_scales(const struct assay_gemm_view *view, enum side side, int64_t row_x,
                        int64_t block_x, int64_t row_y, int64_t block_y)
{
    const uint32_t kept = scale_at(view, side, row_x, block_x);
    set_scale(view, side, row_x, block_x, scale_at(view, side, row_y, block_y));
    set_scale(view, side, row_y, block_y, kept);
}

void assay_gemm_reverse_rows(const struct assay_gemm_view *view)
{
    for (int64_t row = 0; row < view->rows / 2; row++) {
        const int64_t other = view->rows - 1 - row;
        for (int64_t k = 0; k < view->k; k++)
            swap_elements(&view->a, row * view->k + k, other * view->k + k);
        for (int64_t block = 0; view->gran_m == 1 && block < assay_gemm_blocks(view);
             block++)
            swap_scales(view, SIDE_A, row, block, other, block);
        for (int64_t j = 0; view->has_c && j < view->columns; j++)
            swap_elements(&view->c, row * view->columns + j, other * view->columns + j);
    }
}

static void reverse_codes(const struct assay_tensor *codes, int64_t rows, int64_t k,
                          int64_t granularity)
{
    for (int64_t row = 0; row < rows; row++)
        for (int64_t k0 = 0; k0 < k; k0 += granularity) {
            const int64_t count = k - k0 < granularity ? k - k0 : granularity;
            for (int64_t i = 0; i < count / 2; i++)
                swap_elements(codes, row * k + k0 + i, row * k + k0 + count - 1 - i);
        }
}

void assay_gemm_reverse_columns(const struct assay_gemm_view *view)
{
    reverse_codes(&view->a, view->rows, view->k, view->gran_k);
    reverse_codes(&view->b, view->columns, view->k, view->gran_k);
}

int64_t assay_gemm_whole_blocks(const struct assay_gemm_view *view)
{
    return view->k / view->gran_k;
}

static void reverse_blocks(const struct assay_gemm_view *view, enum side side)
{
    const struct assay_tensor *const codes = side == SIDE_A ? &view->a : &view->b;
    const int64_t rows = side == SIDE_A ? view->rows : view->columns;
    const int64_t whole = assay_gemm_whole_blocks(view);
    for (int64_t x = 0; x < whole / 2; x++) {
        const int64_t y = whole - 1 - x;
        for (int64_t row = 0; row < rows; row++)
            for (int64_t i = 0; i < view->gran_k; i++)
                swap_elements(codes, row * view->k + x * view->gran_k + i,
                              row * view->k + y * view->gran_k + i);
        for (int64_t row = 0; row < rows; row += scale_step(view, side))
            swap_scales(view, side, row, x, row, y);
    }
}

void assay_gemm_reverse_blocks(const struct assay_gemm_view *view)
{
    reverse_blocks(view, SIDE_A);
    reverse_blocks(view, SIDE_B);
}

void assay_gemm_disturb(const struct assay_gemm_view *view)
{
    reverse_codes(&view->a, view->rows, view->k, view->k + 1);
    assay_gemm_negate(view);
    for (int side = SIDE_A; side <= SIDE_B; side++)
        change_scales(view, (enum side)side,
                      view->has_packed_scales ? doubled_code : nearly_doubled);
}

static void clear(const struct assay_tensor *tensor)
{
    for (int64_t i = 0; i < assay_tensor_elements(tensor); i++)
        assay_tensor_set_bits(tensor, i, 0);
}

static void take_side(const struct assay_gemm_view *from,
                      const struct assay_gemm_view *to, enum side side, int64_t skipped)
{
    const int64_t rows = side == SIDE_A ? to->rows : to->columns;
    const struct assay_tensor *const source = side == SIDE_A ? &from->a : &from->b;
    const struct assay_tensor *const codes = side == SIDE_A ? &to->a : &to->b;
    for (int64_t i = 0; i < rows * to->k; i++)
        assay_tensor_set_bits(codes, i, assay_tensor_bits(source, skipped * to->k + i));
    for (int64_t row = 0; row < rows; row++)
        for (int64_t block = 0; block < assay_gemm_blocks(to); block++)
            set_scale(to, side, row, block, scale_at(from, side, row + skipped, block));
}

void assay_gemm_take_rows(const struct assay_gemm_view *from,
                          const struct assay_gemm_view *to)
{
    const int64_t skipped = from->rows - to->rows;
    if (to->has_packed_scales) {
        clear(&to->sfa);
        clear(&to->sfb);
    }
    take_side(from, to, SIDE_A, skipped);
    take_side(from, to, SIDE_B, 0);
    for (int64_t i = 0; to->has_c && i < to->rows * to->columns; i++)
        assay_tensor_set_bits(&to->c, i,
                              assay_tensor_bits(&from->c, skipped * to->columns + i));
}
