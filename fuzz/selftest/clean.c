/* SPDX-License-Identifier: MIT */
/* The clean model on the cases that faults are looked for on: an alarm is a false one. */
#include "fuzz/selftest/selftest.h"
#include "verify/case/text.h"

#include <stdlib.h>
#include <string.h>

static struct assay_clean_case *add(struct assay_selftest *selftest, const char *line)
{
    if (selftest->clean_count == selftest->clean_capacity) {
        const int capacity = selftest->clean_capacity ? 2 * selftest->clean_capacity : 64;
        struct assay_clean_case *const grown =
            realloc(selftest->clean, (size_t)capacity * sizeof(*grown));
        if (!grown) return NULL;
        selftest->clean = grown;
        selftest->clean_capacity = capacity;
    }
    struct assay_clean_case *const made = &selftest->clean[selftest->clean_count];
    *made = (struct assay_clean_case){ .line = strdup(line) };
    if (!made->line) return NULL;
    selftest->clean_count++;
    return made;
}

static void note_alarm(struct assay_selftest *selftest, const struct assay_result *result,
                       const struct assay_column_verdicts *verdicts)
{
    struct assay_text text = assay_text_open(selftest->alarm, sizeof(selftest->alarm));
    if (selftest->alarms++) return;
    assay_text_add(&text, "the clean model is called wrong by");
    for (int i = 0; i < selftest->column_count; i++)
        if (verdicts->has_found[i] && !selftest->column[i].is_criterion)
            assay_text_add(&text, " %s", selftest->column[i].name);
    if (result->status != ASSAY_RAN) assay_text_add(&text, " (%s)", result->message.text);
    assay_text_add(&text, " on %s", result->case_line);
    assay_text_mark_cut(&text);
}

static void judge(struct assay_selftest *selftest, const struct assay_result *result,
                  struct assay_clean_case *clean)
{
    struct assay_column_verdicts verdicts;
    bool is_alarm = result->status != ASSAY_RAN || result->verdict == ASSAY_OUTSIDE ||
                    result->verdict == ASSAY_CONTRADICTION;
    assay_selftest_judge(selftest, result, &verdicts);
    for (int i = 0; i < selftest->column_count; i++) {
        const bool is_criterion = selftest->column[i].is_criterion;
        is_alarm |= verdicts.has_found[i] && !is_criterion;
        selftest->clean_judged[i] += verdicts.has_judged[i];
        selftest->clean_rejected[i] += verdicts.has_found[i];
        if (is_criterion && verdicts.has_found[i]) clean->rejected |= UINT32_C(1) << i;
    }
    selftest->clean_cases++;
    if (is_alarm) note_alarm(selftest, result, &verdicts);
}

enum assay_status assay_selftest_clean(struct assay_selftest *selftest,
                                       const struct assay_case *the_case,
                                       uint32_t *rejected)
{
    char line[ASSAY_MAX_CASE_LINE];
    struct assay_result result;
    assay_case_format(the_case, line, sizeof(line));
    for (int i = 0; i < selftest->clean_count; i++)
        if (strcmp(selftest->clean[i].line, line) == 0) {
            *rejected = selftest->clean[i].rejected;
            return ASSAY_RAN;
        }
    struct assay_clean_case *const clean = add(selftest, line);
    if (!clean)
        return assay_fail(&selftest->message, ASSAY_OUT_OF_MEMORY, "no memory for cases");
    const enum assay_status status =
        assay_selftest_trial(selftest, &selftest->plan, "model", the_case, &result);
    if (status == ASSAY_RAN && result.status != ASSAY_REFUSED)
        judge(selftest, &result, clean);
    *rejected = clean->rejected;
    assay_result_close(&result);
    return status;
}

void assay_selftest_close(struct assay_selftest *selftest)
{
    for (int i = 0; i < selftest->clean_count; i++)
        free(selftest->clean[i].line);
    free(selftest->clean);
    selftest->clean = NULL;
    selftest->clean_count = selftest->clean_capacity = 0;
}
