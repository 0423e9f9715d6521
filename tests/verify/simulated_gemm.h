/* SPDX-License-Identifier: MIT */
/* An FP8 GEMM for testing bounds, written apart from the model: dot-adds in exact double
 * arithmetic, f32 promotion in every form, products and chains in random order. One
 * program, one problem at a time. */
#ifndef ASSAY_TESTS_VERIFY_SIMULATED_GEMM_H
#define ASSAY_TESTS_VERIFY_SIMULATED_GEMM_H

#include "tests/harness.h"
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt_bound.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

enum { MOST_ROWS = 24, MOST_COLUMNS = 20, MOST_K = 640 };

enum form { PRODUCT_FIRST, A_THEN_B, B_THEN_A, FORMS };

struct setup {
    char name[40]; /* for messages */
    struct assay_fp8_gemm_problem problem;
    struct assay_fp8_gemm_precision precision;
    enum assay_format a, b, d;
    enum form form;
    bool is_fused;
};

static struct setup setup;
static struct assay_tensors tensors;
static uint8_t a_codes[MOST_ROWS * MOST_K], b_codes[MOST_COLUMNS * MOST_K];
static float sfa[MOST_ROWS * MOST_K], sfb[MOST_COLUMNS * MOST_K];
static float c_values[MOST_ROWS * MOST_COLUMNS];
static double value[64 * 64], bound[64 * 64];
static uint64_t state;

static inline uint32_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 32);
}

static inline int64_t below(int64_t limit)
{
    return (int64_t)(draw() % (uint64_t)limit);
}

struct code { /* value, and the exponent that alignment sees */
    double value;
    int exponent;
};

static inline struct code decode(enum assay_format format, unsigned bits)
{
    const int mantissa_bits = format == ASSAY_E4M3 ? 3 : 2;
    const int field = (int)(bits & 0x7f) >> mantissa_bits;
    const int fraction = (int)bits & ((1 << mantissa_bits) - 1);
    const double sign = bits & 0x80 ? -1 : 1;
    if (format == ASSAY_E4M3 && (bits & 0x7f) == 0x7f)
        return (struct code){ (double)NAN, 0 };
    if (format == ASSAY_E5M2 && field == 31)
        return (struct code){ fraction ? (double)NAN : sign * (double)INFINITY, 0 };
    const int exponent = (field ? field : 1) - (format == ASSAY_E4M3 ? 7 : 15);
    const int significand = field ? fraction + (1 << mantissa_bits) : fraction;
    return (struct code){ sign * ldexp(significand, exponent - mantissa_bits), exponent };
}

static struct code table[2][256];

static inline struct code decoded(enum assay_format format, unsigned bits)
{
    return table[format == ASSAY_E5M2][bits];
}

static inline double cut(double x, int quantum_exponent)
{
    return ldexp(trunc(ldexp(x, -quantum_exponent)), quantum_exponent);
}

/* One group of products onto @accumulator. */
static inline double dot_add(double accumulator, const struct code *a,
                             const struct code *b, int count)
{
    const int align = setup.precision.align_bits,
              result_bits = setup.precision.result_bits;
    double plain = accumulator;
    int largest = accumulator != 0 && isfinite(accumulator) ? ilogb(accumulator) : -999;
    for (int i = 0; i < count; i++) {
        const double product = a[i].value * b[i].value;
        const int exponent = a[i].exponent + b[i].exponent;
        plain += product;
        if (product != 0 && exponent > largest) largest = exponent;
    }
    if (!isfinite(plain)) return plain;
    if (largest == -999) return 0;

    double sum = cut(accumulator, largest - align);
    for (int i = 0; i < count; i++)
        sum += cut(a[i].value * b[i].value, largest - align);
    return sum == 0 ? 0 : cut(sum, ilogb(sum) - result_bits);
}

/* All products of one instruction; they lie one after the other. */
static inline double instruction(double accumulator, const struct code *a,
                                 const struct code *b)
{
    const struct assay_fp8_gemm_precision *const precision = &setup.precision;
    const int groups = precision->groups ? precision->groups : 1;
    const int count = precision->terms / groups;
    double sum = precision->adds_accumulator_last ? 0 : accumulator;
    for (int group = 0; group < groups; group++)
        sum = dot_add(sum, a + group * count, b + group * count, count);
    if (!precision->adds_accumulator_last) return sum;
    return (double)((float)sum + (float)accumulator);
}

static inline void shuffle(int64_t *order, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = below(i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

static inline float simulated_chain(int64_t row, int64_t column, int64_t k0,
                                    int64_t count)
{
    const int terms = setup.precision.terms;
    int64_t order[MOST_K];
    struct code a[64], b[64];
    double accumulator = 0;
    shuffle(order, count);
    for (int64_t done = 0; done < count; done += terms) {
        for (int i = 0; i < terms; i++) {
            const bool is_inside = done + i < count;
            const int64_t k = is_inside ? k0 + order[done + i] : 0;
            const uint8_t a_code = a_codes[row * setup.problem.k + k];
            const uint8_t b_code = b_codes[column * setup.problem.k + k];
            a[i] = decoded(setup.a, is_inside ? a_code : 0);
            b[i] = decoded(setup.b, is_inside ? b_code : 0);
        }
        accumulator = instruction(accumulator, a, b);
    }
    return (float)accumulator;
}

static inline float promoted(float final, float chain, float a, float b)
{
    float scale = setup.form == PRODUCT_FIRST ? a * b : setup.form == A_THEN_B ? b : a;
    if (setup.form == A_THEN_B) chain = chain * a;
    if (setup.form == B_THEN_A) chain = chain * b;
    if (setup.is_fused) return fmaf(scale, chain, final);
    const float product = scale * chain;
    return final + product;
}

static inline int64_t k_blocks(void)
{
    const int64_t covered =
        (setup.problem.k + setup.problem.gran_k - 1) / setup.problem.gran_k;
    return covered ? covered : 1;
}

static inline double simulated(int64_t row, int64_t column)
{
    const struct assay_fp8_gemm_problem *const problem = &setup.problem;
    const int64_t chain_k =
        setup.precision.chain_k ? setup.precision.chain_k : problem->k;
    const int64_t chains = problem->k ? (problem->k + chain_k - 1) / chain_k : 0;
    const float *const a = &sfa[row / problem->gran_m * k_blocks()];
    const float *const b = &sfb[column / problem->gran_n * k_blocks()];
    int64_t order[MOST_K];
    float final = 0;
    shuffle(order, chains);
    for (int64_t i = 0; i < chains; i++) {
        const int64_t k0 = order[i] * chain_k, rest = problem->k - k0;
        const float chain =
            simulated_chain(row, column, k0, rest < chain_k ? rest : chain_k);
        const int64_t block = k0 / problem->gran_k;
        if (setup.precision.is_scaled_at_end)
            final = final + chain;
        else
            final = promoted(final, chain, a[block], b[block]);
    }
    const float c = problem->has_c ? c_values[row * problem->n + column] : 0;
    const float scale = setup.precision.is_scaled_at_end ? a[0] * b[0] : 1;
    if (setup.is_fused) {
        final = fmaf(scale, final, c);
    } else {
        final = final * scale;
        final = final + c;
    }
    if (setup.d == ASSAY_F32 || isnan(final)) return (double) final;

    uint32_t bits;
    memcpy(&bits, &final, sizeof bits);
    if (!setup.precision.rounds_toward_zero) bits += 0x7fff + (bits >> 16 & 1);
    bits &= 0xffff0000;
    memcpy(&final, &bits, sizeof bits);
    return (double) final;
}

static inline uint8_t nearest_code(enum assay_format format, double wanted)
{
    unsigned best = 0;
    for (unsigned code = 0; code < 256; code++) {
        const double distance = fabs(decoded(format, code).value - wanted);
        if (distance < fabs(decoded(format, best).value - wanted)) best = code;
    }
    return (uint8_t)best;
}

static inline void add_tensor(const char *name, enum assay_format format, int64_t rows,
                              int64_t columns, void *data)
{
    tensors.item[tensors.count++] = (struct assay_tensor){
        .name = name,
        .format = format,
        .rank = 2,
        .shape = { rows, columns },
        .stride = { columns, 1 },
        .data = data,
    };
}

static inline int64_t blocks(int64_t count, int64_t granularity)
{
    return (count + granularity - 1) / granularity;
}

/* Points the tensors at the arrays, as setup has it. */
static inline void shape(void)
{
    const struct assay_fp8_gemm_problem *const problem = &setup.problem;
    tensors.count = 0;
    add_tensor("a", setup.a, problem->m, problem->k, a_codes);
    add_tensor("b", setup.b, problem->n, problem->k, b_codes);
    add_tensor("sfa", ASSAY_F32, blocks(problem->m, problem->gran_m), k_blocks(), sfa);
    add_tensor("sfb", ASSAY_F32, blocks(problem->n, problem->gran_n), k_blocks(), sfb);
    add_tensor("c", ASSAY_F32, problem->m, problem->n, c_values);
    add_tensor("d", setup.d, problem->m, problem->n, NULL);
}

static const struct assay_fp8_gemm_precision hopper = { .terms = 32,
                                                        .align_bits = 13,
                                                        .result_bits = 13 };

struct tally {
    int64_t finite, special, unclaimed, exact;
    double largest_ratio;
};

static inline void judge(struct tally *tally, double found, double wanted, double allowed)
{
    const char *const format = "%s: %a, but %a within %a (error/bound %g)";
    if (isinf(allowed)) {
        ck_assert_msg(isfinite(wanted), "an unclaimed value must be finite");
        tally->unclaimed++;
    } else if (!isfinite(wanted)) {
        tally->special++;
        ck_assert_msg(isnan(wanted) ? isnan(found) : found == wanted, format, setup.name,
                      found, wanted, allowed, 0.0);
        ck_assert_double_eq(allowed, 0);
    } else {
        const double error = fabs(found - wanted);
        tally->finite++;
        tally->exact += allowed == 0;
        if (allowed > 0)
            tally->largest_ratio = fmax(tally->largest_ratio, error / allowed);
        ck_assert_msg(error <= allowed, format, setup.name, found, wanted, allowed,
                      error / allowed);
    }
}

/* Asks for value and bound of the problem's only part. */
static inline void expect(void)
{
    const struct assay_expected expected = { value, bound };
    ck_assert_int_eq(
        assay_fp8_gemm_expect(&setup.problem, &setup.precision, &tensors, 0, &expected),
        ASSAY_RAN);
}

static inline void start_simulation(void)
{
    openblas_set_num_threads(1);
    for (unsigned code = 0; code < 256; code++) {
        table[0][code] = decode(ASSAY_E4M3, code);
        table[1][code] = decode(ASSAY_E5M2, code);
    }
}

#endif
