/* SPDX-License-Identifier: MIT */
/* An input of a target as the parsers take theirs: as a text, as a file that is only in
 * memory; and what has to be true of every sentence that comes back. */
#ifndef ASSAY_FUZZ_TARGET_INPUT_H
#define ASSAY_FUZZ_TARGET_INPUT_H

#undef NDEBUG /* a target without its checks finds little */

#include "verify/case/message.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What libFuzzer and replay.c call for each input. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A text without room behind its NUL, up to a NUL in the input; the caller frees it. */
static inline char *input_text(const uint8_t *data, size_t size)
{
    char *const text = strndup((const char *)data, size);
    assert(text);
    return text;
}

/* Cuts @text after its first line and returns what follows; "" if nothing does. */
static inline char *input_rest(char *text)
{
    char *const end = text + strcspn(text, "\n");
    if (!*end) return end;
    *end = '\0';
    return end + 1;
}

/* A sentence that can be shown to anybody. */
static inline void check_sentence(const struct assay_message *message)
{
    assert(memchr(message->text, '\0', sizeof(message->text)) && message->text[0]);
    for (const char *s = message->text; *s; s++)
        assert((unsigned char)*s >= ' ' && *s != 0x7f);
}

/* A parser said yes, or no with a sentence. */
static inline void check_answer(enum assay_status status,
                                const struct assay_message *message)
{
    assert(status == ASSAY_RAN || status == ASSAY_REFUSED || status == ASSAY_FAILED ||
           status == ASSAY_OUT_OF_MEMORY);
    if (status != ASSAY_RAN) check_sentence(message);
}

/* Reads all bytes, so that a sanitizer sees whether they may be. */
static inline void touch(const void *memory, size_t bytes)
{
    static volatile uint8_t sum;
    for (size_t i = 0; i < bytes; i++)
        sum = (uint8_t)(sum + ((const uint8_t *)memory)[i]);
}

/* The path of a file in memory that holds the input until the next call. */
static inline const char *input_file(const uint8_t *data, size_t size)
{
    static char path[64];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("input", MFD_CLOEXEC);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    const ssize_t written =
        fd >= 0 && ftruncate(fd, 0) == 0 ? pwrite(fd, data, size, 0) : -1;
    assert(written == (ssize_t)size);
    return path;
}

#endif
