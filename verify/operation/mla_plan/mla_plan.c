/* SPDX-License-Identifier: MIT */
/* Descriptor of mla_plan: its tensors, model, oracle, and what is defined. */
#include "verify/operation/mla_plan/mla_plan.h"

#include "ref/kernel/mla_plan.h"
#include "ref/oracle/mla_plan.h"

#include <math.h>
#include <stdio.h>

/* --- numerics --------------------------------------------------------------------- */

static const struct assay_mla_plan_numerics flashmla = { .block_keys = ASSAY_MLA_BLOCK,
                                                         .overhead = -1 };

static const struct assay_named_numerics numerics_table[] = {
    { "flashmla-plan", "FlashMLA's scheduler: parts in order, each as much as it can pay",
      &flashmla },
    { NULL, NULL, NULL },
};

#define AT(field) offsetof(struct assay_mla_plan_numerics, field)
static const struct assay_knob knobs[] = {
    { "block_keys", "keys a block", AT(block_keys), NULL, 1, 4096 },
    { "overhead", "blocks a request costs beside its own; -1: as the case says",
      AT(overhead), NULL, -1, 1024 },
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

static bool is_measured(const void *numerics)
{
    (void)numerics;
    return true;
}

/* --- tensors ---------------------------------------------------------------------- */

static struct assay_tensor *add(struct assay_tensors *tensors, const char *name,
                                int64_t length)
{
    struct assay_tensor *const tensor = &tensors->item[tensors->count++];
    *tensor = (struct assay_tensor){
        .name = name, .format = ASSAY_I32, .rank = 1, .shape = { length }, .stride = { 1 }
    };
    return tensor;
}

/* The outputs are the last two tensors. */
static void shape(const void *bound, struct assay_tensors *tensors)
{
    const struct assay_mla_plan_problem *const problem = bound;
    tensors->count = 0;
    if (!problem->is_sparse) add(tensors, "cache_seqlens", problem->b);
    if (problem->has_topk_length) add(tensors, "topk_length", problem->b);
    if (problem->has_extra_topk_length) add(tensors, "extra_topk_length", problem->b);
    struct assay_tensor *const metadata =
        add(tensors, "tile_scheduler_metadata", problem->num_sm_parts);
    metadata->rank = 2;
    metadata->shape[1] = ASSAY_PLAN_FIELDS;
    assay_tensor_set_dense(metadata);
    metadata->is_output = true;
    add(tensors, "num_splits", problem->b + 1)->is_output = true;
}

static int metadata_place(const struct assay_mla_plan_problem *problem)
{
    return !problem->is_sparse + problem->has_topk_length +
           problem->has_extra_topk_length;
}

static int64_t parts(const void *problem)
{
    (void)problem;
    return 1;
}

static void region(const void *bound, int64_t part, int output,
                   struct assay_region *region)
{
    (void)part;
    const struct assay_mla_plan_problem *const problem = bound;
    *region = output == metadata_place(problem)
                  ? (struct assay_region){ .count = { problem->num_sm_parts,
                                                      ASSAY_PLAN_FIELDS } }
                  : (struct assay_region){ .count = { problem->b + 1 } };
}

static void place(const void *bound, int output, int64_t element,
                  struct assay_place *where)
{
    static const char *const fields[ASSAY_PLAN_FIELDS] = {
        "begin_req",   "end_req",        "begin_block",   "end_block",
        "begin_split", "is_first_split", "is_last_split", "pad"
    };
    if (output == metadata_place(bound))
        snprintf(where->text, sizeof(where->text), "part %lld, %s",
                 (long long)(element / ASSAY_PLAN_FIELDS),
                 fields[element % ASSAY_PLAN_FIELDS]);
    else if (element == 0)
        snprintf(where->text, sizeof(where->text), "splits before request 0");
    else
        snprintf(where->text, sizeof(where->text), "splits up to request %lld",
                 (long long)element - 1);
}

static struct assay_cost cost(const void *bound)
{
    const struct assay_mla_plan_problem *const problem = bound;
    const double words = (double)(problem->num_sm_parts * ASSAY_PLAN_FIELDS) +
                         (double)(problem->b * (1 + metadata_place(problem)) + 1);
    return (struct assay_cost){ .multiply_adds = 0, .bytes = 4 * words };
}

/* num_splits begins with 0 and ends with b or more. */
static bool is_constant_by_design(const void *problem)
{
    (void)problem;
    return false;
}

/* --- model and oracle ------------------------------------------------------------- */

static enum assay_status model(const void *problem, const void *numerics,
                               const struct assay_tensors *tensors, int64_t part)
{
    (void)part;
    assay_mla_plan_model(problem, numerics, tensors);
    return ASSAY_RAN;
}

static enum assay_status oracle(const void *bound, const void *numerics,
                                const struct assay_tensors *tensors, int64_t part,
                                const struct assay_expected *expected)
{
    (void)part;
    const struct assay_mla_plan_problem *const problem = bound;
    const struct assay_mla_plan_numerics *const given = numerics;
    const struct assay_mla_plan_rules rules = {
        .block_keys = given->block_keys,
        .overhead = given->overhead < 0 ? problem->overhead : given->overhead,
    };
    const struct assay_expected *const metadata = &expected[metadata_place(problem)];
    const struct assay_expected *const num_splits = metadata + 1;
    assay_mla_plan_oracle(problem, &rules, tensors, metadata->value, num_splits->value);
    for (int64_t i = 0; i < problem->num_sm_parts * ASSAY_PLAN_FIELDS; i++) {
        metadata->bound[i] = isnan(metadata->value[i]) ? (double)INFINITY : 0;
        if (isnan(metadata->value[i])) metadata->value[i] = 0;
    }
    for (int64_t i = 0; i <= problem->b; i++)
        num_splits->bound[i] = 0;
    return ASSAY_RAN;
}

/* By the case's own rules, whatever a knob may make of them. */
static void defined(const void *bound, const struct assay_tensors *tensors, int64_t part,
                    int output, uint8_t *definedness)
{
    (void)part;
    const struct assay_mla_plan_problem *const problem = bound;
    const struct assay_mla_plan_rules rules = { .block_keys = ASSAY_MLA_BLOCK,
                                                .overhead = problem->overhead };
    double metadata[ASSAY_MLA_MAX_PARTS * ASSAY_PLAN_FIELDS];
    double num_splits[ASSAY_MLA_MAX_REQUESTS + 1];
    assay_mla_plan_oracle(problem, &rules, tensors, metadata, num_splits);
    if (output == metadata_place(problem))
        for (int64_t i = 0; i < problem->num_sm_parts * ASSAY_PLAN_FIELDS; i++)
            definedness[i] =
                (uint8_t)(isnan(metadata[i]) ? ASSAY_UNDEFINED : ASSAY_DEFINED);
    else
        for (int64_t i = 0; i <= problem->b; i++)
            definedness[i] = ASSAY_DEFINED;
}

const struct assay_operation assay_mla_plan = {
    .name = "mla_plan",
    .summary =
        "splits of requests for the parts of the machine, FlashMLA's tile scheduler",
    .parameters = assay_mla_plan_parameters,
    .numerics = numerics_table,
    .knobs = knobs,
    .properties = assay_mla_plan_properties,
    .features = assay_mla_plan_features,
    .problem_bytes = sizeof(struct assay_mla_plan_case),
    .numerics_bytes = sizeof(struct assay_mla_plan_numerics),
    .data_kinds = 1u << ASSAY_DATA_NORMAL | 1u << ASSAY_DATA_RUNS | 1u << ASSAY_DATA_ZERO,
    .bind = assay_mla_plan_bind,
    .default_numerics = default_numerics,
    .check_numerics = check_numerics,
    .shape = shape,
    .fill = assay_mla_plan_fill,
    .check_inputs = assay_mla_plan_check_lengths,
    .parts = parts,
    .region = region,
    .defined = defined,
    .model = model,
    .oracle = oracle,
    .place = place,
    .cost = cost,
    .is_measured = is_measured,
    .is_constant_by_design = is_constant_by_design,
};
