/* SPDX-License-Identifier: MIT */
/* The keys of mla_plan, which cases are legal, and the problem they mean. */
#include "verify/operation/mla_plan/mla_plan.h"

enum { MAX_MULTIPROCESSORS = 1 << 16, MAX_TOKENS = 4096, MAX_HEADS = 4096 };
enum { DENSE, SPARSE };

static const struct assay_choice attentions[] = {
    { "dense", DENSE, "all keys below s_k" },
    { "sparse", SPARSE, "topk indices a query token" },
    { NULL, 0, NULL },
};

const struct assay_parameter assay_mla_plan_parameters[] = {
    { .name = "attention",
      .meaning = "the decode kernel that is planned for",
      .choices = attentions,
      .default_value = DENSE },
    { .name = "b",
      .meaning = "requests",
      .minimum = 1,
      .maximum = ASSAY_MLA_MAX_REQUESTS,
      .is_required = true },
    { .name = "s_q",
      .meaning = "query tokens a request",
      .minimum = 1,
      .maximum = MAX_TOKENS,
      .default_value = 1 },
    { .name = "h_q",
      .meaning = "query heads; sparse: 64 or 128",
      .minimum = 1,
      .maximum = MAX_HEADS,
      .default_value = 128 },
    { .name = "h_k",
      .meaning = "KV heads; sparse: 1",
      .minimum = 1,
      .maximum = MAX_HEADS,
      .default_value = 1 },
    { .name = "sms",
      .meaning = "multiprocessors of the machine",
      .minimum = 1,
      .maximum = MAX_MULTIPROCESSORS,
      .default_value = 132 },
    { .name = "s_k",
      .meaning = "dense: keys of each request, or of all",
      .maximum = ASSAY_MLA_PLAN_MAX_KEYS,
      .is_list = true },
    { .name = "topk",
      .meaning = "sparse: indices a query token",
      .maximum = ASSAY_MLA_PLAN_MAX_KEYS },
    { .name = "topk_length",
      .meaning = "sparse: how many of them count, for each request, or for all",
      .maximum = ASSAY_MLA_PLAN_MAX_KEYS,
      .is_list = true },
    { .name = "extra_topk",
      .meaning = "sparse: indices into an extra cache; 0: there is none",
      .maximum = ASSAY_MLA_PLAN_MAX_KEYS },
    { .name = "extra_topk_length",
      .meaning = "sparse: how many of those count",
      .maximum = ASSAY_MLA_PLAN_MAX_KEYS,
      .is_list = true },
    { .name = "parts",
      .meaning = "parts of the machine; 0: as upstream counts them",
      .maximum = ASSAY_MLA_MAX_PARTS },
    { .name = "overhead",
      .meaning = "blocks that a request costs beside its own",
      .maximum = 1024,
      .default_value = 5 },
    { .name = NULL },
};

static bool has_list(const struct assay_case *the_case, const char *name)
{
    int count;
    assay_case_list(the_case, name, &count);
    return count > 0;
}

static enum assay_status refuse_dense(const struct assay_case *the_case,
                                      struct assay_message *message)
{
    const long long h_q = assay_case_value(the_case, "h_q");
    const long long h_k = assay_case_value(the_case, "h_k");
    if (!has_list(the_case, "s_k"))
        return assay_fail(message, ASSAY_REFUSED,
                          "attention=dense needs s_k=, the keys of each request");
    if (assay_case_value(the_case, "topk") || has_list(the_case, "topk_length") ||
        assay_case_value(the_case, "extra_topk") ||
        has_list(the_case, "extra_topk_length"))
        return assay_fail(
            message, ASSAY_REFUSED,
            "attention=dense has no indices; leave out topk, extra_topk and "
            "their lengths, or use attention=sparse");
    if (h_q % h_k != 0)
        return assay_fail(message, ASSAY_REFUSED,
                          "h_k=%lld does not divide h_q=%lld; it must", h_k, h_q);
    return ASSAY_RAN;
}

static enum assay_status refuse_sparse(const struct assay_case *the_case,
                                       struct assay_message *message)
{
    const long long h_q = assay_case_value(the_case, "h_q");
    const long long topk = assay_case_value(the_case, "topk");
    const long long extra_topk = assay_case_value(the_case, "extra_topk");
    if (has_list(the_case, "s_k") || assay_case_value(the_case, "h_k") != 1)
        return assay_fail(
            message, ASSAY_REFUSED,
            "attention=sparse has one KV head and as many keys as topk says; "
            "leave out s_k and h_k, or use attention=dense");
    if (h_q != 64 && h_q != 128)
        return assay_fail(message, ASSAY_REFUSED,
                          "attention=sparse has 64 or 128 query heads, but the case has "
                          "h_q=%lld",
                          h_q);
    if (topk == 0)
        return assay_fail(message, ASSAY_REFUSED,
                          "attention=sparse needs topk=, the indices of a query token");
    if (extra_topk == 0 && has_list(the_case, "extra_topk_length"))
        return assay_fail(message, ASSAY_REFUSED,
                          "extra_topk_length needs an extra cache; give extra_topk=");
    if ((topk % 64 || extra_topk % 64) && !the_case->is_unsafe)
        return assay_fail(message, ASSAY_REFUSED,
                          "the sparse kernel reads indices by the 64, but the case has "
                          "topk=%lld and extra_topk=%lld; make both multiples of 64, or "
                          "use unsafe=1",
                          topk, extra_topk);
    return ASSAY_RAN;
}

static enum assay_status copy_lengths(const struct assay_case *the_case, const char *name,
                                      int *used, struct assay_mla_plan_case *given,
                                      struct assay_mla_plan_lengths *lengths,
                                      struct assay_message *message)
{
    int count;
    const int64_t *const values = assay_case_list(the_case, name, &count);
    if (count > 1 && count != given->problem.b)
        return assay_fail(message, ASSAY_REFUSED,
                          "%s= has %d values for %lld requests; give one for each, or "
                          "one for all",
                          name, count, (long long)given->problem.b);
    *lengths = (struct assay_mla_plan_lengths){ count, *used };
    for (int i = 0; i < count; i++)
        given->length[(*used)++] = (int32_t)values[i];
    return ASSAY_RAN;
}

static enum assay_status set_parts(const struct assay_case *the_case,
                                   struct assay_mla_plan_problem *problem,
                                   struct assay_message *message)
{
    const int64_t sms = assay_case_value(the_case, "sms");
    const int64_t s_q = assay_case_value(the_case, "s_q");
    const int64_t h_q = assay_case_value(the_case, "h_q");
    const int64_t h_k = assay_case_value(the_case, "h_k");
    problem->num_sm_parts = assay_case_value(the_case, "parts");
    if (problem->num_sm_parts == 0)
        problem->num_sm_parts = problem->is_sparse
                                    ? assay_mla_sparse_parts(sms, s_q, h_q)
                                    : assay_mla_dense_parts(sms, s_q, h_q, h_k);
    if (problem->num_sm_parts > ASSAY_MLA_MAX_PARTS)
        return assay_fail(
            message, ASSAY_REFUSED,
            "sms=%lld gives %lld parts, and upstream's combine kernel aborts "
            "beyond %d; use fewer, or parts=",
            (long long)sms, (long long)problem->num_sm_parts, ASSAY_MLA_MAX_PARTS);
    return ASSAY_RAN;
}

enum assay_status assay_mla_plan_bind(const struct assay_case *the_case, void *bound,
                                      struct assay_message *message)
{
    struct assay_mla_plan_case *const given = bound;
    const bool is_sparse = assay_case_value(the_case, "attention") == SPARSE;
    int used = 0;
    *given = (struct assay_mla_plan_case){
        .problem = { .b = assay_case_value(the_case, "b"),
                     .overhead = assay_case_value(the_case, "overhead"),
                     .is_sparse = is_sparse,
                     .topk = assay_case_value(the_case, "topk"),
                     .extra_topk = assay_case_value(the_case, "extra_topk"),
                     .has_topk_length = has_list(the_case, "topk_length"),
                     .has_extra_topk_length = has_list(the_case, "extra_topk_length") },
    };
    enum assay_status status =
        is_sparse ? refuse_sparse(the_case, message) : refuse_dense(the_case, message);
    if (status == ASSAY_RAN) status = set_parts(the_case, &given->problem, message);
    if (status == ASSAY_RAN)
        status = copy_lengths(the_case, is_sparse ? "topk_length" : "s_k", &used, given,
                              &given->main, message);
    if (status == ASSAY_RAN)
        status = copy_lengths(the_case, "extra_topk_length", &used, given, &given->extra,
                              message);
    return status;
}
