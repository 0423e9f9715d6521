/* SPDX-License-Identifier: MIT */
/* Faults of races, fences, workspaces and leftovers. Nothing runs at the same time here:
 * what is planted is their effect, on some runs or some launches. */
#include "fuzz/fault/fault.h"
#include "ref/kernel/fp8_gemm.h"
#include "ref/kernel/mla_attention.h"
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt.h"
#include "verify/operation/mla_dense_decode/mla_dense_decode.h"

#include <math.h>
#include <string.h>

#define NUMERICS(numerics) ((struct assay_fp8_gemm_numerics *)(numerics))
#define GEMM(run)          (&((struct assay_fp8_gemm_nt_problem *)(run)->problem)->gemm)

/* --- some runs -------------------------------------------------------------------- */

static void flip_one_in_ten(struct assay_fault_run *run)
{
    const struct assay_tensor *const d = assay_fault_tensor(run, "d");
    if (run->runs % 10 == 9 && assay_tensor_elements(d) > 0)
        assay_tensor_set_bits(d, 0, assay_tensor_bits(d, 0) ^ 1);
}

/* One row finds a scale column before its copy has landed. */
static void scale_before_copy(struct assay_fault_run *run)
{
    const struct assay_tensor *const sfa = assay_fault_tensor(run, "sfa");
    if (run->runs % 7 == 3 && sfa->format == ASSAY_F32 && assay_tensor_elements(sfa) > 0)
        assay_fault_set_value(sfa, 0, 3 * assay_fault_value(sfa, 0));
}

/* 128 columns of K as they were before the producer wrote them. */
static void start_early(struct assay_fault_run *run)
{
    const struct assay_tensor *const a = assay_fault_tensor(run, "a");
    for (int64_t row = 0; run->runs % 3 == 2 && row < a->shape[0]; row++)
        memset((char *)a->data + row * a->stride[0], 0,
               (size_t)(a->shape[1] < 128 ? a->shape[1] : 128));
}

/* A tile is stored from a buffer that is being refilled. */
static void swap_on_even_runs(struct assay_fault_run *run)
{
    const struct assay_tensor *const d = assay_fault_tensor(run, "d");
    const int64_t elements = assay_tensor_elements(d);
    if (run->runs % 2 == 0 || elements < 2) return;
    const uint32_t first = assay_tensor_bits(d, 0);
    assay_tensor_set_bits(d, 0, assay_tensor_bits(d, elements - 1));
    assay_tensor_set_bits(d, elements - 1, first);
}

/* Loads of a group still go through the tensor map of the one before. */
static void load_through_old_map(struct assay_fault_run *run)
{
    const struct assay_tensor *const scales = assay_fault_tensor(run, "sfb");
    const int64_t rows = scales->shape[0], columns = scales->shape[1];
    for (int64_t row = 1; run->runs % 4 == 2 && row < rows; row++)
        for (int64_t i = 0; i < columns; i++)
            assay_tensor_set_bits(scales, row * columns + i,
                                  assay_tensor_bits(scales, i));
}

static void finish_nothing_of_first(struct assay_fp8_gemm_tile *tile)
{
    if (tile->range.m0 > 0 || tile->range.n0 > 0) assay_fp8_gemm_finish(tile);
}

/* One of a pair skips a tile that it takes for empty. */
static void skip_tile(struct assay_fault_run *run)
{
    if (run->runs % 3 == 1)
        NUMERICS(run->numerics)->stage.finish = finish_nothing_of_first;
}

/* Sums in the order in which they arrive. */
static void add_as_they_come(struct assay_fault_run *run)
{
    if (run->runs % 2) NUMERICS(run->numerics)->k_order = ASSAY_K_DESCENDING;
}

static void merge_as_they_come(struct assay_fault_run *run)
{
    if (run->runs % 2)
        ((struct assay_mla_numerics *)run->numerics)->row_sum = ASSAY_MLA_SUM_ONE_BY_ONE;
}

/* --- between runs and launches ---------------------------------------------------- */

static void add_every_launch(struct assay_fault_run *run)
{
    const struct assay_tensor *const d = assay_fault_tensor(run, "d");
    for (int64_t i = 0; run->launches > 1 && i < assay_tensor_elements(d); i++)
        assay_fault_set_value(d, i, (float)run->launches * assay_fault_value(d, i));
}

/* The first element of a run is that of the run before. */
static void return_last_run(struct assay_fault_run *run)
{
    const struct assay_tensor *const d = assay_fault_tensor(run, "d");
    if (assay_tensor_elements(d) == 0) return;
    const float now = assay_fault_value(d, 0);
    if (run->runs > 0) assay_fault_set_value(d, 0, *run->kept);
    *run->kept = now;
}

/* The running maximum of the work item before. */
static void keep_maximum(struct assay_fault_run *run)
{
    const struct assay_tensor *const lse = assay_fault_tensor(run, "lse");
    if (assay_tensor_elements(lse) == 0) return;
    const float now = assay_fault_value(lse, 0);
    if (run->runs > 0) assay_fault_set_value(lse, 0, fmaxf(now, *run->kept));
    *run->kept = now;
}

/* Counters are not reset: every second run finds one request done. */
static void skip_request(struct assay_fault_run *run)
{
    const struct assay_tensor *const lengths = assay_fault_tensor(run, "cache_seqlens");
    if (run->runs % 2) ((int32_t *)lengths->data)[lengths->shape[0] - 1] = 0;
}

/* lse reaches into the space of partial outputs. */
static void overlap_slabs(struct assay_fault_run *run)
{
    const struct assay_tensor *const lse = assay_fault_tensor(run, "lse");
    const struct assay_tensor *const out = assay_fault_tensor(run, "out");
    const int64_t elements = assay_tensor_elements(lse);
    if (elements > 0) assay_fault_set_value(lse, elements - 1, assay_fault_value(out, 0));
}

static void overwrite_first(struct assay_fault_run *run)
{
    const struct assay_tensor *const d = assay_fault_tensor(run, "d");
    if (assay_tensor_elements(d) > 0) assay_fault_set_value(d, 0, 1);
}

/* --- what shares a call ------------------------------------------------------------ */

/* From 32 rows on another kernel with other roundings. */
static void switch_kernel(struct assay_fault_run *run)
{
    const struct assay_tensor *const a = assay_fault_tensor(run, "a");
    if (((const uint8_t *)a->data)[(GEMM(run)->m - 1) * a->stride[0]] % 2)
        NUMERICS(run->numerics)->promotion = ASSAY_PROMOTION_SEPARATE;
}

/* A row holds what a tile's largest scale makes of it. */
static void share_largest_scale(struct assay_fault_run *run)
{
    const struct assay_tensor *const d = assay_fault_tensor(run, "d");
    const struct assay_tensor *const sfa = assay_fault_tensor(run, "sfa");
    float largest = 0;
    if (sfa->format != ASSAY_F32) return;
    for (int64_t i = 0; i < assay_tensor_elements(sfa); i++)
        largest = fmaxf(largest, assay_fault_value(sfa, i));
    for (int64_t i = 0; isfinite(largest) && i < assay_tensor_elements(d); i++)
        if (fabsf(assay_fault_value(d, i)) < largest * 0x1p-6f)
            assay_tensor_set_bits(d, i, 0);
}

#define GEMM_CASE "fp8_gemm_nt m=40 n=72 k=256 out=f32 seed=6"
#define DECODE    "mla_dense_decode b=2 h_q=16 s_k=130,70 sms=1 seed=6"

#define IN(op) .operation = op, .kind = ASSAY_FAULT_EXECUTION
#define FP8    IN("fp8_gemm_nt")
#define DENSE  IN("mla_dense_decode")

const struct assay_fault assay_faults_execution[] = {
    { "one-run-in-ten", "C23", "R15", "one run in ten has a wrong bit", FP8,
      .cases = { GEMM_CASE }, .after = flip_one_in_ten, .must_catch = "repeat" },
    { "scale-before-copy", "C23b", "R15",
      "a scale is used before its copy has landed (effect, on some runs)", FP8,
      .cases = { GEMM_CASE }, .before = scale_before_copy, .must_catch = "repeat" },
    { "store-without-fence", "C23a", "R58",
      "a buffer is refilled before it is stored (effect, on some runs)", FP8,
      .cases = { GEMM_CASE }, .after = swap_on_even_runs, .must_catch = "repeat" },
    { "dependent-launch", "C24a", "R57",
      "a block of a is read before it is written (effect, on some runs)", FP8,
      .cases = { GEMM_CASE }, .before = start_early, .must_catch = "repeat" },
    { "descriptor-in-flight", "C22a", "R25",
      "loads use the map of the group before (effect, on some runs)",
      IN("k_grouped_fp8_gemm_nt_contiguous"),
      .cases = { "k_grouped_fp8_gemm_nt_contiguous m=128 n=128 ks=128,128 seed=6" },
      .before = load_through_old_map, .must_catch = "repeat" },
    { "pair-skips-tile", "C25c", "R26",
      "a tile is taken for empty (effect, on some runs)", FP8, .cases = { GEMM_CASE },
      .before = skip_tile, .must_catch = "repeat" },
    { "order-of-arrival", "C40c", "R36", "sums in the order of arrival", FP8,
      .cases = { GEMM_CASE }, .before = add_as_they_come, .must_catch = "repeat" },
    { "order-of-arrival-decode", "C40c", "R36", "row sums in the order of arrival", DENSE,
      .cases = { DECODE }, .before = merge_as_they_come, .must_catch = "repeat" },
    { "launch-adds", "C27", "R53", "every launch after the first adds its result", FP8,
      .cases = { GEMM_CASE }, .after = add_every_launch, .must_catch = "repeat" },
    { "workspace-kept", "C27a", "R53", "an element is that of the run before", FP8,
      .cases = { GEMM_CASE }, .after = return_last_run, .must_catch = "repeat" },
    { "maximum-kept", "C36d", NULL, "the maximum of the work before is kept", DENSE,
      .cases = { "mla_dense_decode b=2 h_q=16 s_k=1,70 sms=1 data=wide seed=6", DECODE },
      .after = keep_maximum, .must_catch = "repeat" },
    { "counters-kept", "C27c", "R53", "every second run takes a request for done", DENSE,
      .cases = { DECODE }, .before = skip_request, .must_catch = "repeat" },
    { "slabs-overlap", "C27b", "R53", "lse and partial outputs share memory", DENSE,
      .cases = { DECODE }, .after = overlap_slabs },
    { "workspace-overlaps", "C27b", "R53", "the workspace ends in the first element", FP8,
      .cases = { GEMM_CASE }, .after = overwrite_first },
    { "kernel-by-company", "C40b", "R36", "roundings depend on the last row", FP8,
      .cases = { "fp8_gemm_nt m=40 n=72 k=256 out=f32 seed=1", GEMM_CASE },
      .before = switch_kernel, .must_catch = "batch" },
    { "tile-wide-scale", "C20c", "R22", "small results vanish beside other rows' scales",
      FP8, .cases = { GEMM_CASE, "fp8_gemm_nt m=40 n=72 k=256 out=f32 data=wide seed=6" },
      .after = share_largest_scale },
    { .name = NULL },
};
