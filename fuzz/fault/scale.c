/* SPDX-License-Identifier: MIT */
/* Faults of scale factors: those of GEMM operands, and those inside cached tokens. */
#include "fuzz/fault/fault.h"
#include "ref/format/minifloat.h"
#include "ref/kernel/fp8_gemm.h"
#include "verify/operation/mla_sparse_decode/mla_sparse_decode.h"

#include <math.h>
#include <string.h>

enum { ELEMENTS = ASSAY_FAULT_ELEMENTS, TILE_M = ASSAY_FP8_GEMM_TILE_M };

#define NUMERICS(numerics) ((struct assay_fp8_gemm_numerics *)(numerics))

/* --- scales of operands ----------------------------------------------------------- */

/* Gives every scale [row, block] of a tensor the one that @source names. */
static void take_from(const struct assay_tensor *scale,
                      int64_t (*source)(const struct assay_tensor *, int64_t row,
                                        int64_t block))
{
    uint32_t bits[ELEMENTS];
    if (scale->format != ASSAY_F32 || !assay_fault_read(scale, bits)) return;
    for (int64_t row = 0; row < scale->shape[0]; row++)
        for (int64_t block = 0; block < scale->shape[1]; block++)
            assay_tensor_set_bits(scale, row * scale->shape[1] + block,
                                  bits[source(scale, row, block)]);
}

static int64_t transposed(const struct assay_tensor *scale, int64_t row, int64_t block)
{
    const int64_t element = row * scale->shape[1] + block;
    return element % scale->shape[0] * scale->shape[1] + element / scale->shape[0];
}

static int64_t one_block_before(const struct assay_tensor *scale, int64_t row,
                                int64_t block)
{
    return row * scale->shape[1] + (block ? block - 1 : 0);
}

static int64_t first_block(const struct assay_tensor *scale, int64_t row, int64_t block)
{
    (void)block;
    return row * scale->shape[1];
}

static int64_t one_tile_before(const struct assay_tensor *scale, int64_t row,
                               int64_t block)
{
    return (row >= TILE_M ? row - TILE_M : row) * scale->shape[1] + block;
}

static int64_t first_row(const struct assay_tensor *scale, int64_t row, int64_t block)
{
    (void)scale, (void)row;
    return block;
}

static int64_t last_row_but_one(const struct assay_tensor *scale, int64_t row,
                                int64_t block)
{
    const bool is_last = row > 0 && row == scale->shape[0] - 1;
    return (is_last ? row - 1 : row) * scale->shape[1] + block;
}

static void transpose_a(struct assay_fault_run *run)
{
    take_from(assay_fault_tensor(run, "sfa"), transposed);
}

static void transpose_b(struct assay_fault_run *run)
{
    take_from(assay_fault_tensor(run, "sfb"), transposed);
}

static void lag(struct assay_fault_run *run)
{
    take_from(assay_fault_tensor(run, "sfa"), one_block_before);
}

static void stay_at_first_block(struct assay_fault_run *run)
{
    take_from(assay_fault_tensor(run, "sfb"), first_block);
}

static void stay_at_first_tile(struct assay_fault_run *run)
{
    take_from(assay_fault_tensor(run, "sfa"), one_tile_before);
}

static void stay_at_first_row(struct assay_fault_run *run)
{
    take_from(assay_fault_tensor(run, "sfb"), first_row);
}

static void clamp_early(struct assay_fault_run *run)
{
    take_from(assay_fault_tensor(run, "sfa"), last_row_but_one);
}

static void exchange(struct assay_fault_run *run)
{
    const struct assay_tensor *const a = assay_fault_tensor(run, "sfa");
    const struct assay_tensor *const b = assay_fault_tensor(run, "sfb");
    const int64_t elements_a = assay_tensor_elements(a);
    const int64_t elements_b = assay_tensor_elements(b);
    for (int64_t i = 0; i < elements_a && i < elements_b; i++) {
        const uint32_t bits = assay_tensor_bits(a, i);
        assay_tensor_set_bits(a, i, assay_tensor_bits(b, i));
        assay_tensor_set_bits(b, i, bits);
    }
}

static void change_all(const struct assay_tensor *scale, float (*change)(float))
{
    const int64_t elements = assay_tensor_elements(scale);
    for (int64_t i = 0; scale->format == ASSAY_F32 && i < elements; i++)
        assay_fault_set_value(scale, i, change(assay_fault_value(scale, i)));
}

static float one(float scale)
{
    (void)scale;
    return 1;
}

static float half(float scale)
{
    return scale / 2;
}

static float exponent_only(float scale)
{
    uint32_t bits;
    memcpy(&bits, &scale, sizeof(bits));
    bits &= 0xFF800000;
    memcpy(&scale, &bits, sizeof(scale));
    return scale;
}

/* The lowest byte taken for an exponent, kept where results stay finite. */
static float low_byte(float scale)
{
    uint32_t bits;
    memcpy(&bits, &scale, sizeof(bits));
    return ldexpf(1, (int)(bits & 0xFF) % 64 - 32);
}

static float without_subnormals(float scale)
{
    return fabsf(scale) < 0x1p-126f ? 0 : scale;
}

static void drop_a(struct assay_fault_run *run)
{
    change_all(assay_fault_tensor(run, "sfa"), one);
}

static void drop_b(struct assay_fault_run *run)
{
    change_all(assay_fault_tensor(run, "sfb"), one);
}

static void halve_a(struct assay_fault_run *run)
{
    change_all(assay_fault_tensor(run, "sfa"), half);
}

static void keep_exponent(struct assay_fault_run *run)
{
    change_all(assay_fault_tensor(run, "sfa"), exponent_only);
}

static void read_low_byte(struct assay_fault_run *run)
{
    change_all(assay_fault_tensor(run, "sfa"), low_byte);
}

static void flush_scales(struct assay_fault_run *run)
{
    change_all(assay_fault_tensor(run, "sfa"), without_subnormals);
}

static void reverse_words(struct assay_fault_run *run)
{
    const struct assay_tensor *const words = assay_fault_tensor(run, "sfa");
    const int64_t elements = assay_tensor_elements(words);
    for (int64_t i = 0; words->format == ASSAY_I32 && i < elements; i++)
        assay_tensor_set_bits(words, i, __builtin_bswap32(assay_tensor_bits(words, i)));
}

/* Exponent codes as e4m3, rounded to powers of two. */
static void read_as_e4m3(struct assay_fault_run *run)
{
    const struct assay_tensor *const words = assay_fault_tensor(run, "sfa");
    const int64_t elements = assay_tensor_elements(words);
    for (int64_t i = 0; words->format == ASSAY_I32 && i < elements; i++) {
        const uint32_t word = assay_tensor_bits(words, i);
        uint32_t changed = 0;
        for (int at = 0; at < 32; at += 8) {
            const uint32_t code = word >> at & 0x7F;
            const double value =
                assay_minifloat_decode(assay_minifloat(ASSAY_E4M3), code);
            const bool is_number = value > 0;
            changed |= (is_number ? (uint32_t)(127 + ilogb(value)) : 255u) << at;
        }
        assay_tensor_set_bits(words, i, changed);
    }
}

/* --- scales on their way through tiles --------------------------------------------- */

/* The second wave of rows finds b's scale already multiplied by a's. */
static void promote_scaled_twice(struct assay_fp8_gemm_tile *tile)
{
    const int64_t block = tile->k0 / tile->problem->gran_k;
    const float *const scales = tile->sfa->data;
    const float again = scales[block * tile->sfa->stride[1]];
    for (int i = 0; tile->range.m0 > 0 && i < TILE_M * ASSAY_FP8_GEMM_TILE_N; i++) {
        float value;
        memcpy(&value, &tile->accumulator[i], sizeof(value));
        value *= again;
        memcpy(&tile->accumulator[i], &value, sizeof(value));
    }
    assay_fp8_gemm_promote(tile);
}

static void scale_in_place(void *numerics)
{
    if (NUMERICS(numerics)->scale_form == ASSAY_SCALE_PRODUCT_FIRST)
        NUMERICS(numerics)->stage.promote = promote_scaled_twice;
}

/* Columns take the scale of the column eight before them. */
static void promote_eight_late(struct assay_fp8_gemm_tile *tile)
{
    const int64_t n0 = tile->range.n0;
    if (n0 >= 8) tile->range.n0 -= 8;
    assay_fp8_gemm_promote(tile);
    tile->range.n0 = n0;
}

static void switch_late(void *numerics)
{
    if (NUMERICS(numerics)->stage.promote == assay_fp8_gemm_promote)
        NUMERICS(numerics)->stage.promote = promote_eight_late;
}

/* --- scales of v32 tokens: 512 codes, 4 f32 scales, 64 bf16 ------------------------ */

enum { CODES = 512, SCALES = 4, TOKEN = 656, ROPE = 64, ROPE_AT = 528 };

/* Calls @change for every v32 token of the cache. */
static void for_each_token(struct assay_fault_run *run, void (*change)(uint8_t *token))
{
    const struct assay_mla_sparse_decode_task *const task = run->problem;
    const struct assay_mla_cache *const cache = &task->problem.cache;
    uint8_t *const pages = assay_fault_tensor(run, "k_cache")->data;
    if (cache->kv != ASSAY_MLA_V32) return;
    for (int64_t page = 0; page < cache->pages; page++)
        for (int64_t i = 0; i < cache->page_size; i++)
            change(pages + page * cache->page_stride + i * TOKEN);
}

static void first_scale_for_all(uint8_t *token)
{
    for (int i = 1; i < SCALES; i++)
        memcpy(token + CODES + 4 * i, token + CODES, 4);
}

static void scales_of_one(uint8_t *token)
{
    const float scale = 1;
    for (int i = 0; i < SCALES; i++)
        memcpy(token + CODES + 4 * i, &scale, 4);
}

static void square_scales(uint8_t *token)
{
    for (int i = 0; i < SCALES; i++) {
        float scale;
        memcpy(&scale, token + CODES + 4 * i, 4);
        scale *= scale;
        memcpy(token + CODES + 4 * i, &scale, 4);
    }
}

static void scale_rope(uint8_t *token)
{
    float scale;
    memcpy(&scale, token + CODES + 4 * (SCALES - 1), 4);
    for (int i = 0; i < ROPE; i++) {
        uint16_t code;
        memcpy(&code, token + ROPE_AT + 2 * i, 2);
        const float value =
            (float)assay_minifloat_decode(assay_minifloat(ASSAY_BF16), code);
        code = (uint16_t)assay_minifloat_encode_f32(
            assay_minifloat(ASSAY_BF16), value * scale, ASSAY_OVERFLOW_SPECIAL);
        memcpy(token + ROPE_AT + 2 * i, &code, 2);
    }
}

static void shift_rope(uint8_t *token)
{
    memmove(token + ROPE_AT, token + ROPE_AT - 16, 2 * ROPE);
}

static void share_first_scale(struct assay_fault_run *run)
{
    for_each_token(run, first_scale_for_all);
}

static void drop_token_scales(struct assay_fault_run *run)
{
    for_each_token(run, scales_of_one);
}

static void use_token_scales_twice(struct assay_fault_run *run)
{
    for_each_token(run, square_scales);
}

static void scale_rope_too(struct assay_fault_run *run)
{
    for_each_token(run, scale_rope);
}

static void read_rope_early(struct assay_fault_run *run)
{
    for_each_token(run, shift_rope);
}

#define SQUARE "fp8_gemm_nt m=72 n=72 k=512 recipe=1d1d out=f32 seed=5"
#define WIDE   "fp8_gemm_nt m=72 n=264 k=256 out=f32 seed=5"
#define PACKED "fp8_gemm_nt m=16 n=16 k=512 recipe=mx out=f32 seed=5"
#define SPARSE "mla_sparse_decode kv=v32 b=1 h_q=64 topk=64 s_kv=80 seed=5"

#define GEMM   .operation = "fp8_gemm_nt", .kind = ASSAY_FAULT_FUNCTION
#define TOKENS .operation = "mla_sparse_decode", .kind = ASSAY_FAULT_FUNCTION

const struct assay_fault assay_faults_scale[] = {
    { "scales-exchanged", "C05c", "R09", "scales of a for b's and the reverse", GEMM,
      .cases = { SQUARE }, .before = exchange },
    { "scale-a-transposed", "C05a", "R08", "sfa[k][m] is read for sfa[m][k]", GEMM,
      .cases = { SQUARE }, .before = transpose_a },
    { "scale-b-transposed", "C05a", "R08", "sfb[k][n] is read for sfb[n][k]", GEMM,
      .cases = { SQUARE }, .before = transpose_b },
    { "scale-a-late", "C06b", "R11", "a block of K has the scale of the one before", GEMM,
      .cases = { SQUARE }, .before = lag },
    { "scale-b-first-block", "C06b", NULL, "all blocks of K have b's first scale", GEMM,
      .cases = { SQUARE }, .before = stay_at_first_block },
    { "scale-a-first-tile", "C06c", NULL,
      "rows of a tile have the scales of the tile before", GEMM, .cases = { SQUARE },
      .before = stay_at_first_tile },
    { "scale-a-in-place", "C06a", "R11",
      "b's scale is multiplied in place: the second wave is scaled twice", GEMM,
      .cases = { WIDE }, .numerics = scale_in_place },
    { "scale-b-first-only", "C07a", "R10", "a tile's first scale of b for all columns",
      GEMM, .cases = { WIDE }, .before = stay_at_first_row },
    { "scale-b-eight-late", "C07b", NULL, "b's scale changes eight columns late", GEMM,
      .cases = { WIDE }, .numerics = switch_late },
    { "scale-a-clamped-early", "C09c", "R12",
      "the last row has the scale of the one before", GEMM, .cases = { SQUARE },
      .before = clamp_early },
    { "scale-a-dropped", "C16a", "R17", "a's scales are passed and not used", GEMM,
      .cases = { SQUARE }, .before = drop_a },
    { "scale-b-dropped", "C16a", "R17", "b's scales are passed and not used", GEMM,
      .cases = { WIDE }, .before = drop_b },
    { "bias-of-eight", "C13c", NULL, "e4m3 decoded with bias 8: a is halved", GEMM,
      .cases = { SQUARE }, .before = halve_a },
    { "scale-exponent-only", "C04a", "R01", "f32 scales lose their mantissa", GEMM,
      .cases = { SQUARE }, .before = keep_exponent },
    { "scale-low-byte", "C04a", "R01", "the low byte of an f32 scale as its exponent",
      GEMM, .cases = { SQUARE }, .before = read_low_byte },
    { "scale-flushed", "C11c", "R21", "subnormal scales are flushed to zero", GEMM,
      .cases = { "fp8_gemm_nt m=4 n=8 k=128 out=f32 data=positive seed=5 "
                 "bits=sfa.0.0:00400000,sfa.1.0:00400000,sfb.0.0:42000000" },
      .before = flush_scales },
    { "scale-word-reversed", "C04b", NULL, "the four exponents of a word in reverse",
      GEMM, .cases = { PACKED }, .before = reverse_words },
    { "scale-as-e4m3", "C04c", NULL, "exponent codes are read as e4m3", GEMM,
      .cases = { PACKED }, .before = read_as_e4m3 },
    { "token-first-scale", "C38b", "R55", "a token's first scale for its four tiles",
      TOKENS, .cases = { SPARSE }, .before = share_first_scale },
    { "token-scale-dropped", "C38", "R55", "a token's scales are not used", TOKENS,
      .cases = { SPARSE }, .before = drop_token_scales },
    { "token-scale-twice", "C38c", NULL, "a token's scales are used twice", TOKENS,
      .cases = { SPARSE }, .before = use_token_scales_twice },
    { "rope-scaled", "C38a", NULL, "the rotary part is scaled as well", TOKENS,
      .cases = { SPARSE }, .before = scale_rope_too },
    { "rope-early", "C38d", NULL, "the rotary part is read 16 bytes early", TOKENS,
      .cases = { SPARSE }, .before = read_rope_early },
    { .name = NULL },
};
