/* SPDX-License-Identifier: MIT */
/* Cases of fp8_gemm_nt with recipe=mx for testing model and bound, and a second reading
 * of the rules: dot-adds in doubles, every step of which is exact. One program, one case
 * at a time. */
#ifndef ASSAY_TESTS_VERIFY_MX_RULES_H
#define ASSAY_TESTS_VERIFY_MX_RULES_H

#include "tests/harness.h"
#include "verify/check/trial.h"
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt.h"
#include "verify/operation/numerics.h"
#include "verify/operation/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_K = 640, TERMS = 32 };

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

/* --- a case with its inputs --------------------------------------------------------- */

struct fixture {
    struct assay_case the_case;
    struct assay_fp8_gemm_nt_problem problem;
    struct assay_fp8_gemm_numerics numerics;
    struct assay_tensors tensors;
    struct assay_buffers buffers;
};

static inline void open_fixture(struct fixture *fixture, const char *text)
{
    struct assay_message message;
    const struct assay_operation *const operation = &assay_fp8_gemm_nt;
    ck_assert_msg(assay_case_parse(text, &fixture->the_case, &message) == ASSAY_RAN &&
                      operation->bind(&fixture->the_case, &fixture->problem, &message) ==
                          ASSAY_RAN &&
                      assay_numerics_parse(operation, &fixture->problem,
                                           fixture->the_case.numerics, &fixture->numerics,
                                           &message) == ASSAY_RAN,
                  "%s: %s", text, message.text);
    operation->shape(&fixture->problem, &fixture->tensors);
    ck_assert(assay_buffers_open(&fixture->buffers, &fixture->tensors, &message) ==
              ASSAY_RAN);
    operation->fill(&fixture->problem, fixture->the_case.data, fixture->the_case.seed,
                    &fixture->tensors);
}

static inline void close_fixture(struct fixture *fixture)
{
    assay_buffers_close(&fixture->buffers);
}

static inline const struct assay_tensor *tensor_of(const struct fixture *fixture,
                                                   const char *name)
{
    return assay_tensors_find(&fixture->tensors, name);
}

static inline void run_model(struct fixture *fixture)
{
    const enum assay_status status = assay_run_model(
        &assay_fp8_gemm_nt, &fixture->problem, &fixture->numerics, &fixture->tensors);
    ck_assert_int_eq(status, ASSAY_RAN);
}

/* --- the rules in doubles ----------------------------------------------------------- */

struct term { /* value, and the exponent that alignment sees */
    double value;
    int exponent;
};

static inline struct term decoded(enum assay_format format, unsigned code)
{
    const int bits = format == ASSAY_E4M3 ? 3 : format == ASSAY_E5M2 ? 2 : 1;
    const int bias = format == ASSAY_E4M3 ? 7 : format == ASSAY_E5M2 ? 15 : 1;
    const unsigned sign = format == ASSAY_E2M1 ? 0x08 : 0x80, magnitude = code % sign;
    const int field = (int)magnitude >> bits, fraction = (int)magnitude % (1 << bits);
    const double factor = code & sign ? -1 : 1;
    if (format == ASSAY_E4M3 && magnitude == 0x7f) return (struct term){ (double)NAN, 0 };
    if (format == ASSAY_E5M2 && field == 31)
        return (struct term){ fraction ? (double)NAN : factor * (double)INFINITY, 0 };
    const int exponent = (field ? field : 1) - bias;
    return (struct term){
        factor * ldexp(fraction + (field ? 1 << bits : 0), exponent - bits), exponent
    };
}

static inline struct term scaled(const struct fixture *fixture, const char *name,
                                 const char *scale_name, int64_t row, int64_t k)
{
    const struct assay_tensor *const codes = tensor_of(fixture, name);
    const struct assay_tensor *const scales = tensor_of(fixture, scale_name);
    const int64_t group = k / fixture->problem.gemm.gran_k;
    const uint32_t word =
        ((const uint32_t *)scales->data)[group / 4 * scales->stride[0] + row];
    const int scale = (int)(word >> group % 4 * 8 & 0xff);
    struct term term = decoded(
        codes->format, ((const uint8_t *)codes->data)[row * codes->stride[0] + k] &
                           (codes->format == ASSAY_E2M1 ? 15u : 255u));
    term.value = scale == 255 ? (double)NAN : ldexp(term.value, scale - 127);
    term.exponent += scale - 127;
    return term;
}

static inline double cut(double x, int quantum)
{
    return ldexp(trunc(ldexp(x, -quantum)), quantum);
}

/* One instruction onto @accumulator. */
static inline double dot_add(const struct assay_fp8_gemm_precision *precision,
                             double accumulator, const struct term *product,
                             int64_t count)
{
    double plain = accumulator, sum = 0;
    int largest = -9999;
    if (accumulator != 0 && isfinite(accumulator))
        largest = ilogb(accumulator) > -126 ? ilogb(accumulator) : -126;
    for (int64_t i = 0; i < count; i++) {
        plain += product[i].value;
        if (product[i].value != 0 && product[i].exponent > largest)
            largest = product[i].exponent;
    }
    if (!isfinite(plain)) return plain;
    if (largest == -9999) return 0;
    const int quantum = largest - precision->align_bits;
    for (int64_t i = 0; i < count; i++)
        sum += cut(product[i].value, quantum);
    sum += cut(accumulator, quantum);
    if (sum == 0) return 0;
    const int finest = ilogb(sum) - precision->result_bits;
    sum = cut(sum, finest > -149 ? finest : -149);
    if (fabs(sum) >= 0x1p128) return copysign((double)INFINITY, sum);
    return sum == 0 ? 0 : sum;
}

/* The chain of products in the order given; d before its conversion. */
static inline double chain(const struct fixture *fixture,
                           const struct assay_fp8_gemm_precision *precision, int64_t row,
                           int64_t column, const int64_t *order)
{
    const int64_t k = fixture->problem.gemm.k;
    double accumulator = 0;
    for (int64_t done = 0; done < k; done += TERMS) {
        struct term product[TERMS];
        const int64_t count = k - done < TERMS ? k - done : TERMS;
        for (int64_t i = 0; i < count; i++) {
            const struct term a = scaled(fixture, "a", "sfa", row, order[done + i]);
            const struct term b = scaled(fixture, "b", "sfb", column, order[done + i]);
            product[i] = (struct term){ a.value * b.value, a.exponent + b.exponent };
        }
        accumulator = dot_add(precision, accumulator, product, count);
    }
    return accumulator;
}

static inline uint32_t converted(double value, enum assay_format out,
                                 bool rounds_toward_zero)
{
    const float rounded = (float)value;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    if (isnan(value)) bits = 0x7fffffff;
    if (out == ASSAY_F32) return bits;
    if (isfinite(value) && !rounds_toward_zero) bits += 0x7fff + (bits >> 16 & 1);
    return bits >> 16;
}

static const char *const formats[] = { "e4m3", "e5m2", "e2m1" };

static inline void drawn_case(char *text, size_t size, enum assay_data_kind kind,
                              int64_t k, const char *numerics)
{
    snprintf(text, size,
             "fp8_gemm_nt m=%d n=%d k=%d recipe=mx gran_k=%d out=%s a_format=%s "
             "b_format=%s data=%s seed=%u%s",
             1 + (int)below(9), 8 + 8 * (int)below(2), (int)k, below(2) ? 32 : 128,
             below(2) ? "f32" : "bf16", formats[below(3)], formats[below(3)],
             assay_data_kinds[kind].name, draw(), numerics);
}

/* What UE8M0 may be: anything, or around @centre. */
static inline void fill_scales(const struct fixture *fixture, const char *name,
                               int centre)
{
    const struct assay_tensor *const scales = tensor_of(fixture, name);
    uint8_t *const bytes = scales->data;
    for (int64_t i = 0; i < assay_tensor_bytes(scales); i++)
        bytes[i] = centre ? (uint8_t)(centre + below(20)) : (uint8_t)(draw() >> 24);
}

static inline struct assay_result result_of(const char *text, const char *numerics)
{
    static char argument[ASSAY_MAX_NUMERICS_TEXT];
    struct assay_case the_case;
    struct assay_message message;
    snprintf(argument, sizeof(argument), "%s", numerics);
    ck_assert(assay_case_parse(text, &the_case, &message) == ASSAY_RAN);
    struct assay_trial_plan plan = { .candidate_state = argument,
                                     .uses_model = true,
                                     .uses_oracle = true,
                                     .checks = assay_checks };
    for (int i = 0; assay_backends[i]; i++)
        if (strcmp(assay_backends[i]->scheme, "model") == 0)
            plan.candidate = assay_backends[i];
    struct assay_result result;
    assay_trial_run(&plan, &the_case, NULL, 0, &result);
    ck_assert_msg(result.status == ASSAY_RAN, "%s: %s", text, result.message.text);
    return result;
}

#endif
