/* SPDX-License-Identifier: MIT */
/* Lines of any length from a socket, taken as they come. */
#ifndef ASSAY_VERIFY_RUN_LINES_H
#define ASSAY_VERIFY_RUN_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct assay_lines {
    char *text; /* what has come and was not taken yet */
    size_t bytes, room;
    size_t searched; /* of it holds no newline */
};

/* Reads once what there is, waiting if there is nothing. False at the end of the
 * conversation, and when there is no memory. */
bool assay_lines_fill(struct assay_lines *lines, int fd);

/* The first whole line, without its newline; the caller frees it. NULL: none yet. */
char *assay_lines_take(struct assay_lines *lines);

void assay_lines_close(struct assay_lines *lines);

/* Sends all of @line and a newline; false when the other side is gone. */
bool assay_lines_send(int fd, const char *line);

#endif
