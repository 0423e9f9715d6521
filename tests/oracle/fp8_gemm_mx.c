/* SPDX-License-Identifier: MIT */
/* The oracle of GEMMs with power-of-two block scales against sums that MPFR adds without
 * rounding, and its special values against the same loop in double arithmetic. */
#include "ref/oracle/fp8_gemm_mx.h"

#include "tests/harness.h"

#include <math.h>
#include <mpfr.h>
#include <string.h>

enum { MOST_ROWS = 80, MOST_K = 700, PADDING = 5, PRECISION = 1200, TILE = 64 * 64 };
enum contents { ANY_CODE, SMALL_CODES, POSITIVE, CANCELLING, SPARSE, CONTENTS };
enum scales { ALIKE, NEAR, ANY_FINITE, SCALES };

static struct assay_fp8_gemm_problem problem;
static struct assay_tensors tensors;
static uint8_t codes[2][MOST_ROWS * (MOST_K + PADDING)];
static uint32_t words[2][MOST_ROWS * MOST_K];
static struct assay_fp8_gemm_mx_output output[TILE];
static uint64_t state;

static uint32_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 32);
}

static int64_t below(int64_t bound)
{
    return (int64_t)(draw() % (uint64_t)bound);
}

struct layout {
    enum assay_format format;
    int mantissa_bits, bias, sign_place;
};
static const struct layout layouts[] = {
    { ASSAY_E4M3, 3, 7, 7 },
    { ASSAY_E5M2, 2, 15, 7 },
    { ASSAY_E2M1, 1, 1, 3 },
};

static const struct layout *layout_of(enum assay_format format)
{
    const struct layout *layout = layouts;
    while (layout->format != format)
        layout++;
    return layout;
}

static double code_value(enum assay_format format, unsigned code)
{
    const struct layout *const layout = layout_of(format);
    const unsigned magnitude = code & ((1u << layout->sign_place) - 1);
    const int field = (int)magnitude >> layout->mantissa_bits;
    const double fraction = (double)(magnitude & ((1u << layout->mantissa_bits) - 1)) /
                            (1 << layout->mantissa_bits);
    const double sign = code >> layout->sign_place & 1 ? -1 : 1;
    if (format == ASSAY_E4M3 && magnitude == 0x7f) return (double)NAN;
    if (format == ASSAY_E5M2 && field == 31)
        return fraction > 0 ? (double)NAN : sign * (double)INFINITY;
    return sign * (field ? (1 + fraction) * exp2(field - layout->bias)
                         : fraction * exp2(1 - layout->bias));
}

static int64_t groups(void)
{
    return (problem.k + problem.gran_k - 1) / problem.gran_k;
}

static void add_operand(int side, const char *name, const char *scale_name, int64_t rows)
{
    const int64_t stride = problem.k + below(PADDING);
    tensors.item[tensors.count++] = (struct assay_tensor){
        .name = name,
        .format = layouts[below(3)].format,
        .rank = 2,
        .shape = { rows, problem.k },
        .stride = { stride, 1 },
        .data = codes[side],
    };
    tensors.item[tensors.count++] = (struct assay_tensor){
        .name = scale_name,
        .format = ASSAY_I32,
        .rank = 2,
        .shape = { (groups() + 3) / 4, rows },
        .stride = { (rows + 3) / 4 * 4, 1 },
        .data = words[side],
    };
}

static void shape(void)
{
    tensors.count = 0;
    add_operand(0, "a", "sfa", problem.m);
    add_operand(1, "b", "sfb", problem.n);
}

static void draw_problem(void)
{
    static const int64_t granularities[] = { 32, 128, 32, 128, 7, 300 };
    problem = (struct assay_fp8_gemm_problem){
        .m = 1 + below(MOST_ROWS),
        .n = 1 + below(MOST_ROWS),
        .k = below(MOST_K + 1),
        .gran_m = 1,
        .gran_n = 1,
        .gran_k = granularities[below(6)],
    };
    shape();
}

static unsigned drawn_code(enum contents contents, enum assay_format format)
{
    const struct layout *const layout = layout_of(format);
    const unsigned sign = 1u << layout->sign_place;
    unsigned code;
    do {
        code = draw() >> 24;
        if (contents == SMALL_CODES) code &= sign | ((1u << layout->mantissa_bits) - 1);
        if (contents == POSITIVE) code &= ~sign;
        if (contents == SPARSE && draw() >> 28) code = 0;
    } while (!isfinite(code_value(format, code)));
    return code;
}

static unsigned drawn_scale(enum scales scales)
{
    return scales == ALIKE ? 127 : scales == NEAR ? 117 + draw() % 20 : draw() % 255;
}

static void fill(enum contents contents, enum scales scales)
{
    for (int side = 0; side < 2; side++) {
        const enum assay_format format = tensors.item[2 * side].format;
        const unsigned sign = 1u << layout_of(format)->sign_place;
        for (size_t i = 0; i < sizeof codes[side]; i++) {
            codes[side][i] = (uint8_t)drawn_code(contents, format);
            if (contents == CANCELLING && i % 2 && below(16))
                codes[side][i] = (uint8_t)(codes[side][i - 1] ^ (side ? 0 : sign));
        }
        for (size_t i = 0; i < MOST_ROWS * MOST_K; i++)
            words[side][i] = drawn_scale(scales) | drawn_scale(scales) << 8 |
                             drawn_scale(scales) << 16 | drawn_scale(scales) << 24;
    }
}

static unsigned code_at(int side, int64_t row, int64_t k)
{
    return codes[side][row * tensors.item[2 * side].stride[0] + k];
}

static double value_at(int side, int64_t row, int64_t k)
{
    return code_value(tensors.item[2 * side].format, code_at(side, row, k));
}

/* By shifts, on the words as integers. */
static unsigned scale_code(int side, int64_t row, int64_t k)
{
    const int64_t group = k / problem.gran_k;
    const uint32_t word =
        words[side][group / 4 * tensors.item[2 * side + 1].stride[0] + row];
    return word >> 8 * (group % 4) & 0xff;
}

static double scale_at(int64_t m, int64_t n, int64_t k)
{
    const unsigned a = scale_code(0, m, k), b = scale_code(1, n, k);
    return a == 255 || b == 255 ? (double)NAN : ldexp(1, (int)a + (int)b - 254);
}

/* |value| raised to the smallest normal. */
static double raised(int side, int64_t row, int64_t k)
{
    const struct layout *const layout = layout_of(tensors.item[2 * side].format);
    return fmax(fabs(value_at(side, row, k)), ldexp(1, 1 - layout->bias));
}

struct facts {
    double magnitude;
    int64_t nonzero;
    int exponent;
};

/* Adds every product on its own; nothing is rounded (asserted). */
static struct facts add_exactly(int64_t m, int64_t n, mpfr_t sum,
                                const struct assay_fp8_gemm_mx_output *found)
{
    struct facts facts = { 0, 0, -2000 };
    mpfr_t product;
    mpfr_init2(product, PRECISION);
    mpfr_set_d(sum, 0, MPFR_RNDN);
    for (int64_t k = 0; k < problem.k; k++) {
        const double exact = value_at(0, m, k) * value_at(1, n, k) * scale_at(m, n, k);
        if (exact == 0) continue;
        const double padded = raised(0, m, k) * raised(1, n, k) * scale_at(m, n, k);
        const int exponent =
            ilogb(raised(0, m, k)) + ilogb(raised(1, n, k)) + ilogb(scale_at(m, n, k));
        ck_assert_int_eq(mpfr_set_d(product, exact, MPFR_RNDN), 0);
        ck_assert_int_eq(mpfr_add(sum, sum, product, MPFR_RNDN), 0);
        ck_assert_msg(fmod(exact, ldexp(1, found->unit)) == 0, "a product of %a in %d",
                      exact, found->unit);
        facts.magnitude += padded;
        facts.nonzero++;
        if (exponent > facts.exponent) facts.exponent = exponent;
    }
    mpfr_clear(product);
    return facts;
}

static void check_output(int64_t m, int64_t n,
                         const struct assay_fp8_gemm_mx_output *found)
{
    mpfr_t exact, error;
    mpfr_inits2(PRECISION, exact, error, (mpfr_ptr)0);
    const struct facts facts = add_exactly(m, n, exact, found);
    ck_assert_int_eq(found->nonzero, facts.nonzero);
    ck_assert_uint_eq(found->special, 0);
    ck_assert_double_ge(found->magnitude, facts.magnitude * (1 - 0x1p-40));
    ck_assert_double_le(found->magnitude, facts.magnitude * (1 + 0x1p-28));
    if (facts.nonzero) ck_assert_int_eq(found->exponent, facts.exponent);

    const double allowed =
        (double)(groups() + 1) * ASSAY_FP8_GEMM_MX_ORACLE_ERROR * facts.magnitude;
    mpfr_sub_d(error, exact, found->sum.high, MPFR_RNDN);
    mpfr_sub_d(error, error, found->sum.low, MPFR_RNDN);
    ck_assert_double_le(fabs(mpfr_get_d(error, MPFR_RNDA)), allowed);
    const double value = assay_fp8_gemm_mx_value(found);
    mpfr_sub_d(error, exact, value, MPFR_RNDN);
    ck_assert_double_le(fabs(mpfr_get_d(error, MPFR_RNDA)),
                        0x1.0001p-53 * fabs(value) + allowed);
    mpfr_clears(exact, error, (mpfr_ptr)0);
}

static struct assay_fp8_gemm_mx_oracle *opened(int64_t part)
{
    struct assay_fp8_gemm_mx_oracle *const oracle =
        assay_fp8_gemm_mx_oracle_open(&problem, &tensors, part);
    ck_assert_ptr_nonnull(oracle);
    assay_fp8_gemm_mx_oracle_sums(oracle, output);
    return oracle;
}

START_TEST(sums_and_facts_are_exact_for_every_kind_of_input)
{
    state = 1;
    for (int i = 0; i < 180; i++) {
        draw_problem();
        fill((enum contents)(i % CONTENTS), (enum scales)(i / CONTENTS % SCALES));
        const int64_t part = below(assay_fp8_gemm_parts(&problem));
        const struct assay_fp8_gemm_tile_range range =
            assay_fp8_gemm_part_range(&problem, part);
        assay_fp8_gemm_mx_oracle_close(opened(part));
        for (int j = 0; j < 12; j++) {
            const int64_t row = below(range.rows), column = below(range.columns);
            check_output(range.m0 + row, range.n0 + column,
                         &output[row * range.columns + column]);
        }
    }
}
END_TEST

START_TEST(sums_of_largest_products_are_exact)
{
    static const uint8_t largest[] = { 0x7e, 0x7b, 0x07 };
    state = 2;
    for (int i = 0; i < 9; i++) {
        problem = (struct assay_fp8_gemm_problem){ 9, 9, MOST_K, 1, 1, 128, false };
        shape();
        tensors.item[0].format = layouts[i / 3].format;
        tensors.item[2].format = layouts[i % 3].format;
        fill(POSITIVE, ALIKE);
        memset(codes[0], largest[i / 3], sizeof codes[0]);
        memset(codes[1], largest[i % 3], sizeof codes[1]);
        codes[0][3] = codes[1][3] = 1; /* and a smallest one */
        assay_fp8_gemm_mx_oracle_close(opened(0));
        check_output(0, 0, &output[0]);
        check_output(5, 5, &output[5 * 9 + 5]);
    }
}
END_TEST

START_TEST(every_code_and_every_scale_has_its_value)
{
    static const uint8_t one[] = { 0x38, 0x3c, 0x02 };
    problem = (struct assay_fp8_gemm_problem){ 1, 1, 1, 1, 1, 32, false };
    for (int i = 0; i < 3; i++)
        for (unsigned code = 0; code < 256; code++)
            for (unsigned scale = 0; scale < 256; scale += code == one[i] ? 1 : 85) {
                shape();
                tensors.item[0].format = layouts[i].format;
                tensors.item[2].format = layouts[(i + 1) % 3].format;
                codes[0][0] = (uint8_t)code;
                codes[1][0] = one[(i + 1) % 3];
                /* The three other bytes belong to groups that are not there. */
                words[0][0] = 0xffffff00 | scale;
                words[1][0] = 0xffffff7f;
                assay_fp8_gemm_mx_oracle_close(opened(0));
                const double expected =
                    scale == 255
                        ? (double)NAN
                        : code_value(layouts[i].format, code) * exp2((double)scale - 127);
                const double found = assay_fp8_gemm_mx_value(&output[0]);
                ck_assert_msg(isnan(expected) ? isnan(found) : found == expected,
                              "code %02x, scale %02x: %g instead of %g", code, scale,
                              found, expected);
            }
}
END_TEST

START_TEST(an_empty_sum_is_zero)
{
    problem = (struct assay_fp8_gemm_problem){ 3, 5, 0, 1, 1, 128, false };
    shape();
    assay_fp8_gemm_mx_oracle_close(opened(0));
    for (int i = 0; i < 15; i++)
        ck_assert(output[i].nonzero == 0 && assay_fp8_gemm_mx_value(&output[i]) == 0);
}
END_TEST

/* Values that doubles add exactly, with a few zeros, infinities and NaN. */
static void fill_specials(int64_t rarity)
{
    static const uint8_t rare[] = { 0x00, 0x80, 0x7f, 0xff, 0x7c, 0xfc, 0x7c, 0xfc };
    static const uint8_t one[] = { 0x38, 0x3c, 0x02 };
    for (int side = 0; side < 2; side++) {
        const struct layout *const layout = layout_of(tensors.item[2 * side].format);
        const uint8_t plain = one[layout - layouts];
        for (size_t i = 0; i < sizeof codes[side]; i++)
            codes[side][i] = below(rarity)
                                 ? plain | (uint8_t)((draw() & 1) << layout->sign_place)
                                 : rare[below(8)];
        for (size_t i = 0; i < MOST_ROWS * MOST_K; i++)
            words[side][i] = below(rarity) ? 0x807f7f80 : 0x7fffff80;
    }
}

START_TEST(nan_and_infinities_are_those_of_ieee_arithmetic)
{
    int nans = 0, infinities = 0, finite = 0;
    state = 3;
    for (int i = 0; i < 300; i++) {
        draw_problem();
        problem.k = 1 + below(60);
        problem.gran_k = 10;
        shape();
        fill_specials(40 << below(6));
        assay_fp8_gemm_mx_oracle_close(opened(0));
        const struct assay_fp8_gemm_tile_range range =
            assay_fp8_gemm_part_range(&problem, 0);
        for (int64_t at = 0; at < range.rows * range.columns; at++) {
            const int64_t m = at / range.columns, n = at % range.columns;
            double expected = 0;
            for (int64_t k = 0; k < problem.k; k++)
                expected += value_at(0, m, k) * value_at(1, n, k) * scale_at(m, n, k);
            const double found = assay_fp8_gemm_mx_value(&output[at]);
            nans += isnan(expected) != 0;
            infinities += isinf(expected) != 0;
            finite += isfinite(expected) != 0;
            ck_assert_msg(isnan(expected) ? isnan(found) : found == expected,
                          "element %d: %g instead of %g", (int)at, found, expected);
        }
    }
    ck_assert_int_gt(nans, 1000);
    ck_assert_int_gt(infinities, 1000);
    ck_assert_int_gt(finite, 1000);
}
END_TEST

/* Exponents from the smallest unit of a product to beyond the largest. */
START_TEST(residues_are_what_truncating_each_product_loses)
{
    static int exponent[TILE];
    static double residue[TILE];
    int64_t partial = 0;
    state = 4;
    for (int i = 0; i < 90; i++) {
        draw_problem();
        problem.m = problem.n = 8;
        shape();
        fill((enum contents)(i % CONTENTS), (enum scales)(i % 2));
        struct assay_fp8_gemm_mx_oracle *const oracle = opened(0);
        for (int at = 0; at < 64; at++)
            exponent[at] = output[at].nonzero ? output[at].unit - 3 + (int)below(70) : 0;
        assay_fp8_gemm_mx_oracle_residues(oracle, exponent, residue);
        assay_fp8_gemm_mx_oracle_close(oracle);
        for (int at = 0; at < 64; at++) {
            double expected = 0;
            for (int64_t k = 0; k < problem.k; k++)
                expected += fmod(fabs(value_at(0, at / 8, k) * value_at(1, at % 8, k) *
                                      scale_at(at / 8, at % 8, k)),
                                 ldexp(1, exponent[at]));
            ck_assert_double_ge(residue[at], expected * (1 - 0x1p-20));
            ck_assert_double_le(residue[at], expected * (1 + 0x1p-20));
            partial += expected > 0 && expected < output[at].magnitude / 2;
        }
    }
    ck_assert_int_gt(partial, 500);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        sums_and_facts_are_exact_for_every_kind_of_input,
        sums_of_largest_products_are_exact,
        every_code_and_every_scale_has_its_value,
        an_empty_sum_is_zero,
        nan_and_infinities_are_those_of_ieee_arithmetic,
        residues_are_what_truncating_each_product_loses,
        NULL,
    };
    return run_tests("oracle_fp8_gemm_mx", tests);
}
