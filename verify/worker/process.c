/* SPDX-License-Identifier: MIT */
#include "verify/worker/process.h"

#include "verify/data/clock.h"
#include "verify/worker/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

enum {
    MAX_ARGUMENTS = 8,
    MAX_READS = 16,      /* of BUFSIZ, more than a pipe holds */
    MAX_GENERATIONS = 8, /* whose memory counts, below a command's shell */
    WATCH_MILLISECONDS = 20,
    START_FAILED = 127,
};

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

/* What the new process is to be: descriptors for 0, 1, 2 and, unless -1, 3. */
struct image {
    int descriptor[ASSAY_CHANNEL_FD + 1];
    const char *path;
    char *const *arguments;
};

/* Between fork and exec of a process that may have threads: system calls only. */
_Noreturn static void become_image(pid_t parent, const struct image *image)
{
    static const struct rlimit no_core = { 0, RLIM_INFINITY };
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(START_FAILED);
    setpgid(0, 0);
    setrlimit(RLIMIT_CORE, &no_core);
    int safe[ASSAY_CHANNEL_FD + 1], count = 0;
    for (; count <= ASSAY_CHANNEL_FD && image->descriptor[count] >= 0; count++)
        safe[count] = fcntl(image->descriptor[count], F_DUPFD, ASSAY_CHANNEL_FD + 1);
    bool is_good = true;
    for (int i = 0; i < count; i++)
        is_good = is_good && safe[i] >= 0 && dup2(safe[i], i) == i;
    if (is_good && close_range((unsigned)count, ~0U, 0) == 0)
        execv(image->path, image->arguments);
    _exit(START_FAILED);
}

static bool spawn(struct assay_process *process, const struct image *image)
{
    const pid_t parent = getpid();
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) become_image(parent, image);
    if (pid < 0) return false;
    process->pid = pid;
    setpgid(pid, pid);
    process->pidfd = pidfd_open(pid, 0);
    return true;
}

static bool spawn_worker(struct assay_process *process, const char *const *arguments)
{
    char *words[MAX_ARGUMENTS + 3] = { (char *)"assay", (char *)"worker" };
    for (int i = 0; i < MAX_ARGUMENTS && arguments[i]; i++)
        words[i + 2] = (char *)(uintptr_t)arguments[i];
    int ends[2];
    process->output = open_output();
    if (process->output < 0 || !assay_channel_pair(ends)) return false;
    process->channel = ends[0];
    int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const struct image image = { { input, process->output, process->output, ends[1] },
                                 "/proc/self/exe",
                                 words };
    const bool is_spawned = input >= 0 && spawn(process, &image);
    close(ends[1]);
    close_one(&input);
    return is_spawned;
}

/* A pipe whose end @ours does not block. */
static bool open_pipe(int ends[2], int ours)
{
    return pipe2(ends, O_CLOEXEC) == 0 && fcntl(ends[ours], F_SETFL, O_NONBLOCK) == 0;
}

static bool spawn_command(struct assay_process *process, const char *command)
{
    char *const words[] = { (char *)"/bin/sh", (char *)"-c", (char *)(uintptr_t)command,
                            NULL };
    int asked[2] = { -1, -1 }, said[2] = { -1, -1 }, errors[2] = { -1, -1 };
    process->output = open_output();
    bool is_spawned = process->output >= 0 && open_pipe(asked, 1) && open_pipe(said, 0) &&
                      open_pipe(errors, 0);
    if (asked[1] >= 0) fcntl(asked[1], F_SETPIPE_SZ, PIPE_BUF); /* soon full, if unread */
    process->input = asked[1];
    process->channel = said[0];
    process->errors = errors[0];
    const struct image image = { { asked[0], said[1], errors[1], -1 }, words[0], words };
    is_spawned = is_spawned && spawn(process, &image);
    close_one(&asked[0]);
    close_one(&said[1]);
    close_one(&errors[1]);
    return is_spawned;
}

static const struct assay_process no_process = {
    .pidfd = -1, .channel = -1, .output = -1, .input = -1, .errors = -1, .exit_status = -1
};

/* Passes on whether it has been spawned. */
static enum assay_status started(struct assay_process *process, bool is_spawned,
                                 const char *what, struct assay_message *message)
{
    if (is_spawned) return ASSAY_RAN;
    const enum assay_status status = assay_fail(
        message, ASSAY_FAILED, "no %s can be started: %s", what, strerror(errno));
    assay_process_end(process, NULL);
    return status;
}

enum assay_status assay_process_start(struct assay_process *process,
                                      const char *const *arguments,
                                      struct assay_message *message)
{
    *process = no_process;
    const bool is_spawned = spawn_worker(process, arguments);
    return started(process, is_spawned, "worker process", message);
}

enum assay_status assay_process_start_command(struct assay_process *process,
                                              const char *command,
                                              struct assay_message *message)
{
    *process = no_process;
    process->is_command = true;
    const bool is_spawned = spawn_command(process, command);
    return started(process, is_spawned, "process for a command", message);
}

/* Nobody reading must not kill us: the signal is held back while we write, and taken. */
bool assay_process_tell(const struct assay_process *process, const char *text)
{
    static const struct timespec at_once = { 0, 0 };
    const size_t length = strlen(text);
    sigset_t broken_pipe, before, pending;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
    ssize_t written;
    do
        written = write(process->input, text, length);
    while (written < 0 && errno == EINTR);
    if (written < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
        sigtimedwait(&broken_pipe, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return written == (ssize_t)length;
}

void assay_process_hang_up(struct assay_process *process)
{
    close_one(&process->input);
}

void assay_process_add_output(const struct assay_process *process, const char *text,
                              size_t length)
{
    const off_t end = lseek(process->output, 0, SEEK_CUR);
    if (end < 0 || end >= ASSAY_PROCESS_OUTPUT_BYTES) return;
    const size_t room = (size_t)(ASSAY_PROCESS_OUTPUT_BYTES - end);
    if (write(process->output, text, length < room ? length : room) < 0) return;
}

static int64_t own_bytes(int pid)
{
    char path[64];
    long long size, resident, shared;
    snprintf(path, sizeof(path), "/proc/%d/statm", pid);
    FILE *const file = fopen(path, "re");
    if (!file) return 0;
    const bool is_read = fscanf(file, "%lld %lld %lld", &size, &resident, &shared) == 3;
    fclose(file);
    return is_read ? (resident - shared) * sysconf(_SC_PAGESIZE) : 0;
}

/* A shell is the parent of what it runs. */
static int64_t family_bytes(int pid, int depth)
{
    char path[64];
    int child;
    int64_t bytes = own_bytes(pid);
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
    FILE *const file = depth > 0 ? fopen(path, "re") : NULL;
    while (file && fscanf(file, "%d", &child) == 1)
        bytes += family_bytes(child, depth - 1);
    if (file) fclose(file);
    return bytes;
}

int64_t assay_process_bytes(const struct assay_process *process)
{
    return family_bytes(process->pid, process->is_command ? MAX_GENERATIONS : 0);
}

int64_t assay_process_byte_limit(int64_t wanted)
{
    if (wanted > 0) return wanted;
    return (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE) / 4 * 3;
}

/* Keeps what has come from stderr. False when no more will come. */
static bool take_errors(const struct assay_process *process)
{
    char text[BUFSIZ];
    for (int i = 0; i < MAX_READS && process->errors >= 0; i++) {
        const ssize_t got = read(process->errors, text, sizeof(text));
        if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
        assay_process_add_output(process, text, (size_t)got);
    }
    return process->errors >= 0;
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
        { .fd = process->errors, .events = POLLIN },
    };
    for (double left; (left = deadline - assay_clock_seconds()) > 0;) {
        poll(wanted, 3, pause_milliseconds(process, left));
        if (wanted[2].revents && !take_errors(process)) wanted[2].fd = -1;
        if (wanted[0].revents) return ASSAY_PROCESS_SPOKE;
        if (has_exited(process)) return ASSAY_PROCESS_EXITED;
        if (assay_process_bytes(process) > memory_bytes) return ASSAY_PROCESS_TOO_LARGE;
    }
    return ASSAY_PROCESS_TIMED_OUT;
}

int64_t assay_process_output(const struct assay_process *process, char *text, size_t size)
{
    text[0] = '\0';
    if (process->output < 0) return 0;
    take_errors(process);
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
    const double deadline = assay_clock_seconds() + ASSAY_PROCESS_KILL_SECONDS;
    struct pollfd end = { .fd = process->pidfd, .events = POLLIN };
    while (!has_exited(process)) {
        if (assay_clock_seconds() >= deadline) return false;
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
        if (info.si_pid && info.si_code == CLD_EXITED)
            process->exit_status = info.si_status;
        if (ending && info.si_pid) describe(&info, ending);
        if (ending && !info.si_pid) assay_text_add(ending, "was stopped");
        kill(-process->pid, SIGKILL);
        kill(process->pid, SIGKILL);
        is_gone = goes(process);
        if (is_gone) waitid(P_PID, id, &info, WEXITED);
    }
    close_one(&process->pidfd);
    close_one(&process->channel);
    close_one(&process->input);
    close_one(&process->errors);
    close_one(&process->output);
    process->pid = 0;
    return is_gone;
}

bool assay_ending_is_somebodys(const char *ending)
{
    static const char *const names[] = { "SIGKILL", "SIGTERM", "SIGINT", "SIGHUP" };
    for (int i = 0; i < 4; i++)
        if (strstr(ending, names[i])) return true;
    return false;
}
