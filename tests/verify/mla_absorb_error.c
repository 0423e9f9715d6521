/* SPDX-License-Identifier: MIT */
/* The pieces of the bound of mla_absorb, one at a time: errors of products against chains
 * of the real units, errors carried along against the worst there can be, and each store
 * of bf16 alone, where the model nearly reaches the bound. */
#include "verify/operation/mla_absorb/mla_absorb_error.h"

#include "ref/unit/dot_add.h"
#include "tests/harness.h"
#include "tests/verify/judged_case.h"

#include <math.h>

enum { TERMS = 50, OUTPUTS = 400 };

static uint64_t state = 1;

static uint32_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 32);
}

static double value_of(uint32_t code)
{
    const uint32_t bits = code << 16;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

/* --- products ---------------------------------------------------------------------- */

static float chain_on_tensor_core(const uint32_t *a, const uint32_t *b)
{
    const struct assay_dot_add *const unit = assay_dot_add_find("hopper-bf16");
    uint32_t sum = 0;
    float value;
    for (int k = 0; k < TERMS; k += 16) {
        struct assay_operand x[16], y[16];
        for (int i = 0; i < 16; i++) {
            x[i] = assay_operand_decode(unit, ASSAY_BF16, k + i < TERMS ? a[k + i] : 0);
            y[i] = assay_operand_decode(unit, ASSAY_BF16, k + i < TERMS ? b[k + i] : 0);
        }
        sum = assay_dot_add(unit, sum, x, y);
    }
    memcpy(&value, &sum, sizeof(value));
    return value;
}

static float chain_of_fma(const uint32_t *a, const uint32_t *b)
{
    float sum = 0;
    for (int k = 0; k < TERMS; k++)
        sum = fmaf((float)value_of(a[k]), (float)value_of(b[k]), sum);
    return sum;
}

/* What the sum itself may be off by, and the largest part of it that a unit reaches. */
static double reached(bool is_on_tensor_core, uint32_t sign_mask)
{
    double worst = 0;
    for (int i = 0; i < OUTPUTS; i++) {
        uint32_t a[TERMS], b[TERMS];
        double x[TERMS], y[TERMS], sum = 0, error, local;
        double spread, magnitude;
        struct assay_mla_sums sums = { &spread, &magnitude, 0, 0 };
        for (int k = 0; k < TERMS; k++) {
            a[k] = 0x3C00 + (draw() >> 16) % 0x500;
            b[k] = (0x3C00 + (draw() >> 16) % 0x500) | (draw() & sign_mask);
            x[k] = value_of(a[k]);
            y[k] = value_of(b[k]);
            sum += x[k] * y[k]; /* exact: 16 bits each, 20 binades */
        }
        const struct assay_mla_quantity left = { x, NULL, NULL, 1, TERMS, true };
        const struct assay_mla_quantity right = { y, NULL, NULL, 1, TERMS, true };
        const struct assay_mla_quantity out = { NULL, &error, &local, 1, 1, false };
        assay_mla_absorb_begin(&sums, 1);
        assay_mla_absorb_add(&sums, is_on_tensor_core, &left, &right, false);
        assay_mla_absorb_finish(&sums, &out);
        const float computed =
            is_on_tensor_core ? chain_on_tensor_core(a, b) : chain_of_fma(a, b);
        ck_assert(error == local && fabs((double)computed - sum) <= error);
        worst = fmax(worst, fabs((double)computed - sum) / error);
    }
    return worst;
}

/* Truncation of positive terms adds up; roundings of an fma chain cancel in part. */
START_TEST(errors_of_sums_are_those_of_the_unit)
{
    const double truncated = reached(true, 0), rounded = reached(false, 0);
    ck_assert_msg(truncated > 0.09 && truncated < 0.18, "%g", truncated);
    ck_assert_msg(rounded > 0.06 && rounded < 0.12, "%g", rounded);
    ck_assert(reached(true, 0x8000) > 0 && reached(false, 0x8000) > 0);
}
END_TEST

/* All factors off by all they can be, in the direction that counts. */
START_TEST(errors_of_factors_are_carried_in_full)
{
    const double a[] = { 2, -3, 0.5, 0, 4, 1 }, b[] = { 1, 5, -2, 7, -1, 3 };
    double a_error[] = { 0.25, 0.5, 0, 0.125, 1, 0 };
    double b_error[] = { 0.5, 0, 0.25, 1, 0, 0.125 };
    double spread[4], magnitude[4], error[4], local[4];
    struct assay_mla_sums sums = { spread, magnitude, 0, 0 };
    const struct assay_mla_quantity left = { a, a_error, NULL, 2, 3, false };
    const struct assay_mla_quantity rows = { b, b_error, NULL, 2, 3, false };
    const struct assay_mla_quantity columns = { b, b_error, NULL, 3, 2, false };
    const struct assay_mla_quantity out = { NULL, error, local, 2, 2, false };
    for (int is_transposed = 0; is_transposed < 2; is_transposed++) {
        assay_mla_absorb_begin(&sums, 4);
        assay_mla_absorb_add(&sums, true, &left, is_transposed ? &columns : &rows,
                             is_transposed);
        assay_mla_absorb_finish(&sums, &out);
        for (int i = 0; i < 4; i++) {
            double exact = 0, most = 0;
            for (int k = 0; k < 3; k++) {
                const int at_a = i / 2 * 3 + k;
                const int at_b = is_transposed ? 2 * k + i % 2 : i % 2 * 3 + k;
                exact += fabs(a[at_a] * b[at_b]);
                most += (fabs(a[at_a]) + a_error[at_a]) * (fabs(b[at_b]) + b_error[at_b]);
            }
            ck_assert(fabs(error[i] - local[i] - (most - exact)) < 1e-14);
            ck_assert(local[i] >= 3 * 0x1p-24 * most && local[i] < 4 * 0x1p-24 * most);
        }
    }
}
END_TEST

/* A second chain adds its M and its gamma, and the first one's M meets both. */
START_TEST(chains_behind_one_another_add_up)
{
    const double a[] = { 2, 3 };
    double spread, magnitude;
    struct assay_mla_sums sums = { &spread, &magnitude, 0, 0 };
    const struct assay_mla_quantity x = { a, NULL, NULL, 1, 2, true };
    assay_mla_absorb_begin(&sums, 1);
    assay_mla_absorb_add(&sums, true, &x, &x, false);
    assay_mla_absorb_add(&sums, false, &x, &x, false);
    const double least =
        assay_mla_absorb_gamma(true, 2) + assay_mla_absorb_gamma(false, 2);
    ck_assert(magnitude == 26 && sums.gamma > least && sums.gamma < least * 1.00001);
    ck_assert(assay_mla_absorb_own_error(&sums, 0) >= 26 * sums.gamma);
}
END_TEST

/* --- stores and turns -------------------------------------------------------------- */

START_TEST(half_a_unit_is_that_of_bf16)
{
    ck_assert(assay_mla_absorb_half_unit(1) == 0x1p-8);
    ck_assert(assay_mla_absorb_half_unit(1.99) == 0x1p-8);
    ck_assert(assay_mla_absorb_half_unit(0x1p-126) == 0x1p-134);
    ck_assert(assay_mla_absorb_half_unit(0x1p-140) == 0x1p-134);
    ck_assert(assay_mla_absorb_half_unit(0) == 0);
    ck_assert(isinf(assay_mla_absorb_half_unit(0x1p128)));
    ck_assert(isinf(assay_mla_absorb_half_unit((double)NAN)));
}
END_TEST

START_TEST(a_store_rounds_what_may_be_larger_by_its_error)
{
    const double value[] = { 1.75, -1.75 };
    double error[] = { 0.125, 0.25 }, local[] = { 0.0625, 0 };
    const struct assay_mla_quantity x = { value, error, local, 1, 2, true };
    assay_mla_absorb_round(&x);
    ck_assert(error[0] == 0.125 + 0x1p-8 && local[0] == 0.0625 + 0x1p-8);
    ck_assert(error[1] == 0.25 + 0x1p-7 && local[1] == 0x1p-7);
}
END_TEST

/* By an angle whose cosine is -0.6 and whose sine is 0.8. */
START_TEST(errors_of_a_pair_are_turned_with_it)
{
    const double flat[] = { 3, 4 }, value[] = { -5, 0 }, cosine = -0.6, sine = 0.8;
    double error[] = { 0.1, 0.2 }, local[] = { 0.01, 0.03 };
    const struct assay_mla_quantity x = { value, error, local, 1, 2, true };
    assay_mla_absorb_turn(&x, flat, &cosine, &sine);
    ck_assert(fabs(error[0] - (0.6 * 0.1 + 0.8 * 0.2)) < 1e-6);
    ck_assert(fabs(error[1] - (0.8 * 0.1 + 0.6 * 0.2)) < 1e-6);
    ck_assert(fabs(local[0] - (0.6 * 0.01 + 0.8 * 0.03)) < 1e-6);
    ck_assert(fabs(local[1] - (0.8 * 0.01 + 0.6 * 0.03)) < 1e-6);
    ck_assert(error[0] > 0.6 * 0.1 + 0.8 * 0.2 + 5 * 0x1p-24);
}
END_TEST

/* --- each store alone -------------------------------------------------------------- */

/* The largest part of its bound that the model reaches over heads and seeds, with one
 * store of bf16. Vectors of one or two elements, so that no errors cancel; scores of the
 * order of 1 to 1000. */
static double reached_alone(const char *form, const char *store)
{
    double worst = 0;
    for (int seed = 0; seed < 36; seed++) {
        char text[192];
        snprintf(text, sizeof(text),
                 "mla_absorb n=2 h_q=128 d=%d d_c=1 d_c_q=1 d_h=1 d_r=2 out=f32 form=%s "
                 "weight_exponent=%d seed=%d as=f32,%s=bf16",
                 2 << seed % 3 * 2, form, -(seed / 3 % 2), seed, store);
        struct assay_result result = result_of(text, "", NULL);
        ck_assert_msg(result.output[0].outside == 0, "%s: %g", text,
                      result.output[0].max_error_over_bound);
        worst = fmax(worst, result.output[0].max_error_over_bound);
        assay_result_close(&result);
    }
    return worst;
}

START_TEST(each_store_alone_nearly_reaches_its_bound)
{
    static const struct {
        const char *store;
        double absorbed, expanded; /* 0: the form has no such store */
    } rows[] = {
        { "c_kv", 0.9, 0.9 },    { "c_q", 0.9, 0.9 }, { "rotary", 0.7, 0.7 },
        { "k", 0.8, 0.8 },       { "q", 0.9, 0.9 },   { "v", 0, 0.95 },
        { "q_latent", 0.95, 0 }, { "p", 0.9, 0.9 },   { "o_latent", 0.95, 0 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const double absorbed = reached_alone("absorbed", rows[i].store);
        const double expanded = reached_alone("expanded", rows[i].store);
        ck_assert_msg(absorbed >= rows[i].absorbed && expanded >= rows[i].expanded,
                      "%s: %g, %g", rows[i].store, absorbed, expanded);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        errors_of_sums_are_those_of_the_unit,
        errors_of_factors_are_carried_in_full,
        chains_behind_one_another_add_up,
        half_a_unit_is_that_of_bf16,
        a_store_rounds_what_may_be_larger_by_its_error,
        errors_of_a_pair_are_turned_with_it,
        each_store_alone_nearly_reaches_its_bound,
        NULL,
    };
    return run_tests("mla_absorb_error", tests);
}
