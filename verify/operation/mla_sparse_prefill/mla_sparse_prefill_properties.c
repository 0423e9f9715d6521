/* SPDX-License-Identifier: MIT */
/* Relations between two runs of mla_sparse_prefill. Where indices differ there is only
 * the bound, unless the kernel promises bits: nobody says in which order or shares it
 * takes them. */
#include "verify/operation/mla/mla_properties.h"
#include "verify/operation/mla_sparse_prefill/mla_sparse_prefill.h"

#include <string.h>

enum { PADDING = 128, MAX_TOPK = 1 << 24 };

static const struct assay_mla_sparse_prefill_problem *
problem_of(const struct assay_property_run *run)
{
    return run->problem;
}

/* Both runs, on the way through the keys that the first attends to. */
struct walk {
    const struct assay_property_run *first, *second;
    struct assay_mla_scores scores; /* queries are all rows of q */
};

static uint16_t *key_at(const struct assay_property_run *run, int64_t key)
{
    const struct assay_tensor *const kv = assay_tensors_find(run->tensors, "kv");
    return (uint16_t *)kv->data + key * kv->stride[0];
}

static bool copy_and_visit(const struct assay_property_run *first,
                           const struct assay_property_run *second,
                           bool (*visit)(void *, int64_t, int64_t, int64_t),
                           struct walk *walk)
{
    walk->first = first;
    walk->second = second;
    return assay_mla_copy_inputs(first, second) &&
           assay_mla_sparse_prefill_visit(problem_of(first), first->tensors, visit, walk);
}

/* --- values and places ------------------------------------------------------------- */

static bool set_value(void *context, int64_t token, int64_t position, int64_t key)
{
    (void)token, (void)position;
    const struct walk *const walk = context;
    uint16_t *const to = key_at(walk->second, key);
    for (int i = 0; i < ASSAY_MLA_D_V; i++)
        to[i] = (uint16_t)assay_mla_constant_value(i, ASSAY_BF16);
    return true;
}

static bool make_values_constant(const struct assay_property_run *first,
                                 const struct assay_property_run *second)
{
    struct walk walk;
    return copy_and_visit(first, second, set_value, &walk);
}

static bool move_key(void *context, int64_t token, int64_t position, int64_t key)
{
    const struct walk *const walk = context;
    const struct assay_mla_sparse_prefill_problem *const problem =
        problem_of(walk->first);
    const int64_t to = problem->s_kv - 1 - key;
    memcpy(key_at(walk->second, to), key_at(walk->first, key),
           (size_t)problem->d_qk * sizeof(uint16_t));
    assay_mla_set_integer(walk->second, "indices", token * problem->topk + position,
                          (int32_t)to);
    return true;
}

static bool move_keys(const struct assay_property_run *first,
                      const struct assay_property_run *second)
{
    struct walk walk;
    return problem_of(first)->s_kv > 1 && copy_and_visit(first, second, move_key, &walk);
}

/* --- lists ------------------------------------------------------------------------- */

static bool is_valid(const struct assay_mla_sparse_prefill_problem *problem, int32_t key)
{
    return key >= 0 && key < problem->s_kv;
}

static bool reverse(const struct assay_property_run *first,
                    const struct assay_property_run *second)
{
    const struct assay_mla_sparse_prefill_problem *const problem = problem_of(first);
    if (!assay_mla_copy_inputs(first, second)) return false;
    for (int64_t token = 0; token < problem->s_q; token++) {
        const int64_t begin = token * problem->topk;
        const int64_t length = assay_mla_sparse_prefill_counted(first->tensors, token);
        for (int64_t i = 0; i < length; i++)
            assay_mla_set_integer(
                second, "indices", begin + i,
                assay_mla_integer(first, "indices", begin + length - 1 - i));
    }
    return true;
}

/* What is outside goes behind what counts, in the order that both had. */
static bool move_padding_of(const struct assay_property_run *first,
                            const struct assay_property_run *second, int64_t token)
{
    const struct assay_mla_sparse_prefill_problem *const problem = problem_of(first);
    const int64_t begin = token * problem->topk;
    const int64_t end = begin + assay_mla_sparse_prefill_counted(first->tensors, token);
    int64_t to = begin;
    bool is_changed = false;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = begin; i < end; i++) {
            const int32_t key = assay_mla_integer(first, "indices", i);
            if (is_valid(problem, key) != (pass == 0)) continue;
            if (pass == 0 && i != to) is_changed = true;
            assay_mla_set_integer(second, "indices", to++, key);
        }
    return is_changed;
}

static bool move_padding(const struct assay_property_run *first,
                         const struct assay_property_run *second)
{
    bool is_changed = false;
    if (!assay_mla_copy_inputs(first, second)) return false;
    for (int64_t token = 0; token < problem_of(first)->s_q; token++)
        if (move_padding_of(first, second, token)) is_changed = true;
    return is_changed;
}

static bool derive_padded(const struct assay_property_run *first,
                          struct assay_case *second)
{
    int64_t longer[ASSAY_MAX_LIST_VALUES];
    int count;
    const int64_t *const lengths = assay_case_list(second, "topk_length", &count);
    for (int i = 0; i < count; i++)
        longer[i] = lengths[i] + PADDING;
    if (problem_of(first)->topk > MAX_TOPK - PADDING) return false;
    if (count > 0 && !assay_case_set_list(second, "topk_length", longer, count))
        return false;
    assay_case_set(second, "topk", problem_of(first)->topk + PADDING);
    return assay_mla_is_derived(second);
}

/* What counts, the padding, and what does not count. */
static bool pad(const struct assay_property_run *first,
                const struct assay_property_run *second)
{
    const struct assay_mla_sparse_prefill_problem *const problem = problem_of(first);
    const int64_t topk = problem->topk, longer = topk + PADDING;
    if (!assay_mla_copy_inputs(first, second)) return false;
    for (int64_t token = 0; token < problem->s_q; token++) {
        const int64_t length = assay_mla_sparse_prefill_counted(first->tensors, token);
        for (int64_t i = 0; i < longer; i++) {
            const int64_t from = i < length ? i : i - PADDING;
            const bool is_padding = i >= length && from < length;
            assay_mla_set_integer(
                second, "indices", token * longer + i,
                is_padding ? -1
                           : assay_mla_integer(first, "indices", token * topk + from));
        }
        if (problem->has_topk_length)
            assay_mla_set_integer(second, "topk_length", token,
                                  (int32_t)(length + PADDING));
    }
    return true;
}

/* --- powers of two ----------------------------------------------------------------- */

static bool halve_key(void *context, int64_t token, int64_t position, int64_t key)
{
    (void)position;
    static const struct assay_mla_scaling halved = { ASSAY_BF16, -1,
                                                     -ASSAY_MLA_VALUE_RANGE,
                                                     ASSAY_MLA_VALUE_RANGE };
    struct walk *const walk = context;
    const struct assay_mla_sparse_prefill_problem *const problem =
        problem_of(walk->first);
    double value[ASSAY_MLA_MAX_D_QK];
    if (!assay_mla_scale_vector(&halved, key_at(walk->first, key),
                                key_at(walk->second, key), problem->d_qk, value))
        return false;
    assay_mla_scores_add(&walk->scores, token * problem->h_q, problem->h_q, value);
    return true;
}

static bool halve_tail(void *context, int64_t token, int64_t position, int64_t key)
{
    (void)token, (void)position;
    static const struct assay_mla_scaling halved = { ASSAY_BF16, -1,
                                                     -ASSAY_MLA_FACTOR_RANGE,
                                                     ASSAY_MLA_FACTOR_RANGE };
    const struct walk *const walk = context;
    return assay_mla_scale_vector(&halved, key_at(walk->first, key) + ASSAY_MLA_D_V,
                                  key_at(walk->second, key) + ASSAY_MLA_D_V,
                                  problem_of(walk->first)->d_qk - ASSAY_MLA_D_V, NULL);
}

static bool scale_keys(const struct assay_property_run *first,
                       const struct assay_property_run *second)
{
    const struct assay_mla_sparse_prefill_problem *const problem = problem_of(first);
    struct walk walk = { first, second, { 0 } };
    const bool is_scaled =
        assay_mla_copy_inputs(first, second) &&
        assay_mla_scores_open(&walk.scores, problem->s_q * problem->h_q, problem->d_qk) &&
        assay_mla_double_queries(first, second, 0, &walk.scores) &&
        assay_mla_sparse_prefill_visit(problem, first->tensors, halve_key, &walk) &&
        assay_mla_are_weights_normal(&walk.scores, problem->softmax_scale);
    assay_mla_scores_close(&walk.scores);
    return is_scaled;
}

static bool has_tail(const struct assay_property_run *first, struct assay_case *second)
{
    (void)second;
    return problem_of(first)->d_qk > ASSAY_MLA_D_V;
}

static bool scale_tail(const struct assay_property_run *first,
                       const struct assay_property_run *second)
{
    struct walk walk;
    return copy_and_visit(first, second, halve_tail, &walk) &&
           assay_mla_double_queries(first, second, ASSAY_MLA_D_V, NULL);
}

/* --- neighbours -------------------------------------------------------------------- */

static bool has_neighbours(const struct assay_property_run *first,
                           struct assay_case *second)
{
    (void)second;
    return problem_of(first)->s_q > 1;
}

/* Of the keys of odd tokens; those that even ones attend to are written once more. */
static bool negate_key(void *context, int64_t token, int64_t position, int64_t key)
{
    (void)position;
    const struct walk *const walk = context;
    const uint16_t *const from = key_at(walk->first, key);
    uint16_t *const to = key_at(walk->second, key);
    for (int64_t i = 0; token % 2 && i < problem_of(walk->first)->d_qk; i++)
        to[i] = from[i] ^ 0x8000;
    return true;
}

static bool restore_key(void *context, int64_t token, int64_t position, int64_t key)
{
    (void)position;
    const struct walk *const walk = context;
    if (token % 2 == 0)
        memcpy(key_at(walk->second, key), key_at(walk->first, key),
               (size_t)problem_of(walk->first)->d_qk * sizeof(uint16_t));
    return true;
}

static bool change_tokens(const struct assay_property_run *first,
                          const struct assay_property_run *second)
{
    struct walk walk;
    if (!copy_and_visit(first, second, negate_key, &walk)) return false;
    assay_mla_negate_odd_entries(first, second, "q");
    return assay_mla_sparse_prefill_visit(problem_of(first), first->tensors, restore_key,
                                          &walk);
}

static bool change_rows(const struct assay_property_run *first,
                        const struct assay_property_run *second)
{
    if (!assay_mla_copy_inputs(first, second)) return false;
    assay_mla_negate_odd_rows(first, second, "q");
    return true;
}

static bool derive_rotated(const struct assay_property_run *first,
                           struct assay_case *second)
{
    return has_neighbours(first, second) &&
           assay_mla_rotate_list(second, "topk_length") && assay_mla_is_derived(second);
}

static bool rotate(const struct assay_property_run *first,
                   const struct assay_property_run *second)
{
    if (!assay_mla_copy_inputs(first, second)) return false;
    assay_mla_rotate_entries(first, second, "q");
    assay_mla_rotate_entries(first, second, "indices");
    assay_mla_rotate_entries(first, second, "topk_length");
    return true;
}

const struct assay_property assay_mla_sparse_prefill_properties[] = {
    { "constant_values", "all values are one vector", ASSAY_PROPERTY_MATHEMATICS, NULL,
      make_values_constant, NULL },
    { "reversed_indices", "the last index that counts comes first",
      ASSAY_PROPERTY_MATHEMATICS, NULL, reverse, NULL },
    { "moved_padding", "indices outside come after all others",
      ASSAY_PROPERTY_MATHEMATICS, NULL, move_padding, NULL },
    { "padded_indices", "128 more indices of -1", ASSAY_PROPERTY_MATHEMATICS,
      derive_padded, pad, NULL },
    { "moved_keys", "keys lie elsewhere, in another order", ASSAY_PROPERTY_MATHEMATICS,
      NULL, move_keys, NULL },
    { "scaled_keys",
      "queries twice, keys half: out half, max_logits and lse the same, to the bit",
      ASSAY_PROPERTY_MATHEMATICS, NULL, scale_keys, assay_mla_expect_half },
    { "scaled_tail", "queries twice, keys half beside the values: the same bits",
      ASSAY_PROPERTY_MATHEMATICS, has_tail, scale_tail, assay_mla_expect_same },
    { "unused_memory", "what nobody may look at holds something else: the same bits",
      ASSAY_PROPERTY_MATHEMATICS, NULL, assay_mla_change_unused, assay_mla_expect_same },
    { "other_tokens", "odd tokens hold other data: the same bits in even ones",
      ASSAY_PROPERTY_BATCH, has_neighbours, change_tokens,
      assay_mla_expect_even_entries },
    { "other_rows", "half of the query rows are others: the same bits in the rest",
      ASSAY_PROPERTY_BATCH, NULL, change_rows, assay_mla_expect_even_rows },
    { "rotated_tokens", "query tokens change places: the same bits", ASSAY_PROPERTY_BATCH,
      derive_rotated, rotate, assay_mla_expect_rotated },
    { "longer_lists", "128 more indices of -1: the same bits", ASSAY_PROPERTY_BATCH,
      derive_padded, pad, assay_mla_expect_padded },
    { .name = NULL },
};
