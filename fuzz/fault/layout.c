/* SPDX-License-Identifier: MIT */
/* Faults of how things lie in memory: tails, strides, padding, stores. */
#include "fuzz/fault/fault.h"
#include "ref/fp8_gemm_grouped_problem.h"
#include "ref/kernel/fp8_gemm.h"
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt.h"
#include "verify/operation/scale_layout/scale_layout.h"

#include <math.h>
#include <string.h>

#define NUMERICS(numerics) ((struct assay_fp8_gemm_numerics *)(numerics))
#define GEMM(run)          (&((struct assay_fp8_gemm_nt_problem *)(run)->problem)->gemm)

/* --- stores ----------------------------------------------------------------------- */

static void finish_without_last_row(struct assay_fp8_gemm_tile *tile)
{
    const bool is_last = tile->range.m0 + tile->range.rows == tile->problem->m;
    if (is_last && tile->problem->m > 1) tile->range.rows--;
    assay_fp8_gemm_finish(tile);
}

static void finish_without_tail(struct assay_fp8_gemm_tile *tile)
{
    const bool is_tail = tile->range.columns < ASSAY_FP8_GEMM_TILE_N;
    if (is_tail && tile->problem->n > ASSAY_FP8_GEMM_TILE_N) tile->range.columns -= 8;
    assay_fp8_gemm_finish(tile);
}

static void leave_last_row(void *numerics)
{
    NUMERICS(numerics)->stage.finish = finish_without_last_row;
}

static void leave_tail(void *numerics)
{
    NUMERICS(numerics)->stage.finish = finish_without_tail;
}

static void swap_elements(const struct assay_tensor *tensor, int64_t one, int64_t other)
{
    const uint32_t bits = assay_tensor_bits(tensor, one);
    assay_tensor_set_bits(tensor, one, assay_tensor_bits(tensor, other));
    assay_tensor_set_bits(tensor, other, bits);
}

static void swap_column_groups(struct assay_fault_run *run)
{
    const struct assay_tensor *const d = assay_fault_tensor(run, "d");
    for (int64_t row = 0; row < d->shape[0]; row++)
        for (int64_t i = 0; d->shape[1] >= 16 && i < 8; i++)
            swap_elements(d, row * d->shape[1] + i, row * d->shape[1] + i + 8);
}

/* The last tile is as wide as the others: it ends in the rows that follow. */
static void spill_into_next_row(struct assay_fault_run *run)
{
    const struct assay_tensor *const d = assay_fault_tensor(run, "d");
    const int64_t n = d->shape[1], beyond = (64 - n % 64) % 64;
    for (int64_t row = 1; row < d->shape[0] && beyond < n; row++)
        for (int64_t i = 0; d->stride[0] == n && i < beyond; i++)
            assay_tensor_set_bits(d, row * n + i, 0);
}

static void write_past_end(struct assay_fault_run *run)
{
    const struct assay_tensor *const output = assay_fault_output(run);
    const size_t bytes = (size_t)assay_tensor_bytes(output);
    if (bytes) memset((char *)output->data + bytes, 0, 16);
}

static void write_before_start(struct assay_fault_run *run)
{
    memset((char *)assay_fault_output(run)->data - 4, 0, 4);
}

/* --- strides ---------------------------------------------------------------------- */

static struct assay_tensor *own(struct assay_fault_run *run, const char *name)
{
    for (int i = 0; i < run->tensors->count; i++)
        if (strcmp(run->tensors->item[i].name, name) == 0) return &run->tensors->item[i];
    return NULL;
}

static void pack_a(struct assay_fault_run *run)
{
    own(run, "a")->stride[0] = GEMM(run)->k;
}

static void pack_b(struct assay_fault_run *run)
{
    own(run, "b")->stride[0] = GEMM(run)->k;
}

static void pack_d(struct assay_fault_run *run)
{
    own(run, "d")->stride[0] = GEMM(run)->n;
}

/* Sixteen-byte chunks of the last 64 columns as the 128-byte pattern has them. */
static void swizzle_tail(struct assay_fault_run *run)
{
    const struct assay_tensor *const a = assay_fault_tensor(run, "a");
    const int64_t first = GEMM(run)->k / 128 * 128;
    if (GEMM(run)->k - first != 64) return;
    for (int64_t row = 0; row < GEMM(run)->m; row++) {
        uint8_t *const tail = (uint8_t *)a->data + row * a->stride[0] + first;
        uint8_t from[64];
        memcpy(from, tail, sizeof(from));
        for (int64_t chunk = 0; chunk < 4; chunk++)
            memcpy(tail + 16 * chunk, from + 16 * ((chunk ^ row) & 3), 16);
    }
}

static void round_n_down(struct assay_fault_run *run)
{
    const struct assay_tensor *const b = assay_fault_tensor(run, "b");
    const int64_t n = GEMM(run)->n, whole = n / 64 * 64;
    for (int64_t row = whole; whole > 0 && row < n; row++)
        memcpy((char *)b->data + row * b->stride[0],
               (char *)b->data + (row - whole) * b->stride[0], (size_t)GEMM(run)->k);
}

/* --- padding ---------------------------------------------------------------------- */

static bool is_nan_code(const struct assay_tensor *a, int64_t row)
{
    return (((const uint8_t *)a->data)[row * a->stride[0]] & 0x7F) == 0x7F;
}

/* Zero times a row of padding is added to the rows of its tile. */
static void add_padding(struct assay_fault_run *run)
{
    enum { TILE = 64 };
    const struct assay_tensor *const a = assay_fault_tensor(run, "a");
    const struct assay_tensor *const d = assay_fault_tensor(run, "d");
    const int32_t *const label = assay_fault_tensor(run, "m_indices")->data;
    for (int64_t row = 0; row < d->shape[0]; row++) {
        const int64_t first = row / TILE * TILE;
        if (label[row] >= 0 || !is_nan_code(a, row) || row == first) continue;
        for (int64_t i = first * d->shape[1]; i < row * d->shape[1]; i++)
            if (label[i / d->shape[1]] >= 0) assay_fault_set_value(d, i, NAN);
    }
}

/* A store box reaches beyond the tiles that count. */
static void store_beyond_mask(struct assay_fault_run *run)
{
    const struct assay_tensor *const d = assay_fault_tensor(run, "d");
    const int32_t *const masked = assay_fault_tensor(run, "masked_m")->data;
    const int64_t room = d->shape[1], n = d->shape[2];
    for (int64_t group = 0; group < d->shape[0]; group++) {
        const int64_t end = ((int64_t)masked[group] + 127) / 128 * 128;
        for (int64_t i = 0; end < room && i < n; i++)
            assay_tensor_set_bits(d, (group * room + end) * n + i, 0);
    }
}

/* A group of K = 0 has what the accumulator held. */
static void leave_accumulator(struct assay_fault_run *run)
{
    const struct assay_tensor *const d = assay_fault_tensor(run, "d");
    const int32_t *const sizes = assay_fault_tensor(run, "grouped_layout")->data;
    const int64_t elements = d->shape[1] * d->shape[2];
    for (int64_t group = 1; group < d->shape[0]; group++)
        for (int64_t i = 0; sizes[group] == 0 && i < elements; i++) {
            const int64_t at = group * elements + i;
            assay_fault_set_value(
                d, at, assay_fault_value(d, at) + assay_fault_value(d, at - elements));
        }
}

/* --- scales in their layouts ------------------------------------------------------ */

static void forget_alignment(struct assay_fault_run *run)
{
    struct assay_tensor *const out = own(run, "out");
    const int axis = out->rank - 2;
    out->stride[axis] = out->shape[axis + 1];
}

static void reverse_bytes(struct assay_fault_run *run)
{
    const struct assay_tensor *const out = assay_fault_tensor(run, "out");
    for (int64_t i = 0; out->format == ASSAY_I32 && i < assay_tensor_elements(out); i++)
        assay_tensor_set_bits(out, i, __builtin_bswap32(assay_tensor_bits(out, i)));
}

/* Bytes of K blocks that do not exist are stale. */
static void leave_stale_bytes(struct assay_fault_run *run)
{
    const struct assay_scale_layout_problem *const problem = run->problem;
    const struct assay_tensor *const out = assay_fault_tensor(run, "out");
    const int64_t blocks = assay_scale_k_blocks(problem),
                  rows = out->shape[out->rank - 1];
    const int64_t words = (blocks + 3) / 4, elements = assay_tensor_elements(out);
    for (int64_t i = 0; out->format == ASSAY_I32 && blocks % 4 && i < elements; i++)
        if (i / rows % words == words - 1)
            assay_tensor_set_bits(out, i, assay_tensor_bits(out, i) | 0x7F000000u);
}

static void copy_first_k_block(struct assay_fault_run *run)
{
    const struct assay_tensor *const from = assay_fault_tensor(run, "sf");
    const int64_t columns = from->shape[from->rank - 1];
    for (int64_t i = 0; i < assay_tensor_elements(from); i++)
        assay_tensor_set_bits(from, i, assay_tensor_bits(from, i / columns * columns));
}

#define GEMM_CASE "fp8_gemm_nt m=70 n=72 k=192 seed=9"
#define VIEW                                                                             \
  "fp8_gemm_nt m=70 n=72 k=192 a_stride=256 b_stride=256 d_stride=96 "                   \
  "seed=9"
#define LABELS "m_grouped_fp8_gemm_nt_contiguous group_m=100,128 n=64 k=256 seed=9"
#define MASKED                                                                           \
  "m_grouped_fp8_gemm_nt_masked groups=2 m_max=256 masked_m=3,100 n=64 k=128 seed=9"
#define SPLIT_K "k_grouped_fp8_gemm_nt_contiguous m=128 n=128 ks=128,0 seed=9"
#define PACKED  "scale_layout mn=70 k=640 from=k_major to=packed_ue8m0 seed=9"
#define MAJOR   "scale_layout mn=70 k=640 from=k_major to=mn_major seed=9"

#define IN(op, sort) .operation = op, .kind = ASSAY_FAULT_##sort
#define FP8          IN("fp8_gemm_nt", FUNCTION)
#define SCALES       IN("scale_layout", FUNCTION)

const struct assay_fault assay_faults_layout[] = {
    { "last-row-unwritten", "C09", "R12", "the last row is never stored", FP8,
      .cases = { GEMM_CASE }, .numerics = leave_last_row, .must_catch = "poison" },
    { "tail-unwritten", "C09", "R31", "the last eight columns are never stored", FP8,
      .cases = { GEMM_CASE }, .numerics = leave_tail, .must_catch = "poison" },
    { "columns-swapped", "C09d", "R40", "two groups of eight columns change places", FP8,
      .cases = { GEMM_CASE }, .after = swap_column_groups },
    { "tail-spills", "C09a", "R31", "the tail is masked by rows only and spills", FP8,
      .cases = { GEMM_CASE }, .after = spill_into_next_row },
    { "writes-past-end", "C09b", "R31", "sixteen bytes past the end of an output",
      IN("fp8_gemm_nt", EXECUTION), .cases = { GEMM_CASE }, .after = write_past_end,
      .must_catch = "guards" },
    { "writes-before-start", "C27b", "R53", "four bytes before an output",
      IN("mla_dense_decode", EXECUTION),
      .cases = { "mla_dense_decode b=1 h_q=16 s_k=70 seed=9" },
      .after = write_before_start, .must_catch = "guards" },
    { "stride-of-a", "C10a", "R16", "rows of a are taken to be packed", FP8,
      .cases = { VIEW }, .before = pack_a },
    { "stride-of-b", "C10a", "R16", "rows of b are taken to be packed", FP8,
      .cases = { VIEW }, .before = pack_b },
    { "stride-of-d", "C10b", "R16", "rows of d are stored as if packed", FP8,
      .cases = { VIEW }, .before = pack_d },
    { "swizzle-fixed", "C39b", "R33", "a tail of 64 is read with the 128-byte pattern",
      FP8, .cases = { GEMM_CASE }, .before = swizzle_tail },
    { "tile-falls-through", "C39c", "R56", "columns beyond whole tiles repeat the first",
      FP8, .cases = { GEMM_CASE }, .before = round_n_down },
    { "padding-added", "C20b", "R29", "zero times a row of padding is added",
      IN("m_grouped_fp8_gemm_nt_contiguous", FUNCTION), .cases = { LABELS },
      .after = add_padding },
    { "mask-overrun", "C20a", "R24", "a row beyond those that count is stored",
      IN("m_grouped_fp8_gemm_nt_masked", FUNCTION), .cases = { MASKED },
      .after = store_beyond_mask },
    { "empty-group-accumulates", "C19a", "R28", "K = 0 adds what the accumulator held",
      IN("k_grouped_fp8_gemm_nt_contiguous", FUNCTION), .cases = { SPLIT_K },
      .after = leave_accumulator },
    { "layout-unaligned", "C05b", "R08", "rows of scales M apart, not a multiple of 4",
      SCALES, .cases = { MAJOR }, .before = forget_alignment },
    { "layout-bytes-reversed", "C04b", NULL, "the four exponents of a word in reverse",
      SCALES, .cases = { PACKED }, .after = reverse_bytes },
    { "layout-stale-bytes", "C05d", "R14", "bytes beyond the last block are stale",
      SCALES, .cases = { PACKED }, .after = leave_stale_bytes },
    { "layout-first-block", "C05", NULL, "all blocks of K have the first one's scale",
      SCALES, .cases = { MAJOR }, .before = copy_first_k_block },
    { .name = NULL },
};
