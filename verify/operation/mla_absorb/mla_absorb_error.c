/* SPDX-License-Identifier: MIT */
/* Errors of products, stores and rotations.
 *
 * A product over K terms, y = sum a b: what the factors bring along is at most
 * M - sum |a| |b|. The unit adds gamma M, whatever the order of the terms:
 *   tensor core: each of ceil(K / 16) steps truncates 16 products and the accumulator to
 *     2^-25 of the largest of them, then the sum to 2^-23 of itself, all toward zero, so
 *     that nothing ever exceeds M: gamma = ceil(K / 16) (17 * 2^-25 + 2^-23).
 *   fma: one rounding a term, gamma = K u / (1 - K u).
 * Of chains one behind the other Ms add up, and gammas with their product. A subnormal
 * factor aligns as 2^-126, and counts as that in M; a sum that is subnormal loses less
 * than 2^-147 a term.
 *
 * Stored in bf16: half a unit in the last place at |y| + e(y), at least 2^-134.
 *
 * Turning a pair: |cos| e(x) + |sin| e(y), and two roundings of what was turned. */
#include "verify/operation/mla_absorb/mla_absorb_error.h"

#include <math.h>

#define UNIT       ASSAY_MLA_ABSORB_UNIT
#define TERM_FLOOR ASSAY_MLA_ABSORB_TERM_FLOOR
#define LARGEST    ASSAY_MLA_ABSORB_LARGEST
#define STEP_ERROR (17 * 0x1p-25 + 0x1p-23)

enum { STEP_TERMS = 16 };

double assay_mla_absorb_reach(const struct assay_mla_quantity *x, int64_t index)
{
    return fabs(x->value[index]) + (x->error ? x->error[index] : 0);
}

double assay_mla_absorb_gamma(bool is_on_tensor_core, int64_t terms)
{
    const int64_t steps = (terms + STEP_TERMS - 1) / STEP_TERMS;
    const double k = (double)terms;
    return is_on_tensor_core ? (double)steps * STEP_ERROR : k * UNIT / (1 - k * UNIT);
}

double assay_mla_absorb_aligned(double magnitude)
{
    return magnitude > 0 && magnitude < 0x1p-126 ? 0x1p-126 : magnitude;
}

void assay_mla_absorb_begin(struct assay_mla_sums *sums, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        sums->spread[i] = sums->magnitude[i] = 0;
    sums->gamma = sums->floor = 0;
}

void assay_mla_absorb_add(struct assay_mla_sums *sums, bool has_tensor_core,
                          const struct assay_mla_quantity *a,
                          const struct assay_mla_quantity *b, bool is_transposed)
{
    const int64_t terms = a->columns, columns = is_transposed ? b->columns : b->rows;
    const int64_t to_column = is_transposed ? 1 : b->columns;
    const int64_t to_term = is_transposed ? b->columns : 1;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            double spread = 0, magnitude = 0;
            for (int64_t k = 0; k < terms; k++) {
                const int64_t at_a = i * terms + k, at_b = j * to_column + k * to_term;
                const double x = fabs(a->value[at_a]), y = fabs(b->value[at_b]);
                const double x_error = a->error ? a->error[at_a] : 0;
                const double y_error = b->error ? b->error[at_b] : 0;
                spread += x * y_error + x_error * (y + y_error);
                magnitude += assay_mla_absorb_aligned(x + x_error) *
                             assay_mla_absorb_aligned(y + y_error);
            }
            sums->spread[i * columns + j] += spread;
            sums->magnitude[i * columns + j] += magnitude;
        }
    const bool is_on_tensor_core = has_tensor_core && a->is_bf16 && b->is_bf16;
    sums->gamma += assay_mla_absorb_gamma(is_on_tensor_core, terms) * (1 + sums->gamma);
    sums->floor += (double)terms * TERM_FLOOR;
}

double assay_mla_absorb_own_error(const struct assay_mla_sums *sums, int64_t index)
{
    const double magnitude = sums->magnitude[index];
    const bool fits = magnitude * (1 + sums->gamma) < LARGEST;
    return fits ? sums->gamma * magnitude + sums->floor : (double)INFINITY;
}

void assay_mla_absorb_finish(const struct assay_mla_sums *sums,
                             const struct assay_mla_quantity *into)
{
    for (int64_t i = 0; i < into->rows * into->columns; i++) {
        into->local[i] = assay_mla_absorb_own_error(sums, i);
        into->error[i] = sums->spread[i] + into->local[i];
    }
}

double assay_mla_absorb_half_unit(double largest)
{
    if (!(largest < LARGEST)) return (double)INFINITY;
    if (largest == 0) return 0;
    const int exponent = ilogb(largest);
    return ldexp(1, (exponent < -126 ? -126 : exponent) - 8);
}

void assay_mla_absorb_round(const struct assay_mla_quantity *x)
{
    for (int64_t i = 0; i < x->rows * x->columns; i++) {
        const double half = assay_mla_absorb_half_unit(assay_mla_absorb_reach(x, i));
        x->local[i] += half;
        x->error[i] += half;
    }
}

/* Errors of a pair: those it had, turned, and @rounding. */
static void turn_errors(double *error, double c, double s, const double *rounding)
{
    const double left = c * error[0] + s * error[1];
    const double right = s * error[0] + c * error[1];
    error[0] = left + rounding[0];
    error[1] = right + rounding[1];
}

void assay_mla_absorb_turn(const struct assay_mla_quantity *x, const double *flat,
                           const double *cosine, const double *sine)
{
    for (int64_t i = 0; i < x->rows * x->columns / 2; i++) {
        const double c = fabs(cosine[i]), s = fabs(sine[i]);
        const double left = fabs(flat[2 * i]) + x->error[2 * i];
        const double right = fabs(flat[2 * i + 1]) + x->error[2 * i + 1];
        const double twice = 2 * UNIT * (1 + UNIT);
        double rounding[] = { twice * (c * left + s * right) + TERM_FLOOR,
                              twice * (s * left + c * right) + TERM_FLOOR };
        if (!((c + s) * (left + right) < LARGEST))
            rounding[0] = rounding[1] = (double)INFINITY;
        turn_errors(x->error + 2 * i, c, s, rounding);
        turn_errors(x->local + 2 * i, c, s, rounding);
    }
}
