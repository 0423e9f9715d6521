/* SPDX-License-Identifier: MIT */
#include "verify/worker/process.h"

#include "verify/worker/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 8, WATCH_MILLISECONDS = 20, START_FAILED = 127 };

static void close_one(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static int open_output(void)
{
    const int fd = memfd_create("assay-output", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return -1;
    if (ftruncate(fd, ASSAY_PROCESS_OUTPUT_BYTES) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Moves @fd to @target without the flag that would close it; they may be the same. */
static bool become(int fd, int target)
{
    return fd == target ? fcntl(fd, F_SETFD, 0) == 0 : dup2(fd, target) == target;
}

/* Between fork and exec of a process that may have threads: system calls only. */
_Noreturn static void become_worker(pid_t parent, int channel, int output,
                                    char *const *arguments)
{
    static const struct rlimit no_core = { 0, RLIM_INFINITY };
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(START_FAILED);
    setpgid(0, 0);
    setrlimit(RLIMIT_CORE, &no_core);
    const int safe_channel = fcntl(channel, F_DUPFD, ASSAY_CHANNEL_FD + 1);
    const int safe_output = fcntl(output, F_DUPFD, ASSAY_CHANNEL_FD + 1);
    const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (input >= 0 && safe_channel >= 0 && safe_output >= 0 && become(input, 0) &&
        become(safe_output, 1) && become(safe_output, 2) &&
        become(safe_channel, ASSAY_CHANNEL_FD) &&
        close_range(ASSAY_CHANNEL_FD + 1, ~0U, 0) == 0)
        execv("/proc/self/exe", arguments);
    _exit(START_FAILED);
}

static bool spawn(struct assay_process *process, const char *const *arguments)
{
    char *words[MAX_ARGUMENTS + 3] = { (char *)"assay", (char *)"worker" };
    for (int i = 0; i < MAX_ARGUMENTS && arguments[i]; i++)
        words[i + 2] = (char *)(uintptr_t)arguments[i];
    int ends[2];
    process->output = open_output();
    if (process->output < 0 || !assay_channel_pair(ends)) return false;
    process->channel = ends[0];
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) become_worker(parent, ends[1], process->output, words);
    close(ends[1]);
    if (pid < 0) return false;
    process->pid = pid;
    setpgid(pid, pid);
    process->pidfd = pidfd_open(pid, 0);
    return true;
}

enum assay_status assay_process_start(struct assay_process *process,
                                      const char *const *arguments,
                                      struct assay_message *message)
{
    *process = (struct assay_process){ .pidfd = -1, .channel = -1, .output = -1 };
    fflush(NULL);
    if (spawn(process, arguments)) return ASSAY_RAN;
    const enum assay_status status = assay_fail(
        message, ASSAY_FAILED, "no worker process can be started: %s", strerror(errno));
    assay_process_end(process, NULL);
    return status;
}

double assay_process_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Resident bytes that belong to the process alone; 0 when they can't be known. */
static int64_t own_bytes(pid_t pid)
{
    char path[64];
    long long size, resident, shared;
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    FILE *const file = fopen(path, "re");
    if (!file) return 0;
    const bool is_read = fscanf(file, "%lld %lld %lld", &size, &resident, &shared) == 3;
    fclose(file);
    return is_read ? (resident - shared) * sysconf(_SC_PAGESIZE) : 0;
}

/* Whether it has ended; it stays a zombie. For systems without pidfd_open, too. */
static bool has_exited(const struct assay_process *process)
{
    siginfo_t info = { 0 };
    const int result =
        waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    return result != 0 || info.si_pid != 0;
}

static int pause_milliseconds(const struct assay_process *process, double left)
{
    const bool is_blind = process->pidfd < 0 && process->is_channel_closed;
    const double limit = is_blind ? 1 : WATCH_MILLISECONDS;
    return (int)ceil(fmin(left * 1000, limit));
}

enum assay_process_event assay_process_wait(const struct assay_process *process,
                                            double deadline, int64_t memory_bytes)
{
    struct pollfd wanted[] = {
        { .fd = process->is_channel_closed ? -1 : process->channel, .events = POLLIN },
        { .fd = process->pidfd, .events = POLLIN },
    };
    for (double left; (left = deadline - assay_process_now()) > 0;) {
        poll(wanted, 2, pause_milliseconds(process, left));
        if (wanted[0].revents) return ASSAY_PROCESS_SPOKE;
        if (has_exited(process)) return ASSAY_PROCESS_EXITED;
        if (own_bytes(process->pid) > memory_bytes) return ASSAY_PROCESS_TOO_LARGE;
    }
    return ASSAY_PROCESS_TIMED_OUT;
}

int64_t assay_process_output(const struct assay_process *process, char *text, size_t size)
{
    text[0] = '\0';
    if (process->output < 0) return 0;
    const off_t end = lseek(process->output, 0, SEEK_CUR);
    if (end <= 0) return 0;
    const size_t wanted = (uint64_t)end < size ? (size_t)end : size - 1;
    const ssize_t got = pread(process->output, text, wanted, 0);
    const size_t length = got > 0 ? (size_t)got : 0;
    for (size_t i = 0; i < length; i++)
        if (!text[i]) text[i] = '?';
    text[length] = '\0';
    return end;
}

void assay_process_rewind_output(const struct assay_process *process)
{
    lseek(process->output, 0, SEEK_SET);
}

static void describe(const siginfo_t *info, struct assay_text *ending)
{
    if (info->si_code == CLD_EXITED) {
        assay_text_add(ending, "exited with status %d", info->si_status);
        return;
    }
    const char *const name = sigabbrev_np(info->si_status);
    assay_text_add(ending, "was killed by signal %d (SIG%s)", info->si_status,
                   name ? name : "RT");
}

/* Whether a killed process is gone in time. */
static bool goes(const struct assay_process *process)
{
    const double deadline = assay_process_now() + ASSAY_PROCESS_KILL_SECONDS;
    struct pollfd end = { .fd = process->pidfd, .events = POLLIN };
    while (!has_exited(process)) {
        if (assay_process_now() >= deadline) return false;
        poll(&end, 1, process->pidfd < 0 ? 1 : WATCH_MILLISECONDS);
    }
    return true;
}

/* The exit status is looked at and the group killed while the process is still there to
 * hold its number. */
bool assay_process_end(struct assay_process *process, struct assay_text *ending)
{
    bool is_gone = true;
    if (process->pid > 0) {
        siginfo_t info = { 0 };
        const id_t id = (id_t)process->pid;
        waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT);
        if (ending && info.si_pid) describe(&info, ending);
        if (ending && !info.si_pid) assay_text_add(ending, "was stopped");
        kill(-process->pid, SIGKILL);
        kill(process->pid, SIGKILL);
        is_gone = goes(process);
        if (is_gone) waitid(P_PID, id, &info, WEXITED);
    }
    close_one(&process->pidfd);
    close_one(&process->channel);
    close_one(&process->output);
    process->pid = 0;
    return is_gone;
}
