/* SPDX-License-Identifier: MIT */
/* Fuzzing target: what a pool hears from a job, however it is cut into pieces. The first
 * byte of an input is the length of the pieces. */
#include "verify/run/lines.h"

#include "fuzz/target/input.h"
#include "verify/run/job.h"

#include <sys/socket.h>

enum { MAX_PIECES = 64, MAX_BYTES = 1 << 17 };

/* Takes the lines that are whole; returns their bytes, newlines included. */
static size_t take_all(struct assay_lines *lines, const uint8_t *data)
{
    size_t bytes = 0;
    for (char *line; (line = assay_lines_take(lines)); free(line)) {
        struct assay_message message = { "" };
        if (assay_job_failure(line, &message) != ASSAY_RAN) check_sentence(&message);
        const uint8_t *const end = memchr(data + bytes, '\n', MAX_BYTES);
        assert(memcmp(data + bytes, line, strlen(line)) == 0);
        bytes = (size_t)(end - data) + 1;
    }
    return bytes;
}

static void hear(const uint8_t *data, size_t size, size_t piece)
{
    struct assay_lines lines = { .text = NULL };
    size_t taken = 0;
    int ends[2];
    const int result = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
    assert(result == 0);
    for (size_t at = 0; at < size; at += piece) {
        const size_t bytes = size - at < piece ? size - at : piece;
        const bool is_there = send(ends[0], data + at, bytes, 0) == (ssize_t)bytes &&
                              assay_lines_fill(&lines, ends[1]);
        assert(is_there);
        taken += take_all(&lines, data + taken);
    }
    close(ends[0]);
    assert(!assay_lines_fill(&lines, ends[1]));
    assert(!size || !memchr(data + taken, '\n', size - taken));
    close(ends[1]);
    assay_lines_close(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > MAX_BYTES) return 0;
    const size_t least = size / MAX_PIECES + 1;
    hear(data + 1, size - 1, data[0] > least ? data[0] : least);
    return 0;
}
