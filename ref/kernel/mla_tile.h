/* SPDX-License-Identifier: MIT */
/* A tile of attention on its way through the stages: what faults and explanations look
 * into, and the stages that all named numerics have. */
#ifndef ASSAY_REF_KERNEL_MLA_TILE_H
#define ASSAY_REF_KERNEL_MLA_TILE_H

#include "ref/kernel/mla_attention.h"

#include <math.h>

enum {
    ASSAY_MLA_LANES = 4,   /* partial sums of a row */
    ASSAY_MLA_RIGHT = 256, /* first column of the right half, and of query tile 4 */
};

/* A block in hand. Rows and keys index every matrix. */
struct assay_mla_side {
    struct assay_mla_block block;
    bool is_present; /* false: the pair has no B block; scores all masked */
    float score[ASSAY_MLA_ROWS][ASSAY_MLA_BLOCK]; /* q * k, masked, not scaled */
    float p[ASSAY_MLA_ROWS][ASSAY_MLA_BLOCK];     /* not rounded */
    float factor[ASSAY_MLA_ROWS];                 /* a0 of an A block, a1 of a B block */
};

struct assay_mla_tile {
    const struct assay_mla_query *query;
    const struct assay_mla_numerics *numerics; /* the query's */
    struct assay_dot_add unit;                 /* with the numerics' overrides */
    float scale;                               /* c */
    uint16_t q[ASSAY_MLA_ROWS][ASSAY_MLA_MAX_D_QK];
    struct assay_mla_side side[2]; /* A and B; schedules without pairs use the first */

    float maximum[ASSAY_MLA_ROWS];        /* M */
    float maximum_before[ASSAY_MLA_ROWS]; /* M before the pair in hand */
    float right_factor[ASSAY_MLA_ROWS];   /* of columns 256 and up, once a pair */
    float key_factor[ASSAY_MLA_ROWS][ASSAY_MLA_BLOCK]; /* ASSAY_MLA_PLAIN: of each key */
    float lane[2][ASSAY_MLA_ROWS][ASSAY_MLA_LANES];    /* row sums of A and B blocks */
    float output[ASSAY_MLA_ROWS][ASSAY_MLA_D_V];       /* finish normalises it */

    bool is_split; /* finish: one of several splits: no sink, lse of base 2 */
    float lse[ASSAY_MLA_ROWS], max_logits[ASSAY_MLA_ROWS];
};

/* The stages of every named numerics; they serve all schedules. */
void assay_mla_scores(struct assay_mla_tile *tile, int side);
void assay_mla_weights(struct assay_mla_tile *tile, int side);
void assay_mla_values(struct assay_mla_tile *tile, int side, int first_column);
void assay_mla_finish(struct assay_mla_tile *tile);

/* What the stages share. */

/* A masked score. */
float assay_mla_masked_score(const struct assay_mla_numerics *numerics);

/* Largest score of a row of the side times c; at least the masked score times c. */
float assay_mla_block_maximum(const struct assay_mla_tile *tile, int side, int row);

/* What is subtracted from scores to make arguments: M, or 0 while M is -infinity. */
static inline float assay_mla_shift(float maximum)
{
    return maximum == -INFINITY ? 0.0f : maximum;
}

/* 2^(score * c - shift). */
float assay_mla_weight(const struct assay_mla_tile *tile, float score, float shift);

/* 2^(before - after), of two maxima. */
float assay_mla_factor(const struct assay_mla_tile *tile, float before, float after);

/* start + p[0] + p[1] ... of a block. */
float assay_mla_chain_sum(bool flush, const float *p, float start);

/* lane = factor * lane + the block's sums, for ASSAY_MLA_LANES lanes. */
void assay_mla_add_sums(const struct assay_mla_tile *tile, const float *p, float factor,
                        float *lane);

/* ASSAY_MLA_PLAIN: the same two stages key by key: weights leaves each key's factor
 * and p, relative to the maximum that it found. */
void assay_mla_plain_weights(struct assay_mla_tile *tile);
void assay_mla_plain_values(struct assay_mla_tile *tile, int first_column);

/* ASSAY_MLA_MATERIALISED: weights under a maximum that is final, and the walk over all
 * blocks; false when memory ran out. */
void assay_mla_materialised_weights(struct assay_mla_tile *tile);
bool assay_mla_attend_materialised(struct assay_mla_tile *tile, int64_t begin_block,
                                   int64_t end_block);

/* The block's codes and masks into the side. */
void assay_mla_load(struct assay_mla_tile *tile, int side, int64_t block);

#endif
