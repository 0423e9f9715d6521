/* SPDX-License-Identifier: MIT */
/* Descriptor of mla_absorb: its keys, what they may be, and the tensors they mean. */
#include "verify/operation/mla_absorb/mla_absorb.h"

#include "ref/kernel/mla_absorb.h"
#include "verify/operation/mla_absorb/mla_absorb_properties.h"

#include <math.h>
#include <stdio.h>

static const struct assay_choice forms[] = {
    { "absorbed", ASSAY_MLA_ABSORBED, "heads attend to c_kv and k_r, as decode does" },
    { "expanded", ASSAY_MLA_EXPANDED, "each head has keys and values of its own" },
    { NULL, 0, NULL },
};
static const struct assay_choice out_formats[] = { { "bf16", ASSAY_BF16, NULL },
                                                   { "f32", ASSAY_F32, NULL },
                                                   { NULL, 0, NULL } };

static const struct assay_parameter parameters[] = {
    { .name = "n",
      .meaning = "tokens",
      .minimum = 1,
      .maximum = 4096,
      .is_required = true },
    { .name = "s_q",
      .meaning = "queries: the last of the tokens; each sees the tokens up to its own",
      .minimum = 1,
      .maximum = 4096,
      .default_value = 1 },
    { .name = "h_q",
      .meaning = "heads",
      .minimum = 1,
      .maximum = 128,
      .default_value = 2 },
    { .name = "d",
      .meaning = "elements of a hidden state",
      .minimum = 1,
      .maximum = 8192,
      .default_value = 64 },
    { .name = "d_c",
      .meaning = "elements of c_kv",
      .minimum = 1,
      .maximum = 1024,
      .default_value = 32 },
    { .name = "d_c_q",
      .meaning = "elements of c_q",
      .minimum = 1,
      .maximum = 2048,
      .default_value = 32 },
    { .name = "d_h",
      .meaning = "elements of k_c, q_c and v of a head",
      .minimum = 1,
      .maximum = 256,
      .default_value = 16 },
    { .name = "d_r",
      .meaning = "elements of k_r and q_r; even",
      .minimum = 2,
      .maximum = 128,
      .default_value = 8 },
    { .name = "form",
      .meaning = "which side of the dot products the up-projections are on",
      .choices = forms,
      .default_value = ASSAY_MLA_ABSORBED },
    { .name = "out",
      .meaning = "format of o",
      .choices = out_formats,
      .default_value = ASSAY_BF16 },
    { .name = "weight_exponent",
      .meaning = "generated weights are of the order of 2^weight_exponent",
      .minimum = -12,
      .maximum = 0,
      .default_value = -3 },
    { .name = NULL },
};

static enum assay_status refuse_exact(const struct assay_mla_absorb_problem *problem,
                                      struct assay_message *message)
{
    const int64_t n = problem->n;
    if (problem->s_q != 1)
        return assay_fail(
            message, ASSAY_REFUSED,
            "data=exact with s_q=%lld has queries that see different numbers "
            "of keys, not all powers of two; use s_q=1",
            (long long)problem->s_q);
    if (n > ASSAY_MLA_ABSORB_LARGEST_EXACT_N || (n & (n - 1)))
        return assay_fail(
            message, ASSAY_REFUSED,
            "data=exact divides by n=%lld, which rounds; use a power of two "
            "of at most %d",
            (long long)n, ASSAY_MLA_ABSORB_LARGEST_EXACT_N);
    return ASSAY_RAN;
}

static enum assay_status bind(const struct assay_case *the_case, void *bound,
                              struct assay_message *message)
{
    struct assay_mla_absorb_case *const absorb = bound;
    struct assay_mla_absorb_problem *const problem = &absorb->problem;
    *problem = (struct assay_mla_absorb_problem){
        .n = assay_case_value(the_case, "n"),
        .s_q = assay_case_value(the_case, "s_q"),
        .h_q = assay_case_value(the_case, "h_q"),
        .d = assay_case_value(the_case, "d"),
        .d_c = assay_case_value(the_case, "d_c"),
        .d_c_q = assay_case_value(the_case, "d_c_q"),
        .d_h = assay_case_value(the_case, "d_h"),
        .d_r = assay_case_value(the_case, "d_r"),
        .out = (enum assay_format)assay_case_value(the_case, "out"),
        .form = (enum assay_mla_absorb_form)assay_case_value(the_case, "form"),
    };
    problem->softmax_scale = (float)(1 / sqrt((double)(problem->d_h + problem->d_r)));
    absorb->weight_exponent = (int)assay_case_value(the_case, "weight_exponent");
    if (problem->s_q > problem->n)
        return assay_fail(
            message, ASSAY_REFUSED,
            "s_q=%lld queries are more than the n=%lld tokens; s_q must be at "
            "most n",
            (long long)problem->s_q, (long long)problem->n);
    if (problem->d_r % 2)
        return assay_fail(
            message, ASSAY_REFUSED,
            "d_r=%lld is odd, but elements are turned in pairs; use an even "
            "number",
            (long long)problem->d_r);
    return the_case->data == ASSAY_DATA_EXACT ? refuse_exact(problem, message)
                                              : ASSAY_RAN;
}

static const struct assay_named_numerics *default_numerics(const void *bound)
{
    (void)bound;
    return &assay_mla_absorb_numerics_table[0];
}

/* Every knob goes with every other: what no unit takes runs as fma. */
static enum assay_status check_numerics(const void *bound, const void *numerics,
                                        struct assay_message *message)
{
    (void)bound, (void)numerics, (void)message;
    return ASSAY_RAN;
}

static struct assay_tensor tensor(const char *name, enum assay_format format,
                                  int64_t heads, int64_t rows, int64_t columns)
{
    struct assay_tensor made = { .name = name, .format = format, .rank = heads ? 3 : 2 };
    int dimension = 0;
    if (heads) made.shape[dimension++] = heads;
    made.shape[dimension++] = rows;
    made.shape[dimension] = columns;
    assay_tensor_set_dense(&made);
    return made;
}

static void shape(const void *bound, struct assay_tensors *tensors)
{
    const struct assay_mla_absorb_problem *const p =
        &((const struct assay_mla_absorb_case *)bound)->problem;
    struct assay_tensor *const item = tensors->item;
    tensors->count = ASSAY_MLA_ABSORB_TENSORS;
    item[ASSAY_MLA_ABSORB_HIDDEN] = tensor("hidden", ASSAY_BF16, 0, p->n, p->d);
    item[ASSAY_MLA_ABSORB_W_DKV] = tensor("w_dkv", ASSAY_BF16, 0, p->d_c, p->d);
    item[ASSAY_MLA_ABSORB_W_KR] = tensor("w_kr", ASSAY_BF16, 0, p->d_r, p->d);
    item[ASSAY_MLA_ABSORB_W_UK] = tensor("w_uk", ASSAY_BF16, p->h_q, p->d_h, p->d_c);
    item[ASSAY_MLA_ABSORB_W_UV] = tensor("w_uv", ASSAY_BF16, p->h_q, p->d_h, p->d_c);
    item[ASSAY_MLA_ABSORB_W_DQ] = tensor("w_dq", ASSAY_BF16, 0, p->d_c_q, p->d);
    item[ASSAY_MLA_ABSORB_W_UQ] = tensor("w_uq", ASSAY_BF16, p->h_q, p->d_h, p->d_c_q);
    item[ASSAY_MLA_ABSORB_W_QR] = tensor("w_qr", ASSAY_BF16, p->h_q, p->d_r, p->d_c_q);
    item[ASSAY_MLA_ABSORB_COS] = tensor("cos", ASSAY_F32, 0, p->n, p->d_r / 2);
    item[ASSAY_MLA_ABSORB_SIN] = tensor("sin", ASSAY_F32, 0, p->n, p->d_r / 2);
    item[ASSAY_MLA_ABSORB_O] = tensor("o", p->out, p->s_q, p->h_q, p->d_h);
    item[ASSAY_MLA_ABSORB_O].is_output = true;
}

static int64_t parts(const void *bound)
{
    return assay_mla_absorb_parts(
        &((const struct assay_mla_absorb_case *)bound)->problem);
}

static void region(const void *bound, int64_t part, int output,
                   struct assay_region *region)
{
    (void)output;
    const struct assay_mla_absorb_problem *const p =
        &((const struct assay_mla_absorb_case *)bound)->problem;
    *region =
        (struct assay_region){ .start = { 0, part, 0 }, .count = { p->s_q, 1, p->d_h } };
}

static enum assay_status model(const void *bound, const void *numerics,
                               const struct assay_tensors *tensors, int64_t part)
{
    const struct assay_mla_absorb_case *const absorb = bound;
    return assay_mla_absorb_model(&absorb->problem, numerics, tensors, part)
               ? ASSAY_RAN
               : ASSAY_OUT_OF_MEMORY;
}

static enum assay_status oracle(const void *bound, const void *numerics,
                                const struct assay_tensors *tensors, int64_t part,
                                const struct assay_expected *expected)
{
    const struct assay_mla_absorb_case *const absorb = bound;
    return assay_mla_absorb_expect(&absorb->problem, numerics, tensors, part,
                                   &expected[ASSAY_MLA_ABSORB_O]);
}

static void place(const void *bound, int output, int64_t element,
                  struct assay_place *where)
{
    (void)output;
    const struct assay_mla_absorb_problem *const p =
        &((const struct assay_mla_absorb_case *)bound)->problem;
    const int64_t row = element / p->d_h;
    snprintf(where->text, sizeof(where->text), "query %lld, head %lld, element %lld",
             (long long)(row / p->h_q), (long long)(row % p->h_q),
             (long long)(element % p->d_h));
}

/* What the heads share is counted once, though the model repeats it for each. */
static struct assay_cost cost(const void *bound)
{
    const struct assay_mla_absorb_problem *const p =
        &((const struct assay_mla_absorb_case *)bound)->problem;
    const double n = (double)p->n, s_q = (double)p->s_q, h_q = (double)p->h_q;
    const double d = (double)p->d, d_c = (double)p->d_c, d_c_q = (double)p->d_c_q;
    const double d_h = (double)p->d_h, d_r = (double)p->d_r;
    const double latents = n * d * (d_c + d_r) + s_q * d * d_c_q;
    const double queries = s_q * d_c_q * (d_h + d_r);
    const double absorbed = 2 * s_q * d_h * d_c + s_q * n * (2 * d_c + d_r);
    const double expanded = 2 * n * d_h * d_c + s_q * n * (2 * d_h + d_r);
    const double attention = p->form == ASSAY_MLA_ABSORBED ? absorbed : expanded;
    const double of_weights =
        d * (d_c + d_r + d_c_q) + h_q * (2 * d_h * d_c + (d_h + d_r) * d_c_q);
    return (struct assay_cost){
        .multiply_adds = latents + h_q * (queries + attention),
        .bytes = 2 * (n * d + of_weights) + 4 * n * d_r +
                 s_q * h_q * d_h * (double)assay_format_bytes(p->out),
    };
}

/* bf16 wgmma, ex2, rcp and f32 fma were. */
static bool is_measured(const void *numerics)
{
    (void)numerics;
    return true;
}

static const char *remark(const void *bound, const void *numerics)
{
    (void)bound, (void)numerics;
    return "ours: units as measured, but no upstream sm_90 kernel computes all of it";
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

const struct assay_operation assay_mla_absorb = {
    .name = "mla_absorb",
    .summary = "latent attention from hidden states, absorbed or expanded",
    .parameters = parameters,
    .numerics = assay_mla_absorb_numerics_table,
    .knobs = assay_mla_absorb_knobs,
    .properties = assay_mla_absorb_properties,
    .features = assay_mla_absorb_features,
    .problem_bytes = sizeof(struct assay_mla_absorb_case),
    .numerics_bytes = sizeof(struct assay_mla_absorb_numerics),
    .data_kinds = ASSAY_MLA_ABSORB_KINDS,
    .bind = bind,
    .default_numerics = default_numerics,
    .check_numerics = check_numerics,
    .shape = shape,
    .fill = assay_mla_absorb_fill,
    .parts = parts,
    .region = region,
    .model = model,
    .oracle = oracle,
    .place = place,
    .cost = cost,
    .is_measured = is_measured,
    .remark = remark,
    .is_constant_by_design = is_constant_by_design,
    .is_exact = is_exact,
};
