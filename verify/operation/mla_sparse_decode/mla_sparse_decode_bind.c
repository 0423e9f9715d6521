/* SPDX-License-Identifier: MIT */
/* From a case of mla_sparse_decode to its problem, and what is refused on the way. */
#include "verify/operation/mla_sparse_decode/mla_sparse_decode.h"

#include <string.h>

enum {
    SPARE_PAGES = 3,
    ALIGNMENT = 16,           /* bytes; what kernels load at once */
    MAX_EXACT_KEYS = 1 << 16, /* times 60, the largest value, still exact in f32 */
};

static bool is_attended_exactly(enum assay_data_kind kind)
{
    return kind == ASSAY_DATA_EXACT || kind == ASSAY_DATA_NEEDLE;
}

/* Reads a list of one length a request into @task, and refuses what does not fit. */
static enum assay_status bind_lengths(const struct assay_case *the_case, const char *key,
                                      int64_t topk, struct assay_mla_lengths *lengths,
                                      struct assay_mla_sparse_decode_task *task,
                                      struct assay_message *message)
{
    const int64_t *const given = assay_case_list(the_case, key, &lengths->count);
    const int64_t b = task->problem.b;
    if (lengths->count > 1 && lengths->count != b)
        return assay_fail(message, ASSAY_REFUSED,
                          "%s has %d values for b=%lld; give one for all requests or one "
                          "each",
                          key, lengths->count, (long long)b);
    for (int i = 0; i < lengths->count; i++) {
        if (given[i] > topk)
            return assay_fail(message, ASSAY_REFUSED,
                              "%s asks for %lld indices of request %d, which has %lld; "
                              "use that at most",
                              key, (long long)given[i], i, (long long)topk);
        task->length[lengths->first + i] = (int32_t)given[i];
    }
    return ASSAY_RAN;
}

/* Pages and strides of a cache whose format, page size and topk are set. */
static enum assay_status bind_pages(const struct assay_case *the_case, const char *key,
                                    int64_t s_kv, int64_t b,
                                    struct assay_mla_cache *cache,
                                    struct assay_message *message)
{
    const int64_t tokens = b * s_kv;
    const int64_t needed = (tokens + cache->page_size - 1) / cache->page_size;
    const int64_t given = assay_case_value(the_case, key);
    const int64_t bytes =
        cache->page_size * assay_mla_token_layouts[cache->kv].token_bytes;
    cache->pages = given ? given : needed + SPARE_PAGES;
    cache->page_stride = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT +
                         assay_case_value(the_case, "page_padding");
    if (cache->pages > INT32_MAX / cache->page_size)
        return assay_fail(message, ASSAY_REFUSED,
                          "a cache of %lld pages of %lld tokens has slots beyond the "
                          "32-bit indices; use fewer",
                          (long long)cache->pages, (long long)cache->page_size);
    if (given && given < needed && the_case->data != ASSAY_DATA_RECORDED)
        return assay_fail(
            message, ASSAY_REFUSED,
            "%s=%lld is too small for %lld tokens of %lld requests; use %lld "
            "or more, or 0",
            key, (long long)given, (long long)s_kv, (long long)b, (long long)needed);
    return ASSAY_RAN;
}

static enum assay_status bind_main(const struct assay_case *the_case,
                                   struct assay_mla_sparse_decode_task *task,
                                   struct assay_message *message)
{
    struct assay_mla_cache *const cache = &task->problem.cache;
    *cache = (struct assay_mla_cache){
        .kv = (enum assay_mla_kv)assay_case_value(the_case, "kv"),
        .page_size = assay_case_value(the_case, "page_size"),
        .topk = assay_case_value(the_case, "topk"),
    };
    const int64_t s_kv = assay_case_value(the_case, "s_kv");
    task->main.s_kv = s_kv ? s_kv : cache->topk;
    if (cache->topk % ASSAY_MLA_BLOCK)
        return assay_fail(
            message, ASSAY_REFUSED,
            "topk=%lld is no multiple of 64, which upstream's kernels abort "
            "on; use a multiple of 64",
            (long long)cache->topk);
    const enum assay_status status = bind_lengths(the_case, "topk_length", cache->topk,
                                                  &task->main.lengths, task, message);
    if (status != ASSAY_RAN) return status;
    cache->has_topk_length = task->main.lengths.count > 0;
    return bind_pages(the_case, "pages", task->main.s_kv, task->problem.b, cache,
                      message);
}

/* Keys that mean nothing without an extra cache. */
static enum assay_status refuse_orphans(const struct assay_case *the_case,
                                        struct assay_message *message)
{
    static const char *const keys[] = { "extra_s_kv", "extra_page_size", "extra_pages" };
    const char *orphan = NULL;
    int lengths;
    for (int i = 0; i < 3; i++)
        if (assay_case_value(the_case, keys[i])) orphan = keys[i];
    if (assay_case_value(the_case, "extra_kv") != ASSAY_MLA_EXTRA_SAME)
        orphan = "extra_kv";
    assay_case_list(the_case, "extra_topk_length", &lengths);
    if (lengths) orphan = "extra_topk_length";
    if (!orphan) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "%s speaks of an extra cache, but there is none; give extra_topk",
                      orphan);
}

static enum assay_status
check_extra(const struct assay_case *the_case,
            const struct assay_mla_sparse_decode_problem *problem,
            struct assay_message *message)
{
    const enum assay_mla_kv kv = problem->cache.kv, extra = problem->extra.kv;
    const bool is_fp4_beside = kv == ASSAY_MLA_V41_FP8 && extra == ASSAY_MLA_V41_FP4;
    if (kv == ASSAY_MLA_V32)
        return assay_fail(message, ASSAY_REFUSED,
                          "extra_topk needs a second cache, which kv=v32 does not have; "
                          "use kv=model1 or v41");
    if (extra != kv && !is_fp4_beside)
        return assay_fail(message, ASSAY_REFUSED,
                          "extra_kv differs from kv, which only v41_fp4 beside kv=v41 "
                          "may; leave it out");
    if (problem->extra.topk % ASSAY_MLA_BLOCK && !the_case->is_unsafe)
        return assay_fail(message, ASSAY_REFUSED,
                          "extra_topk=%lld is no multiple of 64, so that a kernel would "
                          "read beyond the indices; use a multiple of 64, or unsafe=1",
                          (long long)problem->extra.topk);
    return ASSAY_RAN;
}

static enum assay_status bind_extra(const struct assay_case *the_case,
                                    struct assay_mla_sparse_decode_task *task,
                                    struct assay_message *message)
{
    struct assay_mla_cache *const extra = &task->problem.extra;
    const int64_t kv = assay_case_value(the_case, "extra_kv");
    const int64_t s_kv = assay_case_value(the_case, "extra_s_kv");
    const int64_t page_size = assay_case_value(the_case, "extra_page_size");
    *extra = (struct assay_mla_cache){
        .kv = kv == ASSAY_MLA_EXTRA_SAME ? task->problem.cache.kv : (enum assay_mla_kv)kv,
        .page_size = page_size ? page_size : task->problem.cache.page_size,
        .topk = assay_case_value(the_case, "extra_topk"),
    };
    if (extra->topk == 0) return refuse_orphans(the_case, message);
    task->extra.s_kv = s_kv ? s_kv : extra->topk;
    task->extra.lengths.first = task->main.lengths.count;
    enum assay_status status = check_extra(the_case, &task->problem, message);
    if (status == ASSAY_RAN)
        status = bind_lengths(the_case, "extra_topk_length", extra->topk,
                              &task->extra.lengths, task, message);
    if (status != ASSAY_RAN) return status;
    extra->has_topk_length = task->extra.lengths.count > 0;
    return bind_pages(the_case, "extra_pages", task->extra.s_kv, task->problem.b, extra,
                      message);
}

/* Outputs that are to be exact need exact keys, and sums and means without rounding. */
static enum assay_status refuse_inexact(const struct assay_case *the_case,
                                        const struct assay_mla_sparse_decode_task *task,
                                        struct assay_message *message)
{
    const char *const kind = assay_data_kinds[the_case->data].name;
    const int64_t keys = task->problem.cache.topk + task->problem.extra.topk;
    if (!is_attended_exactly(the_case->data)) return ASSAY_RAN;
    if (task->has_any_scales)
        return assay_fail(message, ASSAY_REFUSED,
                          "data=%s needs scales that no kernel rounds; use "
                          "scales=power_of_two",
                          kind);
    if (the_case->data == ASSAY_DATA_NEEDLE) return ASSAY_RAN;
    if (task->plan != ASSAY_MLA_PLAN_WHOLE)
        return assay_fail(message, ASSAY_REFUSED,
                          "data=exact needs a power of two of keys in every split; use "
                          "plan=whole");
    if (keys > MAX_EXACT_KEYS)
        return assay_fail(message, ASSAY_REFUSED,
                          "data=exact cannot promise exact sums of %lld keys; use %d at "
                          "most",
                          (long long)keys, MAX_EXACT_KEYS);
    return ASSAY_RAN;
}

/* What upstream does not check but needs, or aborts on. */
static enum assay_status refuse_illegal(const struct assay_case *the_case,
                                        const struct assay_mla_sparse_decode_task *task,
                                        struct assay_message *message)
{
    const struct assay_mla_sparse_decode_problem *const p = &task->problem;
    const int64_t slots = p->b + p->num_sm_parts;
    if (p->cache.kv == ASSAY_MLA_V32 && p->cache.has_topk_length)
        return assay_fail(message, ASSAY_REFUSED,
                          "topk_length is given, which kernels for kv=v32 do not take; "
                          "use kv=model1 or v41, or -1 for the indices");
    if (p->cache.kv != ASSAY_MLA_V32 && task->has_any_scales)
        return assay_fail(message, ASSAY_REFUSED,
                          "scales=any needs f32 scales, which only kv=v32 has; use "
                          "scales=power_of_two");
    if (p->num_sm_parts > ASSAY_MLA_MAX_PARTS)
        return assay_fail(
            message, ASSAY_REFUSED,
            "sms=%lld gives %lld parts, and upstream's combine takes %d; use "
            "fewer multiprocessors",
            (long long)assay_case_value(the_case, "sms"), (long long)p->num_sm_parts,
            ASSAY_MLA_MAX_PARTS);
    if (assay_case_value(the_case, "page_padding") % ALIGNMENT && !the_case->is_unsafe)
        return assay_fail(message, ASSAY_REFUSED,
                          "page_padding=%lld is no multiple of 16, so that tokens would "
                          "not be aligned; use a multiple of 16, or unsafe=1",
                          (long long)assay_case_value(the_case, "page_padding"));
    if (slots * p->s_q * p->h_q > INT32_MAX / ASSAY_MLA_D_V && !the_case->is_unsafe)
        return assay_fail(message, ASSAY_REFUSED,
                          "b, s_q and h_q give partial outputs beyond upstream's 32-bit "
                          "offsets; use fewer, or unsafe=1");
    return ASSAY_RAN;
}

enum assay_status assay_mla_sparse_decode_bind(const struct assay_case *the_case,
                                               void *bound, struct assay_message *message)
{
    struct assay_mla_sparse_decode_task *const task = bound;
    memset(task, 0, sizeof(*task));
    struct assay_mla_sparse_decode_problem *const problem = &task->problem;
    problem->b = assay_case_value(the_case, "b");
    problem->s_q = assay_case_value(the_case, "s_q");
    problem->h_q = assay_case_value(the_case, "h_q");
    problem->has_sink = assay_case_value(the_case, "sink");
    problem->has_ignored_tables = assay_case_value(the_case, "tables");
    problem->is_base_two = assay_case_value(the_case, "lse");
    problem->is_unsafe = the_case->is_unsafe;
    problem->num_sm_parts = assay_mla_sparse_parts(assay_case_value(the_case, "sms"),
                                                   problem->s_q, problem->h_q);
    task->plan = (enum assay_mla_plan_choice)assay_case_value(the_case, "plan");
    task->invalid = assay_case_value(the_case, "invalid");
    task->has_any_scales = assay_case_value(the_case, "scales");
    task->pattern = (enum assay_mla_index_pattern)assay_case_value(the_case, "indices");
    enum assay_status status = bind_main(the_case, task, message);
    if (status == ASSAY_RAN) status = bind_extra(the_case, task, message);
    if (status == ASSAY_RAN) status = refuse_illegal(the_case, task, message);
    if (status == ASSAY_RAN) status = refuse_inexact(the_case, task, message);
    if (status == ASSAY_RAN)
        status = assay_mla_check_pattern(the_case, task->pattern, message);
    problem->softmax_scale =
        assay_mla_softmax_scale(the_case, assay_mla_d_qk(problem->cache.kv));
    return status;
}
