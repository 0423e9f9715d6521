/* SPDX-License-Identifier: MIT */
#include "ref/oracle/fp8_gemm_grouped.h"

static const struct assay_tensor *named(const struct assay_tensors *tensors,
                                        const char *name)
{
    return assay_tensors_find(tensors, name);
}

/* Rows row + [0, rows) and columns column + [0, columns). */
static struct assay_tensor box(struct assay_tensor tensor, int64_t row, int64_t rows,
                               int64_t column, int64_t columns)
{
    const int64_t bytes = (int64_t)assay_format_bytes(tensor.format);
    tensor.data = (char *)tensor.data +
                  (row * tensor.stride[0] + column * tensor.stride[1]) * bytes;
    tensor.shape[0] = rows;
    tensor.shape[1] = columns;
    return tensor;
}

/* Group @g of a tensor with groups as first dimension; 2-D tensors are all groups'. */
static struct assay_tensor of_group(const struct assay_tensor *tensor, int64_t g)
{
    return tensor->rank == 3 ? assay_tensor_slice(tensor, g) : *tensor;
}

/* The group that row @row counts for; -1 if it is undefined. */
static int64_t group_of_row(const struct assay_fp8_gemm_grouped_problem *problem,
                            const struct assay_tensors *tensors, int64_t slab,
                            int64_t row)
{
    if (problem->grouping == ASSAY_M_GROUPED_CONTIGUOUS)
        return ((const int32_t *)named(tensors, "m_indices")->data)[row];
    if (problem->grouping == ASSAY_M_GROUPED_MASKED)
        return row < ((const int32_t *)named(tensors, "masked_m")->data)[slab] ? slab
                                                                               : -1;
    return slab;
}

/* Operand and scales of group @g where K is split among the groups: seen as dense. */
static struct assay_tensor
k_group_operand(const struct assay_fp8_gemm_grouped_problem *problem,
                const struct assay_tensor *flat, int64_t rows, int64_t g)
{
    int64_t before = 0;
    for (int64_t i = 0; i < g; i++)
        before += problem->group_k[i] * rows;
    const bool is_transposed = problem->grouping == ASSAY_K_GROUPED_TN;
    struct assay_tensor group = *flat;
    group.rank = 2;
    group.shape[0] = rows;
    group.shape[1] = problem->group_k[g];
    group.stride[0] = is_transposed ? 1 : problem->group_k[g];
    group.stride[1] = is_transposed ? rows : 1;
    group.data = (char *)flat->data + before;
    return group;
}

static struct assay_tensor
k_group_scale(const struct assay_fp8_gemm_grouped_problem *problem,
              const struct assay_tensor *scale, int64_t g)
{
    int64_t before = 0;
    for (int64_t i = 0; i < g; i++)
        before += (problem->group_k[i] + 127) / 128;
    struct assay_tensor group = *scale;
    group.shape[0] = scale->shape[1];
    group.shape[1] = (problem->group_k[g] + 127) / 128;
    group.stride[0] = scale->stride[1];
    group.stride[1] = scale->stride[0];
    group.data = (float *)scale->data + before * scale->stride[0];
    return group;
}

static void describe(const struct assay_fp8_gemm_grouped_problem *problem,
                     const struct assay_tensors *tensors, int64_t slab, int64_t group,
                     int64_t row, const struct assay_fp8_gemm_tile_range *range,
                     struct assay_grouped_rows *run)
{
    const bool is_k_grouped = problem->grouping >= ASSAY_K_GROUPED_NT;
    const struct assay_fp8_gemm_problem *const gemm = &problem->gemm;
    run->gemm = *gemm;
    run->gemm.m = run->rows;
    run->gemm.n = range->columns;
    if (is_k_grouped) run->gemm.k = problem->group_k[group];
    run->keeps_c = is_k_grouped && run->gemm.k == 0;

    struct assay_tensor a = of_group(named(tensors, "a"), slab);
    struct assay_tensor b = of_group(named(tensors, "b"), group);
    struct assay_tensor sfa = of_group(named(tensors, "sfa"), slab);
    struct assay_tensor sfb = of_group(named(tensors, "sfb"), group);
    if (is_k_grouped) {
        a = k_group_operand(problem, named(tensors, "a"), gemm->m, group);
        b = k_group_operand(problem, named(tensors, "b"), gemm->n, group);
        sfa = k_group_scale(problem, named(tensors, "sfa"), group);
        sfb = k_group_scale(problem, named(tensors, "sfb"), group);
    }
    const int64_t sfb_row = range->n0 / gemm->gran_n;
    const int64_t sfb_rows = (range->columns + gemm->gran_n - 1) / gemm->gran_n;
    struct assay_tensors *const own = &run->tensors;
    own->count = 0;
    own->item[own->count++] = box(a, row, run->rows, 0, a.shape[1]);
    own->item[own->count++] = box(sfa, row, run->rows, 0, sfa.shape[1]);
    own->item[own->count++] = box(b, range->n0, range->columns, 0, b.shape[1]);
    own->item[own->count++] = box(sfb, sfb_row, sfb_rows, 0, sfb.shape[1]);
    if (gemm->has_c)
        own->item[own->count++] = box(of_group(named(tensors, "c"), slab), row, run->rows,
                                      range->n0, range->columns);
    own->item[own->count++] = box(of_group(named(tensors, "d"), slab), row, run->rows,
                                  range->n0, range->columns);
}

bool assay_grouped_rows_next(const struct assay_fp8_gemm_grouped_problem *problem,
                             const struct assay_tensors *tensors, int64_t part,
                             int64_t from, struct assay_grouped_rows *run)
{
    const int64_t parts = assay_fp8_gemm_parts(&problem->gemm);
    const int64_t slab = part / parts;
    const struct assay_fp8_gemm_tile_range range =
        assay_fp8_gemm_part_range(&problem->gemm, part % parts);
    while (from < range.rows && group_of_row(problem, tensors, slab, range.m0 + from) < 0)
        from++;
    if (from >= range.rows) return false;
    const int64_t group = group_of_row(problem, tensors, slab, range.m0 + from);
    int64_t end = from + 1;
    while (end < range.rows &&
           group_of_row(problem, tensors, slab, range.m0 + end) == group)
        end++;
    *run = (struct assay_grouped_rows){ .first = from, .rows = end - from };
    describe(problem, tensors, slab, group, range.m0 + from, &range, run);
    return true;
}
