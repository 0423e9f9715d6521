/* SPDX-License-Identifier: MIT */
/* What became of a case on one of the example plugins, and of the processes. */
#ifndef ASSAY_TESTS_VERIFY_WORKER_OUTCOME_H
#define ASSAY_TESTS_VERIFY_WORKER_OUTCOME_H

#include "tests/verify/plugin_call.h"
#include "verify/data/clock.h"
#include "verify/worker/process.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

static const char small_case[] = "fp8_gemm_nt m=4 n=8 k=128 seed=1";
static const struct assay_backend_limits ten_seconds = { .seconds = 10 };

struct outcome {
    enum assay_status status;
    struct assay_message message;
    struct assay_backend_notes notes;
    double seconds;
};

static inline struct assay_worker *worker_for(const char *name, const char *options,
                                              const struct assay_backend_limits *limits)
{
    static struct plugin_path path;
    struct assay_worker *worker = NULL;
    struct assay_message message = { "" };
    path = plugin_path(name);
    const struct assay_worker_plan plan = { path.text, options, *limits };
    ck_assert_msg(assay_worker_open(&plan, &worker, &message) == ASSAY_RAN, "%s",
                  message.text);
    return worker;
}

/* Claim and run, as a trial does it. */
static inline struct outcome outcome_of(struct assay_worker *worker,
                                        struct plugin_call *call)
{
    struct outcome outcome = { .seconds = assay_clock_seconds() };
    struct assay_backend_claim claim;
    assay_buffers_poison(&call->tensors);
    outcome.status = assay_worker_claim(worker, &call->call, &claim, &outcome.message);
    if (outcome.status == ASSAY_RAN)
        outcome.status = assay_worker_run(worker, &call->call, &outcome.message);
    assay_worker_notes(worker, &outcome.notes);
    outcome.seconds = assay_clock_seconds() - outcome.seconds;
    return outcome;
}

static inline struct outcome outcome_with(const char *name, const char *options,
                                          const struct assay_backend_limits *limits)
{
    struct plugin_call call;
    open_call(&call, small_case);
    struct assay_worker *const worker = worker_for(name, options, limits);
    const struct outcome outcome = outcome_of(worker, &call);
    assay_worker_close(worker);
    close_call(&call);
    return outcome;
}

static inline void check_outcome(const struct outcome *outcome, enum assay_status status,
                                 const char *sentence)
{
    ck_assert_str_eq(assay_status_name(outcome->status), assay_status_name(status));
    ck_assert_msg(strstr(outcome->message.text, sentence), "%s", outcome->message.text);
}

static inline int count_entries(const char *folder)
{
    DIR *const directory = opendir(folder);
    int count = 0;
    ck_assert_ptr_nonnull(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

/* Whether the process is there and no zombie. */
static inline bool is_alive(int pid)
{
    char path[64], state = 'Z';
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *const file = fopen(path, "r");
    if (!file) return false;
    ck_assert_int_eq(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
    fclose(file);
    return state != 'Z' && state != 'X';
}

/* The first child of a process; 0 if it has none. */
static inline int child_of(int pid)
{
    char path[64];
    int child = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
    FILE *const file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    if (fscanf(file, "%d", &child) != 1) child = 0;
    fclose(file);
    return child;
}

static inline bool dies_within(int pid, double seconds)
{
    const double end = assay_clock_seconds() + seconds;
    while (is_alive(pid) && assay_clock_seconds() < end)
        usleep(1000);
    return !is_alive(pid);
}

#endif
