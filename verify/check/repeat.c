/* SPDX-License-Identifier: MIT */
/* Check "repeat": the same inputs give the same bits, whatever ran before and whatever
 * the outputs held. Runs on the trial's inputs alternate with runs on second inputs, so
 * that workspaces are dirty. */
#include "verify/check/inputs.h"
#include "verify/check/rerun.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct assay_check assay_check_repeat;

/* Of every second run on the trial's inputs. With two, five launches would make a round,
 * and what goes wrong every tenth time could hide behind the last launch of a run. */
enum { LAUNCHES = 3 };

#define OTHER_SEED UINT64_C(0x9E3779B97F4A7C15)

struct inputs { /* one of the two, and what their first run gave */
    struct assay_rerun rerun;
    struct assay_run_outputs first;
    const char *name;
    int runs; /* in all */
};

struct repeat {
    struct assay_trial *trial;
    struct assay_result *result;
    struct inputs same, second;
    bool has_second;
    struct assay_tensors second_first; /* outputs of the first run on second inputs */
    struct assay_buffers second_buffers;
    bool is_promised; /* a difference is a failure */
    bool has_differed, has_failed;
    struct assay_finding difference; /* the first that is allowed */
};

static bool have_same_shapes(const struct assay_tensors *a, const struct assay_tensors *b)
{
    if (a->count != b->count) return false;
    for (int i = 0; i < a->count; i++) {
        const struct assay_tensor *const one = &a->item[i], *const other = &b->item[i];
        if (one->format != other->format || one->rank != other->rank) return false;
        for (int axis = 0; axis < one->rank; axis++)
            if (one->shape[axis] != other->shape[axis] ||
                one->stride[axis] != other->stride[axis])
                return false;
    }
    return true;
}

/* Second inputs of a kind; false when the operation takes none of that kind there. */
static bool fill_second(struct repeat *repeat, enum assay_data_kind kind,
                        enum assay_status *status)
{
    struct assay_rerun *const rerun = &repeat->second.rerun;
    struct assay_message ignored;
    struct assay_case the_case = *repeat->trial->the_case;
    the_case.data = kind;
    the_case.seed ^= OTHER_SEED;
    the_case.explicit_bits_count = 0;
    *status = assay_rerun_open(rerun, &the_case, &ignored);
    bool is_filled = *status == ASSAY_RAN &&
                     have_same_shapes(&rerun->tensors, repeat->trial->candidate);
    if (is_filled) {
        the_case.operation->fill(&rerun->problem, kind, the_case.seed, &rerun->tensors);
        is_filled = assay_inputs_check(&the_case, &rerun->problem, &rerun->tensors,
                                       &ignored) == ASSAY_RAN;
    }
    if (!is_filled) assay_rerun_close(rerun);
    return is_filled;
}

/* Data of the case's kind, else normal ones, else none: the runs then follow each other
 * directly. */
static enum assay_status open_second(struct repeat *repeat)
{
    const enum assay_data_kind kind = repeat->trial->the_case->data;
    enum assay_status status = ASSAY_RAN;
    repeat->has_second =
        (kind != ASSAY_DATA_RECORDED && fill_second(repeat, kind, &status)) ||
        (status != ASSAY_OUT_OF_MEMORY &&
         fill_second(repeat, ASSAY_DATA_NORMAL, &status));
    if (status == ASSAY_OUT_OF_MEMORY) return status;
    if (!repeat->has_second) return ASSAY_RAN;
    repeat->second_first = repeat->second.rerun.tensors;
    for (int i = 0; i < repeat->second_first.count; i++)
        if (repeat->second_first.item[i].is_output)
            repeat->second_first.item[i].data = NULL;
    struct assay_message ignored;
    return assay_buffers_open(&repeat->second_buffers, &repeat->second_first, &ignored);
}

static enum assay_status open_repeat(struct repeat *repeat)
{
    const struct assay_trial *const trial = repeat->trial;
    const struct assay_trial_plan *const plan = trial->plan;
    struct assay_message ignored;
    repeat->same.runs = plan->repeats ? plan->repeats : ASSAY_DEFAULT_REPEATS;
    repeat->second.runs = repeat->same.runs - (repeat->same.runs > 2 ? 2 : 1);
    repeat->is_promised = trial->claim->is_deterministic || trial->claim->has_numerics ||
                          plan->require == ASSAY_EQUAL;
    repeat->same.name = "the same";
    repeat->second.name = "second";
    repeat->same.first = (struct assay_run_outputs){ trial->candidate, trial->poison };
    const enum assay_status status =
        assay_rerun_open_same(&repeat->same.rerun, trial, &ignored);
    return status == ASSAY_RAN ? open_second(repeat) : status;
}

/* A run with other bits: a failure, or within the bound and then worth a note. */
static enum assay_status weigh(struct repeat *repeat, struct inputs *inputs, int run,
                               uint8_t poison, struct assay_finding *difference)
{
    const bool has_bound = repeat->trial->plan->uses_oracle;
    struct assay_finding outside = { .elements = 0 };
    enum assay_status status = ASSAY_RAN;
    if (!repeat->is_promised && has_bound)
        status = assay_rerun_judge(repeat->trial, &inputs->rerun, poison, &outside);
    const bool is_failure = repeat->is_promised || outside.elements > 0;
    const int64_t elements = difference->elements;
    if (outside.elements > 0) *difference = outside;
    difference->check = assay_check_repeat.name;
    difference->is_failure = is_failure;
    snprintf(difference->sentence, sizeof(difference->sentence),
             "run %d of %d on %s inputs gave other bits in %lld element%s%s", run,
             inputs->runs, inputs->name, (long long)elements, elements == 1 ? "" : "s",
             repeat->is_promised    ? ""
             : outside.elements > 0 ? ", some of them beyond the bound"
             : has_bound            ? ", all within the bound"
                                    : "");
    if (is_failure)
        *assay_result_add_finding(repeat->result, difference->check, true) = *difference;
    else if (!repeat->has_differed)
        repeat->difference = *difference;
    repeat->has_failed |= is_failure;
    repeat->has_differed = true;
    return status;
}

static enum assay_status run_once(struct repeat *repeat, struct inputs *inputs, int run,
                                  uint8_t poison, int launches)
{
    char doing[64];
    struct assay_finding difference = { .elements = 0 };
    const struct assay_run_outputs outputs = { &inputs->rerun.tensors, poison };
    snprintf(doing, sizeof(doing), "run %d of %d on %s inputs", run, inputs->runs,
             inputs->name);
    const enum assay_status status = assay_rerun_run(
        repeat->trial, &inputs->rerun, poison, launches, doing, repeat->result);
    if (status != ASSAY_RAN || !inputs->first.tensors) return status;
    assay_rerun_compare(&inputs->rerun, &inputs->first, &outputs, &difference);
    return difference.elements ? weigh(repeat, inputs, run, poison, &difference)
                               : ASSAY_RAN;
}

static enum assay_status run_second(struct repeat *repeat, int run)
{
    struct inputs *const inputs = &repeat->second;
    const uint8_t poison = run % 2 ? ASSAY_RERUN_POISON : ASSAY_BUFFER_POISON;
    const bool is_first = !inputs->first.tensors;
    const enum assay_status status = run_once(repeat, inputs, run, poison, 1);
    if (status != ASSAY_RAN || !is_first) return status;
    for (int i = 0; i < repeat->second_first.count; i++) {
        const struct assay_tensor *const tensor = &repeat->second_first.item[i];
        if (tensor->is_output)
            memcpy(tensor->data, inputs->rerun.tensors.item[i].data,
                   (size_t)assay_tensor_bytes(tensor));
    }
    inputs->first = (struct assay_run_outputs){ &repeat->second_first, poison };
    return ASSAY_RAN;
}

/* The trial's own run was the first. Four runs see both poisons with one launch and with
 * several. */
static enum assay_status run_all(struct repeat *repeat)
{
    enum assay_status status = ASSAY_RAN;
    for (int run = 2; run <= repeat->same.runs; run++) {
        const uint8_t poison = run % 4 < 2 ? ASSAY_BUFFER_POISON : ASSAY_RERUN_POISON;
        if (repeat->has_second && run - 1 <= repeat->second.runs)
            status = run_second(repeat, run - 1);
        if (status != ASSAY_RAN || repeat->has_failed) return status;
        status = run_once(repeat, &repeat->same, run, poison, run % 2 ? 1 : LAUNCHES);
        if (status != ASSAY_RAN || repeat->has_failed) return status;
    }
    return ASSAY_RAN;
}

static enum assay_status judge(struct assay_trial *trial, struct assay_result *result)
{
    struct repeat *const repeat = calloc(1, sizeof(*repeat));
    if (!repeat) return ASSAY_OUT_OF_MEMORY;
    repeat->trial = trial;
    repeat->result = result;
    enum assay_status status = open_repeat(repeat);
    if (status == ASSAY_RAN) status = run_all(repeat);
    if (repeat->has_differed && !repeat->has_failed)
        *assay_result_add_finding(result, assay_check_repeat.name, false) =
            repeat->difference;
    trial->is_repeatable = !repeat->has_differed;
    assay_rerun_close(&repeat->same.rerun);
    assay_rerun_close(&repeat->second.rerun);
    assay_buffers_close(&repeat->second_buffers);
    free(repeat);
    return status;
}

static bool applies(const struct assay_trial *trial)
{
    return !trial->plan->candidate->is_recording;
}

const struct assay_check assay_check_repeat = {
    .name = "repeat",
    .proves = "the same inputs give the same bits again, after other inputs, over any "
              "contents of the outputs, and launched several times",
    .runs_candidate = true,
    .applies = applies,
    .judge = judge,
};
