/* SPDX-License-Identifier: MIT */
/* Descriptor of mla_combine: its keys, numerics and tensors. */
#include "verify/operation/mla_combine/mla_combine.h"

#include "ref/kernel/mla_combine.h"
#include "verify/operation/mla/mla_bound.h"
#include "verify/operation/mla/mla_numerics.h"

#include <assert.h>
#include <stdio.h>

enum { MAX_TOKENS = 4096, MAX_HEADS = 4096 };

static const struct assay_choice formats[] = {
    { "bf16", ASSAY_BF16, NULL },
    { "f16", ASSAY_F16, NULL },
    { NULL, 0, NULL },
};

static const struct assay_parameter parameters[] = {
    { .name = "b",
      .meaning = "requests",
      .minimum = 1,
      .maximum = ASSAY_MLA_MAX_REQUESTS,
      .is_required = true },
    { .name = "s_q",
      .meaning = "query tokens a request",
      .minimum = 1,
      .maximum = MAX_TOKENS,
      .default_value = 1 },
    { .name = "h_q",
      .meaning = "query heads",
      .minimum = 1,
      .maximum = MAX_HEADS,
      .default_value = 128 },
    { .name = "splits",
      .meaning = "splits of each request, or of all; a request of 1 is left as it is",
      .minimum = 1,
      .maximum = ASSAY_MLA_MAX_PARTS,
      .is_required = true,
      .is_list = true },
    { .name = "empty",
      .meaning = "share of rows of splits that have no key",
      .maximum = ASSAY_FRACTION_UNIT,
      .is_fraction = true },
    { .name = "sink", .meaning = "1: there is an attn_sink", .maximum = 1 },
    { .name = "format",
      .meaning = "of out",
      .choices = formats,
      .default_value = ASSAY_BF16 },
    { .name = NULL },
};

/* Upstream multiplies split and stride in 32 bits. */
static enum assay_status refuse_size(const struct assay_case *the_case,
                                     const struct assay_mla_combine_problem *problem,
                                     struct assay_message *message)
{
    const int64_t elements =
        problem->splits * problem->s_q * problem->h_q * ASSAY_MLA_D_V;
    if (elements <= INT32_MAX || the_case->is_unsafe) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "oaccum would have %lld elements, which upstream's 32-bit indices "
                      "cannot name; use fewer splits, tokens or heads, or unsafe=1",
                      (long long)elements);
}

static enum assay_status refuse_empty(const struct assay_case *the_case,
                                      const struct assay_mla_combine_case *given,
                                      struct assay_message *message)
{
    const bool is_set =
        the_case->data == ASSAY_DATA_EXACT || the_case->data == ASSAY_DATA_TIES;
    if (given->empty == 0 || !is_set) return ASSAY_RAN;
    return assay_fail(
        message, ASSAY_REFUSED,
        "data=%s itself says which splits have no key; leave out empty=, or "
        "use another kind",
        assay_data_kinds[the_case->data].name);
}

static enum assay_status bind(const struct assay_case *the_case, void *bound,
                              struct assay_message *message)
{
    struct assay_mla_combine_case *const given = bound;
    int count;
    const int64_t *const splits = assay_case_list(the_case, "splits", &count);
    const int64_t b = assay_case_value(the_case, "b");
    *given = (struct assay_mla_combine_case){
        .problem = { .b = b,
                     .s_q = assay_case_value(the_case, "s_q"),
                     .h_q = assay_case_value(the_case, "h_q"),
                     .format = (enum assay_format)assay_case_value(the_case, "format"),
                     .has_sink = assay_case_value(the_case, "sink") != 0 },
        .empty = assay_case_value(the_case, "empty"),
        .splits_count = count,
    };
    if (count != 1 && count != b)
        return assay_fail(
            message, ASSAY_REFUSED,
            "splits= has %d values for %lld requests; give one for each, or "
            "one for all",
            count, (long long)b);
    for (int i = 0; i < count; i++) {
        given->splits[i] = (int32_t)splits[i];
        given->problem.splits += count == 1 ? b * splits[i] : splits[i];
    }
    const enum assay_status status = refuse_size(the_case, &given->problem, message);
    return status == ASSAY_RAN ? refuse_empty(the_case, given, message) : status;
}

/* --- numerics --------------------------------------------------------------------- */

static const struct assay_mla_combine_numerics flashmla = {
    .functions = ASSAY_MLA_FUNCTIONS_HARDWARE,
    .flush = 1,
    .sink_product = ASSAY_MLA_SINK_FUSED,
    .lse_form = ASSAY_MLA_LSE_SEPARATE,
    .zero_weight = ASSAY_MLA_ZERO_WEIGHT_KEPT,
};
static const struct assay_mla_combine_numerics exact_functions = {
    .functions = ASSAY_MLA_FUNCTIONS_ROUNDED,
    .flush = 1,
    .sink_product = ASSAY_MLA_SINK_FUSED,
    .lse_form = ASSAY_MLA_LSE_SEPARATE,
    .zero_weight = ASSAY_MLA_ZERO_WEIGHT_KEPT,
};

static const struct assay_named_numerics numerics_table[] = {
    { "flashmla-combine", "FlashMLA: a warp a row, weights from the final logarithm",
      &flashmla },
    { "exact-functions", "the same with 2^x and log2 x rounded to nearest",
      &exact_functions },
    { NULL, NULL, NULL },
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

static bool is_measured(const void *numerics)
{
    const struct assay_mla_combine_numerics *const given = numerics;
    return given->functions == ASSAY_MLA_FUNCTIONS_HARDWARE;
}

/* --- tensors ---------------------------------------------------------------------- */

static void set(struct assay_tensors *tensors, int place, const char *name,
                enum assay_format format, int rank, const int64_t *extents)
{
    struct assay_tensor *const tensor = &tensors->item[place];
    *tensor = (struct assay_tensor){ .name = name,
                                     .format = format,
                                     .is_output = place == ASSAY_COMBINE_OUT ||
                                                  place == ASSAY_COMBINE_LSE,
                                     .rank = rank };
    for (int i = 0; i < rank; i++)
        tensor->shape[i] = extents[i];
    assay_tensor_set_dense(tensor);
}

static void shape(const void *bound, struct assay_tensors *tensors)
{
    const struct assay_mla_combine_problem *const p = bound;
    const int64_t partial[] = { p->splits, p->s_q, p->h_q, ASSAY_MLA_D_V };
    const int64_t out[] = { p->b, p->s_q, p->h_q, ASSAY_MLA_D_V };
    const int64_t lse[] = { p->b, p->h_q, p->s_q }, ends = p->b + 1;
    tensors->count = ASSAY_COMBINE_SINK + p->has_sink;
    set(tensors, ASSAY_COMBINE_OACCUM, "oaccum", ASSAY_F32, 4, partial);
    set(tensors, ASSAY_COMBINE_LSEACCUM, "lseaccum", ASSAY_F32, 3, partial);
    set(tensors, ASSAY_COMBINE_NUM_SPLITS, "num_splits", ASSAY_I32, 1, &ends);
    set(tensors, ASSAY_COMBINE_OUT, "out", p->format, 4, out);
    set(tensors, ASSAY_COMBINE_LSE, "lse", ASSAY_F32, 3, lse);
    if (p->has_sink) set(tensors, ASSAY_COMBINE_SINK, "attn_sink", ASSAY_F32, 1, &p->h_q);
}

static int64_t parts(const void *problem)
{
    return assay_mla_combine_parts(problem);
}

static void region(const void *bound, int64_t part, int output,
                   struct assay_region *region)
{
    const struct assay_mla_combine_problem *const problem = bound;
    const int64_t request = part / problem->s_q, token = part % problem->s_q;
    assert(output == ASSAY_COMBINE_OUT || output == ASSAY_COMBINE_LSE);
    *region =
        output == ASSAY_COMBINE_OUT
            ? (struct assay_region){ .start = { request, token },
                                     .count = { 1, 1, problem->h_q, ASSAY_MLA_D_V } }
            : (struct assay_region){ .start = { request, 0, token },
                                     .count = { 1, problem->h_q, 1 } };
}

static void defined(const void *bound, const struct assay_tensors *tensors, int64_t part,
                    int output, uint8_t *definedness)
{
    const struct assay_mla_combine_problem *const problem = bound;
    const int64_t columns = output == ASSAY_COMBINE_OUT ? ASSAY_MLA_D_V : 1;
    int64_t first;
    const int64_t splits = assay_mla_combine_splits(
        problem, &tensors->item[ASSAY_COMBINE_NUM_SPLITS], part / problem->s_q, &first);
    for (int64_t i = 0; i < problem->h_q * columns; i++)
        definedness[i] = splits > 1 ? ASSAY_DEFINED : ASSAY_UNTOUCHED;
}

static void place(const void *bound, int output, int64_t element,
                  struct assay_place *where)
{
    const struct assay_mla_combine_problem *const problem = bound;
    const int64_t s_q = problem->s_q, h_q = problem->h_q;
    if (output == ASSAY_COMBINE_OUT)
        snprintf(where->text, sizeof(where->text),
                 "request %lld, token %lld, head %lld, column %lld",
                 (long long)(element / ASSAY_MLA_D_V / h_q / s_q),
                 (long long)(element / ASSAY_MLA_D_V / h_q % s_q),
                 (long long)(element / ASSAY_MLA_D_V % h_q),
                 (long long)(element % ASSAY_MLA_D_V));
    else
        snprintf(where->text, sizeof(where->text), "request %lld, token %lld, head %lld",
                 (long long)(element / s_q / h_q), (long long)(element % s_q),
                 (long long)(element / s_q % h_q));
}

static struct assay_cost cost(const void *bound)
{
    const struct assay_mla_combine_problem *const problem = bound;
    const double rows = (double)(problem->s_q * problem->h_q);
    return (struct assay_cost){
        .multiply_adds = (double)problem->splits * rows * ASSAY_MLA_D_V,
        .bytes = (double)problem->splits * rows * 4 * (ASSAY_MLA_D_V + 1) +
                 (double)problem->b * rows * (2 * ASSAY_MLA_D_V + 4),
    };
}

static bool is_constant_by_design(const void *bound)
{
    const struct assay_mla_combine_case *const given = bound;
    return given->empty == ASSAY_FRACTION_UNIT;
}

static enum assay_status model(const void *problem, const void *numerics,
                               const struct assay_tensors *tensors, int64_t part)
{
    assay_mla_combine_model(problem, numerics, tensors, part);
    return ASSAY_RAN;
}

const struct assay_operation assay_mla_combine = {
    .name = "mla_combine",
    .summary = "out and lse from the splits of each request, FlashMLA's combine",
    .parameters = parameters,
    .numerics = numerics_table,
    .knobs = assay_mla_combine_knobs,
    .properties = assay_mla_combine_properties,
    .features = assay_mla_combine_features,
    .problem_bytes = sizeof(struct assay_mla_combine_case),
    .numerics_bytes = sizeof(struct assay_mla_combine_numerics),
    .bind = bind,
    .default_numerics = default_numerics,
    .check_numerics = check_numerics,
    .shape = shape,
    .fill = assay_mla_combine_fill,
    .check_inputs = assay_mla_combine_check_inputs,
    .parts = parts,
    .region = region,
    .defined = defined,
    .used = assay_mla_combine_used,
    .model = model,
    .oracle = assay_mla_combine_expect,
    .place = place,
    .cost = cost,
    .is_measured = is_measured,
    .is_constant_by_design = is_constant_by_design,
    .is_exact = assay_mla_combine_is_exact,
};
