/* SPDX-License-Identifier: MIT */
/* Descriptor of scale_layout: its keys, which conversions are legal, and the tensors they
 * mean. */
#include "verify/operation/scale_layout/scale_layout.h"

#include "ref/layout/scale_layout.h"
#include "ref/oracle/scale_layout.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { MAX_EXTENT = 1 << 24, MAX_GROUPS = 1 << 16, HOPPER_GRAN_K = 128 };
enum { SF, OUT }; /* places of the tensors */

static const struct assay_choice layouts[] = {
    { "k_major", ASSAY_SCALE_K_MAJOR, "f32, K contiguous: what quantisers write" },
    { "mn_major", ASSAY_SCALE_MN_MAJOR, "f32, rows contiguous: what sm_90 kernels read" },
    { "packed_ue8m0", ASSAY_SCALE_PACKED_UE8M0,
      "four exponents an i32, rows contiguous: what sm_100 kernels read" },
    { NULL, 0, NULL },
};
static const struct assay_choice gran_mns[] = { { "1", 1, NULL },
                                                { "128", 128, NULL },
                                                { NULL, 0, NULL } };
static const struct assay_choice gran_ks[] = { { "32", 32, NULL },
                                               { "128", 128, NULL },
                                               { NULL, 0, NULL } };

static const struct assay_parameter parameters[] = {
    { .name = "groups",
      .meaning = "groups; 0: one, without a dimension of its own",
      .maximum = MAX_GROUPS },
    { .name = "mn",
      .meaning = "rows of the operand",
      .maximum = MAX_EXTENT,
      .is_required = true },
    { .name = "k",
      .meaning = "columns of the operand",
      .maximum = MAX_EXTENT,
      .is_required = true },
    { .name = "gran_mn",
      .meaning = "rows a scale covers; packing repeats it",
      .choices = gran_mns,
      .default_value = 1 },
    { .name = "gran_k",
      .meaning = "columns a scale covers",
      .choices = gran_ks,
      .default_value = HOPPER_GRAN_K },
    { .name = "from",
      .meaning = "layout of sf",
      .choices = layouts,
      .default_value = ASSAY_SCALE_K_MAJOR },
    { .name = "to",
      .meaning = "layout of out",
      .choices = layouts,
      .default_value = ASSAY_SCALE_MN_MAJOR },
    { .name = NULL },
};

/* What no layout can do. */
static enum assay_status refuse_impossible(const struct assay_case *the_case,
                                           const struct assay_scale_layout_problem *p,
                                           struct assay_message *message)
{
    if (p->from == p->to)
        return assay_fail(message, ASSAY_REFUSED,
                          "from and to are both %s, so there is nothing to convert; "
                          "make them differ",
                          layouts[p->to].name);
    if (p->from == ASSAY_SCALE_PACKED_UE8M0 && p->gran_mn != 1)
        return assay_fail(message, ASSAY_REFUSED,
                          "packed scales have one row for each of mn, so "
                          "from=packed_ue8m0 needs gran_mn=1");
    if (!assay_scale_layout_has_data(the_case->data))
        return assay_fail(message, ASSAY_REFUSED,
                          "data=%s says nothing about scales; use another kind, such as "
                          "normal",
                          assay_data_kinds[the_case->data].name);
    return ASSAY_RAN;
}

/* What DeepGEMM's packer traps on. */
static enum assay_status refuse_unpackable(const struct assay_case *the_case,
                                           struct assay_message *message)
{
    if (!assay_scale_layout_has_packable_data(the_case->data))
        return assay_fail(message, ASSAY_REFUSED,
                          "data=%s has scales that are no powers of two, on which "
                          "upstream's packer traps; use another kind, or unsafe=1",
                          assay_data_kinds[the_case->data].name);
    for (int i = 0; i < the_case->explicit_bits_count; i++) {
        const struct assay_explicit_bits *const bits = &the_case->explicit_bits[i];
        if (strcmp(bits->tensor, "sf") == 0 && !assay_scale_is_packable(bits->bits))
            return assay_fail(
                message, ASSAY_REFUSED,
                "bits= gives the scale 0x%08x, which has a sign or mantissa "
                "bits; to be packed it must have exponent bits only, or "
                "use unsafe=1",
                bits->bits);
    }
    return ASSAY_RAN;
}

static enum assay_status refuse_illegal(const struct assay_case *the_case,
                                        const struct assay_scale_layout_problem *p,
                                        struct assay_message *message)
{
    if (the_case->is_unsafe) return ASSAY_RAN;
    if (p->to == ASSAY_SCALE_PACKED_UE8M0) return refuse_unpackable(the_case, message);
    if (p->from == ASSAY_SCALE_PACKED_UE8M0) return ASSAY_RAN;
    if (p->gran_k != HOPPER_GRAN_K)
        return assay_fail(message, ASSAY_REFUSED,
                          "f32 scales are for kernels that need gran_k=128, but the case "
                          "has gran_k=%lld; use that, packed_ue8m0, or unsafe=1",
                          (long long)p->gran_k);
    if (p->gran_mn != 1)
        return assay_fail(message, ASSAY_REFUSED,
                          "f32 scales of 128 x 128 blocks are used in either layout, so "
                          "upstream converts none; use gran_mn=1, to=packed_ue8m0, or "
                          "unsafe=1");
    return ASSAY_RAN;
}

static enum assay_status bind(const struct assay_case *the_case, void *bound,
                              struct assay_message *message)
{
    struct assay_scale_layout_problem *const problem = bound;
    *problem = (struct assay_scale_layout_problem){
        .groups = assay_case_value(the_case, "groups"),
        .mn = assay_case_value(the_case, "mn"),
        .k = assay_case_value(the_case, "k"),
        .gran_mn = assay_case_value(the_case, "gran_mn"),
        .gran_k = assay_case_value(the_case, "gran_k"),
        .from = (enum assay_scale_layout)assay_case_value(the_case, "from"),
        .to = (enum assay_scale_layout)assay_case_value(the_case, "to"),
    };
    const enum assay_status status = refuse_impossible(the_case, problem, message);
    return status == ASSAY_RAN ? refuse_illegal(the_case, problem, message) : status;
}

static const struct assay_scale_layout_numerics low_first = { ASSAY_SCALE_LOW_FIRST };

static const struct assay_named_numerics numerics_table[] = {
    { "deepgemm", "as DeepGEMM's kernels read scales", &low_first },
    { NULL, NULL, NULL },
};

static const struct assay_choice byte_orders[] = {
    { "low-first", ASSAY_SCALE_LOW_FIRST, NULL },
    { "high-first", ASSAY_SCALE_HIGH_FIRST, "a known fault" },
    { NULL, 0, NULL },
};
static const struct assay_knob knobs[] = {
    { "byte_order", "where a packed word has its lowest K block",
      offsetof(struct assay_scale_layout_numerics, byte_order), byte_orders, 0, 0 },
    { NULL, NULL, 0, NULL, 0, 0 },
};

static const struct assay_named_numerics *default_numerics(const void *problem)
{
    (void)problem;
    return &numerics_table[0];
}

static enum assay_status check_numerics(const void *problem, const void *numerics,
                                        struct assay_message *message)
{
    (void)problem, (void)numerics, (void)message;
    return ASSAY_RAN;
}

static void shape(const void *bound, struct assay_tensors *tensors)
{
    const struct assay_scale_layout_problem *const problem = bound;
    tensors->count = 2;
    tensors->item[SF] = assay_scale_layout_tensor(problem, problem->from, "sf");
    tensors->item[OUT] = assay_scale_layout_tensor(problem, problem->to, "out");
    tensors->item[OUT].is_output = true;
}

static int64_t parts(const void *problem)
{
    return assay_scale_layout_parts(problem);
}

static void region(const void *bound, int64_t part, int output,
                   struct assay_region *region)
{
    const struct assay_scale_layout_problem *const problem = bound;
    const struct assay_scale_layout_range range =
        assay_scale_layout_part_range(problem, part);
    const int64_t per_word =
        problem->to == ASSAY_SCALE_PACKED_UE8M0 ? ASSAY_SCALES_IN_WORD : 1;
    const int rows = problem->groups > 0 ? 1 : 0; /* dimensions, in a k_major tensor */
    const bool is_k_major = problem->to == ASSAY_SCALE_K_MAJOR;
    const int row_axis = is_k_major ? rows : rows + 1;
    const int k_axis = is_k_major ? rows + 1 : rows;
    assert(output == OUT);
    *region = (struct assay_region){ .start = { range.group }, .count = { 1 } };
    region->start[row_axis] = range.row0;
    region->count[row_axis] = range.rows;
    region->start[k_axis] = range.k0 / per_word;
    region->count[k_axis] = (range.k_blocks + per_word - 1) / per_word;
}

static enum assay_status model(const void *problem, const void *numerics,
                               const struct assay_tensors *tensors, int64_t part)
{
    assay_scale_layout_model(problem, numerics, tensors, part);
    return ASSAY_RAN;
}

static enum assay_status oracle(const void *problem, const void *numerics,
                                const struct assay_tensors *tensors, int64_t part,
                                const struct assay_expected *expected)
{
    const struct assay_scale_layout_numerics *const given = numerics;
    const bool is_high_first = given->byte_order == ASSAY_SCALE_HIGH_FIRST;
    struct assay_region box;
    assay_scale_layout_oracle_part(problem, is_high_first, tensors, part,
                                   expected[OUT].value);
    region(problem, part, OUT, &box);
    int64_t count = 1;
    for (int i = 0; i < tensors->item[OUT].rank; i++)
        count *= box.count[i];
    memset(expected[OUT].bound, 0, (size_t)count * sizeof(double));
    return ASSAY_RAN;
}

static void place(const void *bound, int output, int64_t element,
                  struct assay_place *where)
{
    (void)output;
    const struct assay_scale_layout_problem *const problem = bound;
    const struct assay_tensor out =
        assay_scale_layout_tensor(problem, problem->to, "out");
    const int64_t inner = out.shape[out.rank - 1], outer = out.shape[out.rank - 2];
    const int64_t group = element / inner / outer;
    const int64_t first = element / inner % outer, second = element % inner;
    const bool is_k_major = problem->to == ASSAY_SCALE_K_MAJOR;
    snprintf(where->text, sizeof(where->text), "group %lld, row %lld, K %s %lld",
             (long long)group, (long long)(is_k_major ? first : second),
             problem->to == ASSAY_SCALE_PACKED_UE8M0 ? "word" : "block",
             (long long)(is_k_major ? second : first));
}

static struct assay_cost cost(const void *bound)
{
    const struct assay_scale_layout_problem *const problem = bound;
    const struct assay_tensor sf =
        assay_scale_layout_tensor(problem, problem->from, "sf");
    const struct assay_tensor out =
        assay_scale_layout_tensor(problem, problem->to, "out");
    const double words =
        (double)assay_tensor_elements(&sf) + (double)assay_tensor_elements(&out);
    return (struct assay_cost){ .multiply_adds = 0, .bytes = 4 * words };
}

static bool is_measured(const void *numerics)
{
    (void)numerics;
    return true;
}

/* One word, repeated along mn. */
static bool is_constant_by_design(const void *bound)
{
    const struct assay_scale_layout_problem *const problem = bound;
    return problem->to == ASSAY_SCALE_PACKED_UE8M0 && problem->groups <= 1 &&
           assay_scale_rows(problem, problem->from) == 1 &&
           assay_scale_k_blocks(problem) <= ASSAY_SCALES_IN_WORD;
}

const struct assay_operation assay_scale_layout = {
    .name = "scale_layout",
    .summary = "scale factors from one memory layout to another",
    .parameters = parameters,
    .numerics = numerics_table,
    .knobs = knobs,
    .features = assay_scale_layout_features,
    .problem_bytes = sizeof(struct assay_scale_layout_problem),
    .numerics_bytes = sizeof(struct assay_scale_layout_numerics),
    .bind = bind,
    .default_numerics = default_numerics,
    .check_numerics = check_numerics,
    .shape = shape,
    .fill = assay_scale_layout_fill,
    .parts = parts,
    .region = region,
    .model = model,
    .oracle = oracle,
    .place = place,
    .cost = cost,
    .is_measured = is_measured,
    .is_constant_by_design = is_constant_by_design,
};
