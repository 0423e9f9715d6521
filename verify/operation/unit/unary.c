/* SPDX-License-Identifier: MIT */
/* What sfu and convert have in common: y[i] is a function of x[i]. */
#include "verify/operation/unit/unit.h"

#include <stdio.h>

enum { PART = 4096, ROW = 64 };

void assay_unary_shape(const void *bound, struct assay_tensors *tensors)
{
    const struct assay_unary_problem *const problem = bound;
    tensors->count = ASSAY_UNARY_TENSORS;
    tensors->item[ASSAY_UNARY_X] = (struct assay_tensor){ .name = "x",
                                                          .format = ASSAY_F32,
                                                          .rank = 1,
                                                          .shape = { problem->count },
                                                          .stride = { 1 } };
    tensors->item[ASSAY_UNARY_Y] = tensors->item[ASSAY_UNARY_X];
    tensors->item[ASSAY_UNARY_Y].name = "y";
    tensors->item[ASSAY_UNARY_Y].format = problem->to;
    tensors->item[ASSAY_UNARY_Y].is_output = true;
}

int64_t assay_unary_parts(const void *bound)
{
    const struct assay_unary_problem *const problem = bound;
    return (problem->count + PART - 1) / PART;
}

void assay_unary_region(const void *bound, int64_t part, int output,
                        struct assay_region *region)
{
    (void)output;
    const struct assay_unary_problem *const problem = bound;
    const int64_t rest = problem->count - part * PART;
    *region = (struct assay_region){ .start = { part * PART },
                                     .count = { rest < PART ? rest : PART } };
}

void assay_unary_place(const void *bound, int output, int64_t element,
                       struct assay_place *place)
{
    (void)bound, (void)output;
    snprintf(place->text, sizeof(place->text), "element %lld", (long long)element);
}

struct assay_cost assay_unary_cost(const void *bound)
{
    const struct assay_unary_problem *const problem = bound;
    const double count = (double)problem->count;
    return (struct assay_cost){
        .multiply_adds = count,
        .bytes = count * (4 + (double)assay_format_bytes(problem->to)),
    };
}

bool assay_unary_is_constant_by_design(const void *bound)
{
    (void)bound;
    return false;
}

void assay_unary_fill_runs(const struct assay_tensor *x, uint64_t seed,
                           const struct assay_run_range *range)
{
    struct assay_runs runs;
    for (int64_t i = 0; i < x->shape[0]; i++) {
        if (i % ROW == 0) {
            struct assay_stream stream;
            assay_stream_open(&stream, seed, x->name,
                              assay_data_kinds[ASSAY_DATA_RUNS].name, i / ROW);
            assay_runs_begin(&runs, &stream);
        }
        assay_tensor_set_bits(x, i, assay_runs_next(&runs, range));
    }
}

void assay_unary_fill(const struct assay_tensor *x, enum assay_data_kind kind,
                      uint64_t seed, const void *context,
                      uint32_t (*draw)(struct assay_stream *stream, const void *context))
{
    struct assay_stream stream;
    for (int64_t i = 0; i < x->shape[0]; i++) {
        if (i % ROW == 0)
            assay_stream_open(&stream, seed, x->name, assay_data_kinds[kind].name,
                              i / ROW);
        assay_tensor_set_bits(x, i, draw(&stream, context));
    }
}
