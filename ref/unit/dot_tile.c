/* SPDX-License-Identifier: MIT */
/* Walks a tile through its steps with the kernels of the instruction set in use, and
 * repeats with assay_dot_add the outputs that the kernels do not claim. */
#include "ref/unit/dot_tile.h"

#include "ref/unit/dot_tile_kernels.h"

#include <assert.h>
#include <string.h>

enum { SIDE = ASSAY_DOT_TILE_SIDE, STEP_BYTES = ASSAY_DOT_TILE_STEP_BYTES };

/* --- instruction sets ------------------------------------------------------------- */

static const struct assay_dot_tile_kernels *const kernels[] = {
#ifdef __x86_64__
    &assay_dot_tile_avx512,
    &assay_dot_tile_avx2,
#endif
    &assay_dot_tile_portable,
};
enum { KERNELS = sizeof(kernels) / sizeof(kernels[0]) };

static const char *const instruction_sets[] = { "avx512", "avx2", "portable", NULL };

/* Lives as long as the process; NULL until somebody chooses. */
static const struct assay_dot_tile_kernels *chosen;

static const struct assay_dot_tile_kernels *kernels_in_use(void)
{
    if (chosen) return chosen;
    int i = 0;
    while (!kernels[i]->is_supported())
        i++;
    return kernels[i];
}

const char *const *assay_dot_tile_instruction_sets(void)
{
    return instruction_sets;
}

const char *assay_dot_tile_instruction_set(void)
{
    return kernels_in_use()->instruction_set;
}

bool assay_dot_tile_choose(const char *instruction_set)
{
    if (!instruction_set) {
        chosen = NULL;
        return true;
    }
    for (int i = 0; i < KERNELS; i++) {
        if (strcmp(kernels[i]->instruction_set, instruction_set) != 0) continue;
        if (!kernels[i]->is_supported()) return false;
        chosen = kernels[i];
        return true;
    }
    return false;
}

/* --- what is served --------------------------------------------------------------- */

static const struct assay_dot_tile_format formats[] = {
    { ASSAY_E4M3, 8, 3, 7, 0x7F },
    { ASSAY_E5M2, 8, 2, 15, 0x7C },
    { ASSAY_BF16, 16, 7, 127, 0x7F80 },
    { ASSAY_F16, 16, 10, 15, 0x7C00 },
};

/* The profiles measured on H200, by their constants: a row's name may be a copy's. */
static const struct {
    int code_bits, terms, align_bits, result_bits;
} units[] = { { 8, 32, 13, 13 }, { 16, 16, 25, 23 } };

static const struct assay_dot_tile_format *format_of(enum assay_format format)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (formats[i].format == format) return &formats[i];
    return NULL;
}

static bool accepts(const struct assay_dot_add *profile, enum assay_format format)
{
    for (int i = 0; i < 3; i++)
        if (profile->operands[i] == format) return true;
    return false;
}

bool assay_dot_tile_serves(const struct assay_dot_add *profile,
                           enum assay_format format_a, enum assay_format format_b)
{
    const struct assay_dot_tile_format *const a = format_of(format_a);
    const struct assay_dot_tile_format *const b = format_of(format_b);
    if (!a || !b || !accepts(profile, format_a) || !accepts(profile, format_b))
        return false;
    if (profile->groups != 1 || profile->group_order != ASSAY_GROUPS_CONSECUTIVE ||
        profile->adds_accumulator_last || profile->converts_to_f16)
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (units[i].code_bits == a->bits && units[i].code_bits == b->bits &&
            units[i].terms == profile->terms &&
            units[i].align_bits == profile->align_bits &&
            units[i].result_bits == profile->result_bits)
            return true;
    return false;
}

/* --- steps ------------------------------------------------------------------------ */

/* Shows codes [k, k + step) of the side to the kernels, where they lie if possible. */
static void show_step(struct assay_dot_tile_side *side, const void *codes,
                      const int64_t *stride, int64_t k, int64_t k_end)
{
    const int64_t code_bytes = side->format->bits / 8;
    const int64_t row_bytes = stride[0] * code_bytes, k_bytes = stride[1] * code_bytes;
    const unsigned char *from = (const unsigned char *)codes + k * k_bytes;
    const int64_t left = k_end - k, terms = STEP_BYTES / code_bytes;
    const bool is_row = stride[1] == 1 && left >= terms;
    if (is_row && side->rows == SIDE) {
        side->codes = from;
        side->row_bytes = row_bytes;
        return;
    }
    side->codes = side->staged;
    side->row_bytes = STEP_BYTES;
    for (int row = 0; row < side->rows; row++, from += row_bytes) {
        unsigned char *const to = side->staged + row * STEP_BYTES;
        if (is_row) {
            memcpy(to, from, STEP_BYTES);
            continue;
        }
        memset(to, 0, STEP_BYTES);
        for (int64_t i = 0; i < terms && i < left; i++)
            memcpy(to + i * code_bytes, from + i * k_bytes, (size_t)code_bytes);
    }
}

static void load_side(struct assay_dot_tile_side *side, enum assay_format format,
                      int rows)
{
    side->format = format_of(format);
    side->rows = rows;
    side->specials = 0;
    memset(side->staged, 0, sizeof(side->staged));
}

static void load_tile(struct assay_dot_tile_work *work, const struct assay_dot_tile *tile)
{
    load_side(&work->a, tile->format_a, tile->rows);
    load_side(&work->b, tile->format_b, tile->columns);
    work->align_bits = tile->profile->align_bits;
    work->result_bits = tile->profile->result_bits;
    if (tile->rows < SIDE || tile->columns < SIDE)
        memset(work->accumulator, 0, sizeof(work->accumulator));
    for (int row = 0; row < tile->rows; row++)
        memcpy(work->accumulator + row * SIDE,
               tile->accumulator + row * tile->accumulator_stride,
               (size_t)tile->columns * sizeof(uint32_t));
}

/* --- outputs that the kernels do not claim ---------------------------------------- */

/* Accumulators that a kernel claims are zero or have an f32 exponent field in a range.
 * FP8: a product's exponent is at least -28, field 99, and what a kernel takes for the
 * exponent of a zero product is at most 79. A sum that is not zero is at least 2^-13 of
 * the largest term, so that no chain leaves the range downward; upward none is long
 * enough. For the others: all that is finite. */
struct range {
    uint32_t low, span; /* of the bits without the sign, times two */
};
/* What assay_dot_add writes for a NaN. */
static const uint32_t nan_bits = 0x7FFFFFFF;

static const struct range finite = { 0, 0xFEFFFFFF };
static const struct range fp8_range = { 80u << 24, (121u << 24) - 1 };

static uint64_t columns_beyond(const uint32_t *row, int columns, struct range range)
{
    uint64_t set = 0;
    for (int column = 0; column < columns; column++) {
        const uint32_t magnitude = row[column] << 1;
        if (magnitude && magnitude - range.low > range.span) set |= UINT64_C(1) << column;
    }
    return set;
}

/* Fills in the set of unclaimed columns of each row; true if there are any. @suspects are
 * the rows whose accumulators, before or after, are worth a look. */
static bool find_unclaimed(const struct assay_dot_tile_work *work,
                           const struct assay_dot_tile *tile, uint64_t suspects,
                           uint64_t *outputs)
{
    const struct range before = work->a.format->bits == 8 ? fp8_range : finite;
    const uint64_t all = UINT64_MAX >> (SIDE - tile->columns);
    uint64_t any = 0;
    for (int row = 0; row < tile->rows; row++) {
        outputs[row] = work->a.specials >> row & 1 ? all : work->b.specials & all;
        if (suspects >> row & 1)
            outputs[row] |=
                columns_beyond(tile->accumulator + row * tile->accumulator_stride,
                               tile->columns, before) |
                columns_beyond(work->accumulator + row * SIDE, tile->columns, finite);
        any |= outputs[row];
    }
    return any != 0;
}

static uint32_t code_at(const struct assay_dot_tile_side *side, int row, int k)
{
    const unsigned char *const codes = side->codes + row * side->row_bytes;
    return side->format->bits == 8 ? codes[k]
                                   : codes[2 * k] | (uint32_t)codes[2 * k + 1] << 8;
}

/* Of the rows in the set. */
static void decode_side(const struct assay_dot_add *profile,
                        const struct assay_dot_tile_side *side, uint64_t rows,
                        struct assay_operand *operands)
{
    const int terms = profile->terms;
    for (; rows; rows &= rows - 1) {
        const int row = __builtin_ctzll(rows);
        for (int k = 0; k < terms; k++)
            operands[row * terms + k] = assay_operand_decode(
                profile, side->format->format, code_at(side, row, k));
    }
}

/* Rows of the step with a NaN, among those that are special. */
static uint64_t rows_with_nan(const struct assay_dot_tile_side *side, int terms)
{
    const bool has_infinity = side->format->format != ASSAY_E4M3;
    const uint32_t magnitude = (1u << (side->format->bits - 1)) - 1;
    const uint32_t first_nan = side->format->first_special + has_infinity;
    uint64_t found = 0;
    for (uint64_t left = side->specials; left; left &= left - 1) {
        const int row = __builtin_ctzll(left);
        for (int k = 0; k < terms; k++)
            if ((code_at(side, row, k) & magnitude) >= first_nan)
                found |= UINT64_C(1) << row;
    }
    return found;
}

/* A NaN in an operand makes the chain NaN, whatever else there is: no need to repeat it.
 * Takes these outputs out of the sets; true if others are left. */
static bool settle_nans(struct assay_dot_tile_work *work,
                        const struct assay_dot_tile *tile, uint64_t *outputs)
{
    const int terms = tile->profile->terms;
    uint64_t nan_rows = 0, nan_columns = 0, any = 0;
    for (int64_t k = 0; k < tile->k; k += terms) {
        show_step(&work->a, tile->a, tile->a_stride, k, tile->k);
        show_step(&work->b, tile->b, tile->b_stride, k, tile->k);
        nan_rows |= rows_with_nan(&work->a, terms);
        nan_columns |= rows_with_nan(&work->b, terms);
    }
    for (int row = 0; row < tile->rows; row++) {
        uint32_t *const sum = tile->accumulator + row * tile->accumulator_stride;
        const uint64_t known =
            nan_rows >> row & 1 ? outputs[row] : outputs[row] & nan_columns;
        for (uint64_t left = known; left; left &= left - 1)
            sum[__builtin_ctzll(left)] = nan_bits;
        outputs[row] &= ~known;
        any |= outputs[row];
    }
    return any != 0;
}

/* From the accumulators that the tile came with. */
static void repeat_outputs(struct assay_dot_tile_work *work,
                           const struct assay_dot_tile *tile, const uint64_t *outputs)
{
    const int terms = tile->profile->terms;
    struct assay_operand a[SIDE * STEP_BYTES], b[SIDE * STEP_BYTES];
    uint64_t rows = 0, columns = 0;
    for (int row = 0; row < tile->rows; row++) {
        rows |= (uint64_t)(outputs[row] != 0) << row;
        columns |= outputs[row];
    }
    for (int64_t k = 0; k < tile->k; k += terms) {
        show_step(&work->a, tile->a, tile->a_stride, k, tile->k);
        show_step(&work->b, tile->b, tile->b_stride, k, tile->k);
        decode_side(tile->profile, &work->a, rows, a);
        decode_side(tile->profile, &work->b, columns, b);
        for (int row = 0; row < tile->rows; row++)
            for (uint64_t left = outputs[row]; left; left &= left - 1) {
                const int column = __builtin_ctzll(left);
                uint32_t *const sum =
                    tile->accumulator + row * tile->accumulator_stride + column;
                *sum = assay_dot_add(tile->profile, *sum, a + row * terms,
                                     b + column * terms);
            }
    }
}

static void store_outputs(const struct assay_dot_tile_work *work,
                          const struct assay_dot_tile *tile, const uint64_t *unclaimed)
{
    for (int row = 0; row < tile->rows; row++) {
        uint32_t *const to = tile->accumulator + row * tile->accumulator_stride;
        const uint32_t *const from = work->accumulator + row * SIDE;
        if (unclaimed[row] == 0)
            memcpy(to, from, (size_t)tile->columns * sizeof(to[0]));
        else
            for (int column = 0; column < tile->columns; column++)
                if (!(unclaimed[row] >> column & 1)) to[column] = from[column];
    }
}

void assay_dot_tile(const struct assay_dot_tile *tile)
{
    assert(assay_dot_tile_serves(tile->profile, tile->format_a, tile->format_b));
    assert(tile->rows >= 1 && tile->rows <= ASSAY_DOT_TILE_MAX_ROWS);
    assert(tile->columns >= 1 && tile->columns <= ASSAY_DOT_TILE_MAX_COLUMNS);
    const struct assay_dot_tile_kernels *const in_use = kernels_in_use();
    struct assay_dot_tile_work work;
    uint64_t unclaimed[SIDE] = { 0 };

    load_tile(&work, tile);
    const bool is_fp8 = work.a.format->bits == 8;
    const struct range range = is_fp8 ? fp8_range : finite;
    uint64_t suspects = in_use->rows_beyond(&work, range.low, range.span);
    for (int64_t k = 0; k < tile->k; k += tile->profile->terms) {
        show_step(&work.a, tile->a, tile->a_stride, k, tile->k);
        show_step(&work.b, tile->b, tile->b_stride, k, tile->k);
        if (is_fp8)
            in_use->add_fp8_step(&work);
        else
            in_use->add_wide_step(&work);
    }
    if (!is_fp8) suspects |= in_use->rows_beyond(&work, finite.low, finite.span);
    const bool is_repeated = (suspects | work.a.specials | work.b.specials) != 0 &&
                             find_unclaimed(&work, tile, suspects, unclaimed);
    store_outputs(&work, tile, unclaimed);
    if (is_repeated && settle_nans(&work, tile, unclaimed))
        repeat_outputs(&work, tile, unclaimed);
}
