/* SPDX-License-Identifier: MIT */
/* Where the operands of each group lie, and whether anybody owns them. */
#include "verify/operation/fp8_gemm_grouped/fp8_gemm_grouped_views.h"

#include "verify/operation/fp8_gemm_grouped/fp8_gemm_grouped.h"

#include <string.h>

enum { BLOCK = ASSAY_GROUPED_BLOCK, ALIGNMENT = ASSAY_GROUP_ALIGNMENT };

static bool is_k_grouped(const struct assay_fp8_gemm_grouped_nt_problem *problem)
{
    return problem->grouped.grouping >= ASSAY_K_GROUPED_NT;
}

static int64_t first_row(const struct assay_fp8_gemm_grouped_nt_problem *problem,
                         int group)
{
    int64_t first = 0;
    for (int g = 0; g < group; g++)
        first += (problem->group_m[g] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return first;
}

static int count(const void *bound)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = bound;
    return problem->grouped.groups;
}

static void open_k_group(const struct assay_property_run *run, int group,
                         struct assay_gemm_view *view)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = run->problem;
    int64_t before = 0;
    for (int g = 0; g < group; g++)
        before += problem->grouped.group_k[g];
    view->k = problem->grouped.group_k[group];
    view->rows = problem->grouped.gemm.m;
    view->has_c = true;
    view->c = assay_tensor_slice(&view->c, group);
    view->a = assay_k_grouped_operand(&view->a, view->rows, before, view->k);
    view->b = assay_k_grouped_operand(&view->b, view->columns, before, view->k);
    struct assay_tensor *const scales[] = { &view->sfa, &view->sfb };
    for (int i = 0; i < 2; i++) {
        const struct assay_tensor share =
            assay_tensor_rows(scales[i], before / BLOCK, view->k / BLOCK);
        *scales[i] = assay_tensor_transposed(&share);
    }
}

static void open_m_group(const struct assay_property_run *run, int group,
                         struct assay_gemm_view *view)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = run->problem;
    const bool is_masked = problem->grouped.grouping == ASSAY_M_GROUPED_MASKED;
    const int64_t first = is_masked ? 0 : first_row(problem, group);
    view->rows = problem->group_m[group];
    view->k = problem->grouped.gemm.k;
    view->b = assay_tensor_slice(&view->b, group);
    view->sfb = assay_tensor_slice(&view->sfb, group);
    if (is_masked) {
        view->a = assay_tensor_slice(&view->a, group);
        view->sfa = assay_tensor_slice(&view->sfa, group);
    }
    view->a = assay_tensor_rows(&view->a, first, view->rows);
    view->sfa = assay_tensor_rows(&view->sfa, first, view->rows);
}

static void open(const struct assay_property_run *run, int group,
                 struct assay_gemm_view *view)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = run->problem;
    const struct assay_fp8_gemm_problem *const gemm = &problem->grouped.gemm;
    *view = (struct assay_gemm_view){
        .a = *assay_tensors_find(run->tensors, "a"),
        .b = *assay_tensors_find(run->tensors, "b"),
        .sfa = *assay_tensors_find(run->tensors, "sfa"),
        .sfb = *assay_tensors_find(run->tensors, "sfb"),
        .columns = gemm->n,
        .gran_m = gemm->gran_m,
        .gran_n = gemm->gran_n,
        .gran_k = gemm->gran_k,
    };
    if (!is_k_grouped(problem)) {
        open_m_group(run, group, view);
        return;
    }
    view->c = *assay_tensors_find(run->tensors, "c");
    open_k_group(run, group, view);
}

/* Of the first element of a row of d, which may have none. */
static struct assay_gemm_place row_place(const struct assay_property_run *run,
                                         int64_t row)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = run->problem;
    const int64_t m = problem->grouped.gemm.m;
    struct assay_gemm_place where = { -1, 0, 0 };
    if (problem->grouped.grouping == ASSAY_M_GROUPED_CONTIGUOUS) {
        for (int g = 0; g < problem->grouped.groups; g++) {
            const int64_t offset = row - first_row(problem, g);
            if (offset < 0 || offset >= problem->group_m[g]) continue;
            where.group = g;
            where.row = offset;
        }
        return where;
    }
    const int group = (int)(row / m);
    where.row = row % m;
    if (is_k_grouped(problem) || where.row < problem->group_m[group]) where.group = group;
    return where;
}

static struct assay_gemm_place place(const struct assay_property_run *run,
                                     int64_t element)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = run->problem;
    const int64_t n = problem->grouped.gemm.n;
    struct assay_gemm_place where = row_place(run, element / n);
    where.column = element % n;
    return where;
}

static int64_t element_of(const struct assay_property_run *run,
                          const struct assay_gemm_place *where)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = run->problem;
    const int64_t m = problem->grouped.gemm.m, n = problem->grouped.gemm.n;
    const int64_t first = problem->grouped.grouping == ASSAY_M_GROUPED_CONTIGUOUS
                              ? first_row(problem, where->group)
                              : where->group * m;
    return (first + where->row) * n + where->column;
}

const struct assay_gemm_views assay_grouped_views = { count, open, place, element_of };

int assay_grouped_group_of_row(const struct assay_property_run *run, int64_t row)
{
    return row_place(run, row).group;
}

bool assay_grouped_is_as_said(const struct assay_property_run *run)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = run->problem;
    const int groups = problem->grouped.groups;
    if (problem->grouped.grouping == ASSAY_M_GROUPED_CONTIGUOUS) {
        const struct assay_tensor *const labels =
            assay_tensors_find(run->tensors, "m_indices");
        for (int64_t row = 0; row < problem->grouped.gemm.m; row++) {
            const int32_t label = (int32_t)assay_tensor_bits(labels, row);
            const int group = assay_grouped_group_of_row(run, row);
            if (label < 0 ? group >= 0 : group != label) return false;
        }
        return true;
    }
    const bool is_masked = problem->grouped.grouping == ASSAY_M_GROUPED_MASKED;
    const struct assay_tensor *const sizes =
        assay_tensors_find(run->tensors, is_masked ? "masked_m" : "grouped_layout");
    const int64_t *const said = is_masked ? problem->group_m : problem->grouped.group_k;
    for (int g = 0; g < groups; g++)
        if ((int32_t)assay_tensor_bits(sizes, g) != said[g]) return false;
    return true;
}

static void mark_groups(const struct assay_tensors *tensors, const char *sizes,
                        int64_t groups, int64_t each, uint8_t *is_used)
{
    const struct assay_tensor *const tensor = assay_tensors_find(tensors, sizes);
    const bool are_labels = strcmp(sizes, "m_indices") == 0;
    memset(is_used, 0, (size_t)(groups * each));
    for (int64_t i = 0; i < tensor->shape[0]; i++) {
        const int32_t entry = (int32_t)assay_tensor_bits(tensor, i);
        const int64_t group = are_labels ? entry : entry > 0 ? i : -1;
        if (group >= 0 && group < groups) memset(is_used + group * each, 1, (size_t)each);
    }
}

static void mark_rows(const struct assay_tensors *tensors, const char *sizes,
                      int64_t room, int64_t each, uint8_t *is_used)
{
    const struct assay_tensor *const tensor = assay_tensors_find(tensors, sizes);
    const bool are_labels = strcmp(sizes, "m_indices") == 0;
    for (int64_t i = 0; i < tensor->shape[0] * (are_labels ? 1 : room); i++) {
        const int32_t entry =
            (int32_t)assay_tensor_bits(tensor, are_labels ? i : i / room);
        const bool counts = are_labels ? entry >= 0 : i % room < entry;
        memset(is_used + i * each, counts, (size_t)each);
    }
}

void assay_m_grouped_used(const void *bound, const struct assay_tensors *tensors,
                          int input, uint8_t *is_used)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = bound;
    const bool is_masked = problem->grouped.grouping == ASSAY_M_GROUPED_MASKED;
    const char *const sizes = is_masked ? "masked_m" : "m_indices";
    const struct assay_tensor *const tensor = &tensors->item[input];
    const int64_t elements = assay_tensor_elements(tensor);
    const int64_t groups = problem->grouped.groups, m = problem->grouped.gemm.m;
    const int64_t rows = is_masked ? groups * m : m;
    const bool is_a = strcmp(tensor->name, "a") == 0 || strcmp(tensor->name, "sfa") == 0;
    if (strcmp(tensor->name, sizes) == 0)
        memset(is_used, 1, (size_t)elements);
    else if (elements > 0 && is_a)
        mark_rows(tensors, sizes, m, elements / rows, is_used);
    else if (elements > 0)
        mark_groups(tensors, sizes, groups, elements / groups, is_used);
}
