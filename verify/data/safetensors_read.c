/* SPDX-License-Identifier: MIT */
/* Brings a safetensors file into memory, zstd undone. */
#include "verify/data/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define DECOMPRESSED_LIMIT ((size_t)1 << 30)

static enum assay_status no_memory(const char *path, size_t bytes,
                                   struct assay_message *message)
{
    return assay_fail(message, ASSAY_OUT_OF_MEMORY, "%s: no memory for its %zu bytes",
                      assay_shown_path(path), bytes);
}

static enum assay_status system_failure(const char *path, struct assay_message *message)
{
    return assay_fail(message, ASSAY_FAILED, "%s: cannot be read: %s",
                      assay_shown_path(path), strerror(errno));
}

static enum assay_status read_bytes(int descriptor, const char *path, char *memory,
                                    size_t bytes, struct assay_message *message)
{
    size_t done = 0;
    while (done < bytes) {
        const ssize_t got = read(descriptor, memory + done, bytes - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return system_failure(path, message);
        if (got == 0)
            return assay_fail(message, ASSAY_FAILED,
                              "%s: became shorter while it was read",
                              assay_shown_path(path));
        done += (size_t)got;
    }
    return ASSAY_RAN;
}

static enum assay_status read_descriptor(int descriptor, const char *path, void **memory,
                                         size_t *bytes, struct assay_message *message)
{
    struct stat information;
    if (fstat(descriptor, &information) != 0) return system_failure(path, message);
    if (S_ISDIR(information.st_mode))
        return assay_fail(message, ASSAY_REFUSED,
                          "%s: is a directory: name a .safetensors file in it",
                          assay_shown_path(path));
    if (!S_ISREG(information.st_mode))
        return assay_fail(message, ASSAY_REFUSED,
                          "%s: is not a regular file, which it must be",
                          assay_shown_path(path));
    *bytes = (size_t)information.st_size;
    *memory = malloc(*bytes ? *bytes : 1);
    if (!*memory) return no_memory(path, *bytes, message);
    const enum assay_status status =
        read_bytes(descriptor, path, *memory, *bytes, message);
    if (status != ASSAY_RAN) free(*memory);
    return status;
}

static enum assay_status read_content(const char *path, void **memory, size_t *bytes,
                                      struct assay_message *message)
{
    /* O_NONBLOCK: opening a named pipe must not wait for a writer. */
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return assay_fail(message, ASSAY_REFUSED, "%s: cannot be opened: %s",
                          assay_shown_path(path), strerror(errno));
    const enum assay_status status =
        read_descriptor(descriptor, path, memory, bytes, message);
    close(descriptor);
    return status;
}

static enum assay_status too_big(const char *path, struct assay_message *message)
{
    return assay_fail(message, ASSAY_REFUSED,
                      "%s: its content is above the limit of %zu bytes",
                      assay_shown_path(path), DECOMPRESSED_LIMIT);
}

static bool grow(ZSTD_outBuffer *output)
{
    const size_t wanted = 2 * output->size;
    const size_t size = wanted <= DECOMPRESSED_LIMIT ? wanted : DECOMPRESSED_LIMIT + 1;
    void *const larger = realloc(output->dst, size);
    if (!larger) return false;
    output->dst = larger;
    output->size = size;
    return true;
}

/* Grows with what really comes out: the size that a frame claims is only a claim. */
static enum assay_status decompress_stream(ZSTD_DStream *stream, const char *path,
                                           ZSTD_inBuffer *input, ZSTD_outBuffer *output,
                                           struct assay_message *message)
{
    size_t left = 1;
    while (input->pos < input->size || (left && output->pos == output->size)) {
        if (output->pos == output->size) {
            if (output->size > DECOMPRESSED_LIMIT) return too_big(path, message);
            if (!grow(output)) return no_memory(path, 2 * output->size, message);
        }
        left = ZSTD_decompressStream(stream, output, input);
        if (ZSTD_isError(left))
            return assay_fail(message, ASSAY_REFUSED,
                              "%s: is not good zstd data, which its name promises: %s",
                              assay_shown_path(path), ZSTD_getErrorName(left));
    }
    if (left)
        return assay_fail(message, ASSAY_REFUSED,
                          "%s: the zstd data is truncated: it must be whole",
                          assay_shown_path(path));
    return ASSAY_RAN;
}

static enum assay_status decompress(const char *path, const void *compressed,
                                    size_t compressed_bytes, void **memory, size_t *bytes,
                                    struct assay_message *message)
{
    const unsigned long long claimed =
        ZSTD_getFrameContentSize(compressed, compressed_bytes);
    if (claimed != ZSTD_CONTENTSIZE_UNKNOWN && claimed != ZSTD_CONTENTSIZE_ERROR &&
        claimed > DECOMPRESSED_LIMIT)
        return too_big(path, message);
    ZSTD_inBuffer input = { compressed, compressed_bytes, 0 };
    ZSTD_outBuffer output = { malloc(1 << 16), 1 << 16, 0 };
    ZSTD_DStream *const stream = ZSTD_createDStream();
    const enum assay_status status =
        output.dst && stream ? decompress_stream(stream, path, &input, &output, message)
                             : no_memory(path, output.size, message);
    ZSTD_freeDStream(stream);
    if (status != ASSAY_RAN) {
        free(output.dst);
        return status;
    }
    *memory = output.dst;
    *bytes = output.pos;
    return ASSAY_RAN;
}

static bool ends_with(const char *path, const char *ending)
{
    const size_t length = strlen(path), ending_length = strlen(ending);
    return length >= ending_length && strcmp(path + length - ending_length, ending) == 0;
}

enum assay_status assay_safetensors_read(const char *path, struct assay_safetensors *file,
                                         struct assay_message *message)
{
    *file = (struct assay_safetensors){ 0 };
    void *memory = NULL;
    size_t bytes = 0;
    enum assay_status status = read_content(path, &memory, &bytes, message);
    if (status == ASSAY_RAN && ends_with(path, ".zst")) {
        void *const compressed = memory;
        status = decompress(path, compressed, bytes, &memory, &bytes, message);
        free(compressed);
    }
    if (status != ASSAY_RAN) return status;
    return assay_safetensors_adopt(memory, bytes, path, file, message);
}
