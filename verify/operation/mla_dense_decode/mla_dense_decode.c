/* SPDX-License-Identifier: MIT */
/* Descriptor of mla_dense_decode: its keys, what they may be, the tensors they mean. */
#include "verify/operation/mla_dense_decode/mla_dense_decode.h"

#include "ref/kernel/mla_dense_decode.h"
#include "verify/operation/mla/mla_bound.h"
#include "verify/operation/mla/mla_numerics.h"

#include <stdio.h>

enum { MAX_HEADS = 4096, MAX_TOKENS = 4096, MAX_KEYS = 1 << 24, UNUSED_PAGES = 3 };

/* Below it upstream's masked score no longer stays below the first running maximum. */
#define LEAST_SCALE 1e-3

static const struct assay_choice formats[] = { { "bf16", ASSAY_BF16, NULL },
                                               { "f16", ASSAY_F16, NULL },
                                               { NULL, 0, NULL } };
static const struct assay_choice lse_units[] = {
    { "natural", 0, "as the kernel returns it" },
    { "base2", 1, "divided by ln 2" },
    { NULL, 0, NULL },
};

static const struct assay_parameter parameters[] = {
    { .name = "b",
      .meaning = "requests",
      .minimum = 1,
      .maximum = ASSAY_MLA_MAX_REQUESTS,
      .is_required = true },
    { .name = "h_q",
      .meaning = "query heads; a multiple of h_k",
      .minimum = 1,
      .maximum = MAX_HEADS,
      .default_value = 128 },
    { .name = "h_k",
      .meaning = "KV heads",
      .minimum = 1,
      .maximum = MAX_HEADS,
      .default_value = 1 },
    { .name = "s_q",
      .meaning = "query tokens a request",
      .minimum = 1,
      .maximum = MAX_TOKENS,
      .default_value = 1 },
    { .name = "s_k",
      .meaning = "keys of each request; one value serves all",
      .maximum = MAX_KEYS,
      .is_required = true,
      .is_list = true },
    { .name = "causal",
      .meaning = "1: each of the last s_q tokens sees the keys up to its own",
      .maximum = 1 },
    { .name = "pages",
      .meaning = "pages of 64 keys; 0: what is needed and a few more",
      .maximum = MAX_KEYS },
    { .name = "table_columns",
      .meaning = "columns of block_table; 0: what the longest request needs",
      .maximum = MAX_KEYS / ASSAY_MLA_BLOCK },
    { .name = "sms",
      .meaning = "multiprocessors the plan is for",
      .minimum = 1,
      .maximum = MAX_KEYS,
      .default_value = 132 },
    { .name = "plan",
      .meaning = "how requests are split",
      .choices = assay_mla_plan_choices,
      .default_value = ASSAY_MLA_PLAN_SCHEDULER },
    { .name = "format",
      .meaning = "format of q, k_cache and out",
      .choices = formats,
      .default_value = ASSAY_BF16 },
    { .name = "softmax_scale",
      .meaning = "factor of the scores; 0: 576^-0.5",
      .minimum = -1000 * ASSAY_FRACTION_UNIT,
      .maximum = 1000 * ASSAY_FRACTION_UNIT,
      .is_fraction = true },
    { .name = "lse", .meaning = "unit of lse", .choices = lse_units, .default_value = 0 },
    { .name = NULL },
};

static const struct assay_named_numerics numerics[] = {
    { "flashmla-dense", "FlashMLA sm_90 dense decode: seesaw, finite masks",
      &assay_mla_flashmla_dense },
    { "flash", "textbook online softmax in f32, functions rounded to nearest",
      &assay_mla_flash },
    { "naive", "all scores of a row first, in f32, functions rounded to nearest",
      &assay_mla_naive },
    { "flashmla-sparse-decode", "FlashMLA sm_90 sparse decode: one block at a time",
      &assay_mla_flashmla_sparse_decode },
    { "flashmla-sparse-prefill", "FlashMLA sm_90 sparse prefill: seesaw, infinite masks",
      &assay_mla_flashmla_sparse_prefill },
    { NULL, NULL, NULL },
};

static const struct assay_named_numerics *default_numerics(const void *bound)
{
    (void)bound;
    return &numerics[0];
}

static enum assay_status bind_lengths(const struct assay_case *the_case,
                                      struct assay_mla_dense_decode_case *dense,
                                      struct assay_message *message)
{
    int count;
    const int64_t *const given = assay_case_list(the_case, "s_k", &count);
    const int64_t b = dense->problem.b;
    if (count != 1 && count != b)
        return assay_fail(message, ASSAY_REFUSED,
                          "s_k has %d values for b=%lld; give one a request, or one for "
                          "all",
                          count, (long long)b);
    for (int64_t i = 0; i < b; i++)
        dense->s_k[i] = (int32_t)given[count == 1 ? 0 : i];
    return ASSAY_RAN;
}

/* 0 means what is needed and @more beside. */
static enum assay_status bind_room(const struct assay_case *the_case, const char *key,
                                   int64_t needed, int64_t more, int64_t *room,
                                   struct assay_message *message)
{
    const int64_t given = assay_case_value(the_case, key);
    *room = given ? given : needed + more;
    if (*room >= needed) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "%s=%lld has no room for the keys of s_k; use 0 or at least %lld",
                      key, (long long)given, (long long)needed);
}

static enum assay_status bind_cache(const struct assay_case *the_case,
                                    struct assay_mla_dense_decode_case *dense,
                                    struct assay_message *message)
{
    struct assay_mla_dense_decode_problem *const problem = &dense->problem;
    int64_t longest = 1, all = 0;
    for (int64_t i = 0; i < problem->b; i++) {
        const int64_t pages = assay_mla_dense_pages(dense->s_k[i]);
        longest = pages > longest ? pages : longest;
        all += pages;
    }
    /* Recorded requests may share pages. */
    if (the_case->data == ASSAY_DATA_RECORDED) all = 0;
    const enum assay_status status = bind_room(the_case, "table_columns", longest, 0,
                                               &problem->table_columns, message);
    return status == ASSAY_RAN
               ? bind_room(the_case, "pages", all, UNUSED_PAGES, &problem->pages, message)
               : status;
}

static enum assay_status bind_parts(const struct assay_case *the_case,
                                    struct assay_mla_dense_decode_problem *problem,
                                    struct assay_message *message)
{
    const int64_t sms = assay_case_value(the_case, "sms");
    if (problem->h_q % problem->h_k)
        return assay_fail(message, ASSAY_REFUSED,
                          "h_q=%lld is no multiple of h_k=%lld, so that heads cannot "
                          "share KV heads evenly; use a multiple",
                          (long long)problem->h_q, (long long)problem->h_k);
    problem->num_sm_parts =
        assay_mla_dense_parts(sms, problem->s_q, problem->h_q, problem->h_k);
    if (problem->num_sm_parts > ASSAY_MLA_MAX_PARTS)
        return assay_fail(message, ASSAY_REFUSED,
                          "sms=%lld makes %lld parts of the machine, of which upstream's "
                          "combine takes %d at most; use a smaller sms",
                          (long long)sms, (long long)problem->num_sm_parts,
                          ASSAY_MLA_MAX_PARTS);
    return ASSAY_RAN;
}

static enum assay_status check_scale(const struct assay_case *the_case,
                                     const struct assay_mla_dense_decode_problem *problem,
                                     struct assay_message *message)
{
    const double log2_e = 1.4426950408889634;
    if ((double)problem->softmax_scale * log2_e > LEAST_SCALE) return ASSAY_RAN;
    if (the_case->data == ASSAY_DATA_EXACT || the_case->data == ASSAY_DATA_NEEDLE)
        return assay_fail(message, ASSAY_REFUSED,
                          "softmax_scale=%g breaks upstream's masks, so that data=%s "
                          "promises nothing; use one above 0.0007",
                          (double)problem->softmax_scale,
                          assay_data_kinds[the_case->data].name);
    if (the_case->is_unsafe) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "softmax_scale=%g times log2(e) is not above 0.001, where "
                      "upstream's masked score (-1e33) stops working; use a larger one, "
                      "or unsafe=1",
                      (double)problem->softmax_scale);
}

static enum assay_status bind(const struct assay_case *the_case, void *bound,
                              struct assay_message *message)
{
    struct assay_mla_dense_decode_case *const dense = bound;
    *dense = (struct assay_mla_dense_decode_case){
        .problem = {
            .b = assay_case_value(the_case, "b"),
            .s_q = assay_case_value(the_case, "s_q"),
            .h_q = assay_case_value(the_case, "h_q"),
            .h_k = assay_case_value(the_case, "h_k"),
            .format = (enum assay_format)assay_case_value(the_case, "format"),
            .is_causal = assay_case_value(the_case, "causal") != 0,
            .is_base_two = assay_case_value(the_case, "lse") != 0,
            .softmax_scale = assay_mla_softmax_scale(the_case, ASSAY_DENSE_D_QK),
            .is_unsafe = the_case->is_unsafe,
        },
        .plan = (enum assay_mla_plan_choice)assay_case_value(the_case, "plan"),
    };
    enum assay_status status = bind_parts(the_case, &dense->problem, message);
    if (status == ASSAY_RAN) status = bind_lengths(the_case, dense, message);
    if (status == ASSAY_RAN) status = bind_cache(the_case, dense, message);
    if (status == ASSAY_RAN) status = check_scale(the_case, &dense->problem, message);
    if (status == ASSAY_RAN)
        status =
            assay_mla_dense_check_exact(dense, the_case->data, the_case->seed, message);
    return status;
}

static void set_tensor(struct assay_tensors *tensors, int place, const char *name,
                       enum assay_format format, int rank,
                       const int64_t shape[ASSAY_MAX_RANK])
{
    struct assay_tensor *const tensor = &tensors->item[place];
    *tensor = (struct assay_tensor){ .name = name,
                                     .format = format,
                                     .rank = rank,
                                     .is_output = place >= ASSAY_DENSE_OUT };
    for (int i = 0; i < rank; i++)
        tensor->shape[i] = shape[i];
    assay_tensor_set_dense(tensor);
}

#define SHAPE(...) ((const int64_t[ASSAY_MAX_RANK]){ __VA_ARGS__ })

static void shape(const void *bound, struct assay_tensors *tensors)
{
    const struct assay_mla_dense_decode_problem *const problem =
        &((const struct assay_mla_dense_decode_case *)bound)->problem;
    const int64_t b = problem->b, s_q = problem->s_q, h_q = problem->h_q;
    const enum assay_format format = problem->format;
    tensors->count = ASSAY_DENSE_TENSORS;
    set_tensor(tensors, ASSAY_DENSE_Q, "q", format, 4,
               SHAPE(b, s_q, h_q, ASSAY_DENSE_D_QK));
    set_tensor(tensors, ASSAY_DENSE_K_CACHE, "k_cache", format, 4,
               SHAPE(problem->pages, ASSAY_MLA_BLOCK, problem->h_k, ASSAY_DENSE_D_QK));
    set_tensor(tensors, ASSAY_DENSE_BLOCK_TABLE, "block_table", ASSAY_I32, 2,
               SHAPE(b, problem->table_columns));
    set_tensor(tensors, ASSAY_DENSE_CACHE_SEQLENS, "cache_seqlens", ASSAY_I32, 1,
               SHAPE(b));
    set_tensor(tensors, ASSAY_DENSE_METADATA, "tile_scheduler_metadata", ASSAY_I32, 2,
               SHAPE(problem->num_sm_parts, ASSAY_PLAN_FIELDS));
    set_tensor(tensors, ASSAY_DENSE_NUM_SPLITS, "num_splits", ASSAY_I32, 1, SHAPE(b + 1));
    set_tensor(tensors, ASSAY_DENSE_OUT, "out", format, 4,
               SHAPE(b, s_q, h_q, ASSAY_MLA_D_V));
    set_tensor(tensors, ASSAY_DENSE_LSE, "lse", ASSAY_F32, 3, SHAPE(b, h_q, s_q));
}

static int64_t parts(const void *bound)
{
    return assay_mla_dense_decode_parts(bound);
}

static void region(const void *bound, int64_t part, int output,
                   struct assay_region *region)
{
    const struct assay_mla_dense_decode_problem *const problem = bound;
    const int64_t request = part / problem->h_k, group = problem->h_q / problem->h_k;
    const int64_t head = part % problem->h_k * group;
    if (output == ASSAY_DENSE_OUT)
        *region =
            (struct assay_region){ .start = { request, 0, head, 0 },
                                   .count = { 1, problem->s_q, group, ASSAY_MLA_D_V } };
    else
        *region = (struct assay_region){ .start = { request, head, 0 },
                                         .count = { 1, group, problem->s_q } };
}

static enum assay_status model(const void *bound, const void *given,
                               const struct assay_tensors *tensors, int64_t part)
{
    return assay_mla_dense_decode_model(bound, given, tensors, part)
               ? ASSAY_RAN
               : ASSAY_OUT_OF_MEMORY;
}

static void place(const void *bound, int output, int64_t element,
                  struct assay_place *where)
{
    const struct assay_mla_dense_decode_problem *const problem = bound;
    const long long s_q = problem->s_q, h_q = problem->h_q;
    if (output == ASSAY_DENSE_LSE) {
        snprintf(where->text, sizeof(where->text), "request %lld, head %lld, token %lld",
                 (long long)element / s_q / h_q, (long long)element / s_q % h_q,
                 (long long)element % s_q);
        return;
    }
    const bool is_right = element % ASSAY_MLA_D_V >= ASSAY_MLA_D_V / 2;
    const long long row = element / ASSAY_MLA_D_V;
    snprintf(where->text, sizeof(where->text),
             "request %lld, head %lld, token %lld, columns %s", row / h_q / s_q,
             row % h_q, row / h_q % s_q, is_right ? "256-511" : "0-255");
}

static struct assay_cost cost(const void *bound)
{
    const struct assay_mla_dense_decode_case *const dense = bound;
    const struct assay_mla_dense_decode_problem *const problem = &dense->problem;
    const double rows = (double)(problem->s_q * problem->h_q);
    double keys = 0;
    for (int64_t i = 0; i < problem->b; i++)
        keys += dense->s_k[i];
    const double wide = ASSAY_DENSE_D_QK + ASSAY_MLA_D_V;
    return (struct assay_cost){
        .multiply_adds = rows * keys * wide,
        .bytes = 2 * (keys * (double)problem->h_k * ASSAY_DENSE_D_QK +
                      (double)problem->b * rows * wide),
    };
}

static const char *remark(const void *bound, const void *given)
{
    (void)given;
    const struct assay_mla_dense_decode_problem *const problem = bound;
    return problem->format == ASSAY_F16
               ? "unrecorded: no f16 output of this kernel exists"
               : NULL;
}

static bool is_constant_by_design(const void *bound)
{
    const struct assay_mla_dense_decode_case *const dense = bound;
    for (int64_t i = 0; i < dense->problem.b; i++)
        if (dense->s_k[i] > 0) return false;
    return true;
}

static bool is_exact(const void *bound, enum assay_data_kind kind, int output)
{
    (void)bound;
    return output == ASSAY_DENSE_OUT &&
           (kind == ASSAY_DATA_EXACT || kind == ASSAY_DATA_NEEDLE);
}

const struct assay_operation assay_mla_dense_decode = {
    .name = "mla_dense_decode",
    .summary = "attention to all keys of a request, in pages (FlashMLA dense decode)",
    .parameters = parameters,
    .numerics = numerics,
    .knobs = assay_mla_knobs,
    .problem_bytes = sizeof(struct assay_mla_dense_decode_case),
    .numerics_bytes = sizeof(struct assay_mla_numerics),
    .data_kinds = (UINT32_C(1) << (ASSAY_DATA_NEEDLE + 1)) - 1,
    .bind = bind,
    .default_numerics = default_numerics,
    .check_numerics = assay_mla_check_numerics,
    .shape = shape,
    .fill = assay_mla_dense_decode_fill,
    .check_inputs = assay_mla_dense_decode_check_inputs,
    .draw = assay_mla_dense_decode_draw,
    .parts = parts,
    .region = region,
    .model = model,
    .oracle = assay_mla_dense_decode_expect,
    .place = place,
    .cost = cost,
    .is_measured = assay_mla_is_measured,
    .remark = remark,
    .is_constant_by_design = is_constant_by_design,
    .is_exact = is_exact,
};
