/* SPDX-License-Identifier: MIT */
/* Attention of one tile of query rows against blocks of keys, as FlashMLA's sm_90 kernels
 * string the units together. Modelled: equal to recorded H200 outputs to the bit
 * (FlashMLA 9241ae3, dense decode, sparse FP8 decode, sparse prefill). Numerics are data:
 * ints that are read once a block, and stages by value that a fault or an explanation
 * replaces in its own copy.
 *
 * A row keeps its maximum M in units of score * c, with c = softmax_scale * log2(e), and
 * every exponential is one of base two. */
#ifndef ASSAY_REF_KERNEL_MLA_ATTENTION_H
#define ASSAY_REF_KERNEL_MLA_ATTENTION_H

#include "ref/mla_problem.h"
#include "ref/unit/dot_add.h"

enum assay_mla_unit {
    ASSAY_MLA_TENSOR_CORE, /* hopper-bf16 or hopper-f16, by the operands' format */
    ASSAY_MLA_FMA,         /* one f32 fma after the other, ascending in a tile_order */
};
enum assay_mla_schedule {
    ASSAY_MLA_ONE_CHAIN, /* sparse decode: a block after the other, both halves alike */
    ASSAY_MLA_SEESAW,    /* dense, prefill: pairs of blocks; the right half B first */
    /* flash: online softmax, one attended key after the other, one lane; p * v by fma */
    ASSAY_MLA_PLAIN,
    /* naive: all scores and their maximum, then p, its sum and p * v, blocks ascending */
    ASSAY_MLA_MATERIALISED,
};
/* Of the 64-wide tiles of q * k. */
enum assay_mla_tile_order {
    ASSAY_MLA_TILES_ASCENDING,
    ASSAY_MLA_TILES_FROM_FOURTH, /* 4, 5 ... then 0 to 3 */
};
enum assay_mla_mask { ASSAY_MLA_MASK_FINITE /* -1e33 */, ASSAY_MLA_MASK_INFINITE };
/* Of the running maximum. */
enum assay_mla_start {
    ASSAY_MLA_START_FINITE,   /* -1e30 */
    ASSAY_MLA_START_INFINITE, /* -infinity, counted as 0 in differences while it lasts */
};
enum assay_mla_argument {
    ASSAY_MLA_ARGUMENT_FUSED,    /* ex2(fma(s, c, -M)) */
    ASSAY_MLA_ARGUMENT_SEPARATE, /* ex2(rn(rn(s * c) - M)) */
};
enum assay_mla_functions {
    ASSAY_MLA_FUNCTIONS_HARDWARE, /* the special-function unit */
    ASSAY_MLA_FUNCTIONS_ROUNDED,  /* exp2, log2 and 1/x rounded to nearest */
};
/* Lane t holds columns 8j + 2t and 8j + 2t + 1. */
enum assay_mla_row_sum {
    ASSAY_MLA_SUM_PAIRS,      /* ((0 + (p0 + p1)) + (p8 + p9)) ... a lane */
    ASSAY_MLA_SUM_ONE_BY_ONE, /* (((0 + p0) + p1) + p8) ... a lane */
    ASSAY_MLA_SUM_ONE_LANE,   /* columns ascending, no lanes */
};
enum assay_mla_p_rounding {
    ASSAY_MLA_P_NEAREST_EVEN, /* to the operands' format */
    ASSAY_MLA_P_TOWARD_ZERO,
    ASSAY_MLA_P_KEPT, /* f32: p * v by f32 fma, tokens ascending */
};
/* The A block's p for columns 256 and up of a seesaw. */
enum assay_mla_right_p {
    ASSAY_MLA_RIGHT_P_RESCALED, /* round(p * a1), after the B block */
    ASSAY_MLA_RIGHT_P_AS_LEFT,  /* round(p), before the B block; a1 rescales the output */
};
/* What columns 256 and up are rescaled with once a pair, unless as the left ones. */
enum assay_mla_right_factor {
    ASSAY_MLA_RIGHT_PRODUCT,     /* rn(a1 * a0) */
    ASSAY_MLA_RIGHT_EXPONENTIAL, /* ex2(M before the pair - M1) */
};
enum assay_mla_odd_tail {
    ASSAY_MLA_TAIL_SKIPPED, /* a missing B block takes no part */
    ASSAY_MLA_TAIL_MASKED,  /* it runs, fully masked */
};
enum assay_mla_quotient {
    ASSAY_MLA_RECIPROCAL, /* o * rcp(L) */
    ASSAY_MLA_DIVISION,   /* o / L */
};
/* C = softmax_scale * log2(e). */
enum assay_mla_scale_constant {
    ASSAY_MLA_SCALE_DOUBLE, /* float(double(scale) * log2(e)) */
    ASSAY_MLA_SCALE_SINGLE, /* rn(scale * float(log2(e))) */
    /* float(double(scale) * double(float(log2(e)))): the single one, for the product of
     * two floats is exact in double */
    ASSAY_MLA_SCALE_FLOAT_CONSTANT,
};
enum assay_mla_dequantisation {
    ASSAY_MLA_SCALE_TO_BF16, /* bf16(code * bf16(scale)) */
    ASSAY_MLA_F32_PRODUCT,   /* bf16(rn(code * scale)) */
};
enum assay_mla_lse_form {
    ASSAY_MLA_LSE_FUSED,    /* fma(lg2(L), ln 2, rn(M * ln 2)) */
    ASSAY_MLA_LSE_SEPARATE, /* rn(rn(lg2(L) + M) * ln 2) */
};
enum assay_mla_sink_product {
    ASSAY_MLA_SINK_SEPARATE, /* ex2(rn(rn(sink * log2 e) - M)) */
    ASSAY_MLA_SINK_FUSED,    /* ex2(fma(sink, log2 e, -M)) */
};
enum assay_mla_nan_row {
    ASSAY_MLA_NAN_AS_EMPTY, /* L = 0 and NaN divide by 1 and give lse +infinity */
    ASSAY_MLA_NAN_STAYS,    /* L = 0 multiplies by 0, lse +infinity; NaN stays */
};
enum assay_mla_zero_weight { ASSAY_MLA_ZERO_WEIGHT_KEPT, ASSAY_MLA_ZERO_WEIGHT_SKIPPED };

struct assay_mla_combine_numerics {
    int functions, flush;
    int sink_product; /* upstream: fused */
    int lse_form; /* separate: rn(G * ln 2); fused: fma(lg2(sum), ln 2, rn(max * ln 2)) */
    int zero_weight;
};

/* The stages read and write the tile of ref/kernel/mla_tile.h. @side is 0 for A blocks
 * and wherever there are no pairs, 1 for B blocks. */
struct assay_mla_tile;
struct assay_mla_stages {
    /* scores of the block in hand, masked */
    void (*scores)(struct assay_mla_tile *, int side);
    /* running maximum, factors, p, row sums */
    void (*weights)(struct assay_mla_tile *, int side);
    /* output += p * v, columns [first, first + 256) */
    void (*values)(struct assay_mla_tile *, int side, int first_column);
    /* normalisation, lse and max_logits */
    void (*finish)(struct assay_mla_tile *);
};

struct assay_mla_numerics { /* ints, so that a knob is an offset; then the stages */
    int unit;
    int align_bits, result_bits; /* 0: the unit's own */
    int schedule;
    int tile_order[2]; /* of A and B blocks */
    int mask, start, argument, functions, row_sum;
    int p_rounding, right_p, right_factor, odd_tail;
    int quotient, scale_constant, dequantisation;
    int lse_form, sink_product, nan_row;
    int flush; /* 1: subnormals become zero, as under fast-math */
    struct assay_mla_combine_numerics combine;
    struct assay_mla_stages stage;
};

/* The named numerics. */
extern const struct assay_mla_numerics assay_mla_flashmla_dense,
    assay_mla_flashmla_sparse_decode, assay_mla_flashmla_sparse_prefill, assay_mla_flash,
    assay_mla_naive;

/* One block of keys of one tile, as a loader fills it. */
struct assay_mla_block {
    /* Codes of the tile's format, V their first 512; keys nobody attends hold zeros
     * unless the kernel would multiply them. */
    uint16_t key[ASSAY_MLA_BLOCK][ASSAY_MLA_MAX_D_QK];
    uint64_t attended[ASSAY_MLA_ROWS]; /* bit j of row i: row i attends to key j */
};

/* Where a tile's keys come from. @load is called for blocks in ascending order
 * (ASSAY_MLA_MATERIALISED: twice) and fills d_qk codes of every key and all rows. */
struct assay_mla_keys {
    const void *source;
    void (*load)(const void *source, int64_t block, struct assay_mla_block *into);
};

/* What a tile is asked. Rows beyond @rows do not exist. */
struct assay_mla_query {
    const struct assay_mla_numerics *numerics;
    enum assay_format format; /* of q, keys, p and out: bf16, f16 */
    int rows, d_qk;
    const uint16_t *q[ASSAY_MLA_ROWS]; /* d_qk codes each */
    float softmax_scale;
    bool is_base_two;
    const float *sink; /* of each row; NULL: none */
    struct assay_mla_keys keys;
};

/* A tile at work: some 450 KiB. NULL when memory ran out. The query is borrowed. */
struct assay_mla_tile *assay_mla_tile_open(const struct assay_mla_query *query);
void assay_mla_tile_close(struct assay_mla_tile *tile);

/* Starts afresh and attends to blocks [begin_block, end_block), which may be empty.
 * Returns false when memory ran out, which only ASSAY_MLA_MATERIALISED needs: 16 KiB a
 * block. */
bool assay_mla_tile_attend(struct assay_mla_tile *tile, int64_t begin_block,
                           int64_t end_block);

/* Unsplit results of the query's rows: out[row][512] codes; lse and, unless NULL,
 * max_logits, f32. */
void assay_mla_tile_finish(struct assay_mla_tile *tile, uint16_t *const *out,
                           float *const *lse, float *const *max_logits);

/* Results of one of several splits: normalised, f32; lse in base 2. No sink. */
void assay_mla_tile_finish_split(struct assay_mla_tile *tile,
                                 float (*oaccum)[ASSAY_MLA_D_V], float *lseaccum);

#endif
