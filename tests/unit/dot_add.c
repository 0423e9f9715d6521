/* SPDX-License-Identifier: MIT */
/* The dot-add against a second reading of its rules in real arithmetic: doubles, ldexp
 * and trunc, every step of which is exact. */
#include "ref/unit/dot_add.h"

#include "tests/harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TERMS = ASSAY_DOT_ADD_MAX_TERMS };

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* --- the rules in real arithmetic ------------------------------------------------- */

struct layout {
    enum assay_format format;
    int bits, mantissa_bits, minimum_exponent;
};
static const struct layout layouts[] = {
    { ASSAY_E4M3, 8, 3, -6 },       { ASSAY_E5M2, 8, 2, -14 },
    { ASSAY_F16, 16, 10, -14 },     { ASSAY_BF16, 16, 7, -126 },
    { ASSAY_TF32, 32, 23, -126 },   { ASSAY_E2M1, 4, 1, 0 },
    { ASSAY_FORMAT_NONE, 0, 0, 0 },
};

static const struct layout *layout_of(enum assay_format format)
{
    const struct layout *row = layouts;
    while (row->format != format)
        row++;
    return row;
}

/* A code's fields, put at an f32's place, read as its value times a power of two. */
static double value_of(enum assay_format format, uint32_t code)
{
    if (format == ASSAY_BF16) return (double)float_of(code << 16);
    if (format == ASSAY_TF32) return (double)float_of(code & 0xFFFFE000);
    if (format == ASSAY_E2M1) {
        static const double magnitudes[] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };
        return code & 8 ? -magnitudes[code & 7] : magnitudes[code & 7];
    }
    if (format == ASSAY_E5M2) return value_of(ASSAY_F16, code << 8);
    if (format == ASSAY_E4M3) {
        const double sign = code & 0x80 ? -1.0 : 1.0;
        if ((code & 0x7F) == 0x7F) return (double)NAN;
        return sign * (double)float_of((code & 0x7F) << 20) * 0x1p120;
    }
    const double sign = code & 0x8000 ? -1.0 : 1.0;
    if ((code & 0x7FFF) == 0x7C00) return sign * (double)INFINITY;
    if ((code & 0x7FFF) > 0x7C00) return (double)NAN;
    return sign * (double)float_of((code & 0x7FFF) << 13) * 0x1p112;
}

struct problem { /* one dot-add in codes */
    const struct assay_dot_add *profile;
    enum assay_format format_a, format_b;
    uint32_t accumulator;
    uint32_t a[MAX_TERMS], b[MAX_TERMS];
};

static int exponent_of(double value, int minimum)
{
    if (value == 0.0 || !isfinite(value)) return -10000;
    return ilogb(value) > minimum ? ilogb(value) : minimum;
}

static int operand_exponent(const struct problem *problem, enum assay_format format,
                            uint32_t code)
{
    const int minimum =
        problem->profile->converts_to_f16 ? -14 : layout_of(format)->minimum_exponent;
    return exponent_of(value_of(format, code), minimum);
}

static uint32_t rounded_sum(const struct assay_dot_add *profile, const double *term,
                            const int *exponent, int count)
{
    double specials = 0.0;
    int largest = -10000;
    for (int i = 0; i < count; i++) {
        if (!isfinite(term[i])) specials += term[i];
        if (term[i] != 0.0 && exponent[i] > largest) largest = exponent[i];
    }
    if (isnan(specials)) return 0x7FFFFFFF;
    if (isinf(specials)) return bits_of((float)specials);

    const int unit = largest - profile->align_bits;
    double sum = 0.0;
    for (int i = 0; i < count; i++)
        sum += trunc(ldexp(term[i], -unit));
    if (sum == 0.0) return 0;

    const int exact = ilogb(sum) + unit - profile->result_bits;
    const int quantum = exact > -149 ? exact : -149;
    const double kept = ldexp(trunc(ldexp(sum, unit - quantum)), quantum);
    if (kept == 0.0) return 0;
    if (fabs(kept) >= 0x1p128) return bits_of(copysignf(INFINITY, (float)kept));
    return bits_of((float)kept);
}

static int group_of(const struct assay_dot_add *profile, int k)
{
    if (profile->group_order == ASSAY_GROUPS_INTERLEAVED) return k % 4 / 2;
    return k / (profile->terms / profile->groups);
}

static uint32_t expected(const struct problem *problem)
{
    const struct assay_dot_add *const profile = problem->profile;
    uint32_t running = profile->adds_accumulator_last ? 0 : problem->accumulator;

    for (int group = 0; group < profile->groups; group++) {
        double term[MAX_TERMS + 1] = { (double)float_of(running) };
        int exponent[MAX_TERMS + 1] = { exponent_of(term[0], -126) };
        int count = 1;
        for (int k = 0; k < profile->terms; k++) {
            if (group_of(profile, k) != group) continue;
            term[count] = value_of(problem->format_a, problem->a[k]) *
                          value_of(problem->format_b, problem->b[k]);
            exponent[count++] =
                operand_exponent(problem, problem->format_a, problem->a[k]) +
                operand_exponent(problem, problem->format_b, problem->b[k]);
        }
        running = rounded_sum(profile, term, exponent, count);
    }
    if (!profile->adds_accumulator_last) return running;
    const double last =
        (double)float_of(running) + (double)float_of(problem->accumulator);
    return isnan(last) ? 0x7FFFFFFF : bits_of((float)last);
}

/* --- the unit under test ---------------------------------------------------------- */

static uint32_t computed(const struct problem *problem)
{
    struct assay_operand a[MAX_TERMS], b[MAX_TERMS];
    for (int k = 0; k < problem->profile->terms; k++) {
        a[k] = assay_operand_decode(problem->profile, problem->format_a, problem->a[k]);
        b[k] = assay_operand_decode(problem->profile, problem->format_b, problem->b[k]);
    }
    return assay_dot_add(problem->profile, problem->accumulator, a, b);
}

static void report_difference(const struct problem *problem, uint32_t got, uint32_t want)
{
    char products[MAX_TERMS * 24] = "";
    for (int k = 0, at = 0; k < problem->profile->terms; k++)
        at += snprintf(products + at, sizeof products - (size_t)at, " %x*%x",
                       problem->a[k], problem->b[k]);
    ck_abort_msg("%s F=%d m=%d %s by %s: c %08x,%s: %08x, expected %08x",
                 problem->profile->name, problem->profile->align_bits,
                 problem->profile->result_bits, assay_format_name(problem->format_a),
                 assay_format_name(problem->format_b), problem->accumulator, products,
                 got, want);
}

enum result_class { ZERO, SUBNORMAL, NORMAL, INFINITE, NOT_A_NUMBER, CLASSES };

/* Counts the class of a result, so that a test can say what it has seen. */
static void compare(const struct problem *problem, int seen[CLASSES])
{
    const uint32_t got = computed(problem), want = expected(problem);
    if (got != want) report_difference(problem, got, want);
    switch (fpclassify(float_of(want))) {
    case FP_ZERO: seen[ZERO]++; break;
    case FP_SUBNORMAL: seen[SUBNORMAL]++; break;
    case FP_NORMAL: seen[NORMAL]++; break;
    case FP_INFINITE: seen[INFINITE]++; break;
    default: seen[NOT_A_NUMBER]++;
    }
}

/* --- random problems -------------------------------------------------------------- */

static uint64_t state;

static uint32_t draw(void) /* splitmix64 */
{
    uint64_t z = state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)((z ^ z >> 31) >> 32);
}

static uint32_t below(uint32_t count)
{
    return draw() % count;
}

enum mode { ANY_CODE, NARROW, SPECIAL, TINY, CANCEL, ALL_ZERO, MODES };

static uint32_t code_with(const struct layout *layout, uint32_t field, uint32_t mantissa)
{
    const uint32_t sign = below(2) << (layout->bits - 1);
    const uint32_t mask = (UINT32_C(1) << layout->mantissa_bits) - 1;
    return sign | field << layout->mantissa_bits | (mantissa & mask);
}

static uint32_t draw_code(const struct layout *layout, enum mode mode, uint32_t centre)
{
    const uint32_t fields = UINT32_C(1) << (layout->bits - 1 - layout->mantissa_bits);
    switch (mode) {
    case NARROW:
    case CANCEL: return code_with(layout, (centre + below(3)) % fields, draw());
    case SPECIAL:
        if (below(16)) return code_with(layout, (centre + below(3)) % fields, draw());
        return code_with(layout, below(2) ? fields - 1 : 0, below(2) ? 0 : draw());
    case TINY: return code_with(layout, below(2), below(3) ? draw() : 0);
    case ALL_ZERO: return code_with(layout, 0, 0);
    default: return draw() >> (32 - layout->bits);
    }
}

static uint32_t draw_accumulator(double product)
{
    switch (below(8)) {
    case 0: return draw();
    case 1: return below(2) << 31;
    case 2: return draw() & 0x807FFFFF;
    case 3:
        return (draw() & 0x80000000) | 0x7F800000 | (below(2) ? draw() & 0x7FFFFF : 0);
    default: break;
    }
    const double near = ldexp(1.0 + (double)draw() * 0x1p-32, (int)below(61) - 30);
    return bits_of((float)(product * near)) ^ below(2) << 31;
}

static void draw_problem(struct problem *problem, enum mode mode)
{
    const struct layout *const layout_a = layout_of(problem->format_a);
    const struct layout *const layout_b = layout_of(problem->format_b);
    const uint32_t centre_a = draw() >> 8, centre_b = draw() >> 8;
    const uint32_t sign = UINT32_C(1) << (layout_a->bits - 1);
    const int terms = problem->profile->terms;

    for (int k = 0; k < terms; k++) {
        problem->a[k] = draw_code(layout_a, mode, centre_a);
        problem->b[k] = draw_code(layout_b, mode, centre_b);
        if (mode != CANCEL || k % 2 == 0 || below(8) == 0) continue;
        problem->a[k] = problem->a[k - 1] ^ sign;
        problem->b[k] = problem->b[k - 1];
    }
    /* A NaN or infinity drawn into every other accumulator would hide the rest. */
    const uint32_t accumulator =
        draw_accumulator(value_of(problem->format_a, problem->a[0]) *
                         value_of(problem->format_b, problem->b[0]));
    const bool is_special = (accumulator & 0x7F800000) == 0x7F800000;
    problem->accumulator = is_special && below(4) ? below(2) << 31 : accumulator;
}

/* Calls @visit for each pair of operand formats of each profile. */
static void for_each_unit(void (*visit)(struct problem *problem))
{
    for (const struct assay_dot_add *row = assay_dot_adds; row->name; row++)
        for (int i = 0; i < 3 && row->operands[i]; i++)
            for (int j = 0; j < 3 && row->operands[j]; j++) {
                struct problem problem = { .profile = row,
                                           .format_a = row->operands[i],
                                           .format_b = row->operands[j] };
                visit(&problem);
            }
}

/* --- tests against the rules ------------------------------------------------------ */

static void compare_random(struct problem *problem)
{
    int seen[CLASSES] = { 0 };
    for (int mode = 0; mode < MODES; mode++)
        for (int i = 0; i < 2500; i++) {
            draw_problem(problem, (enum mode)mode);
            compare(problem, seen);
        }
    for (int i = 0; i < CLASSES; i++)
        ck_assert_msg(seen[i] >= 20, "%s: only %d results of class %d",
                      problem->profile->name, seen[i], i);
}

START_TEST(every_profile_equals_the_rules_in_real_arithmetic)
{
    state = 1;
    for_each_unit(compare_random);
}
END_TEST

static void compare_every_pair(struct problem *problem)
{
    if (layout_of(problem->format_a)->bits != 8) return;
    int seen[CLASSES] = { 0 };
    for (uint32_t pair = 0; pair < 0x10000; pair++) {
        memset(problem->a, 0, sizeof problem->a);
        memset(problem->b, 0, sizeof problem->b);
        const uint32_t k = below((uint32_t)problem->profile->terms);
        problem->a[k] = pair >> 8;
        problem->b[k] = pair & 0xFF;
        problem->accumulator =
            draw_accumulator(value_of(problem->format_a, problem->a[k]) *
                             value_of(problem->format_b, problem->b[k]));
        compare(problem, seen);
    }
    ck_assert_int_ge(seen[NORMAL], 30000);
}

START_TEST(every_pair_of_fp8_codes_equals_the_rules)
{
    state = 2;
    for_each_unit(compare_every_pair);
}
END_TEST

static void compare_other_constants(struct problem *problem)
{
    const struct assay_dot_add *const row = problem->profile;
    struct assay_dot_add copy = *row;
    int seen[CLASSES] = { 0 };
    problem->profile = &copy;
    for (copy.align_bits = 1; copy.align_bits <= 40; copy.align_bits++)
        for (copy.result_bits = 1; copy.result_bits <= 23; copy.result_bits++)
            for (int mode = 0; mode < MODES; mode++) {
                draw_problem(problem, (enum mode)mode);
                compare(problem, seen);
            }
    problem->profile = row;
}

START_TEST(a_copy_with_any_legal_constants_equals_the_rules)
{
    state = 3;
    for_each_unit(compare_other_constants);
}
END_TEST

/* --- properties ------------------------------------------------------------------- */

static void shuffle_groups(struct problem *problem)
{
    for (int k = problem->profile->terms - 1; k > 0; k--) {
        const int other = (int)below((uint32_t)k + 1);
        if (group_of(problem->profile, k) != group_of(problem->profile, other)) continue;
        const uint32_t a = problem->a[k], b = problem->b[k];
        problem->a[k] = problem->a[other];
        problem->b[k] = problem->b[other];
        problem->a[other] = a;
        problem->b[other] = b;
    }
}

static void compare_shuffled(struct problem *problem)
{
    for (int i = 0; i < 1000 * MODES; i++) {
        draw_problem(problem, (enum mode)(i % MODES));
        const uint32_t before = computed(problem);
        shuffle_groups(problem);
        const uint32_t after = computed(problem);
        if (before != after) report_difference(problem, after, before);
    }
}

START_TEST(order_inside_a_group_does_not_matter)
{
    state = 4;
    for_each_unit(compare_shuffled);
}
END_TEST

static void step_of_zeros(struct problem *problem)
{
    for (int i = 0; i < 1000 * MODES; i++) {
        draw_problem(problem, (enum mode)(i % MODES));
        problem->accumulator = computed(problem);
        for (int k = 0; k < problem->profile->terms; k++)
            problem->a[k] = 0;
        for (int k = 0; k < problem->profile->terms; k++)
            if (!isfinite(value_of(problem->format_b, problem->b[k]))) problem->b[k] = 0;
        const uint32_t after = computed(problem);
        if (after != problem->accumulator)
            report_difference(problem, after, problem->accumulator);
    }
}

START_TEST(a_step_of_zero_products_keeps_a_value_the_unit_produced)
{
    state = 5;
    for_each_unit(step_of_zeros);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_profile_equals_the_rules_in_real_arithmetic,
        every_pair_of_fp8_codes_equals_the_rules,
        a_copy_with_any_legal_constants_equals_the_rules,
        order_inside_a_group_does_not_matter,
        a_step_of_zero_products_keeps_a_value_the_unit_produced,
        NULL,
    };
    return run_tests("dot_add", tests);
}
