/* SPDX-License-Identifier: MIT */
/* Fuzzing target: what a program prints, read as answers and noise. */
#include "verify/worker/answer.h"

#include "fuzz/target/input.h"
#include "verify/worker/listener.h"

#include <fcntl.h>
#include <math.h>

enum { PIPE_BYTES = 1 << 15 };

static void check_text(const char *text, size_t size)
{
    struct assay_answer answer;
    assert(strlen(text) < ASSAY_LISTENER_MAX_LINE && strlen(text) <= size);
    if (!assay_answer_read(text, &answer)) return;
    assert(answer.seconds >= 0 && isfinite(answer.seconds));
    assert(answer.status == ASSAY_RAN ? !*answer.sentence : answer.seconds == 0);
    assert(answer.sentence >= text && answer.sentence <= text + strlen(text));
}

/* All of @data, which fits in a pipe, or as what came before a question. */
static void hear(const uint8_t *data, size_t size, bool is_early)
{
    static struct assay_listener listener;
    int ends[2];
    const bool is_open = pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 &&
                         write(ends[1], data, size) == (ssize_t)size;
    assert(is_open);
    close(ends[1]);
    struct assay_process process = { .channel = ends[0],
                                     .output = memfd_create("output", MFD_CLOEXEC) };
    const char *answer = NULL;
    assay_listener_reset(&listener);
    if (is_early) assay_listener_hear_out(&listener, &process);
    while (assay_listener_hear(&listener, &process, &answer))
        if (answer) {
            assert(!is_early);
            check_text(answer, size);
        }
    assert(process.is_channel_closed && listener.at == listener.end);
    assert(lseek(process.output, 0, SEEK_CUR) <= (off_t)size);
    close(ends[0]);
    close(process.output);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > PIPE_BYTES) return 0;
    hear(data, size, false);
    hear(data, size, true);
    char *const text = input_text(data, size);
    if (size < ASSAY_LISTENER_MAX_LINE) check_text(text, size);
    free(text);
    return 0;
}
