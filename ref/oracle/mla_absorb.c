/* SPDX-License-Identifier: MIT */
#include "ref/oracle/mla_absorb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct computation {
    const struct assay_mla_absorb_problem *problem;
    const struct assay_tensors *tensors;
    int64_t head;
    struct assay_mla_absorb_oracle *oracle;
    bool has_memory;
};

static double *room(struct computation *computation, int64_t rows, int64_t columns)
{
    double *const values = calloc((size_t)rows * (size_t)columns, sizeof(*values));
    computation->has_memory &= values != NULL;
    return values;
}

/* --- inputs ----------------------------------------------------------------------- */

/* A bf16 is the high half of an f32. */
static double decoded(enum assay_format format, uint32_t bits)
{
    const uint32_t word = format == ASSAY_BF16 ? bits << 16 : bits;
    float value;
    memcpy(&value, &word, sizeof(value));
    return (double)value;
}

static double *input(struct computation *computation, int place)
{
    const struct assay_tensor *const tensor = &computation->tensors->item[place];
    const bool is_of_head = tensor->rank == 3;
    const int64_t count =
        assay_tensor_elements(tensor) / (is_of_head ? tensor->shape[0] : 1);
    const int64_t first = is_of_head ? computation->head * count : 0;
    double *const values = room(computation, 1, count);
    for (int64_t i = 0; values && i < count; i++)
        values[i] = decoded(tensor->format, assay_tensor_bits(tensor, first + i));
    return values;
}

static void read_inputs(struct computation *computation)
{
    struct assay_mla_absorb_oracle *const oracle = computation->oracle;
    oracle->hidden = input(computation, ASSAY_MLA_ABSORB_HIDDEN);
    oracle->w_dkv = input(computation, ASSAY_MLA_ABSORB_W_DKV);
    oracle->w_kr = input(computation, ASSAY_MLA_ABSORB_W_KR);
    oracle->w_uk = input(computation, ASSAY_MLA_ABSORB_W_UK);
    oracle->w_uv = input(computation, ASSAY_MLA_ABSORB_W_UV);
    oracle->w_dq = input(computation, ASSAY_MLA_ABSORB_W_DQ);
    oracle->w_uq = input(computation, ASSAY_MLA_ABSORB_W_UQ);
    oracle->w_qr = input(computation, ASSAY_MLA_ABSORB_W_QR);
    oracle->cosine = input(computation, ASSAY_MLA_ABSORB_COS);
    oracle->sine = input(computation, ASSAY_MLA_ABSORB_SIN);
}

static void open_results(struct computation *computation)
{
    const struct assay_mla_absorb_problem *const p = computation->problem;
    struct assay_mla_absorb_oracle *const oracle = computation->oracle;
    oracle->c_kv = room(computation, p->n, p->d_c);
    oracle->flat_k = room(computation, p->n, p->d_r);
    oracle->k_r = room(computation, p->n, p->d_r);
    oracle->c_q = room(computation, p->s_q, p->d_c_q);
    oracle->q_c = room(computation, p->s_q, p->d_h);
    oracle->flat_q = room(computation, p->s_q, p->d_r);
    oracle->q_r = room(computation, p->s_q, p->d_r);
    oracle->score = room(computation, p->s_q, p->n);
    oracle->weight = room(computation, p->s_q, p->n);
    oracle->o = room(computation, p->s_q, p->d_h);
    oracle->k_c = room(computation, p->n, p->d_h);
    oracle->v = room(computation, p->n, p->d_h);
    oracle->q_latent = room(computation, p->s_q, p->d_c);
    oracle->o_latent = room(computation, p->s_q, p->d_c);
}

/* --- linear maps ------------------------------------------------------------------ */

/* y[i] = w x[i] for each of @rows vectors of @width elements; w is @height x @width. */
static void map(double *y, const double *x, const double *w, int64_t rows, int64_t width,
                int64_t height)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < height; j++) {
            double sum = 0;
            for (int64_t k = 0; k < width; k++)
                sum += x[i * width + k] * w[j * width + k];
            y[i * height + j] = sum;
        }
}

/* y[i] = w^T x[i]; w is @width x @height. */
static void map_transposed(double *y, const double *x, const double *w, int64_t rows,
                           int64_t width, int64_t height)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < height; j++) {
            double sum = 0;
            for (int64_t k = 0; k < width; k++)
                sum += x[i * width + k] * w[k * height + j];
            y[i * height + j] = sum;
        }
}

/* Multiplies each pair, as a complex number, by cos + i sin of its position. */
static void turn(double *y, const double *x, const double *cosine, const double *sine,
                 int64_t rows, int64_t pairs)
{
    for (int64_t i = 0; i < rows * pairs; i++) {
        y[2 * i] = x[2 * i] * cosine[i] - x[2 * i + 1] * sine[i];
        y[2 * i + 1] = x[2 * i] * sine[i] + x[2 * i + 1] * cosine[i];
    }
}

static void project(const struct assay_mla_absorb_problem *p,
                    struct assay_mla_absorb_oracle *oracle)
{
    const int64_t first = p->n - p->s_q, pairs = p->d_r / 2;
    map(oracle->c_kv, oracle->hidden, oracle->w_dkv, p->n, p->d, p->d_c);
    map(oracle->flat_k, oracle->hidden, oracle->w_kr, p->n, p->d, p->d_r);
    turn(oracle->k_r, oracle->flat_k, oracle->cosine, oracle->sine, p->n, pairs);
    map(oracle->c_q, oracle->hidden + first * p->d, oracle->w_dq, p->s_q, p->d, p->d_c_q);
    map(oracle->q_c, oracle->c_q, oracle->w_uq, p->s_q, p->d_c_q, p->d_h);
    map(oracle->flat_q, oracle->c_q, oracle->w_qr, p->s_q, p->d_c_q, p->d_r);
    turn(oracle->q_r, oracle->flat_q, oracle->cosine + first * pairs,
         oracle->sine + first * pairs, p->s_q, pairs);
    map(oracle->k_c, oracle->c_kv, oracle->w_uk, p->n, p->d_c, p->d_h);
    map(oracle->v, oracle->c_kv, oracle->w_uv, p->n, p->d_c, p->d_h);
    map_transposed(oracle->q_latent, oracle->q_c, oracle->w_uk, p->s_q, p->d_h, p->d_c);
}

/* --- attention -------------------------------------------------------------------- */

static double dot(const double *x, const double *y, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i] * y[i];
    return sum;
}

/* Scores of @q against @k of @width elements, and what the rotary parts add. */
static void score(const struct assay_mla_absorb_problem *p,
                  struct assay_mla_absorb_oracle *oracle, const double *q,
                  const double *k, int64_t width)
{
    for (int64_t t = 0; t < p->s_q; t++)
        for (int64_t j = 0; j <= assay_mla_absorb_position(p, t); j++)
            oracle->score[t * p->n + j] =
                dot(q + t * width, k + j * width, width) +
                dot(oracle->q_r + t * p->d_r, oracle->k_r + j * p->d_r, p->d_r);
}

static void soften(const struct assay_mla_absorb_problem *p,
                   struct assay_mla_absorb_oracle *oracle)
{
    for (int64_t t = 0; t < p->s_q; t++) {
        const double *const s = oracle->score + t * p->n;
        double *const a = oracle->weight + t * p->n;
        const int64_t keys = assay_mla_absorb_position(p, t) + 1;
        double largest = s[0], sum = 0;
        for (int64_t j = 1; j < keys; j++)
            largest = fmax(largest, s[j]);
        for (int64_t j = 0; j < keys; j++) {
            a[j] = exp((double)p->softmax_scale * (s[j] - largest));
            sum += a[j];
        }
        for (int64_t j = 0; j < keys; j++)
            a[j] /= sum;
    }
}

/* out[t] = sum over the keys of a[t, j] * value[j] */
static void mix(const struct assay_mla_absorb_problem *p,
                const struct assay_mla_absorb_oracle *oracle, const double *value,
                int64_t width, double *out)
{
    for (int64_t t = 0; t < p->s_q; t++)
        for (int64_t j = 0; j <= assay_mla_absorb_position(p, t); j++)
            for (int64_t i = 0; i < width; i++)
                out[t * width + i] += oracle->weight[t * p->n + j] * value[j * width + i];
}

static void attend_expanded(const struct assay_mla_absorb_problem *p,
                            struct assay_mla_absorb_oracle *oracle)
{
    score(p, oracle, oracle->q_c, oracle->k_c, p->d_h);
    soften(p, oracle);
    mix(p, oracle, oracle->v, p->d_h, oracle->o);
}

static void attend_absorbed(const struct assay_mla_absorb_problem *p,
                            struct assay_mla_absorb_oracle *oracle)
{
    score(p, oracle, oracle->q_latent, oracle->c_kv, p->d_c);
    soften(p, oracle);
    mix(p, oracle, oracle->c_kv, p->d_c, oracle->o_latent);
    map(oracle->o, oracle->o_latent, oracle->w_uv, p->s_q, p->d_c, p->d_h);
}

/* --- the head --------------------------------------------------------------------- */

struct assay_mla_absorb_oracle *
assay_mla_absorb_oracle_open(const struct assay_mla_absorb_problem *problem,
                             const struct assay_tensors *tensors, int64_t head)
{
    struct computation computation = { problem, tensors, head, NULL, true };
    computation.oracle = calloc(1, sizeof(*computation.oracle));
    if (!computation.oracle) return NULL;
    read_inputs(&computation);
    open_results(&computation);
    if (!computation.has_memory) {
        assay_mla_absorb_oracle_close(computation.oracle);
        return NULL;
    }
    project(problem, computation.oracle);
    if (problem->form == ASSAY_MLA_EXPANDED)
        attend_expanded(problem, computation.oracle);
    else
        attend_absorbed(problem, computation.oracle);
    return computation.oracle;
}

void assay_mla_absorb_oracle_close(struct assay_mla_absorb_oracle *oracle)
{
    if (!oracle) return;
    double *const owned[] = {
        oracle->hidden, oracle->w_dkv,  oracle->w_kr,     oracle->w_uk,
        oracle->w_uv,   oracle->w_dq,   oracle->w_uq,     oracle->w_qr,
        oracle->cosine, oracle->sine,   oracle->c_kv,     oracle->flat_k,
        oracle->k_r,    oracle->c_q,    oracle->q_c,      oracle->flat_q,
        oracle->q_r,    oracle->k_c,    oracle->v,        oracle->q_latent,
        oracle->score,  oracle->weight, oracle->o_latent, oracle->o,
    };
    for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++)
        free(owned[i]);
    free(oracle);
}
