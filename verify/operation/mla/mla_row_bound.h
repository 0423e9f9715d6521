/* SPDX-License-Identifier: MIT */
/* Errors of the weights of an attention row, charged key by key: the part of its bound
 * that the oracle is an observer for. Derived in mla_bound.c. */
#ifndef ASSAY_VERIFY_OPERATION_MLA_ROW_BOUND_H
#define ASSAY_VERIFY_OPERATION_MLA_ROW_BOUND_H

#include "ref/oracle/mla_attention.h"
#include "verify/operation/mla/mla_precision.h"

/* Relative error of c = softmax_scale * log2(e), and of sink * log2(e), as f32. */
#define ASSAY_MLA_SCALE_ERROR (1.25 * ASSAY_MLA_HALF_ULP)

/* What is the same for all keys of a row, and what its keys add up to. */
struct assay_mla_row_bound {
    bool is_claimed;
    bool is_level;    /* all scores are 0 */
    bool is_relative; /* to key m */
    double top;       /* T */
    double own;       /* eta of key m: score and ex2 */
    double raises;    /* and their eta, of most keys and of key m: */
    double rescaling, rescaling_of_top;
    double p_of_top;                            /* rounding of key m's p */
    double products;                            /* of p * v, relative */
    double value_split, sum_split, split_slope; /* slope: a unit of |x_j| */
    double lost_below;                          /* x_j that flushing may lose */
    double sum_error, own_sum_error; /* sum of p_j D'_j, common terms taken out or not */
    double highest;                  /* largest x_j + error; 0 at least */
    double error_of_top;             /* of t_m */
};

struct assay_mla_bound {
    const struct assay_mla_precision *precision;
    const struct assay_mla_part *part;
    double c;
    struct assay_mla_row_bound row[ASSAY_MLA_ORACLE_ROWS];
    int quantum[ASSAY_MLA_ORACLE_SQUARE]; /* exponents, of the block in hand */
    double residue[ASSAY_MLA_ORACLE_SQUARE];
};

/* Splits a row can be put together from, at most. */
double assay_mla_splits(const struct assay_mla_bound *bound);

/* Observe the oracle; @context is a struct assay_mla_bound. The cost of a key is p * D;
 * of a level row, p. */
void assay_mla_start_rows(void *context, struct assay_mla_oracle *oracle);
void assay_mla_charge_block(void *context, struct assay_mla_oracle *oracle);

#endif
