/* SPDX-License-Identifier: MIT */
/* Grouped FP8 GEMMs: several dense ones (ref/fp8_gemm_problem.h) that share a call.
 *
 * m_grouped contiguous: a [m, k] and d [m, n] hold the rows of all groups, each group
 *     beginning at a multiple of 128; m_indices [m] (i32) says whose a row is, -1 is
 *     nobody's;
 *     b [groups, n, k], sfb [groups, ...]. Rows of -1 are undefined.
 * m_grouped masked: a [groups, m, k], d [groups, m, n]; masked_m [groups] (i32) says how
 *     many rows of a group count. Rows from masked_m to the next multiple of 128 are
 *     undefined, those beyond untouched.
 * k_grouped nt: a holds, one group after the other, m x k_g matrices, b n x k_g ones; sfa
 *     [sum of ceil(k_g / 128), m] and sfb [..., n] are MN-major with rows of align(m, 4);
 *     d [groups, m, n] = c [groups, m, n] + a_g b_g^T. A group of k_g = 0 keeps c's bits.
 * k_grouped tn: the same with a [sum of k_g, m] and b [sum of k_g, n]. */
#ifndef ASSAY_REF_FP8_GEMM_GROUPED_PROBLEM_H
#define ASSAY_REF_FP8_GEMM_GROUPED_PROBLEM_H

#include "ref/fp8_gemm_problem.h"

enum { ASSAY_MAX_GROUPS = 128, ASSAY_GROUP_ALIGNMENT = 128 };

enum assay_grouping {
    ASSAY_M_GROUPED_CONTIGUOUS,
    ASSAY_M_GROUPED_MASKED,
    ASSAY_K_GROUPED_NT,
    ASSAY_K_GROUPED_TN,
};

struct assay_fp8_gemm_grouped_problem {
    enum assay_grouping grouping;
    int groups;
    /* One group: m is all rows (contiguous), rows a group has room for (masked), or rows
     * of every group (k-grouped); k is 0 where groups differ. */
    struct assay_fp8_gemm_problem gemm;
    int64_t group_k[ASSAY_MAX_GROUPS]; /* k-grouped */
};

static inline int64_t
assay_fp8_gemm_grouped_parts(const struct assay_fp8_gemm_grouped_problem *problem)
{
    const bool has_one_d = problem->grouping == ASSAY_M_GROUPED_CONTIGUOUS;
    return assay_fp8_gemm_parts(&problem->gemm) * (has_one_d ? 1 : problem->groups);
}

#endif
