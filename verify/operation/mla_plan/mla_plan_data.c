/* SPDX-License-Identifier: MIT */
/* Inputs of mla_plan: the lengths that the case names, and which lengths are legal. */
#include "verify/operation/mla_plan/mla_plan.h"

static void fill(const struct assay_mla_plan_case *given,
                 const struct assay_mla_plan_lengths *lengths,
                 const struct assay_tensor *tensor)
{
    for (int64_t i = 0; i < tensor->shape[0]; i++) {
        const int64_t at = lengths->first + (lengths->count == 1 ? 0 : i);
        assay_tensor_set_bits(tensor, i, (uint32_t)given->length[at]);
    }
}

void assay_mla_plan_fill(const void *problem, enum assay_data_kind kind, uint64_t seed,
                         const struct assay_tensors *tensors)
{
    (void)kind, (void)seed;
    const struct assay_mla_plan_case *const given = problem;
    const struct assay_tensor *const extra =
        assay_tensors_find(tensors, "extra_topk_length");
    if (given->main.count > 0) fill(given, &given->main, &tensors->item[0]);
    if (extra) fill(given, &given->extra, extra);
}

static enum assay_status check(const struct assay_tensor *tensor, int64_t maximum,
                               struct assay_message *message)
{
    for (int64_t i = 0; tensor && i < tensor->shape[0]; i++) {
        const int32_t length = (int32_t)assay_tensor_bits(tensor, i);
        if (length < 0 || length > maximum)
            return assay_fail(message, ASSAY_REFUSED,
                              "%s of request %lld is %d; it must be from 0 to %lld, or "
                              "use unsafe=1",
                              tensor->name, (long long)i, length, (long long)maximum);
    }
    return ASSAY_RAN;
}

enum assay_status assay_mla_plan_check_lengths(const void *problem,
                                               const struct assay_tensors *tensors,
                                               struct assay_message *message)
{
    const struct assay_mla_plan_case *const given = problem;
    enum assay_status status = check(assay_tensors_find(tensors, "cache_seqlens"),
                                     ASSAY_MLA_PLAN_MAX_KEYS, message);
    if (status == ASSAY_RAN)
        status = check(assay_tensors_find(tensors, "topk_length"), given->problem.topk,
                       message);
    if (status == ASSAY_RAN)
        status = check(assay_tensors_find(tensors, "extra_topk_length"),
                       given->problem.extra_topk, message);
    return status;
}
