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

void assay_unary_draw(struct assay_stream *stream, double multiply_adds,
                      bool (*has_data)(enum assay_data_kind kind),
                      struct assay_case *the_case)
{
    /* A few elements only might all have one result. */
    static const int64_t counts[] = { 1, 64, 65, 127, 1000, 4096, 4097, 10000 };
    int64_t count;
    do
        count = counts[assay_stream_below(stream, sizeof(counts) / sizeof(counts[0]))];
    while ((double)count > multiply_adds);
    assay_case_set(the_case, "count", count);
    do
        the_case->data =
            (enum assay_data_kind)assay_stream_below(stream, ASSAY_GENERAL_DATA_KINDS);
    while (!has_data(the_case->data));
    the_case->seed = assay_stream_next(stream);
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
