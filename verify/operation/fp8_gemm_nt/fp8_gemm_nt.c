/* SPDX-License-Identifier: MIT */
/* Descriptor of fp8_gemm_nt: its keys, what they may be, and the tensors they mean. */
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt.h"

#include "ref/kernel/fp8_gemm_mx.h"
#include "ref/layout/scale_layout.h"
#include "verify/operation/fp8_gemm_nt/fp8_gemm_mx_bound.h"
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt_properties.h"

#include <stdio.h>
#include <string.h>

enum { MAX_EXTENT = 1 << 24, BLOCK = 128, ALIGNMENT_BYTES = 16 };

static const struct assay_choice recipes[] = {
    { "1d2d", ASSAY_RECIPE_1D2D, "sfa a 1 x 128 block, sfb a 128 x 128 block" },
    { "1d1d", ASSAY_RECIPE_1D1D, "sfa and sfb a 1 x 128 block" },
    { "tensor", ASSAY_RECIPE_TENSOR, "one scale for each operand" },
    { "mx", ASSAY_RECIPE_MX, "packed UE8M0 sfa and sfb a 1 x gran_k block" },
    { NULL, 0, NULL },
};
const struct assay_choice assay_fp8_gemm_out_formats[] = { { "bf16", ASSAY_BF16, NULL },
                                                           { "f32", ASSAY_F32, NULL },
                                                           { NULL, 0, NULL } };
const struct assay_choice assay_fp8_gemm_operand_formats[] = {
    { "e4m3", ASSAY_E4M3, NULL }, { "e5m2", ASSAY_E5M2, NULL }, { NULL, 0, NULL }
};
static const struct assay_choice operand_formats[] = {
    { "e4m3", ASSAY_E4M3, NULL },
    { "e5m2", ASSAY_E5M2, NULL },
    { "e2m1", ASSAY_E2M1, "one code a byte; recipe mx" },
    { NULL, 0, NULL },
};
static const struct assay_choice gran_ks[] = { { "128", BLOCK, NULL },
                                               { "32", 32, "recipe mx" },
                                               { NULL, 0, NULL } };

static const struct assay_parameter parameters[] = {
    { .name = "m",
      .meaning = "rows of a and d",
      .maximum = MAX_EXTENT,
      .is_required = true },
    { .name = "n",
      .meaning = "rows of b, columns of d; a multiple of 8",
      .maximum = MAX_EXTENT,
      .is_required = true },
    { .name = "k",
      .meaning = "columns of a and b; a multiple of 16",
      .maximum = MAX_EXTENT,
      .is_required = true },
    { .name = "recipe",
      .meaning = "granularity of the scales",
      .choices = recipes,
      .default_value = ASSAY_RECIPE_1D2D },
    { .name = "gran_k",
      .meaning = "columns a scale covers; recipe tensor has one scale",
      .choices = gran_ks,
      .default_value = BLOCK },
    { .name = "out",
      .meaning = "format of d; 1d1d writes f32",
      .choices = assay_fp8_gemm_out_formats,
      .default_value = ASSAY_BF16 },
    { .name = "a_format",
      .meaning = "format of a",
      .choices = operand_formats,
      .default_value = ASSAY_E4M3 },
    { .name = "b_format",
      .meaning = "format of b",
      .choices = operand_formats,
      .default_value = ASSAY_E4M3 },
    { .name = "c",
      .meaning = "1: d accumulates onto c (f32, recipe 1d1d)",
      .maximum = 1 },
    { .name = "a_stride",
      .meaning = "elements from row to row of a; 0: k",
      .maximum = MAX_EXTENT },
    { .name = "b_stride",
      .meaning = "elements from row to row of b; 0: k",
      .maximum = MAX_EXTENT },
    { .name = "d_stride",
      .meaning = "elements from row to row of d; 0: n",
      .maximum = MAX_EXTENT },
    { .name = NULL },
};

/* 0 means dense; otherwise at least the extent and, since upstream's tensor maps demand
 * it, whole units of 16 bytes. */
static enum assay_status bind_stride(const struct assay_case *the_case, const char *key,
                                     int64_t extent, size_t element_bytes,
                                     int64_t *stride, struct assay_message *message)
{
    const int64_t given = assay_case_value(the_case, key);
    const int64_t unit = ALIGNMENT_BYTES / (int64_t)element_bytes;
    *stride = given ? given : extent;
    if (given && given < extent)
        return assay_fail(message, ASSAY_REFUSED,
                          "%s=%lld is shorter than a row; it must be 0 or at least %lld",
                          key, (long long)given, (long long)extent);
    if (given % unit && !the_case->is_unsafe)
        return assay_fail(
            message, ASSAY_REFUSED,
            "%s=%lld is no multiple of 16 bytes; use a multiple of %lld, or "
            "unsafe=1",
            key, (long long)given, (long long)unit);
    return ASSAY_RAN;
}

/* What no model can compute. */
static enum assay_status
refuse_impossible(const struct assay_case *the_case,
                  const struct assay_fp8_gemm_nt_problem *problem,
                  struct assay_message *message)
{
    const struct assay_fp8_gemm_problem *const gemm = &problem->gemm;
    if (the_case->data == ASSAY_DATA_EXACT && problem->out == ASSAY_BF16 &&
        (gemm->k > 16384 || gemm->has_c))
        return assay_fail(message, ASSAY_REFUSED,
                          "data=exact with out=bf16 cannot promise sums that fit 8 bits "
                          "for c=1 or k above 16384; use out=f32 or a smaller k");
    if (problem->recipe == ASSAY_RECIPE_MX)
        return gemm->has_c ? assay_fail(message, ASSAY_REFUSED,
                                        "recipe=mx does not accumulate onto c; leave c=1 "
                                        "out, or use recipe=1d1d out=f32")
                           : ASSAY_RAN;
    if (problem->a_format == ASSAY_E2M1 || problem->b_format == ASSAY_E2M1)
        return assay_fail(message, ASSAY_REFUSED,
                          "%s=e2m1 needs block scales inside the products; use "
                          "recipe=mx, or e4m3 or e5m2",
                          problem->a_format == ASSAY_E2M1 ? "a_format" : "b_format");
    if (assay_case_value(the_case, "gran_k") != BLOCK)
        return assay_fail(message, ASSAY_REFUSED,
                          "gran_k=%lld needs packed scales; use recipe=mx, or gran_k=128",
                          (long long)assay_case_value(the_case, "gran_k"));
    return ASSAY_RAN;
}

static enum assay_status refuse_illegal(const struct assay_case *the_case,
                                        const struct assay_fp8_gemm_nt_problem *problem,
                                        struct assay_message *message)
{
    const struct assay_fp8_gemm_problem *const gemm = &problem->gemm;
    if (the_case->is_unsafe) return ASSAY_RAN;
    if (gemm->n % 8)
        return assay_fail(message, ASSAY_REFUSED,
                          "n=%lld is no multiple of 8, which upstream traps on; use a "
                          "multiple of 8, or unsafe=1",
                          (long long)gemm->n);
    if (gemm->k % 16)
        return assay_fail(message, ASSAY_REFUSED,
                          "k=%lld is no multiple of 16, which tensor maps need; use a "
                          "multiple of 16, or unsafe=1",
                          (long long)gemm->k);
    if (problem->recipe == ASSAY_RECIPE_1D1D && problem->out != ASSAY_F32)
        return assay_fail(message, ASSAY_REFUSED,
                          "recipe=1d1d writes f32; add out=f32, or unsafe=1");
    if (gemm->has_c && problem->recipe != ASSAY_RECIPE_1D1D)
        return assay_fail(message, ASSAY_REFUSED,
                          "c=1 needs recipe=1d1d, the only one that accumulates; use "
                          "recipe=1d1d out=f32, or unsafe=1");
    return ASSAY_RAN;
}

static enum assay_status bind(const struct assay_case *the_case, void *bound,
                              struct assay_message *message)
{
    struct assay_fp8_gemm_nt_problem *const problem = bound;
    const int64_t m = assay_case_value(the_case, "m");
    const int64_t n = assay_case_value(the_case, "n");
    const int64_t k = assay_case_value(the_case, "k");
    const int64_t recipe = assay_case_value(the_case, "recipe");
    const bool is_tensor = recipe == ASSAY_RECIPE_TENSOR;
    *problem = (struct assay_fp8_gemm_nt_problem){
        .gemm = {
            .m = m, .n = n, .k = k,
            .gran_m = is_tensor ? m + !m : 1,
            .gran_n = is_tensor ? n + !n : recipe == ASSAY_RECIPE_1D2D ? BLOCK : 1,
            .gran_k = is_tensor ? k + !k : assay_case_value(the_case, "gran_k"),
            .has_c = assay_case_value(the_case, "c") != 0,
        },
        .recipe = (enum assay_fp8_gemm_recipe)recipe,
        .a_format = (enum assay_format)assay_case_value(the_case, "a_format"),
        .b_format = (enum assay_format)assay_case_value(the_case, "b_format"),
        .out = (enum assay_format)assay_case_value(the_case, "out"),
    };
    enum assay_status status = refuse_impossible(the_case, problem, message);
    if (status == ASSAY_RAN) status = refuse_illegal(the_case, problem, message);
    if (status == ASSAY_RAN)
        status = bind_stride(the_case, "a_stride", k, 1, &problem->a_stride, message);
    if (status == ASSAY_RAN)
        status = bind_stride(the_case, "b_stride", k, 1, &problem->b_stride, message);
    if (status == ASSAY_RAN)
        status = bind_stride(the_case, "d_stride", n, assay_format_bytes(problem->out),
                             &problem->d_stride, message);
    return status;
}

static void add_matrix(struct assay_tensors *tensors, const char *name,
                       enum assay_format format, int64_t rows, int64_t columns,
                       int64_t stride)
{
    tensors->item[tensors->count++] = (struct assay_tensor){
        .name = name,
        .format = format,
        .rank = 2,
        .shape = { rows, columns },
        .stride = { stride, 1 },
    };
}

static void add_scale(struct assay_tensors *tensors, const char *name, int64_t rows,
                      int64_t gran_rows, const struct assay_fp8_gemm_nt_problem *problem)
{
    if (problem->recipe == ASSAY_RECIPE_MX) {
        const struct assay_scale_layout_problem packed = {
            .mn = rows, .k = problem->gemm.k, .gran_mn = 1, .gran_k = problem->gemm.gran_k
        };
        tensors->item[tensors->count++] =
            assay_scale_layout_tensor(&packed, ASSAY_SCALE_PACKED_UE8M0, name);
        return;
    }
    const bool is_tensor = problem->recipe == ASSAY_RECIPE_TENSOR;
    const int64_t scale_rows = is_tensor ? 1 : (rows + gran_rows - 1) / gran_rows;
    const int64_t columns = is_tensor ? 1 : (problem->gemm.k + BLOCK - 1) / BLOCK;
    add_matrix(tensors, name, ASSAY_F32, scale_rows, columns, columns);
}

static void shape(const void *bound, struct assay_tensors *tensors)
{
    const struct assay_fp8_gemm_nt_problem *const problem = bound;
    const struct assay_fp8_gemm_problem *const gemm = &problem->gemm;
    tensors->count = 0;
    add_matrix(tensors, "a", problem->a_format, gemm->m, gemm->k, problem->a_stride);
    add_scale(tensors, "sfa", gemm->m, gemm->gran_m, problem);
    add_matrix(tensors, "b", problem->b_format, gemm->n, gemm->k, problem->b_stride);
    add_scale(tensors, "sfb", gemm->n, gemm->gran_n, problem);
    if (gemm->has_c) add_matrix(tensors, "c", ASSAY_F32, gemm->m, gemm->n, gemm->n);
    add_matrix(tensors, "d", problem->out, gemm->m, gemm->n, problem->d_stride);
    tensors->item[tensors->count - 1].is_output = true;
}

static int64_t parts(const void *bound)
{
    const struct assay_fp8_gemm_nt_problem *const problem = bound;
    return assay_fp8_gemm_parts(&problem->gemm);
}

static void region(const void *bound, int64_t part, int output,
                   struct assay_region *region)
{
    (void)output;
    const struct assay_fp8_gemm_nt_problem *const problem = bound;
    const struct assay_fp8_gemm_tile_range range =
        assay_fp8_gemm_part_range(&problem->gemm, part);
    *region = (struct assay_region){ .start = { range.m0, range.n0 },
                                     .count = { range.rows, range.columns } };
}

static enum assay_status model(const void *bound, const void *numerics,
                               const struct assay_tensors *tensors, int64_t part)
{
    const struct assay_fp8_gemm_nt_problem *const problem = bound;
    if (problem->recipe == ASSAY_RECIPE_MX)
        assay_fp8_gemm_mx_model(&problem->gemm, numerics, tensors, part);
    else
        assay_fp8_gemm_model(&problem->gemm, numerics, tensors, part);
    return ASSAY_RAN;
}

void assay_fp8_gemm_window(struct assay_tensors *windows, const char *name, int dimension,
                           int64_t extent)
{
    for (int i = 0; i < windows->count; i++)
        if (strcmp(windows->item[i].name, name) == 0)
            windows->item[i].shape[dimension] = extent;
}

static bool narrow(const void *bound, const struct assay_tensors *tensors, void *narrowed,
                   struct assay_tensors *windows)
{
    struct assay_fp8_gemm_nt_problem *const few = narrowed;
    *few = *(const struct assay_fp8_gemm_nt_problem *)bound;
    *windows = *tensors;
    assay_fp8_gemm_narrow(&few->gemm.m, ASSAY_FP8_GEMM_NARROW_M);
    assay_fp8_gemm_narrow(&few->gemm.n, ASSAY_FP8_GEMM_NARROW_N);
    assay_fp8_gemm_window(windows, "a", 0, few->gemm.m);
    assay_fp8_gemm_window(windows, "b", 0, few->gemm.n);
    for (int i = 0; i < 2; i++) {
        assay_fp8_gemm_window(windows, i ? "d" : "c", 0, few->gemm.m);
        assay_fp8_gemm_window(windows, i ? "d" : "c", 1, few->gemm.n);
    }
    return true;
}

struct assay_fp8_gemm_precision
assay_fp8_gemm_precision_of(const struct assay_fp8_gemm_numerics *numerics)
{
    const struct assay_dot_add unit = assay_fp8_gemm_unit(numerics);
    return (struct assay_fp8_gemm_precision){
        .terms = unit.terms,
        .groups = unit.groups,
        .adds_accumulator_last = unit.adds_accumulator_last,
        .align_bits = unit.align_bits,
        .result_bits = unit.result_bits,
        .chain_k = numerics->promote_k,
        .is_scaled_at_end = numerics->scale_form == ASSAY_SCALE_AT_END,
        .rounds_toward_zero = numerics->out_rounding == ASSAY_OUT_TOWARD_ZERO,
    };
}

static enum assay_status oracle(const void *bound, const void *numerics,
                                const struct assay_tensors *tensors, int64_t part,
                                const struct assay_expected *expected)
{
    const struct assay_fp8_gemm_nt_problem *const problem = bound;
    const struct assay_fp8_gemm_precision precision =
        assay_fp8_gemm_precision_of(numerics);
    const struct assay_expected *const d = &expected[tensors->count - 1];
    return problem->recipe == ASSAY_RECIPE_MX
               ? assay_fp8_gemm_mx_expect(&problem->gemm, &precision, tensors, part, d)
               : assay_fp8_gemm_expect(&problem->gemm, &precision, tensors, part, d);
}

static void place(const void *bound, int output, int64_t element,
                  struct assay_place *where)
{
    (void)output;
    const struct assay_fp8_gemm_nt_problem *const problem = bound;
    const int64_t row = element / problem->gemm.n, column = element % problem->gemm.n;
    const int64_t tile_m = row / ASSAY_FP8_GEMM_TILE_M;
    const int64_t tile_n = column / ASSAY_FP8_GEMM_TILE_N;
    snprintf(where->text, sizeof(where->text), "tile %lld,%lld", (long long)tile_m,
             (long long)tile_n);
}

double assay_fp8_gemm_bytes(const struct assay_tensors *tensors)
{
    double bytes = 0;
    for (int i = 0; i < tensors->count; i++) {
        const struct assay_tensor *const tensor = &tensors->item[i];
        if (tensor->format == ASSAY_I32) continue;
        bytes += (double)assay_tensor_elements(tensor) *
                 (double)assay_format_bytes(tensor->format);
    }
    return bytes;
}

static struct assay_cost cost(const void *bound)
{
    const struct assay_fp8_gemm_problem *const gemm =
        &((const struct assay_fp8_gemm_nt_problem *)bound)->gemm;
    const double m = (double)gemm->m, n = (double)gemm->n, k = (double)gemm->k;
    struct assay_tensors tensors;
    shape(bound, &tensors);
    return (struct assay_cost){ .multiply_adds = m * n * k,
                                .bytes = assay_fp8_gemm_bytes(&tensors) };
}

static bool is_constant_by_design(const void *bound)
{
    const struct assay_fp8_gemm_problem *const gemm =
        &((const struct assay_fp8_gemm_nt_problem *)bound)->gemm;
    return gemm->k == 0 && !gemm->has_c;
}

static bool is_exact(const void *bound, enum assay_data_kind kind, int output)
{
    (void)bound, (void)output;
    return kind == ASSAY_DATA_EXACT;
}

const struct assay_operation assay_fp8_gemm_nt = {
    .name = "fp8_gemm_nt",
    .summary = "d = [c +] (sfa * a) (sfb * b)^T with FP8 operands",
    .parameters = parameters,
    .numerics = assay_fp8_gemm_nt_numerics,
    .knobs = assay_fp8_gemm_nt_knobs,
    .properties = assay_fp8_gemm_nt_properties,
    .features = assay_fp8_gemm_nt_features,
    .problem_bytes = sizeof(struct assay_fp8_gemm_nt_problem),
    .numerics_bytes = sizeof(struct assay_fp8_gemm_numerics),
    .bind = bind,
    .default_numerics = assay_fp8_gemm_nt_default_numerics,
    .check_numerics = assay_fp8_gemm_nt_check_numerics,
    .shape = shape,
    .fill = assay_fp8_gemm_nt_fill,
    .parts = parts,
    .region = region,
    .model = model,
    .narrow = narrow,
    .settle = assay_fp8_gemm_nt_settle,
    .oracle = oracle,
    .place = place,
    .cost = cost,
    .is_measured = assay_fp8_gemm_nt_is_measured,
    .is_constant_by_design = is_constant_by_design,
    .is_exact = is_exact,
};
