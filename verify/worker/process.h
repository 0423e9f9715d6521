/* SPDX-License-Identifier: MIT */
/* A disposable process that runs somebody's code: this program again, as `worker`, or a
 * command of the user's. It has a process group of its own that dies with us; what it
 * prints is kept in a file of limited size; time and memory are watched. */
#ifndef ASSAY_VERIFY_WORKER_PROCESS_H
#define ASSAY_VERIFY_WORKER_PROCESS_H

#include "verify/case/message.h"
#include "verify/case/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    ASSAY_PROCESS_OUTPUT_BYTES = 1 << 20, /* kept of stdout and stderr together */
    ASSAY_PROCESS_KILL_SECONDS = 10,      /* in which a killed process must be gone */
};

struct assay_process {
    pid_t pid; /* 0: none */
    int pidfd; /* -1 on systems without: then looked at more often */
    int channel, output;
    int input, errors; /* of a command: its stdin and stderr, not blocking; else -1 */
    bool is_command, is_channel_closed;
    int exit_status; /* once it has ended: what it exited with by itself, otherwise -1 */
};

enum assay_process_event {
    ASSAY_PROCESS_SPOKE, /* the channel can be read, perhaps its end */
    ASSAY_PROCESS_EXITED,
    ASSAY_PROCESS_TIMED_OUT,
    ASSAY_PROCESS_TOO_LARGE, /* in memory */
};

/* Runs /proc/self/exe with "worker" and @arguments (NULL-terminated, at most 8), the
 * channel as descriptor 3, no input and no other descriptor. On failure nothing is left
 * behind. */
enum assay_status assay_process_start(struct assay_process *process,
                                      const char *const *arguments,
                                      struct assay_message *message);

/* Runs /bin/sh -c @command with `input`, the channel and `errors` the other ends of its
 * stdin, stdout and stderr, pipes that do not block us; no other descriptor. What it
 * writes to stderr is taken from there while we wait, and kept like a worker's output. */
enum assay_status assay_process_start_command(struct assay_process *process,
                                              const char *command,
                                              struct assay_message *message);

/* Writes all of @text to a command's stdin; false when that is closed or full. */
bool assay_process_tell(const struct assay_process *process, const char *text);

/* Closes a command's stdin. */
void assay_process_hang_up(struct assay_process *process);

/* Adds to what has been written to stdout and stderr, as far as there is room. */
void assay_process_add_output(const struct assay_process *process, const char *text,
                              size_t length);

/* Resident bytes that the process, and the children of a command, share with nobody; 0
 * when they can't be known. */
int64_t assay_process_bytes(const struct assay_process *process);

/* Bytes that a process may take: @wanted or, for 0, three quarters of the machine's. */
int64_t assay_process_byte_limit(int64_t wanted);

/* Waits until @deadline for whatever comes first. Memory is that of assay_process_bytes,
 * looked at 50 times a second while nothing is said. */
enum assay_process_event assay_process_wait(const struct assay_process *process,
                                            double deadline, int64_t memory_bytes);

/* What has been written to stdout and stderr since the last rewind: at most @size - 1
 * bytes and a NUL (bytes that are NUL become '?'). Returns how much there is. */
int64_t assay_process_output(const struct assay_process *process, char *text,
                             size_t size);
void assay_process_rewind_output(const struct assay_process *process);

/* Kills the process group, if there is one, and buries the process; descriptors are
 * closed. @ending, unless NULL, gets "was killed by signal 11 (SIGSEGV)" or "exited with
 * status 0": what happened before we came. False when the process cannot be killed. */
bool assay_process_end(struct assay_process *process, struct assay_text *ending);

/* Whether an ending is by a signal with which people and schedulers end processes: KILL,
 * TERM, INT, HUP. It may have reached this process's children first. */
bool assay_ending_is_somebodys(const char *ending);

#endif
