/* SPDX-License-Identifier: MIT */
/* Descriptor of m_grouped_fp8_gemm_nt_masked: room for m_max rows a group, of which
 * masked_m count. */
#include "verify/operation/fp8_gemm_grouped/fp8_gemm_grouped.h"
#include "verify/operation/fp8_gemm_grouped/fp8_gemm_grouped_properties.h"
#include "verify/operation/fp8_gemm_grouped/fp8_gemm_grouped_views.h"

#include <string.h>

enum { ALIGNMENT = ASSAY_GROUP_ALIGNMENT };

static const struct assay_parameter parameters[] = {
    { .name = "groups",
      .meaning = "groups, with rows or without",
      .minimum = 1,
      .maximum = ASSAY_MAX_GROUPS,
      .is_required = true },
    { .name = "m_max",
      .meaning = "rows a group has room for; a multiple of 128",
      .maximum = ASSAY_GROUPED_MAX_EXTENT,
      .is_required = true },
    ASSAY_GROUPED_N,
    ASSAY_GROUPED_K,
    { .name = "masked_m",
      .meaning = "rows of each group that count, at most m_max",
      .maximum = ASSAY_GROUPED_MAX_EXTENT,
      .is_required = true,
      .is_list = true },
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

static enum assay_status
check_mask(const struct assay_case *the_case,
           const struct assay_fp8_gemm_grouped_nt_problem *problem,
           struct assay_message *message)
{
    const int64_t groups = assay_case_value(the_case, "groups");
    const int64_t m_max = problem->grouped.gemm.m;
    if (groups != problem->grouped.groups)
        return assay_fail(message, ASSAY_REFUSED,
                          "masked_m has %d values for groups=%lld; give one a group",
                          problem->grouped.groups, (long long)groups);
    for (int g = 0; g < problem->grouped.groups; g++)
        if (problem->group_m[g] > m_max)
            return assay_fail(message, ASSAY_REFUSED,
                              "masked_m asks for %lld rows of group %d, which has room "
                              "for m_max=%lld",
                              (long long)problem->group_m[g], g, (long long)m_max);
    if (m_max % ALIGNMENT && !the_case->is_unsafe)
        return assay_fail(message, ASSAY_REFUSED,
                          "m_max=%lld is no multiple of 128, so that a tile would reach "
                          "into the next group; use a multiple of 128, or unsafe=1",
                          (long long)m_max);
    return ASSAY_RAN;
}

static enum assay_status bind(const struct assay_case *the_case, void *bound,
                              struct assay_message *message)
{
    struct assay_fp8_gemm_grouped_nt_problem *const problem = bound;
    memset(problem, 0, sizeof(*problem));
    problem->grouped.grouping = ASSAY_M_GROUPED_MASKED;
    problem->out = (enum assay_format)assay_case_value(the_case, "out");
    struct assay_fp8_gemm_problem *const gemm = &problem->grouped.gemm;
    gemm->m = assay_case_value(the_case, "m_max");
    gemm->gran_m = 1;
    gemm->gran_n = ASSAY_GROUPED_BLOCK;
    enum assay_status status = assay_grouped_bind_list(
        the_case, "masked_m", problem->group_m, &problem->grouped.groups, message);
    if (status == ASSAY_RAN) status = check_mask(the_case, problem, message);
    return status == ASSAY_RAN
               ? assay_grouped_bind_rest(the_case, assay_case_value(the_case, "k"),
                                         problem, message)
               : status;
}

static void shape(const void *bound, struct assay_tensors *tensors)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = bound;
    const struct assay_fp8_gemm_problem *const gemm = &problem->grouped.gemm;
    const int64_t groups = problem->grouped.groups;
    const int64_t blocks = (gemm->k + gemm->gran_k - 1) / gemm->gran_k;
    const int64_t blocks_n = (gemm->n + gemm->gran_n - 1) / gemm->gran_n;
    tensors->count = 0;
    assay_grouped_add(tensors, "a", problem->a_format, 3,
                      (const int64_t[]){ groups, gemm->m, gemm->k });
    assay_grouped_add(tensors, "sfa", ASSAY_F32, 3,
                      (const int64_t[]){ groups, gemm->m, blocks });
    assay_grouped_add(tensors, "b", problem->b_format, 3,
                      (const int64_t[]){ groups, gemm->n, gemm->k });
    assay_grouped_add(tensors, "sfb", ASSAY_F32, 3,
                      (const int64_t[]){ groups, blocks_n, blocks });
    assay_grouped_add(tensors, "masked_m", ASSAY_I32, 1, (const int64_t[]){ groups });
    assay_grouped_add(tensors, "d", problem->out, 3,
                      (const int64_t[]){ groups, gemm->m, gemm->n });
}

/* Rows that do not count keep the NaN that memory begins with. */
static void fill(const void *bound, enum assay_data_kind kind, uint64_t seed,
                 const struct assay_tensors *tensors)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = bound;
    const struct assay_tensor *const a = assay_tensors_find(tensors, "a");
    const struct assay_tensor *const sfa = assay_tensors_find(tensors, "sfa");
    int32_t *const masked_m = assay_tensors_find(tensors, "masked_m")->data;
    for (int g = 0; g < problem->grouped.groups; g++) {
        const struct assay_tensor group_a = assay_tensor_slice(a, g);
        const struct assay_tensor group_sfa = assay_tensor_slice(sfa, g);
        const int64_t rows = problem->group_m[g];
        const struct assay_tensor codes = assay_tensor_rows(&group_a, 0, rows);
        const struct assay_tensor scales = assay_tensor_rows(&group_sfa, 0, rows);
        assay_fp8_gemm_fill_operand(&codes, kind, seed, assay_grouped_row_key(g));
        assay_fp8_gemm_fill_scale(&scales, kind, seed, assay_grouped_row_key(g));
        masked_m[g] = (int32_t)rows;
    }
    assay_grouped_fill_weights(tensors, kind, seed);
}

/* Tiles of up to 128 rows are stored whole; those without a row that counts never are. */
static void defined(const void *bound, const struct assay_tensors *tensors, int64_t part,
                    int output, uint8_t *definedness)
{
    struct assay_region region;
    const int32_t *const masked_m = assay_tensors_find(tensors, "masked_m")->data;
    assay_grouped_region(bound, part, output, &region);
    const int64_t count = masked_m[region.start[0]];
    const int64_t stored = (count + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    for (int64_t i = 0; i < region.count[1]; i++) {
        const int64_t row = region.start[1] + i;
        const enum assay_definedness what = row < count    ? ASSAY_DEFINED
                                            : row < stored ? ASSAY_UNDEFINED
                                                           : ASSAY_UNTOUCHED;
        memset(definedness + i * region.count[2], (int)what, (size_t)region.count[2]);
    }
}

static double bytes_with_room(const struct assay_fp8_gemm_grouped_nt_problem *problem,
                              int64_t m_max)
{
    struct assay_fp8_gemm_grouped_nt_problem other = *problem;
    struct assay_tensors tensors;
    other.grouped.gemm.m = m_max;
    shape(&other, &tensors);
    return assay_fp8_gemm_bytes(&tensors);
}

/* As upstream counts: rows that their mask counts, and the weights of all groups. */
static struct assay_cost cost(const void *bound)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = bound;
    const struct assay_fp8_gemm_problem *const gemm = &problem->grouped.gemm;
    const double n = (double)gemm->n, k = (double)gemm->k;
    double rows = 0;
    for (int g = 0; g < problem->grouped.groups; g++)
        rows += (double)problem->group_m[g];
    const double weights = bytes_with_room(problem, 0);
    const double row = (bytes_with_room(problem, 1) - weights) / problem->grouped.groups;
    return (struct assay_cost){ .multiply_adds = rows * n * k,
                                .bytes = weights + rows * row };
}

const struct assay_operation assay_m_grouped_fp8_gemm_nt_masked = {
    .name = "m_grouped_fp8_gemm_nt_masked",
    .summary = "a dense GEMM a group, over the rows that its mask counts",
    .parameters = parameters,
    .numerics = numerics,
    .knobs = assay_fp8_gemm_nt_knobs,
    .properties = assay_m_grouped_properties,
    .features = assay_m_grouped_fp8_gemm_nt_masked_features,
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
