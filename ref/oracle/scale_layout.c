/* SPDX-License-Identifier: MIT */
/* Scales are found by formulas on flat memory, in elements of 4 bytes. */
#include "ref/oracle/scale_layout.h"

#include <math.h>
#include <string.h>

struct source {
    const unsigned char *data;
    enum assay_scale_layout layout;
    int64_t rows, k_blocks; /* of a group */
    bool is_high_first;
};

static int64_t multiple_of_4(int64_t x)
{
    return (x + 3) & ~INT64_C(3);
}

static uint32_t word_at(const struct source *source, int64_t element)
{
    const unsigned char *const byte = source->data + 4 * element;
    return (uint32_t)byte[0] | (uint32_t)byte[1] << 8 | (uint32_t)byte[2] << 16 |
           (uint32_t)byte[3] << 24;
}

/* f32 bits of a scale that was stored in four bytes. */
static uint32_t f32_bits(const struct source *source, int64_t g, int64_t row, int64_t k)
{
    const int64_t rows = source->rows, k_blocks = source->k_blocks;
    return source->layout == ASSAY_SCALE_K_MAJOR
               ? word_at(source, (g * rows + row) * k_blocks + k)
               : word_at(source, (g * k_blocks + k) * multiple_of_4(rows) + row);
}

static uint32_t code(const struct source *source, int64_t g, int64_t row, int64_t k)
{
    const int64_t words = multiple_of_4(source->k_blocks) / 4;
    const int64_t word = (g * words + k / 4) * multiple_of_4(source->rows) + row;
    const int64_t byte = source->is_high_first ? 3 - k % 4 : k % 4;
    return word_at(source, word) >> 8 * byte & 0xff;
}

static double f32_value(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double scale_value(const struct source *source, int64_t g, int64_t row, int64_t k)
{
    if (source->layout != ASSAY_SCALE_PACKED_UE8M0)
        return f32_value(f32_bits(source, g, row, k));
    const int exponent = (int)code(source, g, row, k) - 127;
    return exponent == 128 ? (double)NAN : ldexp(1, exponent);
}

/* Word of four exponent fields; blocks beyond the last count as 0. */
static double packed_word(const struct source *source, int64_t g, int64_t row,
                          int64_t word)
{
    double value = 0;
    for (int64_t i = 0; i < 4 && 4 * word + i < source->k_blocks; i++) {
        const uint32_t bits = f32_bits(source, g, row, 4 * word + i);
        const int64_t byte = source->is_high_first ? 3 - i : i;
        value += ldexp(bits >> 23 & 0xff, (int)(8 * byte));
    }
    return value;
}

void assay_scale_layout_oracle_part(const struct assay_scale_layout_problem *problem,
                                    bool is_high_first,
                                    const struct assay_tensors *tensors, int64_t part,
                                    double *value)
{
    const struct assay_scale_layout_range range =
        assay_scale_layout_part_range(problem, part);
    const struct source source = {
        .data = assay_tensors_find(tensors, "sf")->data,
        .layout = problem->from,
        .rows = assay_scale_rows(problem, problem->from),
        .k_blocks = assay_scale_k_blocks(problem),
        .is_high_first = is_high_first,
    };
    const bool is_packed = problem->to == ASSAY_SCALE_PACKED_UE8M0;
    const int64_t steps = is_packed ? (range.k_blocks + 3) / 4 : range.k_blocks;
    for (int64_t i = 0; i < range.rows; i++)
        for (int64_t j = 0; j < steps; j++) {
            const bool is_k_major = problem->to == ASSAY_SCALE_K_MAJOR;
            const int64_t at = is_k_major ? i * steps + j : j * range.rows + i;
            value[at] =
                is_packed
                    ? packed_word(&source, range.group,
                                  (range.row0 + i) / problem->gran_mn, range.k0 / 4 + j)
                    : scale_value(&source, range.group, range.row0 + i, range.k0 + j);
        }
}
