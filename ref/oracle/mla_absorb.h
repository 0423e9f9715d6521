/* SPDX-License-Identifier: MIT */
/* Latent attention from hidden states to the heads' outputs as mathematics: each form by
 * its own equations, in FP64, with every intermediate that a bound has to know. It shares
 * nothing with the model.
 *
 * Exactness. A sum of k products is within k * 2^-53 of the sum of their magnitudes
 * (k * 2^-52 with what the factors bring along); the two forms agree to 1e-12 of the
 * largest output. NaN and infinities follow IEEE 754. */
#ifndef ASSAY_REF_ORACLE_MLA_ABSORB_H
#define ASSAY_REF_ORACLE_MLA_ABSORB_H

#include "ref/mla_absorb_problem.h"

/* One head; row-major. Keys, values and queries are there for both forms; scores, weights
 * and outputs are those of the form asked for. */
struct assay_mla_absorb_oracle {
    double *hidden, *w_dkv, *w_kr, *w_uk, *w_uv, *w_dq, *w_uq, *w_qr; /* the inputs */
    double *cosine, *sine;
    double *c_kv;         /* [n, d_c] */
    double *flat_k, *k_r; /* [n, d_r]: before and after it is turned */
    double *k_c, *v;      /* [n, d_h] */
    double *c_q;          /* [s_q, d_c_q] */
    double *q_c;          /* [s_q, d_h] */
    double *flat_q, *q_r; /* [s_q, d_r] */
    double *q_latent;     /* [s_q, d_c]: w_uk^T q_c */
    double *score;        /* [s_q, n]: s, without softmax_scale */
    double *weight;       /* [s_q, n]: a; 0 for keys that a query does not see */
    double *o_latent;     /* [s_q, d_c]: sum of a * c_kv; zeros if expanded */
    double *o;            /* [s_q, d_h] */
};

/* Computes head @head; NULL when memory ran out. */
struct assay_mla_absorb_oracle *
assay_mla_absorb_oracle_open(const struct assay_mla_absorb_problem *problem,
                             const struct assay_tensors *tensors, int64_t head);
void assay_mla_absorb_oracle_close(struct assay_mla_absorb_oracle *oracle);

#endif
