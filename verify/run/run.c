/* SPDX-License-Identifier: MIT */
#include "verify/run/run.h"

#include "verify/data/clock.h"
#include "verify/report/json_read.h"
#include "verify/run/job.h"
#include "verify/run/pool.h"
#include "verify/run/progress.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_HELD = 256,    /* results that wait for earlier ones, without a journal */
    DEATHS_APART = 2,  /* of runs, after which a case is run alone */
    DEATHS_ENOUGH = 3, /* after which it is not run any more */
};

struct run {
    const struct assay_run_plan *plan;
    struct assay_journal *journal; /* NULL: results wait in memory */
    struct assay_pool *pool;       /* NULL: cases run here */
    int64_t next;                  /* case to look at */
    int64_t taken;                 /* results of all cases below were handed on */
    bool is_exhausted;
    bool is_out_of_time; /* exhausted because of that */
    double began;
    int64_t known;               /* no earlier run finished this case or one beyond it */
    int64_t *apart, apart_count; /* cases to be run at the end */
    char *held[MAX_HELD];
    struct assay_progress progress;
};

static enum assay_status no_memory(struct assay_message *message)
{
    return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a result");
}

static enum assay_status hand_on(struct run *run, const struct assay_result *result,
                                 struct assay_message *message)
{
    assay_progress_hide(&run->progress);
    run->taken++;
    return run->plan->take(run->plan->context, result, message);
}

static enum assay_status hand_on_line(struct run *run, const char *line,
                                      struct assay_message *message)
{
    struct assay_result result;
    struct assay_brief brief;
    bool is_brief = false;
    enum assay_status status = ASSAY_RAN;
    if (run->plan->take_brief)
        status = assay_brief_read(line, &brief, &is_brief, message);
    if (status != ASSAY_RAN) return status;
    if (is_brief) {
        run->taken++;
        return run->plan->take_brief(run->plan->context, &brief, message);
    }
    status = assay_json_result_read(line, &result, message);
    if (status == ASSAY_RAN) status = hand_on(run, &result, message);
    assay_result_close(&result);
    return status;
}

/* The result of the case whose turn it is; NULL when it is not there yet. */
static enum assay_status fetch(struct run *run, char **line,
                               struct assay_message *message)
{
    *line = NULL;
    if (run->journal)
        return assay_journal_has(run->journal, run->taken)
                   ? assay_journal_read(run->journal, run->taken, line, message)
                   : ASSAY_RAN;
    char **const held = &run->held[run->taken % MAX_HELD];
    *line = *held;
    *held = NULL;
    return ASSAY_RAN;
}

/* Hands on what is there, in order. */
static enum assay_status hand_on_ready(struct run *run, struct assay_message *message)
{
    enum assay_status status = ASSAY_RAN;
    while (status == ASSAY_RAN && run->taken < run->next) {
        char *line;
        status = fetch(run, &line, message);
        if (status != ASSAY_RAN || !line) break;
        status = hand_on_line(run, line, message);
        free(line);
    }
    return status;
}

static void count_done(struct run *run, bool has_failed)
{
    run->progress.done++;
    run->progress.failed += has_failed;
    if (run->plan->ran) ++*run->plan->ran;
}

/* A case has its result; takes the line over. */
static enum assay_status settle(struct run *run, int64_t number, char *line,
                                bool has_failed, struct assay_message *message)
{
    if (!line) return no_memory(message);
    count_done(run, has_failed);
    if (!run->journal) {
        assert(number < run->taken + MAX_HELD && !run->held[number % MAX_HELD]);
        run->held[number % MAX_HELD] = line;
        return hand_on_ready(run, message);
    }
    const enum assay_status status =
        assay_journal_finish(run->journal, number, line, !has_failed, message);
    free(line);
    return status == ASSAY_RAN ? hand_on_ready(run, message) : status;
}

/* A result for a case that ended its process instead of having one. */
static enum assay_status settle_crashed(struct run *run,
                                        const struct assay_run_case *the_case,
                                        const char *sentence,
                                        struct assay_message *message)
{
    struct assay_result result = { .model_max_error_over_bound = -1 };
    const enum assay_status status =
        run->plan->name(run->plan->context, the_case, &result, message);
    if (status != ASSAY_RAN) return status;
    result.status = assay_fail(&result.message, ASSAY_CRASHED, "%s", sentence);
    char *const line = assay_job_result(&result);
    assay_result_close(&result);
    return settle(run, the_case->number, line, true, message);
}

static enum assay_status set_apart(struct run *run, int64_t number,
                                   struct assay_message *message)
{
    int64_t *const grown =
        realloc(run->apart, (size_t)(run->apart_count + 1) * sizeof(*grown));
    if (!grown) return no_memory(message);
    run->apart = grown;
    run->apart[run->apart_count++] = number;
    return ASSAY_RAN;
}

/* What earlier runs left to do of a case: *@is_wanted when it is to be run now. */
static enum assay_status look_back(struct run *run, const struct assay_run_case *the_case,
                                   bool *is_wanted, struct assay_message *message)
{
    char sentence[80];
    *is_wanted = !run->journal;
    if (!run->journal) return ASSAY_RAN;
    const int deaths = assay_journal_deaths(run->journal, the_case->number);
    if (deaths == DEATHS_APART) return set_apart(run, the_case->number, message);
    *is_wanted = deaths < DEATHS_APART;
    if (*is_wanted) return ASSAY_RAN;
    snprintf(sentence, sizeof(sentence),
             "the case ended the run %d times; it is not run any more", deaths);
    return settle_crashed(run, the_case, sentence, message);
}

/* Gaps among the finished cases are filled whatever the time. */
static bool is_out_of_time(const struct run *run)
{
    const double seconds = run->plan->seconds;
    return seconds > 0 && run->next >= run->known &&
           assay_clock_seconds() - run->began >= seconds;
}

/* The next case to be run in its turn; none left: *@is_there is false. */
static enum assay_status next_case(struct run *run, struct assay_run_case *the_case,
                                   bool *is_there, struct assay_message *message)
{
    enum assay_status status = ASSAY_RAN;
    *is_there = false;
    while (!*is_there && !run->is_exhausted && status == ASSAY_RAN) {
        if (run->journal && assay_journal_has(run->journal, run->next)) {
            run->next++;
            status = hand_on_ready(run, message);
            continue;
        }
        *the_case = (struct assay_run_case){ .number = run->next,
                                             .in_brief = run->plan->take_brief != NULL };
        run->is_out_of_time = is_out_of_time(run);
        if (run->is_out_of_time || !run->plan->find(run->plan->context, the_case)) {
            run->is_exhausted = true;
            break;
        }
        run->next++;
        status = look_back(run, the_case, is_there, message);
    }
    return status;
}

static enum assay_status begin(struct run *run, const struct assay_run_case *the_case,
                               struct assay_message *message)
{
    if (!run->journal) return ASSAY_RAN;
    assay_journal_tick(run->journal);
    return assay_journal_begin(run->journal, the_case->number, message);
}

/* What counts as failed, and is brought to the disk at once. */
static bool is_failure(const struct run *run, const struct assay_result *result)
{
    return run->plan->take_brief ? !assay_brief_is_enough(result) : !result->has_passed;
}

static enum assay_status run_here(struct run *run, const struct assay_run_case *the_case,
                                  struct assay_message *message)
{
    struct assay_result result = { .output = NULL };
    assay_progress_tell(&run->progress);
    enum assay_status status = begin(run, the_case, message);
    if (status == ASSAY_RAN)
        status = run->plan->run(run->plan->context, the_case, &result, message);
    const bool has_failed = is_failure(run, &result);
    if (status == ASSAY_RAN && run->journal)
        status = settle(run, the_case->number,
                        run->plan->take_brief && !has_failed ? assay_job_brief(&result)
                                                             : assay_job_result(&result),
                        has_failed, message);
    else if (status == ASSAY_RAN) {
        count_done(run, has_failed);
        status = hand_on(run, &result, message);
    }
    assay_result_close(&result);
    return status;
}

static enum assay_status give(struct run *run, const struct assay_run_case *the_case,
                              struct assay_message *message)
{
    const enum assay_status status = begin(run, the_case, message);
    return status == ASSAY_RAN ? assay_pool_give(run->pool, the_case, message) : status;
}

static enum assay_status settle_answer(struct run *run, struct assay_pool_answer *answer,
                                       struct assay_message *message)
{
    struct assay_run_case the_case = { .number = answer->number };
    struct assay_result result = { .output = NULL };
    if (!answer->line) {
        char sentence[200];
        snprintf(sentence, sizeof(sentence), "the job that ran the case %s",
                 answer->ending);
        run->plan->find(run->plan->context, &the_case);
        return settle_crashed(run, &the_case, sentence, message);
    }
    struct assay_brief brief;
    bool is_brief = false;
    enum assay_status status = assay_job_failure(answer->line, message);
    if (status == ASSAY_RAN && run->plan->take_brief)
        status = assay_brief_read(answer->line, &brief, &is_brief, message);
    if (status == ASSAY_RAN && !is_brief)
        status = assay_json_result_read(answer->line, &result, message);
    const bool has_failed = !is_brief && is_failure(run, &result);
    assay_result_close(&result);
    if (status == ASSAY_RAN)
        return settle(run, answer->number, answer->line, has_failed, message);
    free(answer->line);
    return status;
}

/* Waits for one answer while the journal and whoever looks on are kept up to date. */
static enum assay_status await(struct run *run, struct assay_message *message)
{
    struct assay_pool_answer answer;
    for (;;) {
        assay_progress_tell(&run->progress);
        if (run->journal) assay_journal_tick(run->journal);
        if (assay_pool_wait(run->pool, 1, &answer))
            return settle_answer(run, &answer, message);
    }
}

static bool has_room(const struct run *run)
{
    return assay_pool_busy(run->pool) < run->plan->jobs && !run->is_exhausted &&
           (run->journal || run->next < run->taken + MAX_HELD);
}

static enum assay_status run_in_jobs(struct run *run, struct assay_message *message)
{
    enum assay_status status = ASSAY_RAN;
    while (status == ASSAY_RAN && (assay_pool_busy(run->pool) || !run->is_exhausted)) {
        struct assay_run_case the_case;
        bool is_there = true;
        while (status == ASSAY_RAN && is_there && has_room(run)) {
            status = next_case(run, &the_case, &is_there, message);
            if (status == ASSAY_RAN && is_there) status = give(run, &the_case, message);
        }
        if (status == ASSAY_RAN && assay_pool_busy(run->pool))
            status = await(run, message);
    }
    return status;
}

static enum assay_status run_all_here(struct run *run, struct assay_message *message)
{
    struct assay_run_case the_case;
    bool is_there = true;
    enum assay_status status = ASSAY_RAN;
    while (status == ASSAY_RAN && is_there) {
        status = next_case(run, &the_case, &is_there, message);
        if (status == ASSAY_RAN && is_there) status = run_here(run, &the_case, message);
    }
    return status;
}

/* One after the other, so that whichever ends the run is known for it. */
static enum assay_status run_apart(struct run *run, struct assay_message *message)
{
    enum assay_status status = ASSAY_RAN;
    for (int64_t i = 0; i < run->apart_count && status == ASSAY_RAN; i++) {
        struct assay_run_case the_case = { .number = run->apart[i],
                                           .in_brief = run->plan->take_brief != NULL };
        run->plan->find(run->plan->context, &the_case);
        status =
            run->pool ? give(run, &the_case, message) : run_here(run, &the_case, message);
        if (run->pool && status == ASSAY_RAN) status = await(run, message);
    }
    return status;
}

enum assay_status assay_run(const struct assay_run_plan *plan,
                            struct assay_message *message)
{
    struct run run = { .plan = plan };
    enum assay_status status = ASSAY_RAN;
    if (plan->folder)
        status = assay_journal_open(plan->folder, &plan->header, &run.journal, message);
    if (status == ASSAY_RAN && plan->jobs > 1)
        status = assay_pool_open(plan->jobs, plan->job_words, &run.pool, message);
    if (run.journal) run.known = assay_journal_known(run.journal);
    run.progress = assay_progress_begin(
        stderr, plan->cases, run.journal ? assay_journal_results(run.journal) : 0);
    run.began = run.progress.began;
    run.progress.seconds = plan->seconds;
    run.progress.findings = plan->findings;
    if (status == ASSAY_RAN)
        status = run.pool ? run_in_jobs(&run, message) : run_all_here(&run, message);
    if (status == ASSAY_RAN) status = run_apart(&run, message);
    assert(status != ASSAY_RAN || run.taken == run.next);
    if (status == ASSAY_RAN && run.journal && !run.is_out_of_time)
        status = assay_journal_end(run.journal, run.taken, message);
    assay_progress_hide(&run.progress);
    assay_pool_close(run.pool);
    assay_journal_close(run.journal);
    for (int i = 0; i < MAX_HELD; i++)
        free(run.held[i]);
    free(run.apart);
    return status;
}
