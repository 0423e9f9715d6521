/* SPDX-License-Identifier: MIT */
#include "verify/operation/parts.h"

/* Multiply-adds and bytes of a case of some ten milliseconds: to wake threads and to wait
 * for the last of them costs more than they save below, where processors are shared. */
#define WORTH_THREADS 0x1p24
/* Elements that take as long to make up. */
#define ELEMENTS_WORTH_THREADS 0x1p20

enum { ROWS_A_PART = 16 };

static enum assay_status
for_each_part(int64_t parts, bool is_parallel,
              enum assay_status (*work)(void *context, int64_t part), void *context)
{
    int64_t first_failure = parts;
    enum assay_status failure = ASSAY_RAN;
#pragma omp parallel for schedule(dynamic) if (is_parallel)
    for (int64_t part = 0; part < parts; part++) {
        int64_t stop;
#pragma omp atomic read
        stop = first_failure;
        if (stop < part) continue;
        const enum assay_status status = work(context, part);
        if (status == ASSAY_RAN) continue;
#pragma omp critical
        if (part < first_failure) {
#pragma omp atomic write
            first_failure = part;
            failure = status;
        }
    }
    return failure;
}

enum assay_status
assay_for_each_part(int64_t parts, enum assay_status (*work)(void *context, int64_t part),
                    void *context)
{
    return for_each_part(parts, true, work, context);
}

enum assay_status
assay_for_each_part_of(const struct assay_operation *operation, const void *problem,
                       enum assay_status (*work)(void *context, int64_t part),
                       void *context)
{
    const struct assay_cost cost = operation->cost(problem);
    const bool is_parallel = cost.multiply_adds + cost.bytes >= WORTH_THREADS;
    return for_each_part(operation->parts(problem), is_parallel, work, context);
}

struct row_loop {
    int64_t rows;
    void (*work)(const void *context, int64_t row);
    const void *context;
};

static enum assay_status rows_of_part(void *context, int64_t part)
{
    const struct row_loop *const loop = context;
    const int64_t first = part * ROWS_A_PART, left = loop->rows - first;
    for (int64_t i = 0; i < left && i < ROWS_A_PART; i++)
        loop->work(loop->context, first + i);
    return ASSAY_RAN;
}

void assay_for_each_row(int64_t rows, int64_t elements,
                        void (*work)(const void *context, int64_t row),
                        const void *context)
{
    struct row_loop loop = { rows, work, context };
    const int64_t parts = (rows + ROWS_A_PART - 1) / ROWS_A_PART;
    const bool is_parallel = (double)rows * (double)elements >= ELEMENTS_WORTH_THREADS;
    if (is_parallel)
        for_each_part(parts, true, rows_of_part, &loop);
    else
        for (int64_t row = 0; row < rows; row++)
            work(context, row);
}

struct model_run {
    const struct assay_operation *operation;
    const void *problem, *numerics;
    const struct assay_tensors *tensors;
};

static enum assay_status model_part(void *context, int64_t part)
{
    const struct model_run *const run = context;
    return run->operation->model(run->problem, run->numerics, run->tensors, part);
}

enum assay_status assay_run_model(const struct assay_operation *operation,
                                  const void *problem, const void *numerics,
                                  const struct assay_tensors *tensors)
{
    struct model_run run = { operation, problem, numerics, tensors };
    return assay_for_each_part_of(operation, problem, model_part, &run);
}
