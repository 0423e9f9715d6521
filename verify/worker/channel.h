/* SPDX-License-Identifier: MIT */
/* JSON lines between supervisor and worker: one packet a line, at most one file
 * descriptor with it. */
#ifndef ASSAY_VERIFY_WORKER_CHANNEL_H
#define ASSAY_VERIFY_WORKER_CHANNEL_H

#include <jansson.h>
#include <stdbool.h>

enum {
    ASSAY_CHANNEL_MAX_LINE = 1 << 16,
    ASSAY_CHANNEL_FD = 3, /* where a worker finds its end */
};

/* Two connected ends, closed on exec. */
bool assay_channel_pair(int ends[2]);

/* Takes over @line; false when it could not be made or sent. @fd: -1 for none. Does not
 * wait longer than a socket's buffer takes. */
bool assay_channel_send(int channel, json_t *line, int fd);

/* Waits for a line. NULL at the end of the conversation, *@is_closed then true, and for
 * what is no JSON object. @fd gets the descriptor that came with it, or -1; NULL: none is
 * accepted. */
json_t *assay_channel_receive(int channel, int *fd, bool *is_closed);

#endif
