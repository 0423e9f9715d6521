/* SPDX-License-Identifier: MIT */
/* How long a candidate takes for a case: by its own clock, if it has one, over as many
 * launches as make the clock's resolution unimportant. */
#include "verify/command/bench.h"
#include "verify/data/clock.h"

#include <assert.h>

enum { MAX_LAUNCHES = 10000, MAX_GROWTH = 100 };
static const double run_seconds = 0.1, all_runs_seconds = 10;

struct timed_call {
    const struct assay_bench_candidate *candidate;
    struct assay_run_call call;
    struct assay_message *message;
};

static enum assay_status run_once(void *context)
{
    const struct timed_call *const timed = context;
    return timed->candidate->backend->run(timed->candidate->state, &timed->call,
                                          timed->message);
}

/* @seconds: of one launch by the candidate's clock; 0 when it has none. */
static enum assay_status run_launches(struct timed_call *timed, int launches,
                                      double *seconds)
{
    const struct assay_bench_candidate *const candidate = timed->candidate;
    struct assay_backend_notes notes = { .launch_seconds = 0 };
    timed->call.launches = launches;
    const enum assay_status status = run_once(timed);
    if (status == ASSAY_RAN) candidate->backend->notes(candidate->state, &notes);
    *seconds = notes.launch_seconds > 0 ? notes.launch_seconds / launches : 0;
    return status;
}

static int wanted_launches(double seconds)
{
    const double wanted = run_seconds / seconds;
    return wanted >= MAX_LAUNCHES ? MAX_LAUNCHES : wanted < 1 ? 1 : (int)wanted;
}

/* What the first launches cost is not typical: the number grows until a run is long
 * enough to tell. */
static enum assay_status find_launches(struct timed_call *timed, int *launches,
                                       double *seconds)
{
    enum assay_status status = run_launches(timed, 1, seconds);
    *launches = 1;
    while (status == ASSAY_RAN && *seconds > 0) {
        const int wanted = wanted_launches(*seconds);
        const bool is_near = wanted <= 2 * *launches;
        *launches = wanted < MAX_GROWTH * *launches ? wanted : MAX_GROWTH * *launches;
        if (is_near) break;
        status = run_launches(timed, *launches, seconds);
    }
    return status;
}

/* The candidate's own median of cold launches needs no more of them in a run, and no
 * other warm-up than the launch that shows whether it has a clock. */
static enum assay_status choose_launches(struct timed_call *timed, int *launches,
                                         double *seconds)
{
    if (!timed->candidate->is_cold) return find_launches(timed, launches, seconds);
    *launches = ASSAY_COLD_LAUNCHES;
    return run_launches(timed, 1, seconds);
}

/* @end: by the clock, when no further run is to begin. */
static enum assay_status by_its_own_clock(struct timed_call *timed, int repeats,
                                          double end, struct assay_bench_time *time)
{
    double sample[ASSAY_MAX_REPEATS] = { 0 };
    int count = 0;
    enum assay_status status = choose_launches(timed, &time->launches, &time->seconds);
    while (status == ASSAY_RAN && time->seconds > 0 && count < repeats) {
        if (count && assay_clock_seconds() >= end) break;
        status = run_launches(timed, time->launches, &sample[count]);
        if (sample[count++] <= 0) time->seconds = 0;
    }
    if (time->seconds > 0)
        time->seconds = assay_median(sample, count);
    else
        time->launches = 0;
    return status;
}

static enum assay_status try_its_own_clock(struct timed_call *timed,
                                           const struct assay_timing *timing,
                                           struct assay_device *device,
                                           struct assay_bench_time *time)
{
    const double end = assay_clock_seconds() + all_runs_seconds;
    enum assay_status status = ASSAY_RAN;
    const int warm_ups = timed->candidate->is_cold ? 0 : timing->warm_ups;
    for (int i = 0; i < warm_ups && status == ASSAY_RAN; i++)
        status = run_once(timed);
    if (status != ASSAY_RAN) return status;
    assay_device_watch(device);
    status = by_its_own_clock(timed, timing->repeats, end, time);
    const struct assay_device_state state = assay_device_stop(device);
    if (time->launches) time->device = state;
    return status;
}

enum assay_status assay_bench_call(const struct assay_bench_candidate *candidate,
                                   const struct assay_run_call *call,
                                   const struct assay_timing *timing,
                                   struct assay_device *device,
                                   struct assay_bench_time *time,
                                   struct assay_message *message)
{
    struct timed_call timed = { candidate, *call, message };
    enum assay_status status = ASSAY_RAN;
    assert(timing->repeats >= 1 && timing->repeats <= ASSAY_MAX_REPEATS);
    *time = (struct assay_bench_time){ .launches = 0 };
    if (candidate->backend->notes && !candidate->backend->is_trusted)
        status = try_its_own_clock(&timed, timing, device, time);
    if (status != ASSAY_RAN || time->launches) return status;
    timed.call.launches = 1;
    return assay_median_seconds(timing, run_once, &timed, &time->seconds);
}
