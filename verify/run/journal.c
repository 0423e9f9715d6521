/* SPDX-License-Identifier: MIT */
#include "verify/run/journal.h"

#include "verify/data/clock.h"
#include "verify/data/safetensors.h"
#include "verify/run/journal_scan.h"
#include "verify/worker/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_MILLISECONDS = 2000, SIGNALS = 3 };
static const int stopping_signals[SIGNALS] = { SIGINT, SIGTERM, SIGHUP };
static const char stopped_line[] = "{\"type\":\"stopped\"}\n";

struct assay_journal {
    char *path;
    int fd;
    struct assay_journal_scan scan;
    bool is_waiting; /* lines were written since the last sync */
    double synced;
    struct sigaction before[SIGNALS];
};

/* The file a signal finds open, which lives from open to close of a journal. */
static volatile sig_atomic_t stopping_fd = -1;

static void stop(int signal_number)
{
    const int fd = stopping_fd;
    stopping_fd = -1;
    if (fd >= 0 && write(fd, stopped_line, sizeof(stopped_line) - 1) > 0) fsync(fd);
    raise(signal_number);
}

/* Signals that are ignored stay so. */
static void watch_signals(struct assay_journal *journal)
{
    const struct sigaction action = { .sa_handler = stop, .sa_flags = (int)SA_RESETHAND };
    assert(stopping_fd < 0);
    stopping_fd = journal->fd;
    for (int i = 0; i < SIGNALS; i++) {
        sigaction(stopping_signals[i], NULL, &journal->before[i]);
        if (journal->before[i].sa_handler == SIG_DFL)
            sigaction(stopping_signals[i], &action, NULL);
    }
}

static void leave_signals(struct assay_journal *journal)
{
    if (stopping_fd < 0) return;
    stopping_fd = -1;
    for (int i = 0; i < SIGNALS; i++)
        sigaction(stopping_signals[i], &journal->before[i], NULL);
}

static enum assay_status failed(const struct assay_journal *journal, const char *what,
                                struct assay_message *message)
{
    return assay_fail(message, ASSAY_FAILED, "%s: %s failed: %s",
                      assay_shown_path(journal->path), what, strerror(errno));
}

static enum assay_status no_memory(struct assay_message *message)
{
    return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a journal");
}

/* One write, so that a line is there whole or was torn off; takes the text over. */
static enum assay_status append(struct assay_journal *journal, char *text,
                                struct assay_message *message)
{
    if (!text) return no_memory(message);
    const size_t bytes = strlen(text);
    ssize_t written;
    do
        written = write(journal->fd, text, bytes);
    while (written < 0 && errno == EINTR);
    free(text);
    if (written != (ssize_t)bytes) {
        const int error = written < 0 ? errno : ENOSPC;
        if (written > 0 && ftruncate(journal->fd, journal->scan.bytes) != 0)
            journal->scan.index.begun = 0; /* nothing can be added any more */
        errno = error;
        return failed(journal, "writing", message);
    }
    journal->scan.bytes += written;
    journal->is_waiting = true;
    return ASSAY_RAN;
}

__attribute__((format(printf, 1, 2))) static char *formatted(const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) text = NULL;
    va_end(arguments);
    return text;
}

static enum assay_status sync_now(struct assay_journal *journal,
                                  struct assay_message *message)
{
    journal->is_waiting = false;
    journal->synced = assay_clock_seconds();
    return fsync(journal->fd) == 0 ? ASSAY_RAN : failed(journal, "syncing", message);
}

/* A run that was killed a moment ago may still be holding the lock. */
static bool lock(int fd)
{
    const struct timespec pause = { .tv_nsec = 10000000 };
    for (int waited = 0; waited < LOCK_MILLISECONDS; waited += 10) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

static enum assay_status open_file(struct assay_journal *journal, const char *folder,
                                   const char *option, struct assay_message *message)
{
    const char *const shown = assay_shown_path(folder);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return assay_fail(message, ASSAY_REFUSED,
                          "%s %s: the folder can't be made: %s; name one in a writable "
                          "folder",
                          option, shown, strerror(errno));
    journal->fd = open(journal->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (journal->fd < 0)
        return assay_fail(message, ASSAY_REFUSED,
                          "%s %s: journal.jsonl can't be opened: %s; name a writable "
                          "folder",
                          option, shown, strerror(errno));
    if (lock(journal->fd)) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "%s %s: another run is using it; wait for its end, or name another "
                      "folder",
                      option, shown);
}

/* Reads what is there; the torn end of a line is cut off. */
static enum assay_status read_file(struct assay_journal *journal,
                                   const struct assay_journal_header *header,
                                   struct assay_message *message)
{
    const int copy = fcntl(journal->fd, F_DUPFD_CLOEXEC, 0);
    FILE *const stream = copy >= 0 ? fdopen(copy, "r") : NULL;
    if (!stream) {
        if (copy >= 0) close(copy);
        return no_memory(message);
    }
    const enum assay_status status =
        assay_journal_scan(stream, journal->path, header, &journal->scan, message);
    fclose(stream);
    if (status != ASSAY_RAN) return status;
    return ftruncate(journal->fd, journal->scan.bytes) == 0
               ? ASSAY_RAN
               : failed(journal, "cutting off a torn line", message);
}

static enum assay_status begin_run(struct assay_journal *journal,
                                   const struct assay_journal_header *header,
                                   struct assay_message *message)
{
    if (journal->scan.is_ended) return ASSAY_RAN;
    if (journal->scan.bytes)
        return append(journal, strdup("{\"type\":\"resumed\"}\n"), message);
    char *const line = assay_journal_header_line(header);
    const enum assay_status status =
        append(journal, line ? formatted("%s\n", line) : NULL, message);
    free(line);
    return status;
}

enum assay_status assay_journal_open(const char *folder,
                                     const struct assay_journal_header *header,
                                     struct assay_journal **journal,
                                     struct assay_message *message)
{
    struct assay_journal *const opened = calloc(1, sizeof(*opened));
    if (!opened) return no_memory(message);
    opened->fd = -1;
    opened->path = formatted("%s/journal.jsonl", folder);
    const char *const option = header->folder_option ? header->folder_option : "--resume";
    enum assay_status status =
        opened->path ? open_file(opened, folder, option, message) : no_memory(message);
    if (status == ASSAY_RAN) status = read_file(opened, header, message);
    if (status == ASSAY_RAN) status = begin_run(opened, header, message);
    if (status == ASSAY_RAN && !opened->scan.is_ended) status = sync_now(opened, message);
    if (status != ASSAY_RAN) {
        assay_journal_close(opened);
        return status;
    }
    if (!opened->scan.is_ended) watch_signals(opened);
    *journal = opened;
    return ASSAY_RAN;
}

bool assay_journal_has(const struct assay_journal *journal, int64_t number)
{
    return assay_journal_find(&journal->scan.index, number).bytes > 0;
}

int64_t assay_journal_results(const struct assay_journal *journal)
{
    int64_t results = 0;
    for (int64_t i = 0; i < journal->scan.index.count; i++)
        results += journal->scan.index.entry[i].bytes > 0;
    return results;
}

int64_t assay_journal_known(const struct assay_journal *journal)
{
    int64_t end = journal->scan.index.count;
    while (end > 0 && !journal->scan.index.entry[end - 1].bytes)
        end--;
    return end;
}

int assay_journal_deaths(const struct assay_journal *journal, int64_t number)
{
    return assay_journal_find(&journal->scan.index, number).runs;
}

enum assay_status assay_journal_begin(struct assay_journal *journal, int64_t number,
                                      struct assay_message *message)
{
    struct assay_journal_entry *const entry =
        assay_journal_entry(&journal->scan.index, number);
    if (!entry) return no_memory(message);
    assert(!entry->bytes && !entry->is_begun);
    entry->is_begun = true;
    journal->scan.index.begun++;
    return append(journal,
                  formatted("{\"type\":\"begin\",\"case\":%" PRId64 "}\n", number),
                  message);
}

enum assay_status assay_journal_finish(struct assay_journal *journal, int64_t number,
                                       const char *line, bool has_passed,
                                       struct assay_message *message)
{
    struct assay_journal_entry *const entry =
        assay_journal_entry(&journal->scan.index, number);
    const int64_t offset = journal->scan.bytes;
    if (!entry) return no_memory(message);
    assert(!entry->bytes && line[0] == '{');
    const enum assay_status status = append(
        journal, formatted("{\"number\":%" PRId64 ",%s\n", number, line + 1), message);
    if (status != ASSAY_RAN) return status;
    entry->offset = offset;
    entry->bytes = (uint32_t)(journal->scan.bytes - offset - 1);
    journal->scan.index.begun -= entry->is_begun;
    entry->is_begun = false;
    return has_passed ? ASSAY_RAN : sync_now(journal, message);
}

enum assay_status assay_journal_read(const struct assay_journal *journal, int64_t number,
                                     char **line, struct assay_message *message)
{
    const struct assay_journal_entry entry =
        assay_journal_find(&journal->scan.index, number);
    assert(entry.bytes);
    *line = malloc((size_t)entry.bytes + 1);
    if (!*line) return no_memory(message);
    (*line)[entry.bytes] = '\0';
    const ssize_t got = pread(journal->fd, *line, entry.bytes, entry.offset);
    if (got == (ssize_t)entry.bytes) return ASSAY_RAN;
    if (got >= 0) errno = EIO;
    free(*line);
    *line = NULL;
    return failed(journal, "reading", message);
}

void assay_journal_tick(struct assay_journal *journal)
{
    struct assay_message ignored;
    if (journal->is_waiting && assay_clock_seconds() - journal->synced >= 1)
        sync_now(journal, &ignored);
}

enum assay_status assay_journal_end(struct assay_journal *journal, int64_t cases,
                                    struct assay_message *message)
{
    if (journal->scan.is_ended) return ASSAY_RAN;
    leave_signals(journal);
    const enum assay_status status = append(
        journal, formatted("{\"type\":\"summary\",\"cases\":%" PRId64 "}\n", cases),
        message);
    journal->scan.is_ended = status == ASSAY_RAN;
    return status == ASSAY_RAN ? sync_now(journal, message) : status;
}

void assay_journal_close(struct assay_journal *journal)
{
    if (!journal) return;
    struct assay_message ignored;
    leave_signals(journal);
    if (journal->fd >= 0 && journal->scan.index.begun > 0)
        append(journal, strdup(stopped_line), &ignored);
    if (journal->fd >= 0) close(journal->fd);
    assay_journal_index_free(&journal->scan.index);
    free(journal->path);
    free(journal);
}
