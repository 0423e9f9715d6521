/* SPDX-License-Identifier: MIT */
/* Whether `identify` names a planted rounding: its answer holds the knobs as the fault
 * sets them, or others that nothing tells apart from them on the problem. */
#include "fuzz/selftest/selftest.h"
#include "verify/check/inputs.h"
#include "verify/identify/candidate.h"
#include "verify/identify/knob_identify.h"
#include "verify/operation/numerics.h"

#include <stdio.h>
#include <stdlib.h>

struct subject {
    const struct assay_backend *backend;
    void *state;
    union assay_problem_storage problem;
    struct assay_tensors tensors;
    struct assay_buffers buffers;
    struct assay_observation observation;
    struct assay_knob_identity identity;
};

static enum assay_status observe(const struct assay_case *the_case,
                                 struct subject *subject, struct assay_message *message)
{
    const struct assay_run_call call = { .the_case = the_case,
                                         .problem = &subject->problem,
                                         .tensors = &subject->tensors };
    enum assay_status status =
        assay_inputs_open(the_case, NULL, 0, &subject->problem, &subject->tensors,
                          &subject->buffers, message);
    if (status == ASSAY_RAN)
        status = assay_candidate_run(subject->backend, subject->state, &call,
                                     &subject->buffers, message);
    if (status != ASSAY_RAN) return status;
    subject->observation = (struct assay_observation){
        .operation = the_case->operation,
        .problem = &subject->problem,
        .tensors = &subject->tensors,
    };
    status = assay_observation_open(&subject->observation);
    return status == ASSAY_RAN
               ? status
               : assay_fail(message, status, "no memory for a map of the outputs");
}

static enum assay_status ask(const struct assay_case *the_case, struct subject *subject,
                             struct assay_message *message)
{
    const struct assay_knob_question question = {
        .observation = &subject->observation,
        .the_case = the_case,
        .backend = subject->backend,
        .state = subject->state,
        .plan = { .seconds = ASSAY_SELFTEST_IDENTIFY_SECONDS },
    };
    return assay_knobs_identify(&question, &subject->identity, message);
}

/* The knobs of the case as the fault turns them, as far as the problem lets them show.
 * False: it turns none. */
static bool turn(const struct assay_fault *fault, const struct assay_case *the_case,
                 const void *problem, void *settled)
{
    const struct assay_operation *const operation = the_case->operation;
    union assay_numerics_storage clean, turned;
    struct assay_message ignored;
    if (!fault->numerics || assay_numerics_parse(operation, problem, the_case->numerics,
                                                 &clean, &ignored) != ASSAY_RAN)
        return false;
    turned = clean;
    fault->numerics(&turned);
    assay_knobs_settle(operation, problem, &turned, settled);
    assay_knobs_settle(operation, problem, &clean, &turned);
    return !assay_knobs_are_equal(operation, &turned, settled);
}

static bool is_among(const struct assay_knob_answer *answer, const void *settled)
{
    const struct assay_knob_space *const space = &answer->search->space;
    for (int i = 0; i < answer->count; i++)
        if (assay_knobs_are_equal(space->operation,
                                  space->item[answer->setting[i]].settled, settled))
            return true;
    return false;
}

enum assay_status assay_selftest_identify(struct assay_selftest *selftest,
                                          const struct assay_fault *fault,
                                          const struct assay_case *the_case,
                                          bool *is_named)
{
    struct subject *const subject = calloc(1, sizeof(*subject));
    union assay_numerics_storage settled;
    char backend[128];
    *is_named = false;
    if (!subject)
        return assay_fail(&selftest->message, ASSAY_OUT_OF_MEMORY, "no memory to ask");
    snprintf(backend, sizeof(backend), "fault:%s", fault->name);
    enum assay_status status = assay_backend_open(backend, NULL, &subject->backend,
                                                  &subject->state, &selftest->message);
    if (status == ASSAY_RAN) status = observe(the_case, subject, &selftest->message);
    if (status == ASSAY_RAN) status = ask(the_case, subject, &selftest->message);
    if (status == ASSAY_RAN)
        *is_named = turn(fault, the_case, &subject->problem, &settled) &&
                    is_among(&subject->identity.answer, &settled);
    assay_knob_identity_close(&subject->identity);
    assay_observation_close(&subject->observation);
    assay_buffers_close(&subject->buffers);
    if (subject->backend) subject->backend->close(subject->state);
    free(subject);
    return status;
}
