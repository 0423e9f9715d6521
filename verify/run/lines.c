/* SPDX-License-Identifier: MIT */
#include "verify/run/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

enum { CHUNK_BYTES = 1 << 16 };

bool assay_lines_fill(struct assay_lines *lines, int fd)
{
    if (lines->room - lines->bytes < CHUNK_BYTES) {
        const size_t room = 2 * lines->room + CHUNK_BYTES;
        char *const grown = realloc(lines->text, room);
        if (!grown) return false;
        lines->text = grown;
        lines->room = room;
    }
    ssize_t got;
    do
        got = recv(fd, lines->text + lines->bytes, lines->room - lines->bytes, 0);
    while (got < 0 && errno == EINTR);
    if (got <= 0) return false;
    lines->bytes += (size_t)got;
    return true;
}

char *assay_lines_take(struct assay_lines *lines)
{
    if (lines->searched == lines->bytes) return NULL;
    const char *const end =
        memchr(lines->text + lines->searched, '\n', lines->bytes - lines->searched);
    if (!end) {
        lines->searched = lines->bytes;
        return NULL;
    }
    const size_t length = (size_t)(end - lines->text);
    char *const line = strndup(lines->text, length);
    lines->bytes -= length + 1;
    lines->searched = 0;
    memmove(lines->text, end + 1, lines->bytes);
    return line;
}

void assay_lines_close(struct assay_lines *lines)
{
    free(lines->text);
    *lines = (struct assay_lines){ .text = NULL };
}

static bool send_all(int fd, const char *text, size_t bytes, int flags)
{
    while (bytes) {
        const ssize_t sent = send(fd, text, bytes, MSG_NOSIGNAL | flags);
        if (sent < 0 && errno != EINTR) return false;
        if (sent < 0) continue;
        text += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

bool assay_lines_send(int fd, const char *line)
{
    return send_all(fd, line, strlen(line), MSG_MORE) && send_all(fd, "\n", 1, 0);
}
