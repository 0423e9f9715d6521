/* SPDX-License-Identifier: MIT */
/* Relations of the grouped GEMMs: those of the dense one group by group, and that groups
 * and the rows of nobody do not touch the rows of others. */
#include "verify/operation/fp8_gemm_grouped/fp8_gemm_grouped_properties.h"

#include "verify/operation/fp8_gemm_grouped/fp8_gemm_grouped.h"
#include "verify/operation/fp8_gemm_grouped/fp8_gemm_grouped_views.h"

#include <stdlib.h>
#include <string.h>

static bool double_scales(const struct assay_property_run *first,
                          const struct assay_property_run *second)
{
    if (!assay_grouped_is_as_said(first)) return false;
    assay_gemm_change_all(&assay_grouped_views, first, second, assay_gemm_double);
    return true;
}

static bool expect_double(const struct assay_property_run *first,
                          const struct assay_property_run *second, int output,
                          int64_t element, uint32_t *bits)
{
    (void)second;
    return assay_gemm_expect_double(&assay_grouped_views, first, output, element, bits);
}

static bool negate(const struct assay_property_run *first,
                   const struct assay_property_run *second)
{
    if (!assay_grouped_is_as_said(first)) return false;
    assay_gemm_change_all(&assay_grouped_views, first, second, assay_gemm_negate);
    return true;
}

static bool expect_negated(const struct assay_property_run *first,
                           const struct assay_property_run *second, int output,
                           int64_t element, uint32_t *bits)
{
    (void)second;
    return assay_gemm_expect_negated(first, output, element, bits);
}

static bool reverse_rows(const struct assay_property_run *first,
                         const struct assay_property_run *second)
{
    if (!assay_grouped_is_as_said(first)) return false;
    assay_gemm_change_all(&assay_grouped_views, first, second, assay_gemm_reverse_rows);
    return true;
}

static bool expect_reversed(const struct assay_property_run *first,
                            const struct assay_property_run *second, int output,
                            int64_t element, uint32_t *bits)
{
    (void)second;
    return assay_gemm_expect_reversed(&assay_grouped_views, first, output, element, bits);
}

static bool reverse_columns(const struct assay_property_run *first,
                            const struct assay_property_run *second)
{
    if (!assay_grouped_is_as_said(first)) return false;
    assay_gemm_change_all(&assay_grouped_views, first, second,
                          assay_gemm_reverse_columns);
    return true;
}

static bool reverse_blocks(const struct assay_property_run *first,
                           const struct assay_property_run *second)
{
    int64_t most = 0;
    for (int group = 0; group < assay_grouped_views.count(first->problem); group++) {
        struct assay_gemm_view view;
        assay_grouped_views.open(first, group, &view);
        const int64_t blocks = assay_gemm_whole_blocks(&view);
        if (view.rows > 0 && blocks > most) most = blocks;
    }
    if (most < 2 || !assay_grouped_is_as_said(first)) return false;
    assay_gemm_change_all(&assay_grouped_views, first, second, assay_gemm_reverse_blocks);
    return true;
}

/* Half of each group's rows; those of a single row have none then. */
static bool halve_rows(const struct assay_property_run *first, struct assay_case *second)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = first->problem;
    const bool is_masked = problem->grouped.grouping == ASSAY_M_GROUPED_MASKED;
    const int groups = problem->grouped.groups;
    int64_t sizes[ASSAY_MAX_GROUPS], rows = 0;
    for (int g = 0; g < groups; g++)
        rows += sizes[g] = problem->group_m[g] / 2;
    return rows > 0 &&
           assay_case_set_list(second, is_masked ? "masked_m" : "group_m", sizes, groups);
}

static void fill(const struct assay_tensors *tensors, const char *name, uint32_t bits)
{
    const struct assay_tensor *const tensor = assay_tensors_find(tensors, name);
    for (int64_t i = 0; tensor && i < assay_tensor_elements(tensor); i++)
        assay_tensor_set_bits(tensor, i, bits);
}

/* What the second case says about sizes, and NaN where its rows are nobody's. */
static void write_sizes(const struct assay_property_run *second)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = second->problem;
    const struct assay_tensors *const tensors = second->tensors;
    const struct assay_tensor *const labels = assay_tensors_find(tensors, "m_indices");
    const struct assay_tensor *const masks = assay_tensors_find(tensors, "masked_m");
    fill(tensors, "a", 0xFF);
    fill(tensors, "sfa", UINT32_MAX);
    for (int64_t row = 0; labels && row < problem->grouped.gemm.m; row++)
        assay_tensor_set_bits(labels, row,
                              (uint32_t)assay_grouped_group_of_row(second, row));
    for (int g = 0; masks && g < problem->grouped.groups; g++)
        assay_tensor_set_bits(masks, g, (uint32_t)problem->group_m[g]);
}

static bool take_rows(const struct assay_property_run *first,
                      const struct assay_property_run *second)
{
    if (!assay_grouped_is_as_said(first)) return false;
    write_sizes(second);
    for (int group = 0; group < assay_grouped_views.count(second->problem); group++) {
        struct assay_gemm_view from, to;
        assay_grouped_views.open(first, group, &from);
        assay_grouped_views.open(second, group, &to);
        assay_gemm_take_rows(&from, &to);
    }
    return true;
}

static bool expect_taken(const struct assay_property_run *first,
                         const struct assay_property_run *second, int output,
                         int64_t element, uint32_t *bits)
{
    return assay_gemm_expect_taken(&assay_grouped_views, first, second, output, element,
                                   bits);
}

/* Every other group, from @parity on, gets other inputs; both kinds have to have rows. */
static bool disturb(const struct assay_property_run *first,
                    const struct assay_property_run *second, int parity)
{
    bool has_group[2] = { false, false };
    if (!assay_grouped_is_as_said(first)) return false;
    assay_gemm_copy_inputs(first, second);
    for (int group = 0; group < assay_grouped_views.count(second->problem); group++) {
        struct assay_gemm_view view;
        assay_grouped_views.open(second, group, &view);
        has_group[group % 2] |= view.rows > 0;
        if (group % 2 == parity) assay_gemm_disturb(&view);
    }
    return has_group[0] && has_group[1];
}

static bool disturb_even(const struct assay_property_run *first,
                         const struct assay_property_run *second)
{
    return disturb(first, second, 0);
}

static bool disturb_odd(const struct assay_property_run *first,
                        const struct assay_property_run *second)
{
    return disturb(first, second, 1);
}

static bool expect_same(const struct assay_property_run *first,
                        const struct assay_property_run *second, int output,
                        int64_t element, uint32_t *bits)
{
    (void)second;
    *bits = assay_tensor_bits(&first->tensors->item[output], element);
    return true;
}

static bool expect_same_odd(const struct assay_property_run *first,
                            const struct assay_property_run *second, int output,
                            int64_t element, uint32_t *bits)
{
    const int group = assay_grouped_views.place(first, element).group;
    return group >= 0 && group % 2 == 1 &&
           expect_same(first, second, output, element, bits);
}

static bool expect_same_even(const struct assay_property_run *first,
                             const struct assay_property_run *second, int output,
                             int64_t element, uint32_t *bits)
{
    const int group = assay_grouped_views.place(first, element).group;
    return group >= 0 && group % 2 == 0 &&
           expect_same(first, second, output, element, bits);
}

/* Large numbers, as nobody's NaN may vanish in a maximum. */
static void disturb_nobody(const struct assay_tensor *tensor, const uint8_t *is_used)
{
    const uint32_t large = tensor->format == ASSAY_F32 ? 0x4E99999A : 0x7A;
    const uint32_t other = tensor->format == ASSAY_F32 ? 0x4E19999A : 0x72;
    for (int64_t i = 0; i < assay_tensor_elements(tensor); i++)
        if (!is_used[i])
            assay_tensor_set_bits(tensor, i,
                                  assay_tensor_bits(tensor, i) == large ? other : large);
}

static bool change_nobody(const struct assay_property_run *first,
                          const struct assay_property_run *second)
{
    bool has_nobody = false;
    assay_gemm_copy_inputs(first, second);
    for (int i = 0; i < second->tensors->count; i++) {
        const struct assay_tensor *const tensor = &second->tensors->item[i];
        if (tensor->is_output) continue;
        const size_t elements = (size_t)assay_tensor_elements(tensor);
        uint8_t *const is_used = malloc(elements + 1);
        if (!is_used) return false;
        assay_m_grouped_used(second->problem, second->tensors, i, is_used);
        has_nobody |= memchr(is_used, 0, elements) != NULL;
        disturb_nobody(tensor, is_used);
        free(is_used);
    }
    return has_nobody;
}

#define DOUBLING    "sfa, and c, times two: d times two, to the bit"
#define NEGATION    "signs of b, and of c, flipped: those of d, to the bit"
#define COLUMNS     "columns of a and b reversed inside scale blocks: within the bound"
#define BLOCKS      "scale blocks of K reversed, with their scales: within the bound"
#define EVEN_GROUPS "other inputs of groups 0, 2, ...: the other groups to the bit"
#define ODD_GROUPS  "other inputs of groups 1, 3, ...: the other groups to the bit"
#define ROWS        "rows of each group reversed: rows of d reversed, to the bit"
#define FEWER_ROWS  "the last half of each group's rows alone: the same bits"
#define NOBODY      "rows of nobody, and b of groups without rows, changed: the same bits"
#define MATHEMATICS ASSAY_PROPERTY_MATHEMATICS
#define BATCH       ASSAY_PROPERTY_BATCH

const struct assay_property assay_m_grouped_properties[] = {
    { "doubling", DOUBLING, MATHEMATICS, NULL, double_scales, expect_double },
    { "negation", NEGATION, MATHEMATICS, NULL, negate, expect_negated },
    { "columns", COLUMNS, MATHEMATICS, NULL, reverse_columns, NULL },
    { "blocks", BLOCKS, MATHEMATICS, NULL, reverse_blocks, NULL },
    { "even-groups", EVEN_GROUPS, MATHEMATICS, NULL, disturb_even, expect_same_odd },
    { "odd-groups", ODD_GROUPS, MATHEMATICS, NULL, disturb_odd, expect_same_even },
    { "nobody", NOBODY, MATHEMATICS, NULL, change_nobody, expect_same },
    { "rows", ROWS, BATCH, NULL, reverse_rows, expect_reversed },
    { "fewer-rows", FEWER_ROWS, BATCH, halve_rows, take_rows, expect_taken },
    { NULL, NULL, MATHEMATICS, NULL, NULL, NULL },
};

const struct assay_property assay_k_grouped_properties[] = {
    { "doubling", DOUBLING, MATHEMATICS, NULL, double_scales, expect_double },
    { "negation", NEGATION, MATHEMATICS, NULL, negate, expect_negated },
    { "columns", COLUMNS, MATHEMATICS, NULL, reverse_columns, NULL },
    { "blocks", BLOCKS, MATHEMATICS, NULL, reverse_blocks, NULL },
    { "even-groups", EVEN_GROUPS, MATHEMATICS, NULL, disturb_even, expect_same_odd },
    { "odd-groups", ODD_GROUPS, MATHEMATICS, NULL, disturb_odd, expect_same_even },
    { "rows", ROWS, BATCH, NULL, reverse_rows, expect_reversed },
    { NULL, NULL, MATHEMATICS, NULL, NULL, NULL },
};
