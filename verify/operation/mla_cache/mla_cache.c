/* SPDX-License-Identifier: MIT */
/* Keys of the cache operations, what they may be, and the tensors they mean. */
#include "verify/operation/mla_cache/mla_cache.h"

enum { MAX_TOKENS = 1 << 20, MAX_PAGE = 4096, MAX_PADDING = 1 << 20 };
enum scale_kind { SCALE_POWER_OF_TWO, SCALE_F32 };

static const struct assay_choice layouts[] = {
    { "v32", ASSAY_MLA_V32, "656 bytes: 512 e4m3, 4 f32 scales, 64 bf16" },
    { "model1", ASSAY_MLA_MODEL1, "584: 448 e4m3, 64 bf16; 7 ue8m0 behind the page" },
    { "v41_fp8", ASSAY_MLA_V41_FP8, "528: 512 e4m3, 16 ue8m0" },
    { "v41_fp4", ASSAY_MLA_V41_FP4, "288: 512 e2m1, 32 e4m3" },
    { NULL, 0, NULL },
};
static const struct assay_choice scales[] = {
    { "power_of_two", SCALE_POWER_OF_TWO, "as upstream's quantiser has them" },
    { "f32", SCALE_F32, "any; kv=v32 only" },
    { NULL, 0, NULL },
};

const struct assay_parameter assay_mla_cache_parameters[] = {
    { .name = "kv",
      .meaning = "layout of a token",
      .choices = layouts,
      .is_required = true },
    { .name = "tokens",
      .meaning = "tokens in the cache, one after the other",
      .minimum = 1,
      .maximum = MAX_TOKENS,
      .is_required = true },
    { .name = "page_size",
      .meaning = "tokens a page has room for",
      .minimum = 1,
      .maximum = MAX_PAGE,
      .default_value = 64 },
    { .name = "page_padding", .meaning = "bytes between pages", .maximum = MAX_PADDING },
    { .name = "scale",
      .meaning = "what the scales of v32 are",
      .choices = scales,
      .default_value = SCALE_POWER_OF_TWO },
    { .name = NULL },
};

static int64_t page_bytes(const struct assay_mla_cache_problem *problem)
{
    return assay_mla_token_layouts[problem->kv].token_bytes * problem->page_size;
}

enum assay_status assay_mla_cache_bind(const struct assay_case *the_case, void *bound,
                                       struct assay_message *message)
{
    struct assay_mla_cache_problem *const problem = bound;
    *problem = (struct assay_mla_cache_problem){
        .kv = (enum assay_mla_kv)assay_case_value(the_case, "kv"),
        .tokens = assay_case_value(the_case, "tokens"),
        .page_size = assay_case_value(the_case, "page_size"),
        .has_power_of_two_scale =
            assay_case_value(the_case, "scale") == SCALE_POWER_OF_TWO,
        .is_unsafe = the_case->is_unsafe,
    };
    problem->page_stride =
        page_bytes(problem) + assay_case_value(the_case, "page_padding");
    if (!problem->has_power_of_two_scale && problem->kv != ASSAY_MLA_V32)
        return assay_fail(
            message, ASSAY_REFUSED,
            "scale=f32 needs scales in f32, which kv=%s has not; use kv=v32 "
            "or leave scale out",
            assay_mla_token_layouts[problem->kv].name);
    return ASSAY_RAN;
}

struct assay_tensor assay_mla_cache_tensor(const struct assay_mla_cache_problem *problem)
{
    return (struct assay_tensor){
        .name = "k_cache",
        .format = ASSAY_U8,
        .rank = 2,
        .shape = { assay_mla_cache_pages(problem), page_bytes(problem) },
        .stride = { problem->page_stride, 1 },
    };
}

struct assay_tensor assay_mla_keys_tensor(const struct assay_mla_cache_problem *problem,
                                          const char *name)
{
    struct assay_tensor tensor = {
        .name = name,
        .format = ASSAY_BF16,
        .rank = 2,
        .shape = { problem->tokens, assay_mla_d_qk(problem->kv) },
    };
    assay_tensor_set_dense(&tensor);
    return tensor;
}

int64_t assay_mla_cache_parts(const void *problem)
{
    return assay_mla_cache_pages(problem);
}

struct assay_cost assay_mla_cache_cost(const void *bound)
{
    const struct assay_mla_cache_problem *const problem = bound;
    const double tokens = (double)problem->tokens;
    const double elements = (double)assay_mla_d_qk(problem->kv);
    return (struct assay_cost){
        .multiply_adds = tokens * elements,
        .bytes =
            tokens * (2 * elements + assay_mla_token_layouts[problem->kv].token_bytes),
    };
}

bool assay_mla_cache_is_constant_by_design(const void *problem)
{
    (void)problem;
    return false;
}

/* Scales are powers of two, and codes times scales are bf16 values. */
bool assay_mla_cache_is_exact(const void *problem, enum assay_data_kind kind, int output)
{
    (void)problem;
    return kind == ASSAY_DATA_EXACT && output == ASSAY_MLA_CACHE_OUTPUT;
}
