/* SPDX-License-Identifier: MIT */
/* Tests of the operation mla_absorb as a whole: the bound against the model, against
 * faults of it and against hostile inputs, the data kinds, what is refused, and the cost
 * of each rounding as its page tells it. */
#include "ref/kernel/mla_absorb.h"

#include "ref/oracle/mla_absorb.h"
#include "tests/harness.h"
#include "tests/verify/drawn_result.h"
#include "tests/verify/judged_case.h"
#include "tests/verify/shaped_case.h"
#include "verify/operation/mla_absorb/mla_absorb.h"
#include "verify/operation/numerics.h"
#include "verify/operation/parts.h"

#include <math.h>

static const char *const form_names[] = { "absorbed", "expanded" };

/* A case with generated inputs, and what the oracle and the model say. */
struct opened {
    struct assay_mla_absorb_case bound;
    struct assay_mla_absorb_numerics numerics;
    struct assay_tensors tensors;
    struct assay_buffers buffers;
};

static void open_case(const char *text, const char *numerics, struct opened *opened)
{
    struct assay_message message = { "" };
    const struct assay_case the_case = parsed(text);
    generate_case(&the_case, &opened->tensors, &opened->buffers);
    ck_assert(assay_mla_absorb.bind(&the_case, &opened->bound, &message) == ASSAY_RAN);
    ck_assert(assay_numerics_parse(&assay_mla_absorb, &opened->bound, numerics,
                                   &opened->numerics, &message) == ASSAY_RAN);
}

static void run_model(struct opened *opened)
{
    ck_assert(assay_run_model(&assay_mla_absorb, &opened->bound, &opened->numerics,
                              &opened->tensors) == ASSAY_RAN);
}

/* --- the bound --------------------------------------------------------------------- */

/* The floors are more than half of what the model reaches, so that doubling the bound
 * fails here. All roundings at their worst and in one direction are rare, so the model
 * reaches the less, the more of them there are. */
START_TEST(bounds_are_tight)
{
    static const struct {
        const char *text;
        double floor;
    } rows[] = {
        { "mla_absorb n=1 d=1 d_c=1 d_c_q=1 d_h=1 d_r=2 h_q=128 out=f32", 0.12 },
        { "mla_absorb n=1 d=1 d_c=1 d_c_q=1 d_h=1 d_r=2 h_q=128 out=f32 form=expanded",
          0.16 },
        { "mla_absorb n=40 s_q=4", 0.06 },
        { "mla_absorb n=40 s_q=4 form=expanded", 0.056 },
        { "mla_absorb n=40 s_q=4 out=f32", 0.047 },
        { "mla_absorb n=40 s_q=4 out=f32 form=expanded", 0.037 },
        { "mla_absorb n=40 s_q=4 out=f32 as=f32", 0.00058 },
        { "mla_absorb n=40 s_q=4 out=f32 form=expanded as=f32", 0.0008 },
        { "mla_absorb n=40 s_q=4 as=f32", 0.61 },
        { "mla_absorb n=40 s_q=4 data=positive weight_exponent=-5", 0.23 },
        { "mla_absorb n=40 s_q=4 form=expanded data=positive weight_exponent=-5", 0.22 },
        { "mla_absorb n=40 s_q=4 data=uniform", 0.06 },
        { "mla_absorb n=40 s_q=4 form=expanded data=uniform", 0.063 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct assay_result result = result_of(rows[i].text, "", NULL);
        const double reached = result.output[0].max_error_over_bound;
        ck_assert_msg(reached >= rows[i].floor && reached < 1.8 * rows[i].floor, "%s: %g",
                      rows[i].text, reached);
        ck_assert_int_eq(result.output[0].unclaimed, 0);
        assay_result_close(&result);
    }
}
END_TEST

/* Each knob the other way, for both numerics and forms, on every kind of data. */
START_TEST(bound_holds_for_every_knob)
{
    static const char *const kinds[] = { "normal", "uniform", "positive" };
    for (const struct assay_knob *knob = assay_mla_absorb_knobs; knob->name; knob++)
        for (int i = 0; i < 12; i++) {
            char text[256], numerics[64];
            const bool is_bf16 = i / 2 % 2;
            snprintf(numerics, sizeof(numerics), "%s,%s=%s", is_bf16 ? "bf16" : "f32",
                     knob->name, knob->choices[is_bf16].name);
            snprintf(text, sizeof(text),
                     "mla_absorb n=11 s_q=3 form=%s out=%s weight_exponent=-4 data=%s "
                     "seed=%d as=%s",
                     form_names[i % 2], i % 5 ? "f32" : "bf16", kinds[i % 3], i,
                     numerics);
            struct assay_result result = result_of(text, numerics, NULL);
            ck_assert_msg(result.output[0].outside == 0, "%s", text);
            ck_assert_int_eq(result.output[0].unclaimed, 0);
            assay_result_close(&result);
        }
}
END_TEST

/* --- faults ------------------------------------------------------------------------ */

/* Halves are paired, x[i] with x[i + d_r / 2]: the other convention. */
static void rotate_halves(float *x, const float *cosine, const float *sine, int64_t pairs)
{
    float paired[128];
    for (int64_t i = 0; i < pairs; i++) {
        paired[2 * i] = x[i];
        paired[2 * i + 1] = x[pairs + i];
    }
    assay_mla_absorb_rotate(paired, cosine, sine, pairs);
    for (int64_t i = 0; i < pairs; i++) {
        x[i] = paired[2 * i];
        x[pairs + i] = paired[2 * i + 1];
    }
}

static void rotate_backwards(float *x, const float *cosine, const float *sine,
                             int64_t pairs)
{
    for (int64_t i = 0; i < pairs; i++) {
        const float opposite = -sine[i];
        assay_mla_absorb_rotate(x + 2 * i, cosine + i, &opposite, 1);
    }
}

static void rotate_not(float *x, const float *cosine, const float *sine, int64_t pairs)
{
    (void)x, (void)cosine, (void)sine, (void)pairs;
}

/* d_h^-0.5 in the place of (d_h + d_r)^-0.5, for d_h = 2 d_r. */
static float weigh_without_rotary(float *score, int64_t keys, float scale)
{
    return assay_mla_absorb_weigh(score, keys, scale * 1.2247449F);
}

static float weigh_with_natural_scale(float *score, int64_t keys, float scale)
{
    return assay_mla_absorb_weigh(score, keys, scale * 0.6931472F);
}

static float forget_the_query_s_own_token(float *score, int64_t keys, float scale)
{
    score[keys - 1] = -INFINITY;
    return assay_mla_absorb_weigh(score, keys, scale);
}

static float count_a_key_twice(float *score, int64_t keys, float scale)
{
    return assay_mla_absorb_weigh(score, keys, scale) + score[0];
}

/* Elements of o outside the bound. */
static int64_t outside(const struct opened *opened)
{
    const struct assay_mla_absorb_problem *const p = &opened->bound.problem;
    const float *const o = opened->tensors.item[ASSAY_MLA_ABSORB_O].data;
    const int64_t count = p->s_q * p->d_h;
    double *const room = calloc((size_t)(2 * count), sizeof(*room));
    int64_t found = 0;
    const struct assay_expected expected = { room, room + count };
    for (int64_t head = 0; head < p->h_q; head++) {
        ck_assert(assay_mla_absorb_expect(p, &opened->numerics, &opened->tensors, head,
                                          &expected) == ASSAY_RAN);
        for (int64_t i = 0; i < count; i++) {
            const int64_t at = (i / p->d_h * p->h_q + head) * p->d_h + i % p->d_h;
            found += !(fabs((double)o[at] - expected.value[i]) <= expected.bound[i]);
        }
    }
    free(room);
    return found;
}

START_TEST(faults_are_outside)
{
    static const struct assay_mla_absorb_stages faults[] = {
        { rotate_halves, assay_mla_absorb_weigh },
        { rotate_backwards, assay_mla_absorb_weigh },
        { rotate_not, assay_mla_absorb_weigh },
        { assay_mla_absorb_rotate, weigh_without_rotary },
        { assay_mla_absorb_rotate, weigh_with_natural_scale },
        { assay_mla_absorb_rotate, forget_the_query_s_own_token },
        { assay_mla_absorb_rotate, count_a_key_twice },
    };
    for (int i = 0; i < 4; i++) {
        char text[160];
        struct opened opened;
        snprintf(text, sizeof(text),
                 "mla_absorb n=24 s_q=4 out=f32 weight_exponent=-3 form=%s seed=3",
                 form_names[i % 2]);
        open_case(text, i < 2 ? "bf16" : "f32", &opened);
        run_model(&opened);
        ck_assert_int_eq(outside(&opened), 0);
        /* The roundings of bf16 can do what the last one does. */
        const size_t count = sizeof(faults) / sizeof(faults[0]) - (i < 2);
        for (size_t j = 0; j < count; j++) {
            opened.numerics.stage = faults[j];
            run_model(&opened);
            const int64_t found = outside(&opened);
            ck_assert_msg(found > 0, "fault %zu, %s", j, text);
        }
        assay_buffers_close(&opened.buffers);
    }
}
END_TEST

static void swap_heads(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const o = &tensors->item[ASSAY_MLA_ABSORB_O];
    for (int64_t i = 0; i < o->shape[2]; i++) {
        const uint32_t first = assay_tensor_bits(o, i);
        assay_tensor_set_bits(o, i, assay_tensor_bits(o, o->shape[2] + i));
        assay_tensor_set_bits(o, o->shape[2] + i, first);
    }
}

static void raise_by_one(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const o = &tensors->item[ASSAY_MLA_ABSORB_O];
    assay_tensor_set_bits(o, 5, assay_tensor_bits(o, 5) + 1);
}

static void leave_poison(const struct assay_tensors *tensors)
{
    assay_tensor_set_bits(&tensors->item[ASSAY_MLA_ABSORB_O], 5, 0x7FFF);
}

START_TEST(wrong_outputs_are_outside)
{
    static const struct {
        const char *text;
        void (*how)(const struct assay_tensors *tensors);
    } rows[] = {
        { "mla_absorb n=24", swap_heads },
        { "mla_absorb n=24 form=expanded", swap_heads },
        { "mla_absorb n=24 data=positive weight_exponent=-5", leave_poison },
        { "mla_absorb n=16 data=exact", raise_by_one },
        { "mla_absorb n=16 data=exact out=f32 form=expanded", raise_by_one },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct assay_result result = result_of(rows[i].text, "", rows[i].how);
        ck_assert_msg(result.verdict == ASSAY_OUTSIDE, "%s", rows[i].text);
        assay_result_close(&result);
    }
}
END_TEST

/* --- hostile inputs ---------------------------------------------------------------- */

/* Unclaimed elements of 2 queries, 2 heads, 16 elements: what NaN and overflow reach, and
 * no contradiction. Token 2 is the second query's own. */
START_TEST(nothing_is_claimed_of_what_is_not_finite)
{
    static const struct {
        const char *bits;
        int64_t unclaimed;
    } rows[] = {
        { "hidden.0.3:7fc0", 64 },  { "hidden.2.3:7f80", 32 },
        { "w_uv.1.7.0:7f80", 2 },   { "w_uk.0.0.0:ffc1", 32 },
        { "w_dq.1.2:7fc0", 64 },    { "cos.2.0:7fc00000", 32 },
        { "sin.0.1:7f800000", 64 }, { "hidden.0.0:7f7f,w_dkv.0.0:7f7f", 64 },
        { "w_uv.0.4.1:0001", 0 },   { "hidden.0.0:8000", 0 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int j = 0; j < 4; j++) {
            char text[192];
            snprintf(text, sizeof(text), "mla_absorb n=3 s_q=2 form=%s as=%s bits=%s",
                     form_names[j % 2], j < 2 ? "bf16" : "f32", rows[i].bits);
            struct assay_result result = result_of(text, "", NULL);
            ck_assert_msg(result.output[0].unclaimed == rows[i].unclaimed, "%s: %lld",
                          text, (long long)result.output[0].unclaimed);
            ck_assert_msg(result.output[0].outside == 0, "%s", text);
            ck_assert(result.verdict == ASSAY_BOUNDED);
            assay_result_close(&result);
        }
}
END_TEST

/* Weights that leave one key anything: nothing is said, rather than something wrong. */
START_TEST(scores_beyond_all_precision_are_not_claimed)
{
    struct assay_result result = result_of("mla_absorb n=9 weight_exponent=0", "", NULL);
    ck_assert_int_gt(result.output[0].unclaimed, 0);
    ck_assert_int_eq(result.output[0].outside, 0);
    assay_result_close(&result);
}
END_TEST

START_TEST(tiny_values_keep_their_bounds)
{
    for (int i = 0; i < 4; i++) {
        struct opened opened;
        char text[128];
        snprintf(text, sizeof(text), "mla_absorb n=7 s_q=2 out=f32 form=%s",
                 form_names[i % 2]);
        open_case(text, i < 2 ? "bf16" : "f32", &opened);
        /* Hidden states and w_dkv near 2^-70: c_kv is subnormal in f32 and in bf16. */
        for (int j = 0; j < 2; j++) {
            const struct assay_tensor *const tensor = &opened.tensors.item[j];
            for (int64_t k = 0; k < assay_tensor_elements(tensor); k++)
                assay_tensor_set_bits(tensor, k,
                                      (assay_tensor_bits(tensor, k) & 0x80FF) | 0x1C00);
        }
        run_model(&opened);
        ck_assert_int_eq(outside(&opened), 0);
        assay_buffers_close(&opened.buffers);
    }
}
END_TEST

/* --- data -------------------------------------------------------------------------- */

START_TEST(exact_data_leaves_one_answer)
{
    static const int64_t ns[] = { 1, 2, 64, 256 };
    for (int i = 0; i < 32; i++) {
        char text[192];
        snprintf(text, sizeof(text),
                 "mla_absorb n=%lld h_q=1 d=%d d_c=%d d_h=24 data=exact out=%s "
                 "form=%s as=%s seed=%d",
                 (long long)ns[i / 8], i % 3 ? 33 : 300, i % 5 ? 70 : 1024,
                 i & 1 ? "f32" : "bf16", form_names[i >> 1 & 1], i & 4 ? "f32" : "bf16",
                 i);
        struct assay_result result = result_of(text, "", NULL);
        ck_assert(result.output[0].has_exact);
        ck_assert_msg(result.output[0].inexact == 0, "%s", text);
        ck_assert_msg(ns[i / 8] < 64 || !result.output[0].is_constant, "%s", text);
        assay_result_close(&result);
    }
}
END_TEST

/* Element of the larger tensor at the coordinates of @element of the smaller. */
static int64_t counterpart(const struct assay_tensor *small, int64_t element,
                           const struct assay_tensor *large)
{
    int64_t at = 0, scale = 1;
    for (int i = small->rank - 1; i >= 0; i--) {
        at += element % small->shape[i] * scale;
        element /= small->shape[i];
        scale *= large->shape[i];
    }
    return at;
}

START_TEST(smaller_cases_keep_the_values_they_share)
{
    static const char *const kinds[] = { "normal", "uniform", "positive", "exact" };
    for (int kind = 0; kind < 4; kind++) {
        struct opened small, large;
        char text[192];
        snprintf(text, sizeof(text),
                 "mla_absorb n=16 h_q=3 d=70 d_c=40 d_c_q=36 d_h=20 "
                 "d_r=10 data=%s seed=9",
                 kinds[kind]);
        open_case(text, "", &large);
        snprintf(text, sizeof(text),
                 "mla_absorb n=8 h_q=2 d=65 d_c=33 d_c_q=30 d_h=18 "
                 "d_r=6 data=%s seed=9",
                 kinds[kind]);
        open_case(text, "", &small);
        for (int i = 0; i < ASSAY_MLA_ABSORB_O; i++) {
            const struct assay_tensor *const a = &small.tensors.item[i];
            const struct assay_tensor *const b = &large.tensors.item[i];
            for (int64_t k = 0; k < assay_tensor_elements(a); k++)
                ck_assert_msg(assay_tensor_bits(a, k) ==
                                  assay_tensor_bits(b, counterpart(a, k, b)),
                              "%s of %s", a->name, kinds[kind]);
        }
        assay_buffers_close(&small.buffers);
        assay_buffers_close(&large.buffers);
    }
}
END_TEST

/* cos and sin of position times 2 atan(x), x = 1/2, 3/8, 1/4 ... */
START_TEST(turns_are_multiples_of_an_angle_for_each_pair)
{
    enum { PAIRS = 64, N = 4096 };
    struct opened opened;
    open_case("mla_absorb n=4096 d=1 d_c=1 d_r=128", "", &opened);
    const float *const cosine = opened.tensors.item[ASSAY_MLA_ABSORB_COS].data;
    const float *const sine = opened.tensors.item[ASSAY_MLA_ABSORB_SIN].data;
    for (int64_t i = 0; i < (int64_t)N * PAIRS; i++) {
        const int pair = (int)(i % PAIRS);
        const double x = ldexp(pair % 2 ? 3 : 4, -3 - pair / 2);
        const double angle = 2 * atan(x) * (double)(i / PAIRS);
        if (fabs((double)cosine[i] - cos(angle)) > 0x1p-24 ||
            fabs((double)sine[i] - sin(angle)) > 0x1p-24)
            ck_abort_msg("position %lld, pair %d", (long long)(i / PAIRS), pair);
    }
    assay_buffers_close(&opened.buffers);
}
END_TEST

START_TEST(cases_that_make_no_sense_are_refused)
{
    static const struct {
        const char *text, *word;
    } rows[] = {
        { "mla_absorb n=3 s_q=4", "at most n" },
        { "mla_absorb n=3 d_r=5", "even" },
        { "mla_absorb n=12 data=exact", "power of two" },
        { "mla_absorb n=512 data=exact", "at most 256" },
        { "mla_absorb n=8 s_q=2 data=exact", "s_q=1" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct assay_mla_absorb_case bound;
        struct assay_message message = { "" };
        const struct assay_case the_case = parsed(rows[i].text);
        ck_assert(assay_mla_absorb.bind(&the_case, &bound, &message) == ASSAY_REFUSED);
        ck_assert_msg(strstr(message.text, rows[i].word) != NULL, "%s", message.text);
    }
    struct assay_case the_case;
    struct assay_message message;
    ck_assert(assay_case_parse("mla_absorb n=4 data=needle", &the_case, &message) ==
              ASSAY_REFUSED);
}
END_TEST

START_TEST(drawn_cases_are_accepted_and_within_their_budget)
{
    const double granted = 60000; /* a few times the smallest case */
    int forms[2] = { 0 }, kinds[ASSAY_DATA_KIND_COUNT] = { 0 };
    for (int i = 0; i < 3000; i++) {
        const double budget = (double)(1024 << i % 12);
        struct assay_case the_case;
        struct assay_mla_absorb_case bound;
        struct assay_message message = { "" };
        char line[ASSAY_MAX_CASE_LINE];
        draw_case("mla_absorb", 1, "draw", i, budget, &the_case, line);
        ck_assert_msg(assay_mla_absorb.bind(&the_case, &bound, &message) == ASSAY_RAN,
                      "%s", message.text);
        const double cost = assay_mla_absorb.cost(&bound).multiply_adds;
        ck_assert_msg(cost <= (budget > granted ? budget : granted), "%s: %g of %g", line,
                      cost, budget);
        forms[bound.problem.form]++;
        kinds[the_case.data]++;
    }
    ck_assert(forms[0] > 1000 && forms[1] > 1000 && kinds[ASSAY_DATA_EXACT] > 100);
    ck_assert(kinds[ASSAY_DATA_NORMAL] > 500 && kinds[ASSAY_DATA_POSITIVE] > 200);
}
END_TEST

/* --- what each rounding costs ------------------------------------------------------ */

/* Root mean square of |o - FP64| over that of FP64. */
static double relative_error(const char *text, const char *numerics)
{
    struct opened opened;
    double error = 0, size = 0;
    open_case(text, numerics, &opened);
    const struct assay_mla_absorb_problem *const p = &opened.bound.problem;
    run_model(&opened);
    const float *const o = opened.tensors.item[ASSAY_MLA_ABSORB_O].data;
    struct assay_mla_absorb_oracle *const oracle =
        assay_mla_absorb_oracle_open(p, &opened.tensors, 0);
    ck_assert(oracle && p->h_q == 1);
    for (int64_t i = 0; i < p->s_q * p->d_h; i++) {
        error += pow((double)o[i] - oracle->o[i], 2);
        size += pow(oracle->o[i], 2);
    }
    assay_mla_absorb_oracle_close(oracle);
    assay_buffers_close(&opened.buffers);
    return sqrt(error / size);
}

/* The table of mla_absorb.md, in its digits. */
START_TEST(roundings_cost_what_the_page_says)
{
    static const struct {
        const char *numerics;
        double absorbed, expanded;
    } rows[] = {
        { "bf16", 0.0042, 0.00379 },
        { "f32", 6.06e-07, 5.95e-07 },
        { "f32,c_kv=bf16", 0.00202, 0.00202 },
        { "f32,c_q=bf16", 0.00161, 0.00161 },
        { "f32,rotary=bf16", 0.000734, 0.000734 },
        { "f32,k=bf16", 0.000565, 0.00137 },
        { "f32,q=bf16", 0.00168, 0.00168 },
        { "f32,v=bf16", 6.06e-07, 0.00164 },
        { "f32,q_latent=bf16", 0.00131, 5.95e-07 },
        { "f32,p=bf16", 0.00131, 0.00131 },
        { "f32,o_latent=bf16", 0.00169, 5.95e-07 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int form = 0; form < 2; form++) {
            char text[192];
            snprintf(text, sizeof(text),
                     "mla_absorb n=64 s_q=8 h_q=1 d=256 d_c=512 d_c_q=128 d_h=128 d_r=64 "
                     "form=%s out=f32 weight_exponent=-4 seed=1",
                     form_names[form]);
            const double error = relative_error(text, rows[i].numerics);
            const double said = form ? rows[i].expanded : rows[i].absorbed;
            ck_assert_msg(fabs(error - said) <= 0.006 * said, "%s, %s: %.3g",
                          rows[i].numerics, form_names[form], error);
        }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        bounds_are_tight,
        bound_holds_for_every_knob,
        faults_are_outside,
        wrong_outputs_are_outside,
        nothing_is_claimed_of_what_is_not_finite,
        scores_beyond_all_precision_are_not_claimed,
        tiny_values_keep_their_bounds,
        exact_data_leaves_one_answer,
        smaller_cases_keep_the_values_they_share,
        turns_are_multiples_of_an_angle_for_each_pair,
        cases_that_make_no_sense_are_refused,
        drawn_cases_are_accepted_and_within_their_budget,
        roundings_cost_what_the_page_says,
        NULL,
    };
    return run_tests("mla_absorb", tests);
}
