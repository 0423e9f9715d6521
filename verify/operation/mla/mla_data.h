/* SPDX-License-Identifier: MIT */
/* Values that the attention operations share: query and key vectors, sinks, page tables
 * and plans. An element depends on seed, tensor, kind and logical coordinates only, and
 * every element takes the same number of draws. */
#ifndef ASSAY_VERIFY_OPERATION_MLA_DATA_H
#define ASSAY_VERIFY_OPERATION_MLA_DATA_H

#include "ref/mla_plan_problem.h"
#include "ref/mla_problem.h"
#include "verify/data/kind.h"
#include "verify/data/stream.h"
#include "verify/operation/operation.h"

/* The logical row of token @token (below 2^32) of request @request (or KV head) in a
 * stream. */
int64_t assay_mla_row_key(int64_t request, int64_t token);

/* Fills the last dimension of a bf16 or f16 tensor at @element, @count long, with a query
 * or key vector; @row_key names its stream. With softmax_scale near count^-0.5 scores
 * spread over several units of log 2.
 *
 *   exact    queries are 0, keys integers of magnitude 15 at most
 *   needle   a key with is_needle beats all others by more than 160 units of log 2, with
 *            any positive softmax_scale; scores stay below 1024 of them
 *   ties     queries are 0; element j of all keys of a request is one of two neighbouring
 *            codes, by the token's parity: means over as many of either are ties
 *   special  NaN, infinities and other odd values in one of eight queries, never that of
 *            row 0, and in one key of a request, among its tokens 1 to 63; no NaN in
 *            keys of even requests
 */
struct assay_mla_vector {
    enum assay_format format;
    uint16_t *element;
    int64_t count, row_key;
    bool is_key;    /* else a query */
    bool is_needle; /* kind needle: the key that wins */
    float softmax_scale;
};
void assay_mla_fill_vector(const struct assay_mla_vector *vector,
                           enum assay_data_kind kind, uint64_t seed, const char *tensor);

/* Which of @tokens keys wins under kind needle. */
int64_t assay_mla_needle(uint64_t seed, int64_t request, int64_t tokens);

/* attn_sink: normal values, about three in ten +infinity and three in ten -infinity; all
 * -infinity for kinds exact and needle, whose results may not be diluted; 0 for zero. */
void assay_mla_fill_sink(const struct assay_tensor *attn_sink, enum assay_data_kind kind,
                         uint64_t seed);

/* A random permutation of [0, count), by seed and name; 0 < count < 2^31. All of it, and
 * one entry of it without memory for the others. */
void assay_mla_shuffle(uint64_t seed, const char *name, int64_t count, int32_t *order);
int64_t assay_mla_shuffled(uint64_t seed, const char *name, int64_t count, int64_t index);
/* The index that assay_mla_shuffled takes to @place. */
int64_t assay_mla_unshuffled(uint64_t seed, const char *name, int64_t count,
                             int64_t place);

/* Plans a case can ask for. */
enum assay_mla_plan_choice {
    ASSAY_MLA_PLAN_SCHEDULER, /* what upstream's scheduler computes */
    ASSAY_MLA_PLAN_WHOLE,     /* no request is split */
    ASSAY_MLA_PLAN_BLOCKS,    /* as many splits as parts allow, of equal size */
    ASSAY_MLA_PLAN_RANDOM,    /* boundaries by the seed */
};
extern const struct assay_choice assay_mla_plan_choices[];

/* Fills tile_scheduler_metadata and num_splits; lengths must be there. Every plan made is
 * one that assay_mla_plan_fault accepts. */
void assay_mla_fill_plan(const struct assay_mla_plan_problem *problem,
                         enum assay_mla_plan_choice choice, uint64_t seed,
                         const struct assay_tensors *tensors);

/* Refuses a plan with a fault, in one sentence. */
enum assay_status assay_mla_check_plan(const struct assay_mla_plan_problem *problem,
                                       const struct assay_tensors *tensors,
                                       struct assay_message *message);

/* Claims nothing of a part's outputs under a plan with a fault: unsafe cases have
 * them. */
void assay_mla_disclaim_faulty_plan(const struct assay_mla_plan_problem *plan,
                                    const struct assay_operation *operation,
                                    const void *problem,
                                    const struct assay_tensors *tensors, int64_t part,
                                    const struct assay_expected *expected);

/* softmax_scale= of a case; 0 means d_qk^-0.5, a double narrowed to f32. */
float assay_mla_softmax_scale(const struct assay_case *the_case, int64_t d_qk);

#endif
