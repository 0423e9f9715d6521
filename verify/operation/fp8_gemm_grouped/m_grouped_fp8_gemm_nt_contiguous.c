/* SPDX-License-Identifier: MIT */
/* Descriptor of m_grouped_fp8_gemm_nt_contiguous: groups of rows, one after the other,
 * each beginning at a multiple of 128. */
#include "verify/operation/fp8_gemm_grouped/fp8_gemm_grouped.h"
#include "verify/operation/fp8_gemm_grouped/fp8_gemm_grouped_properties.h"
#include "verify/operation/fp8_gemm_grouped/fp8_gemm_grouped_views.h"

#include <string.h>

enum { ALIGNMENT = ASSAY_GROUP_ALIGNMENT };

static const struct assay_parameter parameters[] = {
    { .name = "group_m",
      .meaning = "rows of each group",
      .maximum = ASSAY_GROUPED_MAX_EXTENT,
      .is_required = true,
      .is_list = true },
    ASSAY_GROUPED_N,
    ASSAY_GROUPED_K,
    { .name = "out",
      .meaning = "format of d",
      .choices = assay_fp8_gemm_out_formats,
      .default_value = ASSAY_BF16 },
    ASSAY_GROUPED_FORMATS,
    { .name = NULL },
};

static const struct assay_named_numerics numerics[] = {
    { "deepgemm-1d2d", "DeepGEMM sm_90 1D2D: chains of 128, fused promotion, stored",
      &assay_fp8_gemm_block_stored },
    { NULL, NULL, NULL },
};

static const struct assay_named_numerics *default_numerics(const void *problem)
{
    (void)problem;
    return &numerics[0];
}

static int64_t aligned(int64_t rows)
{
    return (rows + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static enum assay_status bind(const struct assay_case *the_case, void *bound,
                              struct assay_message *message)
{
    struct assay_fp8_gemm_grouped_nt_problem *const problem = bound;
    memset(problem, 0, sizeof(*problem));
    problem->grouped.grouping = ASSAY_M_GROUPED_CONTIGUOUS;
    problem->out = (enum assay_format)assay_case_value(the_case, "out");
    struct assay_fp8_gemm_problem *const gemm = &problem->grouped.gemm;
    gemm->gran_m = 1;
    gemm->gran_n = ASSAY_GROUPED_BLOCK;
    const enum assay_status status = assay_grouped_bind_list(
        the_case, "group_m", problem->group_m, &problem->grouped.groups, message);
    if (status != ASSAY_RAN) return status;
    for (int g = 0; g < problem->grouped.groups; g++)
        gemm->m += aligned(problem->group_m[g]);
    return assay_grouped_bind_rest(the_case, assay_case_value(the_case, "k"), problem,
                                   message);
}

static void shape(const void *bound, struct assay_tensors *tensors)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = bound;
    const struct assay_fp8_gemm_problem *const gemm = &problem->grouped.gemm;
    const int64_t groups = problem->grouped.groups;
    const int64_t blocks = (gemm->k + gemm->gran_k - 1) / gemm->gran_k;
    const int64_t blocks_n = (gemm->n + gemm->gran_n - 1) / gemm->gran_n;
    tensors->count = 0;
    assay_grouped_add(tensors, "a", problem->a_format, 2,
                      (const int64_t[]){ gemm->m, gemm->k });
    assay_grouped_add(tensors, "sfa", ASSAY_F32, 2, (const int64_t[]){ gemm->m, blocks });
    assay_grouped_add(tensors, "b", problem->b_format, 3,
                      (const int64_t[]){ groups, gemm->n, gemm->k });
    assay_grouped_add(tensors, "sfb", ASSAY_F32, 3,
                      (const int64_t[]){ groups, blocks_n, blocks });
    assay_grouped_add(tensors, "m_indices", ASSAY_I32, 1, (const int64_t[]){ gemm->m });
    assay_grouped_add(tensors, "d", problem->out, 2,
                      (const int64_t[]){ gemm->m, gemm->n });
}

/* Rows of padding keep the NaN that memory begins with. */
static void fill(const void *bound, enum assay_data_kind kind, uint64_t seed,
                 const struct assay_tensors *tensors)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = bound;
    const struct assay_tensor *const a = assay_tensors_find(tensors, "a");
    const struct assay_tensor *const sfa = assay_tensors_find(tensors, "sfa");
    int32_t *const m_indices = assay_tensors_find(tensors, "m_indices")->data;
    int64_t first = 0;
    for (int g = 0; g < problem->grouped.groups; g++) {
        const int64_t rows = problem->group_m[g], end = first + aligned(rows);
        const struct assay_tensor codes = assay_tensor_rows(a, first, rows);
        const struct assay_tensor scales = assay_tensor_rows(sfa, first, rows);
        assay_fp8_gemm_fill_operand(&codes, kind, seed, assay_grouped_row_key(g));
        assay_fp8_gemm_fill_scale(&scales, kind, seed, assay_grouped_row_key(g));
        for (int64_t row = first; row < end; row++)
            m_indices[row] = row < first + rows ? g : -1;
        first = end;
    }
    assay_grouped_fill_weights(tensors, kind, seed);
}

static void defined(const void *bound, const struct assay_tensors *tensors, int64_t part,
                    int output, uint8_t *definedness)
{
    struct assay_region region;
    const int32_t *const m_indices = assay_tensors_find(tensors, "m_indices")->data;
    assay_grouped_region(bound, part, output, &region);
    for (int64_t row = 0; row < region.count[0]; row++) {
        const bool is_defined = m_indices[region.start[0] + row] >= 0;
        memset(definedness + row * region.count[1],
               is_defined ? ASSAY_DEFINED : ASSAY_UNDEFINED, (size_t)region.count[1]);
    }
}

/* As upstream counts: rows of padding as well. */
static struct assay_cost cost(const void *bound)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = bound;
    const struct assay_fp8_gemm_problem *const gemm = &problem->grouped.gemm;
    const double m = (double)gemm->m, n = (double)gemm->n, k = (double)gemm->k;
    struct assay_tensors tensors;
    shape(bound, &tensors);
    return (struct assay_cost){ .multiply_adds = m * n * k,
                                .bytes = assay_fp8_gemm_bytes(&tensors) };
}

const struct assay_operation assay_m_grouped_fp8_gemm_nt_contiguous = {
    .name = "m_grouped_fp8_gemm_nt_contiguous",
    .summary = "dense GEMMs of the groups that rows are labelled with",
    .parameters = parameters,
    .numerics = numerics,
    .knobs = assay_fp8_gemm_nt_knobs,
    .properties = assay_m_grouped_properties,
    .features = assay_m_grouped_fp8_gemm_nt_contiguous_features,
    .problem_bytes = sizeof(struct assay_fp8_gemm_grouped_nt_problem),
    .numerics_bytes = sizeof(struct assay_fp8_gemm_numerics),
    .bind = bind,
    .default_numerics = default_numerics,
    .check_numerics = assay_grouped_check_numerics,
    .shape = shape,
    .fill = fill,
    .parts = assay_grouped_parts,
    .region = assay_grouped_region,
    .defined = defined,
    .used = assay_m_grouped_used,
    .model = assay_grouped_model,
    .narrow = assay_grouped_narrow,
    .settle = assay_fp8_gemm_settle_unit,
    .oracle = assay_grouped_oracle,
    .place = assay_grouped_place,
    .cost = cost,
    .is_measured = assay_fp8_gemm_nt_is_measured,
    .is_constant_by_design = assay_grouped_is_constant_by_design,
    .is_exact = assay_grouped_is_exact,
};
