/* SPDX-License-Identifier: MIT */
/* Weights relative to the largest, in double arithmetic. */
#include "ref/oracle/mla_combine.h"

#include <math.h>

#define LOG2_E 0x1.71547652b82fep+0
#define LN_2   0x1.62e42fefa39efp-1

static void worsen(enum assay_mla_combined_state *state,
                   enum assay_mla_combined_state other)
{
    if (other > *state) *state = other;
}

static void read_splits(const struct assay_mla_combine_problem *problem,
                        const struct assay_tensors *tensors, int64_t request,
                        int64_t token, int64_t head, struct assay_mla_combined *combined)
{
    const struct assay_tensor *const oaccum = assay_tensors_find(tensors, "oaccum");
    const struct assay_tensor *const lseaccum = assay_tensors_find(tensors, "lseaccum");
    const int32_t *const bounds = assay_tensors_find(tensors, "num_splits")->data;
    const int64_t first = bounds[request], count = (int64_t)bounds[request + 1] - first;
    combined->splits = 0;
    if (first < 0 || count < 1 || count > ASSAY_MLA_MAX_PARTS ||
        first + count > problem->splits)
        return;
    combined->splits = count;
    for (int64_t i = 0; i < count; i++) {
        const int64_t *const stride = lseaccum->stride, *const wide = oaccum->stride;
        const int64_t split = first + i;
        const float *const lse = lseaccum->data, *const partial = oaccum->data;
        combined->lse[i] =
            (double)lse[split * stride[0] + token * stride[1] + head * stride[2]];
        combined->partial[i] =
            partial + split * wide[0] + token * wide[1] + head * wide[2];
    }
}

static void find_state(struct assay_mla_combined *combined)
{
    combined->state =
        combined->splits ? ASSAY_MLA_COMBINED_EMPTY : ASSAY_MLA_COMBINED_UNKNOWN;
    combined->maximum = -(double)INFINITY;
    combined->counting = 0;
    for (int64_t i = 0; i < combined->splits; i++) {
        const double lse = combined->lse[i];
        if (lse == -(double)INFINITY) continue;
        combined->counting++;
        combined->maximum = fmax(combined->maximum, lse);
        worsen(&combined->state, isnan(lse)   ? ASSAY_MLA_COMBINED_NAN
                                 : isinf(lse) ? ASSAY_MLA_COMBINED_UNKNOWN
                                              : ASSAY_MLA_COMBINED_FINITE);
    }
    if (isnan(combined->sink) ||
        (isfinite(combined->sink) && fabs(combined->sink) > 0x1p126))
        worsen(&combined->state, ASSAY_MLA_COMBINED_UNKNOWN);
}

static void weigh(struct assay_mla_combined *combined)
{
    const bool is_finite = combined->state == ASSAY_MLA_COMBINED_FINITE;
    combined->total = 0;
    for (int64_t i = 0; i < combined->splits; i++) {
        combined->weight[i] = is_finite ? exp2(combined->lse[i] - combined->maximum) : 0;
        combined->total += combined->weight[i];
    }
    combined->sink_weight = is_finite ? exp2(combined->sink - combined->maximum) : 0;
}

/* A partial result without a weight: 0 times it, or not looked at. */
static enum assay_mla_combined_state state_of(double partial, double lse)
{
    if (isfinite(partial)) return ASSAY_MLA_COMBINED_EMPTY;
    return isnan(partial) && lse > -(double)INFINITY ? ASSAY_MLA_COMBINED_NAN
                                                     : ASSAY_MLA_COMBINED_UNKNOWN;
}

static void add_partials(struct assay_mla_combined *combined, int column)
{
    enum assay_mla_combined_state *const state = &combined->out_state[column];
    double sum = 0;
    *state = combined->state;
    for (int64_t i = 0; i < combined->splits; i++) {
        const double partial = (double)combined->partial[i][column];
        worsen(state, state_of(partial, combined->lse[i]));
        sum += combined->weight[i] * partial;
    }
    if (*state == ASSAY_MLA_COMBINED_EMPTY)
        combined->out[column] = 0;
    else if (*state == ASSAY_MLA_COMBINED_FINITE)
        combined->out[column] = sum / (combined->total + combined->sink_weight);
    else
        combined->out[column] = (double)NAN;
}

void assay_mla_combine_oracle(const struct assay_mla_combine_problem *problem,
                              const struct assay_tensors *tensors, int64_t request,
                              int64_t token, int64_t head,
                              struct assay_mla_combined *combined)
{
    combined->sink = -(double)INFINITY;
    if (problem->has_sink) {
        const float *const sink = assay_tensors_find(tensors, "attn_sink")->data;
        combined->sink = (double)sink[head] * LOG2_E;
    }
    read_splits(problem, tensors, request, token, head, combined);
    find_state(combined);
    weigh(combined);
    for (int column = 0; column < ASSAY_MLA_D_V; column++)
        add_partials(combined, column);
}

double assay_mla_combined_lse(const struct assay_mla_combined *combined)
{
    switch (combined->state) {
    case ASSAY_MLA_COMBINED_EMPTY: return (double)INFINITY;
    case ASSAY_MLA_COMBINED_FINITE:
        return LN_2 * (combined->maximum + log2(combined->total));
    default: return (double)NAN;
    }
}
