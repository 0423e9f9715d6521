/* SPDX-License-Identifier: MIT */
/* What a result says in the name of each check, of the guards and of the criteria. */
#include "fuzz/selftest/selftest.h"

#include <string.h>

/* They see both contents of outputs with one launch and with several: enough for what
 * does not change from run to run. */
enum { FEW_REPEATS = 4 };

static void add(struct assay_selftest *selftest, const char *name, bool is_criterion)
{
    for (int i = 0; i < selftest->column_count; i++)
        if (strcmp(selftest->column[i].name, name) == 0) return;
    if (selftest->column_count == ASSAY_MAX_COLUMNS) return;
    selftest->column[selftest->column_count++] = (struct assay_column){
        .name = name,
        .is_criterion = is_criterion,
        .uses_model = strcmp(name, "bitwise") == 0 || strcmp(name, "identify") == 0,
    };
}

void assay_selftest_open(struct assay_selftest *selftest)
{
    struct assay_criteria *const criteria = &selftest->plan.criteria;
    const int cases = selftest->cases, chances = selftest->chances;
    *selftest = (struct assay_selftest){
        .cases = cases ? cases : ASSAY_SELFTEST_CASES,
        .chances = chances ? chances : ASSAY_SELFTEST_CHANCES,
        .plan = { .uses_model = true,
                  .uses_oracle = true,
                  .checks = assay_checks,
                  .runs_trusted_again = true,
                  .repeats = FEW_REPEATS },
    };
    for (int i = 0; assay_checks[i]; i++)
        add(selftest, assay_checks[i]->name, false);
    add(selftest, "guards", false);
    add(selftest, "identify", false);
    for (const struct assay_criterion *row = assay_criteria_table; row->name; row++)
        add(selftest, row->name, true);
    for (int i = 0; i < selftest->column_count; i++)
        if (selftest->column[i].is_criterion && criteria->count < ASSAY_MAX_CRITERIA)
            criteria->name[criteria->count++] = selftest->column[i].name;
}

static bool has_found(const struct assay_result *result, const char *name)
{
    for (int i = 0; i < result->finding_count; i++)
        if (result->finding[i].is_failure && strcmp(result->finding[i].check, name) == 0)
            return true;
    for (int i = 0; i < result->output_count; i++) {
        const struct assay_output_result *const output = &result->output[i];
        if (strcmp(name, "bitwise") == 0 && output->has_bits && output->differ > 0)
            return true;
        if (strcmp(name, "bound") == 0 && output->has_bound && output->outside > 0)
            return true;
        if (strcmp(name, "exact") == 0 && output->has_exact && output->inexact > 0)
            return true;
    }
    return false;
}

/* Of checks and guards; identify does not judge results. */
static bool has_judged(const struct assay_result *result, const char *name)
{
    for (int i = 0; assay_checks[i]; i++)
        if (strcmp(assay_checks[i]->name, name) == 0)
            return (result->checks >> i & 1) != 0;
    return strcmp(name, "guards") == 0;
}

void assay_selftest_judge(const struct assay_selftest *selftest,
                          const struct assay_result *result,
                          struct assay_column_verdicts *verdicts)
{
    *verdicts = (struct assay_column_verdicts){ .is_shown = false };
    for (int i = 0; i < selftest->column_count; i++) {
        const struct assay_column *const column = &selftest->column[i];
        bool *const judged = &verdicts->has_judged[i], *const found =
                                                           &verdicts->has_found[i];
        if (strcmp(column->name, "guards") == 0) {
            *judged = true;
            *found = result->status == ASSAY_CRASHED;
        } else if (column->is_criterion && result->status == ASSAY_RAN) {
            const enum assay_opinion opinion = assay_result_opinion(result, column->name);
            *judged = opinion != ASSAY_NO_OPINION;
            *found = opinion == ASSAY_WOULD_FAIL;
        } else if (!column->is_criterion) {
            *judged = has_judged(result, column->name);
            *found = has_found(result, column->name);
        }
        verdicts->is_shown |= *found;
    }
}
