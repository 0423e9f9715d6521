/* SPDX-License-Identifier: MIT */
/* The bound of fp8_gemm_nt against a simulation written here: dot-adds in exact double
 * arithmetic, f32 promotion in every form, products and chains in random order. */
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt_bound.h"

#include "tests/harness.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

enum { MOST_ROWS = 24, MOST_COLUMNS = 20, MOST_K = 640 };

enum contents {
    NORMAL,
    POSITIVE,
    WIDE,
    CANCELLING,
    SUBNORMAL,
    OUTLIERS,
    SPARSE,
    SPECIAL,
    SMALL_INTEGERS,
    CONTENTS
};
enum scales { POWERS_OF_TWO, UNIFORM, WILD, ANYTHING, SCALES };
enum form { PRODUCT_FIRST, A_THEN_B, B_THEN_A, FORMS };

struct setup {
    struct assay_fp8_gemm_problem problem;
    struct assay_fp8_gemm_precision precision;
    enum assay_format a, b, d;
    enum contents contents;
    enum scales scales;
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

static uint32_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 32);
}

static int64_t below(int64_t limit)
{
    return (int64_t)(draw() % (uint64_t)limit);
}

struct code { /* value, and the exponent that alignment sees */
    double value;
    int exponent;
};

static struct code decode(enum assay_format format, unsigned bits)
{
    const int mantissa_bits = format == ASSAY_E4M3 ? 3 : 2;
    const int field = (int)(bits & 0x7f) >> mantissa_bits;
    const int fraction = (int)bits & ((1 << mantissa_bits) - 1);
    const double sign = bits & 0x80 ? -1 : 1;
    if (format == ASSAY_E4M3 && (bits & 0x7f) == 0x7f) return (struct code){ NAN, 0 };
    if (format == ASSAY_E5M2 && field == 31)
        return (struct code){ fraction ? (double)NAN : sign * (double)INFINITY, 0 };
    const int exponent = (field ? field : 1) - (format == ASSAY_E4M3 ? 7 : 15);
    const int significand = field ? fraction + (1 << mantissa_bits) : fraction;
    return (struct code){ sign * ldexp(significand, exponent - mantissa_bits), exponent };
}

static struct code table[2][256];

static struct code decoded(enum assay_format format, unsigned bits)
{
    return table[format == ASSAY_E5M2][bits];
}

static double cut(double x, int quantum_exponent)
{
    return ldexp(trunc(ldexp(x, -quantum_exponent)), quantum_exponent);
}

/* One group of products onto @accumulator. */
static double dot_add(double accumulator, const struct code *a, const struct code *b,
                      int count)
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
static double instruction(double accumulator, const struct code *a, const struct code *b)
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

static void shuffle(int64_t *order, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = below(i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

static float simulated_chain(int64_t row, int64_t column, int64_t k0, int64_t count)
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

static float promoted(float final, float chain, float a, float b)
{
    float scale = setup.form == PRODUCT_FIRST ? a * b : setup.form == A_THEN_B ? b : a;
    if (setup.form == A_THEN_B) chain = chain * a;
    if (setup.form == B_THEN_A) chain = chain * b;
    if (setup.is_fused) return fmaf(scale, chain, final);
    const float product = scale * chain;
    return final + product;
}

static int64_t k_blocks(void)
{
    const int64_t covered =
        (setup.problem.k + setup.problem.gran_k - 1) / setup.problem.gran_k;
    return covered ? covered : 1;
}

static double simulated(int64_t row, int64_t column)
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
    if (setup.precision.is_scaled_at_end) {
        const float scale = a[0] * b[0];
        final = final * scale;
    }
    if (problem->has_c) final = final + c_values[row * problem->n + column];
    if (setup.d == ASSAY_F32 || isnan(final)) return (double) final;

    uint32_t bits;
    memcpy(&bits, &final, sizeof bits);
    if (!setup.precision.rounds_toward_zero) bits += 0x7fff + (bits >> 16 & 1);
    bits &= 0xffff0000;
    memcpy(&final, &bits, sizeof bits);
    return (double) final;
}

static uint8_t nearest_code(enum assay_format format, double wanted)
{
    unsigned best = 0;
    for (unsigned code = 0; code < 256; code++) {
        const double distance = fabs(decoded(format, code).value - wanted);
        if (distance < fabs(decoded(format, best).value - wanted)) best = code;
    }
    return (uint8_t)best;
}

static uint8_t finite_code(enum assay_format format)
{
    const uint8_t code = (uint8_t)(draw() >> 24);
    return isfinite(decoded(format, code).value) ? code : code & 0x87;
}

static uint8_t drawn_code(enum assay_format format, uint8_t before, bool is_a,
                          bool is_odd)
{
    const double unit = (double)draw() * 0x1p-32;
    const double normal = 16 * (unit + (double)draw() * 0x1p-32 - 1);
    switch (setup.contents) {
    case POSITIVE: return nearest_code(format, 448 * unit);
    case WIDE: return finite_code(format);
    case SUBNORMAL: return (uint8_t)(draw() >> 24) & (format == ASSAY_E4M3 ? 0x87 : 0x83);
    case OUTLIERS:
        return nearest_code(format, below(32) ? unit / 8 - 0.03 : 300 * normal);
    case SPARSE: return below(24) ? 0 : finite_code(format);
    case SPECIAL:
        return below(300) ? nearest_code(format, normal) : (uint8_t)(draw() >> 24);
    case SMALL_INTEGERS: return nearest_code(format, (double)(below(7) - 3));
    case CANCELLING:
        if (is_odd && below(16)) return before ^ (is_a ? 0x80 : 0);
        return nearest_code(format, normal);
    default: return nearest_code(format, normal);
    }
}

static void fill_codes(uint8_t *codes, int64_t rows, enum assay_format format, bool is_a)
{
    for (int64_t i = 0; i < rows * setup.problem.k; i++)
        codes[i] = drawn_code(format, i ? codes[i - 1] : 0, is_a, i % 2);
}

static float drawn_scale(void)
{
    static const float odd[] = { (float)NAN, INFINITY, -INFINITY, 0.0f, 0x1p-149f };
    const uint32_t bits = draw();
    float any;
    memcpy(&any, &bits, sizeof any);
    switch (setup.scales) {
    case POWERS_OF_TWO: return ldexpf(below(2) ? -1 : 1, (int)below(9) - 4);
    case WILD: return isfinite(any) ? any : -0.0f;
    case ANYTHING: return below(20) ? 1.5f : odd[below(5)];
    default: return ((float)below(1 << 20) + 1) * 0x1p-20f;
    }
}

static void add_tensor(const char *name, enum assay_format format, int64_t rows,
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

static int64_t blocks(int64_t count, int64_t granularity)
{
    return (count + granularity - 1) / granularity;
}

static void fill(void)
{
    const struct assay_fp8_gemm_problem *const problem = &setup.problem;
    tensors.count = 0;
    add_tensor("a", setup.a, problem->m, problem->k, a_codes);
    add_tensor("b", setup.b, problem->n, problem->k, b_codes);
    add_tensor("sfa", ASSAY_F32, blocks(problem->m, problem->gran_m), k_blocks(), sfa);
    add_tensor("sfb", ASSAY_F32, blocks(problem->n, problem->gran_n), k_blocks(), sfb);
    add_tensor("c", ASSAY_F32, problem->m, problem->n, c_values);
    add_tensor("d", setup.d, problem->m, problem->n, NULL);
    fill_codes(a_codes, problem->m, setup.a, true);
    fill_codes(b_codes, problem->n, setup.b, false);
    for (int64_t i = 0; i < problem->m * k_blocks(); i++)
        sfa[i] = drawn_scale();
    for (int64_t i = 0; i < problem->n * k_blocks(); i++)
        sfb[i] = drawn_scale();
    for (int64_t i = 0; i < problem->m * problem->n; i++)
        c_values[i] = 100 * drawn_scale();
}

struct tally {
    int64_t finite, special, unclaimed, exact;
    double largest_ratio;
};

static void judge(struct tally *tally, double found, double wanted, double allowed)
{
    const char *const format =
        "contents %d, scales %d, form %d: %a, but %a within %a (error/bound %g)";
    if (isinf(allowed)) {
        ck_assert_msg(isfinite(wanted), "an unclaimed value must be finite");
        tally->unclaimed++;
    } else if (!isfinite(wanted)) {
        tally->special++;
        ck_assert_msg(isnan(wanted) ? isnan(found) : found == wanted, format,
                      setup.contents, setup.scales, setup.form, found, wanted, allowed,
                      0.0);
        ck_assert_double_eq(allowed, 0);
    } else {
        const double error = fabs(found - wanted);
        tally->finite++;
        tally->exact += allowed == 0;
        if (allowed > 0)
            tally->largest_ratio = fmax(tally->largest_ratio, error / allowed);
        ck_assert_msg(error <= allowed, format, setup.contents, setup.scales, setup.form,
                      found, wanted, allowed, error / allowed);
    }
}

static void run(struct tally *tally)
{
    const struct assay_expected expected = { value, bound };
    fill();
    ck_assert_int_eq(
        assay_fp8_gemm_expect(&setup.problem, &setup.precision, &tensors, 0, &expected),
        ASSAY_RAN);
    for (int64_t i = 0; i < setup.problem.m * setup.problem.n; i++)
        judge(tally, simulated(i / setup.problem.n, i % setup.problem.n), value[i],
              bound[i]);
}

static const struct assay_fp8_gemm_precision hopper = { .terms = 32,
                                                        .align_bits = 13,
                                                        .result_bits = 13 };

static struct assay_fp8_gemm_precision drawn_precision(void)
{
    static const struct assay_fp8_gemm_precision classes[] = {
        { .terms = 32, .align_bits = 13, .result_bits = 13 },
        { .terms = 32, .groups = 2, .align_bits = 13, .result_bits = 13 },
        { .terms = 32,
          .groups = 2,
          .align_bits = 25,
          .result_bits = 23,
          .adds_accumulator_last = true },
        { .terms = 32, .groups = 1, .align_bits = 25, .result_bits = 23 },
        { .terms = 32, .groups = 1, .align_bits = 9, .result_bits = 13 },
        { .terms = 16, .groups = 1, .align_bits = 13, .result_bits = 7 },
    };
    return classes[below(3) ? 0 : below(6)];
}

/* Chains of 32, 96, 128 or all of K; block scales or one scale a row. */
static void draw_setup(void)
{
    static const int64_t chains[] = { 32, 96, 128, 0 };
    static const int64_t granularities[] = { 1, 3, 128 };
    const int64_t chain_k = chains[below(4)];
    setup.problem = (struct assay_fp8_gemm_problem){
        .m = 1 + below(6),
        .n = 1 + below(6),
        .k = below(MOST_K + 1),
        .gran_m = granularities[below(3)],
        .gran_n = granularities[below(3)],
        .has_c = below(2),
    };
    const bool has_blocks = chain_k && below(3);
    setup.problem.gran_k = has_blocks ? chain_k * (1 + below(3)) : MOST_K;
    setup.precision = drawn_precision();
    setup.precision.chain_k = chain_k;
    setup.precision.is_scaled_at_end = !has_blocks && below(2);
    setup.precision.rounds_toward_zero = below(4) == 0;
    setup.a = below(2) ? ASSAY_E4M3 : ASSAY_E5M2;
    setup.b = below(2) ? ASSAY_E4M3 : ASSAY_E5M2;
    setup.d = below(2) ? ASSAY_F32 : ASSAY_BF16;
    setup.form = (enum form)below(FORMS);
    setup.is_fused = below(2);
}

START_TEST(no_simulated_kernel_is_outside_whatever_the_input)
{
    struct tally tame = { 0 }, wild = { 0 };
    state = 1;
    for (int i = 0; i < 3600; i++) {
        draw_setup();
        setup.contents = (enum contents)(i % CONTENTS);
        setup.scales = (enum scales)(i / CONTENTS % SCALES);
        const bool is_tame = setup.contents != SPECIAL && setup.scales < WILD;
        run(is_tame ? &tame : &wild);
    }
    ck_assert_int_eq(tame.special, 0);
    ck_assert_int_eq(tame.unclaimed, 0);
    ck_assert_int_gt(tame.finite, 10000);
    ck_assert_int_gt(wild.finite, 5000);
    ck_assert_int_gt(wild.special, 1000);
    ck_assert_int_lt(wild.unclaimed, (wild.finite + wild.special) / 3);
}
END_TEST

START_TEST(sums_that_never_round_have_a_bound_of_zero)
{
    struct tally tally = { 0 };
    state = 2;
    for (int i = 0; i < 300; i++) {
        draw_setup();
        setup.precision = hopper;
        setup.precision.chain_k = setup.problem.gran_k == MOST_K ? 0 : 32;
        setup.precision.is_scaled_at_end = setup.problem.gran_k == MOST_K && below(2);
        setup.a = setup.b = ASSAY_E4M3;
        setup.d = ASSAY_F32;
        setup.contents = SMALL_INTEGERS;
        setup.scales = POWERS_OF_TWO;
        run(&tally);
    }
    ck_assert_int_eq(tally.exact, tally.finite);
    ck_assert_int_gt(tally.exact, 1000);
}
END_TEST

START_TEST(exact_sums_in_bf16_are_off_by_their_last_rounding_alone)
{
    struct tally tally = { 0 };
    state = 3;
    for (int i = 0; i < 300; i++) {
        draw_setup();
        setup.precision = hopper;
        setup.problem.gran_k = MOST_K;
        setup.precision.rounds_toward_zero = i % 2;
        setup.a = setup.b = ASSAY_E4M3;
        setup.d = ASSAY_BF16;
        setup.contents = SMALL_INTEGERS;
        setup.scales = POWERS_OF_TWO;
        run(&tally);
    }
    ck_assert_double_eq(tally.largest_ratio, 1);
    ck_assert_int_gt(tally.exact, tally.finite / 20);
}
END_TEST

static double largest_ratio_of_positive_data(int64_t chain_k)
{
    struct tally tally = { 0 };
    state = 4;
    for (int i = 0; i < 12; i++) {
        setup = (struct setup){
            .problem = { MOST_ROWS, MOST_COLUMNS, 128 + 128 * below(5), 1, 128, 128,
                         false },
            .precision = hopper,
            .a = ASSAY_E4M3,
            .b = ASSAY_E4M3,
            .d = ASSAY_F32,
            .contents = POSITIVE,
            .scales = UNIFORM,
            .is_fused = true,
        };
        if (!chain_k) setup.problem.gran_k = MOST_K;
        setup.precision.chain_k = chain_k;
        run(&tally);
    }
    return tally.largest_ratio;
}

/* Thresholds above half of what is reached, so that a bound twice as large fails. */
START_TEST(bound_is_tight_for_positive_data)
{
    const double block = largest_ratio_of_positive_data(128);
    ck_assert_msg(block > 0.3, "chains of 128 reach %g of the bound", block);
    const double whole = largest_ratio_of_positive_data(0);
    ck_assert_msg(whole > 0.4, "one chain reaches %g of the bound", whole);
}
END_TEST

/* One product of 1 and 31 of 2^-14, all of which one step loses. */
START_TEST(bound_is_nearly_reached_where_every_term_is_lost)
{
    struct tally tally = { 0 };
    const struct assay_expected expected = { value, bound };
    setup = (struct setup){ .problem = { 1, 1, 32, 1, 1, 32, false },
                            .precision = hopper,
                            .a = ASSAY_E4M3,
                            .b = ASSAY_E4M3,
                            .d = ASSAY_F32 };
    fill();
    memset(a_codes, nearest_code(ASSAY_E4M3, 0x1p-6), 32);
    memset(b_codes, nearest_code(ASSAY_E4M3, 0x1p-8), 32);
    a_codes[7] = b_codes[7] = nearest_code(ASSAY_E4M3, 1);
    sfa[0] = sfb[0] = 1;
    ck_assert_int_eq(
        assay_fp8_gemm_expect(&setup.problem, &hopper, &tensors, 0, &expected),
        ASSAY_RAN);
    ck_assert_double_eq(value[0], 1 + 31 * 0x1p-14);
    ck_assert_double_eq(simulated(0, 0), 1);
    judge(&tally, simulated(0, 0), value[0], bound[0]);
    ck_assert_double_gt(tally.largest_ratio, 0.9);
}
END_TEST

int main(void)
{
    openblas_set_num_threads(1);
    for (unsigned code = 0; code < 256; code++) {
        table[0][code] = decode(ASSAY_E4M3, code);
        table[1][code] = decode(ASSAY_E5M2, code);
    }
    const TTest *const tests[] = {
        no_simulated_kernel_is_outside_whatever_the_input,
        sums_that_never_round_have_a_bound_of_zero,
        exact_sums_in_bf16_are_off_by_their_last_rounding_alone,
        bound_is_tight_for_positive_data,
        bound_is_nearly_reached_where_every_term_is_lost,
        NULL,
    };
    return run_tests("verify_fp8_gemm_nt_bound", tests);
}
