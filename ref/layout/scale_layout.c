/* SPDX-License-Identifier: MIT */
/* Scale layouts by the strides of their tensors. Source of the forms: DeepGEMM's
 * transpose and pack kernels (smxx_layout). */
#include "ref/layout/scale_layout.h"

#include "ref/format/minifloat.h"
#include "ref/unit/scalar.h"

#include <assert.h>
#include <string.h>

enum { WORD = ASSAY_SCALES_IN_WORD, F32_MANTISSA_BITS = 23, EXPONENT_MASK = 0xFF };

static int64_t aligned(int64_t extent)
{
    const int64_t unit = ASSAY_SCALE_ALIGNMENT;
    return (extent + unit - 1) / unit * unit;
}

struct assay_tensor
assay_scale_layout_tensor(const struct assay_scale_layout_problem *problem,
                          enum assay_scale_layout layout, const char *name)
{
    const int64_t rows = assay_scale_rows(problem, layout);
    const int64_t k_blocks = assay_scale_k_blocks(problem);
    const bool is_k_major = layout == ASSAY_SCALE_K_MAJOR;
    const bool is_packed = layout == ASSAY_SCALE_PACKED_UE8M0;
    const int64_t columns = is_packed ? (k_blocks + WORD - 1) / WORD : k_blocks;
    const int64_t outer = is_k_major ? rows : columns;
    const int64_t inner = is_k_major ? columns : rows;
    const int64_t stride = is_k_major ? columns : aligned(rows);
    struct assay_tensor tensor = {
        .name = name,
        .format = is_packed ? ASSAY_I32 : ASSAY_F32,
        .rank = 2,
        .shape = { outer, inner },
        .stride = { stride, 1 },
    };
    if (!problem->groups) return tensor;
    tensor.rank = 3;
    memcpy(tensor.shape, (int64_t[]){ problem->groups, outer, inner },
           3 * sizeof(int64_t));
    memcpy(tensor.stride, (int64_t[]){ outer * stride, stride, 1 }, 3 * sizeof(int64_t));
    return tensor;
}

/* In bytes; a packed scale is one byte of its word. */
static int64_t offset(enum assay_scale_layout layout, const struct assay_tensor *tensor,
                      int64_t group, int64_t row, int64_t k_block)
{
    const int64_t *const stride = tensor->stride + tensor->rank - 2;
    const int64_t base = tensor->rank == 3 ? group * tensor->stride[0] : 0;
    assert(tensor->rank == 3 || group == 0);
    switch (layout) {
    case ASSAY_SCALE_K_MAJOR: return 4 * (base + row * stride[0] + k_block * stride[1]);
    case ASSAY_SCALE_MN_MAJOR: return 4 * (base + k_block * stride[0] + row * stride[1]);
    case ASSAY_SCALE_PACKED_UE8M0: break;
    }
    return 4 * (base + k_block / WORD * stride[0] + row * stride[1]) + k_block % WORD;
}

static size_t bytes_of(enum assay_scale_layout layout)
{
    return layout == ASSAY_SCALE_PACKED_UE8M0 ? 1 : sizeof(float);
}

uint32_t assay_scale_load(enum assay_scale_layout layout,
                          const struct assay_tensor *tensor, int64_t group, int64_t row,
                          int64_t k_block)
{
    const char *const from = tensor->data;
    uint32_t scale = 0;
    memcpy(&scale, from + offset(layout, tensor, group, row, k_block), bytes_of(layout));
    return scale;
}

void assay_scale_store(enum assay_scale_layout layout, const struct assay_tensor *tensor,
                       int64_t group, int64_t row, int64_t k_block, uint32_t scale)
{
    char *const to = tensor->data;
    memcpy(to + offset(layout, tensor, group, row, k_block), &scale, bytes_of(layout));
}

bool assay_scale_is_packable(uint32_t f32_bits)
{
    return (f32_bits & ~((uint32_t)EXPONENT_MASK << F32_MANTISSA_BITS)) == 0;
}

uint32_t assay_scale_unpacked(uint32_t code)
{
    const float value = (float)assay_minifloat_decode(assay_minifloat(ASSAY_UE8M0), code);
    return assay_f32_bits(assay_f32_canonical(value));
}

/* Where the byte of block @k_block is when the words' bytes are reversed. */
static int64_t ordered(const struct assay_scale_layout_numerics *numerics,
                       int64_t k_block)
{
    const bool is_low_first = numerics->byte_order == ASSAY_SCALE_LOW_FIRST;
    return is_low_first ? k_block : k_block / WORD * WORD + WORD - 1 - k_block % WORD;
}

static uint32_t source_scale(const struct assay_scale_layout_problem *problem,
                             const struct assay_scale_layout_numerics *numerics,
                             const struct assay_tensor *sf, int64_t group, int64_t row,
                             int64_t k_block)
{
    const bool is_packed = problem->from == ASSAY_SCALE_PACKED_UE8M0;
    const int64_t place = is_packed ? ordered(numerics, k_block) : k_block;
    const uint32_t scale = assay_scale_load(problem->from, sf, group, row, place);
    return is_packed ? assay_scale_unpacked(scale) : scale;
}

/* Row @row of the part's words, missing blocks included. */
static void pack_row(const struct assay_scale_layout_problem *problem,
                     const struct assay_scale_layout_numerics *numerics,
                     const struct assay_tensor *sf, const struct assay_tensor *out,
                     const struct assay_scale_layout_range *range, int64_t row)
{
    const int64_t end = range->k0 + range->k_blocks;
    const int64_t whole_words = (end + WORD - 1) / WORD * WORD;
    for (int64_t k_block = range->k0; k_block < whole_words; k_block++) {
        const uint32_t scale = k_block < end
                                   ? source_scale(problem, numerics, sf, range->group,
                                                  row / problem->gran_mn, k_block)
                                   : 0;
        assay_scale_store(ASSAY_SCALE_PACKED_UE8M0, out, range->group, row,
                          ordered(numerics, k_block),
                          scale >> F32_MANTISSA_BITS & EXPONENT_MASK);
    }
}

void assay_scale_layout_model(const struct assay_scale_layout_problem *problem,
                              const struct assay_scale_layout_numerics *numerics,
                              const struct assay_tensors *tensors, int64_t part)
{
    const struct assay_tensor *const sf = assay_tensors_find(tensors, "sf");
    const struct assay_tensor *const out = assay_tensors_find(tensors, "out");
    const struct assay_scale_layout_range range =
        assay_scale_layout_part_range(problem, part);
    assert(problem->from != problem->to);
    assert(problem->from != ASSAY_SCALE_PACKED_UE8M0 || problem->gran_mn == 1);
    for (int64_t row = range.row0; row < range.row0 + range.rows; row++) {
        if (problem->to == ASSAY_SCALE_PACKED_UE8M0) {
            pack_row(problem, numerics, sf, out, &range, row);
            continue;
        }
        for (int64_t k = range.k0; k < range.k0 + range.k_blocks; k++)
            assay_scale_store(problem->to, out, range.group, row, k,
                              source_scale(problem, numerics, sf, range.group, row, k));
    }
}
