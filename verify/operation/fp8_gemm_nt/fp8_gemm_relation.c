/* SPDX-License-Identifier: MIT */
/* Relations of FP8 GEMMs.
 *
 * Scaling by two is exact as long as nothing overflows and nothing nonzero is subnormal,
 * in either run and wherever a kernel rounds. Products of codes are multiples of u, the
 * product of the smallest codes; a, b are the least nonzero scales, A, B the largest.
 * Whatever the order, an f32 that a kernel may hold is a sum of multiples of
 *     u, u a, u b, u a b, or those with each scale's significand cut into its bits:
 *     at worst u a b 2^-46 (rn(chain * sfa) times sfb, exact, in a fused sum),
 * so that a nonzero one is at least that, and a normal number if all are at least
 * 2^-126. Nor is any above K max|a| max|b| times A, B, A B or 1, plus |c|, times 4 for
 * doubling and for what rounding adds. c counts as a multiple of its last place.
 *
 * Negation is exact where units and conversions treat both signs alike, as all roundings
 * to nearest and the tensor cores' truncation do. A zero may have either sign: x - x is
 * +0 whatever the sign of x. */
#include "verify/operation/fp8_gemm_nt/fp8_gemm_relation.h"

#include "ref/format/minifloat.h"

#include <math.h>

enum { F32_FRACTION = 23, F32_MAXIMUM = 127, F32_MINIMUM = -126 };

void assay_gemm_copy_inputs(const struct assay_property_run *first,
                            const struct assay_property_run *second)
{
    for (int i = 0; i < first->tensors->count; i++) {
        const struct assay_tensor *const from = &first->tensors->item[i];
        const int64_t elements = from->is_output ? 0 : assay_tensor_elements(from);
        for (int64_t e = 0; e < elements; e++)
            assay_tensor_set_bits(&second->tensors->item[i], e,
                                  assay_tensor_bits(from, e));
    }
}

void assay_gemm_change_all(const struct assay_gemm_views *views,
                           const struct assay_property_run *first,
                           const struct assay_property_run *second,
                           void (*change)(const struct assay_gemm_view *view))
{
    assay_gemm_copy_inputs(first, second);
    for (int group = 0; group < views->count(second->problem); group++) {
        struct assay_gemm_view view;
        views->open(second, group, &view);
        change(&view);
    }
}

struct span { /* exponents of the nonzero numbers among some; are they all finite? */
    int least, most;
    bool has_any, are_finite;
};

static void widen(struct span *span, uint32_t f32_bits)
{
    const double value = assay_minifloat_decode(assay_minifloat(ASSAY_F32), f32_bits);
    if (!isfinite(value)) span->are_finite = false;
    if (!isfinite(value) || value == 0) return;
    const int exponent = ilogb(value);
    if (!span->has_any || exponent < span->least) span->least = exponent;
    if (!span->has_any || exponent > span->most) span->most = exponent;
    span->has_any = true;
}

static struct span span_of(const struct assay_gemm_view *view, bool is_b, int64_t row)
{
    struct span span = { .are_finite = true };
    for (int64_t block = 0; block < assay_gemm_blocks(view); block++)
        widen(&span, assay_gemm_scale(view, is_b, row, block));
    return span;
}

static int smallest_exponent(enum assay_format format)
{
    const struct assay_minifloat *const codec = assay_minifloat(format);
    return 1 - codec->bias - codec->mantissa_bits;
}

/* Codes are below 2 to this power. */
static int largest_exponent(enum assay_format format)
{
    return format == ASSAY_E5M2 ? 16 : format == ASSAY_E4M3 ? 9 : 3;
}

static int least_of(int x, int y)
{
    return x < y ? x : y;
}

static int most_of(int x, int y)
{
    return x > y ? x : y;
}

static bool c_doubles(const struct assay_gemm_view *view, int64_t element)
{
    struct span span = { .are_finite = true };
    if (!view->has_c) return true;
    widen(&span, assay_tensor_bits(&view->c, element));
    return span.are_finite &&
           (!span.has_any ||
            (span.least - F32_FRACTION >= F32_MINIMUM && span.most + 3 <= F32_MAXIMUM));
}

static bool doubles_exactly(const struct assay_gemm_view *view, int64_t row,
                            int64_t column)
{
    const struct span a = span_of(view, false, row), b = span_of(view, true, column);
    if (!a.are_finite || !b.are_finite) return false;
    const int least = least_of(least_of(a.least, b.least), a.least + b.least);
    const int most = most_of(most_of(a.most, b.most), a.most + b.most);
    const int unit =
        smallest_exponent(view->a.format) + smallest_exponent(view->b.format);
    const int product = largest_exponent(view->a.format) +
                        largest_exponent(view->b.format) + ilogb((double)view->k + 1) + 1;
    return least_of(least, 0) + unit - 2 * F32_FRACTION >= F32_MINIMUM &&
           most_of(most, 0) + product + 2 < F32_MAXIMUM &&
           c_doubles(view, row * view->columns + column);
}

static uint32_t exponent_field(uint32_t f32_bits)
{
    return f32_bits >> F32_FRACTION & 0xFF;
}

bool assay_gemm_expect_double(const struct assay_gemm_views *views,
                              const struct assay_property_run *first, int output,
                              int64_t element, uint32_t *bits)
{
    const struct assay_tensor *const d = &first->tensors->item[output];
    const struct assay_gemm_place place = views->place(first, element);
    const uint32_t found = assay_tensor_bits(d, element);
    const int shift = d->format == ASSAY_BF16 ? 16 : 0;
    const uint32_t as_f32 = found << shift;
    const uint32_t exponent = exponent_field(as_f32);
    const bool is_zero = (as_f32 & 0x7FFFFFFF) == 0;
    struct assay_gemm_view view;
    if (place.group < 0 || (!is_zero && (exponent == 0 || exponent >= 254))) return false;
    views->open(first, place.group, &view);
    if (!doubles_exactly(&view, place.row, place.column)) return false;
    *bits = is_zero ? found : assay_gemm_doubled(as_f32) >> shift;
    return true;
}

bool assay_gemm_expect_negated(const struct assay_property_run *first, int output,
                               int64_t element, uint32_t *bits)
{
    const struct assay_tensor *const d = &first->tensors->item[output];
    const uint32_t found = assay_tensor_bits(d, element);
    const double value = assay_minifloat_decode(assay_minifloat(d->format), found);
    if (isnan(value) || value == 0) return false;
    *bits = assay_gemm_negated(d->format, found);
    return true;
}

bool assay_gemm_expect_reversed(const struct assay_gemm_views *views,
                                const struct assay_property_run *first, int output,
                                int64_t element, uint32_t *bits)
{
    struct assay_gemm_place place = views->place(first, element);
    struct assay_gemm_view view;
    if (place.group < 0) return false;
    views->open(first, place.group, &view);
    place.row = view.rows - 1 - place.row;
    *bits =
        assay_tensor_bits(&first->tensors->item[output], views->element(first, &place));
    return true;
}

bool assay_gemm_expect_taken(const struct assay_gemm_views *views,
                             const struct assay_property_run *first,
                             const struct assay_property_run *second, int output,
                             int64_t element, uint32_t *bits)
{
    struct assay_gemm_place place = views->place(second, element);
    struct assay_gemm_view before, after;
    if (place.group < 0) return false;
    views->open(first, place.group, &before);
    views->open(second, place.group, &after);
    place.row += before.rows - after.rows;
    *bits =
        assay_tensor_bits(&first->tensors->item[output], views->element(first, &place));
    return true;
}
