/* SPDX-License-Identifier: MIT */
/* What a kernel for mla_combine may look at: not the partial results of a request of one
 * split, whose outputs are not its own. */
#include "ref/kernel/mla_combine.h"
#include "verify/operation/mla_combine/mla_combine.h"

#include <string.h>

/* Whether each request has splits that can be; unsafe cases may have others. */
static bool has_sound_splits(const struct assay_mla_combine_problem *problem,
                             const struct assay_tensor *num_splits)
{
    int64_t end = 0;
    for (int64_t request = 0; request < problem->b; request++) {
        int64_t first;
        const int64_t splits =
            assay_mla_combine_splits(problem, num_splits, request, &first);
        if (splits == 0 || first != end) return false;
        end += splits;
    }
    return end == problem->splits;
}

void assay_mla_combine_used(const void *bound, const struct assay_tensors *tensors,
                            int input, uint8_t *is_used)
{
    const struct assay_mla_combine_problem *const problem = bound;
    const struct assay_tensor *const num_splits =
        &tensors->item[ASSAY_COMBINE_NUM_SPLITS];
    const int64_t elements = assay_tensor_elements(&tensors->item[input]);
    memset(is_used, 1, (size_t)elements);
    if (input != ASSAY_COMBINE_OACCUM && input != ASSAY_COMBINE_LSEACCUM) return;
    if (!has_sound_splits(problem, num_splits)) return;
    for (int64_t request = 0; request < problem->b; request++) {
        int64_t first;
        const int64_t size = elements / problem->splits;
        if (assay_mla_combine_splits(problem, num_splits, request, &first) == 1)
            memset(is_used + first * size, 0, (size_t)size);
    }
}
