/* SPDX-License-Identifier: MIT */
/* The meta-test: a verifier with a fault of its own is given the clean model, and a
 * kernel's fault that the sound verifier finds. It is found out when it calls the model
 * wrong, or when one of its checks has become blind. */
#include "fuzz/selftest/selftest.h"
#include "verify/case/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct broken { /* the verifier's copies */
    struct assay_operation operation;
    struct assay_trial_plan plan;
    const struct assay_check *checks[ASSAY_MAX_COLUMNS];
    struct assay_case the_case;
    const struct assay_backend *backend;
};

static void open_broken(const struct assay_selftest *selftest,
                        const struct assay_fault *fault,
                        const struct assay_case *the_case, struct broken *broken)
{
    *broken = (struct broken){ .operation = *the_case->operation,
                               .plan = selftest->plan,
                               .the_case = *the_case };
    for (int i = 0; assay_checks[i] && i < ASSAY_MAX_COLUMNS - 1; i++)
        broken->checks[i] = assay_checks[i];
    broken->plan.checks = broken->checks;
    broken->the_case.operation = &broken->operation;
    struct assay_fault_verifier verifier = { &broken->operation, &broken->plan,
                                             broken->checks };
    fault->verifier(&verifier);
}

static enum assay_status judge(struct assay_selftest *selftest,
                               const struct assay_trial_plan *plan, const char *backend,
                               const struct assay_case *the_case,
                               struct assay_column_verdicts *verdicts, bool *is_wrong)
{
    struct assay_result result;
    const enum assay_status status =
        assay_selftest_trial(selftest, plan, backend, the_case, &result);
    if (status == ASSAY_RAN) {
        assay_selftest_judge(selftest, &result, verdicts);
        *is_wrong = result.status != ASSAY_RAN || result.verdict == ASSAY_OUTSIDE ||
                    result.verdict == ASSAY_CONTRADICTION;
    }
    assay_result_close(&result);
    return status;
}

static enum assay_status try_model(struct assay_selftest *selftest,
                                   const struct broken *broken,
                                   struct assay_fault_outcome *outcome)
{
    struct assay_column_verdicts verdicts;
    bool is_wrong = false;
    const enum assay_status status =
        judge(selftest, &broken->plan, "model", &broken->the_case, &verdicts, &is_wrong);
    if (status != ASSAY_RAN || !is_wrong) return status;
    outcome->is_caught = true;
    snprintf(outcome->remark, sizeof(outcome->remark), "it calls the clean model wrong");
    return status;
}

/* Columns that find the witness before the verifier is broken and not after. */
static enum assay_status try_witness(struct assay_selftest *selftest,
                                     const struct broken *broken,
                                     const struct assay_case *the_case,
                                     struct assay_fault_outcome *outcome)
{
    struct assay_column_verdicts sound = { .is_shown = false }, blind = sound;
    struct assay_text text = assay_text_open(outcome->remark, sizeof(outcome->remark));
    char backend[128];
    bool ignored, has_lost = false;
    snprintf(backend, sizeof(backend), "fault:%s", outcome->fault->witness);
    enum assay_status status =
        judge(selftest, &selftest->plan, backend, the_case, &sound, &ignored);
    if (status == ASSAY_RAN)
        status =
            judge(selftest, &broken->plan, backend, &broken->the_case, &blind, &ignored);
    if (status != ASSAY_RAN) return status;
    for (int i = 0; i < selftest->column_count; i++) {
        if (!sound.has_found[i] || blind.has_found[i] || selftest->column[i].is_criterion)
            continue;
        assay_text_add(&text, "%s%s", has_lost ? ", " : "", selftest->column[i].name);
        has_lost = true;
    }
    if (has_lost) assay_text_add(&text, " blind to %s", outcome->fault->witness);
    assay_text_mark_cut(&text);
    outcome->is_caught |= has_lost;
    return status;
}

enum assay_status assay_selftest_verifier(struct assay_selftest *selftest,
                                          const struct assay_fault *fault,
                                          struct assay_fault_outcome *outcome)
{
    struct broken *const broken = malloc(sizeof(*broken));
    struct assay_case *const the_case = malloc(sizeof(*the_case));
    enum assay_status status = ASSAY_RAN;
    uint32_t ignored;
    if (!broken || !the_case)
        status = assay_fail(&selftest->message, ASSAY_OUT_OF_MEMORY,
                            "no memory for a verifier");
    for (int i = 0; status == ASSAY_RAN && !outcome->is_caught && fault->cases[i]; i++) {
        if (!assay_selftest_case(fault, i, the_case)) break;
        open_broken(selftest, fault, the_case, broken);
        outcome->cases++;
        status = try_model(selftest, broken, outcome);
        if (status == ASSAY_RAN && fault->witness && !outcome->is_caught)
            status = try_witness(selftest, broken, the_case, outcome);
        if (status == ASSAY_RAN)
            status = assay_selftest_clean(selftest, the_case, &ignored);
        if (outcome->is_caught)
            assay_case_format(the_case, outcome->case_line, sizeof(outcome->case_line));
    }
    if (!outcome->is_caught)
        snprintf(outcome->remark, sizeof(outcome->remark),
                 "the broken verifier judges as the sound one does");
    free(broken);
    free(the_case);
    return status;
}
