/* SPDX-License-Identifier: MIT */
/* Relations between two runs of mla_sparse_decode: tokens changed or moved, requests and
 * plans. Those between lists of indices are in mla_sparse_decode_lists.c. */
#include "ref/format/minifloat.h"
#include "verify/operation/mla/mla_properties.h"
#include "verify/operation/mla_sparse_decode/mla_sparse_decode.h"

enum { SCALE_RANGE = 19, ROPE_IN_V = ASSAY_MLA_D_V };

static const struct assay_mla_sparse_decode_problem *
problem_of(const struct assay_property_run *run)
{
    return &((const struct assay_mla_sparse_decode_task *)run->problem)->problem;
}

/* Both runs and one of their caches, on the way through its attended tokens. */
struct walk {
    const struct assay_property_run *first, *second;
    struct assay_mla_pool_names pool;
    const struct assay_mla_token_layout *layout;
    bool (*change)(struct walk *, int64_t row, struct assay_mla_token *);
    int64_t slots; /* other than 0: token i goes to place slots - 1 - i */
    struct assay_mla_scores scores; /* queries are all rows of q */
};

static uint8_t *page_of(const struct assay_property_run *run, const struct walk *walk,
                        int64_t slot)
{
    const struct assay_tensor *const k_cache =
        assay_tensors_find(run->tensors, walk->pool.k_cache);
    return (uint8_t *)k_cache->data +
           slot / walk->pool.cache->page_size * k_cache->stride[0];
}

static bool change_token(void *context, int64_t row, int64_t slot)
{
    struct walk *const walk = context;
    const int64_t page_size = walk->pool.cache->page_size;
    const int64_t to = walk->slots ? walk->slots - 1 - slot : slot;
    struct assay_mla_token token;
    assay_mla_token_unpack(walk->layout, page_size, slot % page_size,
                           page_of(walk->first, walk, slot), &token);
    if (!walk->change(walk, row, &token)) return false;
    assay_mla_token_pack(walk->layout, page_size, to % page_size, &token,
                         page_of(walk->second, walk, to));
    return true;
}

/* Passes every attended token of the first run through @change into the second. */
static bool change_tokens(struct walk *walk)
{
    struct assay_mla_pool_names pools[2];
    const int count = assay_mla_sparse_decode_pools(walk->first->problem, pools);
    for (int i = 0; i < count; i++) {
        walk->pool = pools[i];
        walk->layout = &assay_mla_token_layouts[pools[i].cache->kv];
        if (!assay_mla_visit_attended(walk->first->problem, walk->first->tensors,
                                      &walk->pool, change_token, walk))
            return false;
    }
    return true;
}

/* --- constant values --------------------------------------------------------------- */

static bool set_value(struct walk *walk, int64_t row, struct assay_mla_token *token)
{
    (void)row;
    const struct assay_mla_token_layout *const layout = walk->layout;
    const uint32_t one =
        assay_minifloat_encode(assay_minifloat(layout->scale), 1, ASSAY_OVERFLOW_SPECIAL);
    for (int i = 0; i < layout->coded_dims; i++)
        token->code[i] = (uint8_t)assay_mla_constant_value(i, layout->code);
    for (int i = 0; i < layout->scales; i++)
        token->scale[i] = one;
    for (int i = 0; i < layout->rope_dims && layout->d_qk == ROPE_IN_V; i++)
        token->rope[i] =
            (uint16_t)assay_mla_constant_value(layout->coded_dims + i, ASSAY_BF16);
    return true;
}

static bool make_values_constant(const struct assay_property_run *first,
                                 const struct assay_property_run *second)
{
    struct walk walk = { .first = first, .second = second, .change = set_value };
    return assay_mla_copy_inputs(first, second) && change_tokens(&walk);
}

/* --- slots ------------------------------------------------------------------------- */

static bool keep(struct walk *walk, int64_t row, struct assay_mla_token *token)
{
    (void)walk, (void)row, (void)token;
    return true;
}

static void move_indices(const struct walk *walk)
{
    const struct assay_mla_sparse_decode_problem *const problem = problem_of(walk->first);
    const int64_t topk = walk->pool.cache->topk;
    for (int64_t i = 0; i < problem->b * problem->s_q * topk; i++) {
        const int32_t slot = assay_mla_integer(walk->first, walk->pool.indices, i);
        const int64_t length = assay_mla_pool_length(&walk->pool, walk->first->tensors,
                                                     i / topk / problem->s_q);
        if (i % topk < length && slot >= 0)
            assay_mla_set_integer(walk->second, walk->pool.indices, i,
                                  (int32_t)(walk->slots - 1 - slot));
    }
}

static bool move_tokens(const struct assay_property_run *first,
                        const struct assay_property_run *second)
{
    struct assay_mla_pool_names pools[2];
    const int count = assay_mla_sparse_decode_pools(first->problem, pools);
    if (!assay_mla_copy_inputs(first, second)) return false;
    for (int i = 0; i < count; i++) {
        struct walk walk = {
            .first = first,
            .second = second,
            .pool = pools[i],
            .layout = &assay_mla_token_layouts[pools[i].cache->kv],
            .change = keep,
            .slots = pools[i].cache->pages * pools[i].cache->page_size,
        };
        assay_mla_visit_attended(first->problem, first->tensors, &walk.pool, change_token,
                                 &walk);
        move_indices(&walk);
    }
    return true;
}

/* --- powers of two ----------------------------------------------------------------- */

static bool halve_rope(struct assay_mla_token *token,
                       const struct assay_mla_token_layout *layout, int range,
                       double *value)
{
    const struct assay_mla_scaling halved = { ASSAY_BF16, -1, -range, range };
    return assay_mla_scale_vector(&halved, token->rope, token->rope, layout->rope_dims,
                                  value);
}

static bool halve_token(struct walk *walk, int64_t row, struct assay_mla_token *token)
{
    const struct assay_mla_token_layout *const layout = walk->layout;
    const struct assay_minifloat *const code = assay_minifloat(layout->code);
    const struct assay_minifloat *const scale = assay_minifloat(layout->scale);
    const struct assay_mla_scaling halved = { layout->scale, -1, -SCALE_RANGE,
                                              SCALE_RANGE };
    const int64_t heads = problem_of(walk->first)->h_q;
    double value[ASSAY_MLA_MAX_D_QK];
    for (int i = 0; i < layout->coded_dims; i++)
        value[i] = assay_minifloat_decode(code, token->code[i]) *
                   assay_minifloat_decode(scale, token->scale[i / layout->scale_dims]);
    for (int i = 0; i < layout->scales; i++)
        if (!assay_mla_scale_code(&halved, &token->scale[i])) return false;
    if (!halve_rope(token, layout, ASSAY_MLA_VALUE_RANGE, value + layout->coded_dims))
        return false;
    assay_mla_scores_add(&walk->scores, row * heads, heads, value);
    return true;
}

static bool halve_tail(struct walk *walk, int64_t row, struct assay_mla_token *token)
{
    (void)row;
    return halve_rope(token, walk->layout, ASSAY_MLA_FACTOR_RANGE, NULL);
}

static bool scale_keys(const struct assay_property_run *first,
                       const struct assay_property_run *second)
{
    const struct assay_mla_sparse_decode_problem *const problem = problem_of(first);
    const int64_t d_qk = assay_mla_d_qk(problem->cache.kv);
    struct walk walk = { .first = first, .second = second, .change = halve_token };
    const bool is_scaled =
        assay_mla_copy_inputs(first, second) &&
        assay_mla_scores_open(&walk.scores, problem->b * problem->s_q * problem->h_q,
                              d_qk) &&
        assay_mla_double_queries(first, second, 0, &walk.scores) &&
        change_tokens(&walk) &&
        assay_mla_are_weights_normal(&walk.scores, problem->softmax_scale);
    assay_mla_scores_close(&walk.scores);
    return is_scaled;
}

static bool has_tail(const struct assay_property_run *first, struct assay_case *second)
{
    (void)second;
    return problem_of(first)->cache.kv == ASSAY_MLA_V32;
}

static bool scale_tail(const struct assay_property_run *first,
                       const struct assay_property_run *second)
{
    struct walk walk = { .first = first, .second = second, .change = halve_tail };
    return assay_mla_copy_inputs(first, second) && change_tokens(&walk) &&
           assay_mla_double_queries(first, second, ASSAY_MLA_D_V, NULL);
}

/* --- neighbours -------------------------------------------------------------------- */

static void negate(const struct assay_mla_token_layout *layout,
                   struct assay_mla_token *token)
{
    for (int i = 0; i < layout->coded_dims; i++)
        token->code[i] ^= layout->code == ASSAY_E2M1 ? 0x8 : 0x80;
    for (int i = 0; i < layout->rope_dims; i++)
        token->rope[i] ^= 0x8000;
}

static bool negate_odd(struct walk *walk, int64_t row, struct assay_mla_token *token)
{
    if (row / problem_of(walk->first)->s_q % 2) negate(walk->layout, token);
    return true;
}

/* Writes what even requests attend to once more, for odd ones may attend to it too. */
static bool restore_even(void *context, int64_t row, int64_t slot)
{
    const struct walk *const walk = context;
    return row / problem_of(walk->first)->s_q % 2 || change_token(context, row, slot);
}

static bool has_neighbours(const struct assay_property_run *first,
                           struct assay_case *second)
{
    (void)second;
    return problem_of(first)->b > 1;
}

static bool change_requests(const struct assay_property_run *first,
                            const struct assay_property_run *second)
{
    struct assay_mla_pool_names pools[2];
    struct walk walk = { .first = first, .second = second, .change = negate_odd };
    const int count = assay_mla_sparse_decode_pools(first->problem, pools);
    if (!assay_mla_copy_inputs(first, second) || !change_tokens(&walk)) return false;
    assay_mla_negate_odd_entries(first, second, "q");
    for (int i = 0; i < count; i++) {
        walk.pool = pools[i];
        walk.layout = &assay_mla_token_layouts[pools[i].cache->kv];
        assay_mla_visit_attended(first->problem, first->tensors, &walk.pool, restore_even,
                                 &walk);
    }
    return true;
}

static bool change_rows(const struct assay_property_run *first,
                        const struct assay_property_run *second)
{
    if (!assay_mla_copy_inputs(first, second)) return false;
    assay_mla_negate_odd_rows(first, second, "q");
    return true;
}

/* --- other plans ------------------------------------------------------------------- */

static bool derive_rotated(const struct assay_property_run *first,
                           struct assay_case *second)
{
    return has_neighbours(first, second) &&
           assay_mla_rotate_list(second, "topk_length") &&
           assay_mla_rotate_list(second, "extra_topk_length") &&
           assay_mla_is_derived(second);
}

static bool plan_anew(const struct assay_property_run *first,
                      const struct assay_property_run *second)
{
    const struct assay_mla_plan_problem plan =
        assay_mla_sparse_decode_plan(problem_of(second));
    if (!assay_mla_copy_inputs(first, second)) return false;
    assay_mla_write_plan(&plan, second);
    return true;
}

static bool rotate(const struct assay_property_run *first,
                   const struct assay_property_run *second)
{
    static const char *const names[] = {
        "q",           "indices",           "topk_length",   "extra_indices_in_kvcache",
        "block_table", "extra_topk_length", "cache_seqlens",
    };
    const struct assay_mla_plan_problem plan =
        assay_mla_sparse_decode_plan(problem_of(second));
    if (!assay_mla_copy_inputs(first, second)) return false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assay_mla_rotate_entries(first, second, names[i]);
    assay_mla_write_plan(&plan, second);
    return true;
}

static bool expect_rotated(const struct assay_property_run *first,
                           const struct assay_property_run *second, int output,
                           int64_t element, uint32_t *bits)
{
    const struct assay_mla_plan_problem plan =
        assay_mla_sparse_decode_plan(problem_of(first));
    const struct assay_tensor *const tensor = &second->tensors->item[output];
    const int64_t request = element / (assay_tensor_elements(tensor) / plan.b);
    return assay_mla_expect_rotated(first, second, output, element, bits) &&
           assay_mla_has_same_splits(&plan, first, (request + 1) % plan.b, second,
                                     request);
}

const struct assay_property assay_mla_sparse_decode_properties[] = {
    { "constant_values", "all values are one vector", ASSAY_PROPERTY_MATHEMATICS, NULL,
      make_values_constant, NULL },
    { "reversed_indices", "the last index that counts comes first",
      ASSAY_PROPERTY_MATHEMATICS, NULL, assay_mla_sparse_decode_reverse, NULL },
    { "moved_padding", "indices of -1 come after all others", ASSAY_PROPERTY_MATHEMATICS,
      NULL, assay_mla_sparse_decode_move_padding, NULL },
    { "padded_indices", "64 more indices of -1", ASSAY_PROPERTY_MATHEMATICS,
      assay_mla_sparse_decode_derive_padded, assay_mla_sparse_decode_pad, NULL },
    { "moved_tokens", "tokens lie in other slots, in another order",
      ASSAY_PROPERTY_MATHEMATICS, NULL, move_tokens, NULL },
    { "scaled_keys", "queries twice, keys half: out half, lse the same, to the bit",
      ASSAY_PROPERTY_MATHEMATICS, NULL, scale_keys, assay_mla_expect_half },
    { "scaled_tail", "queries twice, keys half beside the values: the same bits",
      ASSAY_PROPERTY_MATHEMATICS, has_tail, scale_tail, assay_mla_expect_same },
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
    { "longer_lists", "64 more indices of -1: the same bits where nothing is split",
      ASSAY_PROPERTY_BATCH, assay_mla_sparse_decode_derive_padded,
      assay_mla_sparse_decode_pad, assay_mla_sparse_decode_expect_padded },
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
