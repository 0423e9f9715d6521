/* SPDX-License-Identifier: MIT */
#include "ref/kernel/fp8_gemm_grouped.h"

#include <string.h>

enum { TILE_M = ASSAY_FP8_GEMM_TILE_M, BLOCK_M = 128, BLOCK_K = 128 };

/* A dense GEMM inside the grouped one, and the part of it that is asked for. */
struct dense {
    struct assay_fp8_gemm_problem problem;
    struct assay_tensors tensors;
    int64_t part;
};

static const struct assay_tensor *named(const struct assay_tensors *tensors,
                                        const char *name)
{
    return assay_tensors_find(tensors, name);
}

static void add(struct dense *dense, struct assay_tensor tensor)
{
    dense->tensors.item[dense->tensors.count++] = tensor;
}

static int32_t index_at(const struct assay_tensor *indices, int64_t i)
{
    return ((const int32_t *)indices->data)[i];
}

/* B and its scales come from the id in the first row of the 128-row tile, a negative one
 * counting as group 0; a 64-row slice whose first row is nobody's stores zeros. */
static bool select_contiguous(const struct assay_fp8_gemm_grouped_problem *problem,
                              const struct assay_tensors *tensors, struct dense *dense)
{
    const struct assay_tensor *const m_indices = named(tensors, "m_indices");
    const int64_t m0 = assay_fp8_gemm_part_range(&problem->gemm, dense->part).m0;
    const int32_t owner = index_at(m_indices, m0 / BLOCK_M * BLOCK_M);
    const int32_t group = owner < 0 ? 0 : owner;
    dense->problem = problem->gemm;
    add(dense, *named(tensors, "a"));
    add(dense, *named(tensors, "sfa"));
    add(dense, assay_tensor_slice(named(tensors, "b"), group));
    add(dense, assay_tensor_slice(named(tensors, "sfb"), group));
    add(dense, *named(tensors, "d"));
    return index_at(m_indices, m0) >= 0;
}

/* A slice is computed if its first row counts. */
static bool select_masked(const struct assay_fp8_gemm_grouped_problem *problem,
                          const struct assay_tensors *tensors, struct dense *dense)
{
    const int64_t parts = assay_fp8_gemm_parts(&problem->gemm);
    const int64_t group = dense->part / parts;
    static const char *const names[] = { "a", "sfa", "b", "sfb", "d" };
    dense->problem = problem->gemm;
    dense->part %= parts;
    for (int i = 0; i < 5; i++)
        add(dense, assay_tensor_slice(named(tensors, names[i]), group));
    return assay_fp8_gemm_part_range(&problem->gemm, dense->part).m0 <
           index_at(named(tensors, "masked_m"), group);
}

/* Group g of an operand, as rows x k codes: one matrix behind the other (nt), or the
 * transpose of its share of all K (tn). */
static struct assay_tensor k_group(const struct assay_fp8_gemm_grouped_problem *problem,
                                   const struct assay_tensor *operand, int64_t rows,
                                   int64_t k_before, int64_t k)
{
    if (problem->grouping == ASSAY_K_GROUPED_TN) {
        const struct assay_tensor share = assay_tensor_rows(operand, k_before, k);
        return assay_tensor_transposed(&share);
    }
    struct assay_tensor matrix = *operand;
    matrix.rank = 2;
    matrix.shape[0] = rows;
    matrix.shape[1] = matrix.stride[0] = k;
    matrix.stride[1] = 1;
    matrix.data = (char *)operand->data + rows * k_before;
    return matrix;
}

/* MN-major scales of a group, seen as [rows, blocks]. */
static struct assay_tensor scale_group(const struct assay_tensor *scale,
                                       int64_t blocks_before, int64_t blocks)
{
    const struct assay_tensor share = assay_tensor_rows(scale, blocks_before, blocks);
    return assay_tensor_transposed(&share);
}

static bool select_k_group(const struct assay_fp8_gemm_grouped_problem *problem,
                           const struct assay_tensors *tensors, struct dense *dense)
{
    const int64_t parts = assay_fp8_gemm_parts(&problem->gemm);
    const int64_t group = dense->part / parts;
    const int64_t k = problem->group_k[group];
    int64_t k_before = 0;
    for (int64_t g = 0; g < group; g++)
        k_before += problem->group_k[g];
    dense->problem = problem->gemm;
    dense->problem.k = k;
    dense->part %= parts;
    add(dense, k_group(problem, named(tensors, "a"), problem->gemm.m, k_before, k));
    add(dense, k_group(problem, named(tensors, "b"), problem->gemm.n, k_before, k));
    add(dense, scale_group(named(tensors, "sfa"), k_before / BLOCK_K, k / BLOCK_K));
    add(dense, scale_group(named(tensors, "sfb"), k_before / BLOCK_K, k / BLOCK_K));
    add(dense, assay_tensor_slice(named(tensors, "c"), group));
    add(dense, assay_tensor_slice(named(tensors, "d"), group));
    return true;
}

/* What a skipped tile holds: zeros where it is stored all the same, nothing new where it
 * is never scheduled. */
static void skip(enum assay_grouping grouping, const struct dense *dense)
{
    const struct assay_fp8_gemm_tile_range range =
        assay_fp8_gemm_part_range(&dense->problem, dense->part);
    const struct assay_tensor *const d = named(&dense->tensors, "d");
    if (grouping == ASSAY_M_GROUPED_MASKED) return;
    for (int64_t row = range.m0; row < range.m0 + range.rows; row++)
        for (int64_t column = range.n0; column < range.n0 + range.columns; column++)
            assay_tensor_set_bits(d, row * dense->problem.n + column, 0);
}

void assay_fp8_gemm_grouped_model(const struct assay_fp8_gemm_grouped_problem *problem,
                                  const struct assay_fp8_gemm_numerics *numerics,
                                  const struct assay_tensors *tensors, int64_t part)
{
    static bool (*const select[])(const struct assay_fp8_gemm_grouped_problem *,
                                  const struct assay_tensors *, struct dense *) = {
        [ASSAY_M_GROUPED_CONTIGUOUS] = select_contiguous,
        [ASSAY_M_GROUPED_MASKED] = select_masked,
        [ASSAY_K_GROUPED_NT] = select_k_group,
        [ASSAY_K_GROUPED_TN] = select_k_group,
    };
    struct dense dense = { .part = part };
    if (select[problem->grouping](problem, tensors, &dense))
        assay_fp8_gemm_model(&dense.problem, numerics, &dense.tensors, dense.part);
    else
        skip(problem->grouping, &dense);
}
