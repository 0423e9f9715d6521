/* SPDX-License-Identifier: MIT */
/* One fault after the other: cases until every check has found it or had its chances. */
#include "fuzz/selftest/selftest.h"

#include "verify/case/text.h"
#include "verify/data/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A faulty verifier may have put another backend in the place of "fault". */
static enum assay_status open_candidate(struct assay_selftest *selftest,
                                        struct assay_trial_plan *plan,
                                        const char *backend)
{
    const char *const colon = strchr(backend, ':');
    if (plan->candidate && colon)
        return plan->candidate->open(colon + 1, &plan->candidate_state,
                                     &selftest->message);
    return assay_backend_open(backend, NULL, &plan->candidate, &plan->candidate_state,
                              &selftest->message);
}

enum assay_status assay_selftest_trial(struct assay_selftest *selftest,
                                       const struct assay_trial_plan *plan,
                                       const char *backend,
                                       const struct assay_case *the_case,
                                       struct assay_result *result)
{
    struct assay_trial_plan own = *plan;
    *result = (struct assay_result){ .status = ASSAY_FAILED };
    const enum assay_status status = open_candidate(selftest, &own, backend);
    if (status != ASSAY_RAN) return status;
    assay_trial_run(&own, the_case, NULL, 0, result);
    own.candidate->close(own.candidate_state);
    if (result->status != ASSAY_OUT_OF_MEMORY && result->status != ASSAY_FAILED)
        return ASSAY_RAN;
    return assay_fail(&selftest->message, result->status, "%s on %.200s: %s", backend,
                      result->case_line, result->message.text);
}

/* --- faults of kernels ------------------------------------------------------------ */

static void count(const struct assay_selftest *selftest,
                  const struct assay_column_verdicts *verdicts, const char *line,
                  struct assay_fault_outcome *outcome)
{
    outcome->quiet = verdicts->is_shown ? 0 : outcome->quiet + 1;
    if (!verdicts->is_shown) return;
    if (!*outcome->case_line)
        snprintf(outcome->case_line, sizeof(outcome->case_line), "%s", line);
    for (int i = 0; i < selftest->column_count; i++) {
        struct assay_kill *const kill = &outcome->kill[i];
        kill->chances += verdicts->has_judged[i];
        if (verdicts->has_found[i] && !kill->cases) kill->cases = outcome->cases;
    }
}

/* Whether no column is to be given further cases. Checks that rarely judge, and criteria
 * that often reject the model as well, are not waited for without end. */
static bool is_through(const struct assay_selftest *selftest,
                       const struct assay_fault_outcome *outcome)
{
    int waiting = 0;
    for (int i = 0; i < selftest->column_count; i++) {
        const struct assay_kill *const kill = &outcome->kill[i];
        waiting += kill->chances > 0 && !kill->cases && kill->chances < selftest->chances;
    }
    return outcome->is_caught &&
           (waiting == 0 || outcome->quiet >= ASSAY_SELFTEST_QUIET ||
            outcome->cases >= 2 * selftest->chances);
}

/* By its kind, or by its row. */
static bool must_find(const struct assay_fault *fault, const struct assay_column *column)
{
    const char *at = fault->must_catch, *const name = column->name;
    const size_t length = strlen(name);
    if (fault->kind == ASSAY_FAULT_ROUNDING && column->uses_model) return true;
    for (; at && *at; at += strspn(at, " ")) {
        const size_t word = strcspn(at, " ");
        if (word == length && strncmp(at, name, length) == 0) return true;
        at += word;
    }
    return false;
}

static void conclude(const struct assay_selftest *selftest,
                     struct assay_fault_outcome *outcome)
{
    const struct assay_fault *const fault = outcome->fault;
    struct assay_text text = assay_text_open(outcome->remark, sizeof(outcome->remark));
    bool is_found = false;
    outcome->is_caught = true;
    for (int i = 0; i < selftest->column_count; i++) {
        const struct assay_column *const column = &selftest->column[i];
        is_found |= outcome->kill[i].cases && !column->is_criterion &&
                    (fault->kind == ASSAY_FAULT_ROUNDING || !column->uses_model);
        if (!must_find(fault, column) || outcome->kill[i].cases) continue;
        outcome->is_caught = false;
        if (*outcome->case_line)
            assay_text_add(&text, "%s does not %s it; ", column->name,
                           strcmp(column->name, "identify") == 0 ? "name" : "see");
    }
    if (!is_found)
        assay_text_add(&text, "%s",
                       *outcome->case_line ? "only bitwise and criteria see it"
                                           : "nothing sees it");
    outcome->is_caught &= is_found;
    assay_text_mark_cut(&text);
}

/* A criterion that rejects the model as well has nothing to say. */
static void pass_over(uint32_t rejected, struct assay_column_verdicts *verdicts)
{
    verdicts->is_shown = false;
    for (int i = 0; i < ASSAY_MAX_COLUMNS; i++) {
        if (rejected >> i & 1) verdicts->has_judged[i] = verdicts->has_found[i] = false;
        verdicts->is_shown |= verdicts->has_found[i];
    }
}

static int place_of(const struct assay_selftest *selftest, const char *column)
{
    int place = 0;
    while (strcmp(selftest->column[place].name, column) != 0)
        place++;
    return place;
}

/* A rounding that bitwise has found on this case is to be named as well. */
static enum assay_status ask_its_name(struct assay_selftest *selftest,
                                      const struct assay_case *the_case,
                                      const struct assay_column_verdicts *verdicts,
                                      struct assay_fault_outcome *outcome)
{
    struct assay_kill *const kill = &outcome->kill[place_of(selftest, "identify")];
    bool is_named;
    if (outcome->fault->kind != ASSAY_FAULT_ROUNDING || kill->cases ||
        kill->chances == selftest->chances ||
        !verdicts->has_found[place_of(selftest, "bitwise")])
        return ASSAY_RAN;
    kill->chances++;
    const enum assay_status status =
        assay_selftest_identify(selftest, outcome->fault, the_case, &is_named);
    if (status == ASSAY_RAN && is_named) kill->cases = outcome->cases;
    return status;
}

static enum assay_status run_case(struct assay_selftest *selftest,
                                  const struct assay_case *the_case,
                                  struct assay_fault_outcome *outcome)
{
    char backend[128];
    uint32_t rejected = 0;
    struct assay_result result;
    struct assay_trial_plan plan = selftest->plan;
    if (outcome->fault->kind == ASSAY_FAULT_EXECUTION)
        plan.repeats = ASSAY_DEFAULT_REPEATS;
    snprintf(backend, sizeof(backend), "fault:%s", outcome->fault->name);
    enum assay_status status = assay_selftest_clean(selftest, the_case, &rejected);
    if (status != ASSAY_RAN) return status;
    status = assay_selftest_trial(selftest, &plan, backend, the_case, &result);
    if (status == ASSAY_RAN && result.status != ASSAY_REFUSED) {
        struct assay_column_verdicts verdicts;
        assay_selftest_judge(selftest, &result, &verdicts);
        pass_over(rejected, &verdicts);
        outcome->cases++;
        count(selftest, &verdicts, result.case_line, outcome);
        status = ask_its_name(selftest, the_case, &verdicts, outcome);
        conclude(selftest, outcome);
    }
    assay_result_close(&result);
    return status;
}

enum assay_status assay_selftest_run(struct assay_selftest *selftest,
                                     const struct assay_fault *fault,
                                     struct assay_fault_outcome *outcome)
{
    const double start = assay_clock_seconds();
    struct assay_case *const the_case = malloc(sizeof(*the_case));
    enum assay_status status = ASSAY_RAN;
    *outcome = (struct assay_fault_outcome){ .fault = fault };
    if (!the_case)
        return assay_fail(&selftest->message, ASSAY_OUT_OF_MEMORY, "no memory for cases");
    if (fault->kind == ASSAY_FAULT_VERIFIER)
        status = assay_selftest_verifier(selftest, fault, outcome);
    else
        for (int i = 0;
             status == ASSAY_RAN && i < selftest->cases &&
             !is_through(selftest, outcome) && assay_selftest_case(fault, i, the_case);
             i++)
            status = run_case(selftest, the_case, outcome);
    free(the_case);
    outcome->seconds = assay_clock_seconds() - start;
    return status;
}
