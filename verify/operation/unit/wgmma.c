/* SPDX-License-Identifier: MIT */
/* Descriptor of wgmma: chains of tensor-core instructions, block by block, laid out as
 * the recorded vectors are. */
#include "verify/operation/unit/unit.h"

#include <stdio.h>

enum { MAX_EXTENT = 1 << 16, LARGEST_EXACT_STEPS = 2000 };

static const struct assay_choice formats[] = {
    { "e4m3", ASSAY_E4M3, "32 elements a step" },
    { "e5m2", ASSAY_E5M2, "32" },
    { "bf16", ASSAY_BF16, "16" },
    { "f16", ASSAY_F16, "16" },
    { "tf32", ASSAY_TF32, "8; stored as f32, the low 13 bits ignored" },
    { NULL, 0, NULL },
};

static const struct assay_parameter parameters[] = {
    { .name = "blocks",
      .meaning = "independent tiles of 64 x n",
      .minimum = 1,
      .maximum = MAX_EXTENT,
      .is_required = true },
    { .name = "steps",
      .meaning = "instructions a chain, 32 bytes of K each",
      .minimum = 1,
      .maximum = MAX_EXTENT,
      .is_required = true },
    { .name = "n",
      .meaning = "rows of b, columns of d; a multiple of 8",
      .minimum = 1,
      .maximum = ASSAY_WGMMA_MAX_COLUMNS,
      .default_value = 8 },
    { .name = "a_format",
      .meaning = "format of a",
      .choices = formats,
      .default_value = ASSAY_E4M3 },
    { .name = "b_format",
      .meaning = "format of b: a_format, or the other FP8 format",
      .choices = formats,
      .default_value = ASSAY_E4M3 },
    { .name = NULL },
};

static enum assay_status bind(const struct assay_case *the_case, void *bound,
                              struct assay_message *message)
{
    struct assay_wgmma_problem *const problem = bound;
    *problem = (struct assay_wgmma_problem){
        .blocks = assay_case_value(the_case, "blocks"),
        .steps = assay_case_value(the_case, "steps"),
        .n = assay_case_value(the_case, "n"),
        .a_format = (enum assay_format)assay_case_value(the_case, "a_format"),
        .b_format = (enum assay_format)assay_case_value(the_case, "b_format"),
    };
    problem->elements =
        ASSAY_WGMMA_STEP_BYTES / (int64_t)assay_format_bytes(problem->a_format);
    if (!assay_wgmma_unit_takes(ASSAY_WGMMA_HOPPER, problem->a_format, problem->b_format))
        return assay_fail(message, ASSAY_REFUSED,
                          "a_format=%s goes with no b_format=%s; both must be the same, "
                          "or both FP8",
                          assay_format_name(problem->a_format),
                          assay_format_name(problem->b_format));
    if (problem->n % 8 && !the_case->is_unsafe)
        return assay_fail(message, ASSAY_REFUSED,
                          "n=%lld is no multiple of 8, which wgmma needs; use a multiple "
                          "of 8, or unsafe=1",
                          (long long)problem->n);
    if (the_case->data == ASSAY_DATA_EXACT && problem->steps > LARGEST_EXACT_STEPS)
        return assay_fail(message, ASSAY_REFUSED,
                          "data=exact cannot promise sums that fit 14 bits for steps "
                          "above %d; use fewer steps",
                          LARGEST_EXACT_STEPS);
    return ASSAY_RAN;
}

static const struct assay_named_numerics *default_numerics(const void *bound)
{
    (void)bound;
    return &assay_wgmma_numerics_table[0];
}

static struct assay_tensor tensor(const char *name, enum assay_format format, int rank,
                                  const int64_t *extents)
{
    struct assay_tensor made = { .name = name, .format = format, .rank = rank };
    for (int i = 0; i < rank; i++)
        made.shape[i] = extents[i];
    assay_tensor_set_dense(&made);
    return made;
}

static void shape(const void *bound, struct assay_tensors *tensors)
{
    const struct assay_wgmma_problem *const p = bound;
    const int64_t a[] = { p->blocks, p->steps, ASSAY_WGMMA_ROWS, p->elements };
    const int64_t b[] = { p->blocks, p->steps, p->n, p->elements };
    const int64_t d[] = { p->blocks, ASSAY_WGMMA_ROWS, p->n };
    tensors->count = ASSAY_WGMMA_TENSORS;
    tensors->item[ASSAY_WGMMA_A] = tensor("a", p->a_format, 4, a);
    tensors->item[ASSAY_WGMMA_B] = tensor("b", p->b_format, 4, b);
    tensors->item[ASSAY_WGMMA_C] = tensor("c", ASSAY_F32, 3, d);
    tensors->item[ASSAY_WGMMA_D] = tensor("d", ASSAY_F32, 3, d);
    tensors->item[ASSAY_WGMMA_D].is_output = true;
}

static int64_t parts(const void *bound)
{
    return ((const struct assay_wgmma_problem *)bound)->blocks;
}

static void region(const void *bound, int64_t part, int output,
                   struct assay_region *region)
{
    (void)output;
    const struct assay_wgmma_problem *const problem = bound;
    *region = (struct assay_region){ .start = { part },
                                     .count = { 1, ASSAY_WGMMA_ROWS, problem->n } };
}

static enum assay_status model(const void *bound, const void *numerics,
                               const struct assay_tensors *tensors, int64_t part)
{
    (void)bound;
    assay_wgmma_model(numerics, tensors, part);
    return ASSAY_RAN;
}

static enum assay_status oracle(const void *bound, const void *numerics,
                                const struct assay_tensors *tensors, int64_t part,
                                const struct assay_expected *expected)
{
    const struct assay_wgmma_problem *const problem = bound;
    const struct assay_dot_add unit =
        assay_wgmma_profile(numerics, problem->a_format, problem->b_format);
    const struct assay_wgmma_precision precision = {
        .instructions = problem->steps * problem->elements / unit.terms,
        .groups = unit.groups,
        .align_bits = unit.align_bits,
        .result_bits = unit.result_bits,
        .adds_accumulator_last = unit.adds_accumulator_last,
    };
    return assay_wgmma_expect(&precision, tensors, part, &expected[ASSAY_WGMMA_D]);
}

static void place(const void *bound, int output, int64_t element,
                  struct assay_place *where)
{
    (void)output;
    const int64_t n = ((const struct assay_wgmma_problem *)bound)->n;
    const int64_t row = element / n;
    snprintf(where->text, sizeof(where->text), "block %lld, row %lld, column %lld",
             (long long)(row / ASSAY_WGMMA_ROWS), (long long)(row % ASSAY_WGMMA_ROWS),
             (long long)(element % n));
}

static struct assay_cost cost(const void *bound)
{
    const struct assay_wgmma_problem *const problem = bound;
    const double n = (double)problem->n, rows = ASSAY_WGMMA_ROWS;
    const double steps = (double)problem->blocks * (double)problem->steps;
    return (struct assay_cost){
        .multiply_adds = steps * (double)problem->elements * rows * n,
        .bytes = steps * ASSAY_WGMMA_STEP_BYTES * (rows + n) +
                 8 * (double)problem->blocks * rows * n,
    };
}

static bool is_constant_by_design(const void *bound)
{
    (void)bound;
    return false;
}

static bool is_exact(const void *bound, enum assay_data_kind kind, int output)
{
    (void)bound, (void)output;
    return kind == ASSAY_DATA_EXACT;
}

const struct assay_operation assay_wgmma = {
    .name = "wgmma",
    .summary = "d = c + a b^T, one chain of tensor-core instructions a block",
    .parameters = parameters,
    .numerics = assay_wgmma_numerics_table,
    .knobs = assay_wgmma_knobs,
    .features = assay_wgmma_features,
    .problem_bytes = sizeof(struct assay_wgmma_problem),
    .numerics_bytes = sizeof(struct assay_wgmma_numerics),
    .bind = bind,
    .default_numerics = default_numerics,
    .check_numerics = assay_wgmma_check_numerics,
    .shape = shape,
    .fill = assay_wgmma_fill,
    .parts = parts,
    .region = region,
    .model = model,
    .oracle = oracle,
    .place = place,
    .cost = cost,
    .is_measured = assay_wgmma_is_measured,
    .is_constant_by_design = is_constant_by_design,
    .is_exact = is_exact,
};
