/* SPDX-License-Identifier: MIT */
#include "verify/identify/knob_identify.h"

#include "verify/identify/knob_rank.h"

#include <math.h>
#include <stdlib.h>

enum { NEAREST = 5 };

/* The nearest of what differs; their shares are counted over all parts. */
static enum assay_status find_nearest(struct assay_knob_identity *identity)
{
    struct assay_knob_search *const search = &identity->search;
    int count =
        assay_settings_in_state(&search->space, ASSAY_SETTING_DIFFERS, identity->nearest);
    enum assay_status status = ASSAY_RAN;
    assay_sort_settings(&search->space, identity->nearest, count, assay_compare_nearness);
    if (count > NEAREST) count = NEAREST;
    if (search->fits == 0) {
        for (int i = 0; i < count && status == ASSAY_RAN; i++)
            status = assay_knob_search_count(search, identity->nearest[i]);
        assay_sort_settings(&search->space, identity->nearest, count,
                            assay_compare_share);
    }
    identity->answer.nearest = identity->nearest;
    identity->answer.nearest_count = count;
    return status;
}

static enum assay_status separate(const struct assay_knob_question *question,
                                  struct assay_knob_identity *identity, int *count,
                                  struct assay_message *message)
{
    const struct assay_knob_search *const search = &identity->search;
    const struct assay_observation *const observation = question->observation;
    const double left = search->deadline - assay_knob_seconds();
    const struct assay_separation_plan plan = {
        .backend = question->backend,
        .state = question->state,
        .the_case = question->the_case,
        .usual = observation->operation->default_numerics(observation->problem),
        .seconds = fmax(2 * left / 3, question->plan.seconds / 5),
    };
    identity->answer.separation = &identity->separation;
    return assay_knobs_separate(&plan, &search->space, identity->fitting, count,
                                &identity->separation, message);
}

/* Of a candidate that can be asked again, what is left then goes through the whole. */
static enum assay_status finish(const struct assay_knob_question *question,
                                struct assay_knob_identity *identity, int *count)
{
    struct assay_knob_search *const search = &identity->search;
    const double left = search->deadline - assay_knob_seconds();
    const enum assay_status status = assay_knob_search_finish(
        search, identity->fitting, count, fmax(left, question->plan.seconds / 5));
    assay_sort_settings(&search->space, identity->fitting, *count, assay_compare_turned);
    return status;
}

static enum assay_status fail_for_memory(struct assay_message *message)
{
    return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for the search");
}

enum assay_status assay_knobs_identify(const struct assay_knob_question *question,
                                       struct assay_knob_identity *identity,
                                       struct assay_message *message)
{
    *identity = (struct assay_knob_identity){ 0 };
    struct assay_knob_search *const search = &identity->search;
    struct assay_knob_search_plan plan = question->plan;
    plan.only_looks = question->backend != NULL;
    if (assay_knob_search_run(question->observation, &plan, search) != ASSAY_RAN)
        return fail_for_memory(message);
    identity->fitting = calloc((size_t)search->space.count + 1, sizeof(int));
    identity->nearest = calloc((size_t)search->space.count + 1, sizeof(int));
    if (!identity->fitting || !identity->nearest) return fail_for_memory(message);
    int count =
        assay_settings_in_state(&search->space, ASSAY_SETTING_FITS, identity->fitting);
    assay_sort_settings(&search->space, identity->fitting, count, assay_compare_turned);
    identity->answer = (struct assay_knob_answer){ .search = search };
    if (count > 0 && question->backend) {
        const enum assay_status status = separate(question, identity, &count, message);
        if (status != ASSAY_RAN) return status;
        if (count > 0 && finish(question, identity, &count) != ASSAY_RAN)
            return fail_for_memory(message);
    }
    identity->answer.setting = identity->fitting;
    identity->answer.count = count;
    return find_nearest(identity) == ASSAY_RAN ? ASSAY_RAN : fail_for_memory(message);
}

void assay_knob_identity_close(struct assay_knob_identity *identity)
{
    assay_knob_search_close(&identity->search);
    free(identity->fitting);
    free(identity->nearest);
    *identity = (struct assay_knob_identity){ 0 };
}
