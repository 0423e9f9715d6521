/* SPDX-License-Identifier: MIT */
/* Attention of one row for testing bounds, written apart from the model: dot-adds in
 * exact double arithmetic, keys, dimensions and sums in random order, blocks and splits
 * of random size, functions that err as far as they may in a wanted direction. One
 * program, one row at a time. */
#ifndef ASSAY_TESTS_VERIFY_SIMULATED_ATTENTION_H
#define ASSAY_TESTS_VERIFY_SIMULATED_ATTENTION_H

#include "ref/kernel/mla_attention.h"
#include "tests/harness.h"

#include <math.h>
#include <string.h>

enum { MOST_KEYS = 320, WIDTH = 576, OUTPUTS = 512, MOST_SPLITS = 5 };

enum direction { RANDOM, UPWARD, DOWNWARD, AGAINST_COLUMN, DIRECTIONS };

struct simulation {
    const struct assay_mla_numerics *numerics;
    enum assay_format format;
    int keys, d_qk;
    double q[WIDTH], key[MOST_KEYS][WIDTH]; /* as the kernel multiplies them */
    float softmax_scale, sink;              /* -infinity: none */
    bool may_be_split, is_in_order;         /* of keys as given */
    enum direction direction;
    int column;      /* AGAINST_COLUMN: errors move this one, ... */
    double sign;     /* ... up or down ... */
    double expected; /* ... from here */
    /* Results: */
    double out[OUTPUTS], lse, max_logit;
};

static struct simulation simulation;
static uint64_t state = 1;

static inline uint32_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 32);
}

static inline int64_t below(int64_t limit)
{
    return (int64_t)(draw() % (uint64_t)limit);
}

static inline double uniform(void)
{
    return (double)draw() * 0x1p-31 - 1;
}

static inline void shuffle(int *order, int count)
{
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        const int j = (int)below(i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* --- f32 and narrower -------------------------------------------------------------- */

static inline float flushed(float x)
{
    return simulation.numerics->flush && fabsf(x) < 0x1p-126f ? 0.0f : x;
}

static inline float product(float x, float y)
{
    return flushed(flushed(x) * flushed(y));
}

static inline float sum_of(float x, float y)
{
    return flushed(flushed(x) + flushed(y));
}

static inline float fused(float x, float y, float z)
{
    return flushed(fmaf(flushed(x), flushed(y), flushed(z)));
}

/* @x in bf16 or f16, to nearest even or toward zero. */
static inline double narrowed(double x, bool is_toward_zero)
{
    const bool is_f16 = simulation.format == ASSAY_F16;
    const int smallest = is_f16 ? -14 : -126, bits = is_f16 ? 10 : 7;
    if (x == 0 || !isfinite(x)) return x;
    const int exponent = ilogb(x) > smallest ? ilogb(x) : smallest;
    const double steps = ldexp(x, bits - exponent);
    return ldexp(is_toward_zero ? trunc(steps) : rint(steps), exponent - bits);
}

/* --- functions --------------------------------------------------------------------- */

static inline double way(int key)
{
    switch (simulation.direction) {
    case UPWARD: return 1;
    case DOWNWARD: return -1;
    case AGAINST_COLUMN:
        if (key < 0) return simulation.sign;
        return simulation.key[key][simulation.column] > simulation.expected
                   ? simulation.sign
                   : -simulation.sign;
    default: return draw() % 2 ? 1 : -1;
    }
}

static inline bool is_hardware(int functions)
{
    return functions == ASSAY_MLA_FUNCTIONS_HARDWARE;
}

/* The nearest f32 to a value that is off by @relative of itself and by @absolute, of
 * which the rounding takes half a unit. */
static inline float off(double value, double relative, double absolute, double way_off)
{
    return (float)(value + way_off * ((relative - 0x1p-24) * fabs(value) + absolute));
}

static inline float ex2(int functions, float x, int key)
{
    const double value = exp2((double)x);
    if (x == 0) return 1;
    if (value < 0x1p-126) return flushed((float)value);
    return is_hardware(functions) ? off(value, 2.5 * 0x1p-24, 0, way(key)) : (float)value;
}

static inline float lg2(int functions, float x, double way_off)
{
    const double value = log2((double)x);
    if (x == 1) return 0;
    return is_hardware(functions) ? off(value, 2 * 0x1p-24, 2.625 * 0x1p-24, way_off)
                                  : (float)value;
}

static inline float quotient(float x, float y)
{
    const struct assay_mla_numerics *const numerics = simulation.numerics;
    if (numerics->quotient == ASSAY_MLA_DIVISION) return flushed(x / y);
    const double value = 1 / (double)y;
    return product(x, is_hardware(numerics->functions)
                          ? off(value, 1.75 * 0x1p-24, 0, way(-1))
                          : (float)value);
}

/* --- products ---------------------------------------------------------------------- */

static inline double cut(double x, int exponent)
{
    return ldexp(trunc(ldexp(x, -exponent)), exponent);
}

/* Exponent of a factor, as alignment sees it. */
static inline int alignment(double x)
{
    const int smallest = simulation.format == ASSAY_F16 ? -14 : -126;
    return ilogb(x) > smallest ? ilogb(x) : smallest;
}

/* At most 16 products onto @accumulator. */
static inline double dot_add(double accumulator, const double *a, const double *b,
                             int count)
{
    const int align =
        simulation.numerics->align_bits ? simulation.numerics->align_bits : 25;
    const int bits =
        simulation.numerics->result_bits ? simulation.numerics->result_bits : 23;
    int largest = accumulator != 0 ? ilogb(accumulator) : -9999;
    for (int i = 0; i < count; i++)
        if (a[i] != 0 && b[i] != 0 && alignment(a[i]) + alignment(b[i]) > largest)
            largest = alignment(a[i]) + alignment(b[i]);
    if (largest == -9999) return 0;
    double sum = cut(accumulator, largest - align);
    for (int i = 0; i < count; i++)
        sum += cut(a[i] * b[i], largest - align);
    if (sum == 0) return 0;
    const int quantum = ilogb(sum) - bits;
    return cut(sum, quantum > -149 ? quantum : -149);
}

/* @accumulator + sum of a * b in the order given. */
static inline float chain(float accumulator, const double *a, const double *b, int count,
                          bool is_fma)
{
    double sum = (double)accumulator;
    if (is_fma) {
        for (int i = 0; i < count; i++)
            accumulator = fused((float)a[i], (float)b[i], accumulator);
        return accumulator;
    }
    for (int i = 0; i < count; i += 16)
        sum = dot_add(sum, a + i, b + i, count - i < 16 ? count - i : 16);
    return (float)sum;
}

static inline float score_of(int key)
{
    int order[WIDTH];
    double a[WIDTH], b[WIDTH];
    shuffle(order, simulation.d_qk);
    for (int i = 0; i < simulation.d_qk; i++) {
        a[i] = simulation.q[order[i]];
        b[i] = simulation.key[key][order[i]];
    }
    return chain(0, a, b, simulation.d_qk, simulation.numerics->unit == ASSAY_MLA_FMA);
}

/* --- a split ----------------------------------------------------------------------- */

struct part_of_row {
    float maximum, sum, output[OUTPUTS], c;
};

static inline float scale_constant(void)
{
    const double log2_e = 0x1.71547652b82fep+0;
    if (simulation.numerics->scale_constant == ASSAY_MLA_SCALE_DOUBLE)
        return (float)((double)simulation.softmax_scale * log2_e);
    return simulation.softmax_scale * (float)log2_e;
}

static inline float argument(float score, float c, float maximum)
{
    return simulation.numerics->argument == ASSAY_MLA_ARGUMENT_FUSED
               ? fused(score, c, -maximum)
               : sum_of(product(score, c), -maximum);
}

/* p as it meets v. */
static inline double rounded_p(float p, int key)
{
    const int rounding = simulation.numerics->p_rounding;
    const double half = simulation.format == ASSAY_F16 ? 0x1p-11 : 0x1p-8;
    if (rounding == ASSAY_MLA_P_KEPT) return (double)p;
    if (simulation.direction == AGAINST_COLUMN && p > 0x1p-10f && p < 0.9f &&
        rounding == ASSAY_MLA_P_NEAREST_EVEN) {
        /* As far off as a p of that binade can be, had the maximum been another. */
        const double off_by = 0.49 * half * ldexp(1, ilogb((double)p));
        return narrowed((double)p, false) == 0 ? 0 : (double)p + way(key) * off_by;
    }
    return narrowed((double)p, rounding == ASSAY_MLA_P_TOWARD_ZERO);
}

static inline void add_block(struct part_of_row *part, const int *keys, int count,
                             const float *score)
{
    const int functions = simulation.numerics->functions;
    float largest = part->maximum, p[MOST_KEYS], sum = 0;
    double weight[MOST_KEYS], value[MOST_KEYS];
    int order[MOST_KEYS];
    for (int i = 0; i < count; i++)
        largest = fmaxf(largest, product(score[keys[i]], part->c));
    const float factor = ex2(functions, sum_of(part->maximum, -largest), -1);
    part->maximum = largest;
    for (int i = 0; i < count; i++)
        p[i] = ex2(functions, argument(score[keys[i]], part->c, largest), keys[i]);
    shuffle(order, count);
    for (int i = 0; i < count; i++) {
        sum = sum_of(sum, p[order[i]]);
        weight[i] = rounded_p(p[order[i]], keys[order[i]]);
    }
    part->sum = fused(factor, part->sum, sum);
    const bool is_fma = simulation.numerics->unit == ASSAY_MLA_FMA ||
                        simulation.numerics->p_rounding == ASSAY_MLA_P_KEPT;
    for (int column = 0; column < OUTPUTS; column++) {
        if (simulation.direction == AGAINST_COLUMN && column != simulation.column)
            continue;
        for (int i = 0; i < count; i++)
            value[i] = simulation.key[keys[order[i]]][column];
        part->output[column] =
            chain(product(part->output[column], factor), weight, value, count, is_fma);
    }
}

static inline void attend(struct part_of_row *part, const int *keys, int count,
                          const float *score)
{
    const int schedule = simulation.numerics->schedule;
    memset(part->output, 0, sizeof(part->output));
    part->maximum = -1e30f;
    part->sum = 0;
    part->c = scale_constant();
    for (int done = 0, size; done < count; done += size) {
        size = schedule == ASSAY_MLA_PLAIN          ? 1
               : schedule == ASSAY_MLA_MATERIALISED ? count
                                                    : 16 + (int)below(64);
        if (size > count - done) size = count - done;
        add_block(part, keys + done, size, score);
    }
}

/* --- the row ----------------------------------------------------------------------- */

static const float ln_2 = 0x1.62e430p-1f, log2_e_single = 0x1.715476p+0f;

static inline void finish(const struct part_of_row *part)
{
    const int functions = simulation.numerics->functions;
    float divisor = part->sum;
    if (simulation.sink > -INFINITY)
        divisor = sum_of(
            divisor,
            ex2(functions,
                sum_of(product(simulation.sink, log2_e_single), -part->maximum), -1));
    for (int column = 0; column < OUTPUTS; column++)
        simulation.out[column] =
            narrowed((double)quotient(part->output[column], divisor), false);
    const float logarithm = lg2(functions, part->sum, way(-1));
    simulation.lse = (double)(simulation.numerics->lse_form == ASSAY_MLA_LSE_FUSED
                                  ? fused(logarithm, ln_2, product(part->maximum, ln_2))
                                  : product(sum_of(logarithm, part->maximum), ln_2));
    simulation.max_logit = (double)product(part->maximum, ln_2);
}

static inline void combine(const struct part_of_row *parts, int count)
{
    const int functions = simulation.numerics->combine.functions;
    float lse[MOST_SPLITS], largest = -INFINITY, sum = 0, output[OUTPUTS] = { 0 };
    for (int i = 0; i < count; i++) {
        lse[i] = sum_of(lg2(simulation.numerics->functions, parts[i].sum, way(-1)),
                        parts[i].maximum);
        largest = fmaxf(largest, lse[i]);
    }
    for (int i = 0; i < count; i++)
        sum = sum_of(sum, ex2(functions, sum_of(lse[i], -largest), -1));
    float total = sum_of(lg2(functions, sum, way(-1)), largest);
    simulation.lse = (double)product(total, ln_2);
    if (simulation.sink > -INFINITY)
        total = sum_of(
            total, lg2(functions,
                       sum_of(1, ex2(functions,
                                     fused(simulation.sink, log2_e_single, -total), -1)),
                       way(-1)));
    for (int i = 0; i < count; i++) {
        const float weight = ex2(functions, sum_of(lse[i], -total), -1);
        for (int column = 0; column < OUTPUTS; column++)
            output[column] = fused(
                weight, quotient(parts[i].output[column], parts[i].sum), output[column]);
    }
    for (int column = 0; column < OUTPUTS; column++)
        simulation.out[column] = narrowed((double)output[column], false);
}

/* Computes the row: at least one key. */
static inline void simulate(void)
{
    static struct part_of_row parts[MOST_SPLITS];
    static float score[MOST_KEYS];
    int order[MOST_KEYS];
    shuffle(order, simulation.keys);
    for (int i = 0; simulation.is_in_order && i < simulation.keys; i++)
        order[i] = i;
    for (int i = 0; i < simulation.keys; i++)
        score[i] = score_of(i);
    const int blocks = (simulation.keys + 63) / 64;
    const int most = blocks < MOST_SPLITS ? blocks : MOST_SPLITS;
    const int splits = simulation.may_be_split ? 1 + (int)below(most) : 1;
    for (int i = 0; i < splits; i++) {
        const int first = simulation.keys * i / splits;
        attend(&parts[i], order + first, simulation.keys * (i + 1) / splits - first,
               score);
    }
    if (splits == 1)
        finish(&parts[0]);
    else
        combine(parts, splits);
}

#endif
