/* SPDX-License-Identifier: MIT */
/* Relations between two runs of mla_sparse_decode that differ in the lists of indices:
 * their order and their padding. */
#include "verify/operation/mla/mla_properties.h"
#include "verify/operation/mla_sparse_decode/mla_sparse_decode.h"

enum { MAX_TOPK = 1 << 20, PADDING = ASSAY_MLA_BLOCK };

static const struct assay_mla_sparse_decode_task *
task_of(const struct assay_property_run *run)
{
    return run->problem;
}

/* One list of both runs, at the same place. */
struct list {
    const struct assay_property_run *first, *second;
    const char *indices;
    int64_t begin, length; /* elements */
};

static int32_t index_at(const struct list *list, int64_t position)
{
    return assay_mla_integer(list->first, list->indices, list->begin + position);
}

static void set_index(const struct list *list, int64_t position, int32_t index)
{
    assay_mla_set_integer(list->second, list->indices, list->begin + position, index);
}

/* Whether any call of @change said that it changed something. */
static bool change_lists(const struct assay_property_run *first,
                         const struct assay_property_run *second,
                         bool (*change)(const struct list *))
{
    const struct assay_mla_sparse_decode_problem *const problem =
        &task_of(first)->problem;
    struct assay_mla_pool_names pools[2];
    const int count = assay_mla_sparse_decode_pools(first->problem, pools);
    bool is_changed = false;
    for (int i = 0; i < count; i++)
        for (int64_t row = 0; row < problem->b * problem->s_q; row++) {
            const struct list list = {
                .first = first,
                .second = second,
                .indices = pools[i].indices,
                .begin = row * pools[i].cache->topk,
                .length =
                    assay_mla_pool_length(&pools[i], first->tensors, row / problem->s_q),
            };
            if (change(&list)) is_changed = true;
        }
    return is_changed;
}

/* --- order ------------------------------------------------------------------------- */

static bool reverse_list(const struct list *list)
{
    for (int64_t i = 0; i < list->length; i++)
        set_index(list, i, index_at(list, list->length - 1 - i));
    return list->length > 1;
}

bool assay_mla_sparse_decode_reverse(const struct assay_property_run *first,
                                     const struct assay_property_run *second)
{
    return assay_mla_copy_inputs(first, second) &&
           change_lists(first, second, reverse_list);
}

static bool move_padding(const struct list *list)
{
    int64_t valid = 0;
    bool is_changed = false;
    for (int64_t i = 0; i < list->length; i++) {
        if (index_at(list, i) == -1) continue;
        if (i != valid) is_changed = true;
        set_index(list, valid++, index_at(list, i));
    }
    for (; valid < list->length; valid++)
        set_index(list, valid, -1);
    return is_changed;
}

bool assay_mla_sparse_decode_move_padding(const struct assay_property_run *first,
                                          const struct assay_property_run *second)
{
    return assay_mla_copy_inputs(first, second) &&
           change_lists(first, second, move_padding);
}

/* --- padding ----------------------------------------------------------------------- */

/* The list that comes last. */
static struct assay_mla_pool_names last_pool(const struct assay_property_run *run)
{
    struct assay_mla_pool_names pools[2];
    const int count = assay_mla_sparse_decode_pools(run->problem, pools);
    return pools[count - 1];
}

static bool lengthen(struct assay_case *the_case, const char *key)
{
    int64_t longer[ASSAY_MAX_LIST_VALUES];
    int count;
    const int64_t *const values = assay_case_list(the_case, key, &count);
    for (int i = 0; i < count; i++)
        longer[i] = values[i] + PADDING;
    return count == 0 || assay_case_set_list(the_case, key, longer, count);
}

bool assay_mla_sparse_decode_derive_padded(const struct assay_property_run *first,
                                           struct assay_case *second)
{
    const struct assay_mla_sparse_decode_task *const task = task_of(first);
    const bool has_extra = task->problem.extra.topk > 0;
    const char *const topk = has_extra ? "extra_topk" : "topk";
    const int64_t longer = assay_case_value(second, topk) + PADDING;
    if (longer > MAX_TOPK) return false;
    assay_case_set(second, has_extra ? "extra_s_kv" : "s_kv",
                   has_extra ? task->extra.s_kv : task->main.s_kv);
    assay_case_set(second, topk, longer);
    return lengthen(second, has_extra ? "extra_topk_length" : "topk_length") &&
           assay_mla_is_derived(second);
}

/* What counts, the padding, and what does not count. */
bool assay_mla_sparse_decode_pad(const struct assay_property_run *first,
                                 const struct assay_property_run *second)
{
    const struct assay_mla_sparse_decode_problem *const problem =
        &task_of(first)->problem;
    const struct assay_mla_plan_problem plan =
        assay_mla_sparse_decode_plan(&task_of(second)->problem);
    const struct assay_mla_pool_names pool = last_pool(first);
    const int64_t topk = pool.cache->topk, longer = topk + PADDING;
    if (!assay_mla_copy_inputs(first, second)) return false;
    for (int64_t row = 0; row < problem->b * problem->s_q; row++) {
        const int64_t length =
            assay_mla_pool_length(&pool, first->tensors, row / problem->s_q);
        for (int64_t i = 0; i < longer; i++) {
            const int64_t from = i < length ? i : i - PADDING;
            const int32_t index =
                from < length && i >= length
                    ? -1
                    : assay_mla_integer(first, pool.indices, row * topk + from);
            assay_mla_set_integer(second, pool.indices, row * longer + i, index);
        }
    }
    for (int64_t i = 0; pool.cache->has_topk_length && i < problem->b; i++)
        assay_mla_set_integer(
            second, pool.topk_length, i,
            (int32_t)(assay_mla_pool_length(&pool, first->tensors, i) + PADDING));
    assay_mla_write_plan(&plan, second);
    return true;
}

bool assay_mla_sparse_decode_expect_padded(const struct assay_property_run *first,
                                           const struct assay_property_run *second,
                                           int output, int64_t element, uint32_t *bits)
{
    const int64_t elements = assay_tensor_elements(&first->tensors->item[output]);
    const int64_t request = element / (elements / task_of(first)->problem.b);
    return assay_mla_expect_padded(first, second, output, element, bits) &&
           assay_mla_is_single(first, request) && assay_mla_is_single(second, request);
}
