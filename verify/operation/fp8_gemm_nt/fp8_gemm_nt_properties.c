/* SPDX-License-Identifier: MIT */
/* Relations of the dense GEMM: one view, of the whole call. */
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt_properties.h"

#include "verify/operation/fp8_gemm_nt/fp8_gemm_accumulator.h"
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt.h"
#include "verify/operation/fp8_gemm_nt/fp8_gemm_relation.h"
#include "verify/operation/numerics.h"

static int count(const void *problem)
{
    (void)problem;
    return 1;
}

static void open(const struct assay_property_run *run, int group,
                 struct assay_gemm_view *view)
{
    (void)group;
    const struct assay_fp8_gemm_nt_problem *const problem = run->problem;
    const struct assay_fp8_gemm_problem *const gemm = &problem->gemm;
    const struct assay_tensors *const tensors = run->tensors;
    *view = (struct assay_gemm_view){
        .a = *assay_tensors_find(tensors, "a"),
        .b = *assay_tensors_find(tensors, "b"),
        .sfa = *assay_tensors_find(tensors, "sfa"),
        .sfb = *assay_tensors_find(tensors, "sfb"),
        .has_c = gemm->has_c,
        .has_packed_scales = problem->recipe == ASSAY_RECIPE_MX,
        .rows = gemm->m,
        .columns = gemm->n,
        .k = gemm->k,
        .gran_m = gemm->gran_m,
        .gran_n = gemm->gran_n,
        .gran_k = gemm->gran_k,
    };
    if (gemm->has_c) view->c = *assay_tensors_find(tensors, "c");
}

static struct assay_gemm_place place(const struct assay_property_run *run,
                                     int64_t element)
{
    const struct assay_fp8_gemm_nt_problem *const problem = run->problem;
    return (struct assay_gemm_place){ 0, element / problem->gemm.n,
                                      element % problem->gemm.n };
}

static int64_t element_of(const struct assay_property_run *run,
                          const struct assay_gemm_place *where)
{
    const struct assay_fp8_gemm_nt_problem *const problem = run->problem;
    return where->row * problem->gemm.n + where->column;
}

static const struct assay_gemm_views views = { count, open, place, element_of };

static struct assay_gemm_view view_of(const struct assay_property_run *run)
{
    struct assay_gemm_view view;
    open(run, 0, &view);
    return view;
}

static bool double_scales(const struct assay_property_run *first,
                          const struct assay_property_run *second)
{
    assay_gemm_change_all(&views, first, second, assay_gemm_double);
    return true;
}

static bool expect_double(const struct assay_property_run *first,
                          const struct assay_property_run *second, int output,
                          int64_t element, uint32_t *bits)
{
    (void)second;
    return assay_gemm_expect_double(&views, first, output, element, bits);
}

static bool negate(const struct assay_property_run *first,
                   const struct assay_property_run *second)
{
    assay_gemm_change_all(&views, first, second, assay_gemm_negate);
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
    assay_gemm_change_all(&views, first, second, assay_gemm_reverse_rows);
    return view_of(first).rows > 1;
}

static bool expect_reversed(const struct assay_property_run *first,
                            const struct assay_property_run *second, int output,
                            int64_t element, uint32_t *bits)
{
    (void)second;
    return assay_gemm_expect_reversed(&views, first, output, element, bits);
}

static bool halve_rows(const struct assay_property_run *first, struct assay_case *second)
{
    assay_case_set(second, "m", assay_case_value(first->the_case, "m") / 2);
    return assay_case_value(second, "m") > 0;
}

static bool take_rows(const struct assay_property_run *first,
                      const struct assay_property_run *second)
{
    const struct assay_gemm_view from = view_of(first), to = view_of(second);
    assay_gemm_take_rows(&from, &to);
    return true;
}

static bool expect_taken(const struct assay_property_run *first,
                         const struct assay_property_run *second, int output,
                         int64_t element, uint32_t *bits)
{
    return assay_gemm_expect_taken(&views, first, second, output, element, bits);
}

static bool reverse_columns(const struct assay_property_run *first,
                            const struct assay_property_run *second)
{
    assay_gemm_change_all(&views, first, second, assay_gemm_reverse_columns);
    return view_of(first).k > 1;
}

static bool reverse_blocks(const struct assay_property_run *first,
                           const struct assay_property_run *second)
{
    const struct assay_gemm_view view = view_of(first);
    if (assay_gemm_whole_blocks(&view) < 2) return false;
    assay_gemm_change_all(&views, first, second, assay_gemm_reverse_blocks);
    return true;
}

/* The bound of such sums, which is asked of every relation, is 0 or the distance to the
 * one possible output: there is nothing left to expect. */
static bool fill_accumulator(const struct assay_property_run *first,
                             const struct assay_property_run *second)
{
    const struct assay_case *const the_case = second->the_case;
    const struct assay_gemm_view view = view_of(second);
    union assay_numerics_storage numerics;
    struct assay_message ignored;
    (void)first;
    if (assay_numerics_parse(the_case->operation, second->problem, the_case->numerics,
                             &numerics, &ignored) != ASSAY_RAN)
        return false;
    const struct assay_fp8_gemm_precision precision =
        assay_fp8_gemm_precision_of((const void *)&numerics);
    return assay_gemm_fill_accumulator(&view, &precision);
}

const struct assay_property assay_fp8_gemm_nt_properties[] = {
    { "doubling", "sfa, and c, times two: d times two, to the bit",
      ASSAY_PROPERTY_MATHEMATICS, NULL, double_scales, expect_double },
    { "negation", "signs of b, and of c, flipped: those of d, to the bit",
      ASSAY_PROPERTY_MATHEMATICS, NULL, negate, expect_negated },
    { "columns", "columns of a and b reversed inside scale blocks: within the bound",
      ASSAY_PROPERTY_MATHEMATICS, NULL, reverse_columns, NULL },
    { "blocks", "scale blocks of K reversed, with their scales: within the bound",
      ASSAY_PROPERTY_MATHEMATICS, NULL, reverse_blocks, NULL },
    { "full-accumulator", "integers that just fit the accumulator: their exact sums",
      ASSAY_PROPERTY_MATHEMATICS, NULL, fill_accumulator, NULL },
    { "rows", "rows of a reversed, with their scales: rows of d reversed, to the bit",
      ASSAY_PROPERTY_BATCH, NULL, reverse_rows, expect_reversed },
    { "fewer-rows", "the last half of the rows alone: the same bits",
      ASSAY_PROPERTY_BATCH, halve_rows, take_rows, expect_taken },
    { NULL, NULL, ASSAY_PROPERTY_MATHEMATICS, NULL, NULL, NULL },
};
