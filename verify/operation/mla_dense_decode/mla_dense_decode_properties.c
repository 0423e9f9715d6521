/* SPDX-License-Identifier: MIT */
/* Relations between two runs of mla_dense_decode. */
#include "verify/operation/mla/mla_properties.h"
#include "verify/operation/mla_dense_decode/mla_dense_decode.h"

#include <string.h>

enum { D_QK = ASSAY_DENSE_D_QK, D_TAIL = D_QK - ASSAY_MLA_D_V };

static const struct assay_mla_dense_decode_case *case_of(const void *bound)
{
    return bound;
}

static struct assay_mla_plan_problem plan_of(const struct assay_property_run *run)
{
    return assay_mla_dense_plan_problem(&case_of(run->problem)->problem);
}

/* --- keys -------------------------------------------------------------------------- */

/* One key of both runs, at the same place in their caches. */
struct key {
    const struct assay_property_run *first, *second;
    const uint16_t *from;
    uint16_t *to;
    int64_t request;
};

static int64_t page_of(const struct assay_property_run *run, int64_t request,
                       int64_t token)
{
    const int64_t columns = case_of(run->problem)->problem.table_columns;
    return (int32_t)assay_tensor_bits(&run->tensors->item[ASSAY_DENSE_BLOCK_TABLE],
                                      request * columns + token / ASSAY_MLA_BLOCK);
}

/* Calls @visit for all keys of all KV heads of a request, until it says false. */
static bool visit_request(const struct assay_property_run *first,
                          const struct assay_property_run *second, int64_t request,
                          bool (*visit)(void *, const struct key *), void *context)
{
    const struct assay_mla_dense_decode_case *const dense = case_of(first->problem);
    const int64_t h_k = dense->problem.h_k;
    for (int64_t token = 0; token < dense->s_k[request]; token++) {
        const int64_t slot =
            page_of(first, request, token) * ASSAY_MLA_BLOCK + token % ASSAY_MLA_BLOCK;
        for (int64_t head = 0; head < h_k; head++) {
            const int64_t at = (slot * h_k + head) * D_QK;
            const struct assay_tensors *const from = first->tensors;
            const struct assay_tensors *const to = second->tensors;
            const struct key key = {
                .first = first,
                .second = second,
                .from = (const uint16_t *)from->item[ASSAY_DENSE_K_CACHE].data + at,
                .to = (uint16_t *)to->item[ASSAY_DENSE_K_CACHE].data + at,
                .request = request,
            };
            if (!visit(context, &key)) return false;
        }
    }
    return true;
}

static bool visit_keys(const struct assay_property_run *first,
                       const struct assay_property_run *second,
                       bool (*visit)(void *, const struct key *), void *context)
{
    for (int64_t request = 0; request < case_of(first->problem)->problem.b; request++)
        if (!visit_request(first, second, request, visit, context)) return false;
    return true;
}

/* --- constant values --------------------------------------------------------------- */

static bool set_value(void *context, const struct key *key)
{
    (void)context;
    const enum assay_format format = case_of(key->first->problem)->problem.format;
    for (int i = 0; i < ASSAY_MLA_D_V; i++)
        key->to[i] = (uint16_t)assay_mla_constant_value(i, format);
    return true;
}

static bool make_values_constant(const struct assay_property_run *first,
                                 const struct assay_property_run *second)
{
    return assay_mla_copy_inputs(first, second) &&
           visit_keys(first, second, set_value, NULL);
}

/* --- pages ------------------------------------------------------------------------- */

static bool move_pages(const struct assay_property_run *first,
                       const struct assay_property_run *second)
{
    const struct assay_mla_dense_decode_case *const dense = case_of(first->problem);
    const struct assay_mla_dense_decode_problem *const problem = &dense->problem;
    const int64_t page_elements = ASSAY_MLA_BLOCK * problem->h_k * D_QK;
    const uint16_t *const from = first->tensors->item[ASSAY_DENSE_K_CACHE].data;
    uint16_t *const to = second->tensors->item[ASSAY_DENSE_K_CACHE].data;
    if (problem->pages < 2 || !assay_mla_copy_inputs(first, second)) return false;
    for (int64_t page = 0; page < problem->pages; page++)
        memcpy(to + (problem->pages - 1 - page) * page_elements,
               from + page * page_elements, (size_t)page_elements * sizeof(*to));
    for (int64_t request = 0; request < problem->b; request++)
        for (int64_t i = 0; i < assay_mla_dense_pages(dense->s_k[request]); i++)
            assay_mla_set_integer(
                second, "block_table", request * problem->table_columns + i,
                (int32_t)(problem->pages - 1 -
                          page_of(first, request, i * ASSAY_MLA_BLOCK)));
    return true;
}

/* --- powers of two ----------------------------------------------------------------- */

struct halving { /* of keys or of their tails */
    struct assay_mla_scaling scaling;
    struct assay_mla_scores scores; /* queries are all rows of q */
    int64_t rows;                   /* of a request */
};

static struct halving halving_of(const struct assay_property_run *run, int range)
{
    const struct assay_mla_dense_decode_problem *const problem =
        &case_of(run->problem)->problem;
    return (struct halving){ .scaling = { problem->format, -1, -range, range },
                             .rows = problem->s_q * problem->h_q };
}

static bool halve_key(void *context, const struct key *key)
{
    struct halving *const halving = context;
    double value[D_QK];
    if (!assay_mla_scale_vector(&halving->scaling, key->from, key->to, D_QK, value))
        return false;
    assay_mla_scores_add(&halving->scores, key->request * halving->rows, halving->rows,
                         value);
    return true;
}

static bool halve_tail(void *context, const struct key *key)
{
    const struct halving *const halving = context;
    return assay_mla_scale_vector(&halving->scaling, key->from + ASSAY_MLA_D_V,
                                  key->to + ASSAY_MLA_D_V, D_TAIL, NULL);
}

static bool scale_keys(const struct assay_property_run *first,
                       const struct assay_property_run *second)
{
    const struct assay_mla_dense_decode_problem *const problem =
        &case_of(first->problem)->problem;
    struct halving halving = halving_of(first, ASSAY_MLA_VALUE_RANGE);
    const bool is_scaled =
        assay_mla_copy_inputs(first, second) &&
        assay_mla_scores_open(&halving.scores, problem->b * halving.rows, D_QK) &&
        assay_mla_double_queries(first, second, 0, &halving.scores) &&
        visit_keys(first, second, halve_key, &halving) &&
        assay_mla_are_weights_normal(&halving.scores, problem->softmax_scale);
    assay_mla_scores_close(&halving.scores);
    return is_scaled;
}

static bool scale_tail(const struct assay_property_run *first,
                       const struct assay_property_run *second)
{
    struct halving halving = halving_of(first, ASSAY_MLA_FACTOR_RANGE);
    return assay_mla_copy_inputs(first, second) &&
           assay_mla_double_queries(first, second, ASSAY_MLA_D_V, NULL) &&
           visit_keys(first, second, halve_tail, &halving);
}

/* --- neighbours -------------------------------------------------------------------- */

static bool negate_key(void *context, const struct key *key)
{
    (void)context;
    if (key->request % 2)
        for (int i = 0; i < D_QK; i++)
            key->to[i] = key->from[i] ^ 0x8000;
    return true;
}

/* Pages may be shared. */
static bool restore_key(void *context, const struct key *key)
{
    (void)context;
    if (key->request % 2 == 0) memcpy(key->to, key->from, D_QK * sizeof(*key->to));
    return true;
}

static bool has_neighbours(const struct assay_property_run *first,
                           struct assay_case *second)
{
    (void)second;
    return case_of(first->problem)->problem.b > 1;
}

static bool change_requests(const struct assay_property_run *first,
                            const struct assay_property_run *second)
{
    if (!assay_mla_copy_inputs(first, second)) return false;
    assay_mla_negate_odd_entries(first, second, "q");
    return visit_keys(first, second, negate_key, NULL) &&
           visit_keys(first, second, restore_key, NULL);
}

static bool change_rows(const struct assay_property_run *first,
                        const struct assay_property_run *second)
{
    const struct assay_mla_dense_decode_problem *const problem =
        &case_of(first->problem)->problem;
    if (problem->h_q * problem->s_q < 2 || !assay_mla_copy_inputs(first, second))
        return false;
    assay_mla_negate_odd_rows(first, second, "q");
    return true;
}

/* --- other plans ------------------------------------------------------------------- */

static bool derive_rotated(const struct assay_property_run *first,
                           struct assay_case *second)
{
    return has_neighbours(first, second) && assay_mla_rotate_list(second, "s_k") &&
           assay_mla_is_derived(second);
}

static bool rotate(const struct assay_property_run *first,
                   const struct assay_property_run *second)
{
    const struct assay_mla_plan_problem plan = plan_of(second);
    if (!assay_mla_copy_inputs(first, second)) return false;
    assay_mla_rotate_entries(first, second, "q");
    assay_mla_rotate_entries(first, second, "block_table");
    assay_mla_rotate_entries(first, second, "cache_seqlens");
    assay_mla_write_plan(&plan, second);
    return true;
}

static bool expect_rotated(const struct assay_property_run *first,
                           const struct assay_property_run *second, int output,
                           int64_t element, uint32_t *bits)
{
    const struct assay_mla_plan_problem plan = plan_of(first);
    const struct assay_tensor *const tensor = &second->tensors->item[output];
    const int64_t request = element / (assay_tensor_elements(tensor) / plan.b);
    return assay_mla_expect_rotated(first, second, output, element, bits) &&
           assay_mla_has_same_splits(&plan, first, (request + 1) % plan.b, second,
                                     request);
}

static bool plan_anew(const struct assay_property_run *first,
                      const struct assay_property_run *second)
{
    const struct assay_mla_plan_problem plan = plan_of(second);
    if (!assay_mla_copy_inputs(first, second)) return false;
    assay_mla_write_plan(&plan, second);
    return true;
}

const struct assay_property assay_mla_dense_decode_properties[] = {
    { "constant_values", "all values are one vector", ASSAY_PROPERTY_MATHEMATICS, NULL,
      make_values_constant, NULL },
    { "moved_pages", "pages lie elsewhere: the same bits", ASSAY_PROPERTY_MATHEMATICS,
      NULL, move_pages, assay_mla_expect_same },
    { "scaled_keys", "queries twice, keys half: out half, lse the same, to the bit",
      ASSAY_PROPERTY_MATHEMATICS, NULL, scale_keys, assay_mla_expect_half },
    { "scaled_tail", "queries twice, keys half beside the values: the same bits",
      ASSAY_PROPERTY_MATHEMATICS, NULL, scale_tail, assay_mla_expect_same },
    { "unused_memory", "what nobody may look at holds something else: the same bits",
      ASSAY_PROPERTY_MATHEMATICS, NULL, assay_mla_change_unused, assay_mla_expect_same },
    { "other_requests", "odd requests hold other data: the same bits in even ones",
      ASSAY_PROPERTY_BATCH, has_neighbours, change_requests,
      assay_mla_expect_even_entries },
    { "other_rows", "half of the query rows are others: the same bits in the rest",
      ASSAY_PROPERTY_BATCH, NULL, change_rows, assay_mla_expect_even_rows },
    { "rotated_requests",
      "requests change places: the same bits where splits are the same",
      ASSAY_PROPERTY_BATCH, derive_rotated, rotate, expect_rotated },
    { "plan_scheduler", "planned as upstream's scheduler does", ASSAY_PROPERTY_PLAN,
      assay_mla_derive_scheduler, plan_anew, NULL },
    { "plan_whole", "no request is split", ASSAY_PROPERTY_PLAN, assay_mla_derive_whole,
      plan_anew, NULL },
    { "plan_blocks", "as many splits as parts allow", ASSAY_PROPERTY_PLAN,
      assay_mla_derive_blocks, plan_anew, NULL },
    { "plan_random", "boundaries by the seed", ASSAY_PROPERTY_PLAN,
      assay_mla_derive_random, plan_anew, NULL },
    { .name = NULL },
};
