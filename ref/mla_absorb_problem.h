/* SPDX-License-Identifier: MIT */
/* Multi-head latent attention from hidden states to the heads' outputs, in either of its
 * two forms: the input that model and oracle have in common. DeepSeek-V2 (arXiv
 * 2405.04434), equations 9 to 19 up to the heads' outputs; h[j] is row j of hidden, token
 * t is query t's own position n - s_q + t, and every query sees the tokens up to its own:
 *
 *   c_kv[j] = w_dkv h[j]               k_r[j] = rope(w_kr h[j], j)
 *   c_q[t]  = w_dq h[token t]          k_c[j] = w_uk c_kv[j]     v[j] = w_uv c_kv[j]
 *   q_c[t]  = w_uq c_q[t]              q_r[t] = rope(w_qr c_q[t], token t)
 *
 *   expanded: s = q_c . k_c[j] + q_r . k_r[j]            o = sum of a[j] v[j]
 *   absorbed: s = (w_uk^T q_c) . c_kv[j] + q_r . k_r[j]  o = w_uv (sum of a[j] c_kv[j])
 *   a = softmax over j of softmax_scale * s[j]
 *
 * w_uk, w_uv, w_uq and w_qr are a head's own; c_kv and k_r serve all heads. The forms are
 * equal, because a dot product does not care which factor a matrix is moved to; absorbed,
 * the heads are queries of d_c + d_r elements on one key, whose first d_c are its value.
 *
 * rope turns the pair (x[2i], x[2i + 1]) of a vector at position j by the angle of
 * cos[j, i] and sin[j, i]. */
#ifndef ASSAY_REF_MLA_ABSORB_PROBLEM_H
#define ASSAY_REF_MLA_ABSORB_PROBLEM_H

#include "ref/tensor.h"

enum assay_mla_absorb_form { ASSAY_MLA_ABSORBED, ASSAY_MLA_EXPANDED };

/* Places of the tensors; all dense. */
enum {
    ASSAY_MLA_ABSORB_HIDDEN, /* hidden [n, d] (bf16, as are the weights) */
    ASSAY_MLA_ABSORB_W_DKV,  /* w_dkv [d_c, d] */
    ASSAY_MLA_ABSORB_W_KR,   /* w_kr [d_r, d] */
    ASSAY_MLA_ABSORB_W_UK,   /* w_uk [h_q, d_h, d_c] */
    ASSAY_MLA_ABSORB_W_UV,   /* w_uv [h_q, d_h, d_c] */
    ASSAY_MLA_ABSORB_W_DQ,   /* w_dq [d_c_q, d] */
    ASSAY_MLA_ABSORB_W_UQ,   /* w_uq [h_q, d_h, d_c_q] */
    ASSAY_MLA_ABSORB_W_QR,   /* w_qr [h_q, d_r, d_c_q] */
    ASSAY_MLA_ABSORB_COS,    /* cos [n, d_r / 2] (f32) */
    ASSAY_MLA_ABSORB_SIN,    /* sin [n, d_r / 2] (f32) */
    ASSAY_MLA_ABSORB_O,      /* o [s_q, h_q, d_h] (of @out) */
    ASSAY_MLA_ABSORB_TENSORS
};

struct assay_mla_absorb_problem {
    int64_t n, s_q;        /* tokens; queries: the last s_q <= n of them */
    int64_t h_q;           /* heads */
    int64_t d;             /* of a hidden state */
    int64_t d_c, d_c_q;    /* of the latent of keys and values, of queries */
    int64_t d_h, d_r;      /* of a head, and of its rotary part: even */
    float softmax_scale;   /* the stored f32 is exact */
    enum assay_format out; /* bf16, f32 */
    enum assay_mla_absorb_form form;
};

/* A part is one head: all its queries. */
static inline int64_t
assay_mla_absorb_parts(const struct assay_mla_absorb_problem *problem)
{
    return problem->h_q;
}

/* Position of query @t; it sees the keys up to and with it. */
static inline int64_t
assay_mla_absorb_position(const struct assay_mla_absorb_problem *problem, int64_t t)
{
    return problem->n - problem->s_q + t;
}

#endif
