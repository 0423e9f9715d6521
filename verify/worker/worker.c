/* SPDX-License-Identifier: MIT */
#include "verify/worker/worker.h"

#include "verify/data/clock.h"
#include "verify/data/safetensors.h"
#include "verify/worker/arena.h"
#include "verify/worker/channel.h"
#include "verify/worker/process.h"
#include "verify/worker/request.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { GOODBYE_SECONDS = 2 };

struct assay_worker {
    struct assay_worker_plan plan;
    int64_t memory_bytes;
    struct assay_process process;
    char name[160], stage[16]; /* what messages call the plugin; where it is */
    bool has_claimed;          /* since the last run: its output belongs to this case */
    bool has_changed_mode;
    bool was_killed; /* by a stranger: what it was doing is to be tried once more */
    struct assay_backend_notes notes;
};

static void keep_output(struct assay_worker *worker)
{
    worker->notes.output_bytes = assay_process_output(
        &worker->process, worker->notes.output, sizeof(worker->notes.output));
}

/* Ends the process; the sentence says why and where. A process that stays is a device
 * that does not come back. */
static enum assay_status lose(struct assay_worker *worker, enum assay_status status,
                              const char *reason, struct assay_message *message)
{
    char text[128];
    struct assay_text ending = assay_text_open(text, sizeof(text));
    keep_output(worker);
    const bool is_gone = assay_process_end(&worker->process, &ending);
    if (!is_gone)
        return assay_fail(message, ASSAY_DEVICE_LOST,
                          "plugin %s %s (%s), and its process cannot be killed",
                          worker->name, reason ? reason : text, worker->stage);
    if (reason)
        return assay_fail(message, status, "plugin %s %s (%s)", worker->name, reason,
                          worker->stage);
    worker->was_killed = assay_ending_is_somebodys(text);
    return assay_fail(message, status, "plugin %s %s (%s)%s", worker->name, text,
                      worker->stage,
                      strstr(text, "SIGKILL")
                          ? ", but not by assay: perhaps the machine ran out of memory"
                          : "");
}

static bool take_kill(struct assay_worker *worker)
{
    const bool was_killed = worker->was_killed;
    worker->was_killed = false;
    return was_killed;
}

static enum assay_status lose_by_limit(struct assay_worker *worker,
                                       enum assay_process_event event,
                                       struct assay_message *message)
{
    char reason[128];
    if (event == ASSAY_PROCESS_TIMED_OUT) {
        snprintf(reason, sizeof(reason),
                 "gave no answer within %g s; --timeout allows more",
                 worker->plan.limits.seconds);
        return lose(worker, ASSAY_HUNG, reason, message);
    }
    snprintf(reason, sizeof(reason),
             "took more than %" PRId64 " MiB of memory; --memory-limit allows more",
             worker->memory_bytes >> 20);
    return lose(worker, ASSAY_OUT_OF_MEMORY, reason, message);
}

/* One line from the worker: a stage, which is noted, or an answer, which is returned. */
static json_t *hear(struct assay_worker *worker, bool *is_answer)
{
    json_t *const line = assay_channel_receive(worker->process.channel, NULL,
                                               &worker->process.is_channel_closed);
    const char *const stage = json_string_value(json_object_get(line, "stage"));
    *is_answer = !worker->process.is_channel_closed && !stage;
    if (stage) snprintf(worker->stage, sizeof(worker->stage), "%s", stage);
    if (*is_answer) return line;
    json_decref(line);
    return NULL;
}

/* Waits for the answer to what was asked; NULL with a status otherwise. */
static json_t *await(struct assay_worker *worker, enum assay_status *status,
                     struct assay_message *message)
{
    const double deadline = assay_clock_seconds() + worker->plan.limits.seconds;
    for (;;) {
        const enum assay_process_event event =
            assay_process_wait(&worker->process, deadline, worker->memory_bytes);
        bool is_answer = false;
        if (event == ASSAY_PROCESS_SPOKE) {
            json_t *const line = hear(worker, &is_answer);
            if (is_answer && line) return line;
            if (!is_answer) continue;
        }
        if (event == ASSAY_PROCESS_SPOKE)
            *status = lose(worker, ASSAY_CRASHED, "wrote to descriptor 3, which is ours",
                           message);
        else if (event == ASSAY_PROCESS_EXITED)
            *status = lose(worker, ASSAY_CRASHED, NULL, message);
        else
            *status = lose_by_limit(worker, event, message);
        return NULL;
    }
}

/* The status an answer holds, with the plugin's sentence in @message. */
static enum assay_status read_answer(struct assay_worker *worker, const json_t *answer,
                                     struct assay_message *message)
{
    const json_int_t number = json_integer_value(json_object_get(answer, "status"));
    const char *const why = json_string_value(json_object_get(answer, "message"));
    const bool is_status = number >= 0 && number < ASSAY_STATUS_COUNT;
    const enum assay_status status =
        is_status ? (enum assay_status)number : ASSAY_CRASHED;
    worker->has_changed_mode |= json_is_true(json_object_get(answer, "mode_changed"));
    if (status == ASSAY_RAN || status == ASSAY_REFUSED)
        return assay_fail(message, status, "%s", why ? why : "");
    return assay_fail(message, status, "plugin %s: %s", worker->name,
                      why && *why ? why : assay_status_name(status));
}

static void take_name(struct assay_worker *worker, const json_t *hello)
{
    const char *const name = json_string_value(json_object_get(hello, "name"));
    const char *const version = json_string_value(json_object_get(hello, "version"));
    snprintf(worker->name, sizeof(worker->name), "%s%s%s", name ? name : "",
             version && *version ? " " : "", version ? version : "");
}

/* A process that has been idle may finish by itself: exit handlers of profilers and
 * sanitizers run then. */
static void retire(struct assay_worker *worker)
{
    if (worker->process.pid) {
        shutdown(worker->process.channel, SHUT_WR);
        worker->process.is_channel_closed = true;
        assay_process_wait(&worker->process, assay_clock_seconds() + GOODBYE_SECONDS,
                           worker->memory_bytes);
    }
    assay_process_end(&worker->process, NULL);
}

static enum assay_status start(struct assay_worker *worker, struct assay_message *message)
{
    char bytes[32];
    snprintf(bytes, sizeof(bytes), "%" PRId64, worker->memory_bytes);
    const char *const arguments[] = { worker->plan.path, worker->plan.options, bytes,
                                      NULL };
    enum assay_status status = assay_process_start(&worker->process, arguments, message);
    if (status != ASSAY_RAN) return status;
    strcpy(worker->stage, "loading");
    worker->has_changed_mode = false;
    json_t *const hello = await(worker, &status, message);
    if (!hello) return status;
    status = read_answer(worker, hello, message);
    if (status == ASSAY_RAN) take_name(worker, hello);
    json_decref(hello);
    if (status == ASSAY_RAN) return status;
    keep_output(worker);
    assay_process_end(&worker->process, NULL);
    return status;
}

/* Starts the process unless there is one. */
static enum assay_status begin(struct assay_worker *worker, struct assay_message *message)
{
    if (worker->process.pid) return ASSAY_RAN;
    const enum assay_status status = start(worker, message);
    return take_kill(worker) ? start(worker, message) : status;
}

/* Asks and waits; the answer is kept for whoever wants more of it than its status. */
static enum assay_status ask(struct assay_worker *worker,
                             const struct assay_run_call *call,
                             const struct assay_arena *arena, json_t **answer,
                             struct assay_message *message)
{
    enum assay_status status = ASSAY_RAN;
    *answer = NULL;
    json_t *const request = assay_request_of(call, arena);
    if (!request)
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a request");
    strcpy(worker->stage, "between cases");
    /* A process that is gone is noticed while waiting. */
    assay_channel_send(worker->process.channel, request, arena ? arena->fd : -1);
    *answer = await(worker, &status, message);
    if (!*answer) return status;
    status = read_answer(worker, *answer, message);
    keep_output(worker);
    if (status != ASSAY_RAN && status != ASSAY_UNSUPPORTED)
        assay_process_end(&worker->process, NULL);
    return status;
}

static enum assay_status begin_case(struct assay_worker *worker,
                                    struct assay_message *message)
{
    worker->notes = (struct assay_backend_notes){ .warning = "" };
    const enum assay_status status = begin(worker, message);
    if (status == ASSAY_RAN) assay_process_rewind_output(&worker->process);
    return status;
}

static enum assay_status claim_once(struct assay_worker *worker,
                                    const struct assay_run_call *call,
                                    struct assay_backend_claim *claim,
                                    struct assay_message *message)
{
    json_t *answer = NULL;
    enum assay_status status = begin_case(worker, message);
    if (status == ASSAY_RAN) status = ask(worker, call, NULL, &answer, message);
    *claim = (struct assay_backend_claim){ .has_numerics = false };
    const char *const numerics = json_string_value(json_object_get(answer, "numerics"));
    claim->is_deterministic = json_is_true(json_object_get(answer, "is_deterministic"));
    claim->is_batch_invariant =
        json_is_true(json_object_get(answer, "is_batch_invariant"));
    if (numerics) {
        claim->has_numerics = true;
        snprintf(claim->numerics, sizeof(claim->numerics), "%s", numerics);
    }
    json_decref(answer);
    worker->has_claimed = status == ASSAY_RAN;
    return status;
}

enum assay_status assay_worker_claim(struct assay_worker *worker,
                                     const struct assay_run_call *call,
                                     struct assay_backend_claim *claim,
                                     struct assay_message *message)
{
    const enum assay_status status = claim_once(worker, call, claim, message);
    return take_kill(worker) ? claim_once(worker, call, claim, message) : status;
}

static enum assay_status run_once(struct assay_worker *worker,
                                  const struct assay_run_call *call,
                                  struct assay_message *message)
{
    json_t *answer = NULL;
    struct assay_arena arena = { .fd = -1 };
    enum assay_status status =
        worker->has_claimed ? begin(worker, message) : begin_case(worker, message);
    worker->has_claimed = false;
    if (status == ASSAY_RAN) status = assay_arena_open(&arena, call->tensors, message);
    if (status == ASSAY_RAN) status = ask(worker, call, &arena, &answer, message);
    worker->notes.launch_seconds =
        json_number_value(json_object_get(answer, "launch_seconds"));
    json_decref(answer);
    if (arena.memory && !assay_arena_is_intact(&arena)) {
        assay_process_end(&worker->process, NULL);
        status = assay_fail(message, ASSAY_CRASHED, "plugin %s wrote outside its tensors",
                            worker->name);
    }
    if (status == ASSAY_RAN) assay_arena_fetch(&arena, call->tensors);
    assay_arena_close(&arena);
    if (worker->plan.limits.is_fresh) retire(worker);
    return status;
}

enum assay_status assay_worker_run(struct assay_worker *worker,
                                   const struct assay_run_call *call,
                                   struct assay_message *message)
{
    const enum assay_status status = run_once(worker, call, message);
    return take_kill(worker) ? run_once(worker, call, message) : status;
}

void assay_worker_notes(const struct assay_worker *worker,
                        struct assay_backend_notes *notes)
{
    *notes = worker->notes;
    if (worker->has_changed_mode)
        snprintf(notes->warning, sizeof(notes->warning),
                 "plugin %s changed the floating-point mode of its process (linked with "
                 "-ffast-math or -Ofast?); subnormal results may be zero",
                 worker->name);
}

enum assay_status assay_worker_open(const struct assay_worker_plan *plan,
                                    struct assay_worker **worker,
                                    struct assay_message *message)
{
    struct assay_worker *const opened = calloc(1, sizeof(*opened));
    if (!opened)
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a worker");
    opened->plan = *plan;
    opened->memory_bytes = assay_process_byte_limit(plan->limits.memory_bytes);
    snprintf(opened->name, sizeof(opened->name), "%s", assay_shown_path(plan->path));
    const enum assay_status status = begin(opened, message);
    if (status == ASSAY_RAN)
        *worker = opened;
    else
        free(opened);
    return status;
}

void assay_worker_close(struct assay_worker *worker)
{
    if (!worker) return;
    retire(worker);
    free(worker);
}
