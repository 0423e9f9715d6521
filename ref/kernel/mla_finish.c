/* SPDX-License-Identifier: MIT */
/* Normalisation: output over the sum of weights and the sink, and the logarithm of that
 * sum. */
#include "ref/kernel/mla_arithmetic.h"
#include "ref/kernel/mla_tile.h"

#include <string.h>

enum { COLUMNS = ASSAY_MLA_D_V };

/* As f32: 0x3FB8AA3B and 0x3F317218. */
static const float log2_e = 1.44269504f, ln_2 = 0.693147182f;

/* Lanes of either block: neighbours first, then pairs. */
static float lanes_sum(bool flush, const float *lane)
{
    return assay_mla_add(flush, assay_mla_add(flush, lane[0], lane[1]),
                         assay_mla_add(flush, lane[2], lane[3]));
}

static float row_sum(const struct assay_mla_tile *tile, int row)
{
    const bool flush = tile->numerics->flush;
    return assay_mla_add(flush, lanes_sum(flush, tile->lane[0][row]),
                         lanes_sum(flush, tile->lane[1][row]));
}

static bool is_empty(const struct assay_mla_numerics *numerics, float sum)
{
    return sum == 0.0f || (isnan(sum) && numerics->nan_row == ASSAY_MLA_NAN_AS_EMPTY);
}

/* --- output ----------------------------------------------------------------------- */

static float with_sink(const struct assay_mla_tile *tile, int row, float sum)
{
    const struct assay_mla_numerics *const numerics = tile->numerics;
    if (!tile->query->sink || tile->is_split) return sum;
    const bool flush = numerics->flush;
    const float sink = tile->query->sink[row];
    const float shift = assay_mla_shift(tile->maximum[row]);
    const float argument =
        numerics->sink_product == ASSAY_MLA_SINK_FUSED
            ? assay_mla_fma(flush, sink, log2_e, -shift)
            : assay_mla_add(flush, assay_mla_multiply(flush, sink, log2_e), -shift);
    return assay_mla_add(flush, sum, assay_mla_ex2(numerics->functions, flush, argument));
}

static void scale_output(struct assay_mla_tile *tile, int row, float factor)
{
    uint32_t scaled[COLUMNS];
    assay_mla_scale_row(tile->numerics->flush, factor, tile->output[row], COLUMNS,
                        scaled);
    memcpy(tile->output[row], scaled, sizeof(scaled));
}

static void normalise(struct assay_mla_tile *tile, int row, float sum)
{
    const struct assay_mla_numerics *const numerics = tile->numerics;
    const bool flush = numerics->flush;
    if (is_empty(numerics, sum)) {
        const bool is_one = numerics->nan_row == ASSAY_MLA_NAN_AS_EMPTY;
        scale_output(tile, row, is_one ? 1.0f : 0.0f);
        return;
    }
    const float divisor = with_sink(tile, row, sum);
    if (numerics->quotient == ASSAY_MLA_RECIPROCAL) {
        scale_output(tile, row, assay_mla_rcp(numerics->functions, flush, divisor));
        return;
    }
    for (int column = 0; column < COLUMNS; column++)
        tile->output[row][column] =
            assay_mla_divide(flush, tile->output[row][column], divisor);
}

/* --- logarithms ------------------------------------------------------------------- */

static float log_sum(const struct assay_mla_tile *tile, int row, float sum)
{
    const struct assay_mla_numerics *const numerics = tile->numerics;
    const bool flush = numerics->flush;
    const float maximum = tile->maximum[row];
    const float logarithm = assay_mla_lg2(numerics->functions, flush, sum);
    const float base_two = assay_mla_add(flush, logarithm, maximum);
    if (tile->is_split || tile->query->is_base_two) return base_two;
    return numerics->lse_form == ASSAY_MLA_LSE_FUSED
               ? assay_mla_fma(flush, logarithm, ln_2,
                               assay_mla_multiply(flush, maximum, ln_2))
               : assay_mla_multiply(flush, base_two, ln_2);
}

static void take_logarithms(struct assay_mla_tile *tile, int row, float sum)
{
    const float maximum = tile->maximum[row];
    if (is_empty(tile->numerics, sum))
        tile->lse[row] = tile->is_split ? -INFINITY : INFINITY;
    else
        tile->lse[row] = log_sum(tile, row, sum);
    if (sum == 0.0f)
        tile->max_logits[row] = -INFINITY;
    else if (tile->query->is_base_two)
        tile->max_logits[row] = maximum;
    else
        tile->max_logits[row] = assay_mla_multiply(tile->numerics->flush, maximum, ln_2);
}

void assay_mla_finish(struct assay_mla_tile *tile)
{
    for (int row = 0; row < tile->query->rows; row++) {
        const float sum = row_sum(tile, row);
        take_logarithms(tile, row, sum);
        normalise(tile, row, sum);
    }
}
