/* SPDX-License-Identifier: MIT */
#include "fuzz/campaign/save.h"

#include "verify/data/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static enum assay_status failed(const char *path, struct assay_message *message)
{
    return assay_fail(message, ASSAY_FAILED, "--save %s: writing failed: %s",
                      assay_shown_path(path), strerror(errno));
}

/* Whoever renames a file over it leaves those who wait with the old one. */
static bool is_at(int fd, const char *path)
{
    struct stat ours, theirs;
    return fstat(fd, &ours) == 0 && stat(path, &theirs) == 0 &&
           ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

/* The file, made if need be, which nobody else changes until it is closed. */
static enum assay_status open_locked(const char *path, int *fd,
                                     struct assay_message *message)
{
    for (;;) {
        *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (*fd < 0)
            return assay_fail(message, ASSAY_REFUSED,
                              "--save %s: the file can't be written: %s; name one in a "
                              "writable folder",
                              assay_shown_path(path), strerror(errno));
        while (flock(*fd, LOCK_EX) != 0)
            if (errno != EINTR) {
                close(*fd);
                return failed(path, message);
            }
        if (is_at(*fd, path)) return ASSAY_RAN;
        close(*fd);
    }
}

/* All of the file as a text; NULL with errno. */
static char *read_all(int fd)
{
    struct stat about;
    if (fstat(fd, &about) != 0) return NULL;
    char *const text = malloc((size_t)about.st_size + 1);
    size_t got = 0;
    for (ssize_t more = 1; text && more && got < (size_t)about.st_size;
         got += (size_t)more) {
        more = pread(fd, text + got, (size_t)about.st_size - got, (off_t)got);
        if (more < 0) {
            free(text);
            return NULL;
        }
    }
    if (text) text[got] = '\0';
    return text;
}

static bool has_line(const char *text, const char *prefix, const char *line)
{
    const size_t before = strlen(prefix), length = strlen(line);
    while (*text) {
        const size_t end = strcspn(text, "\n");
        if (end == before + length && strncmp(text, prefix, before) == 0 &&
            strncmp(text + before, line, length) == 0)
            return true;
        text += end + (text[end] == '\n');
    }
    return false;
}

enum assay_status assay_save_has(const char *path, const char *signature, bool *has,
                                 struct assay_message *message)
{
    *has = false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return ASSAY_RAN;
    char *const text = fd >= 0 ? read_all(fd) : NULL;
    if (fd >= 0) close(fd);
    if (!text)
        return assay_fail(message, ASSAY_REFUSED,
                          "--save %s: the file can't be read: %s; name a suite, or a "
                          "new file",
                          assay_shown_path(path), strerror(errno));
    *has = has_line(text, "# ", signature);
    free(text);
    return ASSAY_RAN;
}

static bool write_all(int fd, const char *text, size_t bytes)
{
    while (bytes) {
        const ssize_t written = write(fd, text, bytes);
        if (written < 0 && errno != EINTR) return false;
        if (written < 0) continue;
        text += written;
        bytes -= (size_t)written;
    }
    return true;
}

/* Gives @text to a new file of that mode and the new file the name @path. */
static bool replace(const char *path, const char *text, mode_t mode)
{
    char *temporary;
    if (asprintf(&temporary, "%s.XXXXXX", path) < 0) return false;
    const int fd = mkostemp(temporary, O_CLOEXEC);
    bool is_done = fd >= 0 && fchmod(fd, mode) == 0 &&
                   write_all(fd, text, strlen(text)) && fsync(fd) == 0;
    int error = errno;
    if (fd >= 0 && close(fd) != 0 && is_done) {
        error = errno;
        is_done = false;
    }
    if (is_done && rename(temporary, path) != 0) {
        error = errno;
        is_done = false;
    }
    if (fd >= 0 && !is_done) unlink(temporary);
    free(temporary);
    errno = error;
    return is_done;
}

static bool append(int fd, const char *path, const char *signature, const char *line)
{
    struct stat about;
    char *const text = read_all(fd), *whole = NULL;
    bool is_done = text && fstat(fd, &about) == 0;
    if (is_done && !has_line(text, "# ", signature) && !has_line(text, "", line)) {
        const size_t length = strlen(text);
        const bool is_torn = length && text[length - 1] != '\n';
        is_done = asprintf(&whole, "%s%s# %s\n%s\n", text, is_torn ? "\n" : "", signature,
                           line) >= 0 &&
                  replace(path, whole, about.st_mode & 0777);
    }
    free(whole);
    free(text);
    return is_done;
}

enum assay_status assay_save_case(const char *path, const char *signature,
                                  const char *line, struct assay_message *message)
{
    int fd;
    const enum assay_status status = open_locked(path, &fd, message);
    if (status != ASSAY_RAN) return status;
    const bool is_done = append(fd, path, signature, line);
    const enum assay_status end = is_done ? ASSAY_RAN : failed(path, message);
    close(fd);
    return end;
}
