/* SPDX-License-Identifier: MIT */
#include "verify/worker/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union one_descriptor {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

bool assay_channel_pair(int ends[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0;
}

static void attach(struct msghdr *message, union one_descriptor *control, int fd)
{
    *control = (union one_descriptor){ .bytes = { 0 } };
    message->msg_control = control;
    message->msg_controllen = sizeof(*control);
    struct cmsghdr *const header = CMSG_FIRSTHDR(message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
}

bool assay_channel_send(int channel, json_t *line, int fd)
{
    char *const text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    json_decref(line);
    if (!text) return false;
    struct iovec part = { text, strlen(text) };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    union one_descriptor control;
    if (fd >= 0) attach(&message, &control, fd);
    ssize_t sent;
    do
        sent = sendmsg(channel, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    const bool is_sent = sent == (ssize_t)part.iov_len;
    free(text);
    return is_sent;
}

static int detach(struct msghdr *message)
{
    int fd = -1;
    struct cmsghdr *const header = CMSG_FIRSTHDR(message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(fd)))
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    return fd;
}

json_t *assay_channel_receive(int channel, int *fd, bool *is_closed)
{
    char *const text = malloc(ASSAY_CHANNEL_MAX_LINE);
    struct iovec part = { text, ASSAY_CHANNEL_MAX_LINE };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    union one_descriptor control;
    ssize_t received = -1;
    if (fd) {
        *fd = -1;
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
    }
    if (text) do
            received = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
        while (received < 0 && errno == EINTR);
    *is_closed = received <= 0;
    if (fd && received > 0) *fd = detach(&message);
    json_t *line = NULL;
    if (received > 0 && !(message.msg_flags & MSG_TRUNC))
        line = json_loadb(text, (size_t)received, JSON_REJECT_DUPLICATES, NULL);
    free(text);
    if (json_is_object(line)) return line;
    json_decref(line);
    return NULL;
}
