/* SPDX-License-Identifier: MIT */
/* Inputs of mla_dense_decode. Keys belong to request and token, wherever their page lies;
 * unused slots and pages keep the NaN that memory begins with. */
#include "verify/operation/mla_dense_decode/mla_dense_decode.h"

enum { HEAD_BITS = 16 };

struct filler {
    const struct assay_mla_dense_decode_case *dense;
    const struct assay_tensors *tensors;
    enum assay_data_kind kind;
    uint64_t seed;
};

struct assay_mla_plan_problem
assay_mla_dense_plan_problem(const struct assay_mla_dense_decode_problem *problem)
{
    return (struct assay_mla_plan_problem){ .b = problem->b,
                                            .num_sm_parts = problem->num_sm_parts,
                                            .overhead = 5 };
}

static void fill_queries(const struct filler *filler)
{
    const struct assay_mla_dense_decode_problem *const problem = &filler->dense->problem;
    const struct assay_tensor *const q = &filler->tensors->item[ASSAY_DENSE_Q];
    uint16_t *element = q->data;
    for (int64_t request = 0; request < problem->b; request++)
        for (int64_t token = 0; token < problem->s_q; token++)
            for (int64_t head = 0; head < problem->h_q; head++) {
                const struct assay_mla_vector vector = {
                    .format = q->format,
                    .element = element,
                    .count = ASSAY_DENSE_D_QK,
                    .row_key = assay_mla_row_key(request, token << HEAD_BITS | head),
                    .softmax_scale = problem->softmax_scale,
                };
                assay_mla_fill_vector(&vector, filler->kind, filler->seed, "q");
                element += ASSAY_DENSE_D_QK;
            }
}

/* Keys that every row of the request sees, if it sees any; at least 1. */
static int64_t shared_keys(const struct assay_mla_dense_decode_problem *problem,
                           int64_t length)
{
    const int64_t hidden = problem->is_causal ? problem->s_q - 1 : 0;
    return length > hidden ? length - hidden : 1;
}

/* Token @token of @request, whose page is @page, for all KV heads. */
static void fill_token(const struct filler *filler, int64_t request, int64_t token,
                       int64_t page)
{
    const struct assay_mla_dense_decode_problem *const problem = &filler->dense->problem;
    const struct assay_tensor *const k_cache =
        &filler->tensors->item[ASSAY_DENSE_K_CACHE];
    const int64_t slot = page * ASSAY_MLA_BLOCK + token % ASSAY_MLA_BLOCK;
    const int64_t length = filler->dense->s_k[request];
    for (int64_t head = 0; head < problem->h_k; head++) {
        const struct assay_mla_vector vector = {
            .format = k_cache->format,
            .element = (uint16_t *)k_cache->data +
                       (slot * problem->h_k + head) * ASSAY_DENSE_D_QK,
            .count = ASSAY_DENSE_D_QK,
            .row_key = assay_mla_row_key(head << HEAD_BITS | request, token),
            .is_key = true,
            .is_needle = token == assay_mla_needle(filler->seed, request,
                                                   shared_keys(problem, length)),
            .softmax_scale = problem->softmax_scale,
        };
        assay_mla_fill_vector(&vector, filler->kind, filler->seed, "k_cache");
    }
}

static void fill_cache(const struct filler *filler)
{
    const struct assay_mla_dense_decode_problem *const problem = &filler->dense->problem;
    int32_t *const table = filler->tensors->item[ASSAY_DENSE_BLOCK_TABLE].data;
    int64_t pages = 0;
    for (int64_t request = 0; request < problem->b; request++) {
        const int64_t length = filler->dense->s_k[request];
        int32_t *const row = table + request * problem->table_columns;
        for (int64_t i = 0; i < problem->table_columns; i++)
            row[i] = i < assay_mla_dense_pages(length)
                         ? (int32_t)assay_mla_shuffled(filler->seed, "block_table",
                                                       problem->pages, pages++)
                         : ASSAY_DENSE_UNUSED_PAGE;
        for (int64_t token = 0; token < length; token++)
            fill_token(filler, request, token, row[token / ASSAY_MLA_BLOCK]);
    }
}

void assay_mla_dense_decode_fill(const void *problem, enum assay_data_kind kind,
                                 uint64_t seed, const struct assay_tensors *tensors)
{
    const struct filler filler = { problem, tensors, kind, seed };
    const struct assay_mla_plan_problem plan =
        assay_mla_dense_plan_problem(&filler.dense->problem);
    int32_t *const cache_seqlens = tensors->item[ASSAY_DENSE_CACHE_SEQLENS].data;
    for (int64_t i = 0; i < plan.b; i++)
        cache_seqlens[i] = filler.dense->s_k[i];
    fill_queries(&filler);
    fill_cache(&filler);
    assay_mla_fill_plan(&plan, filler.dense->plan, seed, tensors);
}

static enum assay_status check_length(const struct assay_mla_dense_decode_case *dense,
                                      int64_t request, long long length,
                                      struct assay_message *message)
{
    const long long room = dense->problem.table_columns * ASSAY_MLA_BLOCK;
    if (length < 0 || length > room)
        return assay_fail(message, ASSAY_REFUSED,
                          "cache_seqlens[%lld] is %lld, but a row of block_table has "
                          "room for 0 to %lld keys",
                          (long long)request, length, room);
    if (length != dense->s_k[request])
        return assay_fail(message, ASSAY_REFUSED,
                          "cache_seqlens[%lld] is %lld, but s_k of the case says %d; "
                          "make them agree",
                          (long long)request, length, dense->s_k[request]);
    return ASSAY_RAN;
}

enum assay_status assay_mla_dense_decode_check_inputs(const void *problem,
                                                      const struct assay_tensors *tensors,
                                                      struct assay_message *message)
{
    const struct assay_mla_dense_decode_case *const dense = problem;
    const struct assay_mla_plan_problem plan =
        assay_mla_dense_plan_problem(&dense->problem);
    const int64_t pages = dense->problem.pages, columns = dense->problem.table_columns;
    for (int64_t i = 0; i < plan.b; i++) {
        const int32_t length =
            (int32_t)assay_tensor_bits(&tensors->item[ASSAY_DENSE_CACHE_SEQLENS], i);
        const enum assay_status status = check_length(dense, i, length, message);
        if (status != ASSAY_RAN) return status;
        for (int64_t j = 0; j < assay_mla_dense_pages(length); j++) {
            const int32_t page = (int32_t)assay_tensor_bits(
                &tensors->item[ASSAY_DENSE_BLOCK_TABLE], i * columns + j);
            if (page < 0 || page >= pages)
                return assay_fail(message, ASSAY_REFUSED,
                                  "block_table[%lld, %lld] is %d, but pages are numbered "
                                  "0 to %lld",
                                  (long long)i, (long long)j, page, (long long)pages - 1);
        }
    }
    return assay_mla_check_plan(&plan, tensors, message);
}
