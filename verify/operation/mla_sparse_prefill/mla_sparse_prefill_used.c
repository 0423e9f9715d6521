/* SPDX-License-Identifier: MIT */
/* Which keys a case of mla_sparse_prefill attends to: all that a kernel may look at,
 * beside the indices below the length. */
#include "verify/operation/mla_sparse_prefill/mla_sparse_prefill.h"

#include <string.h>

int64_t assay_mla_sparse_prefill_counted(const struct assay_tensors *tensors,
                                         int64_t token)
{
    const struct assay_tensor *const lengths = assay_tensors_find(tensors, "topk_length");
    const struct assay_tensor *const indices = assay_tensors_find(tensors, "indices");
    return lengths ? (int32_t)assay_tensor_bits(lengths, token) : indices->shape[2];
}

bool assay_mla_sparse_prefill_visit(
    const struct assay_mla_sparse_prefill_problem *problem,
    const struct assay_tensors *tensors,
    bool (*visit)(void *context, int64_t token, int64_t position, int64_t key),
    void *context)
{
    const struct assay_tensor *const indices = assay_tensors_find(tensors, "indices");
    for (int64_t token = 0; token < problem->s_q; token++)
        for (int64_t i = 0; i < assay_mla_sparse_prefill_counted(tensors, token); i++) {
            const int32_t key =
                (int32_t)assay_tensor_bits(indices, token * problem->topk + i);
            if (key < 0 || key >= problem->s_kv) continue;
            if (!visit(context, token, i, key)) return false;
        }
    return true;
}

struct mark {
    int64_t d_qk;
    uint8_t *is_used;
};

static bool mark_key(void *context, int64_t token, int64_t position, int64_t key)
{
    (void)token, (void)position;
    const struct mark *const mark = context;
    memset(mark->is_used + key * mark->d_qk, 1, (size_t)mark->d_qk);
    return true;
}

void assay_mla_sparse_prefill_used(const void *bound, const struct assay_tensors *tensors,
                                   int input, uint8_t *is_used)
{
    const struct assay_mla_sparse_prefill_problem *const problem = bound;
    const struct assay_mla_sparse_prefill_places place =
        assay_mla_sparse_prefill_places(problem);
    const int64_t elements = assay_tensor_elements(&tensors->item[input]);
    struct mark mark = { problem->d_qk, is_used };
    memset(is_used, 1, (size_t)elements);
    if (problem->is_unsafe) return;
    if (input == place.kv) {
        memset(is_used, 0, (size_t)elements);
        assay_mla_sparse_prefill_visit(problem, tensors, mark_key, &mark);
    }
    for (int64_t i = 0; input == place.indices && i < elements; i++)
        is_used[i] = i % problem->topk <
                     assay_mla_sparse_prefill_counted(tensors, i / problem->topk);
}
