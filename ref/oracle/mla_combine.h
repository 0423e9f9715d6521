/* SPDX-License-Identifier: MIT */
/* Splits of a request put together, as mathematics: the function of the stored partial
 * results. It shares nothing with the model. Sums are those of double arithmetic: within
 * (splits + 8) * 2^-52 of the sum of magnitudes; a single split that counts is exact. */
#ifndef ASSAY_REF_ORACLE_MLA_COMBINE_H
#define ASSAY_REF_ORACLE_MLA_COMBINE_H

#include "ref/mla_problem.h"

enum assay_mla_combined_state {
    ASSAY_MLA_COMBINED_EMPTY, /* all splits are */
    ASSAY_MLA_COMBINED_FINITE,
    ASSAY_MLA_COMBINED_NAN,
    ASSAY_MLA_COMBINED_UNKNOWN, /* it depends on how it is computed: infinities, a sink
                                 * that is NaN or finite and beyond 2^126 */
};

/* One row: request, query token and head. */
struct assay_mla_combined {
    enum assay_mla_combined_state state;
    int64_t splits, counting;           /* all of them; those with a key */
    double lse[ASSAY_MLA_MAX_PARTS];    /* base 2; -infinity without a key */
    double weight[ASSAY_MLA_MAX_PARTS]; /* 2^(lse - maximum) */
    double maximum, total;              /* of lse; of weights */
    double sink;                        /* base 2; -infinity without one */
    double sink_weight;                 /* 2^(sink - maximum) */
    double out[ASSAY_MLA_D_V];
    enum assay_mla_combined_state out_state[ASSAY_MLA_D_V]; /* at least the row's */
    const float *partial[ASSAY_MLA_MAX_PARTS];              /* 512 elements each */
};

/* Reads and combines a row. Requests of no split, or of more than a row can hold, are
 * unknown. */
void assay_mla_combine_oracle(const struct assay_mla_combine_problem *problem,
                              const struct assay_tensors *tensors, int64_t request,
                              int64_t token, int64_t head,
                              struct assay_mla_combined *combined);

/* ln(sum of 2^lse), +infinity of an empty row. */
double assay_mla_combined_lse(const struct assay_mla_combined *combined);

#endif
