/* SPDX-License-Identifier: MIT */
/* The FP8 GEMM oracle against sums that MPFR adds without rounding, and its special
 * values against the same loop in double arithmetic. */
#include "ref/oracle/fp8_gemm.h"

#include "tests/harness.h"

#include <cblas.h>
#include <math.h>
#include <mpfr.h>
#include <string.h>

enum { LARGEST_M = 80, LARGEST_N = 72, LARGEST_K = 700, PADDING = 5, PRECISION = 1200 };

enum contents { RANDOM_CODES, SMALL_CODES, POSITIVE, CANCELLING, SPARSE, CONTENTS };
enum scales { ONES, NORMAL_SCALES, ANY_FINITE_SCALES, SCALES };

struct fixture {
    struct assay_fp8_gemm_problem problem;
    struct assay_tensors tensors;
    uint8_t a[LARGEST_M * (LARGEST_K + PADDING)], b[LARGEST_N * (LARGEST_K + PADDING)];
    float sfa[LARGEST_M * LARGEST_K], sfb[LARGEST_N * LARGEST_K];
    float c[LARGEST_M * (LARGEST_N + PADDING)], d[LARGEST_M * (LARGEST_N + PADDING)];
};

static struct fixture fixture;
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

static bool is_finite_code(enum assay_format format, unsigned code)
{
    return format == ASSAY_E4M3 ? (code & 0x7f) != 0x7f : (code & 0x7c) != 0x7c;
}

static double code_value(enum assay_format format, unsigned code)
{
    const int bits = format == ASSAY_E4M3 ? 3 : 2, bias = format == ASSAY_E4M3 ? 7 : 15;
    const int field = (int)(code & 0x7f) >> bits;
    const double fraction = (double)(code & ((1u << bits) - 1)) / (1 << bits);
    const double sign = code & 0x80 ? -1 : 1;
    if (!is_finite_code(format, code)) {
        const bool is_infinite = format == ASSAY_E5M2 && (code & 3) == 0;
        return is_infinite ? sign * (double)INFINITY : (double)NAN;
    }
    return sign *
           (field ? (1 + fraction) * exp2(field - bias) : fraction * exp2(1 - bias));
}

static void add_tensor(const char *name, enum assay_format format, int64_t rows,
                       int64_t columns, int64_t stride, void *data)
{
    fixture.tensors.item[fixture.tensors.count++] = (struct assay_tensor){
        .name = name,
        .format = format,
        .rank = 2,
        .shape = { rows, columns },
        .stride = { stride, 1 },
        .data = data,
    };
}

static int64_t blocks(int64_t count, int64_t granularity)
{
    const int64_t covered = (count + granularity - 1) / granularity;
    return covered ? covered : 1;
}

static void shape(const struct assay_fp8_gemm_problem *problem, enum assay_format a,
                  enum assay_format b)
{
    const int64_t m = problem->m, n = problem->n, k = problem->k;
    const int64_t k_blocks = blocks(k, problem->gran_k);
    fixture.problem = *problem;
    fixture.tensors.count = 0;
    add_tensor("a", a, m, k, k + below(PADDING), fixture.a);
    add_tensor("b", b, n, k, k + below(PADDING), fixture.b);
    add_tensor("sfa", ASSAY_F32, blocks(m, problem->gran_m), k_blocks, k_blocks,
               fixture.sfa);
    add_tensor("sfb", ASSAY_F32, blocks(n, problem->gran_n), k_blocks, k_blocks,
               fixture.sfb);
    if (problem->has_c) add_tensor("c", ASSAY_F32, m, n, n + below(PADDING), fixture.c);
    add_tensor("d", ASSAY_F32, m, n, n + below(PADDING), fixture.d);
}

static unsigned code_of(enum contents contents, enum assay_format format)
{
    unsigned code;
    do {
        code = draw() >> 24;
        if (contents == SMALL_CODES) code &= 0x87;
        if (contents == POSITIVE) code &= 0x7f;
        if (contents == SPARSE && draw() >> 28) code = 0;
    } while (!is_finite_code(format, code));
    return code;
}

static void fill_codes(uint8_t *codes, size_t size, enum contents contents,
                       enum assay_format format, bool is_negated)
{
    for (size_t i = 0; i < size; i++) {
        codes[i] = (uint8_t)code_of(contents, format);
        /* Products of columns 2j and 2j + 1 cancel where a keeps the code, b its sign. */
        if (contents == CANCELLING && i % 2 && below(16))
            codes[i] = codes[i - 1] ^ (is_negated ? 0x80 : 0);
    }
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void fill_floats(float *values, size_t size, enum scales scales)
{
    for (size_t i = 0; i < size; i++)
        do {
            values[i] = scales == ONES            ? 1.0f
                        : scales == NORMAL_SCALES ? (float)draw() * 0x1p-31f - 0.5f
                                                  : float_of(draw());
        } while (!isfinite(values[i]));
}

static void fill(enum contents contents, enum scales scales)
{
    const struct assay_tensor *const item = fixture.tensors.item;
    fill_codes(fixture.a, sizeof fixture.a, contents, item[0].format, true);
    fill_codes(fixture.b, sizeof fixture.b, contents, item[1].format, false);
    fill_floats(fixture.sfa, sizeof fixture.sfa / sizeof(float), scales);
    fill_floats(fixture.sfb, sizeof fixture.sfb / sizeof(float), scales);
    fill_floats(fixture.c, sizeof fixture.c / sizeof(float), scales);
}

static void fill_with_largest(void)
{
    const struct assay_tensor *const item = fixture.tensors.item;
    memset(fixture.a, item[0].format == ASSAY_E4M3 ? 0x7e : 0x7b, sizeof fixture.a);
    memset(fixture.b, item[1].format == ASSAY_E4M3 ? 0x7e : 0x7b, sizeof fixture.b);
}

static double a_at(int64_t m, int64_t k)
{
    const struct assay_tensor *const a = &fixture.tensors.item[0];
    return code_value(a->format, fixture.a[m * a->stride[0] + k]);
}

static double b_at(int64_t n, int64_t k)
{
    const struct assay_tensor *const b = &fixture.tensors.item[1];
    return code_value(b->format, fixture.b[n * b->stride[0] + k]);
}

/* sfa * sfb that element (m, n) meets at k: 48 bits at most, exact. */
static double scale_at(int64_t m, int64_t n, int64_t k)
{
    const struct assay_fp8_gemm_problem *const problem = &fixture.problem;
    const int64_t columns = blocks(problem->k, problem->gran_k);
    return (double)fixture.sfa[m / problem->gran_m * columns + k / problem->gran_k] *
           (double)fixture.sfb[n / problem->gran_n * columns + k / problem->gran_k];
}

static double c_at(int64_t m, int64_t n)
{
    if (!fixture.problem.has_c) return 0;
    return (double)fixture.c[m * fixture.tensors.item[4].stride[0] + n];
}

/* Adds every product on its own; nothing is rounded (asserted). Returns the sum of
 * magnitudes. */
static double add_exactly(int64_t m, int64_t n, mpfr_t sum)
{
    mpfr_t product;
    mpfr_init2(product, PRECISION);
    mpfr_set_d(sum, c_at(m, n), MPFR_RNDN);
    double magnitude = fabs(c_at(m, n));
    for (int64_t k = 0; k < fixture.problem.k; k++) {
        const double codes = a_at(m, k) * b_at(n, k), scale = scale_at(m, n, k);
        ck_assert_int_eq(mpfr_set_d(product, codes, MPFR_RNDN), 0);
        ck_assert_int_eq(mpfr_mul_d(product, product, scale, MPFR_RNDN), 0);
        ck_assert_int_eq(mpfr_add(sum, sum, product, MPFR_RNDN), 0);
        magnitude += fabs(codes * scale);
    }
    mpfr_clear(product);
    return magnitude;
}

/* Half a unit in the last place of a double, and the pairs' error. */
static void check_element(int64_t m, int64_t n, double value)
{
    mpfr_t exact, error;
    mpfr_inits2(PRECISION, exact, error, (mpfr_ptr)0);
    const double magnitude = add_exactly(m, n, exact);
    const double k_blocks = (double)blocks(fixture.problem.k, fixture.problem.gran_k);
    const double allowed = 0x1.0001p-53 * fabs(value) +
                           (k_blocks + 1) * ASSAY_FP8_GEMM_ORACLE_ERROR * magnitude;
    mpfr_sub_d(error, exact, value, MPFR_RNDN);
    ck_assert_msg(fabs(mpfr_get_d(error, MPFR_RNDA)) <= allowed,
                  "element %d, %d: %a is off by %a, more than %a", (int)m, (int)n, value,
                  mpfr_get_d(error, MPFR_RNDA), allowed);
    mpfr_clears(exact, error, (mpfr_ptr)0);
}

static void check_elements(int elements)
{
    static double value[ASSAY_FP8_GEMM_TILE];
    for (int i = 0; i < elements; i++) {
        const int64_t part = below(assay_fp8_gemm_parts(&fixture.problem));
        const struct assay_fp8_gemm_tile_range range =
            assay_fp8_gemm_part_range(&fixture.problem, part);
        ck_assert(
            assay_fp8_gemm_oracle_part(&fixture.problem, &fixture.tensors, part, value));
        for (int j = 0; j < 6; j++) {
            const int64_t row = below(range.rows), column = below(range.columns);
            check_element(range.m0 + row, range.n0 + column,
                          value[row * range.columns + column]);
        }
    }
}

static struct assay_fp8_gemm_problem draw_problem(void)
{
    static const int64_t granularities[] = { 1, 2, 32, 100, 128, 256, 100000 };
    struct assay_fp8_gemm_problem problem = {
        .m = 1 + below(LARGEST_M),
        .n = 1 + below(LARGEST_N),
        .k = below(LARGEST_K + 1),
        .gran_m = granularities[below(7)],
        .gran_n = granularities[below(7)],
        .gran_k = granularities[below(7)],
        .has_c = below(2),
    };
    return problem;
}

static enum assay_format draw_format(void)
{
    return below(2) ? ASSAY_E4M3 : ASSAY_E5M2;
}

START_TEST(value_is_the_exact_sum_rounded_for_every_kind_of_input)
{
    state = 1;
    for (int i = 0; i < 300; i++) {
        const struct assay_fp8_gemm_problem problem = draw_problem();
        shape(&problem, draw_format(), draw_format());
        fill((enum contents)(i % CONTENTS), (enum scales)(i / CONTENTS % SCALES));
        check_elements(2);
    }
}
END_TEST

START_TEST(value_of_a_sum_of_largest_products_is_exact)
{
    state = 2;
    for (int i = 0; i < 4; i++) {
        const enum assay_format a = i & 1 ? ASSAY_E4M3 : ASSAY_E5M2;
        const enum assay_format b = i & 2 ? ASSAY_E4M3 : ASSAY_E5M2;
        const struct assay_fp8_gemm_problem problem = { 64, 64,   LARGEST_K, 1,
                                                        1,  1000, false };
        shape(&problem, a, b);
        fill(RANDOM_CODES, ONES);
        fill_with_largest();
        /* ... plus one smallest product, the other end of the range of units. */
        fixture.a[fixture.tensors.item[0].stride[0] * 3] = 1;
        fixture.b[fixture.tensors.item[1].stride[0] * 5] = 1;
        double value[ASSAY_FP8_GEMM_TILE];
        ck_assert(assay_fp8_gemm_oracle_part(&problem, &fixture.tensors, 0, value));
        check_element(3, 5, value[3 * 64 + 5]);
        check_element(3, 6, value[3 * 64 + 6]);
        check_element(0, 0, value[0]);
    }
}
END_TEST

START_TEST(every_code_of_both_formats_times_one_is_its_value)
{
    const enum assay_format formats[] = { ASSAY_E4M3, ASSAY_E5M2 };
    const uint8_t one[] = { 0x38, 0x3c };
    state = 3;
    for (int i = 0; i < 2; i++)
        for (unsigned code = 0; code < 256; code++) {
            const struct assay_fp8_gemm_problem problem = { 1, 1, 1, 1, 1, 1, false };
            double value;
            shape(&problem, formats[i], formats[!i]);
            fill(RANDOM_CODES, ONES);
            fixture.a[0] = (uint8_t)code;
            fixture.b[0] = one[!i];
            ck_assert(assay_fp8_gemm_oracle_part(&problem, &fixture.tensors, 0, &value));
            const double expected = code_value(formats[i], code);
            ck_assert_msg(value == expected || (isnan(value) && isnan(expected)),
                          "code %02x of %s: %g instead of %g", code,
                          assay_format_name(formats[i]), value, expected);
        }
}
END_TEST

START_TEST(without_products_the_value_is_c)
{
    const struct assay_fp8_gemm_problem problem = { 70, 66, 0, 1, 128, 128, true };
    double value[ASSAY_FP8_GEMM_TILE];
    state = 4;
    shape(&problem, ASSAY_E4M3, ASSAY_E4M3);
    fill(RANDOM_CODES, ANY_FINITE_SCALES);
    for (int64_t part = 0; part < assay_fp8_gemm_parts(&problem); part++) {
        const struct assay_fp8_gemm_tile_range range =
            assay_fp8_gemm_part_range(&problem, part);
        ck_assert(assay_fp8_gemm_oracle_part(&problem, &fixture.tensors, part, value));
        for (int64_t i = 0; i < range.rows * range.columns; i++)
            ck_assert_double_eq(value[i], c_at(range.m0 + i / range.columns,
                                               range.n0 + i % range.columns));
    }
}
END_TEST

/* What IEEE 754 gives without rounding: a block's products, then the scales. */
static double add_with_specials(int64_t m, int64_t n)
{
    double total = c_at(m, n);
    for (int64_t k0 = 0; k0 < fixture.problem.k; k0 += fixture.problem.gran_k) {
        double block = 0;
        for (int64_t k = k0; k < fixture.problem.k && k < k0 + fixture.problem.gran_k;
             k++)
            block += a_at(m, k) * b_at(n, k);
        total += scale_at(m, n, k0) * block;
    }
    return total;
}

/* Ones with a few zeros, infinities, NaN and (in e4m3) 384: doubles add them exactly. */
static void fill_special_codes(uint8_t *codes, size_t size, enum assay_format format,
                               int rarity)
{
    static const uint8_t rare[] = { 0x00, 0x80, 0x7f, 0xff, 0x7c, 0xfc, 0x7c, 0xfc };
    const uint8_t one = format == ASSAY_E4M3 ? 0x38 : 0x3c;
    for (size_t i = 0; i < size; i++)
        codes[i] = below(rarity) ? one | (uint8_t)(draw() >> 31 << 7) : rare[below(8)];
}

static void fill_specials(int rarity)
{
    static const float rare[] = { (float)NAN, INFINITY, -INFINITY, 0.0f, -0.0f };
    const struct assay_tensor *const item = fixture.tensors.item;
    fill_special_codes(fixture.a, sizeof fixture.a, item[0].format, rarity);
    fill_special_codes(fixture.b, sizeof fixture.b, item[1].format, rarity);
    float *const floats[] = { fixture.sfa, fixture.sfb, fixture.c };
    for (int which = 0; which < 3; which++)
        for (int64_t i = 0; i < LARGEST_M * LARGEST_N; i++)
            floats[which][i] = below(rarity) ? 1.0f + (float)below(2) : rare[below(5)];
}

START_TEST(nan_and_infinities_are_those_of_ieee_arithmetic)
{
    static double value[ASSAY_FP8_GEMM_TILE];
    int nans = 0, infinities = 0, finite = 0;
    state = 5;
    for (int i = 0; i < 200; i++) {
        struct assay_fp8_gemm_problem problem = draw_problem();
        problem.k = 1 + below(60);
        problem.gran_k = 10;
        shape(&problem, draw_format(), draw_format());
        fill_specials(40 << below(6));
        ck_assert(assay_fp8_gemm_oracle_part(&problem, &fixture.tensors, 0, value));
        const struct assay_fp8_gemm_tile_range range =
            assay_fp8_gemm_part_range(&problem, 0);
        for (int64_t at = 0; at < range.rows * range.columns; at++) {
            const double expected =
                add_with_specials(at / range.columns, at % range.columns);
            nans += isnan(expected) != 0;
            infinities += isinf(expected) != 0;
            finite += isfinite(expected) != 0;
            ck_assert_msg(isnan(expected) ? isnan(value[at]) : value[at] == expected,
                          "element %d: %g instead of %g", (int)at, value[at], expected);
        }
    }
    ck_assert_int_gt(nans, 1000);
    ck_assert_int_gt(infinities, 1000);
    ck_assert_int_gt(finite, 1000);
}
END_TEST

/* Facts of the range in hand, from the codes one by one. */
static void check_facts(const struct assay_fp8_gemm_oracle *oracle, int64_t k0,
                        int64_t k_count, int64_t m, int64_t n)
{
    const enum assay_format format[] = { fixture.tensors.item[0].format,
                                         fixture.tensors.item[1].format };
    double magnitude = 0;
    int64_t nonzero = 0;
    for (int64_t k = k0; k < k0 + k_count; k++) {
        const double factors[] = { a_at(m, k), b_at(n, k) };
        const int64_t row[] = { m, n };
        double padded[2];
        for (int i = 0; i < 2; i++) {
            const double smallest = format[i] == ASSAY_E4M3 ? 0x1p-6 : 0x1p-14;
            const struct assay_fp8_gemm_side *const side = &oracle->side[i];
            padded[i] = fmax(fabs(factors[i]), smallest);
            if (factors[i] == 0) continue;
            ck_assert_double_eq(fmod(factors[i], exp2(side->lsb[row[i]])), 0);
            ck_assert_int_ge(side->exponent[row[i]], ilogb(padded[i]));
        }
        if (factors[0] == 0 || factors[1] == 0) continue;
        nonzero++;
        magnitude += padded[0] * padded[1];
    }
    const double found = oracle->magnitude[m * ASSAY_FP8_GEMM_COLUMNS + n];
    ck_assert_double_eq(oracle->nonzero[m * ASSAY_FP8_GEMM_COLUMNS + n], (double)nonzero);
    if (format[0] == ASSAY_E4M3 && format[1] == ASSAY_E4M3)
        ck_assert_double_eq(found, magnitude);
    ck_assert_double_ge(found, magnitude * (1 - 0x1p-40));
    ck_assert_double_le(found, magnitude * (1 + 0x1p-22));
}

START_TEST(facts_for_the_bound_hold_for_each_product)
{
    state = 6;
    for (int i = 0; i < 40; i++) {
        const int64_t k = 1 + below(LARGEST_K);
        const struct assay_fp8_gemm_problem problem = { 20, 30, k, 1, 1, k, false };
        shape(&problem, draw_format(), draw_format());
        fill((enum contents)(i % CONTENTS), ONES);
        struct assay_fp8_gemm_oracle *const oracle =
            assay_fp8_gemm_oracle_open(&problem, &fixture.tensors, 0);
        ck_assert_ptr_nonnull(oracle);
        const int64_t k0 = below(k), k_count = 1 + below(k - k0);
        assay_fp8_gemm_oracle_range(oracle, k0, k_count);
        for (int64_t m = 0; m < 20; m++)
            for (int64_t n = 0; n < 30; n += 7)
                check_facts(oracle, k0, k_count, m, n);
        assay_fp8_gemm_oracle_close(oracle);
    }
}
END_TEST

static double lost(int64_t m, int64_t n, int64_t k0, int64_t k_count, int exponent)
{
    double sum = 0;
    for (int64_t k = k0; k < k0 + k_count; k++)
        sum += fmod(fabs(a_at(m, k) * b_at(n, k)), exp2(exponent));
    return sum;
}

static void check_residues(struct assay_fp8_gemm_oracle *oracle, int64_t k0,
                           int64_t k_count)
{
    static int exponent[ASSAY_FP8_GEMM_TILE];
    static double residue[ASSAY_FP8_GEMM_TILE];
    for (int at = 0; at < ASSAY_FP8_GEMM_TILE; at++)
        exponent[at] = (int)below(72) - 34;
    assay_fp8_gemm_oracle_range(oracle, k0, k_count);
    assay_fp8_gemm_oracle_residues(oracle, exponent, residue);
    for (int64_t m = 0; m < oracle->side[0].count; m++)
        for (int64_t n = 0; n < oracle->side[1].count; n++) {
            const int64_t at = m * ASSAY_FP8_GEMM_COLUMNS + n;
            const double expected = lost(m, n, k0, k_count, exponent[at]);
            ck_assert_double_ge(residue[at], expected * (1 - 0x1p-40));
            ck_assert_double_le(residue[at], expected * (1 + 0x1p-40));
        }
}

/* Exponents from the smallest unit of a product to beyond the largest. */
START_TEST(residues_are_what_truncating_each_product_loses)
{
    state = 7;
    for (int i = 0; i < 240; i++) {
        const int64_t k = 1 + below(i % 2 ? 20 : LARGEST_K);
        const struct assay_fp8_gemm_problem problem = { 9, 8, k, 1, 1, k, false };
        shape(&problem, draw_format(), draw_format());
        fill((enum contents)(i % CONTENTS), ONES);
        if (i % 7 == 0) fill_with_largest();
        struct assay_fp8_gemm_oracle *const oracle =
            assay_fp8_gemm_oracle_open(&problem, &fixture.tensors, 0);
        ck_assert_ptr_nonnull(oracle);
        if (i % 3 == 0) oracle->is_portable = true;
        /* Longer rows first, so that what a slice leaves behind would be counted. */
        const int64_t k_count = 1 + below(k);
        check_residues(oracle, 0, k);
        check_residues(oracle, k - k_count, k_count);
        assay_fp8_gemm_oracle_close(oracle);
    }
}
END_TEST

static void check_same_lines(const double *expected, const double *found,
                             const struct assay_fp8_gemm_oracle *oracle, double allowed)
{
    for (int64_t i = 0; i < oracle->side[0].count; i++)
        for (int64_t j = 0; j < oracle->side[1].count; j++) {
            const int64_t at = i * ASSAY_FP8_GEMM_COLUMNS + j;
            ck_assert_double_le(fabs(found[at] - expected[at]), allowed * expected[at]);
        }
}

/* Sums are the same doubles. Magnitudes and residues of wide sums are rounded. */
START_TEST(special_instructions_change_nothing)
{
    static double plain[ASSAY_FP8_GEMM_TILE], fast[ASSAY_FP8_GEMM_TILE];
    static int exponent[ASSAY_FP8_GEMM_TILE];
    state = 8;
    for (int i = 0; i < 60; i++) {
        const int64_t k = 1 + below(i % 2 ? 40 : LARGEST_K);
        const struct assay_fp8_gemm_problem problem = {
            1 + below(64), 1 + below(64), k, 1, 1, k, false
        };
        const enum assay_format a = draw_format(), b = draw_format();
        shape(&problem, a, b);
        fill((enum contents)(i % CONTENTS), NORMAL_SCALES);
        struct assay_fp8_gemm_oracle *const portable =
            assay_fp8_gemm_oracle_open(&problem, &fixture.tensors, 0);
        struct assay_fp8_gemm_oracle *const oracle =
            assay_fp8_gemm_oracle_open(&problem, &fixture.tensors, 0);
        ck_assert(portable && oracle);
        portable->is_portable = true;
        assay_fp8_gemm_oracle_range(portable, 0, k);
        assay_fp8_gemm_oracle_range(oracle, 0, k);
        for (int at = 0; at < ASSAY_FP8_GEMM_TILE; at++)
            exponent[at] = (int)below(60) - 30;
        assay_fp8_gemm_oracle_residues(portable, exponent, plain);
        assay_fp8_gemm_oracle_residues(oracle, exponent, fast);
        const double allowed = a == ASSAY_E4M3 && b == ASSAY_E4M3 ? 0 : 0x1p-44;
        check_same_lines(plain, fast, oracle, allowed);
        check_same_lines(portable->magnitude, oracle->magnitude, oracle, allowed);
        check_same_lines(portable->nonzero, oracle->nonzero, oracle, 0);
        for (int64_t m = 0; m < problem.m; m++)
            for (int64_t n = 0; n < problem.n; n++) {
                const struct assay_pair expected =
                    assay_fp8_gemm_oracle_total(portable, m, n);
                const struct assay_pair found = assay_fp8_gemm_oracle_total(oracle, m, n);
                ck_assert_double_eq(found.high, expected.high);
                ck_assert_double_eq(found.low, expected.low);
            }
        assay_fp8_gemm_oracle_close(portable);
        assay_fp8_gemm_oracle_close(oracle);
    }
}
END_TEST

int main(void)
{
    openblas_set_num_threads(1);
    const TTest *const tests[] = {
        value_is_the_exact_sum_rounded_for_every_kind_of_input,
        value_of_a_sum_of_largest_products_is_exact,
        every_code_of_both_formats_times_one_is_its_value,
        without_products_the_value_is_c,
        nan_and_infinities_are_those_of_ieee_arithmetic,
        facts_for_the_bound_hold_for_each_product,
        residues_are_what_truncating_each_product_loses,
        special_instructions_change_nothing,
        NULL,
    };
    return run_tests("oracle_fp8_gemm", tests);
}
