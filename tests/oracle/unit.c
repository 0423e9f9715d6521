/* SPDX-License-Identifier: MIT */
/* The oracle of single units against MPFR, and against searches of the formats. */
#include "ref/oracle/unit.h"

#include "tests/harness.h"

#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <string.h>

enum { ROWS = 6, COLUMNS = 4, STEPS = 3, OUTPUTS = ROWS * COLUMNS, EXACT_BITS = 900 };

static uint64_t state = 1;

static uint32_t draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* --- values of codes, by a second decoder ----------------------------------------- */

struct layout {
    enum assay_format format;
    int exponent_bits, mantissa_bits, elements;
};
static const struct layout layouts[] = {
    { ASSAY_E4M3, 4, 3, 32 }, { ASSAY_E5M2, 5, 2, 32 }, { ASSAY_BF16, 8, 7, 16 },
    { ASSAY_F16, 5, 10, 16 }, { ASSAY_TF32, 8, 10, 8 },
};
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

/* Of a finite code, tf32's without the ignored bits. */
static double value_of(const struct layout *layout, uint32_t code)
{
    const int bias = (1 << (layout->exponent_bits - 1)) - 1, bits = layout->mantissa_bits;
    const int field = (int)(code >> bits) & ((1 << layout->exponent_bits) - 1);
    const double fraction = code % (1u << bits) * ldexp(1, -bits);
    const double value =
        field ? ldexp(1 + fraction, field - bias) : ldexp(fraction, 1 - bias);
    return code >> (bits + layout->exponent_bits) ? -value : value;
}

static uint32_t largest_code(const struct layout *layout)
{
    const uint32_t all = (1u << (layout->exponent_bits + layout->mantissa_bits)) - 1;
    return layout->format == ASSAY_E4M3 ? all - 1 : all - (1u << layout->mantissa_bits);
}

static int smallest_exponent(const struct layout *layout)
{
    return 2 - (1 << (layout->exponent_bits - 1));
}

/* --- sums ------------------------------------------------------------------------- */

static struct {
    struct assay_tensors tensors;
    uint32_t a[ROWS * STEPS * 32], b[COLUMNS * STEPS * 32], c[OUTPUTS];
    double a_value[ROWS * STEPS * 32], b_value[COLUMNS * STEPS * 32];
} fixture;

static void shape(const struct layout *a, const struct layout *b)
{
    const int64_t k = a->elements;
    fixture.tensors = (struct assay_tensors){
        .count = 3,
        .item = { { .name = "a",
                    .format = a->format,
                    .rank = 4,
                    .shape = { 1, STEPS, ROWS, k },
                    .data = fixture.a },
                  { .name = "b",
                    .format = b->format,
                    .rank = 4,
                    .shape = { 1, STEPS, COLUMNS, k },
                    .data = fixture.b },
                  { .name = "c",
                    .format = ASSAY_F32,
                    .rank = 3,
                    .shape = { 1, ROWS, COLUMNS },
                    .data = fixture.c } },
    };
    for (int i = 0; i < 3; i++)
        assay_tensor_set_dense(&fixture.tensors.item[i]);
}

/* Finite codes of all exponents, or of the smallest ones only. */
static void fill(const struct layout *layout, int which, double *value, bool is_small)
{
    const struct assay_tensor *const tensor = &fixture.tensors.item[which];
    const int sign_bit = layout->exponent_bits + layout->mantissa_bits;
    const uint32_t codes =
        is_small ? 3u << layout->mantissa_bits : largest_code(layout) + 1;
    for (int64_t i = 0; i < assay_tensor_elements(tensor); i++) {
        const uint32_t code = draw() % codes | (draw() & 1) << sign_bit;
        const bool is_tf32 = layout->format == ASSAY_TF32;
        assay_tensor_set_bits(tensor, i, is_tf32 ? code << 13 | (draw() & 0x1FFF) : code);
        value[i] = value_of(layout, code);
    }
}

static void fill_all(const struct layout *a, const struct layout *b, bool is_small)
{
    /* What lies behind the tensors is not zero, so that a step too many shows. */
    memset(fixture.a, 0x3C, sizeof(fixture.a));
    memset(fixture.b, 0x3C, sizeof(fixture.b));
    shape(a, b);
    fill(a, 0, fixture.a_value, is_small);
    fill(b, 1, fixture.b_value, is_small);
    for (int i = 0; i < OUTPUTS; i++) {
        const uint32_t bits = is_small ? draw() & 0x81FFFFFF : draw();
        fixture.c[i] = isfinite(float_of(bits)) ? bits : 0;
    }
}

static const double *row_of(const double *values, const struct layout *layout, int rows,
                            int step, int row)
{
    return values + (step * rows + row) * layout->elements;
}

struct exact { /* a sum by MPFR, and what goes with it */
    mpfr_t sum[2], residue[2], term;
    int lsb, aligned;
    int64_t products;
};

static void open_exact(struct exact *exact)
{
    mpfr_inits2(EXACT_BITS, exact->sum[0], exact->sum[1], exact->residue[0],
                exact->residue[1], exact->term, (mpfr_ptr)NULL);
}

static void close_exact(struct exact *exact)
{
    mpfr_clears(exact->sum[0], exact->sum[1], exact->residue[0], exact->residue[1],
                exact->term, (mpfr_ptr)NULL);
}

static int lsb_of(double x)
{
    int exponent;
    uint64_t significand = (uint64_t)ldexp(frexp(fabs(x), &exponent), 53);
    for (exponent -= 53; significand % 2 == 0; significand /= 2)
        exponent++;
    return exponent;
}

static void add_exact(struct exact *exact, double term, double quantum)
{
    const bool is_negative = term < 0;
    if (term == 0) return;
    mpfr_set_d(exact->term, fabs(term), MPFR_RNDN);
    ck_assert(mpfr_add(exact->sum[is_negative], exact->sum[is_negative], exact->term,
                       MPFR_RNDN) == 0);
    mpfr_set_d(exact->term, fmod(fabs(term), quantum), MPFR_RNDN);
    mpfr_add(exact->residue[is_negative], exact->residue[is_negative], exact->term,
             MPFR_RNDN);
    if (lsb_of(term) < exact->lsb) exact->lsb = lsb_of(term);
}

static int padded_exponent(const struct layout *layout, double value)
{
    const int exponent = ilogb(value), smallest = smallest_exponent(layout);
    return exponent > smallest ? exponent : smallest;
}

static void sum_exactly(struct exact *exact, const struct layout *a,
                        const struct layout *b, int output, double quantum)
{
    for (int i = 0; i < 2; i++) {
        mpfr_set_zero(exact->sum[i], 1);
        mpfr_set_zero(exact->residue[i], 1);
    }
    exact->lsb = ASSAY_UNIT_NO_LSB;
    exact->aligned = ASSAY_UNIT_NO_EXPONENT;
    exact->products = 0;
    add_exact(exact, (double)float_of(fixture.c[output]), quantum);
    for (int step = 0; step < STEPS; step++) {
        const double *const x = row_of(fixture.a_value, a, ROWS, step, output / COLUMNS);
        const double *const y =
            row_of(fixture.b_value, b, COLUMNS, step, output % COLUMNS);
        for (int k = 0; k < a->elements; k++) {
            if (x[k] == 0 || y[k] == 0) continue;
            const int aligned = padded_exponent(a, x[k]) + padded_exponent(b, y[k]);
            if (aligned > exact->aligned) exact->aligned = aligned;
            exact->products++;
            add_exact(exact, x[k] * y[k], quantum);
        }
    }
}

static void check_sums(const struct layout *a, const struct layout *b)
{
    struct assay_dot_sum sum[OUTPUTS];
    double residue[OUTPUTS][2];
    int quantum[OUTPUTS];
    struct exact exact;
    ck_assert(assay_dot_sums(&fixture.tensors, 0, sum));
    for (int i = 0; i < OUTPUTS; i++)
        quantum[i] = ilogb(fmax(sum[i].positive, sum[i].negative)) - (int)(draw() % 40);
    ck_assert(assay_dot_residues(&fixture.tensors, 0, true, quantum, residue));
    open_exact(&exact);
    for (int i = 0; i < OUTPUTS; i++) {
        sum_exactly(&exact, a, b, i, ldexp(1, quantum[i]));
        ck_assert(sum[i].positive == mpfr_get_d(exact.sum[0], MPFR_RNDN));
        ck_assert(sum[i].negative == mpfr_get_d(exact.sum[1], MPFR_RNDN));
        ck_assert(mpfr_sub(exact.term, exact.sum[0], exact.sum[1], MPFR_RNDN) == 0);
        ck_assert(sum[i].value == mpfr_get_d(exact.term, MPFR_RNDN));
        ck_assert_int_eq(sum[i].lsb, exact.lsb);
        ck_assert_int_eq(sum[i].aligned, exact.aligned);
        ck_assert_int_eq(sum[i].products, exact.products);
        ck_assert_uint_eq(sum[i].special, 0);
        for (int j = 0; j < 2; j++) {
            const double right = mpfr_get_d(exact.residue[j], MPFR_RNDN);
            ck_assert(fabs(residue[i][j] - right) <= 0x1p-40 * right);
        }
    }
    close_exact(&exact);
}

START_TEST(sums_and_residues_of_all_formats_are_mpfr_s)
{
    for (int i = 0; i < LAYOUTS; i++)
        for (int j = 0; j < LAYOUTS; j++) {
            if (layouts[i].elements != layouts[j].elements) continue;
            for (int round = 0; round < 40; round++) {
                fill_all(&layouts[i], &layouts[j], round % 2);
                check_sums(&layouts[i], &layouts[j]);
            }
        }
}
END_TEST

/* 2^127 * 2^127 and its opposite, with 2^-133 * 1 between: 393 bits apart. */
START_TEST(a_small_product_survives_huge_ones_that_cancel)
{
    const struct layout *const bf16 = &layouts[2];
    struct assay_dot_sum sum[OUTPUTS];
    memset(fixture.a, 0, sizeof(fixture.a));
    memset(fixture.b, 0, sizeof(fixture.b));
    memset(fixture.c, 0, sizeof(fixture.c));
    shape(bf16, bf16);
    const struct assay_tensor *const a = &fixture.tensors.item[0], *const b = a + 1;
    assay_tensor_set_bits(a, 0, 0x7F00);
    assay_tensor_set_bits(b, 0, 0x7F00);
    assay_tensor_set_bits(a, 1, 0x0001);
    assay_tensor_set_bits(b, 1, 0x3F80);
    assay_tensor_set_bits(a, 2, 0xFF00);
    assay_tensor_set_bits(b, 2, 0x7F00);
    ck_assert(assay_dot_sums(&fixture.tensors, 0, sum));
    ck_assert(sum[0].value == 0x1p-133);
    ck_assert(sum[0].negative == 0x1p254);
    ck_assert_int_eq(sum[0].products, 3);
    ck_assert_int_eq(sum[0].aligned, 254);
}
END_TEST

START_TEST(nan_and_infinities_are_as_in_ieee_754)
{
    enum { PLUS = ASSAY_UNIT_PLUS_INFINITY, MINUS = ASSAY_UNIT_MINUS_INFINITY };
    static const struct {
        int layout;
        uint32_t a, b, c;
        unsigned special;
    } rows[] = {
        { 0, 0x7F, 0x38, 0, ASSAY_UNIT_NAN },
        { 0, 0xFF, 0x00, 0, ASSAY_UNIT_NAN },
        { 1, 0x7C, 0x3C, 0, PLUS },
        { 1, 0xFC, 0x3C, 0, MINUS },
        { 1, 0xFC, 0xFC, 0, PLUS },
        { 1, 0x7C, 0x00, 0, ASSAY_UNIT_NAN },
        { 1, 0x7D, 0x3C, 0, ASSAY_UNIT_NAN },
        { 2, 0x3F80, 0xFF80, 0, MINUS },
        { 3, 0x7C01, 0x3C00, 0, ASSAY_UNIT_NAN },
        { 3, 0x7C00, 0xBC00, 0, MINUS },
        { 4, 0x7F801FFF, 0x3F800000, 0, PLUS }, /* ignored bits make no NaN */
        { 4, 0x7F802000, 0x3F800000, 0, ASSAY_UNIT_NAN },
        { 4, 0x00001FFF, 0x7F800000, 0, ASSAY_UNIT_NAN }, /* nor anything but zero */
        { 2, 0x3F80, 0x3F80, 0x7F800000, PLUS },
        { 2, 0x3F80, 0x3F80, 0xFFC00000, ASSAY_UNIT_NAN },
        { 2, 0x7F80, 0x3F80, 0xFF800000, PLUS | MINUS },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct layout *const layout = &layouts[rows[i].layout];
        struct assay_dot_sum sum[OUTPUTS];
        memset(fixture.a, 0, sizeof(fixture.a));
        memset(fixture.b, 0, sizeof(fixture.b));
        memset(fixture.c, 0, sizeof(fixture.c));
        shape(layout, layout);
        assay_tensor_set_bits(&fixture.tensors.item[0], 0, rows[i].a);
        assay_tensor_set_bits(&fixture.tensors.item[1], 0, rows[i].b);
        fixture.c[0] = rows[i].c;
        ck_assert(assay_dot_sums(&fixture.tensors, 0, sum));
        ck_assert_msg(sum[0].special == rows[i].special, "row %zu: %u", i,
                      sum[0].special);
        ck_assert_uint_eq(sum[OUTPUTS - 1].special, 0);
    }
}
END_TEST

/* --- functions -------------------------------------------------------------------- */

static int reciprocal(mpfr_t result, const mpfr_t x, mpfr_rnd_t rounding)
{
    return mpfr_ui_div(result, 1, x, rounding);
}

static const struct {
    double (*exact)(float x);
    int (*mpfr)(mpfr_t result, const mpfr_t x, mpfr_rnd_t rounding);
    bool takes_negative;
} functions[] = {
    { assay_exact_ex2, mpfr_exp2, true },
    { assay_exact_lg2, mpfr_log2, false },
    { assay_exact_rcp, reciprocal, true },
    { assay_exact_rsqrt, mpfr_rec_sqrt, false },
};

START_TEST(functions_are_within_an_ulp_of_mpfr_s)
{
    mpfr_t x, right;
    mpfr_inits2(200, x, right, (mpfr_ptr)NULL);
    for (int i = 0; i < 4; i++)
        for (int round = 0; round < 40000; round++) {
            const bool is_near_one = round % 4 == 0;
            uint32_t bits = is_near_one ? 0x3F800000 + draw() % 4096 - 2048 : draw();
            if (!functions[i].takes_negative) bits &= 0x7FFFFFFF;
            const float argument = float_of(bits);
            if (!isnormal(argument)) continue;
            if (i == 0 && fabsf(argument) > 1000) continue;
            mpfr_set_flt(x, argument, MPFR_RNDN);
            functions[i].mpfr(right, x, MPFR_RNDN);
            const double value = functions[i].exact(argument);
            mpfr_sub_d(x, right, value, MPFR_RNDN);
            ck_assert_msg(fabs(mpfr_get_d(x, MPFR_RNDN)) <= 0x1p-52 * fabs(value),
                          "function %d of %a is %a", i, (double)argument, value);
        }
    mpfr_clears(x, right, (mpfr_ptr)NULL);
}
END_TEST

START_TEST(functions_of_special_arguments_are_limits)
{
    const float infinity = (float)INFINITY, subnormal = -0x1p-127f;
    ck_assert(assay_exact_ex2(infinity) == (double)infinity);
    ck_assert(assay_exact_ex2(-infinity) == 0);
    ck_assert(assay_exact_ex2(0x1p-149f) == 1);
    ck_assert(assay_exact_ex2(-150) == 0x1p-150);
    ck_assert(isnan(assay_exact_ex2((float)NAN)));
    ck_assert(assay_exact_lg2(subnormal) == -(double)infinity);
    ck_assert(assay_exact_lg2(0x1p-127f) == -(double)infinity);
    ck_assert(assay_exact_lg2(infinity) == (double)infinity);
    ck_assert(isnan(assay_exact_lg2(-1)));
    ck_assert(assay_exact_rcp(subnormal) == -(double)infinity);
    ck_assert(assay_exact_rcp(infinity) == 0 && !signbit(assay_exact_rcp(infinity)));
    ck_assert(assay_exact_rcp(-infinity) == 0 && signbit(assay_exact_rcp(-infinity)));
    ck_assert(assay_exact_rsqrt(subnormal) == -(double)infinity);
    ck_assert(assay_exact_rsqrt(infinity) == 0);
    ck_assert(isnan(assay_exact_rsqrt(-1)));
}
END_TEST

/* --- conversions ------------------------------------------------------------------ */

/* The nearest value by search; beyond the middle of the largest and a code more, that is
 * @overflowed. */
static double nearest(const struct layout *layout, float x, double overflowed)
{
    const double magnitude = fabs((double)x);
    uint32_t low = 0, high = largest_code(layout) + 1;
    const double step = value_of(layout, high - 1) - value_of(layout, high - 2);
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        *(value_of(layout, middle) <= magnitude ? &low : &high) = middle;
    }
    const bool is_last = high > largest_code(layout);
    const double below = value_of(layout, low);
    const double above = is_last ? below + step : value_of(layout, high);
    const double tie = (below + above) / 2;
    const bool is_up = magnitude > tie || (magnitude == tie && low % 2);
    const double result = !is_up ? below : is_last ? overflowed : above;
    return copysign(result, (double)x);
}

static double truncated(const struct layout *layout, float x)
{
    uint32_t code = 0, high = largest_code(layout) + 1;
    while (high - code > 1) {
        const uint32_t middle = (code + high) / 2;
        *(value_of(layout, middle) <= fabs((double)x) ? &code : &high) = middle;
    }
    return copysign(value_of(layout, code), (double)x);
}

static bool same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

static void check_conversion(const struct layout *layout, float x)
{
    const double largest = value_of(layout, largest_code(layout));
    const double special = layout->format == ASSAY_E4M3 ? (double)NAN : (double)INFINITY;
    const struct assay_conversion saturates = { layout->format, true, false };
    const struct assay_conversion plain = { layout->format, false, false };
    const struct assay_conversion truncates = { layout->format, false, true };
    ck_assert_msg(
        same(assay_exact_conversion(&saturates, x), nearest(layout, x, largest)) &&
            same(assay_exact_conversion(&plain, x), nearest(layout, x, special)) &&
            same(assay_exact_conversion(&truncates, x), truncated(layout, x)),
        "%a to %s", (double)x, assay_format_name(layout->format));
}

START_TEST(conversions_are_right_at_every_code_and_tie_and_beside_them)
{
    for (int i = 0; i < LAYOUTS - 1; i++) /* all but tf32 */
        for (uint32_t code = 0; code <= largest_code(&layouts[i]); code++) {
            const double low = value_of(&layouts[i], code);
            const double high = code < largest_code(&layouts[i])
                                    ? value_of(&layouts[i], code + 1)
                                    : 2 * low - value_of(&layouts[i], code - 1);
            const float points[] = { (float)low, (float)((low + high) / 2) };
            for (int j = 0; j < 2; j++) {
                check_conversion(&layouts[i], points[j]);
                check_conversion(&layouts[i], -points[j]);
                check_conversion(&layouts[i], nextafterf(points[j], INFINITY));
                check_conversion(&layouts[i], nextafterf(points[j], -INFINITY));
            }
        }
}
END_TEST

START_TEST(conversions_of_random_and_special_floats_are_right)
{
    for (int i = 0; i < LAYOUTS - 1; i++) {
        for (int round = 0; round < 100000; round++) {
            const float x = float_of(draw());
            if (isfinite(x)) check_conversion(&layouts[i], x);
        }
        const double largest = value_of(&layouts[i], largest_code(&layouts[i]));
        const struct assay_conversion saturates = { layouts[i].format, true, false };
        const struct assay_conversion plain = { layouts[i].format, false, true };
        ck_assert(assay_exact_conversion(&saturates, -INFINITY) == -largest);
        ck_assert(isnan(assay_exact_conversion(&saturates, NAN)));
        ck_assert(!isfinite(assay_exact_conversion(&plain, INFINITY)));
        check_conversion(&layouts[i], FLT_MAX);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        sums_and_residues_of_all_formats_are_mpfr_s,
        a_small_product_survives_huge_ones_that_cancel,
        nan_and_infinities_are_as_in_ieee_754,
        functions_are_within_an_ulp_of_mpfr_s,
        functions_of_special_arguments_are_limits,
        conversions_are_right_at_every_code_and_tie_and_beside_them,
        conversions_of_random_and_special_floats_are_right,
        NULL,
    };
    return run_tests("unit", tests);
}
