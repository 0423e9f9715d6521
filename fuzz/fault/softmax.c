/* SPDX-License-Identifier: MIT */
/* Faults of attention between scores and outputs: maxima, weights, row sums, logarithms,
 * sinks, and which keys a row sees. */
#include "fuzz/fault/fault.h"
#include "ref/kernel/mla_arithmetic.h"
#include "ref/kernel/mla_tile.h"
#include "verify/operation/mla_dense_decode/mla_dense_decode.h"
#include "verify/operation/mla_sparse_prefill/mla_sparse_prefill.h"

#include <math.h>
#include <string.h>

enum { ROWS = ASSAY_MLA_ROWS, KEYS = ASSAY_MLA_BLOCK, LANES = ASSAY_MLA_LANES };

#define LOG2_E 1.44269504088896341

#define MLA(numerics) ((struct assay_mla_numerics *)(numerics))
#define DENSE(run)    ((struct assay_mla_dense_decode_problem *)(run)->problem)
#define PREFILL(run)  ((struct assay_mla_sparse_prefill_problem *)(run)->problem)

/* --- knobs ------------------------------------------------------------------------ */

#define TURN(function, field, value)                                                     \
  static void function(void *numerics)                                                   \
  {                                                                                      \
    MLA(numerics)->field = (value);                                                      \
  }
TURN(cut_p, p_rounding, ASSAY_MLA_P_TOWARD_ZERO)
TURN(sum_one_by_one, row_sum, ASSAY_MLA_SUM_ONE_BY_ONE)
TURN(sum_in_pairs, row_sum, ASSAY_MLA_SUM_PAIRS)
TURN(separate_argument, argument, ASSAY_MLA_ARGUMENT_SEPARATE)
TURN(rounded_functions, functions, ASSAY_MLA_FUNCTIONS_ROUNDED)
TURN(divide, quotient, ASSAY_MLA_DIVISION)
TURN(single_scale, scale_constant, ASSAY_MLA_SCALE_SINGLE)
TURN(double_scale, scale_constant, ASSAY_MLA_SCALE_DOUBLE)
TURN(separate_lse, lse_form, ASSAY_MLA_LSE_SEPARATE)
TURN(exponential_factor, right_factor, ASSAY_MLA_RIGHT_EXPONENTIAL)
TURN(product_factor, right_factor, ASSAY_MLA_RIGHT_PRODUCT)
TURN(left_p, right_p, ASSAY_MLA_RIGHT_P_AS_LEFT)
TURN(fourth_tile_first, tile_order[0], ASSAY_MLA_TILES_FROM_FOURTH)
TURN(f32_dequantisation, dequantisation, ASSAY_MLA_F32_PRODUCT)

/* --- weights ---------------------------------------------------------------------- */

static void weigh_without_rescale(struct assay_mla_tile *tile, int side)
{
    assay_mla_weights(tile, side);
    for (int row = 0; row < ROWS; row++)
        tile->side[side].factor[row] = tile->right_factor[row] = 1;
}

static void weigh_and_keep_sum(struct assay_mla_tile *tile, int side)
{
    float before[2][ROWS][LANES];
    memcpy(before, tile->lane, sizeof(before));
    assay_mla_weights(tile, side);
    for (int row = 0; row < tile->query->rows; row++)
        for (int lane = 0; lane < LANES; lane++) {
            const float held = before[side][row][lane];
            tile->lane[side][row][lane] += held * (1 - tile->side[side].factor[row]);
        }
}

static void weigh_from_zero(struct assay_mla_tile *tile, int side)
{
    for (int row = 0; row < ROWS; row++)
        if (tile->maximum[row] < 0) tile->maximum[row] = 0;
    assay_mla_weights(tile, side);
}

/* Row sums of what p is rounded to. */
static void weigh_rounded(struct assay_mla_tile *tile, int side)
{
    assay_mla_weights(tile, side);
    for (int row = 0; row < tile->query->rows; row++)
        for (int key = 0; key < KEYS; key++) {
            const float p = tile->side[side].p[row][key];
            uint16_t code;
            float rounded;
            assay_mla_encode(tile->query->format, ASSAY_MLA_P_NEAREST_EVEN, &p, 1, &code);
            assay_mla_decode(tile->query->format, &code, 1, &rounded);
            tile->lane[side][row][0] += rounded - p;
        }
}

/* P in e4m3 under a maximum that lags: weights beyond 448 / 256 are clipped, the sum is
 * not. */
static void multiply_clipped(struct assay_mla_tile *tile, int side, int first_column)
{
    float kept[ROWS][KEYS];
    memcpy(kept, tile->side[side].p, sizeof(kept));
    for (int row = 0; row < ROWS; row++)
        for (int key = 0; key < KEYS; key++)
            tile->side[side].p[row][key] = fminf(kept[row][key], 0.875f);
    assay_mla_values(tile, side, first_column);
    memcpy(tile->side[side].p, kept, sizeof(kept));
}

static void multiply_by_256(struct assay_mla_tile *tile, int side, int first_column)
{
    float kept[ROWS][KEYS];
    memcpy(kept, tile->side[side].p, sizeof(kept));
    for (int row = 0; row < ROWS; row++)
        for (int key = 0; key < KEYS; key++)
            tile->side[side].p[row][key] *= 256;
    assay_mla_values(tile, side, first_column);
    memcpy(tile->side[side].p, kept, sizeof(kept));
}

/* The first masked key takes part with the weight of a score of zero. */
static void score_without_mask(struct assay_mla_tile *tile, int side)
{
    struct assay_mla_side *const held = &tile->side[side];
    assay_mla_scores(tile, side);
    for (int row = 0; row < tile->query->rows; row++)
        for (int key = 0; held->is_present && key < KEYS; key++)
            if (!(held->block.attended[row] >> key & 1)) {
                held->score[row][key] = 0;
                break;
            }
}

TURN(never_rescale, stage.weights, weigh_without_rescale)
TURN(rescale_output_only, stage.weights, weigh_and_keep_sum)
TURN(start_at_zero, stage.weights, weigh_from_zero)
TURN(sum_rounded_p, stage.weights, weigh_rounded)
TURN(clip_p, stage.values, multiply_clipped)
TURN(scale_p, stage.values, multiply_by_256)
TURN(forget_mask, stage.scores, score_without_mask)

/* --- finish ----------------------------------------------------------------------- */

static void finish_base_two(struct assay_mla_tile *tile)
{
    assay_mla_finish(tile);
    for (int row = 0; row < tile->query->rows; row++)
        if (!tile->is_split && !tile->query->is_base_two)
            tile->lse[row] = (float)((double)tile->lse[row] * LOG2_E);
}

static void finish_unscaled(struct assay_mla_tile *tile)
{
    assay_mla_finish(tile);
    for (int row = 0; row < tile->query->rows; row++)
        if (!tile->is_split && isfinite(tile->lse[row]))
            tile->lse[row] += tile->maximum[row] * (1 / tile->scale - 1);
}

static void finish_without_maximum(struct assay_mla_tile *tile)
{
    assay_mla_finish(tile);
    for (int row = 0; row < tile->query->rows; row++)
        if (!tile->is_split && isfinite(tile->lse[row]))
            tile->lse[row] -= (float)((double)tile->maximum[row] / LOG2_E);
}

/* Rows without a key become what -infinity minus -infinity makes of them. */
static void finish_unguarded(struct assay_mla_tile *tile)
{
    assay_mla_finish(tile);
    for (int row = 0; row < tile->query->rows; row++)
        for (int i = 0; isinf(tile->lse[row]) && i < ASSAY_MLA_D_V; i++)
            tile->output[row][i] = NAN;
}

static void finish_empty_low(struct assay_mla_tile *tile)
{
    assay_mla_finish(tile);
    for (int row = 0; row < tile->query->rows; row++)
        if (!tile->is_split && tile->lse[row] == INFINITY) tile->lse[row] = -INFINITY;
}

static void finish_with_sink_in_lse(struct assay_mla_tile *tile)
{
    assay_mla_finish(tile);
    for (int row = 0; row < tile->query->rows; row++)
        if (tile->query->sink && !tile->is_split && isfinite(tile->lse[row]))
            tile->lse[row] = logf(expf(tile->lse[row]) + expf(tile->query->sink[row]));
}

TURN(lse_in_base_two, stage.finish, finish_base_two)
TURN(lse_unscaled, stage.finish, finish_unscaled)
TURN(lse_without_maximum, stage.finish, finish_without_maximum)
TURN(no_guard, stage.finish, finish_unguarded)
TURN(empty_low, stage.finish, finish_empty_low)
TURN(sink_in_lse, stage.finish, finish_with_sink_in_lse)

/* --- what the kernel is given ----------------------------------------------------- */

static void forget_scale(struct assay_fault_run *run)
{
    DENSE(run)->softmax_scale = 1;
}

static void ignore_causal(struct assay_fault_run *run)
{
    DENSE(run)->is_causal = false;
}

static void mask_own_key(struct assay_fault_run *run)
{
    const struct assay_tensor *const lengths = assay_fault_tensor(run, "cache_seqlens");
    int32_t *const length = lengths->data;
    for (int64_t i = 0; DENSE(run)->is_causal && i < DENSE(run)->b; i++)
        length[i] -= length[i] > 0;
}

static void drop_sink(struct assay_fault_run *run)
{
    PREFILL(run)->has_sink = false;
}

static void change_sinks(struct assay_fault_run *run, float factor, int64_t shift)
{
    uint32_t bits[ASSAY_FAULT_ELEMENTS];
    if (!PREFILL(run)->has_sink) return;
    const struct assay_tensor *const sinks = assay_fault_tensor(run, "attn_sink");
    const int64_t heads = assay_fault_read(sinks, bits);
    for (int64_t head = 0; head < heads; head++) {
        assay_tensor_set_bits(sinks, head, bits[(head + shift) % heads]);
        assay_fault_set_value(sinks, head, factor * assay_fault_value(sinks, head));
    }
}

static void scale_sinks(struct assay_fault_run *run)
{
    change_sinks(run, PREFILL(run)->softmax_scale, 0);
}

static void take_next_sink(struct assay_fault_run *run)
{
    change_sinks(run, 1, 1);
}

static void swap_lse_axes(struct assay_fault_run *run)
{
    uint32_t bits[ASSAY_FAULT_ELEMENTS];
    const struct assay_tensor *const lse = assay_fault_tensor(run, "lse");
    const int64_t heads = lse->shape[1], tokens = lse->shape[2];
    const int64_t elements = assay_fault_read(lse, bits);
    for (int64_t i = 0; i < elements; i++) {
        const int64_t request = i / (heads * tokens), inside = i % (heads * tokens);
        assay_tensor_set_bits(
            lse, request * heads * tokens + inside % heads * tokens + inside / heads,
            bits[i]);
    }
}

#define MILD   "mla_dense_decode b=1 h_q=16 s_k=300 sms=1 seed=4"
#define LONG   "mla_dense_decode b=1 h_q=16 s_k=300 softmax_scale=0.3 sms=1 seed=4"
#define DECODE "mla_dense_decode b=2 h_q=16 s_q=2 s_k=130,70 sms=1 causal=1 seed=4"
#define EMPTY  "mla_dense_decode b=3 h_q=16 s_k=70,0,3 sms=1 seed=4"
#define FILLED "mla_sparse_prefill s_q=2 h_q=64 s_kv=200 d_qk=512 topk=256 sink=1 seed=4"
#define LISTED "mla_sparse_decode kv=v32 b=1 h_q=64 topk=128 scales=any seed=4"

#define ROUNDING(op) .operation = op, .kind = ASSAY_FAULT_ROUNDING
#define FUNCTION(op) .operation = op, .kind = ASSAY_FAULT_FUNCTION
#define DENSE_OP     "mla_dense_decode"
#define PREFILL_OP   "mla_sparse_prefill"
#define SPARSE_OP    "mla_sparse_decode"

const struct assay_fault assay_faults_softmax[] = {
    { "p-cut", "C37b", NULL, "p to bf16 by cutting", ROUNDING(DENSE_OP),
      .cases = { MILD }, .numerics = cut_p },
    { "sum-of-rounded-p", "C37a", "R45", "row sums of p as it is rounded",
      FUNCTION(DENSE_OP), .cases = { MILD }, .numerics = sum_rounded_p,
      .must_catch = "bound" },
    { "sum-one-by-one", "C37", NULL, "row sums one by one, not in pairs",
      ROUNDING(DENSE_OP), .cases = { MILD }, .numerics = sum_one_by_one },
    { "sum-in-pairs", "C37", NULL, "row sums in pairs, not one by one",
      ROUNDING(SPARSE_OP), .cases = { LISTED }, .numerics = sum_in_pairs },
    { "argument-separate", "C37", "R45", "the exponential's argument is rounded twice",
      ROUNDING(DENSE_OP), .cases = { MILD }, .numerics = separate_argument },
    { "functions-rounded", "C37", NULL, "exponentials and logarithms correctly rounded",
      ROUNDING(DENSE_OP), .cases = { MILD }, .numerics = rounded_functions },
    { "division", "C37", NULL, "outputs are divided, not multiplied by a reciprocal",
      ROUNDING(PREFILL_OP), .cases = { FILLED }, .numerics = divide },
    { "scale-single", "C37", NULL, "scale * log2 e in f32, not in double",
      ROUNDING(DENSE_OP),
      .cases = { "mla_dense_decode b=1 h_q=16 s_k=300 softmax_scale=0.04 sms=1 seed=4" },
      .numerics = single_scale },
    { "scale-double", "C37", NULL, "scale * log2 e in double, not in f32",
      ROUNDING(PREFILL_OP),
      .cases = { "mla_sparse_prefill s_q=2 h_q=64 s_kv=200 d_qk=576 topk=256 "
                 "softmax_scale=0.04 seed=4" },
      .numerics = double_scale },
    { "lse-separate", "C29", NULL, "lse from a rounded base 2 logarithm",
      ROUNDING(DENSE_OP), .cases = { MILD }, .numerics = separate_lse },
    { "factor-exponential", "C36", NULL, "the right half's factor as one exponential",
      ROUNDING(DENSE_OP), .cases = { "mla_dense_decode b=1 h_q=64 s_k=600 sms=1 seed=4" },
      .numerics = exponential_factor },
    { "factor-product", "C36", NULL, "the right half's factor as a product",
      ROUNDING(PREFILL_OP),
      .cases = { "mla_sparse_prefill s_q=2 h_q=64 s_kv=600 d_qk=512 topk=512 "
                 "seed=4" },
      .numerics = product_factor },
    { "right-p-as-left", "C36", NULL,
      "the right half's p is rounded before it is rescaled", ROUNDING(DENSE_OP),
      .cases = { MILD }, .numerics = left_p },
    { "fourth-tile-first", "C14", NULL, "q * k from its fourth tile on",
      ROUNDING(PREFILL_OP), .cases = { FILLED }, .numerics = fourth_tile_first },
    { "key-from-f32-scale", "C03b", NULL, "keys rounded from code times f32 scale",
      ROUNDING(SPARSE_OP), .cases = { LISTED }, .numerics = f32_dequantisation },
    { "rescale-skipped", "C36a", "R44", "outputs are not rescaled when the maximum rises",
      FUNCTION(DENSE_OP), .cases = { LONG }, .numerics = never_rescale },
    { "sum-not-rescaled", "C36c", NULL, "outputs are rescaled, row sums are not",
      FUNCTION(SPARSE_OP),
      .cases = { "mla_sparse_decode kv=model1 b=1 h_q=64 topk=192 softmax_scale=0.3 "
                 "sms=1 seed=4" },
      .numerics = rescale_output_only },
    { "maximum-from-zero", "C36b", NULL, "the maximum starts at 0", FUNCTION(PREFILL_OP),
      .cases = { "mla_sparse_prefill s_q=2 h_q=64 s_kv=4 d_qk=512 topk=128 "
                 "softmax_scale=40 seed=4" },
      .numerics = start_at_zero },
    { "p-clipped", "C37", "R44", "weights are clipped, their sum is not",
      FUNCTION(DENSE_OP), .cases = { LONG }, .numerics = clip_p },
    { "p-times-256", "C37c", NULL, "p is scaled by 2^8, the sum is not",
      FUNCTION(DENSE_OP), .cases = { LONG }, .numerics = scale_p },
    { "mask-forgotten", "C21", "R43", "a masked key takes part with score 0",
      FUNCTION(DENSE_OP), .cases = { MILD }, .numerics = forget_mask },
    { "lse-base-two", "C29a", "R42", "lse in base 2 for the natural one",
      FUNCTION(DENSE_OP), .cases = { LONG }, .numerics = lse_in_base_two },
    { "lse-unscaled", "C29b", NULL, "lse adds the maximum without its scale",
      FUNCTION(PREFILL_OP), .cases = { FILLED }, .numerics = lse_unscaled },
    { "lse-without-maximum", "C29b", NULL, "lse forgets the maximum", FUNCTION(DENSE_OP),
      .cases = { LONG }, .numerics = lse_without_maximum },
    { "lse-axes-swapped", "C29c", NULL, "lse is written [s, h] for [h, s]",
      FUNCTION(DENSE_OP), .cases = { DECODE }, .after = swap_lse_axes },
    { "empty-row-nan", "C30a", "R41", "a row without keys is not guarded",
      FUNCTION(DENSE_OP), .cases = { EMPTY }, .numerics = no_guard },
    { "empty-row-low", "C30b", "R41", "lse of a row without keys is -infinity",
      FUNCTION(DENSE_OP), .cases = { EMPTY }, .numerics = empty_low },
    { "softmax-scale-dropped", "C16", NULL, "the scale of the softmax is not used",
      FUNCTION(DENSE_OP), .cases = { DECODE }, .before = forget_scale },
    { "causal-ignored", "C34a", "R50", "tokens see later tokens", FUNCTION(DENSE_OP),
      .cases = { DECODE }, .before = ignore_causal },
    { "causal-one-short", "C34b", "R50", "tokens do not see their own key",
      FUNCTION(DENSE_OP), .cases = { DECODE }, .before = mask_own_key },
    { "sink-dropped", "C32", "R46", "the sink is passed and not used",
      FUNCTION(PREFILL_OP), .cases = { FILLED }, .before = drop_sink },
    { "sink-scaled", "C32b", "R46", "the sink is multiplied by the softmax scale",
      FUNCTION(PREFILL_OP), .cases = { FILLED }, .before = scale_sinks },
    { "sink-in-lse", "C32c", "R46", "the sink is counted in the returned lse",
      FUNCTION(PREFILL_OP), .cases = { FILLED }, .numerics = sink_in_lse },
    { "sink-of-next-head", "C32d", NULL, "a head has the next one's sink",
      FUNCTION(PREFILL_OP), .cases = { FILLED }, .before = take_next_sink },
    { .name = NULL },
};
