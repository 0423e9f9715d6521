/* SPDX-License-Identifier: MIT */
/* Faults of products and sums: GEMM accumulators, promotion, the K loop, the epilogue. */
#include "fuzz/fault/fault.h"
#include "ref/format/minifloat.h"
#include "ref/kernel/fp8_gemm.h"
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt.h"

#include <math.h>
#include <string.h>

enum { TILE = ASSAY_FP8_GEMM_TILE_M * ASSAY_FP8_GEMM_TILE_N, BLOCK = 128 };

#define NUMERICS(numerics) ((struct assay_fp8_gemm_numerics *)(numerics))
#define GEMM(run)          (&((struct assay_fp8_gemm_nt_problem *)(run)->problem)->gemm)

static float through(enum assay_format format, float value)
{
    const struct assay_minifloat *const codec = assay_minifloat(format);
    return (float)assay_minifloat_decode(
        codec, assay_minifloat_encode_f32(codec, value, ASSAY_OVERFLOW_SPECIAL));
}

static float cut_to(int mantissa_bits, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    if (isfinite(value)) bits &= ~UINT32_C(0) << (23 - mantissa_bits);
    memcpy(&value, &bits, sizeof(bits));
    return value;
}

/* --- knobs ------------------------------------------------------------------------ */

/* Chains as long as the scales allow: one block's, or all of K under one scale. */
static void promote_512(void *numerics)
{
    if (NUMERICS(numerics)->scale_form == ASSAY_SCALE_AT_END)
        NUMERICS(numerics)->promote_k = 512;
}

static void promote_never(void *numerics)
{
    if (NUMERICS(numerics)->scale_form == ASSAY_SCALE_AT_END)
        NUMERICS(numerics)->promote_k = 0;
}

static void promote_32(void *numerics)
{
    if (NUMERICS(numerics)->promote_k == BLOCK) NUMERICS(numerics)->promote_k = 32;
}

static void align_12(void *numerics)
{
    NUMERICS(numerics)->align_bits = 12;
}

static void align_14(void *numerics)
{
    NUMERICS(numerics)->align_bits = 14;
}

static void result_12(void *numerics)
{
    NUMERICS(numerics)->result_bits = 12;
}

static void promote_separately(void *numerics)
{
    NUMERICS(numerics)->promotion = ASSAY_PROMOTION_SEPARATE;
}

static void scale_a_then_b(void *numerics)
{
    if (NUMERICS(numerics)->scale_form == ASSAY_SCALE_PRODUCT_FIRST)
        NUMERICS(numerics)->scale_form = ASSAY_SCALE_A_THEN_B;
}

static void descend(void *numerics)
{
    NUMERICS(numerics)->k_order = ASSAY_K_DESCENDING;
}

static void cut_output(void *numerics)
{
    NUMERICS(numerics)->out_rounding = ASSAY_OUT_TOWARD_ZERO;
}

static void reduce_for_store(void *numerics)
{
    NUMERICS(numerics)->epilogue = ASSAY_EPILOGUE_REDUCE;
}

/* --- stages ----------------------------------------------------------------------- */

static void promote_to_13_bits(struct assay_fp8_gemm_tile *tile)
{
    assay_fp8_gemm_promote(tile);
    for (int i = 0; i < TILE; i++)
        tile->final[i] = cut_to(13, tile->final[i]);
}

static void keep_13_bits(void *numerics)
{
    if (NUMERICS(numerics)->stage.promote == assay_fp8_gemm_promote)
        NUMERICS(numerics)->stage.promote = promote_to_13_bits;
}

static void promote_to_bf16(struct assay_fp8_gemm_tile *tile)
{
    assay_fp8_gemm_promote(tile);
    for (int i = 0; i < TILE; i++)
        tile->final[i] = through(ASSAY_BF16, tile->final[i]);
}

static void keep_bf16(void *numerics)
{
    if (NUMERICS(numerics)->stage.promote == assay_fp8_gemm_promote)
        NUMERICS(numerics)->stage.promote = promote_to_bf16;
}

static void promote_from_f16(struct assay_fp8_gemm_tile *tile)
{
    for (int i = 0; i < TILE; i++) {
        float value;
        memcpy(&value, &tile->accumulator[i], sizeof(value));
        value = through(ASSAY_F16, value);
        memcpy(&tile->accumulator[i], &value, sizeof(value));
    }
    assay_fp8_gemm_promote(tile);
}

static void hold_f16(void *numerics)
{
    if (NUMERICS(numerics)->stage.promote == assay_fp8_gemm_promote)
        NUMERICS(numerics)->stage.promote = promote_from_f16;
}

/* What the chain before left is still there. */
static void chain_on(struct assay_fp8_gemm_tile *tile)
{
    float before[TILE];
    const bool is_first = tile->k0 == 0;
    memcpy(before, tile->accumulator, sizeof(before));
    assay_fp8_gemm_chain(tile);
    for (int i = 0; !is_first && i < TILE; i++) {
        float value;
        memcpy(&value, &tile->accumulator[i], sizeof(value));
        value += before[i];
        memcpy(&tile->accumulator[i], &value, sizeof(value));
    }
}

static void never_clear(void *numerics)
{
    if (NUMERICS(numerics)->stage.chain == assay_fp8_gemm_chain)
        NUMERICS(numerics)->stage.chain = chain_on;
}

static void finish_through_f16(struct assay_fp8_gemm_tile *tile)
{
    for (int i = 0; i < TILE; i++)
        tile->final[i] = through(ASSAY_F16, tile->final[i]);
    assay_fp8_gemm_finish(tile);
}

static void round_twice(void *numerics)
{
    NUMERICS(numerics)->stage.finish = finish_through_f16;
}

static int64_t element_of(const struct assay_fp8_gemm_tile *tile, int64_t row,
                          int64_t column)
{
    return (tile->range.m0 + row) * tile->problem->n + tile->range.n0 + column;
}

static void finish_with_more(struct assay_fp8_gemm_tile *tile,
                             const struct assay_tensor *more)
{
    for (int64_t row = 0; more && row < tile->range.rows; row++)
        for (int64_t column = 0; column < tile->range.columns; column++)
            tile->final[row * ASSAY_FP8_GEMM_TILE_N + column] +=
                assay_fault_value(more, element_of(tile, row, column));
    assay_fp8_gemm_finish(tile);
}

static void finish_with_c_twice(struct assay_fp8_gemm_tile *tile)
{
    finish_with_more(tile, tile->c);
}

static void add_c_twice(void *numerics)
{
    NUMERICS(numerics)->stage.finish = finish_with_c_twice;
}

static void finish_onto_d(struct assay_fp8_gemm_tile *tile)
{
    finish_with_more(tile, tile->c ? NULL : tile->d);
}

static void read_d(void *numerics)
{
    NUMERICS(numerics)->stage.finish = finish_onto_d;
}

static void finish_without_c(struct assay_fp8_gemm_tile *tile)
{
    tile->c = NULL;
    assay_fp8_gemm_finish(tile);
}

static void drop_c(void *numerics)
{
    NUMERICS(numerics)->stage.finish = finish_without_c;
}

static void finish_bf16_then_c(struct assay_fp8_gemm_tile *tile)
{
    for (int i = 0; tile->c && i < TILE; i++)
        tile->final[i] = through(ASSAY_BF16, tile->final[i]);
    assay_fp8_gemm_finish(tile);
}

static void add_c_late(void *numerics)
{
    NUMERICS(numerics)->stage.finish = finish_bf16_then_c;
}

static void promote_tail_with_last_scale(struct assay_fp8_gemm_tile *tile)
{
    const int64_t k0 = tile->k0;
    if (tile->k_count < BLOCK && k0 >= BLOCK && tile->problem->gran_k == BLOCK)
        tile->k0 -= BLOCK;
    assay_fp8_gemm_promote(tile);
    tile->k0 = k0;
}

static void scale_tail_as_last(void *numerics)
{
    if (NUMERICS(numerics)->stage.promote == assay_fp8_gemm_promote)
        NUMERICS(numerics)->stage.promote = promote_tail_with_last_scale;
}

/* --- problems --------------------------------------------------------------------- */

static void drop_k_tail(struct assay_fault_run *run)
{
    if (GEMM(run)->k > BLOCK) GEMM(run)->k -= GEMM(run)->k % BLOCK;
}

static void drop_last_step(struct assay_fault_run *run)
{
    if (GEMM(run)->k % 32) GEMM(run)->k -= GEMM(run)->k % 32;
}

/* Where rows have room for whole blocks. */
static void consume_padding(struct assay_fault_run *run)
{
    const int64_t k = (GEMM(run)->k + BLOCK - 1) / BLOCK * BLOCK;
    if (assay_fault_tensor(run, "a")->stride[0] >= k &&
        assay_fault_tensor(run, "b")->stride[0] >= k && GEMM(run)->gran_k == BLOCK)
        GEMM(run)->k = k;
}

#define LONG_POSITIVE "fp8_gemm_nt m=4 n=16 k=4096 out=f32 data=positive seed=1"
#define LONG_TENSOR                                                                      \
  "fp8_gemm_nt m=4 n=16 k=4096 recipe=tensor out=f32 data=positive seed=1"
#define BLOCKS "fp8_gemm_nt m=20 n=24 k=384 out=f32 seed=3"
#define TAIL   "fp8_gemm_nt m=20 n=24 k=320 out=f32 seed=3"
#define WITH_C "fp8_gemm_nt m=20 n=24 k=256 recipe=1d1d out=f32 c=1 seed=3"

/* One product of about -2^-9 under a scale of 2^-149, which rounds to -0. */
#define UNDERFLOW                                                                        \
  "fp8_gemm_nt m=1 n=8 k=16 out=f32 seed=1 bits=sfa.0.0:00000001,sfb.0.0:3f800000,"      \
  "a.0.0:81,a.0.1:0,a.0.2:0,a.0.3:0,a.0.4:0,a.0.5:0,a.0.6:0,a.0.7:0,a.0.8:0,a.0.9:0,"    \
  "a.0.10:0,a.0.11:0,a.0.12:0,a.0.13:0,a.0.14:0,a.0.15:0"

#define ROUNDING .operation = "fp8_gemm_nt", .kind = ASSAY_FAULT_ROUNDING
#define FUNCTION .operation = "fp8_gemm_nt", .kind = ASSAY_FAULT_FUNCTION

const struct assay_fault assay_faults_accumulate[] = {
    { "promote-512", "C14b", "R35", "chains of 512 for 128 where one scale serves all K",
      ROUNDING, .cases = { LONG_TENSOR }, .numerics = promote_512,
      .must_catch = "bound properties" },
    { "promote-never", "C14a", "R35", "one chain over all of K, never promoted", ROUNDING,
      .cases = { LONG_TENSOR }, .numerics = promote_never,
      .must_catch = "bound properties" },
    { "sum-of-13-bits", "C17c", "R35", "the sum of blocks keeps 13 bits, not 23",
      FUNCTION, .cases = { LONG_POSITIVE }, .numerics = keep_13_bits,
      .must_catch = "properties" },
    { "promote-32", "C14", NULL, "chains of 32 for 128", ROUNDING,
      .cases = { BLOCKS, LONG_POSITIVE }, .numerics = promote_32 },
    { "align-12", "C14c", "R35", "aligned products keep 12 bits, not 13", ROUNDING,
      .cases = { BLOCKS, LONG_POSITIVE }, .numerics = align_12,
      .must_catch = "properties" },
    { "align-14", "C14c", "R35", "aligned products keep 14 bits, not 13", ROUNDING,
      .cases = { BLOCKS, LONG_POSITIVE }, .numerics = align_14 },
    { "result-12", "C14c", "R35", "the accumulator keeps 12 bits, not 13", ROUNDING,
      .cases = { BLOCKS, LONG_POSITIVE }, .numerics = result_12,
      .must_catch = "properties" },
    { "promote-separately", "C15", NULL, "block times scale is rounded before the sum",
      ROUNDING, .cases = { BLOCKS }, .numerics = promote_separately },
    { "scale-a-then-b", "C17b", NULL,
      "the block is multiplied by one scale, then the other", ROUNDING,
      .cases = { BLOCKS }, .numerics = scale_a_then_b },
    { "k-descending", "C14", NULL, "K from its end to its beginning", ROUNDING,
      .cases = { BLOCKS }, .numerics = descend },
    { "cut-output", "C15a", "R39", "f32 to bf16 by cutting", ROUNDING,
      .cases = { "fp8_gemm_nt m=20 n=24 k=256 seed=3" }, .numerics = cut_output },
    { "reduce-for-store", "C15", NULL, "d = 0 + sum, which loses -0", ROUNDING,
      .cases = { UNDERFLOW }, .numerics = reduce_for_store },
    { "round-twice", "C15b", "R39", "f32 to f16 to d", FUNCTION,
      .cases = { BLOCKS, "fp8_gemm_nt m=20 n=24 k=256 seed=3" }, .numerics = round_twice,
      .must_catch = "properties" },
    { "c-onto-bf16", "C15c", "R39", "the sum is rounded to bf16 before c is added",
      FUNCTION, .cases = { WITH_C }, .numerics = add_c_late, .must_catch = "properties" },
    { "sum-in-bf16", "C17c", NULL, "the sum of blocks is kept in bf16", FUNCTION,
      .cases = { LONG_POSITIVE }, .numerics = keep_bf16,
      .must_catch = "bound properties" },
    { "dot-in-f16", "C17a", "R19", "unscaled blocks are held in f16 and overflow",
      FUNCTION,
      .cases = { "fp8_gemm_nt m=8 n=16 k=4096 recipe=1d2d data=positive seed=2" },
      .numerics = hold_f16 },
    { "accumulator-kept", "C19a", NULL, "the accumulator is not cleared between blocks",
      FUNCTION, .cases = { BLOCKS }, .numerics = never_clear },
    { "c-twice", "C16c", NULL, "c is accumulated twice", FUNCTION, .cases = { WITH_C },
      .numerics = add_c_twice },
    { "c-dropped", "C16", "R17", "c is not accumulated", FUNCTION, .cases = { WITH_C },
      .numerics = drop_c },
    { "d-read", "C16b", "R18", "d is read although nothing is to be accumulated",
      FUNCTION, .cases = { BLOCKS }, .numerics = read_d },
    { "k-tail-dropped", "C08a", "R14", "K is rounded down to whole blocks", FUNCTION,
      .cases = { TAIL }, .before = drop_k_tail },
    { "k-step-dropped", "C08a", "R13", "K is rounded down to whole steps of 32", FUNCTION,
      .cases = { "fp8_gemm_nt m=20 n=24 k=272 out=f32 seed=3" },
      .before = drop_last_step },
    { "k-tail-scale", "C08b", "R14", "the tail of K has the last whole block's scale",
      FUNCTION, .cases = { TAIL }, .numerics = scale_tail_as_last },
    { "k-tail-padding", "C08c", "R14", "the tail of K goes on into the row padding",
      FUNCTION,
      .cases = { "fp8_gemm_nt m=20 n=24 k=320 a_stride=384 b_stride=384 seed=3" },
      .before = consume_padding },
    { .name = NULL },
};
