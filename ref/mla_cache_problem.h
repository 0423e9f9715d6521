/* SPDX-License-Identifier: MIT */
/* What the quantiser and the dequantiser of an FP8 or FP4 cache are asked to compute,
 * without a word on how: the input that model and oracle have in common. Tokens lie in
 * the pages one after the other; each has tiles of elements with a scale s:
 *
 *   s = max(amax of |x| over the tile / 448, 1e-4)        1e-4 as the nearest f32
 *   code = e4m3(x / s)                                    at most 448
 *
 * s is rounded up to a power of two first, but for v32 without has_power_of_two_scale.
 * v41_fp4: s = e4m3(amax / 6 clamped to [2^-9, 448]), code = e2m1(x / s), at most 6; a
 * NaN or infinity in a tile makes s NaN and all codes 0. The other way:
 *
 *   key = bf16(code * s)
 *
 * The last elements of v32 and model1 are kept in bf16.
 *
 * Tensors: x [tokens, d_qk] (bf16) and k_cache [pages, page bytes] (u8, rows page_stride
 * apart; what belongs to no token stays as it is), or k_cache and key [tokens, d_qk]
 * (bf16). Source: tests/quant.py of FlashMLA, 9241ae3 for v32 and model1, 9a7d253 for
 * v41. */
#ifndef ASSAY_REF_MLA_CACHE_PROBLEM_H
#define ASSAY_REF_MLA_CACHE_PROBLEM_H

#include "ref/mla_problem.h"

struct assay_mla_cache_problem {
    enum assay_mla_kv kv;
    int64_t tokens, page_size;   /* tokens a page */
    int64_t page_stride;         /* bytes from page to page, at least the page's own */
    bool has_power_of_two_scale; /* of the formats with one, and of v32 if it is true */
    bool is_unsafe;
};

/* A part is one page with its tokens; all pages have some. */
static inline int64_t assay_mla_cache_pages(const struct assay_mla_cache_problem *problem)
{
    return (problem->tokens + problem->page_size - 1) / problem->page_size;
}

/* Tokens in page @page; the first is page * page_size. */
static inline int64_t
assay_mla_cache_tokens(const struct assay_mla_cache_problem *problem, int64_t page)
{
    const int64_t rest = problem->tokens - page * problem->page_size;
    return rest < problem->page_size ? rest : problem->page_size;
}

#endif
