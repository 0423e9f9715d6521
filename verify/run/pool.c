/* SPDX-License-Identifier: MIT */
#include "verify/run/pool.h"

#include "verify/case/text.h"
#include "verify/data/clock.h"
#include "verify/run/job.h"
#include "verify/run/lines.h"
#include "verify/worker/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GOODBYE_SECONDS = 4, KILL_SECONDS = 10, START_FAILED = 127 };
static const char threads_variable[] = "OMP_NUM_THREADS";

struct job {
    pid_t pid; /* 0: no process */
    int channel;
    struct assay_lines lines;
    int64_t number; /* of the case it runs */
    char *request;  /* the case; NULL: it runs none */
    bool was_killed;
};

struct assay_pool {
    int count;
    int heard; /* the job whose answer came last: others come first next time */
    struct job job[ASSAY_MAX_JOBS];
    char *const *words;
    char **environment; /* the strings are ours */
};

/* A copy of the environment with the number of threads that a job may have. */
static char **job_environment(int jobs)
{
    size_t count = 0;
    const bool is_set = getenv(threads_variable);
    const int share = omp_get_max_threads() / jobs;
    while (environ[count])
        count++;
    char **const copy = calloc(count + 2, sizeof(*copy));
    if (!copy) return NULL;
    bool is_whole = true;
    for (size_t i = 0; i < count; i++)
        is_whole &= (copy[i] = strdup(environ[i])) != NULL;
    if (!is_set &&
        asprintf(&copy[count], "%s=%d", threads_variable, share > 1 ? share : 1) < 0)
        is_whole = false;
    if (is_whole) return copy;
    for (size_t i = 0; i < count; i++)
        free(copy[i]);
    free(copy);
    return NULL;
}

/* Moves @fd to @target without the flag that would close it; they may be the same. */
static bool move(int fd, int target)
{
    return fd == target ? fcntl(fd, F_SETFD, 0) == 0 : dup2(fd, target) == target;
}

/* Between fork and exec of a process that may have threads: system calls only. What a job
 * prints goes to stderr: stdout is for reports. It may tidy up when we die. */
_Noreturn static void become_job(const struct assay_pool *pool, pid_t parent, int channel)
{
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent) _exit(START_FAILED);
    setpgid(0, 0);
    const int safe_channel = fcntl(channel, F_DUPFD, ASSAY_JOB_FD + 1);
    const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (input >= 0 && safe_channel >= 0 && move(input, 0) && dup2(2, 1) == 1 &&
        move(safe_channel, ASSAY_JOB_FD) && close_range(ASSAY_JOB_FD + 1, ~0U, 0) == 0)
        execve("/proc/self/exe", pool->words, pool->environment);
    _exit(START_FAILED);
}

static bool start(const struct assay_pool *pool, struct job *job)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
    fflush(NULL);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) become_job(pool, parent, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return false;
    }
    setpgid(pid, pid);
    job->pid = pid;
    job->channel = ends[0];
    return true;
}

static bool is_gone(pid_t pid, siginfo_t *info)
{
    *info = (siginfo_t){ 0 };
    return waitid(P_PID, (id_t)pid, info, WEXITED | WNOHANG) != 0 || info->si_pid != 0;
}

/* Waits so long for the end, which is then brought about. */
static void bury(struct job *job, double seconds, siginfo_t *info)
{
    const double patience = assay_clock_seconds() + seconds;
    bool is_killed = false;
    while (!is_gone(job->pid, info)) {
        const double time = assay_clock_seconds();
        if (time >= patience && !is_killed) kill(-job->pid, SIGKILL);
        is_killed = time >= patience;
        if (time >= patience + KILL_SECONDS) break;
        poll(NULL, 0, 2);
    }
    close(job->channel);
    assay_lines_close(&job->lines);
    job->pid = 0;
}

static void describe(const siginfo_t *info, struct assay_text *ending)
{
    const char *const name =
        info->si_code == CLD_EXITED ? NULL : sigabbrev_np(info->si_status);
    if (info->si_code == CLD_EXITED)
        assay_text_add(ending, "exited with status %d", info->si_status);
    else
        assay_text_add(ending, "was killed by signal %d (SIG%s)", info->si_status,
                       name ? name : "RT");
}

/* Hands the job its request, in a process that is alive as far as one can see. */
static enum assay_status hand_over(const struct assay_pool *pool, struct job *job,
                                   struct assay_message *message)
{
    siginfo_t ignored;
    for (int attempt = 0; attempt < 2; attempt++) {
        if (!job->pid && !start(pool, job))
            return assay_fail(message, ASSAY_FAILED, "no job can be started: %s",
                              strerror(errno));
        if (assay_lines_send(job->channel, job->request)) return ASSAY_RAN;
        bury(job, 0, &ignored);
    }
    return assay_fail(message, ASSAY_FAILED, "a job ended before it was given a case");
}

enum assay_status assay_pool_open(int jobs, char *const *words, struct assay_pool **pool,
                                  struct assay_message *message)
{
    assert(jobs > 0 && jobs <= ASSAY_MAX_JOBS);
    struct assay_pool *const opened = calloc(1, sizeof(*opened));
    char **const variables = opened ? job_environment(jobs) : NULL;
    if (!variables) {
        free(opened);
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for jobs");
    }
    opened->count = jobs;
    opened->words = words;
    opened->environment = variables;
    *pool = opened;
    return ASSAY_RAN;
}

int assay_pool_busy(const struct assay_pool *pool)
{
    int busy = 0;
    for (int i = 0; i < pool->count; i++)
        busy += pool->job[i].request != NULL;
    return busy;
}

/* A job that waits for a case, or else a place for a new one. */
static struct job *idle_job(struct assay_pool *pool)
{
    struct job *idle = NULL;
    for (int i = 0; i < pool->count; i++) {
        struct job *const job = &pool->job[i];
        if (job->request) continue;
        if (job->pid) return job;
        if (!idle) idle = job;
    }
    return idle;
}

enum assay_status assay_pool_give(struct assay_pool *pool,
                                  const struct assay_run_case *the_case,
                                  struct assay_message *message)
{
    struct job *const job = idle_job(pool);
    assert(job);
    job->request = assay_job_request(the_case);
    if (!job->request)
        return assay_fail(message, ASSAY_REFUSED,
                          "a case can't be given to a job: there is no memory, or the "
                          "name of its file is no UTF-8 (leave out --jobs)");
    job->number = the_case->number;
    job->was_killed = false;
    return hand_over(pool, job, message);
}

static void answer_with(struct job *job, struct assay_pool_answer *answer, char *line)
{
    answer->number = job->number;
    answer->line = line;
    free(job->request);
    job->request = NULL;
}

/* A job's channel is closed. True when that is the answer to its case. */
static bool lose(struct assay_pool *pool, struct job *job,
                 struct assay_pool_answer *answer)
{
    siginfo_t info;
    struct assay_message message;
    struct assay_text ending = assay_text_open(answer->ending, sizeof(answer->ending));
    bury(job, GOODBYE_SECONDS, &info);
    describe(&info, &ending);
    const bool is_first_kill =
        !job->was_killed && assay_ending_is_somebodys(answer->ending);
    job->was_killed = true;
    if (is_first_kill && hand_over(pool, job, &message) == ASSAY_RAN) return false;
    answer_with(job, answer, NULL);
    return true;
}

static bool hear(struct assay_pool *pool, struct job *job,
                 struct assay_pool_answer *answer)
{
    if (!assay_lines_fill(&job->lines, job->channel)) return lose(pool, job, answer);
    char *const line = assay_lines_take(&job->lines);
    if (line) answer_with(job, answer, line);
    return line != NULL;
}

bool assay_pool_wait(struct assay_pool *pool, double seconds,
                     struct assay_pool_answer *answer)
{
    const double deadline = assay_clock_seconds() + seconds;
    struct pollfd wanted[ASSAY_MAX_JOBS];
    for (double left = seconds; left > 0; left = deadline - assay_clock_seconds()) {
        for (int i = 0; i < pool->count; i++)
            wanted[i] =
                (struct pollfd){ .fd = pool->job[i].request ? pool->job[i].channel : -1,
                                 .events = POLLIN };
        if (poll(wanted, (nfds_t)pool->count, (int)(left * 1000) + 1) <= 0) continue;
        for (int i = 1; i <= pool->count; i++) {
            const int at = (pool->heard + i) % pool->count;
            if (!wanted[at].revents || !hear(pool, &pool->job[at], answer)) continue;
            pool->heard = at;
            return true;
        }
    }
    return false;
}

void assay_pool_close(struct assay_pool *pool)
{
    if (!pool) return;
    siginfo_t ignored;
    for (int i = 0; i < pool->count; i++)
        if (pool->job[i].pid && pool->job[i].request)
            kill(pool->job[i].pid, SIGTERM);
        else if (pool->job[i].pid)
            shutdown(pool->job[i].channel, SHUT_WR);
    for (int i = 0; i < pool->count; i++) {
        struct job *const job = &pool->job[i];
        if (job->pid) bury(job, GOODBYE_SECONDS, &ignored);
        free(job->request);
    }
    for (char **variable = pool->environment; *variable; variable++)
        free(*variable);
    free(pool->environment);
    free(pool);
}
