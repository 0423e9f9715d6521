/* SPDX-License-Identifier: MIT */
/* A candidate that is wrong where a test says so, and what its cases shrink to. */
#ifndef ASSAY_TESTS_FUZZ_SHRINK_SUBJECT_H
#define ASSAY_TESTS_FUZZ_SHRINK_SUBJECT_H

#include "fuzz/shrink/shrink.h"
#include "fuzz/shrink/signature.h"
#include "tests/harness.h"
#include "verify/operation/numerics.h"
#include "verify/operation/parts.h"

#include <stdio.h>
#include <string.h>

static inline struct assay_case parse(const char *line)
{
    struct assay_case the_case;
    struct assay_message message;
    ck_assert_msg(assay_case_parse(line, &the_case, &message) == ASSAY_RAN, "%s: %s",
                  line, message.text);
    return the_case;
}

static inline const char *line_of(const struct assay_case *the_case)
{
    static char line[ASSAY_MAX_CASE_LINE];
    assay_case_format(the_case, line, sizeof(line));
    return line;
}

struct subject {
    bool (*is_wrong)(struct subject *, const struct assay_run_call *);
    enum assay_status ending; /* of a run that is wrong; ASSAY_RAN: huge outputs */
    int runs;
};

static enum assay_status claim(void *state, const struct assay_run_call *call,
                               struct assay_backend_claim *claim,
                               struct assay_message *message)
{
    (void)state;
    (void)message;
    *claim = (struct assay_backend_claim){ .has_numerics = true };
    strcpy(claim->numerics, call->the_case->numerics);
    return ASSAY_RAN;
}

static void spoil(const struct assay_tensors *tensors)
{
    for (int i = 0; i < tensors->count; i++)
        if (tensors->item[i].is_output && assay_tensor_elements(&tensors->item[i]) > 0)
            assay_tensor_set_bits(&tensors->item[i], 0,
                                  tensors->item[i].format == ASSAY_F32 ? 0x7f000000
                                                                       : 0x7f00);
}

static enum assay_status run(void *state, const struct assay_run_call *call,
                             struct assay_message *message)
{
    struct subject *const subject = state;
    const struct assay_operation *const operation = call->the_case->operation;
    union assay_numerics_storage numerics;
    subject->runs++;
    const bool is_wrong = subject->is_wrong(subject, call);
    if (is_wrong && subject->ending != ASSAY_RAN)
        return assay_fail(message, subject->ending, "killed by signal 11 (SIGSEGV)");
    if (assay_numerics_parse(operation, call->problem, call->the_case->numerics,
                             &numerics, message) != ASSAY_RAN ||
        assay_run_model(operation, call->problem, &numerics, call->tensors) != ASSAY_RAN)
        return ASSAY_FAILED;
    if (is_wrong) spoil(call->tensors);
    return ASSAY_RAN;
}

static const struct assay_backend backend = {
    .scheme = "subject", .is_trusted = true, .claim = claim, .run = run
};

static inline struct assay_trial_plan plan_of(struct subject *subject)
{
    return (struct assay_trial_plan){ .candidate = &backend,
                                      .candidate_state = subject,
                                      .uses_model = true,
                                      .uses_oracle = true,
                                      .checks = assay_checks };
}

static struct assay_shrink_outcome outcome;

/* Leaves what comes of it in @outcome, to be closed. */
static inline enum assay_status shrink(struct subject *subject, const char *line,
                                       int trials)
{
    const struct assay_trial_plan plan = plan_of(subject);
    const struct assay_shrink wanted = { .plan = &plan,
                                         .seconds = 300,
                                         .trials = trials };
    const struct assay_case the_case = parse(line);
    struct assay_message message;
    return assay_shrink(&wanted, &the_case, &outcome, &message);
}

static inline void expect(struct subject subject, const char *line, const char *smallest)
{
    ck_assert_int_eq(shrink(&subject, line, 0), ASSAY_RAN);
    ck_assert_str_eq(line_of(&outcome.smallest), smallest);
    ck_assert_int_eq(outcome.end, ASSAY_SHRINK_DONE);
    ck_assert_int_eq(outcome.failed_tries, outcome.tries);
    ck_assert_str_eq(outcome.result.case_line, smallest);
    ck_assert(assay_result_is_failure(&outcome.result));
    assay_shrink_outcome_close(&outcome);
}

static inline int64_t value(const struct assay_run_call *call, const char *key)
{
    return assay_case_value(call->the_case, key);
}

#endif
