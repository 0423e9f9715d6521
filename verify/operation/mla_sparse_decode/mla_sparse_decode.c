/* SPDX-License-Identifier: MIT */
/* Descriptor of mla_sparse_decode: its keys, the tensors they mean, and what model and
 * oracle are called for. */
#include "verify/operation/mla_sparse_decode/mla_sparse_decode.h"

#include "ref/kernel/mla_sparse_decode.h"
#include "verify/operation/mla/mla_bound.h"
#include "verify/operation/mla/mla_narrow.h"
#include "verify/operation/mla/mla_numerics.h"
#include "verify/operation/mla/mla_settle.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_TOKENS = 1 << 24,
    MAX_TOPK = 1 << 20,
    MAX_QUERY_TOKENS = 1 << 16,
    MAX_MULTIPROCESSORS = 1 << 16,
    HALF = ASSAY_MLA_D_V / 2,
};

const struct assay_choice assay_mla_sparse_decode_kvs[] = {
    { "v32", ASSAY_MLA_V32,
      "656 bytes a token: e4m3, 4 f32 scales, bf16 RoPE; d_qk 576" },
    { "model1", ASSAY_MLA_MODEL1,
      "584 bytes a token: e4m3, ue8m0 scales, bf16 RoPE; d_qk 512" },
    { "v41", ASSAY_MLA_V41_FP8, "528 bytes a token: e4m3, 16 ue8m0 scales; d_qk 512" },
    { NULL, 0, NULL },
};
static const struct assay_choice extra_kvs[] = {
    { "same", ASSAY_MLA_EXTRA_SAME, "as the main cache's" },
    { "model1", ASSAY_MLA_MODEL1, NULL },
    { "v41", ASSAY_MLA_V41_FP8, NULL },
    { "v41_fp4", ASSAY_MLA_V41_FP4,
      "288 bytes a token: e2m1, 32 e4m3 scales; beside kv=v41" },
    { NULL, 0, NULL },
};
static const struct assay_choice heads[] = { { "64", 64, NULL },
                                             { "128", 128, NULL },
                                             { NULL, 0, NULL } };
static const struct assay_choice scales[] = {
    { "power_of_two", 0, "as upstream's quantiser makes them" },
    { "any", 1, "v32: with all mantissa bits, which kernels round" },
    { NULL, 0, NULL },
};
static const struct assay_choice lse_units[] = { { "natural", 0, NULL },
                                                 { "base2", 1, "in units of log 2" },
                                                 { NULL, 0, NULL } };

static const struct assay_parameter parameters[] = {
    { .name = "kv",
      .meaning = "format of the cache",
      .choices = assay_mla_sparse_decode_kvs,
      .is_required = true },
    { .name = "b",
      .meaning = "requests",
      .minimum = 1,
      .maximum = ASSAY_MLA_MAX_REQUESTS,
      .is_required = true },
    { .name = "h_q", .meaning = "query heads", .choices = heads, .default_value = 128 },
    { .name = "s_q",
      .meaning = "query tokens a request",
      .minimum = 1,
      .maximum = MAX_QUERY_TOKENS,
      .default_value = 1 },
    { .name = "topk",
      .meaning = "indices a query token; a multiple of 64",
      .minimum = 1,
      .maximum = MAX_TOPK,
      .is_required = true },
    { .name = "invalid",
      .meaning = "share of indices that are -1",
      .maximum = ASSAY_FRACTION_UNIT,
      .is_fraction = true },
    { .name = "s_kv",
      .meaning = "tokens a request owns; 0: topk",
      .maximum = MAX_TOKENS },
    { .name = "page_size",
      .meaning = "tokens a page",
      .minimum = 1,
      .maximum = MAX_TOKENS,
      .default_value = 64 },
    { .name = "pages",
      .meaning = "pages of the cache; 0: those needed and three more",
      .maximum = MAX_TOKENS },
    { .name = "page_padding",
      .meaning = "bytes behind a page, which is itself padded to 16; a multiple of 16",
      .maximum = MAX_TOKENS },
    { .name = "topk_length",
      .meaning = "indices of each request that count; one value serves all; not v32",
      .maximum = MAX_TOPK,
      .is_list = true },
    { .name = "extra_kv",
      .meaning = "format of the extra cache",
      .choices = extra_kvs,
      .default_value = ASSAY_MLA_EXTRA_SAME },
    { .name = "extra_topk",
      .meaning = "indices into the extra cache; 0: there is none; a multiple of 64",
      .maximum = MAX_TOPK },
    { .name = "extra_s_kv",
      .meaning = "tokens a request owns there; 0: extra_topk",
      .maximum = MAX_TOKENS },
    { .name = "extra_page_size",
      .meaning = "tokens a page there; 0: page_size",
      .maximum = MAX_TOKENS },
    { .name = "extra_pages",
      .meaning = "pages there; 0: those needed and three more",
      .maximum = MAX_TOKENS },
    { .name = "extra_topk_length",
      .meaning = "extra indices of each request that count; one value serves all",
      .maximum = MAX_TOPK,
      .is_list = true },
    { .name = "sink", .meaning = "1: attn_sink exists", .maximum = 1 },
    { .name = "tables",
      .meaning = "1: block_table and cache_seqlens exist, full of garbage",
      .maximum = 1 },
    { .name = "sms",
      .meaning = "multiprocessors of the machine that the plan is for",
      .minimum = 1,
      .maximum = MAX_MULTIPROCESSORS,
      .default_value = 132 },
    { .name = "plan",
      .meaning = "how requests are split",
      .choices = assay_mla_plan_choices,
      .default_value = ASSAY_MLA_PLAN_SCHEDULER },
    { .name = "scales", .meaning = "scales of v32 tokens", .choices = scales },
    { .name = "softmax_scale",
      .meaning = "factor of the scores; 0: d_qk^-0.5",
      .maximum = 1000 * ASSAY_FRACTION_UNIT,
      .is_fraction = true },
    { .name = "lse", .meaning = "unit of lse", .choices = lse_units },
    { .name = "indices",
      .meaning = "which tokens lists name",
      .choices = assay_mla_index_patterns },
    { .name = NULL },
};

static const struct assay_named_numerics numerics_table[] = {
    { "flashmla-sparse-decode", "FlashMLA sm_90: blocks of 64 keys in one chain",
      &assay_mla_flashmla_sparse_decode },
    { "flash", "online softmax in f32, a key after the other", &assay_mla_flash },
    { "naive", "all scores first, then softmax and values in f32", &assay_mla_naive },
    { NULL, NULL, NULL },
};

static const struct assay_named_numerics *default_numerics(const void *task)
{
    (void)task;
    return &numerics_table[0];
}

static const struct assay_mla_sparse_decode_problem *problem_of(const void *task)
{
    return &((const struct assay_mla_sparse_decode_task *)task)->problem;
}

struct assay_mla_plan_problem
assay_mla_sparse_decode_plan(const struct assay_mla_sparse_decode_problem *problem)
{
    return (struct assay_mla_plan_problem){
        .b = problem->b,
        .num_sm_parts = problem->num_sm_parts,
        .overhead = 5, /* blocks; upstream's for sm_90 */
        .is_sparse = true,
        .topk = problem->cache.topk,
        .extra_topk = problem->extra.topk,
        .has_topk_length = problem->cache.has_topk_length,
        .has_extra_topk_length = problem->extra.has_topk_length,
    };
}

int64_t assay_mla_task_length(const struct assay_mla_sparse_decode_task *task,
                              const struct assay_mla_cache *cache, int64_t request)
{
    const struct assay_mla_lengths *const lengths =
        cache == &task->problem.extra ? &task->extra.lengths : &task->main.lengths;
    if (lengths->count == 0) return cache->topk;
    return task->length[lengths->first + (lengths->count == 1 ? 0 : request)];
}

static void add(struct assay_tensors *tensors, const char *name, enum assay_format format,
                int rank, const int64_t *shape)
{
    assert(tensors->count < ASSAY_MAX_TENSORS);
    struct assay_tensor *const tensor = &tensors->item[tensors->count++];
    *tensor = (struct assay_tensor){ .name = name, .format = format, .rank = rank };
    memcpy(tensor->shape, shape, (size_t)rank * sizeof(*shape));
    assay_tensor_set_dense(tensor);
}

/* A row is a page; what lies behind it up to the next is row padding. */
static void add_cache(struct assay_tensors *tensors, const char *name,
                      const struct assay_mla_cache *cache)
{
    const int64_t bytes =
        cache->page_size * assay_mla_token_layouts[cache->kv].token_bytes;
    add(tensors, name, ASSAY_U8, 2, (const int64_t[]){ cache->pages, bytes });
    tensors->item[tensors->count - 1].stride[0] = cache->page_stride;
}

static void shape(const void *task, struct assay_tensors *tensors)
{
    const struct assay_mla_sparse_decode_problem *const p = problem_of(task);
    tensors->count = 0;
    add(tensors, "q", ASSAY_BF16, 4,
        (const int64_t[]){ p->b, p->s_q, p->h_q, assay_mla_d_qk(p->cache.kv) });
    add_cache(tensors, "k_cache", &p->cache);
    add(tensors, "indices", ASSAY_I32, 3,
        (const int64_t[]){ p->b, p->s_q, p->cache.topk });
    if (p->cache.has_topk_length) add(tensors, "topk_length", ASSAY_I32, 1, &p->b);
    if (p->has_sink) add(tensors, "attn_sink", ASSAY_F32, 1, &p->h_q);
    if (p->extra.topk) {
        add_cache(tensors, "extra_k_cache", &p->extra);
        add(tensors, "extra_indices_in_kvcache", ASSAY_I32, 3,
            (const int64_t[]){ p->b, p->s_q, p->extra.topk });
        if (p->extra.has_topk_length)
            add(tensors, "extra_topk_length", ASSAY_I32, 1, &p->b);
    }
    add(tensors, "tile_scheduler_metadata", ASSAY_I32, 2,
        (const int64_t[]){ p->num_sm_parts, ASSAY_PLAN_FIELDS });
    add(tensors, "num_splits", ASSAY_I32, 1, (const int64_t[]){ p->b + 1 });
    if (p->has_ignored_tables) {
        add(tensors, "block_table", ASSAY_I32, 2, (const int64_t[]){ p->b, 1 });
        add(tensors, "cache_seqlens", ASSAY_I32, 1, &p->b);
    }
    add(tensors, "out", ASSAY_BF16, 4,
        (const int64_t[]){ p->b, p->s_q, p->h_q, ASSAY_MLA_D_V });
    add(tensors, "lse", ASSAY_F32, 3, (const int64_t[]){ p->b, p->h_q, p->s_q });
    for (int i = tensors->count - 2; i < tensors->count; i++)
        tensors->item[i].is_output = true;
}

/* The outputs are the last two tensors. */
static bool is_out(const void *task, int output)
{
    struct assay_tensors tensors;
    shape(task, &tensors);
    return output == tensors.count - 2;
}

static int64_t parts(const void *task)
{
    return assay_mla_sparse_decode_parts(problem_of(task));
}

static void region(const void *task, int64_t part, int output,
                   struct assay_region *region)
{
    const struct assay_mla_sparse_decode_problem *const problem = problem_of(task);
    const int64_t tiles = assay_mla_head_tiles(problem->h_q);
    const int64_t row = part / tiles, head = part % tiles * ASSAY_MLA_ROWS;
    const int64_t count = assay_mla_tile_heads(problem->h_q, head);
    const int64_t request = row / problem->s_q, token = row % problem->s_q;
    if (is_out(task, output))
        *region = (struct assay_region){ .start = { request, token, head, 0 },
                                         .count = { 1, 1, count, ASSAY_MLA_D_V } };
    else
        *region = (struct assay_region){ .start = { request, head, token },
                                         .count = { 1, count, 1 } };
}

static enum assay_status model(const void *task, const void *numerics,
                               const struct assay_tensors *tensors, int64_t part)
{
    return assay_mla_sparse_decode_model(problem_of(task), numerics, tensors, part)
               ? ASSAY_RAN
               : ASSAY_OUT_OF_MEMORY;
}

/* One head of each token. */
static bool narrow(const void *task, const struct assay_tensors *tensors, void *narrowed,
                   struct assay_tensors *windows)
{
    struct assay_mla_sparse_decode_task *const few = narrowed;
    *few = *(const struct assay_mla_sparse_decode_task *)task;
    assay_mla_narrow_heads(assay_mla_decode_heads, few->problem.h_q, tensors, windows);
    few->problem.h_q = 1;
    return true;
}

static void settle(const void *task, void *numerics)
{
    const struct assay_mla_occasions occasions = {
        .format = ASSAY_BF16,
        .has_sink = problem_of(task)->has_sink,
        .has_cached_scales = true,
        .has_splits = true,
    };
    assay_mla_settle(&occasions, numerics);
}

static enum assay_status oracle(const void *task, const void *numerics,
                                const struct assay_tensors *tensors, int64_t part,
                                const struct assay_expected *expected)
{
    const struct assay_mla_sparse_decode_problem *const problem = problem_of(task);
    const struct assay_mla_plan_problem plan = assay_mla_sparse_decode_plan(problem);
    const enum assay_status status =
        assay_mla_sparse_decode_expect(problem, numerics, tensors, part, expected);
    if (status == ASSAY_RAN && problem->is_unsafe)
        assay_mla_disclaim_faulty_plan(&plan, &assay_mla_sparse_decode, task, tensors,
                                       part, expected);
    return status;
}

static void place(const void *task, int output, int64_t element,
                  struct assay_place *where)
{
    const struct assay_mla_sparse_decode_problem *const problem = problem_of(task);
    const int64_t h_q = problem->h_q, s_q = problem->s_q;
    if (is_out(task, output)) {
        const int64_t row = element / ASSAY_MLA_D_V;
        const int64_t first = element % ASSAY_MLA_D_V / HALF * HALF;
        snprintf(where->text, sizeof(where->text),
                 "request %lld, token %lld, head %lld, columns %lld-%lld",
                 (long long)(row / h_q / s_q), (long long)(row / h_q % s_q),
                 (long long)(row % h_q), (long long)first, (long long)(first + HALF - 1));
    } else
        snprintf(where->text, sizeof(where->text), "request %lld, token %lld, head %lld",
                 (long long)(element / s_q / h_q), (long long)(element % s_q),
                 (long long)(element / s_q % h_q));
}

/* Bytes of the tokens that a request's lists name, as many as are to be expected. */
static double named_bytes(const struct assay_mla_cache *cache, int64_t s_kv, int64_t s_q)
{
    const double all = (double)s_kv, topk = (double)cache->topk;
    const double left_out = topk < all ? pow(1 - topk / all, (double)s_q) : 0;
    return all * (1 - left_out) * (double)assay_mla_token_layouts[cache->kv].token_bytes;
}

/* As upstream counts: every position, attended or not; a request's tokens once. */
static struct assay_cost cost(const void *bound)
{
    const struct assay_mla_sparse_decode_task *const task = bound;
    const struct assay_mla_sparse_decode_problem *const p = &task->problem;
    const double rows = (double)(p->b * p->s_q * p->h_q);
    const double keys = (double)(p->cache.topk + p->extra.topk);
    const double d_qk = (double)assay_mla_d_qk(p->cache.kv), d_v = ASSAY_MLA_D_V;
    double cached = named_bytes(&p->cache, task->main.s_kv, p->s_q);
    if (p->extra.topk) cached += named_bytes(&p->extra, task->extra.s_kv, p->s_q);
    return (struct assay_cost){ .multiply_adds = rows * keys * (d_qk + d_v),
                                .bytes =
                                    (double)p->b * cached + 2 * rows * (d_qk + d_v) };
}

static const char *remark(const void *task, const void *numerics)
{
    (void)numerics;
    return problem_of(task)->cache.kv == ASSAY_MLA_V41_FP8
               ? "ours: no upstream sm_90 kernel"
               : NULL;
}

static bool has_no_keys(const struct assay_mla_sparse_decode_task *task,
                        const struct assay_mla_cache *cache)
{
    for (int64_t request = 0; request < task->problem.b; request++)
        if (assay_mla_task_length(task, cache, request) > 0) return false;
    return true;
}

static bool is_constant_by_design(const void *bound)
{
    const struct assay_mla_sparse_decode_task *const task = bound;
    return task->invalid == ASSAY_FRACTION_UNIT ||
           (has_no_keys(task, &task->problem.cache) &&
            has_no_keys(task, &task->problem.extra));
}

static bool is_exact(const void *task, enum assay_data_kind kind, int output)
{
    return (kind == ASSAY_DATA_EXACT || kind == ASSAY_DATA_NEEDLE) &&
           is_out(task, output);
}

const struct assay_operation assay_mla_sparse_decode = {
    .name = "mla_sparse_decode",
    .summary = "attention to the cached FP8 tokens that each query token names",
    .parameters = parameters,
    .numerics = numerics_table,
    .knobs = assay_mla_knobs,
    .properties = assay_mla_sparse_decode_properties,
    .features = assay_mla_sparse_decode_features,
    .problem_bytes = sizeof(struct assay_mla_sparse_decode_task),
    .numerics_bytes = sizeof(struct assay_mla_numerics),
    .data_kinds = ASSAY_MLA_SPARSE_DECODE_KINDS,
    .bind = assay_mla_sparse_decode_bind,
    .default_numerics = default_numerics,
    .check_numerics = assay_mla_check_numerics,
    .shape = shape,
    .fill = assay_mla_sparse_decode_fill,
    .check_inputs = assay_mla_sparse_decode_check,
    .parts = parts,
    .region = region,
    .used = assay_mla_sparse_decode_used,
    .model = model,
    .narrow = narrow,
    .settle = settle,
    .oracle = oracle,
    .place = place,
    .cost = cost,
    .is_measured = assay_mla_is_measured,
    .remark = remark,
    .is_constant_by_design = is_constant_by_design,
    .is_exact = is_exact,
};
