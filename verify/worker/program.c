/* SPDX-License-Identifier: MIT */
#include "verify/worker/program.h"

#include "verify/data/clock.h"
#include "verify/data/exchange.h"
#include "verify/worker/answer.h"
#include "verify/worker/interrupt.h"
#include "verify/worker/listener.h"
#include "verify/worker/process.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    GOODBYE_SECONDS = 2,
    LAST_WORDS_SECONDS = 1, /* in which a process ends that has closed its stdout */
    MAX_LEFT_OVER = 32,     /* reads of MAX_LINE, more than a pipe holds */
    NOT_EXECUTABLE = 126,   /* what a shell exits with when it cannot run a command */
    NOT_FOUND = 127,
    SIGNALLED = 128, /* and with this plus a signal's number */
};
#define WATCH_SECONDS 0.02

struct assay_program {
    struct assay_program_plan plan;
    struct assay_excerpt name; /* what messages call it */
    int64_t memory_bytes;
    struct assay_process process;
    bool has_answered; /* this process, at least once */
    bool was_killed;   /* by a stranger: the case is to be run once more */
    struct assay_listener listener;
    struct assay_backend_notes notes;
};

struct last_line {
    char text[256];
};

static void keep_output(struct assay_program *program)
{
    program->notes.output_bytes = assay_process_output(
        &program->process, program->notes.output, sizeof(program->notes.output));
}

/* What was printed last, if that has been kept: a shell's or an interpreter's reason. */
static struct last_line last_line(const struct assay_program *program)
{
    struct last_line last = { "" };
    const char *const text = program->notes.output;
    if (program->notes.output_bytes >= (int64_t)sizeof(program->notes.output))
        return last;
    size_t end = strlen(text);
    while (end > 0 && isspace((unsigned char)text[end - 1]))
        end--;
    size_t start = end;
    while (start > 0 && text[start - 1] != '\n')
        start--;
    snprintf(last.text, sizeof(last.text), "%.*s", (int)(end - start), text + start);
    return last;
}

/* The sentence about a process that ended by itself, as @ending says. */
static enum assay_status report_end(struct assay_program *program,
                                    struct assay_text *ending,
                                    struct assay_message *message)
{
    const int exit_status = program->process.exit_status;
    const struct last_line last = last_line(program);
    const char *const name = program->name.text, *const printed = last.text;
    const char *const signal_name =
        exit_status > SIGNALLED ? sigabbrev_np(exit_status - SIGNALLED) : NULL;
    if (signal_name) assay_text_add(ending, ", a shell's word for SIG%s", signal_name);
    program->was_killed = assay_ending_is_somebodys(ending->buffer);
    if (program->has_answered && exit_status == 0)
        return assay_fail(message, ASSAY_CRASHED,
                          "program '%s' %s; it has to answer case after case, or get "
                          "--fresh",
                          name, ending->buffer);
    if (program->has_answered)
        return assay_fail(message, ASSAY_CRASHED, "program '%s' %s%s%s", name,
                          ending->buffer, exit_status > 0 && *printed ? ": " : "",
                          exit_status > 0 ? printed : "");
    if (exit_status == NOT_FOUND || exit_status == NOT_EXECUTABLE)
        return assay_fail(message, ASSAY_FAILED, "the command '%s' cannot be run: %s",
                          name, *printed ? printed : ending->buffer);
    return assay_fail(message, ASSAY_CRASHED,
                      "program '%s' %s before its first answer%s%s", name, ending->buffer,
                      *printed ? ": " : "", printed);
}

/* Ends the process for @reason; NULL: it has ended by itself. */
static enum assay_status lose(struct assay_program *program, enum assay_status status,
                              const char *reason, struct assay_message *message)
{
    char text[128];
    struct assay_text ending = assay_text_open(text, sizeof(text));
    keep_output(program);
    const bool is_gone = assay_process_end(&program->process, &ending);
    if (!is_gone)
        return assay_fail(message, ASSAY_DEVICE_LOST,
                          "program '%s' %s, and its process cannot be killed",
                          program->name.text, reason ? reason : text);
    if (!reason) return report_end(program, &ending, message);
    return assay_fail(message, status, "program '%s' %s", program->name.text, reason);
}

static enum assay_status lose_by_limit(struct assay_program *program,
                                       enum assay_process_event event,
                                       struct assay_message *message)
{
    const struct assay_backend_limits *const limits = &program->plan.limits;
    char reason[128];
    if (event == ASSAY_PROCESS_TOO_LARGE) {
        snprintf(reason, sizeof(reason),
                 "took more than %" PRId64 " MiB of memory; --memory-limit allows more",
                 program->memory_bytes >> 20);
        return lose(program, ASSAY_OUT_OF_MEMORY, reason, message);
    }
    if (program->has_answered)
        snprintf(reason, sizeof(reason),
                 "gave no answer within %g s; --timeout allows more", limits->seconds);
    else
        snprintf(reason, sizeof(reason),
                 "gave no first answer within %g s; --warmup-timeout allows more",
                 limits->warmup_seconds);
    return lose(program, ASSAY_HUNG, reason, message);
}

/* What comes next, within WATCH_SECONDS; ASSAY_PROCESS_SPOKE for noise. Whoever chatters
 * has its memory looked at, too: at *@look and every WATCH_SECONDS. */
static enum assay_process_event next_event(struct assay_program *program, double deadline,
                                           double *look, const char **answer)
{
    const bool has_heard =
        assay_listener_hear(&program->listener, &program->process, answer);
    const double now = assay_clock_seconds();
    if (!has_heard)
        return assay_process_wait(&program->process, fmin(deadline, now + WATCH_SECONDS),
                                  program->memory_bytes);
    if (now < *look) return ASSAY_PROCESS_SPOKE;
    *look = now + WATCH_SECONDS;
    return assay_process_bytes(&program->process) > program->memory_bytes
               ? ASSAY_PROCESS_TOO_LARGE
               : ASSAY_PROCESS_SPOKE;
}

/* Waits for an answer. */
static enum assay_status await(struct assay_program *program, const char **answer,
                               struct assay_message *message)
{
    const struct assay_backend_limits *const limits = &program->plan.limits;
    const double start = assay_clock_seconds();
    double deadline =
        start + (program->has_answered ? limits->seconds : limits->warmup_seconds);
    double look = start;
    bool was_closed = false;
    for (;;) {
        const enum assay_process_event event =
            next_event(program, deadline, &look, answer);
        if (*answer) return ASSAY_RAN;
        if (assay_interrupt_has_come())
            return lose(program, ASSAY_FAILED, "was interrupted", message);
        if (event == ASSAY_PROCESS_EXITED)
            return lose(program, ASSAY_CRASHED, NULL, message);
        if (event == ASSAY_PROCESS_TOO_LARGE)
            return lose_by_limit(program, event, message);
        const double now = assay_clock_seconds();
        if (program->process.is_channel_closed && !was_closed)
            deadline = fmin(deadline, now + LAST_WORDS_SECONDS);
        was_closed = program->process.is_channel_closed;
        if (now < deadline) continue;
        if (was_closed)
            return lose(program, ASSAY_CRASHED, "closed its standard output", message);
        return lose_by_limit(program, ASSAY_PROCESS_TIMED_OUT, message);
    }
}

static enum assay_status read_answer(struct assay_program *program, const char *text,
                                     struct assay_message *message)
{
    const char *const name = program->name.text;
    struct assay_answer answer;
    program->has_answered = true;
    if (assay_answer_read(text, &answer)) {
        const char *const sentence = answer.sentence;
        program->notes.launch_seconds = answer.seconds;
        if (answer.status == ASSAY_RAN) return ASSAY_RAN;
        if (answer.status == ASSAY_OUT_OF_MEMORY)
            return assay_fail(message, ASSAY_OUT_OF_MEMORY,
                              "program '%s': out of memory%s%s", name,
                              *sentence ? ": " : "", sentence);
        if (*sentence)
            return assay_fail(message, answer.status, "program '%s': %s", name, sentence);
        return assay_fail(message, answer.status, "program '%s': %s", name,
                          answer.status == ASSAY_FAILED ? "failed, for no stated reason"
                                                        : "unsupported");
    }
    char reason[256];
    snprintf(reason, sizeof(reason),
             "answered 'assay: %s'; an answer is 'assay: ' with ok, ok seconds=S, "
             "unsupported SENTENCE, failed SENTENCE or out of memory",
             assay_excerpt(text).text);
    return lose(program, ASSAY_FAILED, reason, message);
}

static enum assay_status begin(struct assay_program *program,
                               struct assay_message *message)
{
    if (program->process.pid) {
        assay_process_rewind_output(&program->process);
        assay_listener_hear_out(&program->listener, &program->process);
        return ASSAY_RAN;
    }
    program->has_answered = false;
    assay_listener_reset(&program->listener);
    return assay_process_start_command(&program->process, program->plan.command, message);
}

/* Asks for the case in the folder, and waits. That nobody reads what is asked is noticed
 * while waiting, unless answers come all the same. */
static enum assay_status ask(struct assay_program *program,
                             const struct assay_exchange *exchange,
                             struct assay_message *message)
{
    char line[sizeof(exchange->folder) + 2];
    snprintf(line, sizeof(line), "%s\n", exchange->folder);
    const bool is_told = assay_process_tell(&program->process, line);
    if (!is_told && errno == EAGAIN)
        return lose(program, ASSAY_FAILED, "does not read its standard input", message);
    const char *answer;
    enum assay_status status = await(program, &answer, message);
    if (status == ASSAY_RAN) status = read_answer(program, answer, message);
    if (program->process.pid) keep_output(program);
    if (status == ASSAY_RAN && !assay_exchange_is_answered(exchange))
        return lose(program, ASSAY_FAILED,
                    "answered ok, but there is no outputs.safetensors in the folder it "
                    "was given",
                    message);
    return status;
}

static enum assay_status fetch(struct assay_program *program,
                               const struct assay_exchange *exchange,
                               const struct assay_run_call *call,
                               struct assay_message *message)
{
    struct assay_message reason;
    const enum assay_status status =
        assay_exchange_fetch(exchange, call->the_case, call->problem, call->tensors,
                             &program->notes.has_changed_inputs, &reason);
    if (status == ASSAY_RAN) return status;
    return assay_fail(message, status, "program '%s': %s", program->name.text,
                      reason.text);
}

/* A process that waits for a case may finish by itself: exit handlers of profilers and
 * sanitizers run then. */
static void retire(struct assay_program *program)
{
    if (!program->process.pid) return;
    const double deadline = assay_clock_seconds() + GOODBYE_SECONDS;
    assay_process_hang_up(&program->process);
    while (assay_clock_seconds() < deadline &&
           assay_process_wait(&program->process, deadline, program->memory_bytes) ==
               ASSAY_PROCESS_SPOKE)
        assay_listener_hear_out(&program->listener, &program->process);
    assay_process_end(&program->process, NULL);
}

static enum assay_status run_once(struct assay_program *program,
                                  const struct assay_run_call *call,
                                  struct assay_message *message)
{
    struct assay_exchange exchange;
    program->was_killed = false;
    program->notes = (struct assay_backend_notes){ .warning = "" };
    assay_interrupt_hold();
    enum assay_status status = assay_exchange_open(
        &exchange, call->the_case, call->tensors, call->launches, message);
    if (status == ASSAY_RAN) status = begin(program, message);
    if (status == ASSAY_RAN) status = ask(program, &exchange, message);
    if (status == ASSAY_RAN) status = fetch(program, &exchange, call, message);
    if (program->plan.limits.is_fresh) retire(program);
    assay_exchange_close(&exchange);
    assay_interrupt_release();
    return status;
}

enum assay_status assay_program_run(struct assay_program *program,
                                    const struct assay_run_call *call,
                                    struct assay_message *message)
{
    const enum assay_status status = run_once(program, call, message);
    return program->was_killed ? run_once(program, call, message) : status;
}

void assay_program_notes(const struct assay_program *program,
                         struct assay_backend_notes *notes)
{
    *notes = program->notes;
}

enum assay_status assay_program_open(const struct assay_program_plan *plan,
                                     struct assay_program **program,
                                     struct assay_message *message)
{
    *program = calloc(1, sizeof(**program));
    if (!*program)
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a program");
    (*program)->plan = *plan;
    (*program)->name = assay_excerpt(plan->command);
    (*program)->memory_bytes = assay_process_byte_limit(plan->limits.memory_bytes);
    return ASSAY_RAN;
}

void assay_program_close(struct assay_program *program)
{
    if (!program) return;
    retire(program);
    free(program);
}
