/* SPDX-License-Identifier: MIT */
/* The walk that shows other people's criteria every defined element of the outputs beside
 * the oracle's value. Sums are taken within a part and then by part, so that they do not
 * depend on the number of threads. */
#include "ref/format/minifloat.h"
#include "verify/check/trial.h"
#include "verify/operation/expectation.h"
#include "verify/operation/parts.h"

#include <stdlib.h>

struct column {        /* one criterion on one output */
    int output, place; /* in the trial's tensors, in the result's outputs */
    const struct assay_criterion *criterion;
};

struct criteria_run {
    const struct assay_trial *trial;
    int count;
    struct column column[ASSAY_MAX_TENSORS * ASSAY_MAX_CRITERIA];
    struct assay_criterion_tally *tally; /* [part][column] */
};

static void tally_column(const struct assay_trial *trial, const struct column *column,
                         const struct assay_part_expectation *expectation,
                         struct assay_criterion_tally *tally)
{
    const int output = column->output;
    const struct assay_tensor *const candidate = &trial->candidate->item[output];
    const struct assay_minifloat *const format = assay_minifloat(candidate->format);
    for (struct assay_region_walk at =
             assay_region_begin(candidate, &expectation->region[output]);
         at.index < at.count; assay_region_next(&at)) {
        if (assay_definedness_at(trial->map[output], at.element) != ASSAY_DEFINED)
            continue;
        const uint32_t bits = assay_tensor_bits(candidate, at.element);
        assay_criterion_add(column->criterion,
                            format ? assay_minifloat_decode(format, bits) : bits,
                            expectation->expected[output].value[at.index], tally);
    }
}

static enum assay_status judge_part(void *context, int64_t part)
{
    const struct criteria_run *const run = context;
    const struct assay_trial *const trial = run->trial;
    struct assay_part_expectation expectation;
    const enum assay_status status =
        assay_expect_part(trial->operation, trial->problem, trial->numerics,
                          trial->candidate, part, &expectation);
    for (int i = 0; status == ASSAY_RAN && i < run->count; i++)
        tally_column(trial, &run->column[i], &expectation,
                     &run->tally[part * run->count + i]);
    assay_part_expectation_close(&expectation);
    return status;
}

static void choose_columns(struct criteria_run *run)
{
    const struct assay_trial *const trial = run->trial;
    const struct assay_criteria *const criteria = &trial->plan->criteria;
    int place = 0;
    for (int i = 0; i < trial->candidate->count; i++) {
        if (!trial->candidate->item[i].is_output) continue;
        for (int name = 0; name < criteria->count; name++) {
            const struct assay_criterion *const criterion = assay_criterion_find(
                criteria->name[name], trial->operation->name, trial->candidate, i);
            if (criterion)
                run->column[run->count++] = (struct column){ i, place, criterion };
        }
        place++;
    }
}

static void conclude(const struct criteria_run *run, int64_t parts,
                     struct assay_result *result)
{
    for (int i = 0; i < run->count; i++) {
        const struct column *const column = &run->column[i];
        struct assay_output_result *const output = &result->output[column->place];
        struct assay_criterion_tally total = { 0 };
        for (int64_t part = 0; part < parts; part++)
            assay_criterion_merge(&run->tally[part * run->count + i], &total);
        output->criterion[output->criterion_count++] =
            assay_criterion_conclude(column->criterion, &total);
    }
    result->criteria = run->trial->plan->criteria;
}

enum assay_status assay_criteria_judge(const struct assay_trial *trial,
                                       struct assay_result *result)
{
    if (trial->plan->criteria.count == 0) return ASSAY_RAN;
    const int64_t parts = trial->operation->parts(trial->problem);
    struct criteria_run run = { .trial = trial };
    choose_columns(&run);
    run.tally = calloc((size_t)parts * (size_t)run.count + 1, sizeof(*run.tally));
    if (!run.tally) return ASSAY_OUT_OF_MEMORY;

    const enum assay_status status =
        run.count > 0 ? assay_for_each_part(parts, judge_part, &run) : ASSAY_RAN;
    if (status == ASSAY_RAN) conclude(&run, parts, result);
    free(run.tally);
    return status;
}
