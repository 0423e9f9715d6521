/* SPDX-License-Identifier: MIT */
#include "verify/worker/listener.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LEFT_OVER = 32 }; /* reads, together more than a pipe holds */
static const char answer_mark[] = "assay: ";

void assay_listener_reset(struct assay_listener *listener)
{
    listener->at = listener->end = listener->length = 0;
    listener->is_long = false;
}

static void add_noise(struct assay_listener *listener,
                      const struct assay_process *process)
{
    assay_process_add_output(process, listener->line, listener->length);
    listener->length = 0;
}

/* Adds one byte to the line; true when that ends an answer, which is then all of it. */
static bool take(struct assay_listener *listener, const struct assay_process *process,
                 char byte)
{
    listener->line[listener->length++] = byte;
    if (byte != '\n' && listener->length < ASSAY_LISTENER_MAX_LINE) return false;
    const bool is_answer =
        byte == '\n' && !listener->is_long &&
        strncmp(listener->line, answer_mark, sizeof(answer_mark) - 1) == 0;
    listener->is_long = byte != '\n';
    if (!is_answer) add_noise(listener, process);
    return is_answer;
}

static bool read_more(struct assay_listener *listener, struct assay_process *process)
{
    ssize_t got;
    do
        got = read(process->channel, listener->heard, sizeof(listener->heard));
    while (got < 0 && errno == EINTR);
    process->is_channel_closed |= got == 0;
    listener->at = 0;
    listener->end = got > 0 ? (size_t)got : 0;
    return got > 0;
}

/* Advances to the end of an answer or of what has been read. */
static bool find_answer(struct assay_listener *listener,
                        const struct assay_process *process)
{
    while (listener->at < listener->end)
        if (take(listener, process, listener->heard[listener->at++])) return true;
    return false;
}

static const char *text_of(struct assay_listener *listener)
{
    size_t length = listener->length;
    while (isspace((unsigned char)listener->line[length - 1]))
        length--;
    listener->line[length] = '\0';
    listener->length = 0;
    return length < sizeof(answer_mark) - 1 ? ""
                                            : listener->line + sizeof(answer_mark) - 1;
}

bool assay_listener_hear(struct assay_listener *listener, struct assay_process *process,
                         const char **answer)
{
    *answer = NULL;
    if (listener->at == listener->end && !read_more(listener, process)) return false;
    if (find_answer(listener, process)) *answer = text_of(listener);
    return true;
}

void assay_listener_hear_out(struct assay_listener *listener,
                             struct assay_process *process)
{
    for (int i = 0; i < MAX_LEFT_OVER; i++) {
        if (listener->at == listener->end && !read_more(listener, process)) return;
        while (find_answer(listener, process))
            add_noise(listener, process);
    }
}
