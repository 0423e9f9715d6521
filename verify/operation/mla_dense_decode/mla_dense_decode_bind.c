/* SPDX-License-Identifier: MIT */
/* Keys of mla_dense_decode and what they may be. */
#include "verify/operation/mla_dense_decode/mla_dense_decode.h"

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

const struct assay_parameter assay_mla_dense_decode_parameters[] = {
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

enum assay_status assay_mla_dense_decode_bind(const struct assay_case *the_case,
                                              void *bound, struct assay_message *message)
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
