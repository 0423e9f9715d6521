/* SPDX-License-Identifier: MIT */
/* Descriptors of k_grouped_fp8_gemm_nt_contiguous and _tn_contiguous: every group sums
 * over its own stretch of K onto its own d. The second holds its operands transposed. */
#include "verify/operation/fp8_gemm_grouped/fp8_gemm_grouped.h"
#include "verify/operation/fp8_gemm_grouped/fp8_gemm_grouped_properties.h"

#include <string.h>

enum { BLOCK = ASSAY_GROUPED_BLOCK };

static const struct assay_parameter parameters[] = {
    { .name = "m",
      .meaning = "rows of every group's d; a multiple of 128",
      .maximum = ASSAY_GROUPED_MAX_EXTENT,
      .is_required = true },
    ASSAY_GROUPED_N,
    { .name = "ks",
      .meaning = "K of each group; multiples of 128",
      .maximum = ASSAY_GROUPED_MAX_EXTENT,
      .is_required = true,
      .is_list = true },
    ASSAY_GROUPED_FORMATS,
    { .name = NULL },
};

static const struct assay_named_numerics numerics[] = {
    { "deepgemm-1d1d",
      "DeepGEMM sm_90 1D1D, reduced onto d in f32; derived, no recording",
      &assay_fp8_gemm_block_reduced },
    { NULL, NULL, NULL },
};

static const struct assay_named_numerics *default_numerics(const void *problem)
{
    (void)problem;
    return &numerics[0];
}

static enum assay_status bind(const struct assay_case *the_case, enum assay_grouping how,
                              struct assay_fp8_gemm_grouped_nt_problem *problem,
                              struct assay_message *message)
{
    memset(problem, 0, sizeof(*problem));
    problem->grouped.grouping = how;
    problem->out = ASSAY_F32;
    struct assay_fp8_gemm_problem *const gemm = &problem->grouped.gemm;
    gemm->m = assay_case_value(the_case, "m");
    gemm->gran_m = gemm->gran_n = 1;
    gemm->has_c = true;
    int64_t *const group_k = problem->grouped.group_k;
    const enum assay_status status = assay_grouped_bind_list(
        the_case, "ks", group_k, &problem->grouped.groups, message);
    if (status != ASSAY_RAN) return status;
    for (int g = 0; g < problem->grouped.groups; g++)
        if (group_k[g] % BLOCK)
            return assay_fail(message, ASSAY_REFUSED,
                              "ks asks for K = %lld in group %d; every K must be a "
                              "multiple of 128",
                              (long long)group_k[g], g);
    if (gemm->m % BLOCK && !the_case->is_unsafe)
        return assay_fail(message, ASSAY_REFUSED,
                          "m=%lld is no multiple of 128, so that a tile would reach into "
                          "the next group; use a multiple of 128, or unsafe=1",
                          (long long)gemm->m);
    return assay_grouped_bind_rest(the_case, 0, problem, message);
}

static enum assay_status bind_nt(const struct assay_case *the_case, void *problem,
                                 struct assay_message *message)
{
    return bind(the_case, ASSAY_K_GROUPED_NT, problem, message);
}

static enum assay_status bind_tn(const struct assay_case *the_case, void *problem,
                                 struct assay_message *message)
{
    return bind(the_case, ASSAY_K_GROUPED_TN, problem, message);
}

static int64_t sum_k(const struct assay_fp8_gemm_grouped_problem *grouped, int groups)
{
    int64_t sum = 0;
    for (int g = 0; g < groups; g++)
        sum += grouped->group_k[g];
    return sum;
}

static void add_operand(struct assay_tensors *tensors, const char *name,
                        enum assay_format format, int64_t rows, int64_t all_k,
                        bool is_flat)
{
    if (is_flat)
        assay_grouped_add(tensors, name, format, 1, (const int64_t[]){ rows * all_k });
    else
        assay_grouped_add(tensors, name, format, 2, (const int64_t[]){ all_k, rows });
}

/* MN-major, rows a multiple of 16 bytes apart. */
static void add_scale(struct assay_tensors *tensors, const char *name, int64_t rows,
                      int64_t all_k)
{
    assay_grouped_add(tensors, name, ASSAY_F32, 2,
                      (const int64_t[]){ all_k / BLOCK, rows });
    tensors->item[tensors->count - 1].stride[0] = (rows + 3) / 4 * 4;
}

static void shape(const void *bound, struct assay_tensors *tensors)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = bound;
    const struct assay_fp8_gemm_grouped_problem *const grouped = &problem->grouped;
    const int64_t m = grouped->gemm.m, n = grouped->gemm.n, groups = grouped->groups;
    const int64_t all_k = sum_k(grouped, grouped->groups);
    const bool is_flat = grouped->grouping == ASSAY_K_GROUPED_NT;
    tensors->count = 0;
    add_operand(tensors, "a", problem->a_format, m, all_k, is_flat);
    add_scale(tensors, "sfa", m, all_k);
    add_operand(tensors, "b", problem->b_format, n, all_k, is_flat);
    add_scale(tensors, "sfb", n, all_k);
    assay_grouped_add(tensors, "grouped_layout", ASSAY_I32, 1,
                      (const int64_t[]){ groups });
    assay_grouped_add(tensors, "c", ASSAY_F32, 3, (const int64_t[]){ groups, m, n });
    assay_grouped_add(tensors, "d", ASSAY_F32, 3, (const int64_t[]){ groups, m, n });
}

struct assay_tensor assay_k_grouped_operand(const struct assay_tensor *operand,
                                            int64_t rows, int64_t k_before, int64_t k)
{
    struct assay_tensor matrix = *operand;
    if (operand->rank == 2) {
        const struct assay_tensor share = assay_tensor_rows(operand, k_before, k);
        return assay_tensor_transposed(&share);
    }
    matrix.rank = 2;
    matrix.shape[0] = rows;
    matrix.shape[1] = matrix.stride[0] = k;
    matrix.stride[1] = 1;
    matrix.data = (char *)operand->data + rows * k_before;
    return matrix;
}

static void fill(const void *bound, enum assay_data_kind kind, uint64_t seed,
                 const struct assay_tensors *tensors)
{
    const struct assay_fp8_gemm_grouped_nt_problem *const problem = bound;
    const struct assay_fp8_gemm_grouped_problem *const grouped = &problem->grouped;
    static const char *const names[][2] = { { "a", "sfa" }, { "b", "sfb" } };
    int32_t *const sizes = assay_tensors_find(tensors, "grouped_layout")->data;
    for (int g = 0; g < grouped->groups; g++) {
        const int64_t k = grouped->group_k[g], before = sum_k(grouped, g);
        const int64_t key = assay_grouped_row_key(g);
        sizes[g] = (int32_t)k;
        for (int i = 0; i < 2; i++) {
            const int64_t rows = i ? grouped->gemm.n : grouped->gemm.m;
            const struct assay_tensor codes = assay_k_grouped_operand(
                assay_tensors_find(tensors, names[i][0]), rows, before, k);
            const struct assay_tensor share = assay_tensor_rows(
                assay_tensors_find(tensors, names[i][1]), before / BLOCK, k / BLOCK);
            const struct assay_tensor scales = assay_tensor_transposed(&share);
            assay_fp8_gemm_fill_operand(&codes, kind, seed, key);
            assay_fp8_gemm_fill_scale(&scales, kind, seed, key);
        }
        const struct assay_tensor c =
            assay_tensor_slice(assay_tensors_find(tensors, "c"), g);
        assay_fp8_gemm_fill_c(&c, kind, seed, key);
    }
}

static struct assay_cost cost(const void *bound)
{
    const struct assay_fp8_gemm_grouped_problem *const grouped =
        &((const struct assay_fp8_gemm_grouped_nt_problem *)bound)->grouped;
    const double m = (double)grouped->gemm.m, n = (double)grouped->gemm.n;
    const double k = (double)sum_k(grouped, grouped->groups);
    struct assay_tensors tensors;
    shape(bound, &tensors);
    return (struct assay_cost){ .multiply_adds = m * n * k,
                                .bytes = assay_fp8_gemm_bytes(&tensors) };
}

#define K_GROUPED(name_, summary_, bind_)                                                \
  {                                                                                      \
    .name = name_, .summary = summary_, .parameters = parameters, .numerics = numerics,  \
    .knobs = assay_fp8_gemm_nt_knobs, .properties = assay_k_grouped_properties,          \
    .features = assay_k_grouped_features,                                                \
    .problem_bytes = sizeof(struct assay_fp8_gemm_grouped_nt_problem),                   \
    .numerics_bytes = sizeof(struct assay_fp8_gemm_numerics), .bind = bind_,             \
    .default_numerics = default_numerics,                                                \
    .check_numerics = assay_grouped_check_numerics, .shape = shape, .fill = fill,        \
    .parts = assay_grouped_parts, .region = assay_grouped_region,                        \
    .model = assay_grouped_model, .narrow = assay_grouped_narrow,                        \
    .settle = assay_fp8_gemm_settle_unit, .oracle = assay_grouped_oracle,                \
    .place = assay_grouped_place, .cost = cost,                                          \
    .is_measured = assay_fp8_gemm_nt_is_measured,                                        \
    .is_constant_by_design = assay_grouped_is_constant_by_design,                        \
    .is_exact = assay_grouped_is_exact,                                                  \
  }

const struct assay_operation assay_k_grouped_fp8_gemm_nt_contiguous =
    K_GROUPED("k_grouped_fp8_gemm_nt_contiguous",
              "d += a b^T a group, each over its own stretch of K", bind_nt);

const struct assay_operation assay_k_grouped_fp8_gemm_tn_contiguous =
    K_GROUPED("k_grouped_fp8_gemm_tn_contiguous",
              "the same from operands that hold K as rows", bind_tn);
