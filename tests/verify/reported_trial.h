/* SPDX-License-Identifier: MIT */
/* Results of real trials: of cases from the corpus, by candidates that are right or wrong
 * in one way each. */
#ifndef ASSAY_TESTS_VERIFY_REPORTED_TRIAL_H
#define ASSAY_TESTS_VERIFY_REPORTED_TRIAL_H

#include "tests/verify/reported.h"
#include "verify/check/trial.h"

enum trial_way {
    TRIAL_OF_MODEL,
    TRIAL_OF_ORACLE, /* other bits, within the bound */
    TRIAL_OF_FLIPPED_BITS,
    TRIAL_OF_NAN,
    TRIAL_OF_CHANGING_BITS, /* every run flips what the one before did not */
    TRIAL_OF_OVERRUN,
    TRIAL_OF_UNSUPPORTED,
    TRIAL_OF_CRASH,
    TRIAL_WAYS
};
static enum trial_way trial_way;
static int trial_runs;

static const struct assay_backend *trial_backend(const char *scheme)
{
    for (int i = 0; assay_backends[i]; i++)
        if (strcmp(assay_backends[i]->scheme, scheme) == 0) return assay_backends[i];
    ck_abort_msg("no backend %s", scheme);
    return NULL;
}

static enum assay_status trial_claim(void *state, const struct assay_run_call *call,
                                     struct assay_backend_claim *claim,
                                     struct assay_message *message)
{
    (void)state, (void)call;
    *claim = (struct assay_backend_claim){ .is_deterministic = true };
    if (trial_way != TRIAL_OF_UNSUPPORTED) return ASSAY_RAN;
    return assay_fail(message, ASSAY_UNSUPPORTED, "needs m to be even");
}

static void trial_damage(const struct assay_tensor *output)
{
    const int64_t elements = assay_tensor_elements(output);
    for (int64_t i = 0; i < elements; i++) {
        const uint32_t bits = assay_tensor_bits(output, i);
        if (trial_way == TRIAL_OF_FLIPPED_BITS ||
            (trial_way == TRIAL_OF_CHANGING_BITS && trial_runs % 2))
            assay_tensor_set_bits(output, i, bits ^ 1);
        if (trial_way == TRIAL_OF_NAN) assay_tensor_set_bits(output, i, UINT32_MAX);
    }
    if (trial_way == TRIAL_OF_OVERRUN)
        ((char *)output->data)[assay_tensor_bytes(output) + 100] = 0;
}

static enum assay_status trial_run(void *state, const struct assay_run_call *call,
                                   struct assay_message *message)
{
    if (trial_way == TRIAL_OF_CRASH)
        return assay_fail(message, ASSAY_CRASHED, "the worker was killed by SIGSEGV");
    const enum assay_status status = trial_backend("model")->run(state, call, message);
    trial_runs++;
    for (int i = 0; i < call->tensors->count; i++)
        if (call->tensors->item[i].is_output) trial_damage(&call->tensors->item[i]);
    return status;
}

static void trial_notes(void *state, struct assay_backend_notes *notes)
{
    (void)state;
    *notes = (struct assay_backend_notes){ .warning = "the rounding mode was changed",
                                           .output = "hello\n\x1b[31mworld\n",
                                           .output_bytes = 5000 };
}

static const struct assay_backend trial_wrong = {
    .scheme = "wrong", .claim = trial_claim, .run = trial_run, .notes = trial_notes
};

/* Asks all checks, or those that do not run the candidate again. */
static inline struct assay_trial_plan trial_plan(bool has_reruns)
{
    static const struct assay_check *first_checks[32];
    static char no_numerics[] = "";
    struct assay_message ignored;
    struct assay_trial_plan plan = {
        .candidate = trial_way == TRIAL_OF_MODEL || trial_way == TRIAL_OF_ORACLE
                         ? trial_backend(trial_way == TRIAL_OF_MODEL ? "model" : "oracle")
                         : &trial_wrong,
        .candidate_state = no_numerics,
        .uses_model = true,
        .uses_oracle = true,
        .checks = has_reruns ? assay_checks : first_checks,
        .repeats = 4,
    };
    for (int i = 0, count = 0; assay_checks[i]; i++)
        if (!assay_checks[i]->runs_candidate) first_checks[count++] = assay_checks[i];
    ck_assert_int_eq(assay_criteria_parse("torch,deepgemm,flashmla,cutlass,flashinfer",
                                          &plan.criteria, &ignored),
                     ASSAY_RAN);
    return plan;
}

/* To be closed. */
static inline struct assay_result result_of_trial(const struct assay_case *the_case,
                                                  enum trial_way way, bool has_reruns)
{
    struct assay_result result;
    trial_way = way;
    trial_runs = 0;
    const struct assay_trial_plan plan = trial_plan(has_reruns);
    assay_trial_run(&plan, the_case, NULL, 0, &result);
    return result;
}

static inline struct assay_result result_of_line(const char *line, enum trial_way way)
{
    struct assay_case the_case;
    struct assay_message message;
    ck_assert_msg(assay_case_parse(line, &the_case, &message) == ASSAY_RAN, "%s",
                  message.text);
    return result_of_trial(&the_case, way, true);
}

#endif
