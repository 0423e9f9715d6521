/* SPDX-License-Identifier: MIT */
/* Descriptor of quantise: its keys, what they may be, and the tensors they mean. */
#include "verify/operation/quantise/quantise.h"

#include "ref/kernel/quantise.h"
#include "verify/operation/quantise/quantise_properties.h"

#include <stdio.h>

enum { MAX_EXTENT = 1 << 24 };
enum scale_kind { SCALE_F32, SCALE_UE8M0 };

static const struct assay_choice granularities[] = {
    { "token", ASSAY_QUANTISE_TOKEN, "a scale for 1 x gran_k elements" },
    { "block", ASSAY_QUANTISE_BLOCK, "a scale for gran_k x gran_k elements" },
    { NULL, 0, NULL },
};
static const struct assay_choice x_formats[] = { { "bf16", ASSAY_BF16, NULL },
                                                 { "f32", ASSAY_F32, NULL },
                                                 { NULL, 0, NULL } };
static const struct assay_choice scales[] = {
    { "f32", SCALE_F32, "max(amax, 1e-4) / 448" },
    { "ue8m0", SCALE_UE8M0, "that, rounded up to a power of two; stored as f32" },
    { NULL, 0, NULL },
};
static const struct assay_choice gran_ks[] = { { "32", 32, NULL },
                                               { "128", 128, NULL },
                                               { NULL, 0, NULL } };

static const struct assay_parameter parameters[] = {
    { .name = "m",
      .meaning = "rows of x and q",
      .maximum = MAX_EXTENT,
      .is_required = true },
    { .name = "k",
      .meaning = "columns of x and q",
      .maximum = MAX_EXTENT,
      .is_required = true },
    { .name = "granularity",
      .meaning = "what a scale covers",
      .choices = granularities,
      .default_value = ASSAY_QUANTISE_TOKEN },
    { .name = "gran_k",
      .meaning = "elements of K a scale covers",
      .choices = gran_ks,
      .default_value = 128 },
    { .name = "x_format",
      .meaning = "format of x",
      .choices = x_formats,
      .default_value = ASSAY_BF16 },
    { .name = "scale",
      .meaning = "form of the scales",
      .choices = scales,
      .default_value = SCALE_F32 },
    { .name = "x_stride",
      .meaning = "elements from row to row of x; 0: k",
      .maximum = MAX_EXTENT },
    { .name = "q_stride",
      .meaning = "elements from row to row of q; 0: k",
      .maximum = MAX_EXTENT },
    { .name = NULL },
};

static enum assay_status bind_stride(const struct assay_case *the_case, const char *key,
                                     int64_t *stride, struct assay_message *message)
{
    const int64_t k = assay_case_value(the_case, "k");
    const int64_t given = assay_case_value(the_case, key);
    *stride = given ? given : k;
    if (given && given < k)
        return assay_fail(message, ASSAY_REFUSED,
                          "%s=%lld is shorter than a row; it must be 0 or at least %lld",
                          key, (long long)given, (long long)k);
    return ASSAY_RAN;
}

static enum assay_status bind(const struct assay_case *the_case, void *bound,
                              struct assay_message *message)
{
    struct assay_quantise_case *const quantise = bound;
    const int64_t gran_k = assay_case_value(the_case, "gran_k");
    const bool is_block =
        assay_case_value(the_case, "granularity") == ASSAY_QUANTISE_BLOCK;
    *quantise = (struct assay_quantise_case){
        .problem = {
            .m = assay_case_value(the_case, "m"),
            .k = assay_case_value(the_case, "k"),
            .gran_m = is_block ? gran_k : 1,
            .gran_k = gran_k,
            .has_power_of_two_scale = assay_case_value(the_case, "scale") == SCALE_UE8M0,
        },
        .x_format = (enum assay_format)assay_case_value(the_case, "x_format"),
    };
    if (!assay_quantise_has_data(the_case->data))
        return assay_fail(message, ASSAY_REFUSED,
                          "data=%s means products that cancel, but quantise forms none; "
                          "use another kind, such as normal",
                          assay_data_kinds[the_case->data].name);
    enum assay_status status =
        bind_stride(the_case, "x_stride", &quantise->x_stride, message);
    if (status == ASSAY_RAN)
        status = bind_stride(the_case, "q_stride", &quantise->q_stride, message);
    return status;
}

static const struct assay_named_numerics *default_numerics(const void *bound)
{
    (void)bound;
    return &assay_quantise_numerics_table[0];
}

static enum assay_status check_numerics(const void *bound, const void *numerics,
                                        struct assay_message *message)
{
    const struct assay_quantise_case *const quantise = bound;
    const struct assay_quantise_numerics *const given = numerics;
    if (given->order == ASSAY_QUANTISE_BY_RAW_SCALE &&
        !quantise->problem.has_power_of_two_scale)
        return assay_fail(message, ASSAY_REFUSED,
                          "order=raw-scale needs scales that are rounded up; use "
                          "scale=ue8m0 or order=stored-scale");
    return ASSAY_RAN;
}

static struct assay_tensor matrix(const char *name, enum assay_format format,
                                  int64_t rows, int64_t columns, int64_t stride)
{
    return (struct assay_tensor){
        .name = name,
        .format = format,
        .rank = 2,
        .shape = { rows, columns },
        .stride = { stride, 1 },
    };
}

static void shape(const void *bound, struct assay_tensors *tensors)
{
    const struct assay_quantise_case *const quantise = bound;
    const struct assay_quantise_problem *const problem = &quantise->problem;
    const int64_t m = problem->m, k = problem->k;
    const int64_t rows = (m + problem->gran_m - 1) / problem->gran_m;
    const int64_t columns = (k + problem->gran_k - 1) / problem->gran_k;
    tensors->count = 3;
    tensors->item[ASSAY_QUANTISE_X] =
        matrix("x", quantise->x_format, m, k, quantise->x_stride);
    tensors->item[ASSAY_QUANTISE_Q] = matrix("q", ASSAY_E4M3, m, k, quantise->q_stride);
    tensors->item[ASSAY_QUANTISE_SF] = matrix("sf", ASSAY_F32, rows, columns, columns);
    tensors->item[ASSAY_QUANTISE_Q].is_output = true;
    tensors->item[ASSAY_QUANTISE_SF].is_output = true;
}

static int64_t parts(const void *bound)
{
    const struct assay_quantise_case *const quantise = bound;
    return assay_quantise_parts(&quantise->problem);
}

static void region(const void *bound, int64_t part, int output,
                   struct assay_region *region)
{
    const struct assay_quantise_case *const quantise = bound;
    struct assay_quantise_range range =
        assay_quantise_part_range(&quantise->problem, part);
    if (output == ASSAY_QUANTISE_SF)
        range = assay_quantise_blocks(&quantise->problem, &range);
    *region = (struct assay_region){ .start = { range.m0, range.k0 },
                                     .count = { range.rows, range.columns } };
}

static enum assay_status model(const void *bound, const void *numerics,
                               const struct assay_tensors *tensors, int64_t part)
{
    const struct assay_quantise_case *const quantise = bound;
    assay_quantise_model(&quantise->problem, numerics, tensors, part);
    return ASSAY_RAN;
}

static enum assay_status oracle(const void *bound, const void *numerics,
                                const struct assay_tensors *tensors, int64_t part,
                                const struct assay_expected *expected)
{
    const struct assay_quantise_case *const quantise = bound;
    assay_quantise_expect(&quantise->problem, numerics, tensors, part, expected);
    return ASSAY_RAN;
}

static void place(const void *bound, int output, int64_t element,
                  struct assay_place *where)
{
    const struct assay_quantise_problem *const problem =
        &((const struct assay_quantise_case *)bound)->problem;
    const bool is_scale = output == ASSAY_QUANTISE_SF;
    const int64_t k_blocks = (problem->k + problem->gran_k - 1) / problem->gran_k;
    const int64_t columns = is_scale ? k_blocks : problem->k;
    const int64_t row = element / columns, column = element % columns;
    snprintf(where->text, sizeof(where->text), "scale %lld,%lld",
             (long long)(is_scale ? row : row / problem->gran_m),
             (long long)(is_scale ? column : column / problem->gran_k));
}

static struct assay_cost cost(const void *bound)
{
    const struct assay_quantise_case *const quantise = bound;
    const double elements = (double)quantise->problem.m * (double)quantise->problem.k;
    const double x_bytes = (double)assay_format_bytes(quantise->x_format);
    return (struct assay_cost){ .multiply_adds = elements,
                                .bytes = elements * (x_bytes + 1) };
}

/* Arithmetic of f32 and the conversion to e4m3 were. */
static bool is_measured(const void *numerics)
{
    (void)numerics;
    return true;
}

static bool is_constant_by_design(const void *bound)
{
    (void)bound;
    return false;
}

const struct assay_operation assay_quantise = {
    .name = "quantise",
    .summary = "q, sf = x in e4m3 with one scale a block",
    .parameters = parameters,
    .numerics = assay_quantise_numerics_table,
    .knobs = assay_quantise_knobs,
    .properties = assay_quantise_properties,
    .features = assay_quantise_features,
    .problem_bytes = sizeof(struct assay_quantise_case),
    .numerics_bytes = sizeof(struct assay_quantise_numerics),
    .bind = bind,
    .default_numerics = default_numerics,
    .check_numerics = check_numerics,
    .shape = shape,
    .fill = assay_quantise_fill,
    .parts = parts,
    .region = region,
    .model = model,
    .oracle = oracle,
    .place = place,
    .cost = cost,
    .is_measured = is_measured,
    .is_constant_by_design = is_constant_by_design,
};
