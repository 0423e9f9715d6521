/* SPDX-License-Identifier: MIT */
/* Fuzzing target: what a worker hears on its channel, up to what its plugin is given. */
#include "verify/worker/request.h"

#include "fuzz/target/input.h"
#include "verify/worker/channel.h"

#include <sys/socket.h>

enum { ARENA_BYTES = 1 << 14 };

/* The input as one packet. NULL: none, or not an object. */
static json_t *receive(const uint8_t *data, size_t size)
{
    int ends[2];
    bool is_closed = false;
    const bool is_open = assay_channel_pair(ends);
    assert(is_open);
    const bool is_sent = send(ends[0], data, size, MSG_NOSIGNAL) == (ssize_t)size;
    close(ends[0]);
    json_t *const line = assay_channel_receive(ends[1], NULL, &is_closed);
    assert(is_closed == (size == 0 || !is_sent) && (!line || json_is_object(line)));
    close(ends[1]);
    return line;
}

/* Where a request has memory, the first and the last element of each tensor are in it. */
static void check_memory(const struct assay_plugin_tensor *tensor)
{
    const size_t size = assay_format_bytes((enum assay_format)tensor->format);
    int64_t last = 0;
    bool is_empty = false;
    for (int i = 0; i < tensor->rank; i++) {
        is_empty |= tensor->shape[i] == 0;
        last += (tensor->shape[i] - 1) * tensor->stride[i];
    }
    if (is_empty) return;
    touch(tensor->data, size);
    touch((const char *)tensor->data + (size_t)last * size, size);
}

static void check_call(const struct assay_request *request)
{
    const struct assay_call *const call = &request->call;
    assert(call->operation && call->case_line && request->launches >= 1);
    assert(request->is_run == (request->memory != NULL));
    for (int i = 0; i < call->tensor_count; i++) {
        const struct assay_plugin_tensor *const tensor = call->tensor[i];
        assert(tensor->name && tensor->rank >= 0 && tensor->rank <= ASSAY_MAX_RANK);
        assert(tensor->format > 0 && tensor->format < ASSAY_FORMAT_COUNT);
        if (request->memory) check_memory(tensor);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct assay_request request;
    json_t *const line = receive(data, size);
    const int fd = memfd_create("arena", MFD_CLOEXEC);
    const int result = ftruncate(fd, ARENA_BYTES);
    assert(result == 0);
    if (line && assay_request_open(&request, line, fd, ""))
        check_call(&request);
    else if (!line)
        close(fd);
    if (line) assay_request_close(&request);
    json_decref(line);
    return 0;
}
