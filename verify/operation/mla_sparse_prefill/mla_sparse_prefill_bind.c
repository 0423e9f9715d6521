/* SPDX-License-Identifier: MIT */
/* Keys of mla_sparse_prefill and what they may be. */
#include "verify/operation/mla_sparse_prefill/mla_sparse_prefill.h"

enum { MAX_TOKENS = 1 << 20, MAX_KEYS = 1 << 24, STRIDE_UNIT = 8, TOPK_UNIT = 128 };

static const struct assay_choice heads[] = { { "64", 64, NULL },
                                             { "128", 128, NULL },
                                             { NULL, 0, NULL } };
static const struct assay_choice widths[] = { { "512", 512, NULL },
                                              { "576", 576, NULL },
                                              { NULL, 0, NULL } };
static const struct assay_choice lse_units[] = {
    { "natural", 0, "as the kernel returns them" },
    { "base2", 1, "divided by ln 2" },
    { NULL, 0, NULL },
};

const struct assay_parameter assay_mla_sparse_prefill_parameters[] = {
    { .name = "s_q",
      .meaning = "query tokens",
      .minimum = 1,
      .maximum = MAX_TOKENS,
      .is_required = true },
    { .name = "h_q", .meaning = "query heads", .choices = heads, .default_value = 128 },
    { .name = "s_kv",
      .meaning = "keys",
      .minimum = 1,
      .maximum = MAX_KEYS,
      .is_required = true },
    { .name = "d_qk",
      .meaning = "elements of a key, of which 512 are its value",
      .choices = widths,
      .default_value = ASSAY_MLA_MAX_D_QK },
    { .name = "topk",
      .meaning = "indices a query token; a multiple of 128",
      .minimum = 1,
      .maximum = MAX_KEYS,
      .is_required = true },
    { .name = "invalid",
      .meaning = "share of the indices that no key has",
      .maximum = ASSAY_FRACTION_UNIT,
      .is_fraction = true },
    { .name = "topk_length",
      .meaning = "indices of each query token that count; one value serves all; left "
                 "out: no such tensor",
      .maximum = MAX_KEYS,
      .is_list = true },
    { .name = "sink", .meaning = "1: there is attn_sink", .maximum = 1 },
    { .name = "kv_stride",
      .meaning = "elements from key to key, a multiple of 8; 0: d_qk",
      .maximum = MAX_KEYS },
    { .name = "softmax_scale",
      .meaning = "factor of the scores; 0: d_qk^-0.5",
      .minimum = -1000 * ASSAY_FRACTION_UNIT,
      .maximum = 1000 * ASSAY_FRACTION_UNIT,
      .is_fraction = true },
    { .name = "lse",
      .meaning = "unit of lse and max_logits",
      .choices = lse_units,
      .default_value = 0 },
    { .name = "indices",
      .meaning = "which keys lists name",
      .choices = assay_mla_index_patterns },
    { .name = NULL },
};

static bool is_power_of_two(int64_t value)
{
    return value > 0 && (value & (value - 1)) == 0;
}

static enum assay_status bind_lengths(const struct assay_case *the_case,
                                      struct assay_mla_sparse_prefill_case *prefill,
                                      struct assay_message *message)
{
    int count;
    const int64_t *const given = assay_case_list(the_case, "topk_length", &count);
    const int64_t s_q = prefill->problem.s_q, topk = prefill->problem.topk;
    if (count > 1 && count != s_q)
        return assay_fail(message, ASSAY_REFUSED,
                          "topk_length has %d values for s_q=%lld; give one a query "
                          "token, or one for all",
                          count, (long long)s_q);
    prefill->lengths = count;
    prefill->problem.has_topk_length = count > 0;
    for (int i = 0; i < count; i++) {
        if (given[i] > topk)
            return assay_fail(message, ASSAY_REFUSED,
                              "topk_length asks for %lld indices of query token %d, "
                              "which has topk=%lld",
                              (long long)given[i], i, (long long)topk);
        prefill->topk_length[i] = (int32_t)given[i];
    }
    return ASSAY_RAN;
}

static enum assay_status
check_layout(const struct assay_case *the_case,
             const struct assay_mla_sparse_prefill_problem *problem,
             struct assay_message *message)
{
    if (problem->topk % TOPK_UNIT)
        return assay_fail(
            message, ASSAY_REFUSED,
            "topk=%lld is no multiple of 128, which upstream takes in pairs "
            "of blocks; use a multiple, with topk_length for what counts",
            (long long)problem->topk);
    if (problem->kv_stride < problem->d_qk)
        return assay_fail(message, ASSAY_REFUSED,
                          "kv_stride=%lld is shorter than a key; it must be 0 or at "
                          "least %lld",
                          (long long)problem->kv_stride, (long long)problem->d_qk);
    if (problem->kv_stride % STRIDE_UNIT && !the_case->is_unsafe)
        return assay_fail(message, ASSAY_REFUSED,
                          "kv_stride=%lld is no multiple of 8, that is of the 16 bytes "
                          "upstream copies at once; use a multiple, or unsafe=1",
                          (long long)problem->kv_stride);
    return ASSAY_RAN;
}

static enum assay_status
check_scale(const struct assay_case *the_case,
            const struct assay_mla_sparse_prefill_problem *problem,
            struct assay_message *message)
{
    const double scale = (double)problem->softmax_scale;
    if (scale > 0) return ASSAY_RAN;
    if (the_case->data == ASSAY_DATA_EXACT || the_case->data == ASSAY_DATA_NEEDLE)
        return assay_fail(message, ASSAY_REFUSED,
                          "softmax_scale=%g is negative, so that data=%s promises "
                          "nothing; use a positive one",
                          scale, assay_data_kinds[the_case->data].name);
    if (the_case->is_unsafe) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "softmax_scale=%g is negative, but upstream takes the maximum "
                      "before it scales; use a positive one, or unsafe=1",
                      scale);
}

static enum assay_status check_exact(const struct assay_case *the_case,
                                     const struct assay_mla_sparse_prefill_case *prefill,
                                     struct assay_message *message)
{
    if (the_case->data != ASSAY_DATA_EXACT) return ASSAY_RAN;
    if (prefill->invalid > 0)
        return assay_fail(message, ASSAY_REFUSED,
                          "data=exact needs as many keys as a power of two for every "
                          "row, which invalid=%g does not promise; use invalid=0",
                          prefill->invalid);
    if (prefill->problem.topk > 1 << 20)
        return assay_fail(message, ASSAY_REFUSED,
                          "data=exact cannot promise exact sums of topk=%lld keys; use "
                          "at most %d",
                          (long long)prefill->problem.topk, 1 << 20);
    const int64_t rows = prefill->lengths > 1 ? prefill->lengths : 1;
    for (int64_t token = 0; token < rows; token++) {
        const int64_t keys = assay_mla_sparse_prefill_length(prefill, token);
        if (keys != 0 && !is_power_of_two(keys))
            return assay_fail(message, ASSAY_REFUSED,
                              "data=exact needs as many keys as a power of two, or "
                              "none, but query token %lld has %lld of them; use %s",
                              (long long)token, (long long)keys,
                              prefill->lengths ? "another topk_length" : "another topk");
    }
    return ASSAY_RAN;
}

enum assay_status assay_mla_sparse_prefill_bind(const struct assay_case *the_case,
                                                void *bound,
                                                struct assay_message *message)
{
    struct assay_mla_sparse_prefill_case *const prefill = bound;
    const int64_t d_qk = assay_case_value(the_case, "d_qk");
    const int64_t kv_stride = assay_case_value(the_case, "kv_stride");
    *prefill = (struct assay_mla_sparse_prefill_case){
        .problem = {
            .s_q = assay_case_value(the_case, "s_q"),
            .h_q = assay_case_value(the_case, "h_q"),
            .s_kv = assay_case_value(the_case, "s_kv"),
            .d_qk = d_qk,
            .topk = assay_case_value(the_case, "topk"),
            .kv_stride = kv_stride ? kv_stride : d_qk,
            .has_sink = assay_case_value(the_case, "sink") != 0,
            .is_base_two = assay_case_value(the_case, "lse") != 0,
            .softmax_scale = assay_mla_softmax_scale(the_case, d_qk),
            .is_unsafe = the_case->is_unsafe,
        },
        .invalid = assay_case_fraction(the_case, "invalid"),
        .pattern = (enum assay_mla_index_pattern)assay_case_value(the_case, "indices"),
    };
    enum assay_status status = check_layout(the_case, &prefill->problem, message);
    if (status == ASSAY_RAN) status = bind_lengths(the_case, prefill, message);
    if (status == ASSAY_RAN) status = check_scale(the_case, &prefill->problem, message);
    if (status == ASSAY_RAN) status = check_exact(the_case, prefill, message);
    if (status == ASSAY_RAN)
        status = assay_mla_check_pattern(the_case, prefill->pattern, message);
    return status;
}
