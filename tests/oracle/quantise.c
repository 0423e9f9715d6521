/* SPDX-License-Identifier: MIT */
/* The quantiser oracle against quotients that MPFR rounds once, integers, and a search
 * over all codes. */
#include "ref/oracle/quantise.h"

#include "tests/harness.h"

#include <math.h>
#include <mpfr.h>
#include <string.h>

enum { LARGEST_M = 140, LARGEST_K = 1100, TILE = 128 * 1024 };

static const struct assay_quantise_rules deepgemm;

static struct fixture {
    struct assay_quantise_problem problem;
    struct assay_tensors tensors;
    float x[LARGEST_M * LARGEST_K];
    uint16_t half[LARGEST_M * LARGEST_K];
    double q[TILE], sf[TILE];
} fixture;

static uint64_t state;

static uint32_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 32);
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Row padding and what lies behind the last row is NaN. */
static void shape(const struct assay_quantise_problem *problem, enum assay_format format,
                  int64_t stride)
{
    fixture.problem = *problem;
    fixture.tensors.count = 1;
    fixture.tensors.item[0] = (struct assay_tensor){
        .name = "x",
        .format = format,
        .rank = 2,
        .shape = { problem->m, problem->k },
        .stride = { stride, 1 },
        .data = format == ASSAY_F32 ? (void *)fixture.x : (void *)fixture.half,
    };
    memset(fixture.x, 0xFF, sizeof(fixture.x));
    memset(fixture.half, 0xFF, sizeof(fixture.half));
}

static void set_bits(int64_t row, int64_t column, uint32_t bits)
{
    const int64_t element = row * fixture.tensors.item[0].stride[0] + column;
    fixture.half[element] = (uint16_t)(bits >> 16);
    fixture.x[element] = float_of(bits);
}

static double x_at(int64_t row, int64_t column)
{
    const struct assay_tensor *const x = &fixture.tensors.item[0];
    const int64_t element = row * x->stride[0] + column;
    return (double)(x->format == ASSAY_F32
                        ? fixture.x[element]
                        : float_of((uint32_t)fixture.half[element] << 16));
}

/* x * 448 / amax, rounded once. */
static double rounded_quotient(double x, double numerator, double denominator)
{
    mpfr_t exact;
    mpfr_init2(exact, 200);
    mpfr_set_d(exact, x, MPFR_RNDN);
    mpfr_mul_d(exact, exact, numerator, MPFR_RNDN);
    mpfr_div_d(exact, exact, denominator, MPFR_RNDN);
    const double result = mpfr_get_d(exact, MPFR_RNDN);
    mpfr_clear(exact);
    return result;
}

static double amax_of(int64_t i, int64_t j)
{
    const struct assay_quantise_problem *const p = &fixture.problem;
    double amax = (double)1e-4f;
    for (int64_t row = i * p->gran_m; row < (i + 1) * p->gran_m && row < p->m; row++)
        for (int64_t k = j * p->gran_k; k < (j + 1) * p->gran_k && k < p->k; k++)
            amax = fmax(amax, fabs(x_at(row, k)));
    return amax;
}

/* By comparisons alone, which are exact. */
static double smallest_power(double amax)
{
    int exponent = -40;
    while (ldexp(448, exponent) < amax)
        exponent++;
    return ldexp(1, exponent);
}

static void check_part(const struct assay_quantise_rules *rules, int64_t part)
{
    const struct assay_quantise_problem *const p = &fixture.problem;
    const struct assay_quantise_range range = assay_quantise_part_range(p, part);
    const struct assay_quantise_range blocks = assay_quantise_blocks(p, &range);
    assay_quantise_oracle_part(p, rules, &fixture.tensors, part, fixture.q, fixture.sf);
    for (int64_t i = 0; i < blocks.rows; i++)
        for (int64_t j = 0; j < blocks.columns; j++) {
            const double amax = amax_of(blocks.m0 + i, blocks.k0 + j);
            const double power = smallest_power(amax);
            const bool is_power = p->has_power_of_two_scale;
            ck_assert(fixture.sf[i * blocks.columns + j] ==
                      (is_power ? power : rounded_quotient(1, amax, 448)));
            for (int64_t row = i * p->gran_m;
                 row < (i + 1) * p->gran_m && row < range.rows; row++)
                for (int64_t k = j * p->gran_k;
                     k < (j + 1) * p->gran_k && k < range.columns; k++) {
                    const double x = x_at(range.m0 + row, range.k0 + k);
                    const double right = is_power && !rules->by_raw_scale
                                             ? rounded_quotient(x, 1, power)
                                             : rounded_quotient(x, 448, amax);
                    ck_assert(fixture.q[row * range.columns + k] == right);
                }
        }
}

START_TEST(scales_and_quotients_are_rounded_once)
{
    static const struct {
        int64_t m, k, gran_m, gran_k, stride;
    } rows[] = {
        { 1, 1, 1, 128, 3 },      { 7, 129, 1, 128, 129 },     { 130, 33, 1, 32, 40 },
        { 3, 1060, 1, 32, 1060 }, { 131, 140, 128, 128, 141 }, { 33, 70, 32, 32, 70 },
    };
    for (int i = 0; i < 6; i++)
        for (int flags = 0; flags < 8; flags++) {
            const struct assay_quantise_problem problem = { rows[i].m, rows[i].k,
                                                            rows[i].gran_m,
                                                            rows[i].gran_k, flags & 1 };
            struct assay_quantise_rules rules = deepgemm;
            rules.by_raw_scale = flags >> 2;
            shape(&problem, flags & 2 ? ASSAY_F32 : ASSAY_BF16, rows[i].stride);
            state = (uint64_t)i;
            for (int64_t row = 0; row < problem.m; row++) {
                /* From subnormal rows to rows near the largest float. */
                const uint32_t exponent = draw() % 250;
                for (int64_t k = 0; k < problem.k; k++)
                    set_bits(row, k,
                             (draw() & 0x807FFFFF) | (exponent + draw() % 4) << 23);
            }
            for (int64_t part = 0; part < assay_quantise_parts(&problem); part++)
                check_part(&rules, part);
        }
}
END_TEST

static double scale_of(const struct assay_quantise_rules *rules, bool is_power, float x)
{
    const struct assay_quantise_problem problem = { 1, 1, 1, 128, is_power };
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    shape(&problem, ASSAY_F32, 1);
    set_bits(0, 0, bits);
    assay_quantise_oracle_part(&problem, rules, &fixture.tensors, 0, fixture.q,
                               fixture.sf);
    return fixture.sf[0];
}

START_TEST(powers_are_right_within_4_units_of_448_times_every_power_of_two)
{
    for (int exponent = -21; exponent <= 119; exponent++) {
        const float edge = ldexpf(448, exponent);
        float x = edge;
        for (int unit = 0; unit <= 4; unit++, x = nextafterf(x, INFINITY))
            ck_assert(scale_of(&deepgemm, true, x) == ldexp(1, exponent + (unit > 0)));
        x = edge;
        for (int unit = 0; unit <= 4; unit++, x = nextafterf(x, 0))
            ck_assert(scale_of(&deepgemm, true, x) == ldexp(1, exponent));
    }
    ck_assert(scale_of(&deepgemm, true, 0) == 0x1p-22);
}
END_TEST

/* A group of NaN, infinity, minus infinity and 2^120 under all rules. */
START_TEST(nan_and_infinity_follow_the_rules)
{
    const double nan = (double)NAN, infinity = (double)INFINITY;
    const struct {
        bool is_power;
        struct assay_quantise_rules rules;
        uint32_t first; /* bits of the group's first element */
        double sf, q[4];
    } rows[] = {
        { false, { 0 }, 0x7FC00000, nan, { nan, nan, nan, nan } },
        { false, { .ignores_nan = true }, 0x7FC00000, infinity, { nan, nan, nan, 0 } },
        { true, { 0 }, 0x7FC00000, 0x1p127, { nan, 448, -448, 0x1p-7 } },
        { true, { .keeps_nan_scale = true }, 0x7FC00000, nan, { nan, nan, nan, nan } },
        { true, { .by_raw_scale = true }, 0x7FC00000, 0x1p127, { nan, nan, nan, nan } },
        { true, { .by_raw_scale = true }, 0, 0x1p127, { 0, nan, nan, 0 } },
        { true, { .overflow_is_nan = true }, 0, 0x1p127, { 0, nan, nan, 0x1p-7 } },
        { true, { .keeps_nan_scale = true }, 0, 0x1p127, { 0, 448, -448, 0x1p-7 } },
        { true,
          { .ignores_nan = true },
          0x7FC00000,
          0x1p127,
          { nan, 448, -448, 0x1p-7 } },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct assay_quantise_problem problem = { 1, 4, 1, 128, rows[i].is_power };
        const uint32_t bits[4] = { rows[i].first, 0x7F800000, 0xFF800000, 0x7B800000 };
        shape(&problem, ASSAY_F32, 4);
        for (int k = 0; k < 4; k++)
            set_bits(0, k, bits[k]);
        assay_quantise_oracle_part(&problem, &rows[i].rules, &fixture.tensors, 0,
                                   fixture.q, fixture.sf);
        const double sf = rows[i].sf;
        ck_assert_msg(isnan(sf) ? isnan(fixture.sf[0]) : fixture.sf[0] == sf, "%zu", i);
        for (int k = 0; k < 4; k++) {
            const double q = rows[i].q[k];
            ck_assert_msg(isnan(q) ? isnan(fixture.q[k]) : fixture.q[k] == q, "%zu, %d",
                          i, k);
        }
    }
}
END_TEST

static double code_value(int code)
{
    return code < 8 ? code * 0x1p-9 : ldexp(8 + code % 8, code / 8 - 10);
}

START_TEST(nearest_is_right_at_every_code_and_around_every_tie)
{
    for (int code = 0; code < 126; code++) {
        const double low = code_value(code), high = code_value(code + 1);
        const double tie = (low + high) / 2, even = code % 2 ? high : low;
        for (int sign = -1; sign <= 1; sign += 2) {
            ck_assert(assay_e4m3_nearest(sign * low) == sign * low);
            ck_assert(assay_e4m3_nearest(sign * nextafter(low, 1e9)) == sign * low);
            ck_assert(assay_e4m3_nearest(sign * nextafter(high, 0)) == sign * high);
            ck_assert(assay_e4m3_nearest(sign * tie) == sign * even);
            ck_assert(assay_e4m3_nearest(sign * nextafter(tie, 0)) == sign * low);
            ck_assert(assay_e4m3_nearest(sign * nextafter(tie, 1e9)) == sign * high);
        }
    }
    ck_assert(assay_e4m3_nearest(448) == 448);
    ck_assert(assay_e4m3_nearest(-1e30) == -448);
    ck_assert(assay_e4m3_nearest(0x1p-1074) == 0);
    ck_assert(isnan(assay_e4m3_nearest((double)NAN)));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        scales_and_quotients_are_rounded_once,
        powers_are_right_within_4_units_of_448_times_every_power_of_two,
        nan_and_infinity_follow_the_rules,
        nearest_is_right_at_every_code_and_around_every_tie,
        NULL,
    };
    return run_tests("quantise", tests);
}
