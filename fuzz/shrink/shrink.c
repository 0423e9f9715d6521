/* SPDX-License-Identifier: MIT */
/* The order of passes, and what has to be known before the first one. */
#include "fuzz/shrink/shrink.h"

#include "fuzz/shrink/attempt.h"
#include "fuzz/shrink/signature.h"
#include "verify/data/clock.h"
#include "verify/operation/numerics.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const struct pass {
    const char *name;
    void (*run)(struct assay_shrinker *);
} shape_passes[] = {
    { "options", assay_shrink_options },
    { "lists", assay_shrink_lists },
    { "dimensions", assay_shrink_dimensions },
    { "data", assay_shrink_data },
    { NULL, NULL },
}, element_passes[] = {
    { "elements", assay_shrink_elements },
    { "values", assay_shrink_values },
    { NULL, NULL },
};

static void report(const struct assay_shrinker *shrinker, const char *pass)
{
    const struct assay_shrink *const shrink = shrinker->shrink;
    const struct assay_shrink_progress progress = {
        .pass = pass,
        .case_line = shrinker->measure.line,
        .elements = shrinker->measure.size.elements,
        .trials = shrinker->trials,
    };
    if (shrink->progress) shrink->progress(shrink->context, &progress);
}

/* Whether any of the passes found something. */
static bool run_passes(struct assay_shrinker *shrinker, const struct pass *pass)
{
    bool has_found = false;
    for (; pass->name && !assay_shrinker_is_over(shrinker); pass++) {
        const struct assay_shrink_measure before = shrinker->measure;
        pass->run(shrinker);
        if (strcmp(before.line, shrinker->measure.line) == 0) continue;
        report(shrinker, pass->name);
        has_found = true;
    }
    return has_found;
}

/* Until nothing helps; then with other seeds, which a small case may need. */
static void shrink_shape(struct assay_shrinker *shrinker)
{
    for (int with_seeds = 0; with_seeds < 2; with_seeds++) {
        shrinker->tries_seeds = with_seeds;
        while (run_passes(shrinker, shape_passes))
            ;
    }
    shrinker->tries_seeds = false;
}

/* Elements are looked for before all of the budget is gone. */
static void run_all(struct assay_shrinker *shrinker)
{
    shrinker->share = 0.5;
    shrink_shape(shrinker);
    shrinker->share = 0.9;
    shrinker->was_cut = false; /* what shapes lack comes below */
    run_passes(shrinker, element_passes);
    shrinker->share = 1;
    shrink_shape(shrinker);
    run_passes(shrinker, element_passes);
}

/* --- before the first pass ---------------------------------------------------------- */

/* What a trial would refuse, but for a candidate that fails before anybody looks. */
static enum assay_status check_case(const struct assay_case *the_case,
                                    struct assay_message *message)
{
    union assay_problem_storage problem;
    union assay_numerics_storage numerics;
    if (the_case->data == ASSAY_DATA_RECORDED)
        return assay_fail(message, ASSAY_REFUSED,
                          "smaller cases have generated inputs, so data=recorded cannot "
                          "be shrunk; give the case another kind of data");
    const enum assay_status status =
        the_case->operation->bind(the_case, &problem, message);
    return status == ASSAY_RAN
               ? assay_numerics_parse(the_case->operation, &problem, the_case->numerics,
                                      &numerics, message)
               : status;
}

/* Runs the case itself; ASSAY_RAN, or what refuses it. Leaves the first failure, or the
 * last result, in @result. */
static enum assay_status try_original(const struct assay_trial_plan *plan,
                                      const struct assay_case *the_case,
                                      struct assay_shrink_outcome *outcome,
                                      struct assay_result *result,
                                      struct assay_message *message)
{
    for (int i = 0; i < ASSAY_SHRINK_TRIES; i++) {
        struct assay_result next;
        assay_trial_run(plan, the_case, NULL, 0, &next);
        const bool is_failure = assay_result_is_failure(&next);
        const bool is_first = i == 0 || (is_failure && outcome->failed_tries == 0);
        outcome->tries++;
        outcome->failed_tries += is_failure;
        if (is_first) {
            assay_result_close(result);
            *result = next;
        } else {
            assay_result_close(&next);
        }
        /* On a lost device everything fails in the same way. */
        if (result->status == ASSAY_REFUSED || result->status == ASSAY_DEVICE_LOST) {
            *message = result->message;
            return result->status;
        }
    }
    return ASSAY_RAN;
}

/* Fills the shrinker's own list with those of the plan's checks that are wanted. */
static void choose_checks(struct assay_shrinker *shrinker, uint32_t failed,
                          bool takes_failed_alone, bool takes_reruns)
{
    const struct assay_trial_plan *const plan = shrinker->shrink->plan;
    int count = 0;
    for (int i = 0; plan->checks[i]; i++) {
        int row = 0;
        while (assay_checks[row] && assay_checks[row] != plan->checks[i])
            row++;
        const bool has_failed = failed >> row & 1;
        assert(count < ASSAY_SHRINK_MAX_CHECKS);
        if ((has_failed || !takes_failed_alone) &&
            (takes_reruns || !plan->checks[i]->runs_candidate))
            shrinker->checks[count++] = plan->checks[i];
    }
    shrinker->checks[count] = NULL;
}

/* Whether the best case fails each time: a single failure may be luck. */
static bool fails_again_and_again(struct assay_shrinker *shrinker)
{
    for (int i = 0; i < ASSAY_SHRINK_TRIES; i++)
        if (!assay_shrinker_fails(shrinker, &shrinker->best, NULL)) return false;
    return true;
}

/* The cheapest checks that lead to the same failure; all of them where the case is flaky,
 * and can't tell. */
static void narrow_plan(struct assay_shrinker *shrinker)
{
    static const struct {
        bool takes_failed_alone, takes_reruns;
    } choices[] = { { true, false }, { false, false }, { true, true } };
    const uint32_t failed = assay_result_failed_checks(&shrinker->original);
    shrinker->plan = *shrinker->shrink->plan;
    shrinker->plan.criteria.count = 0;
    shrinker->plan.checks = shrinker->checks;
    for (int i = 0; i < 3 && shrinker->tries == 1; i++) {
        choose_checks(shrinker, failed, choices[i].takes_failed_alone,
                      choices[i].takes_reruns);
        if (shrinker->checks[0] && fails_again_and_again(shrinker)) return;
    }
    choose_checks(shrinker, failed, false, true);
}

static bool open_shrinker(struct assay_shrinker *shrinker,
                          const struct assay_shrink *shrink,
                          const struct assay_case *from)
{
    shrinker->shrink = shrink;
    shrinker->best = *from;
    shrinker->start = assay_clock_seconds();
    shrinker->share = 1;
    shrinker->tries = 1;
    shrinker->passed_capacity = 4 * ((size_t)shrink->trials + 1);
    shrinker->passed = calloc(shrinker->passed_capacity, sizeof(*shrinker->passed));
    return shrinker->passed;
}

/* --- the whole ---------------------------------------------------------------------- */

static void conclude(const struct assay_shrinker *shrinker,
                     struct assay_shrink_outcome *outcome)
{
    outcome->smallest = shrinker->best;
    outcome->after = shrinker->measure.size;
    outcome->end = shrinker->was_cut ? ASSAY_SHRINK_CUT : ASSAY_SHRINK_DONE;
    outcome->trials = shrinker->trials;
    /* All checks of the plan; of a flaky case, a run that fails. */
    for (int i = 0; i < ASSAY_SHRINK_TRIES; i++) {
        assay_result_close(&outcome->result);
        assay_trial_run(shrinker->shrink->plan, &shrinker->best, NULL, 0,
                        &outcome->result);
        if (assay_result_is_failure(&outcome->result)) break;
    }
    outcome->seconds = assay_clock_seconds() - shrinker->start;
}

static enum assay_status run(struct assay_shrinker *shrinker,
                             struct assay_shrink_outcome *outcome,
                             struct assay_message *message)
{
    enum assay_status status = check_case(&shrinker->best, message);
    if (status == ASSAY_RAN)
        status = try_original(shrinker->shrink->plan, &shrinker->best, outcome,
                              &shrinker->original, message);
    outcome->smallest = shrinker->best;
    if (status != ASSAY_RAN) return status;
    if (outcome->failed_tries == 0) {
        outcome->end = ASSAY_SHRINK_PASSES;
        outcome->result = shrinker->original;
        shrinker->original = (struct assay_result){ .status = ASSAY_RAN };
        return ASSAY_RAN;
    }
    const bool is_legal = assay_shrink_measure(&shrinker->best, &shrinker->measure);
    assert(is_legal); /* it has just run */
    (void)is_legal;
    outcome->before = shrinker->measure.size;
    shrinker->tries = outcome->failed_tries < outcome->tries ? ASSAY_SHRINK_TRIES : 1;
    narrow_plan(shrinker);
    run_all(shrinker);
    conclude(shrinker, outcome);
    return ASSAY_RAN;
}

enum assay_status assay_shrink(const struct assay_shrink *wanted,
                               const struct assay_case *from,
                               struct assay_shrink_outcome *outcome,
                               struct assay_message *message)
{
    struct assay_shrink shrink = *wanted;
    if (shrink.trials == 0) shrink.trials = ASSAY_SHRINK_TRIALS;
    if (shrink.seconds == 0) shrink.seconds = ASSAY_SHRINK_SECONDS;
    *outcome = (struct assay_shrink_outcome){ .end = ASSAY_SHRINK_PASSES };
    struct assay_shrinker *const shrinker = calloc(1, sizeof(*shrinker));
    enum assay_status status =
        shrinker && open_shrinker(shrinker, &shrink, from)
            ? run(shrinker, outcome, message)
            : assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for shrinking");
    if (shrinker) {
        assay_result_close(&shrinker->original);
        free(shrinker->passed);
    }
    free(shrinker);
    return status;
}

void assay_shrink_outcome_close(struct assay_shrink_outcome *outcome)
{
    assay_result_close(&outcome->result);
}
