/* SPDX-License-Identifier: MIT */
/* What a kernel for mla_dense_decode may look at: keys below a request's length, and the
 * table entries of their pages. */
#include "verify/operation/mla/mla_properties.h"
#include "verify/operation/mla_dense_decode/mla_dense_decode.h"

#include <string.h>

static int64_t length_of(const struct assay_tensors *tensors, int64_t request)
{
    return (int32_t)assay_tensor_bits(&tensors->item[ASSAY_DENSE_CACHE_SEQLENS], request);
}

static void mark_keys(const struct assay_mla_dense_decode_problem *problem,
                      const struct assay_tensors *tensors, uint8_t *is_used)
{
    const int64_t slot_elements = problem->h_k * ASSAY_DENSE_D_QK;
    memset(is_used, 0,
           (size_t)assay_tensor_elements(&tensors->item[ASSAY_DENSE_K_CACHE]));
    for (int64_t request = 0; request < problem->b; request++) {
        const int64_t length = length_of(tensors, request);
        for (int64_t first = 0; first < length; first += ASSAY_MLA_BLOCK) {
            const int64_t left = length - first;
            const int64_t keys = left < ASSAY_MLA_BLOCK ? left : ASSAY_MLA_BLOCK;
            const int64_t page = (int32_t)assay_tensor_bits(
                &tensors->item[ASSAY_DENSE_BLOCK_TABLE],
                request * problem->table_columns + first / ASSAY_MLA_BLOCK);
            memset(is_used + page * ASSAY_MLA_BLOCK * slot_elements, 1,
                   (size_t)(keys * slot_elements));
        }
    }
}

static void mark_table(const struct assay_mla_dense_decode_problem *problem,
                       const struct assay_tensors *tensors, uint8_t *is_used)
{
    for (int64_t request = 0; request < problem->b; request++)
        for (int64_t i = 0; i < problem->table_columns; i++)
            is_used[request * problem->table_columns + i] =
                i < assay_mla_dense_pages(length_of(tensors, request));
}

void assay_mla_dense_decode_used(const void *bound, const struct assay_tensors *tensors,
                                 int input, uint8_t *is_used)
{
    const struct assay_mla_dense_decode_problem *const problem =
        &((const struct assay_mla_dense_decode_case *)bound)->problem;
    const struct assay_tensor *const tensor = &tensors->item[input];
    memset(is_used, 1, (size_t)assay_tensor_elements(tensor));
    if (problem->is_unsafe) return;
    switch (input) {
    case ASSAY_DENSE_K_CACHE: mark_keys(problem, tensors, is_used); break;
    case ASSAY_DENSE_BLOCK_TABLE: mark_table(problem, tensors, is_used); break;
    case ASSAY_DENSE_METADATA:
        assay_mla_used_metadata(tensor, problem->b, is_used);
        break;
    default: break;
    }
}
