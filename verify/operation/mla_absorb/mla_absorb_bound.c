/* SPDX-License-Identifier: MIT */
/* The bound of mla_absorb: a worst-case error of every intermediate, carried from stage
 * to stage beside the oracle's values. u = 2^-24; hats are what was computed; e(x) bounds
 * |^x - x|, r(x) the part of it that arises where x is made (mla_absorb_error.c).
 *
 * Scores are linear in each of the vectors they are made of, so what arises in one counts
 * by its slope, the exact sum over all ways to the score, and not by the magnitudes along
 * each: with R the rotation of the query's position,
 *   e(s) = sum of r(c_q) |w_uq^T k_c + w_qr^T R^T k_r| + r(q_c) |k_c| + r(q_r) |k_r|
 *        + sum of r(c_kv) |q_latent| + r(k_r) |q_r|
 *        + sum of r(k_c) |q_c| (expanded) or of r(q_latent) |c_kv| (absorbed)
 *        + sum of e(query side) e(key side) + what the sum itself adds.
 *
 * Softmax. With c = softmax_scale * log2 e, ^c = c (1 + u), and M the computed maximum
 * times ^c rounded, p = 2^(s c - M) has the right ratios whatever M is. The argument that
 * ex2 gets differs from s c - M by at most
 *   delta = c (1 + u) e(s) + u c |s| + u |^s ^c - M|,
 *   |^s ^c - M| <= c (1 + u) (top - s + e(s)) + u c (1 + u) max(|s| + e(s)),
 * top = max(s + e(s)), and ^p = p (1 + eta), |eta| <= 2^delta (1 + f) - 1, f = 2.5 u for
 * ex2 (the largest error on all 2^32 arguments is 2.447 u, corpus/units/README.md), and
 * from below 2^-delta (1 - f). A ^p below 2^-126 becomes zero, p then is below
 * 2^(delta - 126); the largest p is 2^-delta or nearly: in units of sum p at most
 * z = 2^(2 delta - 124) is lost.
 *
 * The mean o = sum a v with a = p / sum p. As sum of a (v - o) is zero, with R = sum of
 * ^p over sum of p:
 *   sum(~p ^v) / sum p - R o = sum((^p - p) / sum p * (v - o)) + rounding of p and v,
 * so that |sum(~p ^v) / sum ^p - o| <= (shared + own) / R,
 *   shared = sum of (a eta + z) |v - o| + share t |v|,      share = a (1 + eta) + z,
 *   own = sum of share ((1 + t) e(v) + gamma (1 + t) (|v| + e(v))),
 *   R >= sum of a 2^-delta (1 - f) - z a key,
 * t = 2^-8 for p in bf16. The computed sum of p has keys * u of error and rcp 1.75 u, the
 * same for all elements; their product with the sum is rounded once. Absorbed, v is c_kv.
 * Errors of weights and of the factor then move all elements together: w_uv makes of them
 * the same of its own image, so shared is taken with w_uv c_kv for v. The rest goes
 * through |w_uv|.
 *
 * Nothing is claimed of what may exceed the largest bf16 on its way or is not finite. The
 * oracle's own error is that of the same products with K 2^-52 in the place of gamma,
 * 2^-28 of it or less, and travels the same way: SLACK pays for it, for that of the
 * slopes, and for the rounding of the bound. */
#include "ref/kernel/mla_absorb.h"
#include "ref/oracle/mla_absorb.h"
#include "verify/operation/mla_absorb/mla_absorb.h"
#include "verify/operation/mla_absorb/mla_absorb_error.h"

#include <math.h>
#include <stdlib.h>

#define UNIT          ASSAY_MLA_ABSORB_UNIT
#define TERM_FLOOR    ASSAY_MLA_ABSORB_TERM_FLOOR
#define LARGEST       ASSAY_MLA_ABSORB_LARGEST
#define LN_2          0x1.62e42fefa39efp-1
#define LOG2_E        0x1.71547652b82fep0
#define EX2_ERROR     (2.5 * UNIT)
#define RCP_ERROR     (1.75 * UNIT)
#define P_ROUNDING    0x1p-8
#define LARGEST_DELTA 40.0 /* beyond it a weight may be anything */
#define SLACK         (1 + 0x1p-16)

enum intermediate {
    C_KV,
    K_R,
    C_Q,
    Q_C,
    Q_R,
    K_C,
    V,
    Q_LATENT,
    SCORE,
    O_LATENT,
    O,
    COUNT
};

struct work {
    const struct assay_mla_absorb_problem *problem;
    const struct assay_mla_absorb_numerics *numerics;
    const struct assay_mla_absorb_oracle *oracle;
    bool has_tensor_core, is_absorbed;
    struct assay_mla_quantity of[COUNT];
    struct assay_mla_sums sums;
    double *pulled;         /* [n, d_c_q]: w_uq^T k_c */
    double *turned;         /* [d_r]: R^T k_r of one key */
    double *growth, *share; /* of the query in hand, a key each: eta, a (1 + eta) + z */
};

static double maximum(double a, double b)
{
    return a > b ? a : b; /* b where a is NaN */
}

/* --- keys and queries ------------------------------------------------------------- */

static struct assay_mla_quantity input(const double *value, int64_t rows, int64_t columns)
{
    return (struct assay_mla_quantity){ value, NULL, NULL, rows, columns, true };
}

static void multiply(struct work *work, const struct assay_mla_quantity *a,
                     const struct assay_mla_quantity *b, bool is_transposed,
                     enum intermediate into)
{
    const struct assay_mla_quantity *const made = &work->of[into];
    assay_mla_absorb_begin(&work->sums, made->rows * made->columns);
    assay_mla_absorb_add(&work->sums, work->has_tensor_core, a, b, is_transposed);
    assay_mla_absorb_finish(&work->sums, made);
}

static bool is_stored_in_bf16(const struct work *work, enum assay_mla_absorb_store as)
{
    return work->numerics->stored[as] == ASSAY_MLA_ABSORB_BF16;
}

static void store(struct work *work, enum intermediate name,
                  enum assay_mla_absorb_store as)
{
    work->of[name].is_bf16 = is_stored_in_bf16(work, as);
    if (work->of[name].is_bf16) assay_mla_absorb_round(&work->of[name]);
}

static void turn(struct work *work, enum intermediate name, const double *flat,
                 int64_t position, enum assay_mla_absorb_store as)
{
    const int64_t first = position * (work->problem->d_r / 2);
    struct assay_mla_quantity before = work->of[name];
    before.value = flat;
    if (is_stored_in_bf16(work, ASSAY_MLA_ABSORB_ROTARY)) assay_mla_absorb_round(&before);
    assay_mla_absorb_turn(&work->of[name], flat, work->oracle->cosine + first,
                          work->oracle->sine + first);
    store(work, name, as);
}

static void bound_keys(struct work *work)
{
    const struct assay_mla_absorb_problem *const p = work->problem;
    const struct assay_mla_quantity hidden = input(work->oracle->hidden, p->n, p->d);
    const struct assay_mla_quantity w_dkv = input(work->oracle->w_dkv, p->d_c, p->d);
    const struct assay_mla_quantity w_kr = input(work->oracle->w_kr, p->d_r, p->d);
    multiply(work, &hidden, &w_dkv, false, C_KV);
    store(work, C_KV, ASSAY_MLA_ABSORB_C_KV);
    multiply(work, &hidden, &w_kr, false, K_R);
    turn(work, K_R, work->oracle->flat_k, 0, ASSAY_MLA_ABSORB_K);
    if (work->is_absorbed) return;
    const struct assay_mla_quantity w_uk = input(work->oracle->w_uk, p->d_h, p->d_c);
    const struct assay_mla_quantity w_uv = input(work->oracle->w_uv, p->d_h, p->d_c);
    multiply(work, &work->of[C_KV], &w_uk, false, K_C);
    store(work, K_C, ASSAY_MLA_ABSORB_K);
    multiply(work, &work->of[C_KV], &w_uv, false, V);
    store(work, V, ASSAY_MLA_ABSORB_V);
}

static void bound_queries(struct work *work)
{
    const struct assay_mla_absorb_problem *const p = work->problem;
    const int64_t first = p->n - p->s_q;
    const struct assay_mla_quantity hidden =
        input(work->oracle->hidden + first * p->d, p->s_q, p->d);
    const struct assay_mla_quantity w_dq = input(work->oracle->w_dq, p->d_c_q, p->d);
    const struct assay_mla_quantity w_uq = input(work->oracle->w_uq, p->d_h, p->d_c_q);
    const struct assay_mla_quantity w_qr = input(work->oracle->w_qr, p->d_r, p->d_c_q);
    multiply(work, &hidden, &w_dq, false, C_Q);
    store(work, C_Q, ASSAY_MLA_ABSORB_C_Q);
    multiply(work, &work->of[C_Q], &w_uq, false, Q_C);
    store(work, Q_C, ASSAY_MLA_ABSORB_Q);
    multiply(work, &work->of[C_Q], &w_qr, false, Q_R);
    turn(work, Q_R, work->oracle->flat_q, first, ASSAY_MLA_ABSORB_Q);
    if (!work->is_absorbed) return;
    const struct assay_mla_quantity w_uk = input(work->oracle->w_uk, p->d_h, p->d_c);
    multiply(work, &work->of[Q_C], &w_uk, true, Q_LATENT);
    store(work, Q_LATENT, ASSAY_MLA_ABSORB_Q_LATENT);
}

/* --- scores ----------------------------------------------------------------------- */

/* sum over the row of r(@of) |@slope|, or of products of errors. */
static double carried(const double *local, const double *slope, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += local[i] * fabs(slope[i]);
    return sum;
}

/* sum of r(@of)[row] |slope| where the slope is a row of another's values. */
static double by_values(const struct work *work, enum intermediate of, int64_t row,
                        enum intermediate slope, int64_t slope_row)
{
    const int64_t count = work->of[of].columns;
    return carried(work->of[of].local + row * count,
                   work->of[slope].value + slope_row * count, count);
}

static double by_errors(const struct work *work, enum intermediate a, int64_t a_row,
                        enum intermediate b, int64_t b_row)
{
    const int64_t count = work->of[a].columns;
    return carried(work->of[a].error + a_row * count, work->of[b].error + b_row * count,
                   count);
}

static void pull_keys(struct work *work)
{
    const struct assay_mla_absorb_problem *const p = work->problem;
    for (int64_t j = 0; j < p->n; j++)
        for (int64_t k = 0; k < p->d_h; k++)
            for (int64_t i = 0; i < p->d_c_q; i++)
                work->pulled[j * p->d_c_q + i] += work->oracle->w_uq[k * p->d_c_q + i] *
                                                  work->oracle->k_c[j * p->d_h + k];
}

/* sum of r(c_q) |w_uq^T k_c + w_qr^T R^T k_r| of query @t and key @j. */
static double by_query_latent(const struct work *work, int64_t t, int64_t j)
{
    const struct assay_mla_absorb_problem *const p = work->problem;
    const struct assay_mla_absorb_oracle *const oracle = work->oracle;
    const int64_t first = assay_mla_absorb_position(p, t) * (p->d_r / 2);
    const double *const k_r = oracle->k_r + j * p->d_r;
    double sum = 0;
    for (int64_t i = 0; i < p->d_r / 2; i++) {
        const double c = oracle->cosine[first + i], s = oracle->sine[first + i];
        work->turned[2 * i] = c * k_r[2 * i] + s * k_r[2 * i + 1];
        work->turned[2 * i + 1] = c * k_r[2 * i + 1] - s * k_r[2 * i];
    }
    for (int64_t i = 0; i < p->d_c_q; i++) {
        double slope = work->pulled[j * p->d_c_q + i];
        for (int64_t k = 0; k < p->d_r; k++)
            slope += oracle->w_qr[k * p->d_c_q + i] * work->turned[k];
        sum += work->of[C_Q].local[t * p->d_c_q + i] * fabs(slope);
    }
    return sum;
}

static double score_error(const struct work *work, int64_t t, int64_t j)
{
    const double queries = by_query_latent(work, t, j) + by_values(work, Q_C, t, K_C, j) +
                           by_values(work, Q_R, t, K_R, j);
    const double keys =
        by_values(work, C_KV, j, Q_LATENT, t) + by_values(work, K_R, j, Q_R, t);
    const double of_form = work->is_absorbed ? by_values(work, Q_LATENT, t, C_KV, j) +
                                                   by_errors(work, Q_LATENT, t, C_KV, j)
                                             : by_values(work, K_C, j, Q_C, t) +
                                                   by_errors(work, K_C, j, Q_C, t);
    return queries + keys + of_form + by_errors(work, Q_R, t, K_R, j);
}

static void bound_scores(struct work *work)
{
    const int64_t n = work->problem->n, s_q = work->problem->s_q;
    const struct assay_mla_quantity *const q =
        &work->of[work->is_absorbed ? Q_LATENT : Q_C];
    const struct assay_mla_quantity *const k = &work->of[work->is_absorbed ? C_KV : K_C];
    const bool has_tensor_core = work->has_tensor_core;
    pull_keys(work);
    assay_mla_absorb_begin(&work->sums, s_q * n);
    assay_mla_absorb_add(&work->sums, has_tensor_core, q, k, false);
    assay_mla_absorb_add(&work->sums, has_tensor_core, &work->of[Q_R], &work->of[K_R],
                         false);
    for (int64_t t = 0; t < s_q; t++)
        for (int64_t j = 0; j <= assay_mla_absorb_position(work->problem, t); j++)
            work->of[SCORE].error[t * n + j] =
                score_error(work, t, j) +
                assay_mla_absorb_own_error(&work->sums, t * n + j);
}

/* --- weights and means ------------------------------------------------------------ */

struct softmax { /* of one query */
    int64_t query, keys;
    double zero;   /* z */
    double ratio;  /* what R is at least */
    double factor; /* error of 1 / sum of p, in units of itself */
};

/* delta of each key into growth; returns the largest, infinity for NaN. */
static double argument_errors(struct work *work, int64_t t, int64_t keys)
{
    const double *const s = work->of[SCORE].value + t * work->problem->n;
    const double *const error = work->of[SCORE].error + t * work->problem->n;
    const double c = fabs((double)work->problem->softmax_scale) * LOG2_E * (1 + 2 * UNIT);
    double top = -(double)INFINITY, largest = 0, delta = 0;
    for (int64_t j = 0; j < keys; j++) {
        top = maximum(top, s[j] + error[j]);
        largest = maximum(largest, fabs(s[j]) + error[j]);
    }
    for (int64_t j = 0; j < keys; j++) {
        const double distance = c * (top - s[j] + error[j]) + UNIT * c * largest;
        work->growth[j] = c * error[j] + UNIT * (c * fabs(s[j]) + distance) + TERM_FLOOR;
        if (!(work->growth[j] <= LARGEST_DELTA)) return (double)INFINITY;
        delta = maximum(delta, work->growth[j]);
    }
    return c * largest < LARGEST ? delta : (double)INFINITY;
}

/* Returns false if nothing can be said of the weights. */
static bool bound_weights(struct work *work, int64_t t, struct softmax *softmax)
{
    const double *const a = work->oracle->weight + t * work->problem->n;
    const int64_t keys = assay_mla_absorb_position(work->problem, t) + 1;
    const double delta = argument_errors(work, t, keys);
    if (!(delta <= LARGEST_DELTA)) return false;
    *softmax =
        (struct softmax){ .query = t, .keys = keys, .zero = exp2(2 * delta - 124) };
    softmax->ratio = -softmax->zero * (double)keys;
    softmax->factor = (1 + RCP_ERROR) * (1 + UNIT) / (1 - (double)keys * UNIT) - 1;
    for (int64_t j = 0; j < keys; j++) {
        softmax->ratio += a[j] * exp2(-work->growth[j]) * (1 - EX2_ERROR);
        work->growth[j] = expm1(work->growth[j] * LN_2) * (1 + EX2_ERROR) + EX2_ERROR;
        work->share[j] = a[j] * (1 + work->growth[j]) + softmax->zero;
    }
    return softmax->ratio > 0;
}

/* What moves element @i of a mean of @value together with all others. */
static double shared_error(const struct work *work, const struct softmax *softmax,
                           const struct assay_mla_quantity *value,
                           const struct assay_mla_quantity *mean, int64_t i)
{
    const double t = is_stored_in_bf16(work, ASSAY_MLA_ABSORB_P) ? P_ROUNDING : 0;
    const double *const a = work->oracle->weight + softmax->query * work->problem->n;
    const double o = mean->value[softmax->query * mean->columns + i];
    double sum = 0;
    for (int64_t j = 0; j < softmax->keys; j++) {
        const double v = value->value[j * value->columns + i];
        sum += (a[j] * work->growth[j] + softmax->zero) * fabs(v - o) +
               work->share[j] * t * fabs(v);
    }
    sum /= softmax->ratio;
    return sum + softmax->factor * (fabs(o) + sum);
}

/* What moves it alone, but for the last rounding. */
static double own_error(const struct work *work, const struct softmax *softmax,
                        const struct assay_mla_quantity *value, int64_t i)
{
    const bool is_bf16 = is_stored_in_bf16(work, ASSAY_MLA_ABSORB_P);
    const double t = is_bf16 ? P_ROUNDING : 0, keys = (double)softmax->keys;
    const double gamma = assay_mla_absorb_gamma(
        work->has_tensor_core && is_bf16 && value->is_bf16, softmax->keys);
    double sum = 0, largest = 0;
    for (int64_t j = 0; j < softmax->keys; j++) {
        const int64_t at = j * value->columns + i;
        const double reach = (1 + t) * assay_mla_absorb_reach(value, at);
        sum += work->share[j] *
               ((1 + t) * value->error[at] + gamma * assay_mla_absorb_aligned(reach));
        largest = maximum(largest, reach);
    }
    if (!(keys * 2 * largest < LARGEST)) return (double)INFINITY;
    return sum / softmax->ratio * (1 + softmax->factor) + keys * TERM_FLOOR;
}

/* Query @t: errors of the mean of @value, and what all its elements share of o's. */
static void bound_mean(struct work *work, int64_t t,
                       const struct assay_mla_quantity *value,
                       const struct assay_mla_quantity *mean)
{
    struct softmax softmax;
    const bool is_known = bound_weights(work, t, &softmax);
    for (int64_t i = 0; i < mean->columns; i++) {
        const int64_t at = t * mean->columns + i;
        const double shared =
            is_known ? shared_error(work, &softmax, value, mean, i) : (double)INFINITY;
        mean->local[at] = is_known ? own_error(work, &softmax, value, i) : 0;
        const double error = shared + mean->local[at];
        mean->local[at] += UNIT * (fabs(mean->value[at]) + error);
        mean->error[at] = shared + mean->local[at];
    }
    for (int64_t i = 0; work->is_absorbed && i < work->problem->d_h; i++)
        work->of[O].error[t * work->problem->d_h + i] =
            is_known ? shared_error(work, &softmax, &work->of[V], &work->of[O], i)
                     : (double)INFINITY;
}

/* o = w_uv o_latent, o's error so far being what the elements of o_latent share. */
static void bound_up_projection(struct work *work)
{
    const struct assay_mla_absorb_problem *const p = work->problem;
    const struct assay_mla_quantity w_uv = input(work->oracle->w_uv, p->d_h, p->d_c);
    const struct assay_mla_quantity *const latent = &work->of[O_LATENT];
    assay_mla_absorb_begin(&work->sums, p->s_q * p->d_h);
    assay_mla_absorb_add(&work->sums, work->has_tensor_core, latent, &w_uv, false);
    for (int64_t i = 0; i < p->s_q * p->d_h; i++)
        work->of[O].error[i] += carried(latent->local + i / p->d_h * p->d_c,
                                        w_uv.value + i % p->d_h * p->d_c, p->d_c) +
                                assay_mla_absorb_own_error(&work->sums, i);
}

static void bound_outputs(struct work *work)
{
    const struct assay_mla_quantity *const value =
        &work->of[work->is_absorbed ? C_KV : V];
    const struct assay_mla_quantity *const mean =
        &work->of[work->is_absorbed ? O_LATENT : O];
    for (int64_t t = 0; t < work->problem->s_q; t++)
        bound_mean(work, t, value, mean);
    if (!work->is_absorbed) return;
    store(work, O_LATENT, ASSAY_MLA_ABSORB_O_LATENT);
    bound_up_projection(work);
}

/* --- the head --------------------------------------------------------------------- */

static bool open_quantities(struct work *work, size_t *most)
{
    const struct assay_mla_absorb_problem *const p = work->problem;
    const struct assay_mla_absorb_oracle *const oracle = work->oracle;
    const struct assay_mla_quantity shape[COUNT] = {
        [C_KV] = input(oracle->c_kv, p->n, p->d_c),
        [K_R] = input(oracle->k_r, p->n, p->d_r),
        [C_Q] = input(oracle->c_q, p->s_q, p->d_c_q),
        [Q_C] = input(oracle->q_c, p->s_q, p->d_h),
        [Q_R] = input(oracle->q_r, p->s_q, p->d_r),
        [K_C] = input(oracle->k_c, p->n, p->d_h),
        [V] = input(oracle->v, p->n, p->d_h),
        [Q_LATENT] = input(oracle->q_latent, p->s_q, p->d_c),
        [SCORE] = input(oracle->score, p->s_q, p->n),
        [O_LATENT] = input(oracle->o_latent, p->s_q, p->d_c),
        [O] = input(oracle->o, p->s_q, p->d_h),
    };
    bool has_memory = true;
    for (int i = 0; i < COUNT; i++) {
        const size_t elements = (size_t)shape[i].rows * (size_t)shape[i].columns;
        struct assay_mla_quantity *const made = &work->of[i];
        *made = shape[i];
        made->is_bf16 = false;
        made->error = calloc(elements, sizeof(double));
        made->local = calloc(elements, sizeof(double));
        has_memory &= made->error && made->local;
        *most = elements > *most ? elements : *most;
    }
    return has_memory;
}

static bool open_work(struct work *work)
{
    const struct assay_mla_absorb_problem *const p = work->problem;
    size_t most = 0;
    const bool has_quantities = open_quantities(work, &most);
    work->sums.spread = calloc(most, sizeof(double));
    work->sums.magnitude = calloc(most, sizeof(double));
    work->pulled = calloc((size_t)(p->n * p->d_c_q), sizeof(double));
    work->turned = calloc((size_t)p->d_r, sizeof(double));
    work->growth = calloc((size_t)p->n, sizeof(double));
    work->share = calloc((size_t)p->n, sizeof(double));
    return has_quantities && work->sums.spread && work->sums.magnitude && work->pulled &&
           work->turned && work->growth && work->share;
}

static void close_work(struct work *work)
{
    double *const owned[] = { work->sums.spread, work->sums.magnitude, work->pulled,
                              work->turned,      work->growth,         work->share };
    for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++)
        free(owned[i]);
    for (int i = 0; i < COUNT; i++) {
        free(work->of[i].error);
        free(work->of[i].local);
    }
}

static void write_expected(const struct work *work, const struct assay_expected *o)
{
    const struct assay_mla_quantity *const out = &work->of[O];
    if (work->problem->out == ASSAY_BF16) assay_mla_absorb_round(out);
    for (int64_t i = 0; i < out->rows * out->columns; i++) {
        const double bound = out->error[i] * SLACK;
        const bool is_claimed = isfinite(out->value[i]) && isfinite(bound);
        o->value[i] = out->value[i];
        o->bound[i] = is_claimed ? bound : (double)INFINITY;
    }
}

enum assay_status assay_mla_absorb_expect(const struct assay_mla_absorb_problem *problem,
                                          const void *given,
                                          const struct assay_tensors *tensors,
                                          int64_t head, const struct assay_expected *o)
{
    const struct assay_mla_absorb_numerics *const numerics = given;
    struct assay_mla_absorb_oracle *const oracle =
        assay_mla_absorb_oracle_open(problem, tensors, head);
    if (!oracle) return ASSAY_OUT_OF_MEMORY;
    struct work work = {
        .problem = problem,
        .numerics = numerics,
        .oracle = oracle,
        .has_tensor_core = numerics->unit == ASSAY_MLA_ABSORB_TENSOR_CORE,
        .is_absorbed = problem->form == ASSAY_MLA_ABSORBED,
    };
    const bool has_memory = open_work(&work);
    if (has_memory) {
        bound_keys(&work);
        bound_queries(&work);
        bound_scores(&work);
        bound_outputs(&work);
        write_expected(&work, o);
    }
    close_work(&work);
    assay_mla_absorb_oracle_close(oracle);
    return has_memory ? ASSAY_RAN : ASSAY_OUT_OF_MEMORY;
}
