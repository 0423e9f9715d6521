/* SPDX-License-Identifier: MIT */
/* What the grouped FP8 GEMMs have in common. */
#include "verify/operation/fp8_gemm_grouped/fp8_gemm_grouped.h"

#include "ref/kernel/fp8_gemm_grouped.h"
#include "ref/oracle/fp8_gemm_grouped.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = ASSAY_GROUPED_BLOCK };

enum assay_status assay_grouped_bind_list(const struct assay_case *the_case,
                                          const char *key, int64_t *sizes, int *groups,
                                          struct assay_message *message)
{
    const int64_t *const given = assay_case_list(the_case, key, groups);
    if (*groups > ASSAY_MAX_GROUPS)
        return assay_fail(message, ASSAY_REFUSED,
                          "%s names %d groups; at most %d are legal", key, *groups,
                          ASSAY_MAX_GROUPS);
    for (int g = 0; g < *groups; g++)
        sizes[g] = given[g];
    return ASSAY_RAN;
}

enum assay_status
assay_grouped_bind_rest(const struct assay_case *the_case, int64_t k,
                        struct assay_fp8_gemm_grouped_nt_problem *problem,
                        struct assay_message *message)
{
    struct assay_fp8_gemm_problem *const gemm = &problem->grouped.gemm;
    gemm->n = assay_case_value(the_case, "n");
    gemm->k = k;
    gemm->gran_k = BLOCK;
    problem->a_format = (enum assay_format)assay_case_value(the_case, "a_format");
    problem->b_format = (enum assay_format)assay_case_value(the_case, "b_format");
    if (gemm->n % 8 && !the_case->is_unsafe)
        return assay_fail(message, ASSAY_REFUSED,
                          "n=%lld is no multiple of 8, which upstream traps on; use a "
                          "multiple of 8, or unsafe=1",
                          (long long)gemm->n);
    if (k % 16 && !the_case->is_unsafe)
        return assay_fail(message, ASSAY_REFUSED,
                          "k=%lld is no multiple of 16, which tensor maps need; use a "
                          "multiple of 16, or unsafe=1",
                          (long long)k);
    if (the_case->data == ASSAY_DATA_EXACT && k > 16384)
        return assay_fail(message, ASSAY_REFUSED,
                          "data=exact cannot promise sums that fit 8 bits for k above "
                          "16384; use a smaller k");
    return ASSAY_RAN;
}

void assay_grouped_add(struct assay_tensors *tensors, const char *name,
                       enum assay_format format, int rank, const int64_t *shape)
{
    struct assay_tensor *const tensor = &tensors->item[tensors->count++];
    *tensor = (struct assay_tensor){ .name = name, .format = format, .rank = rank };
    memcpy(tensor->shape, shape, (size_t)rank * sizeof(*shape));
    assay_tensor_set_dense(tensor);
    tensor->is_output = strcmp(name, "d") == 0;
}

int64_t assay_grouped_row_key(int64_t group)
{
    return group << 32;
}

void assay_grouped_fill_weights(const struct assay_tensors *tensors,
                                enum assay_data_kind kind, uint64_t seed)
{
    const struct assay_tensor *const b = assay_tensors_find(tensors, "b");
    const struct assay_tensor *const sfb = assay_tensors_find(tensors, "sfb");
    for (int64_t g = 0; g < b->shape[0]; g++) {
        const struct assay_tensor codes = assay_tensor_slice(b, g);
        const struct assay_tensor scales = assay_tensor_slice(sfb, g);
        assay_fp8_gemm_fill_operand(&codes, kind, seed, assay_grouped_row_key(g));
        assay_fp8_gemm_fill_scale(&scales, kind, seed, assay_grouped_row_key(g));
    }
}

static const struct assay_fp8_gemm_grouped_problem *grouped_of(const void *problem)
{
    return &((const struct assay_fp8_gemm_grouped_nt_problem *)problem)->grouped;
}

int64_t assay_grouped_parts(const void *problem)
{
    return assay_fp8_gemm_grouped_parts(grouped_of(problem));
}

void assay_grouped_region(const void *problem, int64_t part, int output,
                          struct assay_region *region)
{
    (void)output;
    const struct assay_fp8_gemm_grouped_problem *const grouped = grouped_of(problem);
    const int64_t parts = assay_fp8_gemm_parts(&grouped->gemm);
    const struct assay_fp8_gemm_tile_range range =
        assay_fp8_gemm_part_range(&grouped->gemm, part % parts);
    if (grouped->grouping == ASSAY_M_GROUPED_CONTIGUOUS)
        *region = (struct assay_region){ .start = { range.m0, range.n0 },
                                         .count = { range.rows, range.columns } };
    else
        *region = (struct assay_region){ .start = { part / parts, range.m0, range.n0 },
                                         .count = { 1, range.rows, range.columns } };
}

enum assay_status assay_grouped_model(const void *problem, const void *numerics,
                                      const struct assay_tensors *tensors, int64_t part)
{
    assay_fp8_gemm_grouped_model(grouped_of(problem), numerics, tensors, part);
    return ASSAY_RAN;
}

/* Rows whose owner is looked up keep all their company, and operands that lie one group
 * behind the other keep their extents. */
bool assay_grouped_narrow(const void *problem, const struct assay_tensors *tensors,
                          void *narrowed, struct assay_tensors *windows)
{
    struct assay_fp8_gemm_grouped_nt_problem *const few = narrowed;
    *few = *(const struct assay_fp8_gemm_grouped_nt_problem *)problem;
    const bool is_contiguous = few->grouped.grouping == ASSAY_M_GROUPED_CONTIGUOUS;
    struct assay_fp8_gemm_problem *const gemm = &few->grouped.gemm;
    if (few->grouped.grouping == ASSAY_K_GROUPED_NT) return false;
    *windows = *tensors;
    assay_fp8_gemm_narrow(&gemm->n, ASSAY_FP8_GEMM_NARROW_N);
    assay_fp8_gemm_window(windows, "b", 1, gemm->n);
    assay_fp8_gemm_window(windows, "c", 2, gemm->n);
    assay_fp8_gemm_window(windows, "d", is_contiguous ? 1 : 2, gemm->n);
    if (is_contiguous) return true;
    assay_fp8_gemm_narrow(&gemm->m, ASSAY_FP8_GEMM_NARROW_M);
    assay_fp8_gemm_window(windows, "a", 1, gemm->m);
    assay_fp8_gemm_window(windows, "c", 1, gemm->m);
    assay_fp8_gemm_window(windows, "d", 1, gemm->m);
    return true;
}

/* Rows that keep c have just its value. */
static void expect_c(const struct assay_grouped_rows *run,
                     const struct assay_expected *expected)
{
    const struct assay_tensor *const c = assay_tensors_find(&run->tensors, "c");
    for (int64_t i = 0; i < run->rows * run->gemm.n; i++) {
        const uint32_t bits = assay_tensor_bits(c, i);
        float value;
        memcpy(&value, &bits, sizeof(value));
        expected->value[i] = (double)value;
        expected->bound[i] = 0;
    }
}

enum assay_status assay_grouped_oracle(const void *problem, const void *numerics,
                                       const struct assay_tensors *tensors, int64_t part,
                                       const struct assay_expected *expected)
{
    const struct assay_fp8_gemm_grouped_problem *const grouped = grouped_of(problem);
    const struct assay_fp8_gemm_precision precision =
        assay_fp8_gemm_precision_of(numerics);
    const struct assay_expected *const d = &expected[tensors->count - 1];
    struct assay_grouped_rows run;
    enum assay_status status = ASSAY_RAN;
    for (int64_t from = 0; status == ASSAY_RAN &&
                           assay_grouped_rows_next(grouped, tensors, part, from, &run);
         from = run.first + run.rows) {
        const int64_t offset = run.first * run.gemm.n;
        const struct assay_expected own = { d->value + offset, d->bound + offset };
        if (run.keeps_c)
            expect_c(&run, &own);
        else
            status = assay_fp8_gemm_expect(&run.gemm, &precision, &run.tensors, 0, &own);
    }
    return status;
}

void assay_grouped_place(const void *problem, int output, int64_t element,
                         struct assay_place *place)
{
    (void)output;
    const struct assay_fp8_gemm_grouped_problem *const grouped = grouped_of(problem);
    const int64_t m = grouped->gemm.m, n = grouped->gemm.n;
    const int64_t row = element / n % m, column = element % n;
    char group[32] = "";
    if (grouped->grouping != ASSAY_M_GROUPED_CONTIGUOUS)
        snprintf(group, sizeof(group), "group %lld, ", (long long)(element / (m * n)));
    snprintf(place->text, sizeof(place->text), "%stile %lld,%lld", group,
             (long long)(row / ASSAY_FP8_GEMM_TILE_M),
             (long long)(column / ASSAY_FP8_GEMM_TILE_N));
}

enum assay_status assay_grouped_check_numerics(const void *problem, const void *numerics,
                                               struct assay_message *message)
{
    return assay_fp8_gemm_check_block_numerics(numerics, grouped_of(problem)->gemm.gran_k,
                                               message);
}

bool assay_grouped_is_constant_by_design(const void *problem)
{
    const struct assay_fp8_gemm_grouped_problem *const grouped = grouped_of(problem);
    return grouped->grouping < ASSAY_K_GROUPED_NT && grouped->gemm.k == 0;
}

bool assay_grouped_is_exact(const void *problem, enum assay_data_kind kind, int output)
{
    (void)problem, (void)output;
    return kind == ASSAY_DATA_EXACT;
}
